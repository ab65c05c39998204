/*
 * Activities of threads. `current_activity` is the activity of the calling thread; pipe_activity()
 * has its ids, 32 bytes that every event of the thread carries. The related id is set only while
 * ActivityStart is fired.
 */
#include "lib/event/activity.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "lib/event/firing.h"
#include "lib/platform/platform.h"

#define TRACE_FLAG_SAMPLED 1u

static __thread const struct spoor_activity *current_activity;
static __thread uint64_t random_state[2];
static __thread uint32_t random_birth;
static uint32_t process_birth = 1; /* a child of fork() seeds its numbers anew */

SPOOR_PROVIDER(spoor_activities, "Spoor-Activity")
SPOOR_EVENT_NAMED(spoor_activities, started, "ActivityStart", 1, 0, SPOOR_INFO, SPOOR_OPCODE_START,
	0x1, (text, Name), (text, TraceId), (text, SpanId), (text, ParentSpanId), (u8, TraceFlags))
SPOOR_EVENT_NAMED(spoor_activities, stopped, "ActivityStop", 2, 0, SPOOR_INFO, SPOOR_OPCODE_STOP,
	0x1, (text, Name), (u64, DurationNs))

/* Unique numbers, not secret ones: xoroshiro128+, seeded by the system once per thread. */
static uint64_t random_number(void)
{
	uint32_t birth = __atomic_load_n(&process_birth, __ATOMIC_RELAXED);

	if (random_birth != birth || !(random_state[0] | random_state[1])) {
		platform_random((uint8_t *)random_state, sizeof(random_state));
		random_state[0] |= 1;
		random_birth = birth;
	}
	uint64_t a = random_state[0], b = random_state[1], sum = a + b;
	b ^= a;
	random_state[0] = (a << 24 | a >> 40) ^ b ^ b << 16;
	random_state[1] = b << 37 | b >> 27;
	return sum;
}

static void random_id(uint8_t *id, size_t size)
{
	for (size_t at = 0; at < size; at += 8) {
		uint64_t number = random_number();
		number += !number; /* an id of zeroes is invalid */
		memcpy(id + at, &number, 8);
	}
}

static void hex_write(char *to, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		to[2 * i] = digits[bytes[i] >> 4];
		to[2 * i + 1] = digits[bytes[i] & 0xf];
	}
	to[2 * size] = '\0';
}

/*
 * Lower-case digits, as the standard requires. False for other characters, and for all zeroes if
 * may_be_zero is false.
 */
static bool hex_bytes(const char *text, uint8_t *bytes, size_t size, bool may_be_zero)
{
	uint8_t any = 0;

	for (size_t i = 0; i < 2 * size; i++) {
		char c = text[i];
		unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
							: 16;
		if (digit > 15)
			return false;
		bytes[i / 2] = (uint8_t)(i % 2 ? bytes[i / 2] | digit : digit << 4);
		any |= bytes[i / 2];
	}
	return may_be_zero || any;
}

/*
 *   offset  size  traceparent
 *   0       2     version, not ff; a later one may be longer, and begins the same
 *   3       32    trace id
 *   36      16    span id
 *   53      2     flags
 */
bool traceparent_read(const char *text, uint8_t ret_trace_id[16], uint8_t ret_span_id[8],
	uint8_t *ret_flags)
{
	uint8_t version, trace_id[16], span_id[8], flags;

	if (strnlen(text, SPOOR_TRACEPARENT_SIZE) < SPOOR_TRACEPARENT_SIZE - 1 || text[2] != '-' ||
		text[35] != '-' || text[52] != '-' || !hex_bytes(text, &version, 1, true) ||
		!hex_bytes(text + 3, trace_id, 16, false) ||
		!hex_bytes(text + 36, span_id, 8, false) ||
		!hex_bytes(text + 53, &flags, 1, true) || version == 0xff ||
		(text[55] && (version == 0 || text[55] != '-')))
		return false;
	memcpy(ret_trace_id, trace_id, sizeof(trace_id));
	memcpy(ret_span_id, span_id, sizeof(span_id));
	*ret_flags = flags;
	return true;
}

/*
 * Sets the activity that every event of this thread carries from here on. `set` is false while the
 * ids change, so a signal handler that fires meanwhile fires without an activity. Compiler fences
 * suffice, because the reader is the same thread.
 */
