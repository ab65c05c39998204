/*
 * A small recording with every kind of data that the file sink writes: processes (one pid twice),
 * an exec, mappings with build ids, symbols, managed code with a reused range, samples on two CPUs,
 * context switches, losses, late events, notices. The unit tests read it back. `test_nettrace_write
 * --demo FILE` writes it to a file for TraceEvent (tests/oracle).
 * It contains DEMO_SAMPLES samples, DEMO_LOST lost events, and the processes 1000 "app" (later
 * "other" with the same pid) and 2000 "web".
 */
#ifndef SPOOR_TESTS_UNIT_NETTRACE_DEMO_H
#define SPOOR_TESTS_UNIT_NETTRACE_DEMO_H

#include <string.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "nettrace/nettrace_write.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define DEMO_START       UINT64_C(5000000000000)
#define DEMO_SAMPLES     3000u
#define DEMO_LOST        17u
#define DEMO_FAR_CPU     300 /* beyond the 8 bits that TraceEvent keeps */
#define DEMO_LATE        5u
#define DEMO_FLUSH_EVERY 500u
#define DEMO_UTC         UINT64_C(1790000000000000000)
/* the header of a file has milliseconds only; the Session event has the full time */
#define DEMO_UTC_FINE (DEMO_UTC + 345678)

struct demo {
	struct trace trace;
	struct sink *sink;
	struct bytes payload;
	uint64_t now;
	uint32_t web; /* processes */
	uint32_t app;
	uint32_t app_again;
	uint32_t recorder;
	uint64_t weight_ns; /* of all samples */
};

static inline int demo_put(struct demo *demo, enum known_event known, uint32_t thread,
	struct event event, struct diag *diag)
{
	event.time_ns = demo->now;
	event.thread_index = thread;
	event.schema_index = trace_known_schema(&demo->trace, known);
	event.kind = known_events[known].kind;
	event.payload = demo->payload.data;
	event.payload_size = (uint32_t)demo->payload.len;
	int r = nettrace_sink.event(demo->sink, &event, diag);
	bytes_reset(&demo->payload);
	return r;
}

static inline int demo_fact(struct demo *demo, enum known_event known, uint32_t process,
	struct diag *diag)
{
	return demo_put(demo, known, demo->trace.processes.items[process].main_thread,
		(struct event){ .cpu = EVENT_CPU_UNKNOWN }, diag);
}

static inline int demo_process(struct demo *demo, enum known_event known, uint32_t process,
	const char *name, struct diag *diag)
{
	(void)payload_process(&demo->payload,
		&(struct payload_process){ .inner_pid = 7, .name = name, .name_space = "Unknown" });
	return demo_fact(demo, known, process, diag);
}

static inline int demo_begin(struct demo *demo, const struct nettrace_sink_options *options,
	struct diag *diag)
{
	*demo = (struct demo){ .now = DEMO_START + 10000000 };
	int r = trace_init(&demo->trace);

	if (r < 0)
		return r;
	struct recording *recording = &demo->trace.recording;
	recording->sync_ns = DEMO_START;
	recording->utc_ns = DEMO_UTC;
	recording->cpu_possible = 2;
	recording->page_size_bytes = 4096;
	recording->period_ns = 10101010;
	demo->recorder = trace_process(&demo->trace, 3000);
	recording->recorder_process = demo->recorder;
	return nettrace_sink_open(options, &demo->trace, &demo->sink, diag);
}

