/* Looks at the stacks: blocked workers, waiters that get on or are stuck, circles of lock owners, finalizers. */
#include "unit/test.h"

#include "diagnose/facts.h"
#include "diagnose/stack_observations.h"

struct fixture {
	struct facts facts;
	struct process_facts *process;
	struct stack_observations observations;
};

static void set_up(struct fixture *f)
{
	*f = (struct fixture){ 0 };
	f->process = facts_process(&f->facts, 4711);
	facts_set(f->process, FACT_cpu_count, 2);
}

static void tear_down(struct fixture *f)
{
	stack_observations_done(&f->observations);
	facts_done(&f->facts);
}

/* A thread in the framework, called by this method; NULL: a thread without frames. */
static void add(struct fixture *f, struct observed_thread thread, const char *method)
{
	thread.waits_for = thread.waits_for_task   ? strtab_add_z(&f->facts.texts, "for a task")
			   : thread.waits_for_lock ? strtab_add_z(&f->facts.texts, "for a lock")
						   : 0;
	assert_true(observed_thread_add(&f->observations, &thread));
	if (!method)
		return;
	assert_true(observed_frame_add(&f->observations,
		(struct observed_frame){
			.name = strtab_add_z(&f->facts.texts, "Threading.Wait") }));
	assert_true(observed_frame_add(&f->observations,
		(struct observed_frame){
			.name = strtab_add_z(&f->facts.texts, method), .own = true }));
}

static const char *method_of(const struct fixture *f, enum place_kind place)
{
	return strtab_get(&f->facts.texts, f->process->places[place].method);
}

static void gather(struct fixture *f)
{
	assert_int_equal(stack_observations_gather(&f->facts, f->process, &f->observations), 0);
}

static double number(const struct fixture *f, enum fact fact)
{
	assert_true(f->process->known[fact]);
	return f->process->numbers[fact];
}

static void test_no_observation_leaves_facts_unknown(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	gather(&f);
	assert_false(f.process->known[FACT_workers]);
	tear_down(&f);
}

static void test_workers(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (int look = 0; look < 2; look++) {
		f.observations.count++;
		for (uint32_t i = 0; i < 3; i++)
			add(&f,
				(struct observed_thread){
					.tid = 10 + i, .is_worker = true, .waits_for_task = true },
				"Shop.Load");
		add(&f,
			(struct observed_thread){
				.tid = 20, .is_worker = true, .waits_for_lock = true },
			"Shop.Reserve");
		add(&f,
			(struct observed_thread){ .tid = 24,
				.is_worker = true,
				.io = strtab_add_z(&f.facts.texts, "FileStream.Read") },
			"Shop.Import");
		add(&f, (struct observed_thread){ .tid = 21, .is_worker = true }, "Shop.Run");
		add(&f, (struct observed_thread){ .tid = 22, .is_worker = true, .is_idle = true },
			NULL);
		add(&f, (struct observed_thread){ .tid = 23, .waits_for_task = true }, "Shop.Main");
	}
	gather(&f);
	assert_true(number(&f, FACT_workers) == 6);
	assert_true(number(&f, FACT_blocked_workers) == 5);
	assert_true(number(&f, FACT_blocked_share) == 5.0 / 6);
	assert_true(number(&f, FACT_blocked_per_cpu) == 2.5);
	assert_true(number(&f, FACT_task_share) == 0.5);
	assert_true(number(&f, FACT_io_workers) == 1);
	assert_true(number(&f, FACT_io_share) == 1.0 / 6);
	assert_string_equal(method_of(&f, PLACE_io_waiter), "Shop.Import");
	assert_string_equal(strtab_get(&f.facts.texts, f.process->places[PLACE_io_waiter].callee),
		"FileStream.Read");
	assert_string_equal(method_of(&f, PLACE_task_waiter), "Shop.Load");
	assert_string_equal(method_of(&f, PLACE_blocker), "Shop.Load");
	assert_int_equal(f.process->places[PLACE_blocker].frame_count, 2);
	tear_down(&f);
}

