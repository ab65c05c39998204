/*
 * nettrace_write.c: events read back equal to those written, at every time, with files, pipes and
 * full disks.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/input.h"
#include "base/json.h"
#include "nettrace/nettrace_read.h"
#include "render/event_text.h"
#include "trace/absorb.h"
#include "trace/clr_event.h"
#include "unit/nettrace_demo.h"

struct seen {
	uint32_t events;
	uint32_t samples;
	uint32_t late;
	uint64_t lost;
	uint64_t weight_ns;
	uint32_t cpus[2];
	uint32_t epoch_samples[2];
	uint64_t hash; /* hash of all fields of all events */
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return hash_u64(hash ^ value) + value;
}

static void see(struct seen *seen, const struct trace *trace, const struct event *event)
{
	uint32_t count;
	const uint64_t *frames = stack_table_get(&trace->stacks, event->stack_index, &count);

	seen->events++;
	seen->lost += event->lost_before;
	seen->late += event->late_ns != 0;
	seen->hash = mix(seen->hash, event->time_ns);
	seen->hash = mix(seen->hash, trace->threads.items[event->thread_index].tid);
	seen->hash = mix(seen->hash, (uint64_t)event->cpu);
	seen->hash = mix(seen->hash, event->late_ns);
	seen->hash = mix(seen->hash, event->kind);
	seen->hash = mix(seen->hash, hash_bytes(event->payload, event->payload_size));
	seen->hash = mix(seen->hash, count ? hash_bytes(frames, count * sizeof(*frames)) : 0);
	if (event->kind == EVENT_SAMPLE) {
		const struct thread *thread = &trace->threads.items[event->thread_index];
		seen->samples++;
		seen->weight_ns += event->value;
		assert_true(event->cpu == 0 || event->cpu == DEMO_FAR_CPU);
		seen->cpus[event->cpu == DEMO_FAR_CPU]++;
		assert_true(count >= 2);
		assert_true(thread->process);
		const struct process *process = &trace->processes.items[thread->process];
		if (process->pid == 2000)
			seen->epoch_samples[process->code_epoch]++;
	} else {
		assert_int_equal(event->cpu, EVENT_CPU_UNKNOWN);
	}
}

/* Result of the reading: 0 or the error, the events, and the tables. */
static int read_bytes(const uint8_t *data, size_t size, struct seen *seen, struct trace *trace,
	struct diag *diag)
{
	struct input in;
	struct source *source;
	struct event event;
	int r;

	*seen = (struct seen){ 0 };
	assert_int_equal(trace_init(trace), 0);
	input_from_memory(&in, data, size);
	assert_int_equal(nettrace_source.open(&in, trace, true, &source, diag), 0);
	while ((r = nettrace_source.next(source, &event, diag)) > 0) {
		assert_true(absorb_event(trace, &event, diag) >= 0);
		see(seen, trace, &event);
	}
	nettrace_source.close(source);
	return r;
}

static uint8_t *file_bytes(int fd, size_t *ret_size)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	uint8_t *data = malloc((size_t)status.st_size + 1);
	assert_non_null(data);
	assert_int_equal(pread(fd, data, (size_t)status.st_size, 0), status.st_size);
	*ret_size = (size_t)status.st_size;
	return data;
}

