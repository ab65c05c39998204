/* Files of the library read by the repository's own reader, which shares no line with the library. */
#ifndef SPOOR_TESTS_LIB_READ_BACK_H
#define SPOOR_TESTS_LIB_READ_BACK_H

#include "unit/test.h"

#include <unistd.h>

#include "base/diag.h"
#include "format/nettrace_read.h"
#include "model/event.h"
#include "model/trace.h"

#if defined(__SANITIZE_THREAD__)
/* Children of a program with threads start threads here. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}
#define SKIP_THREADS_IN_CHILDREN()                                                                                 \
	do {                                                                                                       \
		print_message("skipped: the thread sanitizer cannot follow threads of a forked child\n");          \
		skip();                                                                                            \
	} while (0)
#else
#define SKIP_THREADS_IN_CHILDREN() ((void)0)
#endif

struct read_event {
	char provider[64];
	char name[64];
	uint32_t id;
	uint64_t time_ns;
	uint32_t thread_id;
	uint32_t stack_depth;
	uint64_t stack[128];
	uint64_t lost_before;
	uint32_t payload_size;
	const uint8_t *payload; /* malloced */
};

struct read_file {
	struct read_event *events;
	size_t count;
	uint64_t lost;
	int result; /* of the reader at its end: 0 whole, negative torn */
};

static inline void read_back(const char *path, struct read_file *ret_file)
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
			file.events = realloc(file.events, (file.count + 1) * sizeof(*file.events));
			struct read_event *to = &file.events[file.count++];
			memset(to, 0, sizeof(*to));
			snprintf(to->provider, sizeof(to->provider), "%s", strtab_get(&trace.strings, schema->provider));
			snprintf(to->name, sizeof(to->name), "%s", strtab_get(&trace.strings, schema->name));
			to->id = schema->event_id;
			to->time_ns = event.time_ns;
			to->thread_id = trace.threads.items[event.thread_index].tid;
			to->lost_before = event.lost_before;
			to->payload_size = event.payload_size;
			uint8_t *payload = malloc(event.payload_size + 1);
			memcpy(payload, event.payload, event.payload_size);
			to->payload = payload;
			if (event.stack_index) {
				const uint64_t *frames = stack_table_get(&trace.stacks, event.stack_index, &to->stack_depth);
				memcpy(to->stack, frames, (to->stack_depth < 128 ? to->stack_depth : 128) * 8);
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

static inline void read_free(struct read_file *file)
{
	for (size_t i = 0; i < file->count; i++)
		free((void *)(uintptr_t)file->events[i].payload);
	free(file->events);
}

/* How many events of this provider and name. */
static inline size_t read_count(const struct read_file *file, const char *provider, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < file->count; i++)
		count += strcmp(file->events[i].provider, provider) == 0 && (!name || strcmp(file->events[i].name, name) == 0);
	return count;
}

/* A path in a folder of this test's own. */
static inline const char *test_path(const char *name)
{
	static char folder[64];
	static char paths[8][128];
	static unsigned next;

	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/spoor-test-XXXXXX");
		assert_non_null(mkdtemp(folder));
	}
	char *path = paths[next++ % 8];
	snprintf(path, 128, "%s/%s", folder, name);
	return path;
}

static inline void test_paths_remove(void)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -rf %s", test_path(""));
	(void)!system(command);
}

#endif
