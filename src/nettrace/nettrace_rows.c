/* See nettrace_rows.h. */
#include "nettrace/nettrace_rows.h"

#include <string.h>

#include "nettrace/nettrace_tags.h"
#include "trace/event_label.h"
#include "trace/trace.h"

#define DIRECT_ROWS     65536u      /* rows below are found without hashing, */
#define DIRECT_GAP      256u        /* if they are dense, which thread ids are not */
#define LABEL_BYTES_MAX (64u << 20) /* of labels between two sequence points, which end them */

uint32_t row_add(struct nettrace_decoder *d, uint64_t id)
{
	if (d->rows.count > ROWS_MAX || !vec_push(&d->rows))
		return 0;
	uint32_t row = d->rows.count - 1;

	if (id < DIRECT_ROWS && id <= d->direct_rows.count + DIRECT_GAP) {
		while (d->direct_rows.count <= id)
			if (!vec_push(&d->direct_rows))
				return 0;
		d->direct_rows.items[id] = row;
	} else if (!map_put(&d->other_rows, id, row)) {
		return 0;
	}
	return row;
}

static void forget_rows(struct nettrace_decoder *d)
{
	d->rows.count = 1;
	vec_reset(&d->has_row);
	vec_reset(&d->direct_rows);
	map_reset(&d->other_rows);
}

void row_count_lost(struct nettrace_decoder *d, struct decoder_row *row, uint32_t attempted)
{
	uint32_t lost = attempted - row->last_sequence;

	/* Numbers that go back are a restart (a reused thread id), not 2^31 losses. */
	if (row->seen && lost < 1u << 31) {
		d->lost += lost;
		d->pending_lost += lost;
	}
	row->last_sequence = attempted;
	row->seen = true;
}

static void forget_stacks(struct nettrace_decoder *d)
{
	vec_reset(&d->ranges);
	vec_reset(&d->stack_indexes);
	map_reset(&d->labels);
	vec_reset(&d->label_lists);
	bytes_reset(&d->label_bytes);
}

int nettrace_read_sequence_point(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	bool v4 = d->head.version == 4;

	uint64_t ticks = cursor_u64(&c);
	uint32_t flags = v4 ? 0 : cursor_u32(&c);
	uint32_t count = cursor_u32(&c);
	for (uint32_t i = 0; i < count && !c.short_read; i++) {
		uint64_t id = v4 ? cursor_u64(&c) : cursor_varuint(&c);
		uint32_t sequence = v4 ? cursor_u32(&c) : cursor_varuint32(&c);
		uint32_t row = row_find(d, id);
		if (!row && v4)
			row = row_add(d, id);
		if (row && !c.short_read)
			row_count_lost(d, &d->rows.items[row], sequence);
	}
	if (c.short_read)
		return stream_broken(d, offset_of(d, at), diag,
			"a sequence point for %u threads is too short", count);
	forget_stacks(d);
	/* No later event is older than this. A time after all events so far is not believed. */
	if (ticks > d->sorted_ticks)
		d->sorted_ticks = ticks < d->last_ticks ? ticks : d->last_ticks;
	if (flags & SEQUENCE_POINT_FORGETS_THREADS)
		forget_rows(d);
	if (flags & SEQUENCE_POINT_FORGETS_METADATA)
		vec_reset(&d->schema_of);
	return 0;
}

/*
 * A new row's thread. Rows precede their events, so a second row of a main thread is a reused pid.
 */
static uint32_t row_thread(struct nettrace_decoder *d, uint32_t pid, uint32_t tid)
{
	struct trace *trace = d->trace;
	uint32_t thread = trace_thread(trace, pid, tid);

	if (thread && d->ours && pid == tid && thread < d->has_row.count &&
		d->has_row.items[thread]) {
		uint32_t process = trace_new_process(trace, pid);
		thread = process ? trace->processes.items[process].main_thread : 0;
	}
	while (d->has_row.count <= thread)
		if (!vec_push(&d->has_row))
			return 0;
	d->has_row.items[thread] = 1;
	return thread;
}

int nettrace_read_threads(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	while (cursor_left(&c) && !c.short_read) {
		const uint8_t *at = c.at;
		struct cursor row = cursor_sub(&c, cursor_u16(&c));
		uint64_t id = cursor_varuint(&row);
		struct text_span name = { "", 0 };
		uint64_t pid = 0;
		uint64_t tid = 0;
		bool known = true;
		while (known && cursor_left(&row)) {
			switch (cursor_u8(&row)) {
			case THREAD_NAME:
				name = read_string(&row);
				break;
			case THREAD_PID:
				pid = cursor_varuint(&row);
				break;
			case THREAD_TID:
				tid = cursor_varuint(&row);
				break;
			case THREAD_KEY_VALUE:
				(void)read_string(&row); /* key and value: not kept */
				(void)read_string(&row);
				break;
			default:
				/* a tag of unknown length: the fields before it are used */
				known = false;
			}
		}
		if (row.short_read)
			return stream_broken(d, offset_of(d, at), diag,
				"a thread row is too short");
		if (row_find(d, id))
			return stream_broken(d, offset_of(d, at), diag,
				"thread row %llu is given twice", (unsigned long long)id);
		uint32_t index = row_add(d, id);
		if (!index)
			return d->rows.count > ROWS_MAX
				       ? stream_broken(d, offset_of(d, at), diag,
						 "more than %u thread rows", ROWS_MAX)
				       : stream_no_memory(d, diag);
		/* Numbers begin with 1 for every row, so those before the first event are lost. */
		d->rows.items[index].seen = true;
		d->rows.items[index].no_cpu = !pid && !tid && span_is(name, THREAD_NO_CPU_NAME);
		if ((!pid && !tid) || d->names_only)
			continue;
		if (!pid)
			pid = d->head.process_id;
		uint32_t thread = row_thread(d, (uint32_t)pid, (uint32_t)(tid ? tid : pid));
		if (!thread)
			return stream_no_memory(d, diag);
		if (name.len && !d->trace->threads.items[thread].name)
			d->trace->threads.items[thread].name = span_text(d, name);
		d->rows.items[index].thread_index = thread;
	}
	if (c.short_read)
		return stream_broken(d, offset_of(d, c.end), diag,
			"the thread rows pass the end of their block");
	return 0;
}

