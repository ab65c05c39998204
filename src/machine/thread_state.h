/*
 * What a thread does right now, as /proc tells of it: state, system call, where in the kernel. The thread is not stopped, and nothing is sent to it.
 *
 * What needs the right to trace the process (its system call, the kernel's function) is empty without it, `denied` says so; the kernel's whole stack
 * is for root alone. `object` is data of the process and takes the caller's own rights (machine/rights.h).
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

struct thread_state {
	struct proc_thread thread;
	uint64_t cpu_ns;       /* used so far; 0 not known */
	uint64_t switches;     /* context switches so far: a waiting thread with the same number has not run in between; 0 not known */
	uint64_t arguments[6]; /* of the system call */
	uint64_t sp;           /* of the user's stack; 0 not known: it runs, or we may not look */
	uint64_t pc;
	int64_t syscall;       /* its number; -1: none, or not known */
	const char *name;      /* of the system call: "futex"; "" none, or one that is not in the list */
	char state;            /* R S D T t X Z; '?' */
	bool denied;           /* a right is missing for the rest */
	char function[THREAD_STATE_FUNCTION_MAX]; /* where in the kernel it waits; "" */
	char kernel[THREAD_STATE_STACK_MAX];      /* the kernel's frames, leaf first, each ended by a newline; "" */
	char object[THREAD_STATE_OBJECT_MAX];     /* what the call's descriptor is: "socket:[1234]", a path; "" */
};

/* -ESRCH: it has ended. */
int thread_state_read(struct proc_reader *proc, uint32_t pid, uint32_t tid, struct thread_state *ret_state);

/* Whether the thread is still in the same call at the same place, and has not run since. */
bool thread_state_stands(struct proc_reader *proc, uint32_t pid, const struct thread_state *state);

/* The number of context switches of a thread so far; 0 not known. */
uint64_t thread_state_switches(const struct proc_reader *proc, uint32_t pid, uint32_t tid);

/* The parsers, apart from the files. They take any bytes. */

/* "202 0x7f.. .. 0x7ffe.. 0x7f3a..", "-1 0x7ffe.. 0x7f3a..", "running": false when it is none of them. */
bool thread_state_parse_syscall(const char *text, size_t len, struct thread_state *state);

/* The sum of "voluntary_ctxt_switches:" and "nonvoluntary_ctxt_switches:" in status; 0 when one of them is missing. */
uint64_t thread_state_parse_switches(const char *text, size_t len);

/* Lines "[<0>] futex_wait+0x12/0x80 [module]": the function names into `out`, each ended by a newline; what is not of that form is left out. */
void thread_state_parse_stack(const char *text, size_t len, char *out, size_t room);

#endif
