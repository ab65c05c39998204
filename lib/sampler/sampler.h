/*
 * The sampling provider, Microsoft-DotNETCore-SampleProfiler: stacks of the program's threads, as long as a session asks for them.
 *
 * Each thread has a timer of the CPU time it uses, whose signal makes it walk its own stack: what runs is sampled, what sleeps is never woken, and no system call of the
 * program is broken off for it. The kernel looks at such timers at its tick (4 ms with HZ=250), so that is how often a busy thread is sampled, whatever the period. A thread
 * that has stopped running is told of as "external" by the loop, with the stack it was last seen with: stock tools make time out of the distance of two samples,
 * and would count its sleep as work.
 *
 * The signal is a real-time one that the program had not used when sampling began; its handler stays once it is there.
 */
#ifndef SPOOR_LIB_SAMPLER_SAMPLER_H
#define SPOOR_LIB_SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/platform/module.h"

#define SAMPLER_PERIOD_NS   1000000u   /* of CPU time, as .NET's */
#define SAMPLER_LOOK_NS     10000000u  /* how often to look for threads that sleep */
#define SAMPLER_SCAN_NS     50000000u  /* and for new ones */
#define SAMPLER_AGAIN_NS    500000000u /* a thread that goes on sleeping is told of again */
#define SAMPLER_THREADS_MAX 4096u
#define SAMPLER_FRAMES_MAX  100u

extern const struct module sampler_module;

/* Where a thread was when the signal came. */
struct sampler_registers {
	uint64_t instruction;
	uint64_t frame;
	uint64_t stack;
};

/* ---- The system's part: sampler_linux.c ---- */

/* Finds a signal and handles it by `sample`, called in the thread that is sampled with what its timer was started with. -EBUSY: no signal is free. */
int sampler_system_prepare(void (*sample)(void *context, const struct sampler_registers *registers));
int sampler_system_start(uint64_t thread_id, uint64_t period_ns, void *context, void **ret_timer);
/* Signals that are on their way may still come. */
void sampler_system_stop(void *timer);
/*
 * The caller of a function that has no frame of its own and was interrupted: `word` is what stands on top of the stack. True when it is the address behind a call of just
 * that function. In the handler; reads code without touching what may not be there. Only where the processor's instructions are known.
 */
bool sampler_system_called_from(uint64_t word, uint64_t instruction);
/* CPU time of a thread of this process; false when it has gone. */
bool sampler_system_cpu(uint64_t thread_id, uint64_t *ret_ns);
/* Calls `thread` for each thread of the process. */
void sampler_system_threads(void (*thread)(uint64_t thread_id, void *context), void *context);

#endif
