/*
 * The state of a thread, its system call and its position in the kernel, read from /proc without
 * stopping it. Without the right to trace the process, the call and the kernel's function are empty
 * and `denied` is true. The kernel's whole stack is for root only. `object` is data of the process,
 * read with the caller's own rights.
 */
#ifndef SPOOR_MACHINE_THREAD_STATE_H
#define SPOOR_MACHINE_THREAD_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/proc.h"

#define THREAD_STATE_FUNCTION_MAX 128u
#define THREAD_STATE_STACK_MAX    4096u
#define THREAD_STATE_OBJECT_MAX   256u

struct proc_thread_state {
	struct proc_thread thread;
	uint64_t cpu_ns; /* used so far; 0: unknown */
	/* context switches; equal: a waiting thread has not run since; 0: unknown */
	uint64_t switches;
	uint64_t arguments[6]; /* of the system call */
	/* of the user stack; 0: unknown, as it runs or we may not inspect it */
	uint64_t sp;
	uint64_t pc;
	int64_t syscall; /* its number; -1: none or unknown */
	/* of the system call, for example "futex"; "": none, or one that is not in the list */
	const char *name;
	char state;                               /* R S D T t X Z; '?' */
	bool denied;                              /* a right is missing for the fields below */
	char function[THREAD_STATE_FUNCTION_MAX]; /* the kernel function in which it waits; "" */
	/* the kernel's frames, leaf first, each ended by a newline; "" */
	char kernel[THREAD_STATE_STACK_MAX];
	/* the object of the call's descriptor: "socket:[1234]", a path; "" */
	char object[THREAD_STATE_OBJECT_MAX];
};

/* -ESRCH: the thread has ended. */
int thread_state_read(struct proc_reader *proc, uint32_t pid, uint32_t tid,
	struct proc_thread_state *ret_state);

/*
 * Whether it ran all the time that it was read. The state is read first: a thread that was R then may
 * have begun to wait before its system call was read.
 */
bool thread_state_runs(const struct proc_thread_state *state);

/* Whether the thread is in the same call at the same place, and has not run since. */
bool thread_state_stands(struct proc_reader *proc, uint32_t pid,
	const struct proc_thread_state *state);

/* The number of context switches of a thread so far; 0: unknown. */
uint64_t thread_state_switches(const struct proc_reader *proc, uint32_t pid, uint32_t tid);

/* Whether it waits; and its context switches, read after that. False: it runs, or is unknown. */
bool thread_state_sleeps(const struct proc_reader *proc, uint32_t pid, uint32_t tid,
	uint64_t *ret_switches);

/* Whether it runs or waits for a CPU. False: it waits for something else, or is unknown. */
bool thread_state_can_run(const struct proc_reader *proc, uint32_t pid, uint32_t tid);

/* The parsers, separate from the files. They accept any bytes. */

/* "202 0x7f.. .. 0x7ffe.. 0x7f3a..", "-1 0x7ffe.. 0x7f3a.." or "running" */
bool thread_state_parse_syscall(const char *text, size_t len, struct proc_thread_state *state);

/* "voluntary_ctxt_switches:" plus "nonvoluntary_ctxt_switches:" of status; 0: one is missing */
uint64_t thread_state_parse_switches(const char *text, size_t len);

/* Function names of lines "[<0>] futex_wait+0x12/0x80 [module]"; other lines are omitted. */
void thread_state_parse_stack(const char *text, size_t len, char *out, size_t room);

#endif
