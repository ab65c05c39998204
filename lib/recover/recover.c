/*
 * See recover.h and recover_file.h: the reading side. Every offset, size and count is checked when
 * it is read. From each ring it takes the records that were not yet drained (tail to published)
 * and, backwards by the sizes in the records, drained ones that were not overwritten.
 */
#include <spoor/recover.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/event/thread_ring.h"
#include "lib/recover/recover_file.h"
#include "lib/sink/nettrace4.h"

#define RING_MIN     4096u
#define RING_MAX     (UINT64_C(1) << 30)
#define KINDS_MAX    (1u << 20)
#define PLAN_MAX     4096u
#define METADATA_MAX 65536u

struct recover_kind {
	struct event_entry entry;
};

struct recover_found {
	uint64_t time_ns;
	/* of the ring and of the record in it: keeps the order of records with the same time */
	uint64_t order;
	uint32_t ring;
	uint32_t padding;
	const struct record *record;
};

struct recovery {
	int fd;
	uint64_t file_size;
	struct recover_head head;
	uint8_t *metadata;
	struct recover_kind *kinds; /* in the order of the log */
	uint32_t kind_count;
	uint32_t *by_index; /* entry index -> index in `kinds` + 1 */
	uint32_t index_room;
	uint8_t **rings;
	uint64_t *thread_ids;
	uint32_t ring_count;
	struct recover_found *found;
	size_t found_count;
	size_t found_room;
	uint64_t broken;
	struct outbuf out;
	struct nettrace4 *encoder;
};

