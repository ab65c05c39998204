/* Events of observations: read in the order of a recording, chosen by time, and hostile ones that are left out. */
#include "unit/test.h"

#include "analysis/profile.h"
#include "base/bytes.h"
#include "diagnose/facts.h"
#include "diagnose/observation_events.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define SECOND UINT64_C(1000000000)
#define BEGIN  (100 * SECOND)

struct fixture {
	struct trace trace;
	struct profile_filter filter;
	struct facts facts;
	struct observation_events observations;
	uint32_t thread;
};

static void set_up(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	assert_int_equal(trace_init(&f->trace), 0);
	f->trace.recording.sync_ns = BEGIN;
	uint32_t process = trace_process(&f->trace, 4711);
	f->thread = f->trace.processes.items[process].main_thread;
	f->observations = (struct observation_events){
		.facts = &f->facts, .trace = &f->trace, .filter = &f->filter
	};
}

static void tear_down(struct fixture *f)
{
	observation_events_done(&f->observations);
	facts_done(&f->facts);
	trace_done(&f->trace);
}

/* Passes an event with this payload, which it frees. */
static void pass(struct fixture *f, enum known_event known, struct bytes *payload)
{
	const struct event event = { .schema_index = trace_known_schema(&f->trace, known),
		.thread_index = f->thread,
		.time_ns = BEGIN,
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len };

	assert_int_equal(observation_events_event(&f->observations, &event), 0);
	bytes_done(payload);
}

static void use(struct fixture *f, unsigned at_s, uint64_t descriptors)
{
	struct bytes out = { 0 };

	payload_process_use(&out, &(struct payload_process_use){ .time_ns = BEGIN + at_s * SECOND,
					  .known = PROCESS_USE_DESCRIPTORS,
					  .descriptors = descriptors });
	pass(f, SPOOR_PROCESS_USE, &out);
}

static void look(struct fixture *f, unsigned at_s, uint64_t number)
{
	struct bytes out = { 0 };

	payload_stack_look(&out,
		&(struct payload_stack_look){ .time_ns = BEGIN + at_s * SECOND, .look = number });
	pass(f, SPOOR_STACK_LOOK, &out);
}

static void stack(struct fixture *f, uint64_t look, uint64_t number, const char *method)
{
	const char *const frames[] = { "Threading.Wait(int)", method };
	struct bytes out = { 0 };

	(void)payload_look_stack(&out, &(struct payload_look_stack){ .look = look,
					       .stack = number,
					       .own = 2,
					       .frames = frames,
					       .frame_count = 2 });
	pass(f, SPOOR_LOOK_STACK, &out);
}

/* A pool thread that waits for a task. */
static void worker(struct fixture *f, uint64_t look, uint64_t tid, uint64_t stack)
{
	struct bytes out = { 0 };

	(void)payload_look_thread(&out, &(struct payload_look_thread){ .look = look,
						.tid = tid,
						.stack = stack,
						.flags = LOOK_THREAD_WORKER | LOOK_THREAD_AT_TASK,
						.waits_for = "for a task" });
	pass(f, SPOOR_LOOK_THREAD, &out);
}

static struct process_facts *gather(struct fixture *f)
{
	struct process_facts *row = facts_process(&f->facts, 4711);

	observation_events_mark(&f->observations, &f->facts);
	assert_int_equal(observation_events_gather(&f->observations, &f->facts), 0);
	return row;
}

static void test_observations(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (unsigned i = 1; i <= 2; i++) {
		look(&f, i, i);
		/* the same number means another stack in the next look */
		stack(&f, i, 1, i == 1 ? "Shop.Load(int)" : "Shop.Save");
		stack(&f, i, 2, "Shop.Load(int)");
		worker(&f, i, 10, 1);
		worker(&f, i, 11, 2);
	}
	const struct process_facts *row = gather(&f);
	assert_true(row->observed);
	assert_true(row->numbers[FACT_task_workers] == 2);
	assert_true(row->numbers[FACT_task_share] == 1);
	const struct place *place = &row->places[PLACE_task_waiter];
	assert_string_equal(strtab_get(&f.facts.texts, place->method), "Shop.Load");
	assert_true(place->share == 0.75);
	assert_int_equal(place->frame_count, 2);
	tear_down(&f);
}

static void test_uses(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	use(&f, 0, 100);
	use(&f, 2, 150);
	use(&f, 1, 900); /* older than the one before: ignored, as Spoor does not write that */
	use(&f, 4, 200);
	const struct process_facts *row = gather(&f);
	assert_true(row->numbers[FACT_descriptors] == 200);
	assert_true(row->numbers[FACT_descriptor_growth] == 100);
	assert_true(row->numbers[FACT_descriptor_rate] == 25);
	assert_false(row->known[FACT_wait_share]);
	assert_false(row->known[FACT_workers]);
	tear_down(&f);
}

/* --from and --to choose readings and observations by their own times. */
static void test_times(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	f.filter.from_ns = 2 * SECOND;
	f.filter.to_ns = 4 * SECOND;
	for (unsigned i = 0; i < 6; i++) {
		use(&f, i, 10 * i);
		look(&f, i, i + 1);
		worker(&f, i + 1, 10, 0);
	}
	const struct process_facts *row = gather(&f);
	assert_true(row->numbers[FACT_descriptors] == 30);
	assert_int_equal(f.observations.processes.items[0].observations.count, 2);
	assert_int_equal(f.observations.processes.items[0].observations.threads.count, 2);
	tear_down(&f);
}

/* Parts of a look that did not begin, stacks that do not exist, cut payloads. */
static void test_hostile(void **state)
{
	struct fixture f;
	struct bytes cut = { 0 };

	(void)state;
	set_up(&f);
	stack(&f, 1, 1, "Shop.Load");
	worker(&f, 1, 10, 1);
	look(&f, 1, 1);
	worker(&f, 1, 10, 77);
	worker(&f, 2, 11, 0);
	bytes_u8(&cut, 1);
	pass(&f, SPOOR_LOOK_THREAD, &cut);
	const struct process_facts *row = gather(&f);
	assert_int_equal(f.observations.processes.items[0].observations.threads.count, 1);
	assert_true(row->numbers[FACT_workers] == 1);
	assert_int_equal(row->places[PLACE_task_waiter].method, 0);
	tear_down(&f);
}

/* A recording without observations. */
static void test_recording_without_looks(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	const struct process_facts *row = gather(&f);
	assert_false(row->observed);
	assert_false(row->known[FACT_workers]);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_observations),
		cmocka_unit_test(test_uses), cmocka_unit_test(test_times),
		cmocka_unit_test(test_hostile), cmocka_unit_test(test_recording_without_looks) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
