/*
 * See nettrace4.h. docs/formats/nettrace.md has the format. Readers require more than the format
 * does:
 *
 * - A reader notices a change of the capturing thread at an event marked "sorted", or at the first
 *   event of a block. So each run begins with the mark if no later event has an earlier time (the
 *   meaning of the mark), and in a new block otherwise.
 * - Stack ids are valid until the next sequence point. A point is written when the table of stacks
 *   is full, after POINT_BYTES, and when the stream becomes idle: only then does a live reader
 *   release the last events.
 * - The padding before a block's content depends on the offset in the stream, so the encoder counts
 *   its bytes.
 */
#include "lib/sink/nettrace4.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <spoor/spoor.h>

#include "lib/pipe/record_run.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/platform.h"
#include "lib/sink/code_hits.h"
#include "lib/sink/payload_utf16.h"

#define BLOCK_BYTES (100u << 10)
/* maximum size of an event's header: 1 + 5 + 5 + 10 + 5 + 10 + 5 + 10 + 32 + 5 */
#define HEADER_MAX      96u
#define BLOCK_HEADER    20u
#define STACKS_MAX      16384u
#define STACK_BYTES_MAX (4u << 20)
#define POINT_BYTES     (10u << 20)
/* payloads of nettrace4_records(); each byte of a text becomes two, and eight are written together */
#define PLAIN_MAX        (8u << 10)
#define PLAIN_ROOM(size) (2u * (size) + 32u)

enum blob_flag {
	BLOB_METADATA = 0x01,
	BLOB_CAPTURE = 0x02,
	BLOB_THREAD = 0x04,
	BLOB_STACK = 0x08,
	BLOB_ACTIVITY = 0x10,
	BLOB_RELATED = 0x20,
	BLOB_SORTED = 0x40,
	BLOB_SIZE = 0x80,
};

static void add_u32(struct outbuf *out, uint32_t value)
{
	outbuf_add(out, &value, sizeof(value));
}

static inline uint8_t *put_varuint(uint8_t *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	return at;
}

/* ---- The encoder ---- */

/* The previous event in this block. */
struct nettrace4_previous {
	uint64_t time_ns;
	uint64_t capture_thread_id;
	uint64_t thread_id;
	uint32_t metadata_id;
	uint32_t sequence;
	uint32_t processor;
	uint32_t stack_id;
	uint32_t payload_size;
	bool activity; /* either id is not zero */
	uint8_t activity_id[16];
	uint8_t related_activity_id[16];
};

struct stack_slot {
	uint64_t hash;
	uint32_t id; /* 0: the slot is free */
	uint32_t offset;
	uint32_t count;
};

struct nettrace4 {
	struct outbuf *out;
	uint64_t position; /* offset in the stream of the end of `out` */

	struct outbuf events; /* content of the block being filled, after its header */
	struct nettrace4_previous previous;
	uint64_t min_ns, max_ns;
	struct outbuf metadata;

	struct outbuf stacks; /* content of the pending stack block, after its first eight bytes */
	uint32_t stacks_first, stacks_pending;
	struct outbuf frames; /* of all stacks since the last sequence point */
	struct stack_slot *table;
	uint32_t stack_count;

	uint64_t *described; /* a bit for each entry index: its metadata was written */
	uint32_t described_words;
	uint64_t *described_safe;
	uint32_t described_safe_words;
	uint64_t position_safe;

	uint64_t process_id; /* if the stream is of another process (recover.c); 0: of this one */
	uint64_t utc_ns, sync_ns;

	uint64_t point_position;
	bool since_point;
	bool collects_code;
	uint64_t last_ns;
	uint8_t scratch[2 * SPOOR_PAYLOAD_MAX + 64]; /* a payload of ASCII in UTF-16 */
};

/* In heads of streams: .NET's default. Readers take the period from the distance of two samples. */
#define SAMPLING_NS 1000000u

static void stacks_forget(struct nettrace4 *encoder)
{
	if (encoder->stack_count)
		memset(encoder->table, 0, 2 * STACKS_MAX * sizeof(*encoder->table));
	encoder->stack_count = 0;
	outbuf_reset(&encoder->frames);
	outbuf_reset(&encoder->stacks);
	encoder->stacks_pending = 0;
}

