/*
 * unwinding PID SECONDS HZ: samples a process as record --call-graph dwarf does, and prints what the walk of its stacks costs, as the average of all samples:
 *
 *   ns a frame, ns a sample, frames a sample, share of stacks that reach the start of their thread in percent, samples
 *
 * The time is that of the CPU of this thread, around each walk; the cost of the clock is subtracted.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/strtab.h"
#include "code/arch.h"
#include "machine/proc.h"
#include "perf/perf_record.h"
#include "perf/recorder.h"
#include "perf/ring.h"
#include "recording/managed_frames.h"
#include "recording/stack_unwinder.h"

#define FRAMES_MAX 2048u

struct sums {
	uint64_t ns;
	uint64_t frames;
	uint64_t samples;
	uint64_t whole;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* cannot fail */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void take(struct stack_unwinder *unwinder, const struct perf_record *record,
	uint64_t clock_ns, struct sums *sums)
{
	static uint64_t frames[FRAMES_MAX];
	enum unwind_end end;
	uint64_t stack_end;
	uint64_t begin_ns = cpu_ns();
	struct perf_callchain chain =
		perf_callchain_flatten(record, arch_here()->kernel_begin, 0, frames, FRAMES_MAX);
	bool unwound = stack_unwinder_replace(unwinder, record, frames, chain.kernel_count,
		&chain.count, FRAMES_MAX, &end, &stack_end);
	uint64_t ns = cpu_ns() - begin_ns;

	if (!unwound)
		return;
	sums->ns += ns > clock_ns ? ns - clock_ns : 0;
	sums->frames += chain.count - chain.kernel_count;
	sums->samples++;
	sums->whole += end == UNWIND_START;
}

static void drain(struct recorder *recorder, struct stack_unwinder *unwinder,
	struct managed_frames *managed, uint32_t pid, uint64_t clock_ns, struct sums *sums)
{
	const struct recorder_info *info = recorder_info(recorder);
	const struct perf_layout layout = { .sample_type = info->sample_type,
		.user_registers = arch_here()->unwind->kernel_mask,
		.sample_id_all = true };

	for (uint32_t i = 0; i < info->ring_count; i++) {
		struct ring *ring = recorder_ring(recorder, i);
		struct perf_record record;
		const uint8_t *data;
		uint32_t size;
		ring_begin(ring);
		while (ring_next(ring, &data, &size)) {
			if (perf_record_decode(&layout, data, size, &record) < 0)
				continue;
			stack_unwinder_note(unwinder, &record);
			if (record.type == PERF_TYPE_SAMPLE && record.pid == pid)
				take(unwinder, &record, clock_ns, sums);
		}
		ring_end(ring);
	}
	stack_unwinder_pass(unwinder);
	if (managed)
		managed_frames_pass(managed);
}

static uint64_t clock_cost_ns(void)
{
	uint64_t begin_ns = cpu_ns();

	for (int i = 0; i < 10000; i++)
		(void)cpu_ns();
	return (cpu_ns() - begin_ns) / 10000;
}

int main(int argc, char **argv)
{
	struct strtab strings = { 0 };
	struct sums sums = { 0 };
	struct poll_set set = { 0 };
	struct diag diag = { 0 };
	struct recorder *recorder;
	struct stack_unwinder *unwinder;
	struct managed_frames *managed = NULL;
	struct proc_reader proc;

	if (argc != 4)
		return 2;
	uint32_t pid = (uint32_t)atoi(argv[1]);
	const struct recorder_options options = {
		.scope = RECORD_PIDS,
		.frequency_hz = (uint32_t)atoi(argv[3]),
		.pids = &pid,
		.pid_count = 1,
		.ring_bytes = 16u << 20,
		.user_stack_bytes = STACK_COPY_BYTES,
		.user_registers = arch_here()->unwind ? arch_here()->unwind->kernel_mask : 0,
	};
	if (proc_open(&proc, &diag) < 0 ||
		stack_unwinder_new(&strings, &proc, arch_here(), &unwinder) < 0 ||
		recorder_open(&options, &recorder, &diag) < 0 ||
		recorder_start(recorder, &diag) < 0) {
		fprintf(stderr, "unwinding: %s\n", diag.text);
		return 1;
	}
	/* without memory, or on another processor: by frame pointers */
	(void)managed_frames_new(&proc, arch_here(), &managed);
	stack_unwinder_use(unwinder, managed);
	uint64_t clock_ns = clock_cost_ns();
	uint64_t end_ns = clock_monotonic_ns() + strtoull(argv[2], NULL, 10) * 1000000000u;
	while (clock_monotonic_ns() < end_ns) {
		poll_set_begin(&set, end_ns);
		recorder_await(recorder, &set);
		(void)poll_set_wait(&set);
		recorder_note_wait(recorder, &set);
		drain(recorder, unwinder, managed, pid, clock_ns, &sums);
	}
	double samples = (double)(sums.samples ? sums.samples : 1);
	printf("%.1f %.0f %.1f %.2f %" PRIu64 "\n",
		(double)sums.ns / (double)(sums.frames ? sums.frames : 1),
		(double)sums.ns / samples, (double)sums.frames / samples,
		100 * (double)sums.whole / samples, sums.samples);
	recorder_close(recorder);
	stack_unwinder_free(unwinder);
	managed_frames_free(managed);
	poll_set_done(&set);
	strtab_done(&strings);
	proc_close(&proc);
	return 0;
}