static inline int demo_opening(struct demo *demo, struct diag *diag)
{
	struct trace *trace = &demo->trace;
	struct bytes json = { 0 };
	int r = 0;

	demo->app = trace_process(trace, 1000);
	demo->web = trace_process(trace, 2000);
	(void)payload_session(&demo->payload, &(struct payload_session){ .event_set = 1,
						      .tool_version = "0.1.0",
						      .command_line = "spoor record -a",
						      .options = "{}",
						      .period_ns = 10101010,
						      .clock = "CLOCK_MONOTONIC",
						      .utc_ns = DEMO_UTC_FINE });
	r |= demo_fact(demo, SPOOR_SESSION, demo->recorder, diag);
	(void)payload_machine(&demo->payload, &(struct payload_machine){ .host = "h\xc3\xb6st",
						      .kernel = "6.18",
						      .system = "Debian 12",
						      .architecture = "x86_64",
						      .cpu_model = "some",
						      .cpu_online = 2,
						      .cpu_possible = 2,
						      .memory_bytes = 1u << 30,
						      .page_size_bytes = 4096,
						      .boot_id = "b",
						      .virtualization = "kvm",
						      .perf_event_paranoid = -1 });
	r |= demo_fact(demo, SPOOR_MACHINE, demo->recorder, diag);
	r |= demo_process(demo, SYSTEM_EXISTING_PROCESS, demo->recorder, "spoor", diag);
	r |= demo_process(demo, SYSTEM_EXISTING_PROCESS, demo->app, "before-exec", diag);
	r |= demo_process(demo, SYSTEM_EXISTING_PROCESS, demo->app, "app", diag);
	r |= demo_process(demo, SYSTEM_EXISTING_PROCESS, demo->web, "web", diag);
	(void)payload_process_facts(&demo->payload,
		&(struct payload_process_facts){ .parent_pid = 1,
			.uid = 1001,
			.inner_pid = 7,
			.executable = "/usr/bin/dotnet",
			.command = "dotnet",
			.arguments = (const char *const[]){ "dotnet", "web.dll", "a \"b\"\n" },
			.argument_count = 3,
			.container = "c0ffee",
			.cgroup = "/" });
	r |= demo_fact(demo, SPOOR_PROCESS_FACTS, demo->web, diag);
	(void)payload_runtime(&demo->payload, &(struct payload_runtime){ .kind = "coreclr",
						      .version = "10.0.12",
						      .path = "/usr/lib/dotnet",
						      .reachable = true });
	r |= demo_fact(demo, SPOOR_RUNTIME, demo->web, diag);
	(void)payload_process_info(&demo->payload,
		&(struct payload_process_info){ .command_line = "dotnet web.dll",
			.system = "Linux",
			.architecture = "x64" });
	r |= demo_fact(demo, EVENTPIPE_PROCESS_INFO, demo->web, diag);

	payload_elf_metadata(&json, "0123456789abcdef", "libc.debug", 0x1000, 0x1000);
	(void)payload_mapping_metadata(&demo->payload,
		&(struct payload_mapping_metadata){ .id = 1, .symbols = bytes_z(&json) });
	bytes_done(&json);
	r |= demo_fact(demo, SYSTEM_MAPPING_METADATA, demo->app, diag);
	(void)payload_mapping(&demo->payload, &(struct payload_mapping){ .id = 1,
						      .begin = 0x7f0000001000,
						      .end = 0x7f0000200000,
						      .file_offset = 0x1000,
						      .path = "/usr/lib/libc.so.6",
						      .metadata_id = 1 });
	r |= demo_fact(demo, SYSTEM_PROCESS_MAPPING, demo->app, diag);
	for (int i = 0; i < 2; i++) {
		(void)payload_mapping(&demo->payload, &(struct payload_mapping){ .id = 2,
							      .begin = 0xffff800000000000,
							      .end = 0xffffffffffffffff,
							      .path = "vmlinux" });
		r |= demo_fact(demo, SYSTEM_PROCESS_MAPPING, i ? demo->web : demo->app, diag);
	}
	(void)payload_mapping(&demo->payload, &(struct payload_mapping){ .id = 3,
						      .begin = 0x7e0000000000,
						      .end = 0x7e0000100000,
						      .path = "/memfd:doublemapper" });
	r |= demo_fact(demo, SYSTEM_PROCESS_MAPPING, demo->web, diag);
	static const struct payload_symbol symbols[] = {
		{ 1, 1, 0x7f0000001000, 0x7f0000002000, "start_thread", 12 },
		{ 2, 1, 0x7f0000002000, 0x7f0000003000, "memcpy", 6 },
		{ 3, 2, 0xffffffff81000000, 0xffffffff81001000, "do_syscall_64", 13 },
		{ 4, 3, 0x7e0000001000, 0x7e0000002000,
			"void [Shop] Shop.Pricing::Burn(int32)[OptimizedTier1]", 53 },
	};
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		(void)payload_symbol(&demo->payload, &symbols[i]);
		r |= demo_fact(demo, SYSTEM_PROCESS_SYMBOL, i == 3 ? demo->web : demo->app, diag);
	}
	(void)payload_code_added(&demo->payload,
		&(struct payload_code_added){ .begin = 0x7e0000001000,
			.end = 0x7e0000002000,
			.module = "Shop",
			.kind = CODE_JIT,
			.tier = TIER_1,
			.method_id = 9,
			.mapping_id = 3 });
	r |= demo_fact(demo, SPOOR_CODE_ADDED, demo->web, diag);
	(void)payload_clock_offset(&demo->payload,
		&(struct payload_clock_offset){
			.source = "eventpipe", .offset_ns = -1234567, .error_ns = 890 });
	r |= demo_fact(demo, SPOOR_CLOCK_OFFSET, demo->web, diag);
	(void)payload_notice(&demo->payload, &(struct payload_notice){ .severity = 2,
						     .code = "unreachable",
						     .text = "process 2000 did not answer",
						     .remedy = "wait" });
	r |= demo_fact(demo, SPOOR_NOTICE, demo->web, diag);
	return r;
}

