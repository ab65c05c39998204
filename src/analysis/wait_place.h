/*
 * What a blocked thread waits for, by the functions of its stack: the cause, the function that it
 * called to wait, and the function of the program that called it.
 */
#ifndef SPOOR_ANALYSIS_WAIT_PLACE_H
#define SPOOR_ANALYSIS_WAIT_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct symbolmap;

enum block_cause {
	BLOCK_UNKNOWN,
	BLOCK_LOCK,
	BLOCK_FUTEX, /* a lock or an event of user code that its stack does not name */
	BLOCK_EVENT, /* another thread's signal: a condition, a semaphore, a handle */
	BLOCK_TASK,  /* of .NET */
	BLOCK_SLEEP,
	BLOCK_NETWORK,
	BLOCK_POLL, /* for one of several files: epoll, poll, select */
	BLOCK_DISK,
	BLOCK_PIPE,
	BLOCK_TERMINAL,
	BLOCK_FILE_LOCK,
	BLOCK_KERNEL_LOCK,
	BLOCK_PAGE_FAULT,
	BLOCK_CHILD,
	BLOCK_SIGNAL,
	BLOCK_STOPPED,   /* by a signal or a debugger */
	BLOCK_PREEMPTED, /* it could run on */
	BLOCK_WORK,      /* for work of the kernel: of its threads, or what it does for a program */
	BLOCK_BEFORE,    /* it began before the recording, so its stack is not known */
	BLOCK_CAUSE_COUNT
};

struct wait_place {
	enum block_cause cause;
	uint32_t wait;  /* function that waits, "Monitor.Enter", "read"; 0: not on the stack */
	uint32_t where; /* innermost function of the program itself; 0: not on the stack */
	bool idle;      /* a thread of a runtime, or of the kernel, that has no work */
};

/* `functions`: of the symbolmap, leaf first. */
void wait_place_find(const struct symbolmap *names, const uint32_t *functions, uint32_t count,
	struct wait_place *ret_place);

/*
 * The innermost function that is neither the kernel's nor a library's of the C or .NET runtime; 0:
 * there is none.
 */
uint32_t wait_place_own(const struct symbolmap *names, const uint32_t *functions, uint32_t count);

/* "page fault": a constant text. */
const char *block_cause_words(enum block_cause cause);

#endif
