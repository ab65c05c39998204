/*
 * A small trace for the tests of analyses and output: two processes; kernel, native, JIT,
 * ReadyToRun and unnamed code; a name with markup and escapes; and a JIT address that is reused.
 */
#ifndef SPOOR_TESTS_UNIT_SAMPLE_TRACE_H
#define SPOOR_TESTS_UNIT_SAMPLE_TRACE_H

#include "analysis/profile.h"
#include "trace/event.h"
#include "trace/trace.h"

#define KERNEL 0xffffffff81000000u
#define LIBC   0x7f1000000000u
#define CLR    0x7f2000000000u
#define JIT    0x7f3000000000u
#define IMAGE  0x7f4000000000u

#define HOSTILE "ev;il\n\x1b[31m<&\"'\xff]]>"

#define BEGIN_NS  1000000000u
#define PERIOD_NS 10000000u

static inline void sample_mapping(struct trace *trace, uint32_t process, uint64_t id,
	uint64_t begin, const char *path)
{
	struct mapping *m = &trace->mappings.items[trace_add_mapping(trace, process)];

	m->begin = begin;
	m->end = begin + 0x100000;
	m->file_offset = 0x1000;
	m->id = id;
	m->path = trace_add_text(trace, path);
}

static inline void sample_symbol(struct trace *trace, uint64_t mapping, uint64_t begin,
	uint64_t size, const char *name)
{
	struct symbol *s = vec_push(&trace->symbols);

	*s = (struct symbol){ .begin = begin,
		.end = begin + size,
		.mapping_id = mapping,
		.name = trace_add_text(trace, name) };
}

static inline void sample_code(struct trace *trace, uint32_t process, uint64_t begin,
	const char *name, uint32_t removed_epoch, enum code_kind kind, enum code_tier tier)
{
	struct code_range *c = vec_push(&trace->processes.items[process].codes);

	*c = (struct code_range){ .begin = begin,
		.end = begin + 0x100,
		.mapping_id = 4,
		.name = trace_add_text(trace, name),
		.module = trace_add_text(trace, "Shop"),
		.removed_epoch = removed_epoch,
		.kind = (uint8_t)kind,
		.tier = (uint8_t)tier };
}

static inline uint32_t sample_process(struct trace *trace, uint32_t pid, const char *name)
{
	uint32_t process = trace_process(trace, pid);

	trace->processes.items[process].name = trace_add_text(trace, name);
	return process;
}

