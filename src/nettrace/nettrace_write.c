/*
 * Writing nettrace version 6. See nettrace_write.h for what the sink promises,
 * docs/formats/nettrace.md for the layout.
 *
 * A flush becomes one piece of bytes: [SequencePoint] Metadata Thread LabelList Stack Event... . It
 * is encoded once; the ids assigned in it count as written from then on, so when write() fails the
 * piece is kept and written again later, never encoded again.
 *
 * There are two capture rows, whose sequence numbers carry the losses: one for everything that has
 * a CPU, one for the rest. One row a CPU would be more exact in theory, but a change of row costs
 * up to seven bytes (the number's difference is taken modulo 2^32, so every second change costs
 * five for it alone), a change of CPU within a row three. Loss events have the CPU.
 */
#include "nettrace/nettrace_write.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/vec.h"
#include "nettrace/label_lists.h"
#include "nettrace/metadata_row.h"
#include "nettrace/nettrace_block.h"
#include "nettrace/nettrace_file.h"
#include "trace/event.h"
#include "trace/payload_layout.h"
#include "trace/trace.h"

/* The most that is buffered between two flushes; beyond it, the sink flushes itself. */
#define BUFFER_EVENTS_MAX  65536u
#define BUFFER_PAYLOAD_MAX (4u << 20)

/* At this size the stacks of the file are forgotten, and the next ones numbered from the start. */
#define STACKS_MAX      65536u
#define STACK_BYTES_MAX (16u << 20)

/* The stock reader has 16 bits for a stack's size; one of exactly 8191 frames ends its process. */
#define STACK_FRAMES_MAX 8190u

/* A gap in the sequence numbers, and their sum, must stay below 2^31 for the stock reader. */
#define LOST_MAX (1u << 30)

/* After so many lists of labels the file numbers them from the start. */
#define LABELS_MAX (1u << 20)

/* Payloads of a new schema that show how many bytes its Booleans have. */
#define LAYOUT_EVENTS_MAX 64u

#define ROW_CPUS   1u /* capture rows */
#define ROW_OTHERS 2u
#define ROW_FIRST  3u /* of a thread; an index is never given twice */

/* An event that waits for the flush. */
struct kept_event {
	uint64_t time_ns;
	uint32_t payload_at;
	uint32_t payload_size;
	uint32_t thread_index;
	uint32_t stack_index;
	uint32_t schema_index;
	uint32_t lost_before;
	uint32_t label; /* of label_lists_keep() */
	int16_t cpu;
	uint8_t kind;
};

struct nettrace_sink {
	struct nettrace_file file;
	struct trace *trace;
	uint64_t last_ns; /* time of the last event taken */
	uint64_t lost_total;

	VEC(struct kept_event) events;
	struct label_lists labels;
	struct bytes payloads;

	VEC(uint32_t) stack_ids; /* by trace stack: its id in the file; 0 not there */
	VEC(uint32_t) new_stacks;
	VEC(uint32_t) thread_rows;  /* by trace thread: its row in the file; 0 not there */
	uint32_t row_count;         /* rows given to threads */
	VEC(uint32_t) metadata_ids; /* by trace schema; 0 not there */
	VEC(uint8_t) byte_bools;    /* by trace schema: its Booleans are written as bytes */
	uint32_t metadata_count;
	uint32_t stack_count; /* since the last sequence point */
	size_t stack_bytes;
	bool rows_written;    /* the two capture rows */
	bool restart;         /* a sequence point is due before the next block */
	uint32_t sequence[2]; /* of each capture row: the last number given */

	struct bytes out; /* encoded, not yet in the file; empty most of the time */
	struct nettrace_sink_counts out_counts; /* what `out` adds */
	struct nettrace_sink_counts counts;
};

static struct nettrace_sink *nettrace_of(struct sink *sink)
{
	return (struct nettrace_sink *)(void *)sink;
}

const struct nettrace_sink_counts *nettrace_sink_counts(const struct sink *sink)
{
	return &((const struct nettrace_sink *)(const void *)sink)->counts;
}

