/*
 * relay.c with a recorded runtime stream, as a live session uses it: together with samples, in one
 * time order, within a memory limit.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/diag.h"
#include "base/input.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/reorder_window.h"
#include "pipeline/relay.h"
#include "trace/event.h"
#include "trace/trace.h"

#define PLENTY    ((size_t)64 << 20)
#define ROOM      ((size_t)4096)
#define PID       4000000u /* above the greatest pid of a kernel, so no process has it */
#define OTHER_PID 4000001u

struct session {
	struct trace trace;
	struct reorder_window window;
	struct relay *relay;
	uint32_t seen; /* by `wants` */
	uint32_t wanted;
	uint64_t first_ns;
	uint64_t last_ns;
	bool methods_only;
	uint32_t drain_at; /* after this number of calls of `wants` */
	uint32_t drained;
	uint64_t gaps;
};

static uint8_t *stream_of_a_runtime(size_t *ret_size)
{
	struct input in;
	uint8_t *data;

	assert_int_equal(input_open(&in, TEST_DATA "/nettrace/runtime-v4.nettrace", NULL), 0);
	assert_int_equal(input_read_all(&in, 1 << 20, &data, ret_size, NULL), 0);
	input_close(&in);
	return data;
}

/* Releases all waiting items. */
static void drain(struct session *s)
{
	struct pending *item;
	uint64_t late_ns;

	reorder_window_sort(&s->window, UINT64_MAX);
	while ((item = reorder_window_next(&s->window, &late_ns))) {
		struct event event;
		relay_take(s->relay, item, late_ns, &event);
		s->gaps += event.lost_before;
		s->drained++;
		relay_give_back(s->relay, item);
	}
}

static bool wants(void *context, const struct event *event)
{
	struct session *s = context;

	if (s->seen++ == s->drain_at && s->seen > 1)
		drain(s);
	assert_int_equal(event->stack_index, 0);
	if (s->methods_only && s->trace.schemas.items[event->schema_index].kind != EVENT_METHOD)
		return false;
	s->wanted++;
	if (!s->first_ns || event->time_ns < s->first_ns)
		s->first_ns = event->time_ns;
	if (event->time_ns > s->last_ns)
		s->last_ns = event->time_ns;
	return true;
}

static void begin(struct session *s)
{
	*s = (struct session){ 0 };
	assert_int_equal(trace_init(&s->trace), 0);
	assert_int_equal(relay_new(&s->trace, &s->window, &s->relay), 0);
}

static void end(struct session *s)
{
	relay_free(s->relay);
	reorder_window_done(&s->window);
	trace_done(&s->trace);
}

static int open_one(struct session *s, uint32_t pid, size_t pending_max)
{
	const struct relay_picking picking = {
		.wants = wants, .context = s, .pending_max = pending_max
	};
	int stream = relay_open_picked(s->relay, trace_process(&s->trace, pid), "stream", &picking);

	assert_true(stream >= 0);
	return stream;
}

static void push(struct session *s, int stream, const uint8_t *data, size_t size)
{
	struct diag diag = { 0 };

	for (size_t at = 0; at < size; at += 1000)
		assert_int_equal(relay_bytes(s->relay, stream, data + at,
					 size - at < 1000 ? size - at : 1000, &diag),
			0);
}

/*
 * Samples and the events of two processes leave in one order, each event with its process and the
 * id of its thread.
 */
static void test_beside_samples(void **state)
{
	struct session s;
	size_t size;
	uint8_t *data = stream_of_a_runtime(&size);
	struct pending *item;
	uint64_t late_ns;
	uint64_t last_ns = 0;
	uint32_t events[2] = { 0 };
	uint32_t samples = 0;
	uint32_t turns = 0;
	bool was_event = false;

	(void)state;
	begin(&s);
	int one = open_one(&s, PID, PLENTY);
	int two = open_one(&s, OTHER_PID, PLENTY);

	push(&s, one, data, size);
	push(&s, two, data, size);
	uint64_t step_ns = (s.last_ns - s.first_ns) / 1000;
	assert_true(step_ns > 0);
	/*
	 * The stream was recorded with the clock of another boot; the relay detects and corrects
	 * the offset.
	 */
	uint64_t offset_ns = (uint64_t)relay_clock_offset_ns(s.relay, one);
	for (uint64_t at_ns = s.first_ns; at_ns < s.last_ns; at_ns += step_ns) {
		struct pending *sample = reorder_window_add(&s.window);
		sample->kind = PENDING_SAMPLE;
		sample->time_ns = at_ns + offset_ns;
		sample->cpu = 1;
		samples++;
	}
	uint32_t first = trace_find_process(&s.trace, PID);
	assert_true(relay_waits(s.relay, first));
	reorder_window_sort(&s.window, UINT64_MAX);
	while ((item = reorder_window_next(&s.window, &late_ns))) {
		struct event event;
		assert_int_equal(late_ns, 0);
		assert_true(item->time_ns >= last_ns);
		last_ns = item->time_ns;
		turns += was_event != (item->kind == PENDING_EVENT);
		was_event = item->kind == PENDING_EVENT;
		if (!was_event) {
			samples--;
			continue;
		}
		relay_take(s.relay, item, late_ns, &event);
		assert_true(item->pid == first ||
			    item->pid == trace_find_process(&s.trace, OTHER_PID));
		events[item->pid != first]++;
		assert_true(event.thread_index == item->tid && item->tid > 0);
		assert_int_equal(event.stack_index, 0);
		relay_give_back(s.relay, item);
	}
	assert_int_equal(samples, 0);
	assert_true(events[0] > 100);
	assert_int_equal(events[0], events[1]);
	assert_int_equal(events[0] + events[1], s.wanted);
	assert_true(turns > 20);
	assert_int_equal(relay_pending_bytes(s.relay), 0);
	assert_false(relay_waits(s.relay, first));
	/*
	 * No row for the thread was created: the caller looks it up when the event is released. No
	 * stack was stored either.
	 */
	assert_int_equal(s.trace.threads.count, 3);
	assert_int_equal(s.trace.stacks.stacks.count <= 1, true);
	end(&s);
	free(data);
}

