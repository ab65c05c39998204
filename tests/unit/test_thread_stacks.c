/*
 * thread_stacks.c of this process, whose runtime is absent or simulated (without samples, and with
 * those of a thread that sleeps), and of one that has ended.
 */
#include "unit/fake_runtime.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/strtab.h"
#include "nettrace/nettrace_write.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_stacks.h"
#include "target/targets.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/provider_kind.h"
#include "trace/trace.h"

#define METHOD_BEGIN  UINT64_C(0x7e0000001000)
#define METHOD_SIZE   0x1000u
#define LOCK          UINT64_C(0x7e1000002000)
#define TYPE_EXTERNAL 1u /* of a sample: outside of managed code */
#define TYPE_MANAGED  2u

static void take_round(struct thread_stacks *stacks, uint32_t pid, struct thread_dump *ret_dump)
{
	struct dotnet_target self;
	struct diag diag = { 0 };

	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &self, NULL), 0);
	const struct target target = { .pid = pid,
		.inner_pid = pid,
		.start_ticks = self.start_ticks,
		.state = 'S',
		.reachable = true,
		.name = "shop",
		.program = "shop",
		.container = "",
		.cgroup = "",
		.command_line = "",
		.short_command = "",
		.runtime_path = "",
		.runtime_version = "",
		.architecture = "",
		.remedy = "",
		.reason = "" };

	assert_int_equal(thread_stacks_take(stacks, &target, 1, ret_dump, &diag), 0);
}

static void take_options(uint32_t pid, const struct thread_stacks_options *options,
	struct thread_dump *ret_dump)
{
	struct thread_stacks *stacks;
	struct diag diag = { 0 };

	assert_int_equal(thread_stacks_new(options, &stacks, &diag), 0);
	take_round(stacks, pid, ret_dump);
	thread_stacks_free(stacks);
}

static void take(uint32_t pid, struct thread_dump *ret_dump)
{
	take_options(pid, &(struct thread_stacks_options){ .timeout_ns = 300000000 }, ret_dump);
}

static const struct dump_thread *thread_of(const struct thread_dump *dump, uint32_t tid)
{
	vec_each(thread, &dump->threads)
		if (thread->tid == tid)
			return thread;
	return NULL;
}

static void test_without_runtime(void **state)
{
	struct thread_dump dump;

	(void)state;
	take((uint32_t)getpid(), &dump);
	const struct dump_thread *own = thread_of(&dump, (uint32_t)getpid());

	assert_non_null(own);
	assert_int_equal(own->mode, THREAD_UNSAMPLED);
	assert_string_equal(strtab_get(&dump.texts, own->name), "test_thread_sta");
	assert_string_equal(strtab_get(&dump.texts, dump.unsampled_reason),
		"it has no diagnostics socket (switched off, or not .NET)");
	thread_dump_done(&dump);
}

/* The session has no sample. It is ended, and the threads are there all the same. */
static void test_without_samples(void **state)
{
	struct fake_runtime runtime = { 0 };
	struct thread_dump dump;

	(void)state;
	fake_runtime_start(&runtime, NULL);
	take((uint32_t)getpid(), &dump);
	assert_true(dump.threads.count >= 2);
	assert_non_null(thread_of(&dump, (uint32_t)getpid()));
	assert_string_equal(strtab_get(&dump.texts, dump.unsampled_reason),
		"its runtime sends no samples (NativeAOT, or it is stopped)");
	thread_dump_done(&dump);
	fake_runtime_stop(&runtime);
	assert_int_equal(runtime.opened, 1);
	assert_int_equal(runtime.stops, 1);
}

/* ---- a stream with samples ---- */

struct stream {
	struct trace trace;
	struct sink *sink;
	uint64_t now_ns;
};

static void put(struct stream *stream, const char *provider, uint32_t id, uint8_t version,
	uint32_t tid, uint32_t stack, struct bytes *payload)
{
	struct schema *schema = vec_push(&stream->trace.schemas);
	struct diag diag = { 0 };

	assert_non_null(schema);
	*schema = (struct schema){ .provider = trace_add_text(&stream->trace, provider),
		.event_id = id,
		.version = version,
		.level = 4 };
	const struct event event = { .time_ns = stream->now_ns++,
		.thread_index = trace_thread(&stream->trace, (uint32_t)getpid(), tid),
		.stack_index = stack,
		.schema_index = stream->trace.schemas.count - 1,
		.cpu = EVENT_CPU_UNKNOWN,
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len };
	assert_int_equal(nettrace_sink.event(stream->sink, &event, &diag), 0);
	bytes_done(payload);
}

static void put_sample(struct stream *stream, uint32_t tid, uint32_t type, const uint64_t *frames,
	uint32_t count)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, type);
	put(stream, PROVIDER_SAMPLE_NAME, CLR_THREAD_SAMPLE, 0, tid,
		stack_table_intern(&stream->trace.stacks, frames, count), &payload);
}