static int read_at(const struct recovery *r, uint64_t offset, void *data, size_t size)
{
	uint8_t *at = data;

	if (offset > r->file_size || r->file_size - offset < size)
		return -EBADMSG;
	while (size) {
		ssize_t n = pread(r->fd, at, size, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EBADMSG;
		at += n;
		offset += (uint64_t)n;
		size -= (size_t)n;
	}
	return 0;
}

/* ---- Kinds of event ---- */

static bool plan_good(const struct plan_step *plan, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (plan[i].op > PLAN_STRUCTS || plan[i].size > (1u << 20) ||
			(plan[i].op == PLAN_STRUCTS && plan[i].size > count - i - 1))
			return false;
	return true;
}

static int read_kinds(struct recovery *r)
{
	uint64_t used = r->head.metadata_used;
	uint64_t at = 0;

	if (used > RECOVER_METADATA_BYTES)
		return -EBADMSG;
	r->metadata = malloc(used + 1);
	if (!r->metadata)
		return -ENOMEM;
	int e = read_at(r, r->head.metadata_offset, r->metadata, used);
	while (e == 0 && used - at >= sizeof(struct recover_event)) {
		struct recover_event event;
		memcpy(&event, r->metadata + at, sizeof(event));
		uint64_t metadata_bytes = ((uint64_t)event.metadata_size + 7) & ~UINT64_C(7);
		if (event.bytes < sizeof(event) || event.bytes > used - at || (event.bytes & 7) ||
			event.metadata_size > METADATA_MAX || event.plan_count > PLAN_MAX ||
			!event.index || event.index >= KINDS_MAX ||
			sizeof(event) + metadata_bytes +
					event.plan_count * sizeof(struct plan_step) !=
				event.bytes)
			break; /* the record that was being written when the program ended */
		const uint8_t *metadata = r->metadata + at + sizeof(event);
		const struct plan_step *plan =
			(const struct plan_step *)(const void *)(metadata + metadata_bytes);
		at += event.bytes;
		if (!plan_good(plan, event.plan_count))
			continue;
		if (event.index >= r->index_room) {
			uint32_t room = (event.index + 1024) & ~1023u;
			uint32_t *by_index = realloc(r->by_index, room * sizeof(*by_index));
			if (!by_index)
				return -ENOMEM;
			memset(by_index + r->index_room, 0,
				(room - r->index_room) * sizeof(*by_index));
			r->by_index = by_index;
			r->index_room = room;
		}
		if (r->by_index[event.index])
			continue;
		struct recover_kind *kinds =
			realloc(r->kinds, (r->kind_count + 1) * sizeof(*kinds));
		if (!kinds)
			return -ENOMEM;
		r->kinds = kinds;
		kinds[r->kind_count] =
			(struct recover_kind){ .entry = { .index = event.index,
						       .flags = event.flags & ENTRY_VERBATIM,
						       .plan = plan,
						       .plan_count = event.plan_count,
						       .metadata = metadata,
						       .metadata_size = event.metadata_size } };
		r->by_index[event.index] = ++r->kind_count;
	}
	return e;
}

static const struct event_entry *entry_of(const struct recovery *r, uint32_t index)
{
	return index < r->index_room && r->by_index[index] ? &r->kinds[r->by_index[index] - 1].entry
							   : NULL;
}

/* ---- Records ---- */

static uint64_t ns_of(const struct recover_head *head, uint64_t stamp)
{
	const struct clock_pair *a = &head->pairs[0];
	const struct clock_pair *b = &head->pairs[1];

	if (!head->counter || b->ticks <= a->ticks || b->ns <= a->ns)
		return stamp;
	/*
	 * Linear interpolation between the first and the newest pair, and extrapolation beyond
	 * them.
	 */
	__int128 ns = (__int128)a->ns + (__int128)(int64_t)(stamp - a->ticks) *
						(__int128)(b->ns - a->ns) /
						(__int128)(b->ticks - a->ticks);
	return ns < 0 ? 0 : ns > (__int128)INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

static uint32_t units_at(const uint8_t *ring, uint64_t mask, uint64_t at)
{
	return ((const struct record *)(const void *)(ring + (at & mask)))->sizes &
	       RECORD_UNITS_MAX;
}

static uint32_t units_before(const uint8_t *ring, uint64_t mask, uint64_t at)
{
	return ((const struct record *)(const void *)(ring + (at & mask)))->sizes >>
		       RECORD_BEFORE_SHIFT &
	       RECORD_UNITS_MAX;
}

/* The begin of the oldest record that is not overwritten. */
static uint64_t oldest(const uint8_t *ring, uint64_t size, const struct ring_front *front)
{
	uint64_t next = front->front.next > front->front.published ? front->front.next
								   : front->front.published;
	uint64_t lowest = next > size ? next - size : 0;
	uint64_t at = front->tail_last;

	/*
	 * The record before the tail may be partly overwritten by the one that was being written.
	 */
	if (at >= front->tail || at < lowest ||
		front->tail - at != units_at(ring, size - 1, at) * RECORD_UNIT || front->tail == at)
		return front->tail;
	for (;;) {
		uint64_t before = units_before(ring, size - 1, at) * UINT64_C(8);
		if (before < RECORD_HEADER || before > at || at - before < lowest ||
			units_at(ring, size - 1, at - before) * UINT64_C(8) != before)
			return at;
		at -= before;
	}
}

static int note_record(struct recovery *r, uint32_t ring, const struct record *record)
{
	if (r->found_count == r->found_room) {
		size_t room = r->found_room ? r->found_room * 2 : 4096;
		struct recover_found *found = realloc(r->found, room * sizeof(*found));
		if (!found)
			return -ENOMEM;
		r->found = found;
		r->found_room = room;
	}
	r->found[r->found_count] = (struct recover_found){ ns_of(&r->head, record->stamp),
		r->found_count, ring, 0, record };
	r->found_count++;
	return 0;
}

static int read_ring(struct recovery *r, uint32_t index)
{
	struct recover_ring place;
	struct ring_front front;
	int e = read_at(r, r->head.rings_offset + index * sizeof(place), &place, sizeof(place));

	if (e == 0)
		e = read_at(r, r->head.fronts_offset + index * sizeof(front), &front,
			sizeof(front));
	if (e)
		return e;
	if (!place.size)
		return 0; /* its thread was still setting it up */
	uint64_t published = front.front.published;
	if (place.size < RING_MIN || place.size > RING_MAX || (place.size & (place.size - 1)) ||
		(published & 7) || (front.tail & 7) || (front.tail_last & 7) ||
		front.tail > published || published - front.tail > place.size ||
		place.offset > r->file_size || r->file_size - place.offset < place.size) {
		r->broken++;
		return 0;
	}
	if (!published)
		return 0;
	/*
	 * The ring is copied twice in a row, as it was mapped, because a record may cross its end.
	 */
	uint8_t *ring = malloc(2 * place.size);
	if (!ring)
		return -ENOMEM;
	r->rings[index] = ring;
	r->thread_ids[index] = front.thread_id;
	e = read_at(r, place.offset, ring, place.size);
	if (e)
		return e;
	memcpy(ring + place.size, ring, place.size);
	for (uint64_t at = oldest(ring, place.size, &front); at < published;) {
		const struct record *record =
			(const struct record *)(const void *)(ring + (at & (place.size - 1)));
		uint64_t size = (record->sizes & RECORD_UNITS_MAX) * UINT64_C(8);
		if (size < RECORD_HEADER || size > published - at) {
			r->broken++;
			break;
		}
		at += size;
		if (record->event == RECORD_LOSS)
			continue;
		if (!entry_of(r, record->event)) {
			r->broken++;
			continue;
		}
		e = note_record(r, index, record);
		if (e)
			return e;
	}
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct recover_found *x = a;
	const struct recover_found *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* ---- Writing ---- */

static int write_event(struct recovery *r, const struct recover_found *found, bool run_start,
	uint32_t sequence)
{
	const struct record *record = found->record;
	size_t size = (record->sizes & RECORD_UNITS_MAX) * RECORD_UNIT;
	uint32_t flags = record->sizes >> RECORD_FLAG_SHIFT;
	const uint8_t *at = (const uint8_t *)record + RECORD_HEADER;
	const uint8_t *end =
		(const uint8_t *)record + size - (record->sizes >> RECORD_PADDING_SHIFT & 7);
	struct pipe_event event = {
		.entry = entry_of(r, record->event),
		.time_ns = found->time_ns,
		.thread_id = r->thread_ids[found->ring],
		.capture_thread_id = r->thread_ids[found->ring],
		.sequence = sequence,
		.run_start = run_start,
		.sorted = true,
	};

	if (flags & RECORD_ACTIVITY) {
		if (end - at < 32)
			return -EMSGSIZE;
		event.activity_id = at;
		event.related_activity_id = at + 16;
		at += 32;
	}
	if (flags & RECORD_STACK) {
		uint64_t count;
		if (end - at < 8)
			return -EMSGSIZE;
		memcpy(&count, at, 8);
		if (count > RECORD_FRAMES_MAX || (uint64_t)(end - at - 8) < 8 * count)
			return -EMSGSIZE;
		event.stack = (const uint64_t *)(const void *)(at + 8);
		event.stack_count = (uint32_t)count;
		at += 8 + 8 * count;
	}
	if (at > end)
		return -EMSGSIZE;
	event.payload = at;
	event.payload_size = (uint32_t)(end - at);
	return nettrace4_event(r->encoder, &event);
}

static int write_all(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		ssize_t n = write(fd, data, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

static int write_file(struct recovery *r, const char *path, struct spoor_recovered *recovered)
{
	uint32_t *sequences = calloc(r->ring_count, sizeof(*sequences));
	uint32_t last = UINT32_MAX;
	int fd = sequences ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -1;
	int e = !sequences ? -ENOMEM : fd < 0 ? -errno : 0;

	if (e == 0) {
		nettrace4_set_process(r->encoder, r->head.process_id ? r->head.process_id : 1,
			r->head.utc_ns, r->head.pairs[0].ns);
		e = nettrace4_begin(r->encoder);
	}
	for (size_t i = 0; i < r->found_count && e == 0; i++) {
		const struct recover_found *found = &r->found[i];
		/* The two rings of a thread share one sequence. */
		uint32_t ring = found->ring;
		for (uint32_t k = 0; k < ring; k++)
			if (r->rings[k] && r->thread_ids[k] == r->thread_ids[ring]) {
				ring = k;
				break;
			}
		int one = write_event(r, found, ring != last, sequences[ring] + 1);
		if (one == -EMSGSIZE) {
			r->broken++;
			continue;
		}
		e = one;
		sequences[ring]++;
		last = ring;
		recovered->events++;
		if (!recovered->first_ns)
			recovered->first_ns = found->time_ns;
		recovered->last_ns = found->time_ns;
		if (e == 0 && nettrace4_wants_point(r->encoder))
			e = nettrace4_point(r->encoder, found->time_ns, NULL);
		if (e == 0 && r->out.size > (1u << 20)) {
			e = write_all(fd, r->out.data, r->out.size);
			outbuf_reset(&r->out);
		}
	}
	if (e == 0)
		e = nettrace4_end(r->encoder, 0, NULL);
	if (e == 0)
		e = write_all(fd, r->out.data, r->out.size);
	if (fd >= 0)
		close(fd);
	free(sequences);
	return e;
}

int spoor_recover(int fd, const char *out_path, struct spoor_recovered *ret_recovered)
{
	struct recovery r = { .fd = fd };
	struct spoor_recovered recovered = { .size = sizeof(recovered) };
	struct stat facts;

	if (fd < 0 || !out_path)
		return -EINVAL;
	if (fstat(fd, &facts))
		return -errno;
	r.file_size = (uint64_t)facts.st_size;
	int e = read_at(&r, 0, &r.head, sizeof(r.head));
	if (e == 0 && (memcmp(r.head.magic, RECOVER_MAGIC, sizeof(r.head.magic)) != 0 ||
			      r.head.head_bytes < sizeof(r.head) ||
			      r.head.pointer_bytes != sizeof(void *)))
		e = -EBADMSG;
	if (e == 0)
		e = read_kinds(&r);
	if (e == 0) {
		r.ring_count = r.head.ring_count < RECOVER_RINGS_MAX ? (uint32_t)r.head.ring_count
								     : RECOVER_RINGS_MAX;
		r.rings = calloc(r.ring_count + 1u, sizeof(*r.rings));
		r.thread_ids = calloc(r.ring_count + 1u, sizeof(*r.thread_ids));
		r.encoder = nettrace4_new(&r.out);
		if (!r.rings || !r.thread_ids || !r.encoder)
			e = -ENOMEM;
	}
	for (uint32_t i = 0; i < r.ring_count && e == 0; i++)
		e = read_ring(&r, i);
	if (e == 0 && !r.found_count)
		e = -ENODATA;
	if (e == 0) {
		qsort(r.found, r.found_count, sizeof(*r.found), by_time);
		e = write_file(&r, out_path, &recovered);
	}
	recovered.process_id = r.head.process_id;
	recovered.broken = r.broken;
	recovered.rings = r.ring_count;
	memcpy(recovered.command_line, r.head.command_line, sizeof(recovered.command_line) - 1);
	if (ret_recovered && e == 0) {
		size_t size = ret_recovered->size;
		memcpy(ret_recovered, &recovered,
			size && size < sizeof(recovered) ? size : sizeof(recovered));
	}
	for (uint32_t i = 0; i < r.ring_count && r.rings; i++)
		free(r.rings[i]);
	free(r.rings);
	free(r.thread_ids);
	free(r.found);
	free(r.kinds);
	free(r.by_index);
	free(r.metadata);
	nettrace4_free(r.encoder);
	outbuf_done(&r.out);
	return e;
}
