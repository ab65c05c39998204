/*
 * Runtime events for the tests of analyses, in the process 4711 and on the stacks of
 * sample_trace.h:
 *
 *   struct fixture f;
 *   fixture_begin(&f, ANSWER_LOCKS);
 *   struct bytes payload = { 0 };
 *   bytes_u8(&payload, 1);
 *   fixture_pass(&f, at_ms, CLR_ID_ContentionStop, 1, &payload);     frees the payload
 *   fixture_finish(&f);
 *   ... f.answers ...
 *   fixture_end(&f);
 */
#ifndef SPOOR_TESTS_UNIT_ANSWERS_FIXTURE_H
#define SPOOR_TESTS_UNIT_ANSWERS_FIXTURE_H

#include "unit/test.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "trace/clr_event.h"
#include "trace/symbolmap.h"
#include "unit/sample_trace.h"

#define MS UINT64_C(1000000)

struct fixture {
	struct trace trace;
	struct profile profile;
	struct symbolmap names;
	struct answers answers;
	uint32_t thread;
	uint32_t stack; /* of the next events */
};

static inline void fixture_begin(struct fixture *f, enum answer answer)
{
	*f = (struct fixture){ 0 };
	sample_trace(&f->trace);
	f->profile.trace = &f->trace;
	f->answers.trace = &f->trace;
	f->answers.filter = &f->profile.filter;
	f->answers.wanted = 1u << answer;
	f->thread = trace_thread(&f->trace, 4711, 4711);
}

/* Passes an event of this schema; `activity` is EVENT_ACTIVITY_SIZE bytes or NULL. Frees the payload. */
static inline void fixture_event(struct fixture *f, uint64_t at_ms, const struct schema *schema,
	const uint8_t *activity, struct bytes *payload)
{
	*(struct schema *)vec_push(&f->trace.schemas) = *schema;
	const struct event event = { .time_ns = BEGIN_NS + at_ms * MS,
		.thread_index = f->thread,
		.stack_index = f->stack,
		.schema_index = f->trace.schemas.count - 1,
		.activity = activity,
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len };
	assert_int_equal(answers_event(&f->answers, &event), 0);
	bytes_done(payload);
}

static inline void fixture_pass(struct fixture *f, uint64_t at_ms, uint32_t id, uint8_t version,
	struct bytes *payload)
{
	fixture_event(f, at_ms,
		&(struct schema){
			.provider_kind = PROVIDER_CLR, .event_id = id, .version = version },
		NULL, payload);
}

static inline void fixture_utf16(struct bytes *payload, const char *text)
{
	for (const char *c = text; *c; c++)
		bytes_u16(payload, (uint8_t)*c);
	bytes_u16(payload, 0);
}

/* The events that follow come from these frames, leaf first. */
static inline void fixture_stack(struct fixture *f, const uint64_t *frames, uint32_t count)
{
	f->stack = stack_table_intern(&f->trace.stacks, frames, count);
	assert_true(f->stack != 0);
}

/* The recording lasts for 1,000 ms. */
static inline void fixture_finish(struct fixture *f)
{
	assert_int_equal(symbolmap_init(&f->names, &f->trace, METHOD_NAME_SHORT), 0);
	assert_int_equal(answers_find(&f->answers, &f->names), 0);
	assert_int_equal(profile_name(&f->profile, &f->names), 0);
	assert_int_equal(answers_finish(&f->answers, &f->profile, &f->names, 1000 * MS), 0);
}

static inline const char *fixture_function(const struct fixture *f, uint32_t function)
{
	return trace_text(&f->trace, f->names.functions.items[function].name);
}

static inline void fixture_end(struct fixture *f)
{
	answers_done(&f->answers);
	symbolmap_done(&f->names);
	profile_done(&f->profile);
	trace_done(&f->trace);
}

#endif
