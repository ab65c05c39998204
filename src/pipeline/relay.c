/* See relay.h. */
#include "pipeline/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/vec.h"
#include "machine/proc.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/reorder_window.h"
#include "trace/event.h"
#include "trace/trace.h"

#define CHUNK_SIZE   (256u << 10)
#define CHUNKS_SPARE 8u
/* A larger difference means another time namespace; the header's coarse time causes a smaller. */
#define CLOCK_APART_NS INT64_C(50000000)
#define RESCAN_NS \
	UINT64_C(100000000) /* shortest interval of looking for threads of another pid namespace */

struct chunk {
	struct chunk *next; /* in the list of spare chunks */
	size_t size;
	size_t used;
	uint32_t waiting; /* number of items not yet returned with relay_give_back() */
	_Alignas(8) uint8_t data[];
};

/* The data of an event that struct pending lacks. The item's tid, stack_index: thread, stack. */
struct carried {
	struct chunk *chunk;
	uint32_t schema_index;
	uint32_t payload_size;
	uint32_t lost_before;
	uint32_t stream;
	uint32_t has_activity;
	uint8_t bytes[]; /* activity, if any, then the payload */
};

struct stream {
	struct relay *relay;
	struct nettrace_decoder *decoder; /* NULL: closed */
	/* `wants` NULL: all events, with rows for threads and stacks */
	struct relay_picking picking;
	uint32_t process;
	uint32_t number;
	uint32_t waiting;     /* events in the window */
	uint32_t lost_before; /* to be reported with the next event that is kept */
	uint64_t dropped;
	bool inner_ids; /* it sends thread ids of another pid namespace */
	bool clock_known;
	bool open;
	uint8_t *room;     /* returned by relay_room() */
	int64_t offset_ns; /* added to its times */
	uint64_t caught_up_ns;
	uint64_t scanned_ns;
	struct map tids; /* inner thread id -> outer thread id */
};

struct relay {
	struct trace *trace;
	struct reorder_window *window;
	struct proc_reader proc;
	VEC(struct stream *) streams; /* entries are not moved: decoders point to them */
	struct chunk *chunk;          /* the chunk being filled */
	struct chunk *spare;
	uint32_t spare_count;
	size_t pending_bytes;
	uint32_t pending_count;
	uint64_t events;
	uint64_t bytes;
	uint64_t past_lost; /* of closed streams */
};

int relay_new(struct trace *trace, struct reorder_window *window, struct relay **ret_relay)
{
	struct relay *relay = calloc(1, sizeof(*relay));

	if (!relay)
		return -ENOMEM;
	relay->trace = trace;
	relay->window = window;
	int r = proc_open(&relay->proc, NULL);
	if (r < 0) {
		free(relay);
		return r;
	}
	*ret_relay = relay;
	return 0;
}

/* ---- threads ---- */

/* Reads the inner and outer ids of all threads of a process in another pid namespace. */
static void scan_threads(struct stream *stream, uint32_t pid)
{
	struct relay *relay = stream->relay;
	struct id_list list = { 0 };

	stream->scanned_ns = clock_monotonic_ns();
	if (proc_list_threads(&relay->proc, pid, &list) == 0) {
		for (uint32_t i = 0; i < list.ids.count; i++) {
			struct proc_thread thread;
			if (proc_read_thread(&relay->proc, pid, list.ids.items[i], &thread) == 0 &&
				map_get(&stream->tids, thread.inner_tid) != thread.tid)
				(void)map_put(&stream->tids, thread.inner_tid,
					/* without memory the thread is shown by its inner id */
					thread.tid);
		}
	}
	vec_done(&list.ids);
}

static uint32_t outer_tid(struct stream *stream, uint32_t pid, uint32_t tid)
{
	if (!stream->inner_ids)
		return tid;
	uint32_t outer = map_get(&stream->tids, tid);

	if (!outer && clock_monotonic_ns() >= stream->scanned_ns + RESCAN_NS) {
		scan_threads(stream, pid);
		outer = map_get(&stream->tids, tid);
	}
	return outer ? outer : tid;
}

