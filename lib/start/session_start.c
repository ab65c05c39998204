/* The public functions that start a session: each makes a sink from its options. */
#include <errno.h>
#include <string.h>

#include "lib/pipe/pipe_session.h"
#include "lib/sink/sinks.h"

static bool options_good(const struct spoor_session_options *options)
{
	return options && options->size >= offsetof(struct spoor_session_options, policy) &&
	       (options->wants || !options->want_count);
}

/* The members that the caller's header has; the rest is 0. */
static struct spoor_session_options options_of(const struct spoor_session_options *given)
{
	struct spoor_session_options options = { 0 };

	memcpy(&options, given, given->size < sizeof(options) ? given->size : sizeof(options));
	options.size = sizeof(options);
	return options;
}

static int begin(const struct spoor_session_options *options, struct sink *sink, int r,
	struct spoor_session **ret_session)
{
	return r ? r : session_start_public(options, sink, ret_session);
}

int spoor_session_start_file(const struct spoor_session_options *given,
	const struct spoor_file_options *given_file, struct spoor_session **ret_session)
{
	struct spoor_file_options file = { 0 };
	struct sink *sink = NULL;

	if (!options_good(given) || !ret_session || !given_file ||
		given_file->size < offsetof(struct spoor_file_options, rotate_bytes))
		return -EINVAL;
	struct spoor_session_options options = options_of(given);
	memcpy(&file, given_file,
		given_file->size < sizeof(file) ? given_file->size : sizeof(file));
	if (options.policy > SPOOR_BLOCK ||
		(!file.path && options.policy != SPOOR_OVERWRITE_OLDEST))
		return -EINVAL;
	int r = options.policy == SPOOR_OVERWRITE_OLDEST ? sink_recorder_new(&file, &options, &sink)
							 : sink_file_new(&file, &options, &sink);
	return begin(&options, sink, r, ret_session);
}

int spoor_session_start_callback(const struct spoor_session_options *given,
	spoor_listener_function *function, void *context, struct spoor_session **ret_session)
{
	struct sink *sink = NULL;

	if (!options_good(given) || !function || !ret_session)
		return -EINVAL;
	struct spoor_session_options options = options_of(given);
	if (options.policy > SPOOR_BLOCK)
		return -EINVAL;
	int r = sink_queue_new(&options, function, context, &sink);
	return begin(&options, sink, r, ret_session);
}

int spoor_session_start_listener(const struct spoor_session_options *given,
	struct spoor_session **ret_session)
{
	struct sink *sink = NULL;

	if (!options_good(given) || !ret_session)
		return -EINVAL;
	struct spoor_session_options options = options_of(given);
	if (options.policy > SPOOR_BLOCK)
		return -EINVAL;
	int r = sink_queue_new(&options, NULL, NULL, &sink);
	return begin(&options, sink, r, ret_session);
}

int spoor_session_start_rings(const struct spoor_session_options *given,
	struct spoor_session **ret_session)
{
	struct sink *sink = NULL;

	if (!options_good(given) || !ret_session)
		return -EINVAL;
	struct spoor_session_options options = options_of(given);
	int r = sink_rings_new(&sink);
	return begin(&options, sink, r, ret_session);
}
