/*
 * Decodes the EventPipe streams of any number of processes, and puts their events into the reorder
 * window (reorder_window.h), which they leave in time order.
 *
 *   relay_new(&trace, &window, &relay);
 *   stream = relay_open(relay, process, "events of shop");       when a session is opened
 *   relay_bytes(relay, stream, data, size, &diag);               in order of arrival; size 0: the end
 *   relay_caught_up(relay, stream, now_ns);                      when its socket has been read until it was empty
 *   reorder_window_sort(&window, relay_limit_ns(relay, now_ns));           then, for each item of kind PENDING_EVENT that reorder_window_next() returns:
 *   relay_take(relay, item, late_ns, &event);  sink(event);  relay_give_back(relay, item);
 *
 * Payloads are copied one time, into chunks that are reused when all their events have left the
 * window. A stream marks some events as sorted: no later event of it is older
 * (nettrace_decoder_sorted_ns()). This gives its watermark. For a stream without such a mark the
 * window's 250 ms apply.
 *
 * Thread ids are those of the recorder's pid namespace. A runtime in another pid namespace sends
 * inner ids, which are translated with /proc.
 *
 * A stream that is one of several sources (live.h) is opened by relay_open_picked(): its caller is
 * called for each event as it is decoded, selects the events to keep, and finds the thread's row
 * itself when an event leaves. relay_close() frees such a stream's slot for another one.
 */
#ifndef SPOOR_PIPELINE_RELAY_H
#define SPOOR_PIPELINE_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct event;
struct reorder_window;
struct nettrace_head;
struct pending;
struct relay;
struct stack_table;
struct trace;

/*
 * Limit of the waiting bytes. Above it, items leave after REORDER_WINDOW_NS, even if older events may
 * still arrive.
 */
#define RELAY_PENDING_MAX (64u << 20)

/*
 * Selects the events of a stream. `wants` is called for each decoded event; an event for which it
 * returns false is dropped. The event has no stack, and its thread_index is the thread's id; so has
 * the event of relay_take(). If all waiting events would need more than `pending_max` bytes, an
 * event is dropped and counted (relay_stream_dropped()), and the next one carries the gap.
 */
struct relay_picking {
	bool (*wants)(void *context, const struct event *event);
	void *context;
	size_t pending_max;
	bool stacks; /* events have their stack */
};

struct relay_counts {
	uint64_t events;
	uint64_t bytes; /* of the streams */
	uint64_t lost;  /* by their sequence numbers */
};

/* The trace and the window are borrowed and must outlive the relay. */
int relay_new(struct trace *trace, struct reorder_window *window, struct relay **ret_relay);

/* Returns the number of the stream, from 0, or -ENOMEM. `name`, for messages, is copied. */
int relay_open(struct relay *relay, uint32_t process, const char *name);

int relay_open_picked(struct relay *relay, uint32_t process, const char *name,
	const struct relay_picking *picking);

/*
 * The row of a thread of a process, with its name; `tid` is an id of the recorder's pid namespace.
 * Returns 0 without memory.
 */
uint32_t relay_place_thread(struct relay *relay, uint32_t process, uint32_t tid);

/* Closes the stream. Its waiting events still leave; then its number is reused. */
void relay_close(struct relay *relay, int stream);

/* True if events of a process wait. */
bool relay_waits(const struct relay *relay, uint32_t process);

/* The header of the stream, valid after its first bytes. */
const struct nettrace_head *relay_head(const struct relay *relay, int stream);

/* nettrace_decoder_sorted_ns() of the stream, on its own clock. */
uint64_t relay_sorted_ns(const struct relay *relay, int stream);

/*
 * The offset to add to the stream's times to get CLOCK_MONOTONIC of this machine: 0, except for
 * another time namespace. Known after the first bytes.
 */
int64_t relay_clock_offset_ns(const struct relay *relay, int stream);

/* Returns 0; -EBADMSG if the stream cannot be decoded (its events so far stay valid); -ENOMEM. */
int relay_bytes(struct relay *relay, int stream, const uint8_t *data, size_t size,
	struct diag *diag);

/*
 * A buffer in the stream for at least `size` bytes: relay_bytes() decodes bytes there without
 * copying. NULL without memory.
 */
uint8_t *relay_room(struct relay *relay, int stream, size_t size);

void relay_caught_up(struct relay *relay, int stream, uint64_t now_ns);

/*
 * The watermarks up to which items may leave. relay_limit_ns() is for a window with other sources:
 * it is at least REORDER_WINDOW_NS ago. relay_settled_ns() is for a window with streams only, and
 * uses their own watermarks; the caller accounts for sessions that are being opened.
 */
uint64_t relay_limit_ns(const struct relay *relay, uint64_t now_ns);
uint64_t relay_settled_ns(const struct relay *relay, uint64_t now_ns);

/* Number of bytes that wait. */
size_t relay_pending_bytes(const struct relay *relay);

/* The stream that an item of kind PENDING_EVENT came from. */
int relay_stream(const struct pending *item);

/*
 * relay_take() returns the event of an item of kind PENDING_EVENT, borrowed until
 * relay_give_back(), which must be called for each item.
 */
void relay_take(struct relay *relay, const struct pending *item, uint64_t late_ns,
	struct event *ret_event);
void relay_give_back(struct relay *relay, struct pending *item);

/* As nettrace_decoder_move_stacks(), for all streams. The caller moves the window's stacks. */
bool relay_move_stacks(struct relay *relay, struct stack_table *fresh);
void relay_stacks_moved(struct relay *relay);

void relay_count(const struct relay *relay, struct relay_counts *ret_counts);
uint64_t relay_stream_lost(const struct relay *relay, int stream);

/* Events of a picked stream that were dropped because of pending_max. */
uint64_t relay_stream_dropped(const struct relay *relay, int stream);

/* Frees the relay, and the events that still wait. The window must not be used afterwards. */
void relay_free(struct relay *relay);

#endif