uint32_t relay_place_thread(struct relay *relay, uint32_t process, uint32_t tid)
{
	struct trace *trace = relay->trace;
	uint32_t pid = trace->processes.items[process].pid;
	uint32_t index = trace_thread(trace, pid, tid);
	struct proc_thread facts;

	if (index && !trace->threads.items[index].name &&
		proc_read_thread(&relay->proc, pid, tid, &facts) == 0)
		trace->threads.items[index].name = trace_add_text(trace, facts.comm);
	return index;
}

static uint32_t place_thread(void *context, uint64_t thread_id)
{
	struct stream *stream = context;
	const struct process *process = &stream->relay->trace->processes.items[stream->process];

	if (!thread_id || thread_id > INT32_MAX)
		return process->main_thread;
	return relay_place_thread(stream->relay, stream->process,
		outer_tid(stream, process->pid, (uint32_t)thread_id));
}

/* ---- streams ---- */

/* For a picked stream: returns the thread's id; its row is found when the event leaves. */
static uint32_t thread_by_id(void *context, uint64_t thread_id)
{
	struct stream *stream = context;
	uint32_t pid = stream->relay->trace->processes.items[stream->process].pid;

	return thread_id && thread_id <= INT32_MAX ? outer_tid(stream, pid, (uint32_t)thread_id)
						   : pid;
}

/* The slot of a closed stream without waiting events; NULL: none. */
static struct stream *free_place(struct relay *relay)
{
	for (uint32_t i = 0; i < relay->streams.count; i++) {
		struct stream *stream = relay->streams.items[i];
		if (!stream->decoder && !stream->waiting) {
			*stream = (struct stream){ .relay = relay, .number = i };
			return stream;
		}
	}
	return NULL;
}

static struct stream *new_place(struct relay *relay)
{
	struct stream *stream = free_place(relay);

	if (stream)
		return stream;
	stream = calloc(1, sizeof(*stream));
	if (!stream || !vec_add(&relay->streams, stream)) {
		free(stream);
		return NULL;
	}
	stream->relay = relay;
	stream->number = relay->streams.count - 1;
	return stream;
}

static int open_stream(struct relay *relay, uint32_t process, const char *name,
	const struct relay_picking *picking)
{
	const struct process *facts = &relay->trace->processes.items[process];
	struct stream *stream = new_place(relay);

	if (!stream)
		return -ENOMEM;
	if (picking)
		stream->picking = *picking;
	stream->process = process;
	stream->inner_ids = facts->inner_pid && facts->inner_pid != facts->pid;
	stream->caught_up_ns = clock_monotonic_ns();
	stream->decoder = nettrace_decoder_new(relay->trace, name,
		picking && !picking->stacks ? NETTRACE_NO_STACKS : 0);
	if (!stream->decoder)
		return -ENOMEM;
	stream->open = true;
	nettrace_decoder_place(stream->decoder, picking ? thread_by_id : place_thread, stream);
	return (int)stream->number;
}

int relay_open(struct relay *relay, uint32_t process, const char *name)
{
	return open_stream(relay, process, name, NULL);
}

int relay_open_picked(struct relay *relay, uint32_t process, const char *name,
	const struct relay_picking *picking)
{
	return open_stream(relay, process, name, picking);
}

void relay_close(struct relay *relay, int number)
{
	struct stream *stream = relay->streams.items[number];

	relay->past_lost += nettrace_decoder_lost(stream->decoder);
	nettrace_decoder_free(stream->decoder);
	stream->decoder = NULL;
	stream->open = false;
	stream->room = NULL;
	map_done(&stream->tids);
}

bool relay_waits(const struct relay *relay, uint32_t process)
{
	for (uint32_t i = 0; i < relay->streams.count; i++)
		if (relay->streams.items[i]->process == process && relay->streams.items[i]->waiting)
			return true;
	return false;
}

const struct nettrace_head *relay_head(const struct relay *relay, int stream)
{
	return nettrace_decoder_head(relay->streams.items[stream]->decoder);
}

