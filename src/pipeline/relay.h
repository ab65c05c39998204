/*
 * EventPipe streams of any number of processes on their way into one file: decoded, and put into the window (merge.h) from which they leave in
 * time order.
 *
 *   relay_new(&trace, &merge, &relay);
 *   stream = relay_open(relay, process, "events of shop");       when a session is opened
 *   relay_bytes(relay, stream, data, size, &diag);               as they come; size 0: the end
 *   relay_caught_up(relay, stream, now_ns);                      when its socket was read until nothing more was there
 *   merge_sort(&merge, relay_limit_ns(relay, now_ns));           then, for each item of kind PENDING_EVENT that merge_next() gives:
 *   relay_take(relay, item, late_ns, &event);  sink(event);  relay_give_back(relay, item);
 *
 * Payloads are copied once, into chunks that are used again when all that is in them has left. A stream says of some events that none of
 * those behind it is older (nettrace_decoder_sorted_ns()), so what must wait is known, not guessed; of one that has nothing to say the window's 250 ms are
 * waited.
 *
 * Threads are the target's own as /proc numbers them here: a process in another pid namespace tells of inner ids.
 *
 * A stream that is one of several sources (live.h) is opened by relay_open_picked(): its caller sees each event as it comes, says which ones are to wait, and
 * finds the thread's row itself when one leaves. relay_close() gives such a stream's place to another.
 */
#ifndef SPOOR_PIPELINE_RELAY_H
#define SPOOR_PIPELINE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct event;
struct merge;
struct nettrace_head;
struct pending;
struct relay;
struct stack_table;
struct trace;

/* What waits at most, in bytes; then the oldest leaves whatever may still come before it. */
#define RELAY_PENDING_MAX (64u << 20)

/*
 * Whose events wait, and how many. `wants` is shown each event as it is read, and what it returns false for goes no further; the event has no stack, and the
 * thread's id where its row would be. So has what relay_take() gives. When all that waits comes to more than `pending_max` bytes, an event is not
 * kept but counted (relay_stream_dropped()), and the next one carries the gap.
 */
struct relay_picking {
	bool (*wants)(void *context, const struct event *event);
	void *context;
	size_t pending_max;
	bool stacks; /* `wants` is shown the event's stack too */
};

struct relay_counts {
	uint64_t events;
	uint64_t bytes;          /* of the streams */
	uint64_t lost;           /* by their sequence numbers */
};

/* Trace and window are the caller's and outlive it. */
int relay_new(struct trace *trace, struct merge *merge, struct relay **ret_relay);

/* The number of the stream, counted from 0; -ENOMEM. `name` is what messages call it; copied. */
int relay_open(struct relay *relay, uint32_t process, const char *name);

int relay_open_picked(struct relay *relay, uint32_t process, const char *name, const struct relay_picking *picking);

/* The row of a thread of a process, by its number here, with its name; 0: no memory. */
uint32_t relay_place_thread(struct relay *relay, uint32_t process, uint32_t tid);

/* Nothing more comes of it. What waits still leaves, then its number is another one's. */
void relay_close(struct relay *relay, int stream);

/* Whether events of a process wait. */
bool relay_waits(const struct relay *relay, uint32_t process);

/* What the stream says of itself, with its first bytes. */
const struct nettrace_head *relay_head(const struct relay *relay, int stream);

/* nettrace_decoder_sorted_ns() of the stream, by its own clock. */
uint64_t relay_sorted_ns(const struct relay *relay, int stream);

/* What the stream's clock must be changed by to be CLOCK_MONOTONIC of this machine (another time namespace): 0 for nearly all. Known with the first bytes. */
int64_t relay_clock_offset_ns(const struct relay *relay, int stream);

/* -EBADMSG: it cannot be understood, and what came before stands. -ENOMEM. */
int relay_bytes(struct relay *relay, int stream, const uint8_t *data, size_t size, struct diag *diag);

/* Room in the stream for at least `size` bytes: relay_bytes() takes what is there without copying it. NULL: no memory. */
uint8_t *relay_room(struct relay *relay, int stream, size_t size);

void relay_caught_up(struct relay *relay, int stream, uint64_t now_ns);

/*
 * Up to which time items may leave. relay_limit_ns() is for a window that has other sources too: never less than MERGE_WINDOW_NS ago. Where the streams are all there is,
 * relay_settled_ns() goes by their own word alone; the caller sees to those that will be opened.
 */
uint64_t relay_limit_ns(const struct relay *relay, uint64_t now_ns);
uint64_t relay_settled_ns(const struct relay *relay, uint64_t now_ns);

/* Bytes that wait. */
size_t relay_pending_bytes(const struct relay *relay);

/* The stream that an item of kind PENDING_EVENT came from. */
int relay_stream(const struct pending *item);

/* The event of an item of kind PENDING_EVENT; borrowed until relay_give_back(), which each item needs. */
void relay_take(struct relay *relay, const struct pending *item, uint64_t late_ns,
	struct event *ret_event);
void relay_give_back(struct relay *relay, struct pending *item);

/* As nettrace_decoder_move_stacks(), for all streams; the items in the window are the caller's business. */
bool relay_move_stacks(struct relay *relay, struct stack_table *fresh);
void relay_stacks_moved(struct relay *relay);

void relay_count(const struct relay *relay, struct relay_counts *ret_counts);
uint64_t relay_stream_lost(const struct relay *relay, int stream);

/* Of a picked stream: that there was no room for. */
uint64_t relay_stream_dropped(const struct relay *relay, int stream);

/* Items that are still in the window are then without what they carry: end the window with it. */
void relay_free(struct relay *relay);

#endif