static void activity_carry(const struct spoor_activity *activity, const struct spoor_guid *related)
{
	struct pipe_activity *carried = pipe_activity();

	carried->set = false;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	current_activity = activity;
	if (!activity)
		return;
	memcpy(carried->current, activity->id.bytes, 16);
	if (related)
		memcpy(carried->related, related->bytes, 16);
	else
		memset(carried->related, 0, 16);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	carried->set = true;
}

int spoor_activity_start(struct spoor_activity *activity, const char *name, const char *traceparent)
{
	const struct spoor_activity *parent = current_activity;
	struct spoor_guid related;
	bool given = traceparent && *traceparent;
	bool has_related = true;
	int error = 0;

	if (!activity)
		return -EINVAL;
	memset(activity, 0, sizeof(*activity));
	if (given && !traceparent_read(traceparent, activity->trace_id, activity->parent_span_id,
			     &activity->trace_flags)) {
		error = -EINVAL;
		given = false;
	}
	random_id(activity->span_id, sizeof(activity->span_id));
	if (given) {
		memcpy(related.bytes, activity->trace_id, 8);
		memcpy(related.bytes + 8, activity->parent_span_id, 8);
	} else if (parent) {
		memcpy(activity->trace_id, parent->trace_id, sizeof(activity->trace_id));
		memcpy(activity->parent_span_id, parent->span_id, sizeof(activity->parent_span_id));
		activity->trace_flags = parent->trace_flags;
		activity->tracestate = parent->tracestate;
		related = parent->id;
	} else {
		random_id(activity->trace_id, sizeof(activity->trace_id));
		activity->trace_flags = TRACE_FLAG_SAMPLED;
		has_related = false;
	}
	memcpy(activity->id.bytes, activity->trace_id, 8);
	memcpy(activity->id.bytes + 8, activity->span_id, 8);
	activity->name = name ? name : "";
	activity->before = parent;
	activity->started_ns = platform_now_ns();
	activity_carry(activity, has_related ? &related : NULL);
	if (spoor_activities_started_enabled()) {
		char trace[33], span[17], above[17];
		hex_write(trace, activity->trace_id, 16);
		hex_write(span, activity->span_id, 8);
		hex_write(above, activity->parent_span_id, 8);
		spoor_activities_started(activity->name, trace, span, has_related ? above : "",
			activity->trace_flags);
	}
	if (has_related)
		activity_carry(activity, NULL);
	return error;
}

void spoor_activity_stop(struct spoor_activity *activity)
{
	const struct spoor_activity *now = current_activity;

	if (!activity)
		return;
	/*
	 * The activity was stopped on another thread or out of order. Its stop event still carries
	 * its own id.
	 */
	if (now != activity)
		activity_carry(activity, NULL);
	if (spoor_activities_stopped_enabled())
		spoor_activities_stopped(activity->name, platform_now_ns() - activity->started_ns);
	activity_carry(now == activity ? activity->before : now, NULL);
}

void spoor_activity_enter(const struct spoor_activity *activity, struct spoor_activity_scope *scope)
{
	if (!scope)
		return;
	scope->before = current_activity;
	activity_carry(activity, NULL);
}

void spoor_activity_leave(struct spoor_activity_scope *scope)
{
	if (scope)
		activity_carry(scope->before, NULL);
}

const struct spoor_activity *spoor_activity_current(void)
{
	return current_activity;
}

void spoor_activity_traceparent(const struct spoor_activity *activity,
	char ret_text[SPOOR_TRACEPARENT_SIZE])
{
	static const struct spoor_activity none;

	if (!ret_text)
		return;
	activity = activity ? activity : &none;
	memcpy(ret_text, "00-", 3);
	hex_write(ret_text + 3, activity->trace_id, 16);
	ret_text[35] = '-';
	hex_write(ret_text + 36, activity->span_id, 8);
	ret_text[52] = '-';
	hex_write(ret_text + 53, &activity->trace_flags, 1);
}

static int activity_start(const struct spoor_options *options)
{
	(void)options;
	return spoor_provider_register(&spoor_activities);
}

static void activity_stop(void)
{
	spoor_provider_unregister(&spoor_activities);
}

static void activity_child(void)
{
	/* The child has only one thread, so this needs no atomic. */
	process_birth++;
}

const struct module activity_module = {
	.name = "activities",
	.start = activity_start,
	.stop = activity_stop,
	.child = activity_child,
};
