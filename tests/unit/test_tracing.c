/* tracing.c with a runtime that this test simulates: its file, its counts, and the end of its sessions. */
#include "unit/fake_runtime.h"

#include <fcntl.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "tracing/tracing.h"

#define LIMIT_NS UINT64_C(120000000000) /* reached only if the test fails */

static struct ipc_provider provider = { .name = "Microsoft-Windows-DotNETRuntime", .level = 5 };

struct run {
	struct fake_runtime runtime;
	char path[64];
	struct tracing *tracing;
	int fd;
};

static void begin(struct run *run)
{
	const struct tracing_options options = {
		.providers = &provider, .provider_count = 1, .buffer_mb = 1, .version = "1"
	};
	struct diag diag = { 0 };

	snprintf(run->path, sizeof(run->path), "/tmp/spoor-tracing-%d.socket", (int)getpid());
	fake_runtime_start(&run->runtime, run->path);
	run->fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	assert_true(run->fd >= 0);
	assert_int_equal(tracing_new(&options, &run->tracing, &diag), 0);
	assert_int_equal(tracing_write_to(run->tracing, run->fd, "x", &diag), 0);
	assert_int_equal(tracing_add_path(run->tracing, run->path, &diag), 0);
	assert_int_equal(tracing_start(run->tracing, &diag), 0);
}

static struct tracing_counts step(struct run *run)
{
	struct tracing_counts counts;
	struct diag diag = { 0 };

	assert_true(tracing_step(run->tracing, NULL, 0, clock_monotonic_ns() + 50000000, &diag) >=
		    0);
	tracing_count(run->tracing, &counts);
	return counts;
}

static void finish(struct run *run)
{
	uint64_t limit_ns = clock_monotonic_ns() + LIMIT_NS;
	struct diag diag = { 0 };

	tracing_end(run->tracing, "test");
	while (!tracing_ended(run->tracing) && clock_monotonic_ns() < limit_ns)
		(void)step(run);
	assert_true(tracing_ended(run->tracing));
	assert_int_equal(tracing_finish(run->tracing, &diag), 0);
}

static void end(struct run *run)
{
	tracing_close(run->tracing);
	fake_runtime_stop(&run->runtime);
	close(run->fd);
}

static void test_events_reach_the_file(void **state)
{
	struct run run = { 0 };
	uint64_t limit_ns = clock_monotonic_ns() + LIMIT_NS;
	struct tracing_process process;
	char head[8];

	(void)state;
	uint8_t *data = fake_stream("nettrace/runtime-v4.nettrace", &run.runtime.stream_size);
	run.runtime.stream = data;
	begin(&run);
	while (!step(&run).events && clock_monotonic_ns() < limit_ns)
		;
	/* A pause ends the session, and resuming opens another one. */
	tracing_pause(run.tracing);
	while (!tracing_paused(run.tracing) && clock_monotonic_ns() < limit_ns)
		(void)step(&run);
	uint64_t before = step(&run).events;
	tracing_resume(run.tracing, 1000000);
	while (step(&run).events <= before && clock_monotonic_ns() < limit_ns)
		;
	finish(&run);
	tracing_process(run.tracing, 0, &process);
	assert_int_equal(process.state, TRACING_ENDED);
	assert_string_equal(process.reason, "");
	assert_string_equal(process.runtime_version, "10.0.12");
	assert_int_equal(process.bytes, 2 * run.runtime.stream_size);
	struct tracing_counts counts = step(&run);
	assert_int_equal(counts.events, 2 * before);
	assert_true(counts.file_bytes && (off_t)counts.file_bytes <= lseek(run.fd, 0, SEEK_END));
	assert_int_equal(pread(run.fd, head, 8, 0), 8);
	assert_memory_equal(head, "Nettrace", 8);
	end(&run);
	assert_int_equal(run.runtime.opened, 2);
	assert_int_equal(run.runtime.stops, 2);
	free(data);
}

static void test_refused(void **state)
{
	struct run run = { .runtime.refuses = true };
	struct tracing_process process;
	struct tracing_counts counts = { 0 };
	uint64_t limit_ns = clock_monotonic_ns() + LIMIT_NS;

	(void)state;
	begin(&run);
	do
		counts = step(&run);
	while (counts.opening && clock_monotonic_ns() < limit_ns);
	finish(&run);
	tracing_process(run.tracing, 0, &process);
	assert_int_equal(process.state, TRACING_FAILED);
	assert_string_equal(reason_word(process.reason_kind), "slots");
	assert_int_equal(counts.first_open_ns, 0);
	end(&run);
	assert_int_equal(run.runtime.stops, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events_reach_the_file),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("tracing", tests, NULL, NULL);
}
