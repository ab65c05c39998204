/*
 * The event: the unit that every source yields and every sink takes. Its payload is exactly in the
 * layout of its schema; all indexes in it refer to the tables of `struct trace`.
 */
#ifndef SPOOR_TRACE_EVENT_H
#define SPOOR_TRACE_EVENT_H

#include <stdint.h>

/* What analyses switch on. A reader of any format sets it. */
enum event_kind {
	EVENT_OTHER,
	EVENT_SAMPLE,  /* CPU sample; value = weight in ns */
	EVENT_SWITCH,  /* switched in again; value = ns off CPU */
	EVENT_SYSCALL, /* value = ns from enter to exit */
	EVENT_PROCESS, /* process facts, begin, end, exec */
	EVENT_MAPPING,
	EVENT_SYMBOL,
	EVENT_CODE, /* managed code added, removed, moved */
	EVENT_LOSS, /* value = how many */
	EVENT_COUNTER,
	EVENT_SESSION, /* facts about the recording and the machine */
	EVENT_METHOD,  /* the CLR's own method and module events */
	EVENT_WAKEUP,  /* a thread woke another one, in this stack */
};

#define EVENT_CPU_UNKNOWN   (-1)
#define EVENT_ACTIVITY_SIZE 32u

/* Stock readers (TraceEvent) fail above about 65,440 bytes (facts: perfview-contract B.6). */
#define EVENT_PAYLOAD_MAX 65000u

/* What a file states for one event: in place of its schema, or beside it. */
enum event_label_member {
	EVENT_LABEL_OPCODE = 1 << 0,
	EVENT_LABEL_KEYWORDS = 1 << 1,
	EVENT_LABEL_LEVEL = 1 << 2,
	EVENT_LABEL_VERSION = 1 << 3,
};

struct event_labels {
	/* trace id, span id, keys and values, for trace/event_label.h; borrowed */
	const uint8_t *list;
	uint64_t keywords;
	uint32_t list_size; /* 0 none */
	unsigned which;     /* enum event_label_member: the members that count */
	uint8_t opcode;
	uint8_t level;
	uint8_t version;
};

struct event {
	uint64_t time_ns;       /* CLOCK_MONOTONIC of the recorded machine */
	uint64_t value;         /* of the weighted kinds */
	const uint8_t *payload; /* borrowed until the source's next call; so with the next */
	/* EVENT_ACTIVITY_SIZE bytes: the guid of its activity, and of a related one; NULL none */
	const uint8_t *activity;
	const struct event_labels *labels; /* NULL none */
	uint32_t payload_size;
	uint32_t thread_index; /* in trace.threads; 0 none */
	uint32_t stack_index;  /* in trace.stacks; 0 none */
	uint32_t schema_index; /* in trace.schemas; 0 none */
	/* events of this CPU's row that were lost right before this one */
	uint32_t lost_before;
	uint32_t late_ns; /* written this much later than it happened; 0 in time */
	int32_t cpu;      /* EVENT_CPU_UNKNOWN */
	uint8_t kind;     /* enum event_kind */
};

#endif
