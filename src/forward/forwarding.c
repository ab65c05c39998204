/* See forwarding.h. */
#include "forward/forwarding.h"

#include <errno.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "forward/refire.h"
#include "pipeline/event_session.h"
#include "trace/event.h"
#include "trace/schema.h"

#define TURN_NS UINT64_C(250000000)

struct running {
	const struct forward_options *options;
	struct runtime_client client;
	struct event_session session;
	struct forward_result *result;
};

static void take_event(void *user, const struct schema *schema, const struct event *event,
	struct diag *broken)
{
	struct running *f = user;

	(void)broken;
	/* Of the session itself, not of the program. */
	if (schema->provider_kind == PROVIDER_EVENTPIPE)
		return;
	f->result->events++;
	refire_event(f->options->refire, &f->session.trace, schema, event, f->options->target->pid);
}

static bool turn(struct running *f, struct poll_set *set, uint64_t end_ns)
{
	uint64_t now = clock_monotonic_ns();

	poll_set_begin(set, now + TURN_NS < end_ns ? now + TURN_NS : end_ns);
	now = runtime_client_turn(&f->client, set, f->options->watched, f->options->watched_count);
	return !f->options->turn || f->options->turn(f->options->user, now);
}

static int failure(const struct running *f, bool was_open, struct diag *diag)
{
	if (f->session.broken.error) {
		*diag = f->session.broken;
		return diag->error;
	}
	if (was_open)
		return 0;
	return event_session_explain(&f->session, "cannot forward the events of process",
		f->options->target->pid, diag);
}

int forward_run(const struct forward_options *options, void (*opened)(void *user),
	struct forward_result *ret_result, struct diag *diag)
{
	struct running f = { .options = options, .result = ret_result };
	const struct eventpipe_options pipe = {
		.providers = options->providers,
		.provider_count = options->provider_count,
		.buffer_mb = options->buffer_mb,
		.no_stacks = true, /* a stack of that process means nothing in this one */
	};
	const struct event_reading reading = {
		.take = take_event, .user = &f, .name = "the events"
	};
	uint64_t begin_ns = clock_monotonic_ns();
	uint64_t end_ns = UINT64_MAX;
	struct poll_set set = { 0 };
	bool is_wanted = true, is_open = false;

	*ret_result = (struct forward_result){ 0 };
	runtime_client_init(&f.client, NULL, options->target, options->guard);
	int result = event_session_open(&f.session, &f.client, &pipe, &reading);
	if (result < 0)
		return diag_set(diag, result, "cannot forward events: %m");
	while (is_wanted && !event_session_is_over(&f.session) && clock_monotonic_ns() < end_ns) {
		is_wanted = turn(&f, &set, end_ns);
		if (!is_open && eventpipe_opened_ns(f.session.pipe)) {
			is_open = true;
			opened(options->user);
			if (options->duration_ns)
				end_ns = clock_monotonic_ns() + options->duration_ns;
		}
	}
	ret_result->has_ended = event_session_is_over(&f.session);
	event_session_stop(&f.session, clock_monotonic_ns());
	while (!event_session_is_over(&f.session))
		(void)turn(&f, &set, UINT64_MAX);
	ret_result->lost = event_session_lost(&f.session);
	ret_result->took_ns = clock_monotonic_ns() - begin_ns;
	result = failure(&f, is_open, diag);
	poll_set_done(&set);
	event_session_close(&f.session);
	runtime_client_done(&f.client);
	return result;
}
