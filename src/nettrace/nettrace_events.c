/* See nettrace_events.h. */
#include "nettrace/nettrace_events.h"

#include <string.h>

#include "nettrace/nettrace_metadata.h"
#include "nettrace/nettrace_rows.h"
#include "nettrace/nettrace_stacks.h"
#include "nettrace/nettrace_tags.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

int nettrace_begin_events(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	uint16_t header = cursor_u16(&c);
	uint16_t flags = cursor_u16(&c);

	if (header < EVENTS_HEADER_SIZE || header > (size_t)(c.end - at))
		return stream_broken(d, offset_of(d, at), diag,
			"an event block with a header of %u bytes", header);
	d->compressed = flags & EVENTS_COMPRESSED;
	d->begin = (size_t)(at - d->buffer) + header;
	d->events_end = offset_of(d, c.end);
	d->metadata_id = d->sequence = d->cpu = d->stack = d->label = d->size = 0;
	d->capture = d->thread = d->ticks = 0;
	d->schema_index = d->capture_row = d->thread_index = d->stack_index = d->late_ns = 0;
	d->has_labels = false;
	d->has_activity = false;
	memset(d->activity, 0, sizeof(d->activity));
	if (d->head.version == 6) {
		/* Row 0 is a row like any other (other writers use it), and the default. */
		d->capture_row = row_find(d, 0);
		d->thread_index = d->capture_row ? d->rows.items[d->capture_row].thread_index : 0;
	}
	return 0;
}

/*
 * LEB128. With 10 bytes left no check is needed inside. *failed: no more bytes, or above 64 bits.
 */
static inline uint64_t varuint(const uint8_t **at, const uint8_t *end, bool *failed)
{
	const uint8_t *p = *at;

	if (__builtin_expect(p < end && *p < 0x80, 1)) {
		*at = p + 1;
		return *p;
	}
	uint64_t value = 0;
	for (unsigned shift = 0; p < end; shift += 7) {
		uint8_t byte = *p++;
		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*at = p;
			return value;
		}
		if (shift == 63)
			break;
	}
	*failed = true;
	*at = end;
	return 0;
}

static inline uint32_t varuint32(const uint8_t **at, const uint8_t *end, bool *failed)
{
	uint64_t value = varuint(at, end, failed);

	if (__builtin_expect(value > UINT32_MAX, 0)) {
		*failed = true;
		return 0;
	}
	return (uint32_t)value;
}

/* The row of the thread that captured the event, made if version 4. 0: undefined, or no memory. */
static uint32_t row_for(struct nettrace_decoder *d, uint64_t id)
{
	uint32_t row = row_find(d, id);

	return row || d->head.version == 6 ? row : row_add(d, id);
}

static int take_thread(struct nettrace_decoder *d, const uint8_t *at, struct diag *diag)
{
	if (d->names_only)
		return 0;
	uint32_t row = row_for(d, d->thread);

	if (!row)
		return d->head.version == 6 || d->rows.count > ROWS_MAX
			       ? stream_broken(d, offset_of(d, at), diag,
					 "an event of thread row %llu, which is not defined",
					 (unsigned long long)d->thread)
			       : stream_no_memory(d, diag);
	if (d->head.version == 4 && !d->rows.items[row].thread_index) {
		d->rows.items[row].thread_index =
			d->placed ? d->place(d->place_context, d->thread)
				  : trace_thread(d->trace, d->head.process_id, (uint32_t)d->thread);
		if (!d->rows.items[row].thread_index)
			return stream_no_memory(d, diag);
	}
	d->thread_index = d->rows.items[row].thread_index;
	return 0;
}

static int take_capture(struct nettrace_decoder *d, const uint8_t *at, struct diag *diag)
{
	d->capture_row = row_for(d, d->capture);
	if (d->capture_row)
		return 0;
	return d->head.version == 6 || d->rows.count > ROWS_MAX
		       ? stream_broken(d, offset_of(d, at), diag,
				 "an event captured by row %llu, which is not defined",
				 (unsigned long long)d->capture)
		       : stream_no_memory(d, diag);
}

static void take_label(struct nettrace_decoder *d)
{
	uint32_t at = d->label ? map_get(&d->labels, d->label) : 0;
	const struct decoded_labels *list = at ? &d->label_lists.items[at - 1] : NULL;

	d->late_ns = list ? list->late_ns : 0;
	d->has_labels = list && (list->labels.which || list->labels.list_size);
	if (d->has_labels) {
		d->event_labels = list->labels;
		d->event_labels.list =
			list->labels.list_size ? d->label_bytes.data + list->bytes_at : NULL;
	}
	d->has_activity = list && list->has_activity;
	if (d->has_activity)
		memcpy(d->activity, list->activity, sizeof(d->activity));
}

