/*
 * See read_back.h. In a file without includes of the library: the reader and the library use the
 * same names for different things.
 */
#include "lib/read_back.h"

#include "base/diag.h"
#include "nettrace/nettrace_read.h"
#include "trace/event.h"
#include "trace/trace.h"

void read_back(const char *path, struct read_file *ret_file)
{
	struct trace trace;
	struct diag diag = { 0 };
	struct event event;
	struct read_file file = { 0 };
	FILE *in = fopen(path, "rb");
	char *buffer = malloc(1 << 20);
	int r = 0;

	assert_non_null(in);
	assert_int_equal(trace_init(&trace), 0);
	struct nettrace_decoder *decoder = nettrace_decoder_new(&trace, path, 0);
	for (size_t n; r >= 0 && (n = fread(buffer, 1, 1 << 20, in)) > 0;) {
		assert_int_equal(nettrace_decoder_push(decoder, buffer, n), 0);
		while ((r = nettrace_decoder_next(decoder, &event, &diag)) > 0) {
			const struct schema *schema = &trace.schemas.items[event.schema_index];
			if (!(file.count & (file.count + 1)))
				file.events = realloc(file.events,
					2 * (file.count + 1) * sizeof(*file.events));
			struct read_event *to = &file.events[file.count++];
			memset(to, 0, sizeof(*to));
			snprintf(to->provider, sizeof(to->provider), "%s",
				strtab_get(&trace.strings, schema->provider));
			snprintf(to->name, sizeof(to->name), "%s",
				strtab_get(&trace.strings, schema->name));
			to->id = schema->event_id;
			to->version = schema->version;
			to->time_ns = event.time_ns;
			to->thread_id = trace.threads.items[event.thread_index].tid;
			to->lost_before = event.lost_before;
			to->payload_size = event.payload_size;
			uint8_t *payload = malloc(event.payload_size + 1);
			memcpy(payload, event.payload, event.payload_size);
			to->payload = payload;
			if (event.stack_index) {
				const uint64_t *frames = stack_table_get(&trace.stacks,
					event.stack_index, &to->stack_depth);
				memcpy(to->stack, frames,
					(to->stack_depth < 128 ? to->stack_depth : 128) * 8);
			}
		}
	}
	file.result = r < 0 ? r : nettrace_decoder_finish(decoder, &diag);
	if (file.result)
		print_message("%s: %s\n", path, diag.text);
	file.lost = nettrace_decoder_lost(decoder);
	nettrace_decoder_free(decoder);
	trace_done(&trace);
	fclose(in);
	free(buffer);
	*ret_file = file;
}

void read_free(struct read_file *file)
{
	for (size_t i = 0; i < file->count; i++)
		free((void *)(uintptr_t)file->events[i].payload);
	free(file->events);
}

#if defined(__SANITIZE_THREAD__)
/* Children of a process with threads fire events here. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}
#endif
