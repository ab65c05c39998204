/*
 * saved.c: a complete and a truncated file on disk, the newest file of a folder, and a file whose
 * events are copied into another.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/saved.h"
#include "unit/nettrace_demo.h"

static char folder[] = "/tmp/spoor-test-XXXXXX";
static char path[512];

static int set_up(void **state)
{
	struct diag diag = { 0 };

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/a b.nettrace", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	int r = demo_write(&(struct nettrace_sink_options){ .fd = fd, .name = path }, &diag);
	close(fd);
	return r;
}

static int tear_down(void **state)
{
	char other[600];

	(void)state;
	snprintf(other, sizeof(other), "%s/newer.nettrace", folder);
	unlink(other);
	unlink(path);
	return rmdir(folder);
}

static int count_samples(void *context, const struct event *event)
{
	*(uint32_t *)context += event->kind == EVENT_SAMPLE;
	return 0;
}

static int stop_at_ten(void *context, const struct event *event)
{
	(void)event;
	return ++*(uint32_t *)context == 10 ? -ECANCELED : 0;
}

static void test_read(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	uint32_t samples = 0;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(saved_read(path, &trace, count_samples, &samples, &diag), 0);
	assert_int_equal(samples, DEMO_SAMPLES);
	assert_int_equal(trace.losses.count, 2);
	trace_done(&trace);

	samples = 0;
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(saved_read(path, &trace, stop_at_ten, &samples, &diag), -ECANCELED);
	assert_int_equal(samples, 10);
	trace_done(&trace);
}

static void test_torn(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	uint32_t samples = 0;
	struct stat status;

	(void)state;
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(truncate(path, status.st_size - 5), 0);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(saved_read(path, &trace, count_samples, &samples, &diag), -EBADMSG);
	assert_int_equal(samples, DEMO_SAMPLES);
	assert_non_null(strstr(diag.text, "inside a block"));
	assert_non_null(strstr(diag.text, path));
	/* The Loss event was in the truncated block; the sequence gap reports the loss now. */
	assert_int_equal(trace.losses.count, 2);
	assert_string_equal(trace_text(&trace, trace.losses.items[1].source), "sequence");
	assert_int_equal(trace.losses.items[1].count, DEMO_LOST);
	trace_done(&trace);
}

static void test_missing(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	char newest[512];

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(saved_read("/nonexistent", &trace, NULL, NULL, &diag), -ENOENT);
	assert_string_equal(diag.text, "cannot open '/nonexistent': No such file or directory");
	trace_done(&trace);
	diag = (struct diag){ 0 };
	assert_int_equal(saved_newest("/proc/self/ns", newest, sizeof(newest), &diag), -ENOENT);
	assert_non_null(strstr(diag.text, "no recording"));
	assert_int_equal(saved_newest(folder, newest, 10, NULL), -ENOENT);
}

static int copy_event(void *sink, const struct event *event)
{
	return nettrace_sink.event(sink, event, NULL);
}

static void test_newest_and_copy(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct sink *sink;
	char newest[512];
	char copy[600];
	uint32_t samples = 0;
	const struct timespec later[2] = { { .tv_sec = 2000000000 }, { .tv_sec = 2000000000 } };

	(void)state;
	assert_int_equal(saved_newest(folder, newest, sizeof(newest), &diag), 0);
	assert_string_equal(newest, path);
	snprintf(copy, sizeof(copy), "%s/newer.nettrace", folder);
	int fd = open(copy, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(trace_init(&trace), 0);
	trace.recording.sync_ns = DEMO_START;
	trace.recording.utc_ns = DEMO_UTC;
	assert_int_equal(nettrace_sink_open(&(struct nettrace_sink_options){ .fd = fd,
						    .name = copy },
				 &trace, &sink, &diag),
		0);
	assert_int_equal(saved_read(path, &trace, copy_event, sink, &diag), 0);
	assert_int_equal(nettrace_sink.end(sink, &diag), 0);
	nettrace_sink.close(sink);
	trace_done(&trace);
	assert_int_equal(futimens(fd, later), 0);
	close(fd);

	assert_int_equal(saved_newest(folder, newest, sizeof(newest), &diag), 0);
	assert_string_equal(newest, copy);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(saved_read(newest, &trace, count_samples, &samples, &diag), 0);
	assert_int_equal(samples, DEMO_SAMPLES);
	assert_int_equal(trace.processes.count, 5);
	assert_int_equal(trace.losses.items[1].count, DEMO_LOST);
	assert_string_equal(trace_text(&trace, trace.losses.items[1].source), "ring");
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read), cmocka_unit_test(test_missing),
		cmocka_unit_test(test_newest_and_copy),
		cmocka_unit_test(test_torn), /* last, because it truncates the file */
	};

	return cmocka_run_group_tests_name("saved", tests, set_up, tear_down);
}