static void put_text(struct bytes *payload, const char *text)
{
	bytes_utf16z(payload, text, strlen(text), SIZE_MAX);
}

/*
 * Two samples of the thread, the last one with `frame_count` frames, its wait for a lock that this thread owns, and,
 * `with_name`, the rundown's name of the method that both samples are in. The caller frees the bytes.
 */
static uint8_t *sampled_stream(uint32_t tid, uint32_t frame_count, bool with_name, size_t *ret_size)
{
	static const uint64_t first[] = { METHOD_BEGIN + 0x10 };
	static const uint64_t last[] = { METHOD_BEGIN + 0x20, METHOD_BEGIN + 0x30, 0x7e2000000010 };
	struct stream stream = { .now_ns = clock_monotonic_ns() };
	struct bytes payload = { 0 };
	struct diag diag = { 0 };
	int fd = memfd_create("stream", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(trace_init(&stream.trace), 0);
	stream.trace.recording.sync_ns = stream.now_ns;
	stream.trace.recording.utc_ns = clock_utc_ns();
	stream.trace.recording.page_size_bytes = 4096;
	const struct nettrace_sink_options options = { .fd = fd, .name = "stream" };

	assert_int_equal(nettrace_sink_open(&options, &stream.trace, &stream.sink, &diag), 0);
	put_sample(&stream, tid, TYPE_EXTERNAL, first, 1);
	put_sample(&stream, tid, TYPE_MANAGED, last, frame_count);
	bytes_u8(&payload, 0);
	bytes_u16(&payload, 1);
	bytes_u64(&payload, 4711);
	bytes_u64(&payload, LOCK);
	bytes_u64(&payload, (uint64_t)getpid());
	put(&stream, PROVIDER_CLR_NAME, CLR_ID_ContentionStart_V1, 2, tid, 0, &payload);
	bytes_u64(&payload, 9); /* method, module */
	bytes_u64(&payload, 8);
	bytes_u64(&payload, METHOD_BEGIN);
	bytes_u32(&payload, METHOD_SIZE);
	bytes_u32(&payload, 0x06000001);
	bytes_u32(&payload, 0);
	put_text(&payload, "Shop.Cart");
	put_text(&payload, "Total");
	put_text(&payload, "int32  ()");
	bytes_u16(&payload, 1);
	bytes_u64(&payload, 0);
	if (with_name)
		put(&stream, PROVIDER_CLR_RUNDOWN_NAME, CLR_ID_MethodDCEndVerbose, 1, tid, 0,
			&payload);
	bytes_done(&payload);
	assert_int_equal(nettrace_sink.end(stream.sink, &diag), 0);
	nettrace_sink.close(stream.sink);
	trace_done(&stream.trace);
	off_t size = lseek(fd, 0, SEEK_END);
	uint8_t *data = malloc((size_t)size);

	assert_non_null(data);
	assert_int_equal(pread(fd, data, (size_t)size, 0), size);
	close(fd);
	*ret_size = (size_t)size;
	return data;
}

struct sleeper {
	int wake[2];
	int ready[2];
	uint32_t tid;
	pthread_t thread;
};

static void *sleep_in_read(void *context)
{
	struct sleeper *sleeper = context;
	char byte;

	sleeper->tid = (uint32_t)syscall(SYS_gettid);
	assert_int_equal(write(sleeper->ready[1], "r", 1), 1);
	return read(sleeper->wake[0], &byte, 1) == 1 ? NULL : sleeper;
}

static void until_it_sleeps(uint32_t tid)
{
	char path[64];
	char line[512];

	snprintf(path, sizeof(path), "/proc/self/task/%u/stat", tid);
	for (unsigned i = 0; i < 60000; i++) {
		FILE *file = fopen(path, "r");
		assert_non_null(file);
		assert_non_null(fgets(line, sizeof(line), file));
		fclose(file);
		if (strstr(line, ") S "))
			return;
		usleep(1000);
	}
	fail();
}

static void begin_to_sleep(struct sleeper *sleeper)
{
	char byte;

	assert_int_equal(pipe(sleeper->wake), 0);
	assert_int_equal(pipe(sleeper->ready), 0);
	assert_int_equal(pthread_create(&sleeper->thread, NULL, sleep_in_read, sleeper), 0);
	assert_int_equal(read(sleeper->ready[0], &byte, 1), 1);
	until_it_sleeps(sleeper->tid);
}

static void end_sleep(struct sleeper *sleeper)
{
	assert_int_equal(write(sleeper->wake[1], "w", 1), 1);
	assert_int_equal(pthread_join(sleeper->thread, NULL), 0);
	close(sleeper->wake[0]);
	close(sleeper->wake[1]);
	close(sleeper->ready[0]);
	close(sleeper->ready[1]);
}

static const char *frame_name(const struct thread_dump *dump, const struct dump_thread *thread,
	uint32_t number)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&dump->stacks, thread->stack, &count);

	assert_true(number < count);
	return strtab_get(&dump->texts, dump->frames.items[frames[number]].name);
}