/* Version 4 has the guids in the event; all zero means none. */
static void take_activity(struct nettrace_decoder *d)
{
	static const uint8_t none[EVENT_ACTIVITY_SIZE];

	d->has_activity = memcmp(d->activity, none, sizeof(none)) != 0;
}

/* What an event is worth: read from the begin of its payload. */
static uint64_t value_of(const struct nettrace_decoder *d, const struct schema *schema,
	const uint8_t *payload, uint32_t size)
{
	struct payload_cpu sample;

	if (schema->kind == EVENT_SAMPLE)
		return payload_read_cpu(payload, size, d->trace->recording.period_ns, &sample) == 0
			       ? sample.weight_ns
			       : 0;
	struct cursor c = cursor_of(payload, size);
	if (schema->kind == EVENT_LOSS) {
		size_t units;
		(void)cursor_utf16z(&c, &units); /* source and unit precede the count */
		(void)cursor_utf16z(&c, &units);
	}
	return cursor_varuint(&c);
}

/* An event without its compression, both versions. */
static int read_plain_event(struct nettrace_decoder *d, const uint8_t **ret_payload,
	struct diag *diag)
{
	const uint8_t *at = d->buffer + d->begin;
	const uint8_t *end = d->buffer + (d->events_end - d->base);
	bool v4 = d->head.version == 4;
	struct cursor c = cursor_of(at, (size_t)(end - at));
	uint32_t size = cursor_u32(&c);
	struct cursor row = cursor_sub(&c, size);

	uint32_t metadata = cursor_u32(&row);
	d->metadata_id = metadata & ~EVENT_UNSORTED;
	d->sorted = !(metadata & EVENT_UNSORTED);
	d->sequence = cursor_u32(&row);
	d->thread = cursor_u64(&row);
	d->capture = cursor_u64(&row);
	d->cpu = cursor_u32(&row);
	d->stack = cursor_u32(&row);
	d->ticks = cursor_u64(&row);
	const uint8_t *activity = v4 ? cursor_take(&row, EVENT_ACTIVITY_SIZE) : NULL;
	if (activity)
		memcpy(d->activity, activity, EVENT_ACTIVITY_SIZE);
	if (!v4)
		d->label = cursor_u32(&row);
	d->size = cursor_u32(&row);
	*ret_payload = cursor_take(&row, d->size);
	if (!*ret_payload || c.short_read)
		return stream_broken(d, offset_of(d, at), diag,
			"an event of %u bytes passes the end of its block", size);
	if (v4 && cursor_left(&c)) /* each begins at a multiple of 4 */
		cursor_skip(&c, (size_t)(-offset_of(d, c.at) & 3));
	d->begin = (size_t)(c.at - d->buffer);
	int r = take_capture(d, at, diag);
	if (r == 0)
		r = take_thread(d, at, diag);
	if (v4)
		take_activity(d);
	else
		take_label(d);
	d->stack_index = stack_find(d, d->stack);
	return r;
}

static int read_compressed_event(struct nettrace_decoder *d, const uint8_t **ret_payload,
	struct diag *diag)
{
	const uint8_t *const at = d->buffer + d->begin;
	const uint8_t *const end = d->buffer + (d->events_end - d->base);
	const uint8_t *p = at + 1;
	uint8_t flags = *at;
	bool failed = false;
	bool v4 = d->head.version == 4;
	bool new_label = false;
	int r;

