/*
 * saved_stream.c: all events of a file in time order, with the number of lost ones; truncated
 * files; and a callback that ends the reading.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "code/method_name.h"
#include "pipeline/saved.h"
#include "pipeline/saved_stream.h"
#include "render/event_line.h"
#include "trace/symbolmap.h"
#include "unit/nettrace_demo.h"

static char folder[] = "/tmp/spoor-test-XXXXXX";
static char path[512];

static int set_up(void **state)
{
	struct diag diag = { 0 };

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/demo.nettrace", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	int r = demo_write(&(struct nettrace_sink_options){ .fd = fd, .name = path }, &diag);
	close(fd);
	return r;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

struct seen {
	uint64_t events;
	uint64_t payload_sum; /* sum over all bytes: the same in any order */
	uint64_t last_ns;
	uint64_t disorders;
	uint64_t lost;
	uint64_t stacks;
	uint64_t enough;
};

static int see(void *context, const struct event *event)
{
	struct seen *seen = context;

	seen->events++;
	for (uint32_t i = 0; i < event->payload_size; i++)
		seen->payload_sum += event->payload[i];
	seen->disorders += event->time_ns < seen->last_ns;
	seen->last_ns = event->time_ns;
	seen->lost += event->lost_before;
	seen->stacks += event->stack_index != 0;
	return seen->events == seen->enough ? -ECANCELED : 0;
}

static int see_in_stream(void *context, const struct event *event, uint32_t code_epoch)
{
	(void)code_epoch;
	return see(context, event);
}

static struct seen stream(const char *file, uint64_t enough, int expected, uint64_t *ret_lost)
{
	struct seen seen = { .enough = enough };
	struct diag diag = { 0 };
	struct trace trace;

	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(saved_stream(file, &trace, SAVED_STREAM_NO_STACKS, see_in_stream, &seen,
				 ret_lost, &diag),
		expected);
	assert_true(expected == 0 || expected == -ECANCELED || *diag.text);
	assert_int_equal(seen.stacks, 0);
	assert_int_equal(trace.stacks.stacks.count, 1);
	trace_done(&trace);
	return seen;
}

static struct seen read_whole(const char *file)
{
	struct seen seen = { 0 };
	struct diag diag = { 0 };
	struct trace trace;

	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(saved_read(file, &trace, see, &seen, &diag), 0);
	trace_done(&trace);
	return seen;
}

/* The file of a runtime is sorted within each thread only. */
static void test_runtime(void **state)
{
	uint64_t lost;

	(void)state;
	const struct seen whole = read_whole(TEST_DATA "/nettrace/runtime-v4.nettrace");
	const struct seen seen = stream(TEST_DATA "/nettrace/runtime-v4.nettrace", 0, 0, &lost);

	printf("disorders in the file: %llu\n", (unsigned long long)whole.disorders);
	assert_true(whole.disorders > 0);
	assert_int_equal(seen.disorders, 0);
	assert_int_equal(seen.events, whole.events);
	assert_int_equal(seen.payload_sum, whole.payload_sum);
	assert_int_equal(lost, 0);
}

static void test_ours(void **state)
{
	uint64_t lost;

	(void)state;
	const struct seen whole = read_whole(path);
	const struct seen seen = stream(path, 0, 0, &lost);

	assert_int_equal(seen.events, whole.events);
	assert_int_equal(seen.payload_sum, whole.payload_sum);
	assert_int_equal(seen.disorders, 0);
	assert_int_equal(seen.lost, DEMO_LOST);
	assert_int_equal(lost, DEMO_LOST);
	assert_int_equal(stream(path, 10, -ECANCELED, &lost).events, 10);
	(void)stream("/nowhere/at/all", 0, -ENOENT, &lost);
}

struct naming {
	struct trace facts;
	struct trace trace;
	struct symbolmap names;
	VEC(struct event) read; /* by saved_read(), in file order */
	uint32_t at;
	uint32_t stacks;
	struct bytes lines;
};

static int remember(void *context, const struct event *event)
{
	struct naming *naming = context;

	return vec_add(&naming->read, *event) ? 0 : -ENOMEM;
}

static int name_stack(void *context, const struct event *event, uint32_t code_epoch)
{
	struct naming *naming = context;
	const struct event_frames frames = { .names = &naming->names, .code_epoch = code_epoch };
	const struct event *same = &naming->read.items[naming->at++];

	assert_int_equal(event->time_ns, same->time_ns);
	assert_int_equal(event->thread_index, same->thread_index);
	assert_int_equal(event->stack_index, same->stack_index);
	naming->stacks += event->stack_index != 0;
	event_line_json(&naming->lines, &naming->trace, event, 0, &frames);
	return 0;
}

/*
 * Stacks on request: the tables get the same indexes as in another reading, so that its names apply
 * to them.
 */
