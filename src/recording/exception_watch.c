/* See exception_watch.h. */
#include "recording/exception_watch.h"

#include <string.h>

#define MS        UINT64_C(1000000)
#define SECOND_NS (1000 * MS)
/* One in twenty exceptions is observed. */
#define WINDOW_NS UINT64_C(100000000)
#define GAP_NS    UINT64_C(1900000000)
/* The counter has a value a second, or two. */
#define VALUES_NS UINT64_C(5000000000)
#define FRESH_NS  UINT64_C(4000000000)
/* Bytes of a stream arrive within a tenth of that. */
#define SETTLE_NS UINT64_C(3000000000)
/* The recording waits so long at its end for a value that counts up to it. */
#define LAST_VALUE_NS (1200 * MS)
#define TIMES_NS      UINT64_C(3000000000)
/* Further ones count as not observed. */
#define TIMES_MAX     (1u << 18)
#define INTERVALS_MAX 64u
#define QUIET_VALUES  2u
#define WHOLE_VALUES  2u

static void enter(struct exception_watch *watch, enum exception_state state, uint64_t since_ns)
{
	watch->state = state;
	watch->since_ns = since_ns;
}

/* Removes the times up to time_ns, and returns how many of them are after from_ns. */
static uint64_t take_times(struct exception_watch *watch, uint64_t from_ns, uint64_t time_ns)
{
	uint64_t taken = 0;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < watch->times.count; i++) {
		uint64_t at_ns = watch->times.items[i];
		if (at_ns > time_ns)
			watch->times.items[kept++] = at_ns;
		else
			taken += at_ns > from_ns;
	}
	watch->times.count = kept;
	return taken;
}

void exception_watch_event(struct exception_watch *watch, uint64_t time_ns)
{
	if (!watch->rate)
		return;
	if (time_ns >= watch->begin_ns + SECOND_NS) {
		watch->begin_ns = time_ns;
		watch->seen = 0;
		/* The counter may be read for others: its first interval may have begun before. */
		if (watch->state == EXCEPTIONS_ALL && time_ns > TIMES_NS && !watch->intervals.count)
			(void)take_times(watch, 0, time_ns - TIMES_NS);
	}
	watch->seen++;
	if (watch->times.count < TIMES_MAX)
		/* without memory it counts as not observed */
		(void)vec_add(&watch->times, time_ns);
	if (watch->state != EXCEPTIONS_ALL || watch->hopeless || watch->end_ns ||
		watch->seen <= watch->rate)
		return;
	watch->per_ns = 0; /* not known until the counter says it */
	watch->quiet = watch->whole = 0;
	enter(watch, EXCEPTIONS_FLOOD, 0);
}

void exception_watch_value(struct exception_watch *watch, uint64_t time_ns, uint64_t interval_ns,
	uint64_t count, uint64_t now_ns)
{
	if (!watch->rate || !interval_ns || interval_ns > time_ns)
		return;
	/*
	 * Each value counts since the one before. The interval that it states is that of the thread that
	 * reads the counters, and this thread may have had no CPU meanwhile.
	 */
	bool follows = watch->last_ns && now_ns < watch->value_ns + FRESH_NS;
	uint64_t from_ns = follows ? watch->last_ns : time_ns - interval_ns;

	watch->value_ns = now_ns;
	watch->last_ns = time_ns;
	/* A first value counts from a time that is not exactly known; until now all were observed. */
	if (watch->state == EXCEPTIONS_ALL || (watch->state == EXCEPTIONS_FLOOD && !follows))
		return;
	watch->per_ns = (double)count / (double)interval_ns;
	watch->quiet = watch->per_ns * 1e9 < 0.75 * watch->rate ? watch->quiet + 1 : 0;
	watch->whole += watch->state == EXCEPTIONS_RETURN && watch->since_ns;
	if (watch->intervals.count < INTERVALS_MAX)
		/* without memory these exceptions are missing */
		(void)vec_add(&watch->intervals, ((struct exception_interval){ .from_ns = from_ns,
							 .to_ns = time_ns,
							 .count = count,
							 .received_ns = now_ns }));
}