static void test_pick(void **state)
{
	struct session s;
	size_t size;
	uint8_t *data = stream_of_a_runtime(&size);

	(void)state;
	begin(&s);
	s.methods_only = true;
	push(&s, open_one(&s, PID, PLENTY), data, size);
	assert_true(s.wanted > 10);
	assert_true(s.seen > s.wanted + 10);
	assert_int_equal(s.window.items.count, s.wanted);
	end(&s);
	free(data);
}

/*
 * Events without room are counted, and are a sequence gap before the next event; no other event is
 * lost.
 */
static void test_bounded(void **state)
{
	struct session s;
	size_t size;
	uint8_t *data = stream_of_a_runtime(&size);

	(void)state;
	begin(&s);
	s.drain_at = 100;
	int stream = open_one(&s, PID, ROOM);

	push(&s, stream, data, size);
	uint32_t waiting = s.window.items.count - s.window.taken;
	assert_true(s.drained > 5);
	assert_true(waiting > 5);
	assert_true(relay_pending_bytes(s.relay) + 2 * waiting * sizeof(struct pending) <= ROOM);
	drain(&s);
	uint64_t dropped = relay_stream_dropped(s.relay, stream);
	assert_int_equal(dropped + s.drained, s.wanted);
	/* The gap of dropped events is before the first event after them. */
	assert_true(s.gaps > 50);
	assert_true(s.gaps <= dropped);
	assert_int_equal(relay_pending_bytes(s.relay), 0);
	end(&s);
	free(data);
}

/* The slot of a closed stream is reused when none of its events wait. */
static void test_slot_is_reused_when_no_event_waits(void **state)
{
	struct session s;
	size_t size;
	uint8_t *data = stream_of_a_runtime(&size);
	struct pending *item;
	uint64_t late_ns;

	(void)state;
	begin(&s);
	int one = open_one(&s, PID, PLENTY);

	push(&s, one, data, size);
	assert_int_equal(relay_head(s.relay, one)->version, 4);
	relay_close(s.relay, one);
	assert_int_not_equal(open_one(&s, OTHER_PID, PLENTY), one);
	reorder_window_sort(&s.window, UINT64_MAX);
	while ((item = reorder_window_next(&s.window, &late_ns)))
		relay_give_back(s.relay, item);
	int again = open_one(&s, PID, PLENTY);
	assert_int_equal(again, one);
	uint32_t before = s.wanted;
	push(&s, again, data, size);
	assert_int_equal(s.wanted, 2 * before);
	/* A stream with invalid data ends; its waiting events are freed with the others. */
	assert_int_equal(relay_bytes(s.relay, open_one(&s, PID, PLENTY),
				 (const uint8_t *)"Nettrace, not", 13, NULL) <= 0,
		true);
	end(&s);
	free(data);
}

/*
 * The watermark is that of the streams: 0 while a stream has sent nothing; then the time of its
 * last sorted event, or 250 ms before its socket was last read empty; and the current time when all
 * have ended.
 */
static void test_settled(void **state)
{
	struct session s;
	size_t size;
	uint8_t *data = stream_of_a_runtime(&size);
	uint64_t now_ns = UINT64_C(1) << 62; /* far after the stream's times */

	(void)state;
	begin(&s);
	assert_int_equal(relay_settled_ns(s.relay, now_ns), now_ns);
	int first = open_one(&s, PID, PLENTY);
	int second = open_one(&s, OTHER_PID, PLENTY);

	relay_caught_up(s.relay, first, REORDER_WINDOW_NS);
	relay_caught_up(s.relay, second, REORDER_WINDOW_NS);
	assert_int_equal(relay_settled_ns(s.relay, now_ns), 0);
	push(&s, first, data, size);
	assert_true(s.last_ns > 0);
	/* the other stream may still have earlier events */
	assert_int_equal(relay_settled_ns(s.relay, now_ns), 0);
	relay_caught_up(s.relay, second, now_ns);
	uint64_t settled_ns = relay_settled_ns(s.relay, now_ns);

	assert_true(settled_ns > 0 &&
		    settled_ns <= s.last_ns + (uint64_t)relay_clock_offset_ns(s.relay, first));
	relay_caught_up(s.relay, first, now_ns);
	assert_int_equal(relay_settled_ns(s.relay, now_ns), now_ns - REORDER_WINDOW_NS);
	assert_int_equal(relay_limit_ns(s.relay, now_ns), now_ns - REORDER_WINDOW_NS);
	relay_close(s.relay, first);
	assert_int_equal(relay_settled_ns(s.relay, now_ns), now_ns - REORDER_WINDOW_NS);
	relay_close(s.relay, second);
	assert_int_equal(relay_settled_ns(s.relay, now_ns), now_ns);
	assert_int_equal(relay_limit_ns(s.relay, now_ns), now_ns - REORDER_WINDOW_NS);
	drain(&s);
	assert_int_equal(s.drained, s.wanted);
	end(&s);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside_samples),
		cmocka_unit_test(test_pick),
		cmocka_unit_test(test_bounded),
		cmocka_unit_test(test_slot_is_reused_when_no_event_waits),
		cmocka_unit_test(test_settled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
