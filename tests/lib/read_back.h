/* Reads files of the library with the reader of src/, which shares no code with the library. */
#ifndef SPOOR_TESTS_LIB_READ_BACK_H
#define SPOOR_TESTS_LIB_READ_BACK_H

#include "unit/test.h"

#include <unistd.h>

#include <spoor/spoor.h>

#if defined(__SANITIZE_THREAD__)
#define SKIP_THREADS_IN_CHILDREN()                                                                  \
	do {                                                                                        \
		print_message(                                                                      \
			"skipped: the thread sanitizer cannot follow threads of a forked child\n"); \
		skip();                                                                             \
	} while (0)
#else
#define SKIP_THREADS_IN_CHILDREN() ((void)0)
#endif

struct read_event {
	char provider[64];
	char name[64];
	uint32_t id;
	uint32_t version;
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
	int result; /* of the reader at its end: 0: complete, negative: truncated */
};

void read_back(const char *path, struct read_file *ret_file);
void read_free(struct read_file *file);

/* How many events of this provider and name. */
static inline size_t read_count(const struct read_file *file, const char *provider,
	const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < file->count; i++)
		count += strcmp(file->events[i].provider, provider) == 0 &&
			 (!name || strcmp(file->events[i].name, name) == 0);
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

/* Of a group of tests that write such files. */
static inline int test_paths_tear_down(void **state)
{
	(void)state;
	spoor_stop();
	test_paths_remove();
	return 0;
}

#endif