/* The counter must have sent a value by now. */
static bool is_mute(const struct exception_watch *watch, uint64_t now_ns)
{
	return watch->value_ns && now_ns >= watch->value_ns + VALUES_NS;
}

/* All are observed again, without a number for those that were not. */
static void give_up(struct exception_watch *watch, uint64_t now_ns)
{
	uint64_t silent_ns = now_ns - watch->value_ns;
	uint64_t from_ns = watch->times.count ? *vec_last(&watch->times) : watch->last_ns;

	watch->hopeless = true;
	watch->tail =
		(struct exception_gap){ .count = (uint64_t)(watch->per_ns * (double)silent_ns),
			.from_ns = from_ns,
			.to_ns = from_ns + silent_ns,
			.estimated = true };
}

static void advance_counted(struct exception_watch *watch,
	const struct exception_sessions *sessions, uint64_t now_ns)
{
	if (watch->quiet >= QUIET_VALUES || is_mute(watch, now_ns)) {
		if (is_mute(watch, now_ns))
			give_up(watch, now_ns);
		watch->whole = 0;
		enter(watch, EXCEPTIONS_RETURN, 0);
	} else if (watch->state == EXCEPTIONS_COUNTED) {
		if (now_ns >= watch->since_ns + GAP_NS)
			enter(watch, EXCEPTIONS_WINDOW, 0);
	} else if (!watch->since_ns) {
		watch->since_ns = sessions->observes ? now_ns : 0;
	} else if (now_ns >= watch->since_ns + WINDOW_NS) {
		enter(watch, EXCEPTIONS_COUNTED, now_ns);
	}
}

void exception_watch_advance(struct exception_watch *watch, struct exception_sessions *sessions,
	uint64_t now_ns)
{
	sessions->observe = sessions->observes;
	sessions->count = sessions->counts;
	if (watch->end_ns)
		return;
	switch (watch->state) {
	case EXCEPTIONS_ALL:
		/* what another session of counters will count since is not known */
		if (!sessions->counts)
			watch->last_ns = 0;
		break;
	case EXCEPTIONS_FLOOD:
		if (!watch->since_ns)
			watch->since_ns = now_ns;
		if (sessions->counts && watch->last_ns && now_ns < watch->value_ns + FRESH_NS) {
			enter(watch, EXCEPTIONS_COUNTED, now_ns);
		} else if (now_ns >= watch->since_ns + VALUES_NS) {
			watch->hopeless = true;
			enter(watch, EXCEPTIONS_ALL, now_ns);
		}
		break;
	case EXCEPTIONS_COUNTED:
	case EXCEPTIONS_WINDOW:
		advance_counted(watch, sessions, now_ns);
		break;
	case EXCEPTIONS_RETURN:
		if (!watch->since_ns)
			watch->since_ns = sessions->observes ? now_ns : 0;
		else if (watch->whole >= WHOLE_VALUES || is_mute(watch, now_ns))
			enter(watch, EXCEPTIONS_ALL, now_ns);
		break;
	}
	sessions->observe = watch->state != EXCEPTIONS_COUNTED;
	sessions->count = watch->state != EXCEPTIONS_ALL;
}

uint64_t exception_watch_deadline_ns(const struct exception_watch *watch)
{
	if (watch->end_ns)
		return UINT64_MAX;
	switch (watch->state) {
	case EXCEPTIONS_FLOOD:
		return watch->since_ns ? watch->since_ns + VALUES_NS : 0;
	case EXCEPTIONS_COUNTED:
		return watch->since_ns + GAP_NS;
	case EXCEPTIONS_WINDOW:
		return watch->since_ns ? watch->since_ns + WINDOW_NS : UINT64_MAX;
	case EXCEPTIONS_ALL:
	case EXCEPTIONS_RETURN:
		break;
	}
	return UINT64_MAX;
}