/*
 * Sets offset_ns: compares the difference of the two clocks in the stream's header with the same
 * difference on this machine.
 */
static void compare_clocks(struct stream *stream)
{
	const struct nettrace_head *head = nettrace_decoder_head(stream->decoder);

	if (stream->clock_known || !head->ticks_per_second)
		return;
	stream->clock_known = true;
	int64_t ours = (int64_t)(clock_utc_ns() - clock_monotonic_ns());
	int64_t theirs = (int64_t)(head->utc_ns - head->sync_ns);
	int64_t apart = theirs - ours;

	if (head->utc_ns && (apart > CLOCK_APART_NS || apart < -CLOCK_APART_NS))
		stream->offset_ns = apart;
}

int64_t relay_clock_offset_ns(const struct relay *relay, int stream)
{
	return relay->streams.items[stream]->offset_ns;
}

static size_t cost(size_t size)
{
	return (sizeof(struct carried) + size + 7) & ~(size_t)7;
}

/* All waiting bytes, with the items in the window, which may exist twice while it is sorted. */
static size_t whole_cost(const struct relay *relay)
{
	return relay->pending_bytes + 2 * sizeof(struct pending) * (size_t)relay->pending_count;
}

/* Allocates space for an event's data in the chunk being filled. */
static struct carried *carry(struct relay *relay, size_t size)
{
	size_t room = cost(size);
	struct chunk *chunk = relay->chunk;

	if (!chunk || chunk->size - chunk->used < room) {
		size_t wanted = room > CHUNK_SIZE ? room : CHUNK_SIZE;
		if (chunk && !chunk->waiting && chunk->size >= wanted) {
			chunk->used = 0; /* all its events have left */
		} else if (relay->spare && wanted == CHUNK_SIZE) {
			chunk = relay->spare;
			relay->spare = chunk->next;
			relay->spare_count--;
		} else {
			chunk = malloc(sizeof(*chunk) + wanted);
			if (!chunk)
				return NULL;
			*chunk = (struct chunk){ .size = wanted };
		}
		struct chunk *before = relay->chunk;
		relay->chunk = chunk;
		if (before && before != chunk && !before->waiting)
			free(before);
	}
	struct carried *carried = (struct carried *)(void *)(chunk->data + chunk->used);

	chunk->used += room;
	chunk->waiting++;
	relay->pending_bytes += room;
	carried->chunk = chunk;
	return carried;
}

static int keep_event(struct stream *stream, const struct event *event)
{
	struct relay *relay = stream->relay;
	size_t activity = event->activity ? EVENT_ACTIVITY_SIZE : 0;
	struct carried *carried = carry(relay, activity + event->payload_size);
	struct pending *item = carried ? reorder_window_add(relay->window) : NULL;

	if (!item) {
		if (carried) {
			carried->chunk->waiting--;
			relay->pending_bytes -= cost(activity + event->payload_size);
		}
		return -ENOMEM;
	}
	carried->schema_index = event->schema_index;
	carried->payload_size = event->payload_size;
	carried->lost_before = stream->lost_before;
	carried->stream = stream->number;
	carried->has_activity = activity != 0;
	if (activity)
		memcpy(carried->bytes, event->activity, EVENT_ACTIVITY_SIZE);
	if (event->payload_size)
		memcpy(carried->bytes + activity, event->payload, event->payload_size);
	item->kind = PENDING_EVENT;
	item->time_ns = event->time_ns + (uint64_t)stream->offset_ns;
	item->side = carried;
	item->pid = stream->process;
	item->tid = event->thread_index;
	item->stack_index = event->stack_index;
	item->value = event->value;
	item->cpu = (int16_t)(event->cpu >= 0 && event->cpu <= INT16_MAX ? event->cpu
									 : EVENT_CPU_UNKNOWN);
	item->flag = stream->lost_before != 0;
	stream->lost_before = 0;
	stream->waiting++;
	relay->pending_count++;
	relay->events++;
	return 0;
}