/* The encoded piece was written to the file: adds its counts to the totals. */
static void count_out(struct nettrace_sink *s)
{
	s->counts.bytes = s->file.offset;
	s->counts.events += s->out_counts.events;
	for (size_t i = 0; i < sizeof(s->counts.events_by_kind) / sizeof(uint64_t); i++)
		s->counts.events_by_kind[i] += s->out_counts.events_by_kind[i];
	s->counts.stacks += s->out_counts.stacks;
	s->counts.stack_frames += s->out_counts.stack_frames;
	s->counts.stack_bytes += s->out_counts.stack_bytes;
	s->counts.event_bytes += s->out_counts.event_bytes;
	s->out_counts = (struct nettrace_sink_counts){ 0 };
}

/*
 * The schema whose row was the first of this provider and event id. Readers let the last row win
 * for all events, so that schema has the id; any other layout goes under id + 0x8000.
 */
static uint32_t first_of_event(const struct nettrace_sink *s, uint32_t schema_index)
{
	const struct schema *schema = &s->trace->schemas.items[schema_index];
	uint32_t first = schema_index;
	uint32_t first_id = UINT32_MAX;

	for (uint32_t i = 1; i < s->metadata_ids.count; i++) {
		const struct schema *other = &s->trace->schemas.items[i];
		uint32_t id = s->metadata_ids.items[i];
		if (id && id < first_id && other->provider == schema->provider &&
			other->event_id == schema->event_id) {
			first = i;
			first_id = id;
		}
	}
	return first;
}

/* Whether the schema's waiting payloads (up to LAYOUT_EVENTS_MAX) have Booleans of one byte. */
static bool payloads_fit(const struct nettrace_sink *s, uint32_t at, bool byte_bools)
{
	uint32_t schema_index = s->events.items[at].schema_index;
	const struct schema *schema = &s->trace->schemas.items[schema_index];
	unsigned seen = 0;

	for (uint32_t i = at; i < s->events.count && seen < LAYOUT_EVENTS_MAX; i++) {
		const struct kept_event *kept = &s->events.items[i];
		const uint8_t *payload = s->payloads.data + kept->payload_at;
		if (kept->schema_index != schema_index)
			continue;
		seen++;
		if (!payload_layout_fits(schema,
			    (struct payload_layout){ .byte_bools = byte_bools }, payload,
			    kept->payload_size) &&
			!payload_layout_fits(schema,
				(struct payload_layout){
					.byte_bools = byte_bools, .counted_by_4 = true },
				payload, kept->payload_size))
			return false;
	}
	return true;
}

/*
 * Runtimes describe Booleans of one byte and of four alike; the payloads' sizes decide. Event `at`
 * is the first of its schema.
 */
static bool has_byte_bools(const struct nettrace_sink *s, uint32_t at)
{
	uint32_t schema_index = s->events.items[at].schema_index;
	const struct schema *schema = &s->trace->schemas.items[schema_index];
	uint32_t first = first_of_event(s, schema_index);

	if (first != schema_index &&
		schema_has_same_fields(schema, &s->trace->schemas.items[first]))
		return s->byte_bools.items[first];
	return metadata_row_can_have_byte_bools(schema) && !payloads_fit(s, at, false) &&
	       payloads_fit(s, at, true);
}

