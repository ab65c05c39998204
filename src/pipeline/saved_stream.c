/* See saved_stream.h. */
#include "pipeline/saved_stream.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/input.h"
#include "pipeline/reorder_window.h"
#include "pipeline/saved.h"
#include "trace/event.h"
#include "trace/flow.h"
#include "trace/trace.h"

#define LOOK_BYTES (1u << 20) /* the window is sorted again after so many more bytes */

/* A waiting event, with copies of all data that it points to. */
struct stream_event {
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
	saved_stream_fn *take;
	void *context;
	struct saved_reading reading;
	bool failed; /* the callback, or memory */
};

static int keep(struct window *window, const struct event *event, uint32_t code_epoch)
{
	size_t activity = event->activity ? EVENT_ACTIVITY_SIZE : 0;
	size_t list = event->labels ? event->labels->list_size : 0;
	size_t size = sizeof(struct stream_event) + activity + event->payload_size + list;
	struct stream_event *kept = malloc(size);
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
static int release_until(struct window *window, size_t least_bytes)
{
	struct pending *item;
	uint64_t late_ns; /* unused: the event's own time is shown */
	int r = 0;

	while (window->bytes > least_bytes &&
		(item = reorder_window_next(&window->order, &late_ns))) {
		struct stream_event *kept = item->side;
		window->bytes -= kept->size_bytes;
		if (r == 0)
			r = window->take(window->context, &kept->event, kept->code_epoch);
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
		r = release_until(window, 0);
	}
	if (r == 0 && window->bytes > SAVED_STREAM_WINDOW_MAX) {
		reorder_window_sort(&window->order, UINT64_MAX);
		r = release_until(window, SAVED_STREAM_WINDOW_MAX / 2);
	}
	return r;
}

static uint32_t epoch_of(const struct trace *trace, const struct event *event)
{
	uint32_t process =
		event->thread_index ? trace->threads.items[event->thread_index].process : 0;

	return process ? trace->processes.items[process].code_epoch : 0;
}

static int on_event(void *context, const struct event *event)
{
	struct window *window = context;
	const struct saved_reading *reading = &window->reading;
	int r = keep(window, event, reading->clock_only ? 0 : epoch_of(reading->trace, event));

	if (r == 0)
		r = look(window, reading->ops->sorted_ns(reading->source));
	window->failed = r < 0;
	return r;
}

static void forget(struct window *window)
{
	for (uint32_t i = window->order.taken; i < window->order.items.count; i++)
		free(window->order.items.items[i].side);
	reorder_window_done(&window->order);
}

/* `in` NULL: from `path`. */
static int stream(struct input *in, const char *path, struct trace *trace,
	enum saved_stream_stacks stacks, saved_stream_fn *take, void *context, uint64_t *ret_lost,
	struct diag *diag)
{
	struct window window = {
		.reading = {
			.trace = trace,
			.clock_only = stacks == SAVED_STREAM_NO_STACKS,
			.on_event = on_event,
			.context = &window,
		},
		.look_bytes = LOOK_BYTES,
		.take = take,
		.context = context,
	};
	int r = in ? saved_read_input(in, &window.reading, diag)
		   : saved_read_path(path, &window.reading, diag);

	if (!window.failed) {
		reorder_window_sort(&window.order, UINT64_MAX);
		int given = release_until(&window, 0);
		if (r == 0)
			r = given;
	}
	if (r == 0 && window.bytes)
		r = diag_set(diag, -ENOMEM, "cannot sort the events: %m");
	*ret_lost = window.reading.lost;
	forget(&window);
	return r;
}

int saved_stream_input(struct input *in, struct trace *trace, enum saved_stream_stacks stacks,
	saved_stream_fn *take, void *context, uint64_t *ret_lost, struct diag *diag)
{
	return stream(in, NULL, trace, stacks, take, context, ret_lost, diag);
}

int saved_stream(const char *path, struct trace *trace, enum saved_stream_stacks stacks,
	saved_stream_fn *take, void *context, uint64_t *ret_lost, struct diag *diag)
{
	return stream(NULL, path, trace, stacks, take, context, ret_lost, diag);
}