/* Process 4711 is shop; 4802 has the hostile name. */
static inline void sample_trace(struct trace *trace)
{
	struct recording *r = &trace->recording;

	assert_int_equal(trace_init(trace), 0);
	r->host = trace_add_text(trace, "web-3");
	r->kernel = trace_add_text(trace, "6.18");
	r->architecture = trace_add_text(trace, "x86_64");
	r->cpu_online = 2;
	r->period_ns = PERIOD_NS;
	r->sync_ns = BEGIN_NS;
	r->utc_ns = 1795249812000000000u;
	/* Sampling took one second, the final rundown half a second. */
	r->end_ns = BEGIN_NS + 1500000000u;
	r->counts[SESSION_COUNT_SAMPLED_FROM_NS] = BEGIN_NS;
	r->counts[SESSION_COUNT_SAMPLED_TO_NS] = BEGIN_NS + 1000000000u;
	r->end_reason = trace_add_text(trace, "duration");

	uint32_t shop = sample_process(trace, 4711, "shop");
	trace->processes.items[shop].runtime_kind = RUNTIME_CORECLR;
	trace->processes.items[shop].runtime_version = trace_add_text(trace, "10.0.12");
	trace->processes.items[shop].runtime_sessions = trace_add_text(trace,
		"live Microsoft-Windows-DotNETRuntime:0x38:5, 16 MB, no stacks\nrundown 0x18, 16 MB, no stacks");
	uint32_t other = sample_process(trace, 4802, HOSTILE);
	sample_mapping(trace, 0, 1, KERNEL, "vmlinux");
	sample_mapping(trace, shop, 2, LIBC, "/usr/lib/libc.so.6");
	sample_mapping(trace, shop, 3, CLR, "/usr/share/dotnet/libcoreclr.so");
	sample_mapping(trace, shop, 4, JIT, "/memfd:doublemapper (deleted)");
	sample_mapping(trace, shop, 5, IMAGE, "/app/System.Text.Json.dll");
	sample_mapping(trace, other, 6, LIBC, "/opt/a b/" HOSTILE);
	sample_symbol(trace, 1, KERNEL, 0x100, "clear_page_erms");
	sample_symbol(trace, 1, KERNEL + 0x100, 0x100, "do_syscall_64");
	sample_symbol(trace, 2, LIBC, 0x100, "start_thread");
	sample_symbol(trace, 2, LIBC + 0x100, 0x100, "memmove");
	sample_symbol(trace, 5, IMAGE, 0x100, "System.Text.Json.JsonSerializer::Serialize()");
	sample_symbol(trace, 4, JIT, 0x100, "void [Shop] Shop.Pricing::Burn()[OptimizedTier1]");
	sample_symbol(trace, 6, LIBC, 0x100, HOSTILE);
	/*
	 * The name of the first method at the address is in a symbol, that of the second in the
	 * code range.
	 */
	sample_code(trace, shop, JIT, "", 1, CODE_JIT, TIER_1);
	sample_code(trace, shop, JIT, "void [Shop] Shop.Late::Comer()[OptimizedTier1]", UINT32_MAX,
		CODE_JIT, TIER_1);
	sample_code(trace, shop, JIT + 0x200, "void [Shop] Shop.Program::Main()[QuickJitted]",
		UINT32_MAX, CODE_JIT, TIER_0);
	sample_code(trace, shop, JIT + 0x400, "(interface dispatch stub)", UINT32_MAX, CODE_STUB,
		TIER_UNKNOWN);
	sample_code(trace, shop, JIT + 0x600, "void [Shop] Shop.Gone::Now()[OptimizedTier1]", 1,
		CODE_JIT, TIER_1);
}

/* Adds `count` samples of one stack (leaf first, ends with 0), `at_ms` after the start. */
static inline void sample_add(struct profile *profile, uint32_t pid, uint32_t tid, uint64_t at_ms,
	unsigned count, const uint64_t *frames)
{
	uint32_t depth = 0;
	struct event event = { .kind = EVENT_SAMPLE,
		.value = PERIOD_NS,
		.cpu = 0,
		.time_ns = BEGIN_NS + at_ms * 1000000u };

	while (frames[depth])
		depth++;
	event.thread_index = trace_thread(profile->trace, pid, tid);
	event.stack_index = stack_table_intern(&profile->trace->stacks, frames, depth);
	while (count--)
		assert_int_equal(profile_event(profile, &event), 0);
}

#define STACK(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

/*
 * 20 samples: Burn 8, memmove in Serialize 4, stub 1, libcoreclr 2, kernel 2, recursion 1, hostile
 * name 2.
 */
static inline void sample_fill(struct profile *profile)
{
	const uint64_t root = LIBC + 8;
	const uint64_t main_frame = JIT + 0x208;

	sample_add(profile, 4711, 4711, 0, 8, STACK(JIT + 8, main_frame, root));
	sample_add(profile, 4711, 4712, 100, 4, STACK(LIBC + 0x108, IMAGE + 8, main_frame, root));
	sample_add(profile, 4711, 4712, 200, 1, STACK(JIT + 0x408, main_frame, root));
	sample_add(profile, 4711, 4712, 300, 2, STACK(CLR + 0x2a8, root));
	sample_add(profile, 4711, 4712, 400, 2,
		STACK(KERNEL + 8, KERNEL + 0x108, LIBC + 0x108, root));
	sample_add(profile, 4711, 4712, 500, 1,
		STACK(JIT + 0x208, IMAGE + 8, main_frame, IMAGE + 0x10, main_frame, root));
	sample_add(profile, 4802, 4802, 600, 2, STACK(LIBC + 8));
}

#endif
