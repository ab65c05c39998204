/*
 * A program in the kernel that writes the records of sched_switch in place of the tracepoint's own event,
 * and so can leave some out and choose how much of the user stack each has:
 *
 * - A process whose bit is set in sched_probe_muted() has no records.
 * - The copy of a thread's stack is as long as the stack is, in three steps, once
 *   sched_probe_learn_stack() has said where it ends. Such a record has no user call chain.
 *
 * - A block that is in a row of sched_probe_known() has neither a user call chain nor a copy of the stack.
 *
 * The rows of all are memory that the program shares: changing one is a store, not a system call.
 * A record's raw data is enum sched_event's id and, at SCHED_PROBE_STATE_OFFSET, prev_state.
 *
 *   sched_probe_open(&options, &probe);
 *   for each CPU and class: event_open(sched_probe_attribute()); sched_probe_connect(probe, cpu, class, fd);
 *   sched_probe_close(probe);
 *
 * Other users of the tracepoint, perf among them, are not affected: the program only adds records.
 */
#ifndef SPOOR_PERF_SCHED_PROBE_H
#define SPOOR_PERF_SCHED_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "perf/sched_program.h"

struct known_block;
struct perf_event_attr;
struct sched_probe;
struct tracepoint;
struct tracepoint_field;

struct sched_probe_options {
	const struct tracepoint *tracepoint; /* all are borrowed for the call */
	const struct tracepoint_field *prev_state;
	const struct sched_probe_registers *registers; /* NULL: all records are of class 0 */
	bool recognize;                                /* blocks may become known */
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

/* The event takes the records of its CPU and class from now on. -ERANGE: no CPU has this number. */
int sched_probe_connect(struct sched_probe *probe, int32_t cpu, uint32_t class, int fd);

/* One bit for each pid below SCHED_PROBE_PIDS_MAX: bit pid % 64 of word pid / 64. */
uint64_t *sched_probe_muted(struct sched_probe *probe);

/*
 * What a record taught: the address where the thread's stack ends; 0: the copy was not enough to find it.
 * `raw` is the record's raw data.
 */
void sched_probe_learn_stack(struct sched_probe *probe, const uint8_t *raw, uint32_t raw_size,
	uint32_t tid, uint64_t stack_end);

/* Stacks whose end is not known have small copies from now on, or those of the requested size. */
void sched_probe_copy_small(struct sched_probe *probe, bool small);

/* Whether the record has a copy that is as long as its stack, and no user call chain. */
bool sched_probe_is_sized(const uint8_t *raw, uint32_t raw_size);

/* KNOWN_BLOCKS rows that the caller fills. NULL: this kernel (before 5.15) cannot recognize blocks. */
struct known_block *sched_probe_known(struct sched_probe *probe);

/* Whether the record is of a known block: the number of its row, and the version that the row had. */
bool sched_probe_block(const uint8_t *raw, uint32_t raw_size, uint32_t *ret_row,
	uint32_t *ret_version);

/* The event that the program is attached to. Its close may take long: see closing.h. The caller owns it. */
int sched_probe_take_event(struct sched_probe *probe);

void sched_probe_close(struct sched_probe *probe);

#endif