static uint8_t *demo_bytes(size_t *ret_size)
{
	struct diag diag = { 0 };
	int fd = memfd_create("demo", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(
		demo_write(&(struct nettrace_sink_options){ .fd = fd, .name = "demo" }, &diag), 0);
	uint8_t *data = file_bytes(fd, ret_size);
	close(fd);
	return data;
}

static uint32_t find_text(const struct trace *trace, uint32_t index, const char *text)
{
	return strcmp(trace_text(trace, index), text) == 0;
}

static void test_round_trip(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct seen seen;
	size_t size;
	uint8_t *data = demo_bytes(&size);

	(void)state;
	assert_int_equal(read_bytes(data, size, &seen, &trace, &diag), 0);
	assert_int_equal(seen.samples, DEMO_SAMPLES);
	assert_int_equal(seen.lost, DEMO_LOST);
	assert_int_equal(seen.late, DEMO_LATE);
	assert_int_equal(seen.cpus[0], DEMO_SAMPLES / 2);
	assert_int_equal(seen.weight_ns,
		UINT64_C(10101010) * (DEMO_SAMPLES + DEMO_SAMPLES / 100 * 2));
	assert_int_equal(seen.epoch_samples[0] + seen.epoch_samples[1], DEMO_SAMPLES / 2);
	assert_int_equal(seen.epoch_samples[0], DEMO_SAMPLES / 4);

	assert_int_equal(trace.recording.sync_ns, DEMO_START);
	assert_int_equal(trace.recording.utc_ns, DEMO_UTC_FINE);
	assert_int_equal(trace.recording.period_ns, 10101010);
	assert_int_equal(trace.recording.cpu_possible, 2);
	assert_int_equal(trace.recording.counts[SESSION_COUNT_SAMPLES], DEMO_SAMPLES);
	assert_int_equal(trace.recording.counts[SESSION_COUNT_LOST], DEMO_LOST);
	assert_true(find_text(&trace, trace.recording.host, "h\xc3\xb6st"));
	assert_true(find_text(&trace, trace.recording.end_reason, "duration"));
	assert_int_equal(trace.processes.count, 5); /* 0, recorder, app, web, other */
	uint32_t web = trace_find_process(&trace, 2000);
	uint32_t other = trace_find_process(&trace, 1000);
	assert_true(find_text(&trace, trace.processes.items[web].name, "web"));
	assert_true(find_text(&trace, trace.processes.items[other].name, "other"));
	assert_false(trace.processes.items[other].ended);
	assert_true(find_text(&trace, trace.processes.items[web].command,
		"dotnet web.dll a \"b\"\n"));
	assert_int_equal(trace.processes.items[web].runtime_kind, RUNTIME_CORECLR);
	assert_int_equal(trace.processes.items[web].codes.count, 1);
	assert_int_equal(trace.processes.items[web].codes.items[0].removed_epoch, 1);
	assert_int_equal(trace.processes.items[web].codes.items[0].tier, TIER_1);
	uint32_t app = 0;
	for (uint32_t i = 1; i < trace.processes.count; i++)
		if (find_text(&trace, trace.processes.items[i].name, "app"))
			app = i;
	assert_true(app);
	assert_true(trace.processes.items[app].ended);
	uint32_t libc = trace_find_mapping(&trace, app, 0x7f0000001800);
	assert_true(find_text(&trace, trace.mappings.items[libc].path, "/usr/lib/libc.so.6"));
	assert_true(find_text(&trace, trace.mappings.items[libc].build_id, "0123456789abcdef"));
	uint32_t kernel = trace_find_mapping(&trace, other, 0xffffffff81000000);
	assert_true(find_text(&trace, trace.mappings.items[kernel].path, "vmlinux"));
	assert_int_equal(trace.mappings.items[kernel].process, 0);
	assert_int_equal(trace.symbols.count, 5);
	assert_int_equal(trace.symbols.items[1].end, 0x7f0000002000);
	assert_int_equal(trace.losses.count, 2);
	assert_int_equal(trace.losses.items[1].count, DEMO_LOST);
	assert_int_equal(absorb_end(&trace, DEMO_LOST, 1, 2), 0);
	assert_int_equal(trace.losses.count, 2); /* announced earlier in the file */
	assert_int_equal(trace.clock_offsets.count, 2);
	assert_int_equal(trace.clock_offsets.items[1].process, web);
	assert_int_equal(trace.clock_offsets.items[1].offset_ns, -1234567);
	assert_int_equal(trace.clock_offsets.items[1].error_ns, 890);
	assert_string_equal(trace_text(&trace, trace.clock_offsets.items[1].source), "eventpipe");
	assert_int_equal(trace.notices.count, 2);
	assert_int_equal(trace.notices.items[1].process, web);
	uint32_t worker = trace_thread(&trace, 2000, 2003);
	assert_true(find_text(&trace, trace.threads.items[worker].name, "worker \xe2\x98\x83"));
	trace_done(&trace);
	free(data);
}

static void test_byte_by_byte(void **state)
{
	struct trace whole_trace;
	struct trace trace;
	struct seen whole;
	struct seen seen = { 0 };
	struct event event;
	size_t size;
	uint8_t *data = demo_bytes(&size);

	(void)state;
	assert_int_equal(read_bytes(data, size, &whole, &whole_trace, NULL), 0);
	assert_int_equal(trace_init(&trace), 0);
	struct nettrace_decoder *decoder = nettrace_decoder_new(&trace, "bytes", 0);
	for (size_t i = 0; i < size; i++) {
		int r;
		assert_int_equal(nettrace_decoder_push(decoder, data + i, 1), 0);
		while ((r = nettrace_decoder_next(decoder, &event, NULL)) > 0) {
			assert_true(absorb_event(&trace, &event, NULL) >= 0);
			see(&seen, &trace, &event);
		}
		assert_int_equal(r, 0);
	}
	assert_int_equal(nettrace_decoder_finish(decoder, NULL), 0);
	assert_int_equal(nettrace_decoder_lost(decoder), DEMO_LOST);
	assert_memory_equal(&seen, &whole, sizeof(seen));
	assert_int_equal(trace.stacks.stacks.count, whole_trace.stacks.stacks.count);
	nettrace_decoder_free(decoder);
	trace_done(&trace);
	trace_done(&whole_trace);
	free(data);
}

/* Each truncated file gives a diagnosis, and never fewer events than a shorter one. */
static void test_prefixes(void **state)
{
	uint32_t last = 0;
	size_t size;
	uint8_t *data = demo_bytes(&size);

	(void)state;
	for (size_t cut = 0; cut < size; cut += cut < 300 || cut > size - 300 ? 1 : 41) {
		struct diag diag = { 0 };
		struct trace trace;
		struct seen seen;
		uint8_t *exact = malloc(cut + 1);
		memcpy(exact, data, cut);
		assert_int_equal(read_bytes(exact, cut, &seen, &trace, &diag), -EBADMSG);
		assert_non_null(strstr(diag.text, "memory"));
		assert_true(seen.events >= last);
		last = seen.events;
		trace_done(&trace);
		free(exact);
	}
	assert_true(last > DEMO_SAMPLES);
	free(data);
}

/*
 * A file in memory. After each write that could reach the disk separately, it must read without an
 * error.
 */
static struct {
	uint8_t data[1 << 20];
	size_t size;
	uint32_t last_events;
	unsigned states;
	size_t fail_after;  /* bytes until the disk is full; 0: never */
	size_t short_write; /* 0: whole */
} disk;

static void check_disk(void)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct seen seen;
	int r = read_bytes(disk.data, disk.size, &seen, &trace, &diag);

	if (r < 0)
		fail_msg("state %u, %zu bytes: %s", disk.states, disk.size, diag.text);
	assert_true(seen.events >= disk.last_events);
	disk.last_events = seen.events;
	disk.states++;
	trace_done(&trace);
}

