/*
 * Labels of an event that have no member in `struct event`: trace id, span id, and keys with
 * values.
 *
 * `event_labels.list` has them as in a nettrace file of version 6 (docs/formats/nettrace.md, "Label
 * lists"). They are decoded only where they are shown. Everything decoded is borrowed.
 */
#ifndef SPOOR_TRACE_EVENT_LABEL_H
#define SPOOR_TRACE_EVENT_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor;

#define LABEL_TRACE_ID_SIZE 16u
#define LABEL_KIND_MASK     0x7fu /* bit 7 marks the last label of a list in the file */

enum event_label_kind {
	LABEL_TRACE_ID = 3,
	LABEL_SPAN_ID = 4,
	LABEL_TEXT = 5,   /* a key and a text */
	LABEL_NUMBER = 6, /* a key and a number */
};

struct event_label {
	enum event_label_kind kind;
	const uint8_t *trace_id; /* LABEL_TRACE_ID_SIZE bytes, in the order of the W3C text */
	uint64_t span_id;
	const char *key; /* UTF-8 without a NUL, unchecked, as `text` */
	size_t key_len;
	const char *text;
	size_t text_len;
	int64_t number;
};

/* Whether event_label_read() knows the kind. */
bool event_label_has_kind(unsigned kind);

/* The data of a label, after its kind, which is a known one. False: the bytes end within it. */
bool event_label_read(struct cursor *c, unsigned kind, struct event_label *ret_label);

/* The next label of a list. False at the end. */
bool event_label_next(struct cursor *c, struct event_label *ret_label);

#endif
