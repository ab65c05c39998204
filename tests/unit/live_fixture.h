/*
 * A recording without a kernel, to test its parts: perf events are memory files (fake_events.h),
 * /proc is a temporary folder, and the sink stores its events.
 */
#ifndef SPOOR_TESTS_UNIT_LIVE_FIXTURE_H
#define SPOOR_TESTS_UNIT_LIVE_FIXTURE_H

#include <ftw.h>
#include <sys/stat.h>

#include "code/arch.h"
#include "machine/rights.h"
#include "perf/recorder.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/intake.h"
#include "recording/live_options.h"
#include "recording/managed.h"
#include "recording/process_table.h"
#include "recording/throttling.h"
#include "symbolize/symbolizer.h"
#include "trace/event.h"
#include "trace/flow.h"
#include "trace/trace.h"
#include "unit/fake_events.h"

struct written {
	enum known_event known;
	uint32_t thread; /* row */
	uint64_t time_ns;
	struct bytes payload;
};

/* What a recording consists of. */
struct live_parts {
	struct live_options options;
	struct trace trace;
	struct reorder_window window;
	struct session_writer writer;
	struct symbolizer symbolizer;
	struct managed *managed;
	struct recorder *recorder;
	struct intake intake;
	struct process_table table;
	struct throttling throttling;
};

struct live_fixture {
	struct live_parts *live;
	char folder[64]; /* the fake /proc */
	VEC(struct written) written;
	VEC(uint32_t) forgotten; /* rows of threads */
	unsigned flushes;
	int flush_error;
};

static struct live_fixture fixture;

static int keep_event(struct sink *sink, const struct event *event, struct diag *diag)
{
	(void)sink;
	(void)diag;
	struct written *written = vec_push(&fixture.written);
	assert_non_null(written);
	*written = (struct written){ .thread = event->thread_index, .time_ns = event->time_ns };
	for (unsigned known = 1; known < KNOWN_EVENT_COUNT; known++)
		if (fixture.live->trace.known_schemas[known] == event->schema_index)
			written->known = known;
	bytes_add(&written->payload, event->payload, event->payload_size);
	return 0;
}

static int count_flush(struct sink *sink, struct diag *diag)
{
	(void)sink;
	(void)diag;
	fixture.flushes++;
	return fixture.flush_error;
}

static void note_forgotten(struct sink *sink, uint32_t thread)
{
	(void)sink;
	assert_true(vec_add(&fixture.forgotten, thread));
}

static void close_nothing(struct sink *sink)
{
	(void)sink;
}

static const struct sink_ops fixture_sink = {
	.name = "test",
	.event = keep_event,
	.flush = count_flush,
	.forget_thread = note_forgotten,
	.close = close_nothing,
};

static int ignore_name(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload)
{
	(void)context;
	(void)known;
	(void)process;
	(void)payload;
	return 0;
}

static void ignore_report(void *context, const struct managed_outcome *outcome)
{
	(void)context;
	(void)outcome;
}

static void ignore_notice(void *context, enum notice_code code, const char *text)
{
	(void)context;
	(void)code;
	(void)text;
}

/*
 * Opens a recording with the `options` of live_open(). With `filter_by_pid` the recorder may record
 * the machine and targets this process; otherwise it records the machine.
 */
static void fixture_open(const struct live_options *options, bool filter_by_pid)
{
	static struct rights rights = { .effective = RIGHT_PERFMON,
		.perf_event_paranoid = 2,
		.perf_event_max_stack = 127,
		.perf_event_max_sample_rate = 100000,
		.open_files_max = 1024,
		.locked_bytes_max = UINT64_MAX };
	uint32_t pid = (uint32_t)getpid();
	struct recorder_options recorder = { .scope = filter_by_pid ? RECORD_PIDS : RECORD_MACHINE,
		.frequency_hz = 99,
		.pids = &pid,
		.pid_count = filter_by_pid,
		.no_hardware = true,
		.rights = &rights };
	struct diag diag = { 0 };

	memset(&fixture, 0, sizeof(fixture));
	fake_events_reset();
	struct live_parts *live = fixture.live = calloc(1, sizeof(*live));
	assert_non_null(live);
	live->options = *options;
	live->options.no_dotnet = true; /* opens no diagnostics session in a real process */
	assert_int_equal(trace_init(&live->trace), 0);
	live->writer = (struct session_writer){
		.trace = &live->trace, .window = &live->window, .sink_ops = &fixture_sink
	};
	const struct symbolizer_options names = { .trace = &live->trace,
		.box = &live->writer.box,
		.emit = ignore_name,
		.mappings_only = true };
	assert_int_equal(symbolizer_init(&live->symbolizer, &names), 0);
	assert_int_equal(managed_new(&live->trace, &live->symbolizer, ignore_report, ignore_notice,
				 NULL, &live->managed),
		0);
	assert_int_equal(recorder_open(&recorder, &live->recorder, &diag), 0);
	assert_int_equal(recorder_info(live->recorder)->filter_by_pid, filter_by_pid);
	live->table = (struct process_table){ .options = &live->options,
		.trace = &live->trace,
		.writer = &live->writer,
		.symbolizer = &live->symbolizer,
		.managed = live->managed,
		.throttling = &live->throttling,
		.filter_by_pid = filter_by_pid };
	live->throttling.writer = &live->writer;
	live->intake.recorder = live->recorder;
	live->intake.trace = &live->trace;
	live->intake.window = &live->window;
	live->intake.filter = &live->table.filter;
	live->intake.arch = arch_here();
	live->intake.layout =
		(struct perf_layout){ .sample_type = recorder_info(live->recorder)->sample_type,
			.sample_id_all = true };

	snprintf(fixture.folder, sizeof(fixture.folder), "/tmp/spoor-unit-XXXXXX");
	assert_non_null(mkdtemp(fixture.folder));
	assert_int_equal(proc_open(&live->table.proc, &diag), 0);
	close(live->table.proc.fd);
	live->table.proc.fd = open(fixture.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(live->table.proc.fd >= 0);
	live->table.proc.maps_as_text = true;
	live->table.proc.tick_ns = 1000;
	live->table.proc.boot_offset_ns = 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static void fixture_close(void)
{
	struct live_parts *live = fixture.live;

	for (uint32_t i = 0; i < fixture.written.count; i++)
		bytes_done(&fixture.written.items[i].payload);
	vec_done(&fixture.written);
	vec_done(&fixture.forgotten);
	managed_free(live->managed);
	recorder_close(live->recorder);
	symbolizer_done(&live->symbolizer);
	reorder_window_done(&live->window);
	throttling_done(&live->throttling);
	process_table_done(&live->table);
	session_writer_done(&live->writer);
	trace_done(&live->trace);
	free(live);
	assert_int_equal(nftw(fixture.folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
