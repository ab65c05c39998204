/*
 * See collections.h.
 *
 * The runtime sends, in this order: GCSuspendEEBegin, GCSuspendEEEnd, GCStart, GCEnd, GCHeapStats,
 * GCRestartEEBegin, GCRestartEEEnd. A background collection restarts the threads before its end,
 * and suspends them again in its course. Files of other tools are not sorted by time, so the events
 * are collected first.
 */
#include "analysis/collections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/event_stacks.h"
#include "analysis/profile.h"
#include "analysis/runtime_event.h"
#include "base/cursor.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/trace.h"

#define NO_ROW UINT32_MAX

/* gc_reason in the runtime's gc.h. */
enum induced_reason {
	REASON_INDUCED = 1,
	REASON_INDUCED_NOT_FORCED = 7,
	REASON_INDUCED_COMPACTING = 10,
	REASON_INDUCED_AGGRESSIVE = 17,
};

/* GCSuspendEEBegin: all other reasons are not for a collection. */
enum suspend_reason { SUSPEND_FOR_GC = 1, SUSPEND_FOR_GC_PREPARATION = 6 };

struct collection_event {
	uint64_t time_ns;
	uint64_t heap_bytes; /* CLR_ID_GCHeapStats; free bytes of CLR_ID_GCPerHeapHistory_V3 */
	uint64_t part_bytes[COLLECTION_HEAPS];
	uint64_t promoted_bytes;
	uint32_t order; /* of equal times, that of the file */
	uint32_t process;
	uint32_t number; /* CLR_ID_GCStart, CLR_ID_GCEnd */
	uint16_t id;     /* enum clr_event_id */
	uint8_t generation;
	uint8_t reason; /* of GCStart, or of GCSuspendEEBegin */
	uint8_t type;
};

static uint8_t as_byte(uint32_t value)
{
	return value > UINT8_MAX ? UINT8_MAX : (uint8_t)value;
}

/* GCStart: u32 number, generation, reason, type. Version 0 has the number and the reason only. */
static void read_start(struct cursor *c, uint32_t version, struct collection_event *ret)
{
	ret->number = cursor_u32(c);
	if (version == 0) {
		ret->reason = as_byte(cursor_u32(c));
		return;
	}
	ret->generation = as_byte(cursor_u32(c));
	ret->reason = as_byte(cursor_u32(c));
	ret->type = as_byte(cursor_u32(c));
}

/*
 * GCHeapStats: u64 size and promoted bytes of generations 0, 1, 2 and of large objects; then 38
 * bytes of other figures; from version 2 on size and promoted bytes of pinned objects.
 */
static void read_stats(struct cursor *c, uint32_t version, struct collection_event *ret)
{
	for (unsigned i = 0; i < COLLECTION_HEAPS - 1; i++) {
		ret->part_bytes[i] = cursor_u64(c);
		ret->heap_bytes += ret->part_bytes[i];
		ret->promoted_bytes += cursor_u64(c);
	}
	if (version < 2 || cursor_left(c) < 8 + 8 + 4 + 4 + 4 + 2 + 16)
		return;
	cursor_skip(c, 8 + 8 + 4 + 4 + 4 + 2);
	ret->part_bytes[COLLECTION_HEAPS - 1] = cursor_u64(c);
	ret->heap_bytes += ret->part_bytes[COLLECTION_HEAPS - 1];
	ret->promoted_bytes += cursor_u64(c);
}

/*
 * GCPerHeapHistory, version 3: u16 instance, 6 u64 and 6 u32 of other figures, u64 commit, u32
 * count of generations; for each of them 10 u64, the fifth and sixth of which are the bytes in free
 * lists and in free objects after the collection.
 */
static void read_history(struct cursor *c, struct collection_event *ret)
{
	cursor_skip(c, 2 + 6 * 8 + 6 * 4 + 8);
	uint32_t count = cursor_u32(c);

	for (uint32_t i = 0; i < count && !c->short_read; i++) {
		cursor_skip(c, 4 * 8);
		ret->heap_bytes += cursor_u64(c);
		ret->heap_bytes += cursor_u64(c);
		cursor_skip(c, 4 * 8);
	}
}