static void pending_forget(struct nettrace4 *encoder)
{
	outbuf_reset(&encoder->events);
	outbuf_reset(&encoder->metadata);
	encoder->previous = (struct nettrace4_previous){ 0 };
	encoder->min_ns = UINT64_MAX;
	encoder->max_ns = 0;
}

struct nettrace4 *nettrace4_new(struct outbuf *out)
{
	struct nettrace4 *encoder = calloc(1, sizeof(*encoder));

	if (!encoder)
		return NULL;
	encoder->out = out;
	pending_forget(encoder);
	return encoder;
}

void nettrace4_collect_code(struct nettrace4 *encoder)
{
	encoder->collects_code = true;
}

void nettrace4_free(struct nettrace4 *encoder)
{
	if (!encoder)
		return;
	outbuf_done(&encoder->events);
	outbuf_done(&encoder->metadata);
	outbuf_done(&encoder->stacks);
	outbuf_done(&encoder->frames);
	free(encoder->table);
	free(encoder->described);
	free(encoder->described_safe);
	free(encoder);
}

static void emit(struct nettrace4 *encoder, const void *data, size_t size)
{
	outbuf_add(encoder->out, data, size);
	encoder->position += size;
}

static void emit_u32(struct nettrace4 *encoder, uint32_t value)
{
	emit(encoder, &value, sizeof(value));
}

static void object_begin(struct nettrace4 *encoder, const char *name, uint32_t version)
{
	static const uint8_t begin[3] = { 5, 5, 1 };
	static const uint8_t end = 6;
	uint32_t length = (uint32_t)strlen(name);

	emit(encoder, begin, sizeof(begin));
	emit_u32(encoder, version);
	emit_u32(encoder, version);
	emit_u32(encoder, length);
	emit(encoder, name, length);
	emit(encoder, &end, 1);
}

static void object_end(struct nettrace4 *encoder)
{
	static const uint8_t end = 6;

	emit(encoder, &end, 1);
}

/* Writes a block with `head` and `content`. */
static void block(struct nettrace4 *encoder, const char *name, const void *head, size_t head_size,
	const struct outbuf *content)
{
	static const uint8_t zeroes[4];

	object_begin(encoder, name, 2);
	emit_u32(encoder, (uint32_t)(head_size + content->size));
	emit(encoder, zeroes, (4 - (encoder->position & 3)) & 3);
	emit(encoder, head, head_size);
	emit(encoder, content->data, content->size);
	object_end(encoder);
}

static void block_head(uint8_t head[BLOCK_HEADER], uint64_t min_ns, uint64_t max_ns)
{
	uint16_t size = BLOCK_HEADER;
	uint16_t flags = 1; /* compressed headers */

	memcpy(head, &size, 2);
	memcpy(head + 2, &flags, 2);
	memcpy(head + 4, &min_ns, 8);
	memcpy(head + 12, &max_ns, 8);
}

void nettrace4_set_process(struct nettrace4 *encoder, uint64_t process_id, uint64_t utc_ns,
	uint64_t sync_ns)
{
	encoder->process_id = process_id;
	encoder->utc_ns = utc_ns;
	encoder->sync_ns = sync_ns;
}

