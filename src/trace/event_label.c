/* See event_label.h. */
#include "trace/event_label.h"

#include "base/cursor.h"

bool event_label_has_kind(unsigned kind)
{
	return kind >= LABEL_TRACE_ID && kind <= LABEL_NUMBER;
}

static const char *read_text(struct cursor *c, size_t *ret_len)
{
	uint32_t len = cursor_varuint32(c);
	const uint8_t *text = cursor_take(c, len);

	*ret_len = text ? len : 0;
	return text ? (const char *)text : "";
}

bool event_label_read(struct cursor *c, unsigned kind, struct event_label *ret_label)
{
	struct event_label label = { .kind = (enum event_label_kind)kind };

	switch (label.kind) {
	case LABEL_TRACE_ID:
		label.trace_id = cursor_take(c, LABEL_TRACE_ID_SIZE);
		break;
	case LABEL_SPAN_ID:
		label.span_id = cursor_u64(c);
		break;
	case LABEL_TEXT:
		label.key = read_text(c, &label.key_len);
		label.text = read_text(c, &label.text_len);
		break;
	case LABEL_NUMBER:
		label.key = read_text(c, &label.key_len);
		label.number = cursor_varint(c);
		break;
	}
	if (c->short_read)
		return false;
	*ret_label = label;
	return true;
}

bool event_label_next(struct cursor *c, struct event_label *ret_label)
{
	if (!cursor_left(c))
		return false;
	unsigned kind = cursor_u8(c) & LABEL_KIND_MASK;

	return event_label_has_kind(kind) && event_label_read(c, kind, ret_label);
}