int collections_event(struct collections *collections, const struct event *event)
{
	const struct trace *trace = collections->trace;

	if (event->schema_index >= trace->schemas.count || !event->thread_index ||
		event->thread_index >= trace->threads.count)
		return 0;
	const struct schema *schema = &trace->schemas.items[event->schema_index];
	struct cursor c = cursor_of(event->payload, event->payload_size);
	struct collection_event raw = { .time_ns = event->time_ns,
		.order = collections->raw.count,
		.process = trace->threads.items[event->thread_index].process,
		.id = (uint16_t)schema->event_id };

	if (schema->provider_kind != PROVIDER_CLR)
		return 0;
	switch (schema->event_id) {
	case CLR_ID_GCStart:
		read_start(&c, schema->version, &raw);
		break;
	case CLR_ID_GCEnd:
		raw.number = cursor_u32(&c);
		break;
	case CLR_ID_GCHeapStats:
		read_stats(&c, schema->version, &raw);
		break;
	case CLR_ID_GCPerHeapHistory_V3:
		if (schema->version < 3)
			return 0;
		read_history(&c, &raw);
		break;
	case CLR_ID_GCSuspendEEBegin:
		raw.reason = as_byte(schema->version ? cursor_u32(&c) : cursor_u16(&c));
		break;
	case CLR_ID_GCSuspendEEEnd:
	case CLR_ID_GCRestartEEEnd:
		break;
	default:
		return 0;
	}
	if (c.short_read)
		return 0;
	return vec_add(&collections->raw, raw) ? 0 : -ENOMEM;
}