static void test_stacks(void **state)
{
	struct naming naming = { 0 };
	struct diag diag = { 0 };
	uint64_t lost;

	(void)state;
	assert_int_equal(trace_init(&naming.facts), 0);
	assert_int_equal(trace_init(&naming.trace), 0);
	assert_int_equal(saved_read(path, &naming.facts, remember, &naming, &diag), 0);
	assert_int_equal(symbolmap_init(&naming.names, &naming.facts, METHOD_NAME_LONG), 0);
	assert_int_equal(saved_stream(path, &naming.trace, SAVED_STREAM_STACKS, name_stack, &naming,
				 &lost, &diag),
		0);
	assert_int_equal(naming.at, naming.read.count);
	assert_int_equal(naming.trace.processes.count, naming.facts.processes.count);
	assert_true(naming.stacks > 10);
	assert_non_null(strstr(bytes_z(&naming.lines), "\"stack\":[{\"function\":\""));
	assert_non_null(strstr(bytes_z(&naming.lines), "\",\"module\":\""));
	symbolmap_done(&naming.names);
	trace_done(&naming.facts);
	trace_done(&naming.trace);
	vec_done(&naming.read);
	bytes_done(&naming.lines);
}

/* More events than the window holds: all are released, each one time. */
static void test_large(void **state)
{
	const uint32_t count = 3 * SAVED_STREAM_WINDOW_MAX / 200;
	struct bytes payload = { 0 };
	struct diag diag = { 0 };
	struct sink *sink;
	struct trace trace;
	char large[600];
	uint64_t lost;

	(void)state;
	snprintf(large, sizeof(large), "%s.large", path);
	int fd = open(large, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(trace_init(&trace), 0);
	trace.recording.sync_ns = DEMO_START;
	trace.recording.utc_ns = DEMO_UTC;
	assert_int_equal(nettrace_sink_open(&(struct nettrace_sink_options){ .fd = fd,
						    .name = large },
				 &trace, &sink, &diag),
		0);
	bytes_utf16z(&payload, "a mark", 6, SIZE_MAX);
	const uint32_t process = trace_process(&trace, 77);
	for (uint32_t i = 0; i < count; i++) {
		const struct event event = {
			.time_ns = DEMO_START + i,
			.payload = payload.data,
			.payload_size = (uint32_t)payload.len,
			.thread_index = trace.processes.items[process].main_thread,
			.schema_index = trace_known_schema(&trace, SPOOR_CLOCK_OFFSET),
			.cpu = EVENT_CPU_UNKNOWN,
		};
		assert_int_equal(nettrace_sink.event(sink, &event, &diag), 0);
		if (i % 1000 == 0)
			assert_int_equal(nettrace_sink.flush(sink, &diag), 0);
	}
	assert_int_equal(nettrace_sink.end(sink, &diag), 0);
	nettrace_sink.close(sink);
	close(fd);
	const struct seen seen = stream(large, 0, 0, &lost);

	assert_int_equal(seen.events, count);
	assert_int_equal(seen.disorders, 0);
	assert_int_equal(seen.last_ns, DEMO_START + count - 1);
	unlink(large);
	bytes_done(&payload);
	trace_done(&trace);
}

/* All complete events of a truncated file are delivered, each one time. */
static void test_torn(void **state)
{
	struct stat whole;
	uint64_t lost;
	uint64_t before = 0;

	(void)state;
	assert_int_equal(stat(path, &whole), 0);
	for (off_t size = 0; size < whole.st_size; size += whole.st_size / 40) {
		char torn[600];
		static char copy[1 << 20];
		snprintf(torn, sizeof(torn), "%s.torn", path);
		int from = open(path, O_RDONLY);
		int to = open(torn, O_WRONLY | O_CREAT | O_TRUNC, 0600);
		assert_true(read(from, copy, (size_t)size) == size &&
			    write(to, copy, (size_t)size) == size);
		close(from);
		close(to);
		struct seen seen = stream(torn, 0, -EBADMSG, &lost);
		unlink(torn);
		assert_true(seen.events >= before);
		before = seen.events;
	}
	assert_true(before > 0);
}

/* An event has the same date with stacks and without. */
static void test_one_date(void **state)
{
	(void)state;
	for (int stacks = SAVED_STREAM_NO_STACKS; stacks <= SAVED_STREAM_STACKS; stacks++) {
		struct seen seen = { 0 };
		struct diag diag = { 0 };
		struct trace trace;
		uint64_t lost;
		assert_int_equal(trace_init(&trace), 0);
		assert_int_equal(saved_stream(path, &trace, (enum saved_stream_stacks)stacks,
					 see_in_stream, &seen, &lost, &diag),
			0);
		assert_int_equal(trace.recording.utc_ns, DEMO_UTC_FINE);
		trace_done(&trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_date),
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_ours),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_torn),
	};

	return cmocka_run_group_tests_name("saved_stream", tests, set_up, tear_down);
}
