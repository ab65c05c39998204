/*
 * What async methods await: from TaskWaitBegin and TaskWaitEnd of the tasks' event source, with the
 * stack of the begin. An await names the awaited task and the task of the method that awaits, so
 * that awaits of methods that await one another form a logical stack: time belongs to the innermost
 * method of the user in it.
 *
 *   awaits_event(&awaits, &event)              for each event, in file order
 *   awaits_settle(&awaits, &spans, end_ns)     once
 *   tally_finish(&awaits.tally, &selection)    once
 *   awaits_methods(&awaits, names, process, mask, &methods)
 *   awaits_done(&awaits)
 *
 * Threads that wait for a task without await are waits of threads, not awaits.
 */
#ifndef SPOOR_ANALYSIS_AWAITS_H
#define SPOOR_ANALYSIS_AWAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/tally.h"
#include "base/map.h"
#include "base/vec.h"

struct activity_spans;
struct runtime_event;
struct symbolmap;

#define AWAIT_LONG_NS UINT64_C(100000000)

/* Of key.kind. */
enum await_flag {
	AWAIT_IS_LONG = 1 << 0,     /* AWAIT_LONG_NS or longer */
	AWAIT_IN_ACTIVITY = 1 << 1, /* of a request or another activity */
	AWAIT_UNFINISHED = 1 << 2,  /* it had not ended at the end of the recording */
};

struct await_begun {
	uint64_t at_ns;
	uint64_t from_ns; /* see tally_amount */
	uint32_t process;
	uint32_t task;  /* that is awaited */
	uint32_t after; /* task of the method that awaits */
	uint32_t stack;
	uint32_t next_free;
	bool in_activity;
	bool is_open;
};

struct awaits {
	/* key: kind = enum await_flag, stack, detail = stack of the await of this method; in ns */
	struct tally tally;
	VEC(struct await_begun) begun; /* until awaits_settle(), as the next ones */
	struct map by_task;            /* begun.items[i - 1] */
	uint32_t free;                 /* begun.items[free - 1] is the first free item; 0: none */
};

/* A method of the user that awaits. */
struct await_method {
	uint32_t method;  /* of the symbolmap */
	uint32_t stack;   /* of event_stacks: of its longest kind of await */
	uint64_t count;   /* awaits */
	uint64_t pending; /* of them, unfinished */
	uint64_t all_ns;
	uint64_t self_ns; /* without what it awaited in other methods of the user */
	uint64_t longest_ns;
	uint64_t longest_at_ns;
	uint64_t first_ns;
	uint64_t stack_ns;
};

struct await_methods {
	VEC(struct await_method) list; /* largest self_ns first */
	struct map index;
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int awaits_event(struct awaits *awaits, const struct runtime_event *event);
int awaits_settle(struct awaits *awaits, const struct activity_spans *spans, uint64_t end_ns);

/*
 * Of awaits whose key.kind has all flags of `mask`. await_methods_done() in any case. 0, or -ENOMEM.
 */
int awaits_methods(const struct awaits *awaits, const struct symbolmap *names,
	const struct tally_process *process, unsigned mask, struct await_methods *ret_methods);
void await_methods_done(struct await_methods *methods);

void awaits_done(struct awaits *awaits);

#endif