static int compare_events(const void *a, const void *b)
{
	const struct collection_event *x = a;
	const struct collection_event *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* The collections in progress in one process. Rows are NO_ROW when there is none. */
struct collection_progress {
	uint64_t suspend_begin_ns; /* 0: the threads are not suspended for a collection */
	uint64_t suspend_end_ns;   /* 0: not all of them are suspended yet */
	uint32_t background;       /* until its GCEnd */
	uint32_t paused_for;       /* the collection that began in the current suspension */
	uint32_t ended;            /* the last one, which the next GCHeapStats is about */
};

/* The threads run again. The pause is of the collection that began in it, else of the background. */
static void end_pause(struct collections *collections, struct collection_progress *now,
	uint64_t time_ns)
{
	uint32_t row = now->paused_for != NO_ROW ? now->paused_for : now->background;

	if (now->suspend_begin_ns && row != NO_ROW) {
		struct collection *collection = &collections->rows.items[row];
		uint64_t suspended_ns = now->suspend_end_ns ? now->suspend_end_ns : time_ns;
		collection->pause_ns += time_ns - now->suspend_begin_ns;
		collection->suspend_ns += suspended_ns - now->suspend_begin_ns;
	}
	now->suspend_begin_ns = now->suspend_end_ns = 0;
	now->paused_for = NO_ROW;
}

static int begin_collection(struct collections *collections, struct collection_progress *now,
	const struct collection_event *event)
{
	uint32_t row = collections->rows.count;
	struct collection *collection = vec_push(&collections->rows);

	if (!collection)
		return -ENOMEM;
	*collection = (struct collection){ .begin_ns = event->time_ns,
		.number = event->number,
		.process = event->process,
		.generation = event->generation,
		.reason = event->reason,
		.type = event->type };
	if (event->type == COLLECTION_BACKGROUND)
		now->background = row;
	now->paused_for = row;
	return 0;
}

/* GCEnd names its collection by number; of a collection that began before the recording, none. */
static void end_collection(struct collections *collections, struct collection_progress *now,
	uint32_t first, const struct collection_event *event)
{
	now->ended = NO_ROW;
	for (uint32_t i = collections->rows.count; i > first && now->ended == NO_ROW; i--)
		if (collections->rows.items[i - 1].number == event->number)
			now->ended = i - 1;
	if (now->ended != NO_ROW)
		collections->rows.items[now->ended].end_ns = event->time_ns;
	if (now->ended == now->background)
		now->background = NO_ROW;
}

static void take_stats(struct collections *collections, struct collection_progress *now,
	const struct collection_event *event)
{
	if (now->ended == NO_ROW)
		return;
	struct collection *collection = &collections->rows.items[now->ended];
	collection->heap_bytes = event->heap_bytes;
	memcpy(collection->part_bytes, event->part_bytes, sizeof(collection->part_bytes));
	collection->promoted_bytes = event->promoted_bytes;
	collection->has_stats = true;
	now->ended = NO_ROW;
}

/* It comes before GCEnd; each heap has its own. */
static void take_history(struct collections *collections, const struct collection_progress *now,
	const struct collection_event *event)
{
	uint32_t row = now->paused_for != NO_ROW ? now->paused_for : now->background;

	if (row == NO_ROW)
		return;
	collections->rows.items[row].free_bytes += event->heap_bytes;
	collections->rows.items[row].has_free = true;
}

/* The rows of one process, from its events in order of time. */
static int pair_events(struct collections *collections, const struct collection_event *events,
	uint32_t count)
{
	struct collection_progress now = {
		.background = NO_ROW, .paused_for = NO_ROW, .ended = NO_ROW
	};
	uint32_t first = collections->rows.count;
	int error = 0;

	for (uint32_t i = 0; i < count && !error; i++) {
		const struct collection_event *event = &events[i];
		switch (event->id) {
		case CLR_ID_GCSuspendEEBegin:
			now.suspend_end_ns = 0;
			now.suspend_begin_ns =
				event->reason == SUSPEND_FOR_GC ||
						event->reason == SUSPEND_FOR_GC_PREPARATION
					? event->time_ns
					: 0;
			break;
		case CLR_ID_GCSuspendEEEnd:
			if (now.suspend_begin_ns && !now.suspend_end_ns)
				now.suspend_end_ns = event->time_ns;
			break;
		case CLR_ID_GCStart:
			error = begin_collection(collections, &now, event);
			break;
		case CLR_ID_GCEnd:
			end_collection(collections, &now, first, event);
			break;
		case CLR_ID_GCPerHeapHistory_V3:
			take_history(collections, &now, event);
			break;
		case CLR_ID_GCHeapStats:
			take_stats(collections, &now, event);
			break;
		default:
			end_pause(collections, &now, event->time_ns);
		}
	}
	return error;
}

static int compare_numbers(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Removes rows outside the times of the filter, and sums the others. */
static int sum_process(struct collections *collections, const struct profile *profile,
	uint32_t first)
{
	const struct profile_filter *filter = &profile->filter;
	struct collections_process sum = { .row_at = first };
	struct collection *rows = collections->rows.items;
	uint64_t begin_ns = collections->trace->recording.sync_ns;
	uint32_t kept = first;

	for (uint32_t i = first; i < collections->rows.count; i++) {
		struct collection row = rows[i];
		uint64_t since_ns = row.begin_ns > begin_ns ? row.begin_ns - begin_ns : 0;
		if (since_ns < filter->from_ns || (filter->to_ns && since_ns >= filter->to_ns))
			continue;
		rows[kept] = row;
		sum.process = row.process;
		sum.pause_ns += row.pause_ns;
		sum.by_generation[row.generation < COLLECTION_GENERATIONS
					  ? row.generation
					  : COLLECTION_GENERATIONS - 1]++;
		sum.by_reason[row.reason < COLLECTION_REASONS ? row.reason
							      : COLLECTION_REASONS - 1]++;
		sum.background_count += row.type == COLLECTION_BACKGROUND;
		if (!sum.row_count || row.pause_ns > rows[sum.longest].pause_ns)
			sum.longest = kept;
		if (row.has_stats) {
			sum.promoted_bytes += row.promoted_bytes;
			sum.heap_last_bytes = row.heap_bytes;
			if (row.heap_bytes > sum.heap_most_bytes)
				sum.heap_most_bytes = row.heap_bytes;
		}
		if (row.has_free) {
			sum.free_last_bytes = row.free_bytes;
			sum.has_free = true;
		}
		sum.row_count++;
		kept++;
	}
	collections->rows.count = kept;
	if (!sum.row_count)
		return 0;
	uint64_t *pauses = calloc(sum.row_count, sizeof(*pauses));
	if (!pauses)
		return -ENOMEM;
	for (uint32_t i = 0; i < sum.row_count; i++)
		pauses[i] = rows[first + i].pause_ns;
	qsort(pauses, sum.row_count, sizeof(*pauses), compare_numbers);
	sum.pause_median_ns = pauses[sum.row_count / 2];
	sum.pause_p95_ns = pauses[(uint32_t)((uint64_t)sum.row_count * 95 / 100)];
	sum.pause_p99_ns = pauses[(uint32_t)((uint64_t)sum.row_count * 99 / 100)];
	free(pauses);
	return vec_add(&collections->processes, sum) ? 0 : -ENOMEM;
}

static int compare_processes(const void *a, const void *b)
{
	const struct collections_process *x = a;
	const struct collections_process *y = b;

	if (x->pause_ns != y->pause_ns)
		return x->pause_ns > y->pause_ns ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

int collections_finish(struct collections *collections, const struct profile *profile,
	uint64_t duration_ns)
{
	uint64_t from_ns = profile->filter.from_ns;
	uint64_t to_ns = profile->filter.to_ns;
	struct collection_event *raw = collections->raw.items;
	uint32_t count = collections->raw.count;
	int error = 0;

	if (count)
		qsort(raw, count, sizeof(*raw), compare_events);
	for (uint32_t begin = 0, end; begin < count && !error; begin = end) {
		for (end = begin; end < count && raw[end].process == raw[begin].process;)
			end++;
		if (!profile_wants_process(profile, raw[begin].process))
			continue;
		uint32_t first = collections->rows.count;
		error = pair_events(collections, raw + begin, end - begin);
		if (!error)
			error = sum_process(collections, profile, first);
	}
	vec_done(&collections->raw);
	if (!to_ns || to_ns > duration_ns)
		to_ns = duration_ns;
	collections->span_ns = to_ns > from_ns ? to_ns - from_ns : 0;
	if (collections->processes.count)
		qsort(collections->processes.items, collections->processes.count,
			sizeof(collections->processes.items[0]), compare_processes);
	return error;
}

/* GCTriggered: u32 reason, u16 instance. */
int collections_trigger(struct collections *collections, const struct runtime_event *event)
{
	struct cursor c = event->payload;
	struct tally_key key = { .process = event->process, .kind = cursor_u32(&c) };
	const struct tally_amount amount = {
		.amount = 1, .at_ns = event->at_ns, .from_ns = event->from_ns
	};

	if (c.short_read || !event->is_selected)
		return 0;
	int error = event_stacks_add(event->stacks, event->process, event->event, &key.stack);
	return error ? error : tally_add(&collections->triggers, &key, &amount);
}

bool collection_is_induced(uint32_t reason)
{
	return reason == REASON_INDUCED || reason == REASON_INDUCED_NOT_FORCED ||
	       reason == REASON_INDUCED_COMPACTING || reason == REASON_INDUCED_AGGRESSIVE;
}

void collections_levels(const struct collections *collections,
	const struct collections_process *process, uint32_t part, uint64_t from_ns, uint32_t count,
	uint64_t *levels)
{
	const struct collection *rows = &collections->rows.items[process->row_at];
	uint64_t level = 0;
	uint32_t r = 0;

	for (uint32_t i = 0; i < count; i++) {
		double part_end = (double)collections->span_ns * (i + 1) / count;
		uint64_t end_ns = i + 1 < count ? from_ns + (uint64_t)part_end : UINT64_MAX;
		for (; r < process->row_count && rows[r].begin_ns < end_ns; r++)
			if (rows[r].has_stats)
				level = part < COLLECTION_HEAPS ? rows[r].part_bytes[part]
								: rows[r].heap_bytes;
		levels[i] = level;
	}
}

const char *collection_reason(uint32_t reason)
{
	/* gc_reason in the runtime's gc.h. */
	static const char *const words[COLLECTION_REASONS] = { "small objects", "induced",
		"low memory", "empty", "large objects", "no space for small objects",
		"no space for large objects", "induced, not forced", "stress test",
		"low memory, blocking", "induced, compacting", "low memory of the host",
		"provisional mode", "low memory of the host, blocking", "tuning, small objects",
		"tuning, large objects", "stepping", "induced, aggressive", "other" };

	return words[reason < COLLECTION_REASONS ? reason : COLLECTION_REASONS - 1];
}

const char *collection_type(enum collection_type type)
{
	static const char *const words[] = { "blocking", "background", "foreground" };

	return (unsigned)type < 3 ? words[type] : "other";
}

void collections_done(struct collections *collections)
{
	tally_done(&collections->triggers);
	vec_done(&collections->raw);
	vec_done(&collections->rows);
	vec_done(&collections->processes);
	*collections = (struct collections){ 0 };
}
