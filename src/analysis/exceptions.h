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

/* key.kind: those that the recorder counted, but did not write. Their messages are not known. */
#define EXCEPTION_ONLY_COUNTED 1u

struct exceptions {
	/* key: text = type, detail = message, kind, stack = of the throw; an amount is 1 */
	struct tally tally;
	struct event_texts types;
	struct event_texts messages;
};

/* 0, or -ENOMEM. Payloads that are too short are ignored. */
int exceptions_event(struct exceptions *exceptions, const struct runtime_event *event);

/* How many of a process's exceptions were only counted. */
uint64_t exceptions_only_counted(const struct exceptions *exceptions,
	const struct tally_process *process);

void exceptions_done(struct exceptions *exceptions);

#endif