static void add_gap(struct stream *stream, uint32_t count)
{
	stream->lost_before =
		count < UINT32_MAX - stream->lost_before ? stream->lost_before + count : UINT32_MAX;
}

static int take_event(struct stream *stream, const struct event *event)
{
	const struct relay_picking *picking = &stream->picking;
	size_t size = cost(event->payload_size + (event->activity ? EVENT_ACTIVITY_SIZE : 0)) +
		      2 * sizeof(struct pending);

	add_gap(stream, event->lost_before);
	if (!picking->wants)
		return keep_event(stream, event);
	if (!picking->wants(picking->context, event))
		return 0;
	if (whole_cost(stream->relay) + size > picking->pending_max ||
		keep_event(stream, event) < 0) {
		stream->dropped++;
		add_gap(stream, 1);
	}
	return 0;
}

int relay_bytes(struct relay *relay, int number, const uint8_t *data, size_t size,
	struct diag *diag)
{
	struct stream *stream = relay->streams.items[number];
	struct event event;
	int r = 0;

	if (!size) {
		stream->open = false;
		r = nettrace_decoder_finish(stream->decoder, diag);
		/* frees buffers, because the other streams may run much longer */
		nettrace_decoder_rest(stream->decoder);
		return r;
	}
	relay->bytes += size;
	if (data == stream->room)
		nettrace_decoder_filled(stream->decoder, size);
	else
		r = nettrace_decoder_push(stream->decoder, data, size);
	stream->room = NULL;
	if (r < 0)
		return diag_set(diag, -ENOMEM, "cannot take events: %m");
	while ((r = nettrace_decoder_next(stream->decoder, &event, diag)) > 0) {
		compare_clocks(stream);
		r = take_event(stream, &event);
		if (r < 0)
			return diag_set(diag, r, "cannot take events: %m");
	}
	if (r < 0)
		stream->open = false;
	else if (stream->picking.wants)
		/* frees buffers: there are many such streams, mostly idle */
		nettrace_decoder_rest(stream->decoder);
	return r;
}

uint8_t *relay_room(struct relay *relay, int number, size_t size)
{
	struct stream *stream = relay->streams.items[number];

	/* Bytes after the end mark are ignored. */
	stream->room = nettrace_decoder_ended(stream->decoder)
			       ? NULL
			       : nettrace_decoder_room(stream->decoder, size);
	return stream->room;
}

void relay_caught_up(struct relay *relay, int stream, uint64_t now_ns)
{
	relay->streams.items[stream]->caught_up_ns = now_ns;
}

uint64_t relay_sorted_ns(const struct relay *relay, int stream)
{
	return nettrace_decoder_sorted_ns(relay->streams.items[stream]->decoder);
}

/* The lowest watermark of the open streams, at most `limit_ns`. */
static uint64_t limit_by_streams(const struct relay *relay, uint64_t limit_ns)
{
	for (uint32_t i = 0; i < relay->streams.count; i++) {
		const struct stream *stream = relay->streams.items[i];
		if (!stream->open)
			continue;
		uint64_t quiet_ns = stream->caught_up_ns > REORDER_WINDOW_NS
					    ? stream->caught_up_ns - REORDER_WINDOW_NS
					    : 0;
		uint64_t sorted_ns = nettrace_decoder_sorted_ns(stream->decoder);
		sorted_ns = sorted_ns ? sorted_ns + (uint64_t)stream->offset_ns : 0;
		uint64_t own_ns = sorted_ns > quiet_ns ? sorted_ns : quiet_ns;
		if (own_ns < limit_ns)
			limit_ns = own_ns;
	}
	return limit_ns;
}

uint64_t relay_limit_ns(const struct relay *relay, uint64_t now_ns)
{
	uint64_t limit_ns = now_ns - REORDER_WINDOW_NS;

	return relay->pending_bytes > RELAY_PENDING_MAX ? limit_ns
							: limit_by_streams(relay, limit_ns);
}

uint64_t relay_settled_ns(const struct relay *relay, uint64_t now_ns)
{
	if (relay->pending_bytes > RELAY_PENDING_MAX)
		return now_ns - REORDER_WINDOW_NS;
	return limit_by_streams(relay, now_ns);
}