int nettrace4_begin(struct nettrace4 *encoder)
{
	static const char prefix[] = "Nettrace\x14\0\0\0!FastSerialization.1";
	uint64_t utc_ns = encoder->process_id ? encoder->utc_ns : platform_utc_ns();
	uint64_t now_ns = encoder->process_id ? encoder->sync_ns : platform_now_ns();
	time_t seconds = (time_t)(utc_ns / 1000000000u);
	struct tm utc;
	uint16_t date[8];
	uint32_t rest[4] = { sizeof(void *),
		(uint32_t)(encoder->process_id ? encoder->process_id : platform_process_id()),
		(uint32_t)platform_cpu_count(), SAMPLING_NS };
	uint64_t ticks[2] = { now_ns, 1000000000u };

	memset(&utc, 0, sizeof(utc));
	(void)gmtime_r(&seconds, &utc); /* stays zero for a time outside of the calendar */
	date[0] = (uint16_t)(utc.tm_year + 1900);
	date[1] = (uint16_t)(utc.tm_mon + 1);
	date[2] = (uint16_t)utc.tm_wday;
	date[3] = (uint16_t)utc.tm_mday;
	date[4] = (uint16_t)utc.tm_hour;
	date[5] = (uint16_t)utc.tm_min;
	date[6] = (uint16_t)utc.tm_sec;
	date[7] = (uint16_t)(utc_ns / 1000000u % 1000u);

	encoder->position = 0;
	encoder->point_position = 0;
	encoder->since_point = false;
	pending_forget(encoder);
	stacks_forget(encoder);
	encoder->stacks_first = 1;
	if (encoder->described)
		memset(encoder->described, 0, encoder->described_words * sizeof(uint64_t));
	if (encoder->described_safe)
		memset(encoder->described_safe, 0,
			encoder->described_safe_words * sizeof(uint64_t));
	encoder->position_safe = 0;
	emit(encoder, prefix, sizeof(prefix) - 1);
	object_begin(encoder, "Trace", 4);
	emit(encoder, date, sizeof(date));
	emit(encoder, ticks, sizeof(ticks));
	emit(encoder, rest, sizeof(rest));
	object_end(encoder);
	return encoder->out->failed ? -ENOMEM : 0;
}

int nettrace4_flush(struct nettrace4 *encoder)
{
	uint8_t head[BLOCK_HEADER];

	if (encoder->metadata.size) {
		block_head(head, 0, 0);
		block(encoder, "MetadataBlock", head, sizeof(head), &encoder->metadata);
		outbuf_reset(&encoder->metadata);
	}
	if (encoder->stacks_pending) {
		uint32_t first[2] = { encoder->stacks_first, encoder->stacks_pending };
		block(encoder, "StackBlock", first, sizeof(first), &encoder->stacks);
		encoder->stacks_first += encoder->stacks_pending;
		encoder->stacks_pending = 0;
		outbuf_reset(&encoder->stacks);
	}
	if (encoder->events.size) {
		block_head(head, encoder->min_ns, encoder->max_ns);
		block(encoder, "EventBlock", head, sizeof(head), &encoder->events);
	}
	pending_forget(encoder);
	return encoder->out->failed ? -ENOMEM : 0;
}

int nettrace4_point(struct nettrace4 *encoder, uint64_t time_ns, const struct outbuf *rows)
{
	static const struct outbuf no_rows;
	uint8_t head[12];
	int r = nettrace4_flush(encoder);

	if (r)
		return r;
	if (time_ns < encoder->last_ns)
		time_ns = encoder->last_ns;
	if (!rows)
		rows = &no_rows;
	uint32_t listed = (uint32_t)(rows->size / SESSION_POINT_ROW);
	memcpy(head, &time_ns, 8);
	memcpy(head + 8, &listed, 4);
	block(encoder, "SPBlock", head, sizeof(head), rows);
	stacks_forget(encoder);
	encoder->stacks_first = 1;
	encoder->since_point = false;
	encoder->point_position = encoder->position;
	return encoder->out->failed ? -ENOMEM : 0;
}

int nettrace4_end(struct nettrace4 *encoder, uint64_t time_ns, const struct outbuf *rows)
{
	static const uint8_t end = 1;
	int r = nettrace4_point(encoder, time_ns, rows);

	if (r)
		return r;
	emit(encoder, &end, 1);
	return encoder->out->failed ? -ENOMEM : 0;
}

size_t nettrace4_pending(const struct nettrace4 *encoder)
{
	return encoder->events.size;
}

bool nettrace4_wants_point(const struct nettrace4 *encoder)
{
	return encoder->stack_count >= STACKS_MAX || encoder->frames.size >= STACK_BYTES_MAX ||
	       encoder->position - encoder->point_position >= POINT_BYTES;
}

bool nettrace4_since_point(const struct nettrace4 *encoder)
{
	return encoder->since_point;
}

int nettrace4_safe(struct nettrace4 *encoder)
{
	/*
	 * Pending events have their metadata marked as written, but neither is in `out` yet. Both
	 * are flushed together, so only a flushed state can be restored.
	 */
	if (encoder->metadata.size)
		return 0;
	if (encoder->described_safe_words != encoder->described_words) {
		uint64_t *safe =
			realloc(encoder->described_safe, encoder->described_words * sizeof(*safe));
		if (!safe)
			return -ENOMEM;
		encoder->described_safe = safe;
		encoder->described_safe_words = encoder->described_words;
	}
	if (encoder->described_words)
		memcpy(encoder->described_safe, encoder->described,
			encoder->described_words * sizeof(uint64_t));
	encoder->position_safe = encoder->position;
	return 0;
}

