/*
 * The sampling provider, Microsoft-DotNETCore-SampleProfiler: stacks of the program's threads,
 * while a session enables it.
 *
 * Each thread has a timer of its CPU time, whose signal makes the thread walk its own stack. So
 * running threads are sampled, sleeping threads are not woken, and system calls are not
 * interrupted. The kernel checks such timers at its tick (4 ms with HZ=250), so a busy thread is
 * sampled at that interval, whatever the period. For a thread that has stopped running, the loop
 * writes an "external" sample with its last stack: stock tools compute time from the distance of
 * two samples, and would count the thread's sleep as work.
 *
 * The signal is a real-time signal that the program did not use when sampling began. Its handler
 * stays installed.
 */
#ifndef SPOOR_LIB_SAMPLER_SAMPLER_H
#define SPOOR_LIB_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/platform/module.h"

#define SAMPLER_PERIOD_NS 1000000u  /* of CPU time, as in .NET */
#define SAMPLER_LOOK_NS   10000000u /* interval of checks for sleeping threads */
#define SAMPLER_SCAN_NS   50000000u /* interval of scans for new threads */
/* a thread that keeps sleeping gets another external sample after this time */
#define SAMPLER_AGAIN_NS    500000000u
#define SAMPLER_THREADS_MAX 4096u
#define SAMPLER_FRAMES_MAX  100u

extern const struct module sampler_module;

/* Registers of a thread at the time of the signal. */
struct sampler_registers {
	uint64_t instruction;
	uint64_t frame;
	uint64_t stack;
};

/* ---- The system's part: sampler_linux.c ---- */

/*
 * Finds a free signal and installs `sample` as its handler, which runs in the sampled thread and
 * gets the `context` of its timer. 0; -EBUSY: no signal is free.
 */
int sampler_system_prepare(void (*sample)(void *context,
	const struct sampler_registers *registers));
int sampler_system_start(uint64_t thread_id, uint64_t period_ns, void *context, void **ret_timer);
/* Signals that are pending may still be delivered. */
void sampler_system_stop(void *timer);
/*
 * For a function without a frame that was interrupted: is `word`, the top of the stack, the address
 * after a call of that function? Signal-safe; reads code without touching unmapped memory. False on
 * processors whose instructions are not known here.
 */
bool sampler_system_called_from(uint64_t word, uint64_t instruction);
/* CPU time of a thread of this process; false: it has ended. */
bool sampler_system_cpu(uint64_t thread_id, uint64_t *ret_ns);
/* Calls `thread` for each thread of the process. */
void sampler_system_threads(void (*thread)(uint64_t thread_id, void *context), void *context);

#endif
