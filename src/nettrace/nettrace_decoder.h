/*
 * The state of a nettrace decoder, which its parts share: nettrace_read.c reads head and blocks,
 * and nettrace_{metadata,stacks,rows,events}.c decode the content of blocks.
 *
 * A part returns 0, or stream_broken() or stream_no_memory(): then the decoder stays broken.
 */
#ifndef SPOOR_NETTRACE_NETTRACE_DECODER_H
#define SPOOR_NETTRACE_NETTRACE_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "nettrace/nettrace_head.h"
#include "trace/event.h"

struct trace;

enum state { STATE_HEAD, STATE_BLOCK, STATE_EVENTS, STATE_ENDED, STATE_BROKEN };

/* A thread or a capture row: version 6 defines it in a Thread block, version 4 by its first use. */
struct decoder_row {
	uint32_t thread_index; /* in trace.threads; 0: none, or not looked up yet */
	uint32_t last_sequence;
	bool seen; /* last_sequence counts */
	bool no_cpu;
};

/* Consecutive ids and where what they name begins. Sorted by first; none overlap. */
struct id_range {
	uint32_t first;
	uint32_t count;
	uint32_t at; /* in stack_indexes */
};

/* `labels.list` is set only in the decoded event, as label_bytes may move while lists are read. */
struct decoded_labels {
	uint32_t late_ns;
	uint32_t bytes_at; /* in label_bytes, labels.list_size of them */
	bool has_activity;
	uint8_t activity[EVENT_ACTIVITY_SIZE];
	struct event_labels labels;
};

struct nettrace_decoder {
	struct trace *trace;
	char *name;
	bool names_only;
	bool no_stacks;
	bool placed;                                          /* nettrace_decoder_place() */
	uint32_t (*place)(void *context, uint64_t thread_id); /* nettrace_thread_fn */
	void *place_context;
	enum state state;
	struct diag broken; /* why, when the state is STATE_BROKEN */
	struct nettrace_head head;
	uint32_t pointer_size;
	bool plain_ns; /* ticks are nanoseconds */
	/* written by Spoor: one row a thread, a new one for a new life of a pid */
	bool ours;

	uint8_t *buffer;
	size_t capacity;
	size_t begin;
	size_t end;
	uint64_t base;

	/* The event block being decoded, as offsets in the stream. */
	uint64_t events_end;
	bool compressed;

	/* The state from which the next delta is decoded, and the trace's indexes for its ids. */
	uint32_t metadata_id;
	uint32_t sequence;
	uint64_t capture;
	uint32_t cpu;
	uint64_t thread;
	uint32_t stack;
	uint64_t ticks;
	uint32_t label;
	uint32_t size;
	uint32_t schema_index;
	uint32_t capture_row;
	uint32_t thread_index;
	uint32_t stack_index;
	uint32_t late_ns;
	bool has_activity;
	uint8_t activity[EVENT_ACTIVITY_SIZE];
	bool has_labels;
	struct event_labels event_labels;
	bool sorted; /* no event after this one in the stream is older */
	uint64_t sorted_ticks;
	uint64_t last_ticks; /* of the newest event so far */

	VEC(uint32_t) schema_of;      /* by metadata id */
	VEC(struct decoder_row) rows; /* item 0 unused */
	VEC(uint8_t) has_row;         /* by thread index */
	VEC(uint32_t) direct_rows;    /* by row index below DIRECT_ROWS; 0: see other_rows */
	struct map other_rows;
	VEC(struct id_range) ranges; /* of stack ids */
	VEC(uint32_t) stack_indexes;
	struct map labels; /* label list -> index in label_lists plus 1 */
	VEC(struct decoded_labels) label_lists;
	struct bytes label_bytes; /* labels that trace/event_label.h reads, list by list */
	/* of nettrace_decoder_move_stacks(): parallel to stack_indexes */
	VEC(uint32_t) moved;
	VEC(uint64_t) frames;
	struct bytes scratch;
	uint64_t pending_lost; /* reported with the next event */
	uint64_t lost;
};

struct text_span {
	const char *text;
	size_t len;
};

static inline struct text_span read_string(struct cursor *c)
{
	uint32_t len = cursor_varuint32(c);
	const uint8_t *text = cursor_take(c, len);

	return text ? (struct text_span){ (const char *)text, len } : (struct text_span){ "", 0 };
}

static inline bool span_is(struct text_span span, const char *text)
{
	return span.len == strlen(text) && memcmp(span.text, text, span.len) == 0;
}

static inline uint64_t offset_of(const struct nettrace_decoder *d, const uint8_t *at)
{
	return d->base + (uint64_t)(at - d->buffer);
}

static inline uint64_t ticks_to_ns(const struct nettrace_decoder *d, uint64_t ticks)
{
	__extension__ typedef unsigned __int128 u128;

	if (d->plain_ns)
		return ticks;
	return (uint64_t)((u128)ticks * 1000000000u / d->head.ticks_per_second);
}

/* The index of a text in the trace. */
uint32_t span_text(struct nettrace_decoder *d, struct text_span span);

/* The stream is malformed at this offset. Returns -EBADMSG. */
int stream_broken(struct nettrace_decoder *d, uint64_t offset, struct diag *diag,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Returns -ENOMEM. */
int stream_no_memory(struct nettrace_decoder *d, struct diag *diag);

#endif