static int put_metadata(struct nettrace_sink *s)
{
	const struct trace *trace = s->trace;
	struct bytes *out = &s->out;
	size_t block = 0;
	bool begun = false;

	if (!vec_reserve(&s->metadata_ids, trace->schemas.count - s->metadata_ids.count) ||
		!vec_reserve(&s->byte_bools, trace->schemas.count - s->byte_bools.count))
		return -ENOMEM;
	while (s->metadata_ids.count < trace->schemas.count)
		s->metadata_ids.items[s->metadata_ids.count++] = 0;
	while (s->byte_bools.count < trace->schemas.count)
		s->byte_bools.items[s->byte_bools.count++] = 0;
	for (uint32_t i = 0; i < s->events.count; i++) {
		uint32_t schema = s->events.items[i].schema_index;
		if (s->metadata_ids.items[schema])
			continue;
		if (!begun) {
			block = block_begin(out);
			bytes_u16(out, 0);
			begun = true;
		} else if (out->len - block > BLOCK_SIZE_AIM) {
			(void)block_end(out, block, BLOCK_METADATA);
			block = block_begin(out);
			bytes_u16(out, 0);
		}
		s->byte_bools.items[schema] = has_byte_bools(s, i);
		s->metadata_ids.items[schema] = ++s->metadata_count;
		const struct metadata_row row = {
			.schema = &trace->schemas.items[schema],
			.first = &trace->schemas.items[first_of_event(s, schema)],
			.id = s->metadata_ids.items[schema],
			.byte_bools = s->byte_bools.items[schema],
		};
		metadata_row_put(out, trace, &row);
	}
	if (begun)
		(void)block_end(out, block, BLOCK_METADATA);
	return 0;
}

static void put_thread_row(struct bytes *out, uint64_t row, const char *name, size_t name_len,
	bool has_ids, uint32_t pid, uint32_t tid)
{
	size_t at = out->len;

	bytes_u16(out, 0);
	bytes_varuint(out, row);
	if (name_len) {
		bytes_u8(out, THREAD_NAME);
		block_string(out, name, name_len);
	}
	if (has_ids) {
		bytes_u8(out, THREAD_PID);
		bytes_varuint(out, pid);
		bytes_u8(out, THREAD_TID);
		bytes_varuint(out, tid);
	}
	bytes_set_u16(out, at, (uint16_t)(out->len - at - 2));
}

static int put_threads(struct nettrace_sink *s)
{
	const struct trace *trace = s->trace;
	struct bytes *out = &s->out;
	size_t block = block_begin(out);
	size_t empty = out->len;

	if (!vec_reserve(&s->thread_rows, trace->threads.count - s->thread_rows.count))
		return -ENOMEM;
	while (s->thread_rows.count < trace->threads.count)
		s->thread_rows.items[s->thread_rows.count++] = 0;
	if (!s->rows_written) {
		put_thread_row(out, ROW_CPUS, "cpus", 4, false, 0, 0);
		put_thread_row(out, ROW_OTHERS, THREAD_NO_CPU_NAME, strlen(THREAD_NO_CPU_NAME),
			false, 0, 0);
		s->rows_written = true;
	}
	for (uint32_t i = 0; i < s->events.count; i++) {
		uint32_t index = s->events.items[i].thread_index;
		if (!index || s->thread_rows.items[index])
			continue;
		s->thread_rows.items[index] = ROW_FIRST + s->row_count++;
		const struct thread *thread = &trace->threads.items[index];
		size_t name_len = strtab_len(&trace->strings, thread->name);
		put_thread_row(out, s->thread_rows.items[index], trace_text(trace, thread->name),
			name_len < 1024 ? name_len : 1024, thread->process != 0,
			trace->processes.items[thread->process].pid, thread->tid);
		if (out->len - block > BLOCK_SIZE_AIM) {
			(void)block_end(out, block, BLOCK_THREAD);
			block = block_begin(out);
			empty = out->len;
		}
	}
	if (out->len == empty)
		out->len = block;
	else
		(void)block_end(out, block, BLOCK_THREAD);
	return 0;
}

/* Stacks */

#define STACK_MARKED UINT32_MAX

static void restart_stacks(struct nettrace_sink *s)
{
	if (s->stack_ids.count)
		memset(s->stack_ids.items, 0, s->stack_ids.count * sizeof(uint32_t));
	s->stack_count = 0;
	s->stack_bytes = 0;
	s->labels.written = 0;
	s->restart = true;
}