void nettrace4_roll_back(struct nettrace4 *encoder)
{
	if (encoder->described)
		memset(encoder->described, 0, encoder->described_words * sizeof(uint64_t));
	if (encoder->described_safe_words)
		memcpy(encoder->described, encoder->described_safe,
			encoder->described_safe_words * sizeof(uint64_t));
	encoder->position = encoder->position_safe;
	pending_forget(encoder);
	/*
	 * The ids of the reader's stacks are not those of the table any more: new ids start after
	 * them, until the next sequence point.
	 */
	uint32_t next = encoder->stacks_first + STACKS_MAX;
	stacks_forget(encoder);
	encoder->stacks_first = next;
	outbuf_reset(encoder->out);
}

/* ---- Events ---- */

static bool is_described(const struct nettrace4 *encoder, const struct event_entry *entry)
{
	uint32_t word = entry->index / 64;

	return word < encoder->described_words &&
	       (encoder->described[word] >> (entry->index % 64) & 1);
}

static int describe(struct nettrace4 *encoder, const struct event_entry *entry)
{
	uint32_t word = entry->index / 64;
	uint64_t bit = UINT64_C(1) << (entry->index % 64);

	if (is_described(encoder, entry))
		return 0;
	if (word >= encoder->described_words) {
		uint32_t words = (word + 16) & ~15u;
		uint64_t *described = realloc(encoder->described, words * sizeof(*described));
		if (!described)
			return -ENOMEM;
		memset(described + encoder->described_words, 0,
			(words - encoder->described_words) * sizeof(*described));
		encoder->described = described;
		encoder->described_words = words;
	}
	/*
	 * Each blob is complete, because delta encoding would depend on the previous one. Time and
	 * sequence stay 0.
	 */
	uint8_t head[16] = { BLOB_METADATA | BLOB_SORTED | BLOB_SIZE, 0, 0 };
	uint8_t *at = put_varuint(head + 3, 4 + entry->metadata_size);
	outbuf_add(&encoder->metadata, head, (size_t)(at - head));
	add_u32(&encoder->metadata, entry->index);
	outbuf_add(&encoder->metadata, entry->metadata, entry->metadata_size);
	if (encoder->metadata.failed)
		return -ENOMEM;
	encoder->described[word] |= bit;
	return 0;
}