/* One thread keeps a lock: 2 waits for it, and 3 for a lock of 2. None of them ever runs. */
static void test_kept(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (uint32_t look = 0; look < 3; look++) {
		f.observations.count++;
		add(&f, (struct observed_thread){ .tid = 1, .cpu_ns = 100 }, "Shop.Sleep");
		for (uint32_t tid = 2; tid <= 3; tid++)
			add(&f,
				(struct observed_thread){ .tid = tid,
					.waits_for_lock = true,
					.lock_owner = tid - 1,
					.cpu_ns = 100 },
				"Shop.Move");
	}
	gather(&f);
	assert_true(number(&f, FACT_kept_threads) == 2);
	assert_true(number(&f, FACT_stuck_threads) == 0);
	assert_true(number(&f, FACT_circle_threads) == 0);
	assert_string_equal(method_of(&f, PLACE_keeper), "Shop.Sleep");
	assert_string_equal(method_of(&f, PLACE_lock_waiter), "Shop.Move");
	tear_down(&f);

	/* Without an owner that is known, nobody keeps it. */
	set_up(&f);
	for (uint32_t look = 0; look < 3; look++) {
		f.observations.count++;
		add(&f, (struct observed_thread){ .tid = 2, .waits_for_lock = true, .cpu_ns = 100 },
			"Shop.Move");
	}
	gather(&f);
	assert_true(number(&f, FACT_kept_threads) == 0);
	assert_true(number(&f, FACT_stuck_threads) == 1);
	tear_down(&f);
}

static void test_locks(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	/* 1 and 2 never run; 3 does, and 4 waits in one look only. */
	for (uint32_t look = 0; look < 3; look++) {
		f.observations.count++;
		for (uint32_t tid = 1; tid <= 3; tid++)
			add(&f,
				(struct observed_thread){ .tid = tid,
					.waits_for_lock = true,
					.cpu_ns = tid == 3 ? 100 + look : 100 },
				"Shop.Move");
		add(&f,
			(struct observed_thread){
				.tid = 4, .waits_for_lock = look == 2, .cpu_ns = 100 },
			"Shop.Other");
	}
	gather(&f);
	assert_true(number(&f, FACT_stuck_threads) == 2);
	assert_true(number(&f, FACT_circle_threads) == 0);
	assert_string_equal(method_of(&f, PLACE_lock_waiter), "Shop.Move");
	/* 10 waits in 3 observations, without those of the two. */
	assert_true(number(&f, FACT_lock_waiters) > 1.33 && number(&f, FACT_lock_waiters) < 1.34);
	tear_down(&f);
}

static void test_circle(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	/* 1 waits for 2, 2 for 1; 3 for 1, which is no part of the circle; 4 for a thread that is gone. */
	f.observations.count++;
	add(&f, (struct observed_thread){ .tid = 3, .waits_for_lock = true, .lock_owner = 1 },
		"Shop.C");
	add(&f, (struct observed_thread){ .tid = 1, .waits_for_lock = true, .lock_owner = 2 },
		"Shop.A");
	add(&f, (struct observed_thread){ .tid = 2, .waits_for_lock = true, .lock_owner = 1 },
		"Shop.B");
	add(&f, (struct observed_thread){ .tid = 4, .waits_for_lock = true, .lock_owner = 99 },
		"Shop.D");
	gather(&f);
	assert_true(number(&f, FACT_circle_threads) == 2);
	assert_true(number(&f, FACT_circle_share) == 1);
	assert_string_equal(method_of(&f, PLACE_circle), "Shop.A");
	assert_string_equal(strtab_get(&f.facts.texts, f.process->places[PLACE_circle].callee),
		"Shop.B");
	tear_down(&f);
}

static void test_finalizer(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	for (uint32_t look = 0; look < 4; look++) {
		f.observations.count++;
		add(&f, (struct observed_thread){ .tid = 1, .is_finalizer = true },
			look < 3 ? "Shop.Ticket.Finalize" : NULL);
	}
	gather(&f);
	assert_true(number(&f, FACT_finalizer_share) == 0.75);
	assert_string_equal(method_of(&f, PLACE_finalizer), "Shop.Ticket.Finalize");
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_observation_leaves_facts_unknown),
		cmocka_unit_test(test_workers),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_finalizer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