/* Lists the buffered events' stacks that have no id yet, and their size in the file. */
static int find_new_stacks(struct nettrace_sink *s, size_t *ret_bytes)
{
	uint32_t count = s->trace->stacks.stacks.count;

	*ret_bytes = 0;
	vec_reset(&s->new_stacks);
	if (s->stack_ids.count < count) {
		if (!vec_reserve(&s->stack_ids, count - s->stack_ids.count))
			return -ENOMEM;
		memset(s->stack_ids.items + s->stack_ids.count, 0,
			(count - s->stack_ids.count) * sizeof(uint32_t));
		s->stack_ids.count = count;
	}
	for (uint32_t i = 0; i < s->events.count; i++) {
		uint32_t index = s->events.items[i].stack_index;
		if (!index || s->stack_ids.items[index])
			continue;
		if (!vec_add(&s->new_stacks, index))
			return -ENOMEM;
		s->stack_ids.items[index] = STACK_MARKED;
		*ret_bytes += 4 + s->trace->stacks.stacks.items[index].count * sizeof(uint64_t);
	}
	return 0;
}

/* By frames from the root on; a stack that is the beginning of another comes first. */
static int compare_from_root(const void *a, const void *b, void *context)
{
	const struct stack_table *table = context;
	const struct stack *x = &table->stacks.items[*(const uint32_t *)a];
	const struct stack *y = &table->stacks.items[*(const uint32_t *)b];
	const uint64_t *fx = table->frames.items + x->at + x->count;
	const uint64_t *fy = table->frames.items + y->at + y->count;
	uint32_t common = x->count < y->count ? x->count : y->count;

	for (uint32_t i = 0; i < common; i++) {
		fx--;
		fy--;
		if (*fx != *fy)
			return *fx < *fy ? -1 : 1;
	}
	return (x->count > y->count) - (x->count < y->count);
}

static void put_stack(struct nettrace_sink *s, uint32_t index)
{
	struct bytes *out = &s->out;
	uint32_t count;
	const uint64_t *frames = stack_table_get(&s->trace->stacks, index, &count);

	if (count > STACK_FRAMES_MAX) {
		count = STACK_FRAMES_MAX;
		s->counts.stacks_cut++;
	}
	uint8_t *p = bytes_reserve(out, 4 + count * sizeof(uint64_t));
	if (!p)
		return;
	bytes_u32(out, count * (uint32_t)sizeof(uint64_t));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	bytes_add(out, frames, count * sizeof(uint64_t));
#else
	for (uint32_t i = 0; i < count; i++)
		bytes_u64(out, frames[i]);
#endif
	s->stack_ids.items[index] = ++s->stack_count;
	s->out_counts.stack_frames += count;
}

static int put_stacks(struct nettrace_sink *s)
{
	struct bytes *out = &s->out;
	uint32_t n = s->new_stacks.count;
	uint32_t done = 0;

	if (!n)
		return 0;
	qsort_r(s->new_stacks.items, n, sizeof(uint32_t), compare_from_root, &s->trace->stacks);
	while (done < n) {
		size_t block = block_begin(out);
		uint32_t first = done;
		bytes_u32(out, s->stack_count + 1);
		bytes_u32(out, 0);
		while (done < n && out->len - block < BLOCK_SIZE_AIM && !out->failed)
			put_stack(s, s->new_stacks.items[done++]);
		if (out->failed)
			return -ENOMEM;
		bytes_set_u32(out, block + 8, done - first);
		size_t size = block_end(out, block, BLOCK_STACK);
		s->stack_bytes += size;
		s->out_counts.stack_bytes += size;
	}
	s->out_counts.stacks += n;
	return 0;
}

/* Events */