size_t relay_pending_bytes(const struct relay *relay)
{
	return relay->pending_bytes;
}

/* ---- leaving the window ---- */

int relay_stream(const struct pending *item)
{
	const struct carried *carried = item->side;

	return (int)carried->stream;
}

void relay_take(struct relay *relay, const struct pending *item, uint64_t late_ns,
	struct event *ret_event)
{
	const struct carried *carried = item->side;
	const uint8_t *payload = carried->bytes + (carried->has_activity ? EVENT_ACTIVITY_SIZE : 0);

	*ret_event = (struct event){
		.time_ns = item->time_ns,
		.value = item->value,
		.payload = payload,
		.activity = carried->has_activity ? carried->bytes : NULL,
		.payload_size = carried->payload_size,
		.thread_index = item->tid,
		.stack_index = item->stack_index,
		.schema_index = carried->schema_index,
		.lost_before = carried->lost_before,
		.late_ns = late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns,
		.cpu = item->cpu,
		.kind = relay->trace->schemas.items[carried->schema_index].kind,
	};
}

void relay_give_back(struct relay *relay, struct pending *item)
{
	const struct carried *carried = item->side;
	struct chunk *chunk = carried->chunk;
	size_t size = carried->payload_size + (carried->has_activity ? EVENT_ACTIVITY_SIZE : 0);

	relay->pending_bytes -= cost(size);
	relay->pending_count--;
	relay->streams.items[carried->stream]->waiting--;
	item->side = NULL;
	if (--chunk->waiting || chunk == relay->chunk)
		return;
	if (chunk->size != CHUNK_SIZE || relay->spare_count >= CHUNKS_SPARE) {
		free(chunk);
		return;
	}
	chunk->used = 0;
	chunk->next = relay->spare;
	relay->spare = chunk;
	relay->spare_count++;
}

bool relay_move_stacks(struct relay *relay, struct stack_table *fresh)
{
	for (uint32_t i = 0; i < relay->streams.count; i++)
		if (relay->streams.items[i]->decoder &&
			!nettrace_decoder_move_stacks(relay->streams.items[i]->decoder, fresh))
			return false;
	return true;
}

void relay_stacks_moved(struct relay *relay)
{
	for (uint32_t i = 0; i < relay->streams.count; i++)
		if (relay->streams.items[i]->decoder)
			nettrace_decoder_stacks_moved(relay->streams.items[i]->decoder);
}

/* ---- the relay ---- */

uint64_t relay_stream_lost(const struct relay *relay, int stream)
{
	const struct stream *at = relay->streams.items[stream];

	return at->decoder ? nettrace_decoder_lost(at->decoder) : 0;
}

uint64_t relay_stream_dropped(const struct relay *relay, int stream)
{
	return relay->streams.items[stream]->dropped;
}

void relay_count(const struct relay *relay, struct relay_counts *ret_counts)
{
	*ret_counts = (struct relay_counts){
		.events = relay->events, .bytes = relay->bytes, .lost = relay->past_lost
	};
	for (uint32_t i = 0; i < relay->streams.count; i++)
		ret_counts->lost += relay_stream_lost(relay, (int)i);
}

void relay_free(struct relay *relay)
{
	struct pending *item;
	uint64_t late_ns;

	if (!relay)
		return;
	reorder_window_sort(relay->window, UINT64_MAX);
	while ((item = reorder_window_next(relay->window, &late_ns)))
		if (item->kind == PENDING_EVENT)
			relay_give_back(relay, item);
	for (uint32_t i = 0; i < relay->streams.count; i++) {
		nettrace_decoder_free(relay->streams.items[i]->decoder);
		map_done(&relay->streams.items[i]->tids);
		free(relay->streams.items[i]);
	}
	while (relay->spare) {
		struct chunk *chunk = relay->spare;
		relay->spare = chunk->next;
		free(chunk);
	}
	free(relay->chunk);
	vec_done(&relay->streams);
	proc_close(&relay->proc);
	free(relay);
}
