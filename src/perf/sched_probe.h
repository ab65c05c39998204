/*
 * A program in the kernel that follows the context switches in place of perf's own records and of the tracepoint's
 * event, and so can leave some out and choose what each costs:
 *
 * - Each switch is an entry in a ring (switch_ring.h).
 * - A process whose bit is set in sched_probe_muted() has no entries.
 * - A block that is in a row of sched_probe_known() has nothing else. Any other one has a sample with its stack.
 * - The copy of a thread's stack in a sample is as long as the stack is, in three steps, once
 *   sched_probe_learn_stack() has said where it ends. Such a sample has no user call chain.
 *
 * The rows of all are memory that the program shares: changing one is a store, not a system call.
 * A sample's raw data begins with enum sched_event's id; sched_probe_sample() reads the rest.
 *
 *   sched_probe_open(&options, &probe);
 *   for each CPU and class: event_open(sched_probe_attribute()); sched_probe_connect(probe, cpu, class, fd);
 *   switch_ring_open(sched_probe_ring(probe, cpu), true);
 *   sched_probe_close(probe);
 *
 * Other users of the tracepoint, perf among them, are not affected.
 */
#ifndef SPOOR_PERF_SCHED_PROBE_H
#define SPOOR_PERF_SCHED_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "perf/sched_program.h"

struct known_block;
struct perf_event_attr;
struct sched_probe;
struct switch_ring;
struct tracepoint;

struct sched_probe_options {
	const struct tracepoint *tracepoint;           /* both are borrowed for the call */
	const struct sched_probe_registers *registers; /* NULL: all samples are of class 0 */
	bool recognize;                                /* blocks may become known */
	/* samples have the call chain by frame pointers: copies of the stack are only for learning it */
	bool frame_pointers;
	bool kernel; /* call chains have frames of the kernel */
};

/*
 * -EPERM: without the right to use BPF. -EXDEV: inside a pid namespace, whose pids the program does not know.
 * Other errors: this kernel cannot.
 */
int sched_probe_open(const struct sched_probe_options *options, struct sched_probe **ret_probe);

/*
 * Turns the attributes of the tracepoint's event into those of an event of this class. `small_bytes`: of a
 * small copy; 0: none are taken. False: there is no such class, since its copies would be no smaller.
 */
bool sched_probe_attribute(const struct sched_probe *probe, uint32_t class, uint32_t small_bytes,
	struct perf_event_attr *attr);

/* The event takes the samples of its CPU and class from now on. -ERANGE: no CPU has this number. */
int sched_probe_connect(struct sched_probe *probe, int32_t cpu, uint32_t class, int fd);

/* The ring of a CPU; NULL: no CPU has this number. Valid until sched_probe_close(). */
struct switch_ring *sched_probe_ring(struct sched_probe *probe, int32_t cpu);

/* One bit for each pid below SCHED_PROBE_PIDS_MAX: bit pid % 64 of word pid / 64. */
uint64_t *sched_probe_muted(struct sched_probe *probe);

/* What the raw data of a sample says. */
struct sched_probe_sample {
	uint64_t time_ns; /* that of the entry */
	bool sized;       /* its copy is as long as its stack, and it has no user call chain */
	/* the kernel's stack from the program on: words, which need not be aligned */
	const uint8_t *kernel_words;
	uint32_t kernel_count;
};

/* False: the record has no stack. It woke the recorder, or is not one of this program. */
bool sched_probe_sample(const uint8_t *raw, uint32_t raw_size,
	struct sched_probe_sample *ret_sample);

/*
 * What a sample taught: the address where the thread's stack ends; 0: the copy was not enough to find it.
 * `sized`: as the sample says.
 */
void sched_probe_learn_stack(struct sched_probe *probe, bool sized, uint32_t tid,
	uint64_t stack_end);

/* Stacks whose end is not known have small copies from now on, or those of the requested size. */
void sched_probe_copy_small(struct sched_probe *probe, bool small);

/* KNOWN_BLOCKS rows that the caller fills. NULL: this kernel cannot recognize blocks. */
struct known_block *sched_probe_known(struct sched_probe *probe);

/* The descriptor by which the program is attached. Its close may take long: see closing.h. The caller owns it. */
int sched_probe_take_link(struct sched_probe *probe);

void sched_probe_close(struct sched_probe *probe);

#endif
