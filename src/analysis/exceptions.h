/*
 * Exceptions that .NET processes threw: how many, by type, message and stack.
 *
 * Of each process at most EXCEPTIONS_MESSAGES_MAX different messages are kept; the others count in
 * rows without a message, so that totals are exact.
 */
#ifndef SPOOR_ANALYSIS_EXCEPTIONS_H
#define SPOOR_ANALYSIS_EXCEPTIONS_H

#include "analysis/event_texts.h"
#include "analysis/tally.h"

struct runtime_event;

#define EXCEPTIONS_MESSAGES_MAX 1000u

/* key.kind: those that the recorder did not write. */
enum exception_kind {
	EXCEPTION_WRITTEN,
	EXCEPTION_ONLY_COUNTED, /* by type and stack: their messages are not known */
	EXCEPTION_UNSEEN,       /* by the runtime's own counter: nothing of them is known */
	EXCEPTION_ESTIMATED,    /* not even counted: from the rate before */
};

struct exceptions {
	/* key: text = type, detail = message, kind, stack = of the throw; an amount is 1 */
	struct tally tally;
	struct event_texts types;
	struct event_texts messages;
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int exceptions_event(struct exceptions *exceptions, const struct runtime_event *event);

/* How many of a process's exceptions are of this kind. */
uint64_t exceptions_of_kind(const struct exceptions *exceptions,
	const struct tally_process *process, enum exception_kind kind);

void exceptions_done(struct exceptions *exceptions);

#endif