/* The part of an interval before the end. A flood that is over by then is all before it. */
static void cut(const struct exception_watch *watch, struct exception_interval *interval,
	bool *ret_estimated)
{
	*ret_estimated = watch->end_ns && interval->to_ns > watch->end_ns;
	if (!*ret_estimated)
		return;
	uint64_t left_ns =
		watch->end_ns > interval->from_ns ? watch->end_ns - interval->from_ns : 0;
	uint64_t whole_ns = interval->to_ns - interval->from_ns;
	if (left_ns && (double)interval->count * 1e9 < (double)watch->rate * (double)whole_ns)
		left_ns = whole_ns;
	interval->count = (uint64_t)((double)interval->count * (double)left_ns / (double)whole_ns);
	interval->to_ns = watch->end_ns;
}

bool exception_watch_take(struct exception_watch *watch, uint64_t sorted_ns, uint64_t now_ns,
	struct exception_gap *ret_gap)
{
	while (watch->intervals.count) {
		struct exception_interval interval = watch->intervals.items[0];
		bool estimated;
		if (interval.to_ns > sorted_ns && now_ns < interval.received_ns + SETTLE_NS)
			return false;
		memmove(watch->intervals.items, watch->intervals.items + 1,
			--watch->intervals.count * sizeof(interval));
		cut(watch, &interval, &estimated);
		uint64_t observed = take_times(watch, interval.from_ns, interval.to_ns);
		if (interval.count <= observed)
			continue;
		*ret_gap = (struct exception_gap){ .count = interval.count - observed,
			.from_ns = interval.from_ns,
			.to_ns = interval.to_ns,
			.estimated = estimated };
		return true;
	}
	if (!watch->tail.count)
		return false;
	*ret_gap = watch->tail;
	watch->tail = (struct exception_gap){ 0 };
	return true;
}

bool exception_watch_waits(const struct exception_watch *watch, uint64_t now_ns)
{
	return watch->state != EXCEPTIONS_ALL && watch->state != EXCEPTIONS_FLOOD &&
	       watch->end_ns && watch->last_ns < watch->end_ns &&
	       now_ns < watch->end_ns + LAST_VALUE_NS;
}

bool exception_watch_has_gaps(const struct exception_watch *watch)
{
	return watch->intervals.count || watch->tail.count;
}

/* The number after the last value is not known, so it is computed from the last rate. */
static void estimate_tail(struct exception_watch *watch)
{
	uint64_t from_ns = watch->last_ns;

	if (watch->end_ns <= from_ns)
		return;
	uint64_t observed = 0;

	vec_each(time_ns, &watch->times)
		observed += *time_ns > from_ns && *time_ns <= watch->end_ns;
	uint64_t count = (uint64_t)(watch->per_ns * (double)(watch->end_ns - from_ns));
	if (count > observed)
		watch->tail = (struct exception_gap){ .count = count - observed,
			.from_ns = from_ns,
			.to_ns = watch->end_ns,
			.estimated = true };
}

void exception_watch_limit(struct exception_watch *watch, uint64_t end_ns)
{
	if (!watch->end_ns)
		watch->end_ns = end_ns;
}

void exception_watch_begin(struct exception_watch *watch)
{
	watch->end_ns = 0;
}

void exception_watch_end(struct exception_watch *watch, uint64_t end_ns)
{
	exception_watch_limit(watch, end_ns);
	if (watch->state == EXCEPTIONS_COUNTED || watch->state == EXCEPTIONS_WINDOW ||
		(watch->state == EXCEPTIONS_RETURN && !watch->whole))
		estimate_tail(watch);
	enter(watch, EXCEPTIONS_ALL, 0);
}

void exception_watch_done(struct exception_watch *watch)
{
	vec_done(&watch->times);
	vec_done(&watch->intervals);
}