/*
 * A thread that sleeps from before the session on has the frames of its last sample, with their
 * names, the mode of that sample, and the lock with its owner.
 */
static void test_sampled(void **state)
{
	const struct thread_stacks_options options = { .timeout_ns = UINT64_C(60000000000),
		.managed_only = true };
	struct fake_runtime runtime = { 0 };
	struct sleeper sleeper;
	struct thread_dump dump;

	(void)state;
	begin_to_sleep(&sleeper);
	uint8_t *data = sampled_stream(sleeper.tid, 3, true, &runtime.stream_size);

	runtime.stream = data;
	fake_runtime_start(&runtime, NULL);
	take_options((uint32_t)getpid(), &options, &dump);
	fake_runtime_stop(&runtime);
	assert_int_equal(runtime.stops, 1);
	assert_int_equal(dump.unsampled_reason, 0);
	const struct dump_thread *sampled = thread_of(&dump, sleeper.tid);

	assert_non_null(sampled);
	assert_int_equal(sampled->mode, THREAD_MANAGED);
	assert_false(sampled->moved);
	assert_int_equal(sampled->managed_count, 3);
	assert_string_equal(frame_name(&dump, sampled, 0), "Shop.Cart.Total()");
	assert_string_equal(frame_name(&dump, sampled, 1), "Shop.Cart.Total()");
	assert_string_equal(frame_name(&dump, sampled, 2), "0x7e200000000f");
	assert_int_equal(sampled->lock, LOCK);
	assert_int_equal(sampled->lock_owner, (uint32_t)getpid());
	const struct dump_thread *own = thread_of(&dump, (uint32_t)getpid());

	assert_non_null(own);
	assert_int_equal(own->mode, THREAD_UNSAMPLED);
	assert_int_equal(own->managed_count, 0);
	thread_dump_done(&dump);
	end_sleep(&sleeper);
	free(data);
}

/* A round with this stream; true if the thread's first frame has its name. */
static bool is_named(struct thread_stacks *stacks, struct fake_runtime *runtime, uint32_t tid,
	uint32_t frame_count, bool with_name)
{
	struct thread_dump dump;
	uint8_t *data = sampled_stream(tid, frame_count, with_name, &runtime->stream_size);

	runtime->stream = data;
	take_round(stacks, (uint32_t)getpid(), &dump);
	const struct dump_thread *sampled = thread_of(&dump, tid);

	assert_non_null(sampled);
	bool named = strcmp(frame_name(&dump, sampled, 0), "Shop.Cart.Total()") == 0;
	thread_dump_done(&dump);
	free(data);
	return named;
}

/* The names of the first round serve the second one, which has no rundown; unknown code needs another. */
static void test_kept_names(void **state)
{
	const struct thread_stacks_options options = {
		.timeout_ns = UINT64_C(60000000000), .managed_only = true, .keeps_names = true
	};
	struct fake_runtime runtime = { 0 };
	struct thread_stacks *stacks;
	struct sleeper sleeper;
	struct diag diag = { 0 };

	(void)state;
	begin_to_sleep(&sleeper);
	fake_runtime_start(&runtime, NULL);
	assert_int_equal(thread_stacks_new(&options, &stacks, &diag), 0);
	assert_true(is_named(stacks, &runtime, sleeper.tid, 2, true));
	assert_true(is_named(stacks, &runtime, sleeper.tid, 2, false));
	unsigned rundowns_of_two = runtime.rundowns;
	unsigned opened_of_two = runtime.opened;
	assert_true(is_named(stacks, &runtime, sleeper.tid, 3, false));
	/* a stub: no rundown will ever name it */
	assert_true(is_named(stacks, &runtime, sleeper.tid, 3, false));
	thread_stacks_free(stacks);
	fake_runtime_stop(&runtime);
	assert_int_equal(opened_of_two, 2);
	assert_int_equal(rundowns_of_two, 1);
	assert_int_equal(runtime.opened, 5);
	assert_int_equal(runtime.rundowns, 2);
	assert_int_equal(runtime.stops, 5);
	end_sleep(&sleeper);
}

static void test_ended(void **state)
{
	struct thread_dump dump;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	take((uint32_t)pid, &dump);
	assert_int_equal(dump.threads.count, 0);
	assert_string_equal(strtab_get(&dump.texts, dump.unsampled_reason), "it has ended");
	thread_dump_done(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_runtime),
		cmocka_unit_test(test_without_samples),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_kept_names),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests_name("thread_stacks", tests, NULL, NULL);
}