static uint32_t stack_intern(struct nettrace4 *encoder, const uint64_t *frames, uint32_t count)
{
	uint64_t hash = count;

	for (uint32_t i = 0; i < count; i++) {
		hash = (hash ^ frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	if (!encoder->table) {
		encoder->table = calloc(2 * STACKS_MAX, sizeof(*encoder->table));
		if (!encoder->table)
			return 0;
	}
	uint32_t at = (uint32_t)hash & (2 * STACKS_MAX - 1);
	for (; encoder->table[at].id; at = (at + 1) & (2 * STACKS_MAX - 1)) {
		const struct stack_slot *slot = &encoder->table[at];
		if (slot->hash == hash && slot->count == count &&
			memcmp(encoder->frames.data + slot->offset, frames,
				count * sizeof(*frames)) == 0)
			return slot->id;
	}
	if (encoder->stack_count >= STACKS_MAX + STACKS_MAX / 2)
		/* no sequence point was written in time: the event is written without its stack */
		return 0;
	uint32_t id = encoder->stacks_first + encoder->stacks_pending;
	encoder->table[at] = (struct stack_slot){ hash, id, (uint32_t)encoder->frames.size, count };
	outbuf_add(&encoder->frames, frames, count * sizeof(*frames));
	add_u32(&encoder->stacks, count * (uint32_t)sizeof(*frames));
	outbuf_add(&encoder->stacks, frames, count * sizeof(*frames));
	encoder->stacks_pending++;
	encoder->stack_count++;
	if (encoder->collects_code)
		code_hits_add(frames, count);
	return id;
}

/*
 * Converts the event's payload into `scratch`. Returns its size. -EMSGSIZE: it is too large, or
 * does not match the event's fields.
 */
static int payload_convert(struct nettrace4 *encoder, const struct pipe_event *event,
	uint32_t text_max)
{
	int r = payload_utf16(event->entry, event->payload, event->payload_size, text_max,
		encoder->scratch, sizeof(encoder->scratch));

	return r > SPOOR_PAYLOAD_MAX ? -EMSGSIZE : r;
}

/*
 * ASCII is twice as long in UTF-16. Cuts the texts of a payload that has become too large, all
 * after the same number of bytes or units, which is the highest that fits.
 */
static __attribute__((noinline)) int payload_shorten(struct nettrace4 *encoder,
	const struct pipe_event *event)
{
	uint32_t fits = 0, too_long = SPOOR_PAYLOAD_MAX;

	if (payload_convert(encoder, event, 0) < 0)
		return -EMSGSIZE;
	while (too_long - fits > 1) {
		uint32_t tried = (fits + too_long) / 2;
		if (payload_convert(encoder, event, tried) >= 0)
			fits = tried;
		else
			too_long = tried;
	}
	return payload_convert(encoder, event, fits);
}

/* Writes an activity id if it differs from that of the previous event; NULL is all zero. */
static uint8_t *put_activity(uint8_t *at, uint8_t *flags, enum blob_flag flag, uint8_t *previous,
	const uint8_t *id)
{
	static const uint8_t none[16];

	if (!id)
		id = none;
	if (memcmp(id, previous, sizeof(none)) == 0)
		return at;
	*flags |= (uint8_t)flag;
	memcpy(previous, id, sizeof(none));
	memcpy(at, id, sizeof(none));
	return at + sizeof(none);
}

int nettrace4_event(struct nettrace4 *encoder, const struct pipe_event *event)
{
	const struct event_entry *entry = event->entry;
	const uint8_t *payload = event->payload;
	size_t payload_size = event->payload_size;
	struct nettrace4_previous *previous = &encoder->previous;
	int r;

	if (entry->flags & ENTRY_VERBATIM) {
		if (payload_size > SPOOR_PAYLOAD_MAX)
			return -EMSGSIZE;
	} else {
		r = payload_convert(encoder, event, UINT32_MAX);
		if (__builtin_expect(r < 0, 0)) {
			r = payload_shorten(encoder, event);
			if (r < 0)
				return r;
		}
		payload = encoder->scratch;
		payload_size = (size_t)r;
	}
	/* The block is full, or the run must not be marked sorted. */
	if (encoder->events.size &&
		(encoder->events.size + payload_size + HEADER_MAX + BLOCK_HEADER > BLOCK_BYTES ||
			(event->run_start && !event->sorted))) {
		r = nettrace4_flush(encoder);
		if (r)
			return r;
	}
	r = describe(encoder, entry);
	if (r)
		return r;
	uint8_t *start = outbuf_reserve(&encoder->events, payload_size + HEADER_MAX);
	if (!start)
		return -ENOMEM;

	uint8_t *at = start + 1;
	uint8_t flags = event->run_start && event->sorted ? BLOB_SORTED : 0;
	uint32_t stack_id =
		event->stack ? stack_intern(encoder, event->stack, event->stack_count) : 0;
	if (entry->index != previous->metadata_id) {
		flags |= BLOB_METADATA;
		at = put_varuint(at, entry->index);
		previous->metadata_id = entry->index;
	}
	if (event->sequence != previous->sequence + 1 ||
		event->capture_thread_id != previous->capture_thread_id ||
		previous->processor != UINT32_MAX) {
		flags |= BLOB_CAPTURE;
		at = put_varuint(at, (uint32_t)(event->sequence - previous->sequence - 1));
		at = put_varuint(at, event->capture_thread_id);
		at = put_varuint(at, UINT32_MAX); /* the processor is unknown */
		previous->capture_thread_id = event->capture_thread_id;
		previous->processor = UINT32_MAX;
	}
	previous->sequence = event->sequence;
	if (event->thread_id != previous->thread_id) {
		flags |= BLOB_THREAD;
		at = put_varuint(at, event->thread_id);
		previous->thread_id = event->thread_id;
	}
	if (stack_id != previous->stack_id) {
		flags |= BLOB_STACK;
		at = put_varuint(at, stack_id);
		previous->stack_id = stack_id;
	}
	at = put_varuint(at, event->time_ns - previous->time_ns);
	previous->time_ns = event->time_ns;
	if (__builtin_expect(event->activity_id || previous->activity, 0)) {
		at = put_activity(at, &flags, BLOB_ACTIVITY, previous->activity_id,
			event->activity_id);
		at = put_activity(at, &flags, BLOB_RELATED, previous->related_activity_id,
			event->related_activity_id);
		previous->activity = event->activity_id != NULL;
	}
	if (payload_size != previous->payload_size) {
		flags |= BLOB_SIZE;
		at = put_varuint(at, payload_size);
		previous->payload_size = (uint32_t)payload_size;
	}
	*start = flags;
	if (payload_size)
		memcpy(at, payload, payload_size);
	encoder->events.size += (size_t)(at - start) + payload_size;
	if (event->time_ns < encoder->min_ns)
		encoder->min_ns = event->time_ns;
	if (event->time_ns > encoder->max_ns)
		encoder->max_ns = event->time_ns;
	if (event->time_ns > encoder->last_ns)
		encoder->last_ns = event->time_ns;
	encoder->since_point = true;
	return 0;
}

/* The payload of a record in nettrace's form, at `to`, which has room for PLAIN_ROOM(size) bytes. */
static inline int plain_payload(const struct run_record *record, uint8_t *to)
{
	if (!(record->entry->flags & ENTRY_VERBATIM))
		return payload_utf16(record->entry, record->payload, record->payload_size,
			UINT32_MAX, to, PLAIN_ROOM(record->payload_size));
	memcpy(to, record->payload, record->payload_size);
	return (int)record->payload_size;
}

uint32_t nettrace4_records(struct nettrace4 *encoder, struct record_run *run)
{
	struct nettrace4_previous *previous = &encoder->previous;
	struct outbuf *events = &encoder->events;
	size_t gap = 0; /* bytes for the size of the payload, as the last record needed */
	uint32_t count = 0;
	struct run_record record;

	if (!events->size || run->run_start || run->sequence != previous->sequence + 1 ||
		run->thread_id != previous->capture_thread_id ||
		run->thread_id != previous->thread_id || previous->activity || previous->stack_id)
		return 0;
	while (record_run_plain(run, &record) && record.payload_size <= PLAIN_MAX &&
		events->size + PLAIN_ROOM(record.payload_size) + HEADER_MAX + BLOCK_HEADER <=
			BLOCK_BYTES &&
		is_described(encoder, record.entry)) {
		uint8_t *start =
			outbuf_reserve(events, PLAIN_ROOM(record.payload_size) + HEADER_MAX);
		if (!start)
			break;
		uint8_t *at = start + 1;
		uint8_t flags = 0;
		if (record.entry->index != previous->metadata_id) {
			flags |= BLOB_METADATA;
			at = put_varuint(at, record.entry->index);
		}
		at = put_varuint(at, record.time_ns - previous->time_ns);
		int size = plain_payload(&record, at + gap);
		if (size < 0)
			break;
		uint8_t sized[8];
		size_t needed = 0;
		if ((uint32_t)size != previous->payload_size) {
			flags |= BLOB_SIZE;
			needed = (size_t)(put_varuint(sized, (uint32_t)size) - sized);
		}
		if (needed != gap)
			memmove(at + needed, at + gap, (size_t)size);
		gap = needed;
		memcpy(at, sized, needed);
		*start = flags;
		events->size += (size_t)(at - start) + needed + (size_t)size;
		previous->metadata_id = record.entry->index;
		previous->payload_size = (uint32_t)size;
		previous->time_ns = record.time_ns;
		if (record.time_ns < encoder->min_ns)
			encoder->min_ns = record.time_ns;
		record_run_skip(run, &record);
		count++;
	}
	previous->sequence += count;
	if (count && run->floor_ns > encoder->max_ns)
		encoder->max_ns = run->floor_ns;
	if (count && run->floor_ns > encoder->last_ns)
		encoder->last_ns = run->floor_ns;
	return count;
}