/* SIGKILL ends a write between two pages, so the file can end after any page. */
static ssize_t write_pages(int fd, const void *data, size_t size, off_t offset)
{
	const uint8_t *from = data;
	size_t at = (size_t)offset;
	size_t end = at + size;

	(void)fd;
	assert_true(end <= sizeof(disk.data));
	while (at < end) {
		size_t page_end = (at | 4095) + 1;
		size_t n = (page_end < end ? page_end : end) - at;
		if (disk.size < at)
			memset(disk.data + disk.size, 0, at - disk.size);
		memcpy(disk.data + at, from, n);
		at += n;
		from += n;
		if (disk.size < at)
			disk.size = at;
		check_disk();
	}
	return (ssize_t)size;
}

static void test_file_is_valid_after_each_write(void **state)
{
	struct diag diag = { 0 };
	int fd = memfd_create("empty", MFD_CLOEXEC);
	const struct nettrace_key keys[] = { { "Note", "x" } };

	(void)state;
	memset(&disk, 0, sizeof(disk));
	assert_int_equal(demo_write(&(struct nettrace_sink_options){ .fd = fd,
					    .name = "disk",
					    .keys = keys,
					    .key_count = 1,
					    .write_at = write_pages },
				 &diag),
		0);
	assert_true(disk.states > 20);
	assert_true(disk.last_events > DEMO_SAMPLES);
	close(fd);
}

/*
 * After short writes and on a full disk the file stays valid; writing continues when there is room.
 */
static ssize_t write_stingy(int fd, const void *data, size_t size, off_t offset)
{
	if (disk.fail_after && (size_t)offset + size > disk.fail_after) {
		if ((size_t)offset >= disk.fail_after) {
			errno = ENOSPC;
			return -1;
		}
		size = disk.fail_after - (size_t)offset;
	}
	if (size > disk.short_write)
		size = disk.short_write;
	return pwrite(fd, data, size, offset);
}

static void test_full_disk(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct seen seen;
	struct demo demo;
	size_t size;
	int fd = memfd_create("full", MFD_CLOEXEC);

	(void)state;
	memset(&disk, 0, sizeof(disk));
	disk.short_write = 777;
	assert_int_equal(demo_begin(&demo,
				 &(struct nettrace_sink_options){
					 .fd = fd, .name = "full", .write_at = write_stingy },
				 &diag),
		0);
	assert_int_equal(demo_opening(&demo, &diag), 0);
	assert_int_equal(nettrace_sink.flush(demo.sink, &diag), 0);
	uint64_t bytes = nettrace_sink_counts(demo.sink)->bytes;
	disk.fail_after = (size_t)bytes + 5000;
	assert_int_equal(demo_samples(&demo, &diag), -ENOSPC);
	assert_string_equal(diag.text, "cannot write 'full': No space left on device");
	assert_true(diag.remedy[0]);
	uint8_t *data = file_bytes(fd, &size);
	assert_int_equal(size, bytes + 4);
	assert_int_equal(read_bytes(data, size, &seen, &trace, NULL), 0);
	assert_int_equal(seen.samples, 0);
	assert_true(seen.events > 15);
	trace_done(&trace);
	free(data);

	disk.fail_after = 0;
	assert_int_equal(nettrace_sink.flush(demo.sink, NULL), 0);
	assert_int_equal(demo_closing(&demo, NULL), 0);
	demo_done(&demo);
	data = file_bytes(fd, &size);
	assert_int_equal(read_bytes(data, size, &seen, &trace, NULL), 0);
	assert_int_equal(seen.samples, DEMO_FLUSH_EVERY);
	trace_done(&trace);
	free(data);
	close(fd);
}

static void test_dev_full(void **state)
{
	struct diag diag = { 0 };
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(
		demo_write(&(struct nettrace_sink_options){ .fd = fd, .name = "/dev/full" }, &diag),
		-ENOSPC);
	assert_string_equal(diag.text, "cannot write '/dev/full': No space left on device");
	close(fd);
}

static void test_pipe(void **state)
{
	struct trace trace;
	struct seen seen;
	int ends[2];
	size_t size = 0;
	static uint8_t data[1 << 20];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		_exit(demo_write(&(struct nettrace_sink_options){ .fd = ends[1], .name = "pipe" },
			      NULL) != 0);
	}
	close(ends[1]);
	for (ssize_t n; (n = read(ends[0], data + size, sizeof(data) - size)) > 0;)
		size += (size_t)n;
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	assert_int_equal(read_bytes(data, size, &seen, &trace, NULL), 0);
	assert_int_equal(seen.samples, DEMO_SAMPLES);
	trace_done(&trace);
}

static void test_closed_pipe(void **state)
{
	struct diag diag = { 0 };
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(
		demo_write(&(struct nettrace_sink_options){ .fd = ends[1], .name = "pipe" }, &diag),
		-EPIPE);
	assert_string_equal(diag.text, "cannot write 'pipe': Broken pipe");
	close(ends[1]);
}