static uint8_t *put_varuint(uint8_t *p, uint64_t value)
{
	while (value >= 0x80) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

/* Flags and the fields that differ: 1 + 5 + (5 + 10 + 5) + 10 + 5 + 10 + 5 + 5 at most. */
#define EVENT_HEAD_MAX 64u

/* The delta state of a block: all zero at its begin. */
struct written_previous {
	uint32_t metadata_id;
	uint32_t sequence;
	uint32_t row;
	uint32_t cpu;
	uint32_t thread;
	uint32_t stack;
	uint32_t label;
	uint32_t size;
	uint64_t time_ns;
};

/* For events of the whole recording: the recorder's main thread, or a row without a process. */
static uint32_t nobodys_row(const struct nettrace_sink *s)
{
	uint32_t process = s->trace->recording.recorder_process;
	uint32_t thread = process ? s->trace->processes.items[process].main_thread : 0;

	return thread && thread < s->thread_rows.count && s->thread_rows.items[thread]
		       ? s->thread_rows.items[thread]
		       : ROW_OTHERS;
}

static uint8_t *put_event(struct nettrace_sink *s, uint8_t *p, const struct kept_event *event,
	struct written_previous *previous, uint32_t nobody)
{
	uint8_t *flags_at = p++;
	uint8_t flags = IS_SORTED;
	uint32_t metadata_id = s->metadata_ids.items[event->schema_index];
	uint32_t row = event->cpu >= 0 ? ROW_CPUS : ROW_OTHERS;
	uint32_t cpu = event->cpu >= 0 ? (uint32_t)event->cpu : 0;
	uint32_t thread = event->thread_index ? s->thread_rows.items[event->thread_index] : nobody;
	uint32_t stack = event->stack_index ? s->stack_ids.items[event->stack_index] : 0;
	uint32_t label = event->label ? s->labels.written + event->label : 0;
	uint32_t sequence = s->sequence[row - 1] + event->lost_before + 1;

	s->sequence[row - 1] = sequence;
	if (metadata_id != previous->metadata_id) {
		flags |= HAS_METADATA;
		p = put_varuint(p, metadata_id);
	}
	if (sequence != previous->sequence + 1 || row != previous->row || cpu != previous->cpu) {
		flags |= HAS_CAPTURE;
		p = put_varuint(p, (uint32_t)(sequence - previous->sequence - 1));
		p = put_varuint(p, row);
		p = put_varuint(p, cpu);
	}
	if (thread != previous->thread) {
		flags |= HAS_THREAD;
		p = put_varuint(p, thread);
	}
	if (stack != previous->stack) {
		flags |= HAS_STACK;
		p = put_varuint(p, stack);
	}
	p = put_varuint(p, event->time_ns - previous->time_ns);
	if (label != previous->label) {
		flags |= HAS_LABELS;
		p = put_varuint(p, label);
	}
	if (event->payload_size != previous->size) {
		flags |= HAS_SIZE;
		p = put_varuint(p, event->payload_size);
	}
	*previous = (struct written_previous){ metadata_id, sequence, row, cpu, thread, stack,
		label, event->payload_size, event->time_ns };
	*flags_at = flags;
	if (event->payload_size) {
		memcpy(p, s->payloads.data + event->payload_at, event->payload_size);
		p += event->payload_size;
	}
	return p;
}

static int put_event_block(struct nettrace_sink *s, uint32_t *from)
{
	struct bytes *out = &s->out;
	struct written_previous previous = { 0 };
	uint32_t nobody = nobodys_row(s);
	size_t block = block_begin(out);

	/* A longer header fills the piece up to a multiple of 4, once the size is known. */
	uint8_t *p = bytes_reserve(out, EVENTS_HEADER_SIZE);
	if (!p)
		return -ENOMEM;
	size_t header = out->len;
	out->len += EVENTS_HEADER_SIZE;
	uint64_t first_ns = s->events.items[*from].time_ns;
	while (*from < s->events.count && out->len - block < BLOCK_SIZE_AIM) {
		const struct kept_event *event = &s->events.items[*from];
		p = bytes_reserve(out, EVENT_HEAD_MAX + event->payload_size);
		if (!p)
			return -ENOMEM;
		out->len = (size_t)(put_event(s, p, event, &previous, nobody) - out->data);
		s->out_counts.events++;
		s->out_counts.events_by_kind[event->kind & 15]++;
		(*from)++;
	}
	unsigned filler = (unsigned)(-out->len & 3);
	if (filler) {
		if (!bytes_reserve(out, filler))
			return -ENOMEM;
		uint8_t *body = out->data + header + EVENTS_HEADER_SIZE;
		memmove(body + filler, body, out->len - header - EVENTS_HEADER_SIZE);
		memset(body, 0, filler);
		out->len += filler;
	}
	struct bytes fixed = { .data = out->data + header, .capacity = EVENTS_HEADER_SIZE };
	bytes_u16(&fixed, (uint16_t)(EVENTS_HEADER_SIZE + filler));
	bytes_u16(&fixed, EVENTS_COMPRESSED);
	bytes_u64(&fixed, first_ns);
	bytes_u64(&fixed, previous.time_ns);
	assert(!fixed.failed && fixed.data == out->data + header);
	s->out_counts.event_bytes += block_end(out, block, BLOCK_EVENT);
	return 0;
}

/* Everything buffered becomes `out`. */
static int encode(struct nettrace_sink *s)
{
	size_t new_bytes;
	int r = find_new_stacks(s, &new_bytes);

	if (r < 0)
		return r;
	if ((s->stack_count && (s->stack_count + s->new_stacks.count > STACKS_MAX ||
				       s->stack_bytes + new_bytes > STACK_BYTES_MAX)) ||
		s->labels.written > LABELS_MAX) {
		restart_stacks(s);
		r = find_new_stacks(s, &new_bytes);
		if (r < 0)
			return r;
	}
	if (s->restart) {
		size_t block = block_begin(&s->out);
		bytes_u64(&s->out, s->events.items[0].time_ns);
		bytes_u32(&s->out, 0);
		bytes_u32(&s->out, 0);
		(void)block_end(&s->out, block, BLOCK_SEQUENCE_POINT);
		s->restart = false;
	}
	r = put_metadata(s);
	if (r == 0)
		r = put_threads(s);
	if (r < 0)
		return r;
	label_lists_put(&s->labels, &s->out);
	r = put_stacks(s);
	for (uint32_t i = 0; r == 0 && i < s->events.count;)
		r = put_event_block(s, &i);
	if (r == 0 && s->out.failed)
		r = -ENOMEM;
	if (r < 0)
		return r;
	assert(s->out.len % 4 == 0);
	label_lists_flushed(&s->labels);
	vec_reset(&s->events);
	bytes_reset(&s->payloads);
	return 0;
}

/* Writes the encoded blocks into the file. */
static int commit(struct nettrace_sink *s, struct diag *diag)
{
	int r = nettrace_file_put(&s->file, &s->out, diag);

	if (r == 0)
		count_out(s);
	return r;
}

static int nettrace_flush(struct sink *sink, struct diag *diag)
{
	struct nettrace_sink *s = nettrace_of(sink);

	if (s->file.dead)
		return nettrace_file_error(&s->file, s->file.dead, diag);
	int r = commit(s, diag);
	if (r < 0 || !s->events.count)
		return r;
	r = encode(s);
	if (r < 0) {
		/* Assigned ids cannot be taken back; the file stays as the last flush left it. */
		s->file.dead = r;
		bytes_reset(&s->out);
		return diag_set(diag, r, "cannot write '%s': %m", s->file.name);
	}
	return commit(s, diag);
}

static int nettrace_event(struct sink *sink, const struct event *event, struct diag *diag)
{
	struct nettrace_sink *s = nettrace_of(sink);

	if (s->file.dead)
		return nettrace_file_error(&s->file, s->file.dead, diag);
	assert(event->schema_index && event->schema_index < s->trace->schemas.count);
	assert(event->thread_index < s->trace->threads.count);
	assert(!event->stack_index || event->stack_index < s->trace->stacks.stacks.count);
	if (s->events.count >= BUFFER_EVENTS_MAX || s->payloads.len >= BUFFER_PAYLOAD_MAX) {
		int r = nettrace_flush(sink, diag);
		if (r < 0) {
			s->counts.refused++;
			return r;
		}
	}
	uint32_t size = event->payload_size;
	if (size > EVENT_PAYLOAD_MAX) {
		size = EVENT_PAYLOAD_MAX;
		s->counts.payloads_cut++;
	}
	uint32_t lost = event->lost_before;
	if (s->lost_total + lost > LOST_MAX)
		lost = (uint32_t)(LOST_MAX - s->lost_total);
	struct kept_event *kept =
		vec_reserve(&s->events, 1) ? &s->events.items[s->events.count] : NULL;
	uint8_t *room = kept ? bytes_reserve(&s->payloads, size + 1) : NULL;
	uint32_t label = 0;

	if (!room || !label_lists_keep(&s->labels, event, &label)) {
		bytes_reset(&s->payloads);
		s->file.dead = -ENOMEM;
		return diag_set(diag, -ENOMEM, "cannot write '%s': %m", s->file.name);
	}
	s->lost_total += lost;
	if (size)
		memcpy(room, event->payload, size);
	*kept = (struct kept_event){
		.time_ns = event->time_ns,
		.payload_at = (uint32_t)s->payloads.len,
		.payload_size = size,
		.thread_index = event->thread_index,
		.stack_index = event->stack_index,
		.schema_index = event->schema_index,
		.lost_before = lost,
		.label = label,
		.cpu = (int16_t)(event->cpu >= 0 && event->cpu <= INT16_MAX ? event->cpu : -1),
		.kind = event->kind,
	};
	s->payloads.len += size;
	s->events.count++;
	if (event->time_ns < s->last_ns) {
		kept->time_ns = s->last_ns;
		s->counts.clamped++;
	}
	s->last_ns = kept->time_ns;
	return 0;
}

static int nettrace_forget_stacks(struct sink *sink, struct diag *diag)
{
	struct nettrace_sink *s = nettrace_of(sink);

	/* What waits refers to the old table, until it is encoded, even if the disk fails. */
	if (s->events.count) {
		int r = nettrace_flush(sink, diag);
		if (r < 0 && s->events.count)
			return r;
	}
	restart_stacks(s);
	s->stack_ids.count = 0;
	return 0;
}

static void nettrace_forget_thread(struct sink *sink, uint32_t thread_index)
{
	struct nettrace_sink *s = nettrace_of(sink);

	assert(!s->events.count || s->file.dead);
	if (thread_index < s->thread_rows.count)
		s->thread_rows.items[thread_index] = 0;
}

static int nettrace_end(struct sink *sink, struct diag *diag)
{
	struct nettrace_sink *s = nettrace_of(sink);
	int r = nettrace_flush(sink, diag);

	if (r < 0)
		return r;
	r = nettrace_file_end(&s->file, &s->out, diag);
	if (r == 0)
		count_out(s);
	return r;
}

static void nettrace_close(struct sink *sink)
{
	struct nettrace_sink *s = nettrace_of(sink);

	if (!s)
		return;
	vec_done(&s->events);
	label_lists_done(&s->labels);
	vec_done(&s->stack_ids);
	vec_done(&s->new_stacks);
	vec_done(&s->thread_rows);
	vec_done(&s->metadata_ids);
	vec_done(&s->byte_bools);
	bytes_done(&s->payloads);
	bytes_done(&s->out);
	nettrace_file_done(&s->file);
	free(s);
}

int nettrace_sink_open(const struct nettrace_sink_options *options, struct trace *trace,
	struct sink **ret_sink, struct diag *diag)
{
	struct nettrace_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->file = (struct nettrace_file){
		.fd = options->fd,
		.name = options->name,
		.write_at = options->write_at ? options->write_at : pwrite,
	};
	s->trace = trace;
	s->last_ns = trace->recording.sync_ns;
	nettrace_head_put(&s->out, trace, options->keys, options->key_count);
	int r = s->out.failed ? -ENOMEM
			      : nettrace_file_begin(&s->file, options->packed, &s->out, diag);

	if (r < 0) {
		nettrace_close((struct sink *)(void *)s);
		return r;
	}
	count_out(s);
	*ret_sink = (struct sink *)(void *)s;
	return 0;
}

const struct sink_ops nettrace_sink = {
	.name = "nettrace",
	.event = nettrace_event,
	.flush = nettrace_flush,
	.forget_stacks = nettrace_forget_stacks,
	.forget_thread = nettrace_forget_thread,
	.end = nettrace_end,
	.close = nettrace_close,
};