/* A stack whose root is start_thread, with up to three frames of libc, managed or kernel code. */
static inline uint32_t demo_stack(struct demo *demo, uint32_t i, bool web)
{
	uint64_t frames[4];
	uint32_t n = 0;

	if (i % 3 == 0)
		frames[n++] = 0xffffffff81000000 + i % 64;
	frames[n++] = web ? 0x7e0000001000 + i % 256 : 0x7f0000002000 + i % 128;
	frames[n++] = 0x7f0000001000 + i % 4;
	return stack_table_intern(&demo->trace.stacks, frames, n);
}

static inline int demo_samples(struct demo *demo, struct diag *diag)
{
	struct trace *trace = &demo->trace;
	int r = 0;

	for (uint32_t i = 0; i < DEMO_SAMPLES && r == 0; i++) {
		bool web = i % 2;
		uint32_t pid = web ? 2000 : 1000;
		uint32_t thread = trace_thread(trace, pid, pid + i % 5);
		uint64_t weight = i % 100 == 0 ? 30303030 : 10101010;
		payload_cpu(&demo->payload,
			&(struct payload_cpu){
				.value = 10, .weight_ns = weight, .count = i % 100 == 0 ? 3 : 1 },
			10101010);
		demo->weight_ns += weight;
		demo->now += 500000 + i;
		r = demo_put(demo, EVENTS_CPU, thread,
			(struct event){ .cpu = i % 2 ? DEMO_FAR_CPU : 0,
				.stack_index = demo_stack(demo, i, web),
				.lost_before = i == 700 ? DEMO_LOST : 0,
				.late_ns = i % 600 == 1 ? 1000 + i : 0 },
			diag);
		if (r == 0 && i % DEMO_FLUSH_EVERY == DEMO_FLUSH_EVERY - 1)
			r = nettrace_sink.flush(demo->sink, diag);
		if (r == 0 && i == DEMO_SAMPLES / 2) {
			payload_code_removed(&demo->payload,
				&(struct payload_code_removed){
					.begin = 0x7e0000001000, .end = 0x7e0000002000 });
			r = demo_fact(demo, SPOOR_CODE_REMOVED, demo->web, diag);
		}
	}
	return r;
}

/* Reuse of the pid, losses, and the end. */
static inline int demo_closing(struct demo *demo, struct diag *diag)
{
	struct payload_count counts[] = { { "samples", DEMO_SAMPLES }, { "lost", DEMO_LOST } };
	int r = 0;

	payload_process_end(&demo->payload, &(struct payload_process_end){ .exit_code = 3 });
	r |= demo_fact(demo, SPOOR_PROCESS_END, demo->app, diag);
	r |= demo_fact(demo, SYSTEM_PROCESS_EXIT, demo->app, diag);
	demo->app_again = trace_new_process(&demo->trace, 1000);
	r |= demo_process(demo, SYSTEM_PROCESS_CREATE, demo->app_again, "other", diag);
	(void)payload_thread_name(&demo->payload,
		&(struct payload_thread_name){ .name = "worker \xe2\x98\x83" });
	r |= demo_put(demo, SPOOR_THREAD_NAME, trace_thread(&demo->trace, 2000, 2003),
		(struct event){ .cpu = EVENT_CPU_UNKNOWN }, diag);
	(void)payload_loss(&demo->payload, &(struct payload_loss){ .source = "ring",
						   .unit = "samples",
						   .count = DEMO_LOST,
						   .cpu = 1,
						   .first_ns = DEMO_START,
						   .last_ns = demo->now });
	r |= demo_fact(demo, SPOOR_LOSS, demo->recorder, diag);
	(void)payload_session_end(&demo->payload,
		&(struct payload_session_end){
			.reason = "duration", .counts = counts, .count_count = 2 });
	r |= demo_fact(demo, SPOOR_SESSION_END, demo->recorder, diag);
	return r ? r : nettrace_sink.end(demo->sink, diag);
}

static inline void demo_done(struct demo *demo)
{
	if (demo->sink)
		nettrace_sink.close(demo->sink);
	bytes_done(&demo->payload);
	trace_done(&demo->trace);
}

/* Writes the whole recording to options->fd. */
static inline int demo_write(const struct nettrace_sink_options *options, struct diag *diag)
{
	struct demo demo;
	int r = demo_begin(&demo, options, diag);

	if (r == 0)
		r = demo_opening(&demo, diag);
	if (r == 0)
		r = demo_samples(&demo, diag);
	if (r == 0)
		r = demo_closing(&demo, diag);
	demo_done(&demo);
	return r;
}

#endif