	if (flags & HAS_METADATA)
		d->metadata_id = varuint32(&p, end, &failed);
	if (flags & HAS_CAPTURE) {
		d->sequence += varuint32(&p, end, &failed) + 1;
		uint64_t capture = varuint(&p, end, &failed);
		d->cpu = varuint32(&p, end, &failed);
		if (capture != d->capture || !d->capture_row) {
			d->capture = capture;
			r = failed ? 0 : take_capture(d, at, diag);
			if (r < 0)
				return r;
		}
	} else if (d->metadata_id || !v4) {
		d->sequence++;
	}
	if (flags & HAS_THREAD) {
		d->thread = varuint(&p, end, &failed);
		r = failed ? 0 : take_thread(d, at, diag);
		if (r < 0)
			return r;
	}
	if (flags & HAS_STACK) {
		d->stack = varuint32(&p, end, &failed);
		d->stack_index = stack_find(d, d->stack);
	}
	d->ticks += varuint(&p, end, &failed);
	if (v4) {
		size_t guids = (flags & HAS_ACTIVITY_V4 ? 16u : 0) +
			       (flags & HAS_RELATED_ACTIVITY_V4 ? 16u : 0);
		if (guids > (size_t)(end - p)) {
			failed = true;
		} else if (guids) {
			if (flags & HAS_ACTIVITY_V4)
				memcpy(d->activity, p, 16);
			if (flags & HAS_RELATED_ACTIVITY_V4)
				memcpy(d->activity + 16, p + guids - 16, 16);
			p += guids;
			take_activity(d);
		}
	} else if (flags & HAS_LABELS) {
		d->label = varuint32(&p, end, &failed);
		new_label = true;
	}
	if (flags & HAS_SIZE)
		d->size = varuint32(&p, end, &failed);
	if (failed || d->size > (size_t)(end - p))
		return stream_broken(d, offset_of(d, at), diag,
			"an event passes the end of its block");
	if (new_label)
		take_label(d);
	d->sorted = flags & IS_SORTED;
	*ret_payload = p;
	d->begin = (size_t)(p + d->size - d->buffer);
	return 0;
}

int nettrace_read_event(struct nettrace_decoder *d, struct event *ret_event, struct diag *diag)
{
	const uint64_t at = d->base + d->begin;
	uint32_t last_metadata = d->metadata_id;
	const uint8_t *payload;
	int r = d->compressed ? read_compressed_event(d, &payload, diag)
			      : read_plain_event(d, &payload, diag);

	if (r < 0)
		return r;
	/* Not of metadata records, which have the time of their writing: older events follow. */
	if (d->sorted)
		d->sorted_ticks = d->ticks;
	if (d->ticks > d->last_ticks)
		d->last_ticks = d->ticks;
	if (d->metadata_id != last_metadata || !d->schema_index) {
		d->schema_index = d->metadata_id < d->schema_of.count
					  ? d->schema_of.items[d->metadata_id]
					  : 0;
		if (!d->schema_index)
			return stream_broken(d, at, diag,
				"an event of metadata id %u, which is not defined", d->metadata_id);
	}
	struct decoder_row *row = &d->rows.items[d->capture_row];
	if (row->seen && d->sequence == row->last_sequence + 1) {
		row->last_sequence = d->sequence;
	} else {
		/* For the first event of a version 4 thread nothing is known to compare with. */
		row_count_lost(d, row, d->sequence - 1);
		row->last_sequence = d->sequence;
	}
	uint64_t lost = d->pending_lost;
	d->pending_lost = 0;
	if (lost > UINT32_MAX) {
		d->pending_lost = lost - UINT32_MAX;
		lost = UINT32_MAX;
	}
	const struct schema *schema = &d->trace->schemas.items[d->schema_index];
	*ret_event = (struct event){
		.time_ns = ticks_to_ns(d, d->ticks),
		.payload = payload,
		.activity = d->has_activity ? d->activity : NULL,
		.labels = d->has_labels ? &d->event_labels : NULL,
		.payload_size = d->size,
		.thread_index = d->thread_index,
		.stack_index = d->stack_index,
		.schema_index = d->schema_index,
		.lost_before = (uint32_t)lost,
		.late_ns = d->late_ns,
		.cpu = row->no_cpu || d->cpu > INT32_MAX ? EVENT_CPU_UNKNOWN : (int32_t)d->cpu,
		.kind = schema->kind,
	};
	if (schema->provider_kind == PROVIDER_UNIVERSAL_EVENTS || schema->kind == EVENT_LOSS)
		ret_event->value = value_of(d, schema, payload, d->size);
	if (!d->names_only && !d->placed && ret_event->time_ns > d->trace->recording.end_ns)
		d->trace->recording.end_ns = ret_event->time_ns;
	return 1;
}

/* Version 4: metadata is sent as events, too. */
int nettrace_read_metadata_events(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	size_t content_end = (size_t)(c.end - d->buffer);
	int r = nettrace_begin_events(d, c, diag);

	while (r == 0 && d->begin < content_end) {
		const uint8_t *payload;
		r = d->compressed ? read_compressed_event(d, &payload, diag)
				  : read_plain_event(d, &payload, diag);
		if (r == 0)
			r = nettrace_read_metadata_v4(d, cursor_of(payload, d->size), diag);
	}
	return r;
}
