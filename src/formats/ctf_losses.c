/* See ctf_losses.h. A stream's key is a text. */
#include "formats/ctf_losses.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* The length of a path without the number of a file that continues others: "c_0_1". */
static size_t stem_len(const char *path)
{
	size_t len = strlen(path), at = len;

	while (at && isdigit((unsigned char)path[at - 1]))
		at--;
	return at < len && at > 1 && path[at - 1] == '_' && path[at - 2] != '/' ? at - 1 : len;
}

static size_t folder_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/*
 * LTTng's packets have an instance id: with the stream id it names the stream within its trace. In
 * traces of older tracers, files of one CPU whose names differ in the last number only are one
 * stream. Otherwise each file is.
 */
static void make_key(struct bytes *key, const struct ctf_stream_key *stream)
{
	const char *path = stream->path;
	size_t folder = folder_len(path), begin = stream->trace[0] ? folder : 0;
	bool has_instance = stream->instance_id != CTF_NO_NUMBER;
	size_t end = has_instance                   ? folder
		     : stream->cpu != CTF_NO_NUMBER ? stem_len(path)
						    : strlen(path);

	bytes_reset(key);
	bytes_printf(key, "%" PRIx64 " %" PRIx64 " %s ", stream->stream_id,
		has_instance ? stream->instance_id : stream->cpu, stream->trace);
	bytes_add(key, path + begin, end - begin);
}

bool ctf_losses_add(struct ctf_losses *losses, const struct ctf_stream_key *stream,
	uint64_t counter, uint64_t *ret_more)
{
	*ret_more = 0;
	if (!counter)
		return true;
	make_key(&losses->key, stream);
	uint32_t index = losses->key.failed ? 0
					    : strtab_add(&losses->keys, bytes_z(&losses->key),
						      losses->key.len);
	if (!index)
		return false;
	while (losses->highest.count <= index)
		if (!vec_push(&losses->highest))
			return false;
	uint64_t *highest = &losses->highest.items[index];
	if (counter > *highest) {
		*ret_more = counter - *highest;
		losses->total += *ret_more;
		*highest = counter;
	}
	return true;
}

void ctf_losses_done(struct ctf_losses *losses)
{
	strtab_done(&losses->keys);
	vec_done(&losses->highest);
	bytes_done(&losses->key);
}