/* The list of the event at hand; NULL when there is no memory. */
static struct decoded_labels *keep_label(struct nettrace_decoder *d, uint32_t id)
{
	uint32_t at = map_get(&d->labels, id);

	if (at)
		return &d->label_lists.items[at - 1];
	if (!vec_push(&d->label_lists))
		return NULL;
	if (!map_put(&d->labels, id, d->label_lists.count)) {
		d->label_lists.count--;
		return NULL;
	}
	return vec_last(&d->label_lists);
}

/* These labels replace what the event's metadata states. False: no memory. */
static bool read_override(struct nettrace_decoder *d, struct cursor *c, unsigned kind, uint32_t id)
{
	struct decoded_labels none = { 0 };
	struct decoded_labels *list = d->names_only ? &none : keep_label(d, id);

	if (!list)
		return false;
	struct event_labels *labels = &list->labels;

	switch (kind) {
	case LABEL_OPCODE:
		labels->opcode = cursor_u8(c);
		labels->which |= EVENT_LABEL_OPCODE;
		break;
	case LABEL_KEYWORDS:
		labels->keywords = cursor_u64(c);
		labels->which |= EVENT_LABEL_KEYWORDS;
		break;
	case LABEL_LEVEL:
		labels->level = cursor_u8(c);
		labels->which |= EVENT_LABEL_LEVEL;
		break;
	default:
		labels->version = cursor_u8(c);
		labels->which |= EVENT_LABEL_VERSION;
		break;
	}
	return true;
}

/* A label with a key, or a trace or span id: bytes are kept, but for late_ns. False: no memory. */
static bool read_label(struct nettrace_decoder *d, struct cursor *c, unsigned kind, uint32_t id)
{
	const uint8_t *begin = c->at - 1; /* the kind */
	struct event_label label;

	if (!event_label_read(c, kind, &label))
		return true;
	bool late = kind == LABEL_NUMBER &&
		    span_is((struct text_span){ label.key, label.key_len }, LABEL_LATE_KEY) &&
		    label.number > 0;
	if (!late && d->names_only)
		return true;
	struct decoded_labels *list = keep_label(d, id);
	if (!list)
		return false;
	if (late) {
		list->late_ns = label.number > UINT32_MAX ? UINT32_MAX : (uint32_t)label.number;
		return true;
	}
	/* the first one, or of a list that is given again */
	if (list->bytes_at + list->labels.list_size != d->label_bytes.len) {
		list->bytes_at = (uint32_t)d->label_bytes.len;
		list->labels.list_size = 0;
	}
	size_t size = (size_t)(c->at - begin);
	bytes_add(&d->label_bytes, begin, size);
	list->labels.list_size += (uint32_t)size;
	return !d->label_bytes.failed;
}

/* All labels are kept that have a known kind. */
int nettrace_read_labels(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	uint32_t first = cursor_u32(&c);
	uint32_t count = cursor_u32(&c);

	for (uint32_t i = 0; i < count; i++) {
		uint8_t kind;
		do {
			kind = cursor_u8(&c);
			unsigned k = kind & LABEL_KIND_MASK;
			if (event_label_has_kind(k)) {
				if (!c.short_read && !read_label(d, &c, k, first + i))
					return stream_no_memory(d, diag);
			} else if (k == LABEL_ACTIVITY || k == LABEL_RELATED_ACTIVITY) {
				const uint8_t *guid = cursor_take(&c, 16);
				struct decoded_labels *list =
					guid && !d->names_only ? keep_label(d, first + i) : NULL;
				if (!list && guid && !d->names_only)
					return stream_no_memory(d, diag);
				if (!list)
					continue;
				list->has_activity = true;
				memcpy(list->activity + (k == LABEL_RELATED_ACTIVITY ? 16 : 0),
					guid, 16);
			} else if (k >= LABEL_OPCODE && k <= LABEL_VERSION) {
				if (!c.short_read && !read_override(d, &c, k, first + i))
					return stream_no_memory(d, diag);
			} else {
				cursor_skip(&c, SIZE_MAX);
			}
		} while (!(kind & LABEL_LAST) && !c.short_read);
		if (c.short_read)
			return stream_broken(d, offset_of(d, at), diag,
				"the label lists pass the end of their block");
		if (d->label_bytes.len > LABEL_BYTES_MAX)
			return stream_broken(d, offset_of(d, at), diag,
				"more than %u bytes of labels before a sequence point",
				LABEL_BYTES_MAX);
	}
	return 0;
}