static void test_forget_stacks(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct seen seen;
	struct demo demo;
	size_t size;
	int fd = memfd_create("forget", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(demo_begin(&demo, &(struct nettrace_sink_options){ .fd = fd, .name = "f" },
				 &diag),
		0);
	assert_int_equal(demo_opening(&demo, &diag), 0);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < 40000; i++) {
			uint64_t frames[] = { i, round, 0x7f0000001000 };
			payload_cpu(&demo.payload, &(struct payload_cpu){ 10, 10101010, 1, 0 },
				10101010);
			demo.now += 1000;
			assert_int_equal(demo_put(&demo, EVENTS_CPU, 1,
						 (struct event){ .cpu = 0,
							 .stack_index = stack_table_intern(
								 &demo.trace.stacks, frames, 3) },
						 &diag),
				0);
		}
		/*
		 * The second round exceeds the limit of the sink's table, while the trace's table
		 * stays unchanged.
		 */
		if (round == 1) {
			assert_int_equal(nettrace_sink.flush(demo.sink, &diag), 0);
			assert_int_equal(nettrace_sink.forget_stacks(demo.sink, &diag), 0);
			stack_table_done(&demo.trace.stacks);
		}
	}
	assert_int_equal(nettrace_sink.end(demo.sink, &diag), 0);
	demo_done(&demo);
	uint8_t *data = file_bytes(fd, &size);
	assert_int_equal(read_bytes(data, size, &seen, &trace, &diag), 0);
	assert_int_equal(seen.samples, 120000);
	assert_int_equal(trace.stacks.stacks.count, 120001);
	trace_done(&trace);
	free(data);
	close(fd);
}

/* A time that goes back, an event before the start, and a payload and a stack beyond the limits. */
static void test_limits(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct input in;
	struct source *source;
	struct event event;
	struct demo demo;
	size_t size;
	int fd = memfd_create("limits", MFD_CLOEXEC);
	static uint64_t frames[9000];
	static uint8_t payload[70000];

	(void)state;
	assert_int_equal(demo_begin(&demo, &(struct nettrace_sink_options){ .fd = fd, .name = "l" },
				 &diag),
		0);
	for (uint32_t i = 0; i < 9000; i++)
		frames[i] = i + 1;
	uint32_t stack = stack_table_intern(&demo.trace.stacks, frames, 9000);
	uint32_t schema = trace_known_schema(&demo.trace, SPOOR_CLOCK_OFFSET);
	struct event put = { .time_ns = 1,
		.schema_index = schema,
		.stack_index = stack,
		.payload = payload,
		.payload_size = sizeof(payload),
		.cpu = 300 };
	assert_int_equal(nettrace_sink.event(demo.sink, &put, &diag), 0);
	put.time_ns = DEMO_START + 100;
	assert_int_equal(nettrace_sink.event(demo.sink, &put, &diag), 0);
	put.time_ns = DEMO_START + 50;
	assert_int_equal(nettrace_sink.event(demo.sink, &put, &diag), 0);
	assert_int_equal(nettrace_sink.end(demo.sink, &diag), 0);
	const struct nettrace_sink_counts *counts = nettrace_sink_counts(demo.sink);
	assert_int_equal(counts->clamped, 2);
	assert_int_equal(counts->payloads_cut, 3);
	assert_int_equal(counts->stacks_cut, 1);
	assert_int_equal(counts->events, 3);
	demo_done(&demo);
	uint8_t *data = file_bytes(fd, &size);
	assert_int_equal(trace_init(&trace), 0);
	input_from_memory(&in, data, size);
	assert_int_equal(nettrace_source.open(&in, &trace, true, &source, &diag), 0);
	static const uint64_t times[] = { DEMO_START, DEMO_START + 100, DEMO_START + 100 };
	for (int i = 0; i < 3; i++) {
		uint32_t count;
		assert_int_equal(nettrace_source.next(source, &event, &diag), 1);
		assert_int_equal(event.time_ns, times[i]);
		assert_int_equal(event.payload_size, EVENT_PAYLOAD_MAX);
		assert_int_equal(event.cpu, 300);
		(void)stack_table_get(&trace.stacks, event.stack_index, &count);
		assert_int_equal(count, 8190);
	}
	assert_int_equal(nettrace_source.next(source, &event, &diag), 0);
	nettrace_source.close(source);
	trace_done(&trace);
	free(data);
	close(fd);
}

/*
 * The same provider and id with different fields in one file: each event is read with its own
 * fields.
 */
