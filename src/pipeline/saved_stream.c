/* See saved_stream.h. */
#include "pipeline/saved_stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/input.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/reorder_window.h"
#include "trace/absorb.h"
#include "trace/event.h"
#include "trace/trace.h"

#define LOOK_BYTES (1u << 20) /* the window is sorted again after so many more bytes */

/* A waiting event, with copies of all data that it points to. */
struct kept {
	struct event event;
	struct event_labels labels;
	uint32_t code_epoch;
	size_t size_bytes;
	uint8_t bytes[]; /* activity, if any, then payload, then list of labels */
};

struct window {
	struct reorder_window order;
	size_t bytes;
	size_t look_bytes;
	saved_stream_fn *on_event;
	void *context;
};

static int keep(struct window *window, const struct event *event, uint32_t code_epoch)
{
	size_t activity = event->activity ? EVENT_ACTIVITY_SIZE : 0;
	size_t list = event->labels ? event->labels->list_size : 0;
	size_t size = sizeof(struct kept) + activity + event->payload_size + list;
	struct kept *kept = malloc(size);
	struct pending *item = kept ? reorder_window_add(&window->order) : NULL;

	if (!item) {
		free(kept);
		return -ENOMEM;
	}
	kept->event = *event;
	kept->code_epoch = code_epoch;
	kept->size_bytes = size + sizeof(*item);
	if (activity)
		memcpy(kept->bytes, event->activity, activity);
	if (event->payload_size)
		memcpy(kept->bytes + activity, event->payload, event->payload_size);
	if (event->labels)
		kept->labels = *event->labels;
	if (list)
		kept->labels.list = memcpy(kept->bytes + activity + event->payload_size,
			event->labels->list, list);
	kept->event.labels = event->labels ? &kept->labels : NULL;
	kept->event.activity = activity ? kept->bytes : NULL;
	kept->event.payload = kept->bytes + activity;
	item->kind = PENDING_EVENT;
	item->time_ns = event->time_ns;
	item->side = kept;
	window->bytes += kept->size_bytes;
	return 0;
}

/*
 * Passes ready items to the callback until at most `least_bytes` wait. After the callback has
 * failed, the rest is freed without a call.
 */
static int give_out(struct window *window, size_t least_bytes)
{
	struct pending *item;
	uint64_t late_ns; /* unused: the event's own time is shown */
	int r = 0;

	while (window->bytes > least_bytes &&
		(item = reorder_window_next(&window->order, &late_ns))) {
		struct kept *kept = item->side;
		window->bytes -= kept->size_bytes;
		if (r == 0)
			r = window->on_event(window->context, &kept->event, kept->code_epoch);
		free(kept);
	}
	window->look_bytes = window->bytes + LOOK_BYTES;
	return r < 0 ? r : 0;
}

static int look(struct window *window, uint64_t sorted_ns)
{
	int r = 0;

	if (window->bytes <= window->look_bytes)
		return 0;
	window->look_bytes = window->bytes + LOOK_BYTES;
	if (sorted_ns) {
		reorder_window_sort(&window->order, sorted_ns);
		r = give_out(window, 0);
	}
	if (r == 0 && window->bytes > SAVED_STREAM_WINDOW_MAX) {
		reorder_window_sort(&window->order, UINT64_MAX);
		r = give_out(window, SAVED_STREAM_WINDOW_MAX / 2);
	}
	return r;
}

/* Returns 1 for an event, 0 at the end. */
static int next_event(struct input *in, struct nettrace_decoder *decoder, struct event *ret_event,
	struct diag *diag)
{
	for (;;) {
		int r = nettrace_decoder_next(decoder, ret_event, diag);
		if (r || nettrace_decoder_ended(decoder))
			return r;
		uint8_t *room = nettrace_decoder_room(decoder, INPUT_WINDOW);
		if (!room)
			return diag_set(diag, -ENOMEM, "cannot read '%s': %m", in->name);
		ssize_t n = input_read(in, room, INPUT_WINDOW, diag);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return nettrace_decoder_finish(decoder, diag);
		nettrace_decoder_filled(decoder, (size_t)n);
	}
}

static uint32_t epoch_of(const struct trace *trace, const struct event *event)
{
	uint32_t process =
		event->thread_index ? trace->threads.items[event->thread_index].process : 0;

	return process ? trace->processes.items[process].code_epoch : 0;
}

/*
 * `facts` is `trace` if the facts that events state are to be collected; NULL: only the data that
 * turns times into dates is.
 */
static int read_events(struct input *in, struct nettrace_decoder *decoder, struct window *window,
	struct trace *trace, struct trace *facts, struct diag *diag)
{
	struct event event;
	int r;

	while ((r = next_event(in, decoder, &event, diag)) > 0) {
		/* A payload that cannot be decoded is ignored, as in saved.c. */
		r = facts ? absorb_event(facts, &event, NULL) : absorb_clock(trace, &event);
		if (r != -ENOMEM)
			r = keep(window, &event, facts ? epoch_of(facts, &event) : 0);
		if (r < 0)
			return diag_set(diag, r, "cannot read '%s': %m", in->name);
		r = look(window, nettrace_decoder_sorted_ns(decoder));
		if (r < 0)
			return r;
	}
	reorder_window_sort(&window->order, UINT64_MAX);
	int given = give_out(window, 0);

	if (r == 0 && given == 0 && window->bytes) /* no memory to sort them */
		given = diag_set(diag, -ENOMEM, "cannot read '%s': %m", in->name);
	return r < 0 ? r : given;
}

static void forget(struct window *window)
{
	for (uint32_t i = window->order.taken; i < window->order.items.count; i++)
		free(window->order.items.items[i].side);
	reorder_window_done(&window->order);
}

int saved_stream_input(struct input *in, struct trace *trace, enum saved_stream_stacks stacks,
	saved_stream_fn *on_event, void *context, uint64_t *ret_lost, struct diag *diag)
{
	struct window window = {
		.look_bytes = LOOK_BYTES, .on_event = on_event, .context = context
	};
	const char *name = in->name ? in->name : "memory";
	struct nettrace_decoder *decoder;
	int r = input_unpack(in, diag);

	*ret_lost = 0;
	decoder = r == 0 ? nettrace_decoder_new(trace, name,
				   stacks == SAVED_STREAM_STACKS ? 0 : NETTRACE_NO_STACKS)
			 : NULL;
	if (decoder)
		r = read_events(in, decoder, &window, trace,
			stacks == SAVED_STREAM_STACKS ? trace : NULL, diag);
	else if (r == 0)
		r = diag_set(diag, -ENOMEM, "cannot read '%s': %m", name);
	if (decoder)
		*ret_lost = nettrace_decoder_lost(decoder);
	forget(&window);
	nettrace_decoder_free(decoder);
	return r;
}

int saved_stream(const char *path, struct trace *trace, enum saved_stream_stacks stacks,
	saved_stream_fn *on_event, void *context, uint64_t *ret_lost, struct diag *diag)
{
	struct input in;
	int r = input_open(&in, path, diag);

	*ret_lost = 0;
	if (r < 0)
		return r;
	r = saved_stream_input(&in, trace, stacks, on_event, context, ret_lost, diag);
	input_close(&in);
	return r;
}
