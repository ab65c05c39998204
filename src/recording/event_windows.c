/* See event_windows.h. */
#include "recording/event_windows.h"

#define SECOND_NS UINT64_C(1000000000)
#define WINDOW_NS UINT64_C(50000000)
#define GAP_NS    UINT64_C(950000000)

static void enter(struct event_windows *windows, enum windows_state state, uint64_t now_ns)
{
	windows->state = state;
	windows->since_ns = now_ns;
}

static void add_gap(struct event_windows *windows, uint64_t to_ns)
{
	if (to_ns <= windows->last_ns)
		return;
	/* one that was not taken grows, with what was observed between the two */
	if (!windows->gap.to_ns)
		windows->gap.from_ns = windows->last_ns;
	windows->gap.to_ns = to_ns;
}

void event_windows_begin(struct event_windows *windows, uint64_t now_ns)
{
	windows->start_ns = now_ns;
}

void event_windows_event(struct event_windows *windows, uint64_t time_ns)
{
	bool first = windows->asked_ns && time_ns >= windows->asked_ns;

	if (!windows->first_ns)
		windows->first_ns = time_ns;

	if (first) {
		add_gap(windows, time_ns);
		windows->asked_ns = 0;
	}
	if (first || !windows->begin_ns ||
		(windows->state == WINDOWS_ALL && time_ns >= windows->begin_ns + SECOND_NS)) {
		windows->begin_ns = time_ns;
		windows->seen = 0;
	}
	windows->seen++;
	if (time_ns > windows->last_ns)
		windows->last_ns = time_ns;
}

/* The events of the last window came less often than the rate allows, or not at all. */
static bool is_quiet(const struct event_windows *windows)
{
	uint64_t lasted_ns = windows->last_ns - windows->begin_ns;

	return windows->asked_ns || windows->seen < 2 ||
	       (double)windows->seen * 1e9 < 0.75 * windows->rate * (double)lasted_ns;
}

bool event_windows_advance(struct event_windows *windows, bool is_open, uint64_t now_ns)
{
	if (is_open && !windows->open_ns)
		windows->open_ns = now_ns;
	switch (windows->state) {
	case WINDOWS_ALL:
		if (!windows->rate || windows->seen <= windows->rate || windows->asked_ns ||
			!is_open)
			break;
		enter(windows, WINDOWS_CLOSED, now_ns);
		windows->judged = false;
		/* With so many events the first one came when the session was opened. */
		if (windows->start_ns && windows->start_ns < windows->first_ns &&
			!windows->gap.to_ns)
			windows->gap = (struct windows_gap){ windows->start_ns, windows->first_ns };
		windows->start_ns = 0;
		break;
	case WINDOWS_CLOSED:
		/* by now the rest of the stream has come, and tells how the window was */
		if (now_ns < windows->since_ns + GAP_NS)
			break;
		enter(windows, windows->judged && is_quiet(windows) ? WINDOWS_ALL : WINDOWS_OPEN,
			now_ns);
		windows->judged = true;
		windows->asked_ns = now_ns;
		windows->open_ns = 0;
		break;
	case WINDOWS_OPEN:
		if (windows->open_ns && now_ns >= windows->open_ns + WINDOW_NS)
			enter(windows, WINDOWS_CLOSED, now_ns);
		break;
	}
	return windows->state != WINDOWS_CLOSED;
}

uint64_t event_windows_deadline_ns(const struct event_windows *windows)
{
	if (windows->state == WINDOWS_CLOSED)
		return windows->since_ns + GAP_NS;
	return windows->state == WINDOWS_OPEN && windows->open_ns ? windows->open_ns + WINDOW_NS
								  : UINT64_MAX;
}

bool event_windows_take(struct event_windows *windows, struct windows_gap *ret_gap)
{
	if (!windows->gap.to_ns)
		return false;
	*ret_gap = windows->gap;
	windows->gap = (struct windows_gap){ 0 };
	return true;
}

void event_windows_end(struct event_windows *windows, uint64_t end_ns)
{
	uint64_t opened_ns =
		windows->open_ns && windows->open_ns < end_ns ? windows->open_ns : end_ns;

	if (windows->state == WINDOWS_CLOSED)
		add_gap(windows, end_ns);
	else if (windows->asked_ns)
		add_gap(windows, opened_ns);
	*windows = (struct event_windows){ .rate = windows->rate, .gap = windows->gap };
}