static void test_two_layouts(void **state)
{
	struct trace trace;
	struct input in;
	struct source *source;
	struct event event;
	struct demo demo;
	size_t size;
	int fd = memfd_create("layouts", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(demo_begin(&demo, &(struct nettrace_sink_options){ .fd = fd, .name = "l" },
				 NULL),
		0);
	uint32_t provider = trace_add_text(&demo.trace, "My-Source");
	uint32_t first = demo.trace.schemas.count;
	for (uint32_t i = 0; i < 3; i++) {
		struct schema *schema = vec_push(&demo.trace.schemas);
		schema->provider = provider;
		schema->event_id = 5;
		schema->version = 2;
		schema->keywords = 0xf00000000000;
		schema->name = trace_add_text(&demo.trace, "Hit");
		struct field *object = vec_push(&schema->fields);
		*object = (struct field){ .type = FIELD_ARRAY,
			.element = FIELD_OBJECT,
			.name = trace_add_text(&demo.trace, "Items") };
		struct field *inner = vec_push(&schema->fields);
		*inner = (struct field){ .type = i == 1 ? FIELD_U64 : FIELD_U32,
			.depth = 1,
			.name = trace_add_text(&demo.trace, "Inner") };
		struct field *last = vec_push(&schema->fields);
		*last = (struct field){ .type = FIELD_FIXED_ARRAY,
			.element = FIELD_U8,
			.count = 12,
			.name = trace_add_text(&demo.trace, "Last") };
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct event put = { .time_ns = DEMO_START, .schema_index = first + i };
		assert_int_equal(nettrace_sink.event(demo.sink, &put, NULL), 0);
	}
	assert_int_equal(nettrace_sink.end(demo.sink, NULL), 0);
	demo_done(&demo);
	uint8_t *data = file_bytes(fd, &size);
	assert_int_equal(trace_init(&trace), 0);
	input_from_memory(&in, data, size);
	assert_int_equal(nettrace_source.open(&in, &trace, true, &source, NULL), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(nettrace_source.next(source, &event, NULL), 1);
		const struct schema *schema = &trace.schemas.items[event.schema_index];
		assert_int_equal(schema->event_id, i == 1 ? 0x8005 : 5);
		assert_int_equal(schema->version, 2);
		assert_int_equal(schema->keywords, 0xf00000000000);
		assert_int_equal(schema->fields.count, 3);
		assert_int_equal(schema->fields.items[0].element, FIELD_OBJECT);
		assert_int_equal(schema->fields.items[1].depth, 1);
		assert_int_equal(schema->fields.items[1].type, i == 1 ? FIELD_U64 : FIELD_U32);
		assert_int_equal(schema->fields.items[2].count, 12);
		assert_int_equal(schema->fields.items[2].depth, 0);
	}
	nettrace_source.close(source);
	trace_done(&trace);
	free(data);
	close(fd);
}

/* Events of the runtime as its streams contain them: without a name and a description. */
static const struct runtime_event {
	enum provider_kind provider;
	uint16_t id;
	uint8_t version;
	uint8_t size;
	const char *payload;
} runtime_events[] = {
	{ PROVIDER_CLR, CLR_ID_GCStart, 0, 8, "\x0c\0\0\0\x02\0\0\0" },
	{ PROVIDER_CLR, CLR_ID_GCStart, 2, 26,
		"\x0c\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\x09\0\x07\0\0\0\0\0\0\0" },
	/* A version newer than the list. */
	{ PROVIDER_CLR, CLR_ID_GCStart, 77, 27,
		"\x0c\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0\x09\0\x07\0\0\0\0\0\0\0\xff" },
	{ PROVIDER_CLR, CLR_ID_GCBulkEdge, 0, 34,
		"\x01\0\0\0\x02\0\0\0\x09\0\x10\0\0\0\0\0\0\0\x03\0\0\0\x20\0\0\0\0\0\0\0\x04\0\0\0" },
	{ PROVIDER_CLR, CLR_ID_GCFitBucketInfo, 0, 28,
		"\x09\0\x01\0\x40\0\0\0\0\0\0\0\x01\0\x05\0\x06\0\0\0\x80\0\0\0\0\0\0\0" },
	{ PROVIDER_CLR, CLR_ID_MethodILToNativeMap, 0, 37,
		"\x11\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0\x09\0" },
	{ PROVIDER_CLR, 9999, 0, 2, "\x01\x02" }, /* not in the list */
	{ PROVIDER_CLR_RUNDOWN, CLR_ID_DCEndComplete_V1, 1, 2, "\x09\0" },
	{ PROVIDER_CLR_RUNDOWN, CLR_ID_GCSettingsRundown, 0, 50,
		"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\x07\0\0\0\x09\0" },
	{ PROVIDER_CLR_STRESS, CLR_ID_StressLogEvent_V1, 1, 10, "\x02\0\0\0\x03hi\0\x09\0" },
	{ PROVIDER_CLR_PRIVATE, CLR_ID_BGCBegin, 0, 2, "\x09\0" },
	{ PROVIDER_CLR_PRIVATE, CLR_ID_GCSettings_V1, 1, 22,
		"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\x09\0" },
	{ PROVIDER_MONO_PROFILER, CLR_ID_MonoProfilerGCMoves, 0, 20,
		"\x01\0\0\0\x10\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0" },
};

#define RUNTIME_EVENT_COUNT (sizeof(runtime_events) / sizeof(runtime_events[0]))

static int write_runtime_events(int fd, const char *name, struct diag *diag)
{
	struct demo demo;
	int r = demo_begin(&demo, &(struct nettrace_sink_options){ .fd = fd, .name = name }, diag);

	if (r < 0)
		return r;
	for (uint32_t i = 0; r == 0 && i < RUNTIME_EVENT_COUNT; i++) {
		const struct runtime_event *from = &runtime_events[i];
		struct schema *schema = vec_push(&demo.trace.schemas);
		schema->provider = trace_add_text(&demo.trace, provider_name(from->provider));
		schema->provider_kind = (uint8_t)from->provider;
		schema->event_id = from->id;
		schema->version = from->version;
		schema->level = 4;
		const struct event put = {
			.time_ns = DEMO_START + i,
			.thread_index = demo.trace.processes.items[demo.app].main_thread,
			.schema_index = demo.trace.schemas.count - 1,
			.payload = (const uint8_t *)from->payload,
			.payload_size = from->size,
			.cpu = EVENT_CPU_UNKNOWN,
		};
		r = nettrace_sink.event(demo.sink, &put, diag);
	}
	if (r == 0)
		r = nettrace_sink.end(demo.sink, diag);
	demo_done(&demo);
	return r;
}

/*
 * The fields that another reader finds for the event of this name: "Count:10 Depth:10 ", names and
 * types.
 */
static void describe_row(const uint8_t *data, size_t size, const char *symbol, char *out,
	size_t room)
{
	size_t len = strlen(symbol);
	const uint8_t *at = memmem(data, size, symbol, len);

	while (at && at[-1] != len) /* compares the length, so that a longer name does not match */
		at = memmem(at + 1, (size_t)(data + size - at - 1), symbol, len);
	assert_non_null(at);
	struct cursor c = cursor_of(at + len, (size_t)(data + size - at) - len);
	uint16_t count = cursor_u16(&c);

	*out = '\0';
	for (uint16_t i = 0; i < count; i++) {
		struct cursor field = cursor_sub(&c, cursor_u16(&c));
		uint32_t name_len = cursor_varuint32(&field);
		const uint8_t *name = cursor_take(&field, name_len);
		assert_non_null(name);
		int n = snprintf(out, room, "%.*s:%u ", (int)name_len, (const char *)name,
			cursor_u8(&field));
		assert_int_equal(cursor_left(&field), 0);
		assert_true(n > 0 && (size_t)n < room);
		out += n;
		room -= (size_t)n;
	}
}

/*
 * Events of the runtime's list get a description for other readers. Our reader returns them as they
 * were: without a description, under their own ids.
 */
static void test_runtime_events(void **state)
{
	static const struct {
		const char *symbol;
		const char *fields;
	} rows[] = {
		{ "GCStart", "Count:10 Reason:10 " },
		{ "GCStart_V2",
			"Count:10 Depth:10 Reason:10 Type:10 ClrInstanceID:8 ClientSequenceNumber:12 " },
		/* its structs contain a count */
		{ "GCBulkEdge", "Index:10 Count:10 ClrInstanceID:8 " },
		{ "DCEndComplete_V1", "ClrInstanceID:8 " },
		{ "StressLogEvent_V1", "Facility:10 LogLevel:6 " },
		{ "BGCBegin", "ClrInstanceID:8 " },
		{ "MonoProfilerGCMoves", "Count:10 " },
	};
	struct trace trace;
	struct input in;
	struct source *source;
	struct event event;
	size_t size;
	int fd = memfd_create("runtime", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(write_runtime_events(fd, "runtime", NULL), 0);
	uint8_t *data = file_bytes(fd, &size);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char fields[256];
		describe_row(data, size, rows[i].symbol, fields, sizeof(fields));
		assert_string_equal(fields, rows[i].fields);
	}
	assert_int_equal(trace_init(&trace), 0);
	input_from_memory(&in, data, size);
	assert_int_equal(nettrace_source.open(&in, &trace, true, &source, NULL), 0);
	for (uint32_t i = 0; i < RUNTIME_EVENT_COUNT; i++) {
		assert_int_equal(nettrace_source.next(source, &event, NULL), 1);
		const struct schema *schema = &trace.schemas.items[event.schema_index];
		assert_int_equal(schema->provider_kind, runtime_events[i].provider);
		assert_int_equal(schema->event_id, runtime_events[i].id);
		assert_int_equal(schema->version, runtime_events[i].version);
		assert_int_equal(schema->name, 0);
		assert_int_equal(schema->fields.count, 0);
		assert_int_equal(event.payload_size, runtime_events[i].size);
		assert_memory_equal(event.payload, runtime_events[i].payload, event.payload_size);
	}
	nettrace_source.close(source);
	trace_done(&trace);
	free(data);
	close(fd);
}

/* The event as JSON, without the members that the file adds. */
static void add_fields(struct bytes *out, const struct trace *trace, const struct event *event)
{
	struct json j = { .out = out };

	json_object(&j, NULL);
	assert_true(event_text_json(&j, trace, event));
	json_end(&j);
	bytes_text(out, "\n");
}

static uint32_t bool_schema(struct trace *trace, const char *name, uint32_t id,
	const struct field *fields, uint32_t count)
{
	struct schema *schema = vec_push(&trace->schemas);

	schema->provider = trace_add_text(trace, "My-Source");
	schema->event_id = id;
	schema->name = trace_add_text(trace, name);
	for (uint32_t i = 0; i < count; i++) {
		struct field *field = vec_push(&schema->fields);
		*field = fields[i];
		field->name = trace_add_text(trace, (char[]){ (char)('A' + i), '\0' });
	}
	return trace->schemas.count - 1;
}

/*
 * Runtimes describe Booleans of one byte like those of four. The file describes them with one byte,
 * and they read as Booleans.
 */
static void test_byte_bools(void **state)
{
	static const struct field mixed[] = { { .type = FIELD_BOOL }, { .type = FIELD_U8 },
		{ .type = FIELD_ARRAY, .element = FIELD_BOOL }, { .type = FIELD_OBJECT },
		{ .type = FIELD_BOOL, .depth = 1 }, { .type = FIELD_ARRAY, .element = FIELD_ARRAY },
		{ .type = FIELD_ARRAY, .element = FIELD_BOOL, .depth = 1 } };
	static const struct field two[] = { { .type = FIELD_BOOL }, { .type = FIELD_BOOL },
		{ .type = FIELD_TEXT16 } };
	static const struct field one[] = { { .type = FIELD_BOOL } };
	const struct {
		uint32_t schema; /* index of the events below */
		uint32_t size;
		const char *payload;
	} events[] = {
		{ 0, 14,
			"\1\2"
			"\3\0\1\0\1"
			"\1"
			"\1\0\2\0\0\1" },
		{ 1, 10, "\1\0A\0B\0C\0\0" }, /* both sizes fit: 8 bytes and an empty text */
		{ 1, 4, "\1\0\0" },
		{ 2, 4, "\1\0\0" },
		{ 3, 1, "\1" },
	};
	struct trace trace;
	struct input in;
	struct source *source;
	struct event event;
	struct demo demo;
	struct bytes given = { 0 };
	struct bytes back = { 0 };
	uint32_t schemas[4];
	size_t size;
	int fd = memfd_create("bools", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(demo_begin(&demo, &(struct nettrace_sink_options){ .fd = fd, .name = "b" },
				 NULL),
		0);
	schemas[0] = bool_schema(&demo.trace, "Mixed", 5, mixed, 7);
	schemas[1] = bool_schema(&demo.trace, "Two", 6, two, 3);
	schemas[2] = bool_schema(&demo.trace, "Four", 7, one, 1);
	schemas[3] = bool_schema(&demo.trace, "One", 8, one, 1);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct event put = { .time_ns = DEMO_START,
			.schema_index = schemas[events[i].schema],
			.payload = (const uint8_t *)events[i].payload,
			.payload_size = events[i].size };
		if (i != 1)
			add_fields(&given, &demo.trace, &put);
		assert_int_equal(nettrace_sink.event(demo.sink, &put, NULL), 0);
	}
	assert_int_equal(nettrace_sink.end(demo.sink, NULL), 0);
	demo_done(&demo);
	assert_non_null(strstr(bytes_z(&given),
		"{\"A\":true,\"B\":2,\"C\":[true,false,true],\"D\":{\"E\":true},\"F\":[[false,true]]}"));

	uint8_t *data = file_bytes(fd, &size);

	assert_int_equal(trace_init(&trace), 0);
	input_from_memory(&in, data, size);
	assert_int_equal(nettrace_source.open(&in, &trace, true, &source, NULL), 0);
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		assert_int_equal(nettrace_source.next(source, &event, NULL), 1);
		const struct field *fields = trace.schemas.items[event.schema_index].fields.items;
		bool four = events[i].schema == 2;
		assert_int_equal(fields[0].type, four ? FIELD_BOOL : FIELD_BOOL8);
		if (events[i].schema == 0) {
			assert_int_equal(fields[1].type, FIELD_U8);
			assert_int_equal(fields[2].element, FIELD_BOOL8);
			assert_int_equal(fields[4].type, FIELD_BOOL8);
			assert_int_equal(fields[6].element, FIELD_BOOL8);
		}
		if (i != 1)
			add_fields(&back, &trace, &event);
	}
	assert_string_equal(bytes_z(&back), bytes_z(&given));
	nettrace_source.close(source);
	trace_done(&trace);
	bytes_done(&given);
	bytes_done(&back);
	free(data);
	close(fd);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/*
 * Activities read back as written, in events of any process: one label list for consecutive events
 * of an activity, over flushes, and with late events.
 */
static void test_activities(void **state)
{
	enum { COUNT = 3000 };
	static const uint8_t none[EVENT_ACTIVITY_SIZE];
	struct trace trace;
	struct trace back;
	struct sink *sink;
	struct input in;
	struct source *source;
	struct event event;
	struct diag diag = { 0 };
	size_t size;
	int fd = memfd_create("activities", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	trace.recording.sync_ns = DEMO_START;
	trace.recording.recorder_process = trace_process(&trace, 1);
	assert_int_equal(nettrace_sink_open(&(struct nettrace_sink_options){ .fd = fd,
						    .name = "x" },
				 &trace, &sink, &diag),
		0);
	uint32_t schema = trace_known_schema(&trace, SPOOR_CLOCK_OFFSET);

	for (uint32_t i = 0; i < COUNT; i++) {
		uint8_t activity[EVENT_ACTIVITY_SIZE] = { 0 };
		activity[0] = i % 5 == 3 ? 0 : (uint8_t)(i / 7 % 200 + 1);
		activity[20] = i % 5 >= 3 ? (uint8_t)(i % 11 + 1) : 0;
		event = (struct event){
			.time_ns = DEMO_START + i,
			.payload = (const uint8_t *)"\0\0",
			.payload_size = 2,
			.thread_index = trace.processes.items[1].main_thread,
			.schema_index = schema,
			.activity = i % 3 ? activity : NULL,
			.late_ns = i % 10 == 9 ? i : 0,
			.cpu = EVENT_CPU_UNKNOWN,
		};
		assert_int_equal(nettrace_sink.event(sink, &event, &diag), 0);
		if (i % 1000 == 0)
			assert_int_equal(nettrace_sink.flush(sink, &diag), 0);
		if (i == 1500)
			assert_int_equal(nettrace_sink.forget_stacks(sink, &diag), 0);
	}
	assert_int_equal(nettrace_sink.end(sink, &diag), 0);
	nettrace_sink.close(sink);

	uint8_t *data = file_bytes(fd, &size);

	assert_int_equal(trace_init(&back), 0);
	input_from_memory(&in, data, size);
	assert_int_equal(nettrace_source.open(&in, &back, true, &source, &diag), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint8_t activity[EVENT_ACTIVITY_SIZE] = { 0 };
		activity[0] = i % 5 == 3 ? 0 : (uint8_t)(i / 7 % 200 + 1);
		activity[20] = i % 5 >= 3 ? (uint8_t)(i % 11 + 1) : 0;
		assert_int_equal(nettrace_source.next(source, &event, &diag), 1);
		assert_true(event.time_ns == DEMO_START + i);
		assert_int_equal(event.late_ns, i % 10 == 9 ? i : 0);
		if (i % 3)
			assert_memory_equal(event.activity, activity, EVENT_ACTIVITY_SIZE);
		else
			assert_true(!event.activity ||
				    memcmp(event.activity, none, sizeof(none)) == 0);
	}
	assert_int_equal(nettrace_source.next(source, &event, &diag), 0);
	nettrace_source.close(source);
	trace_done(&back);
	trace_done(&trace);
	free(data);
	close(fd);
}

/* Not a test: `test_nettrace_write --bench` prints the cost of encoding and decoding. */
static int bench(void)
{
	const uint32_t n = 5000000;
	struct demo demo;
	struct trace trace;
	struct input in;
	struct source *source;
	struct event event;
	uint32_t stacks[20000];
	uint64_t seen = 0;
	size_t size;
	int fd = memfd_create("bench", MFD_CLOEXEC);

	if (demo_begin(&demo, &(struct nettrace_sink_options){ .fd = fd, .name = "b" }, NULL) < 0)
		return 1;
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t frames[14] = { i * 64, i / 3, i / 9 };
		stacks[i] = stack_table_intern(&demo.trace.stacks, frames, 14);
	}
	uint32_t threads[8];
	for (uint32_t i = 0; i < 8; i++)
		threads[i] = trace_thread(&demo.trace, 1000, 1000 + i);
	uint32_t schema = trace_known_schema(&demo.trace, EVENTS_CPU);
	uint64_t random = 1;
	double begin = seconds();
	for (uint32_t i = 0; i < n; i++) {
		uint8_t payload = 1;
		random = random * 6364136223846793005u + 1442695040888963407u;
		struct event put = { .time_ns = DEMO_START + (uint64_t)i * 500000 + (random >> 48),
			.schema_index = schema,
			.cpu = (int32_t)(i & 1),
			.stack_index = stacks[(random >> 33) % 20000],
			.thread_index = threads[random >> 61],
			.payload = &payload,
			.payload_size = 1,
			.kind = EVENT_SAMPLE };
		if (nettrace_sink.event(demo.sink, &put, NULL) < 0)
			return 1;
	}
	if (nettrace_sink.end(demo.sink, NULL) < 0)
		return 1;
	double encode = seconds() - begin;
	const struct nettrace_sink_counts *counts = nettrace_sink_counts(demo.sink);
	printf("encode %.1f M events/s, %.2f bytes an event (event blocks)\n", n / encode / 1e6,
		(double)counts->event_bytes / n);
	demo_done(&demo);
	uint8_t *data = file_bytes(fd, &size);
	if (trace_init(&trace) < 0)
		return 1;
	input_from_memory(&in, data, size);
	begin = seconds();
	if (nettrace_source.open(&in, &trace, true, &source, NULL) < 0)
		return 1;
	while (nettrace_source.next(source, &event, NULL) > 0)
		seen += event.value;
	double decode = seconds() - begin;
	printf("decode %.1f M events/s, %.0f MB/s\n", n / decode / 1e6,
		(double)size / decode / 1e6);
	nettrace_source.close(source);
	trace_done(&trace);
	free(data);
	close(fd);
	return seen == 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_byte_by_byte),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_file_is_valid_after_each_write),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_dev_full),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_closed_pipe),
		cmocka_unit_test(test_forget_stacks),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_two_layouts),
		cmocka_unit_test(test_runtime_events),
		cmocka_unit_test(test_byte_bools),
		cmocka_unit_test(test_activities),
	};

	if (argc == 3 && strcmp(argv[1], "--demo") == 0) {
		struct diag diag = { 0 };
		int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0 ||
			demo_write(&(struct nettrace_sink_options){ .fd = fd, .name = argv[2] },
				&diag) < 0) {
			fprintf(stderr, "%s\n", fd < 0 ? strerror(errno) : diag.text);
			return 1;
		}
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "--runtime-events") == 0) {
		int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		return fd < 0 || write_runtime_events(fd, argv[2], NULL) < 0;
	}
	if (argc == 2 && strcmp(argv[1], "--bench") == 0)
		return bench();
	return cmocka_run_group_tests_name("nettrace_write", tests, NULL, NULL);
}
