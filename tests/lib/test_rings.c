/*
 * The rings of a thread: it begins with a small one and moves on when that is full, so a loop thread
 * that is late loses nothing; also when signal handlers fire at any point. The memory is returned.
 */
#include "lib/read_back.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include <spoor/spoor.h>

#include "lib/event/thread_ring.h"
#include "lib/platform/loop.h"

SPOOR_PROVIDER(rings, "Rings")
SPOOR_EVENT(rings, number, 1, SPOOR_INFO, 0x1, (u64, value))
SPOOR_EVENT(rings, handled, 2, SPOOR_INFO, 0x1, (u64, value))

#define FIRED 400000u /* 13 MB of records */

static struct spoor_session *start(void)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = "Rings",
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1, .buffer_bytes = 256 << 20
	};
	struct spoor_session *session = NULL;

	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	return session;
}

static struct spoor_session_counts counts_of(struct spoor_session *session)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	spoor_session_count(session, &counts);
	return counts;
}

/* States of this status with large rings that hold memory. */
static unsigned large_rings(enum thread_status status)
{
	unsigned count = 0;

	for (struct thread_state *state = thread_state_first(); state; state = state->next)
		count += __atomic_load_n(&state->status, __ATOMIC_ACQUIRE) == status &&
			 __atomic_load_n(&state->main.base, __ATOMIC_RELAXED) &&
			 state->ring_class == RING_LARGE;
	return count;
}

static void wait_for_large_rings(void)
{
	for (int i = 0; i < 6000 && large_rings(THREAD_FREE) < 4; i++)
		usleep(10000);
	assert_true(large_rings(THREAD_FREE) >= 4);
}

/* ---- A loop thread that is late ---- */

/* A thread that is fast from the first event of the first session on finds its next rings. */
static void rings_are_ready_when_a_session_has_started(void **state)
{
	(void)state;
	/* Those of another test are unmapped when no session exists. */
	for (int i = 0; i < 6000 && large_rings(THREAD_FREE); i++)
		usleep(10000);
	assert_int_equal(large_rings(THREAD_FREE), 0);
	struct spoor_session *session = start();
	assert_int_equal(large_rings(THREAD_FREE), 8);
	spoor_session_free(session);
}

static sem_t held, go_on;

static void hold(void *context)
{
	(void)context;
	sem_post(&held);
	while (sem_wait(&go_on))
		;
}

static void loop_hold(void)
{
	assert_int_equal(loop_post(hold, NULL), 0);
	while (sem_wait(&held))
		;
}

static void *fire_many(void *context)
{
	for (uint64_t i = 0; i < FIRED; i++)
		rings_number(i);
	sem_post(context);
	/* The thread lives on, and fires again. */
	while (sem_wait((sem_t *)context + 1))
		;
	for (uint64_t i = FIRED; i < 2 * FIRED; i++) {
		rings_number(i);
		if (i % 1000 == 0)
			usleep(100);
	}
	return NULL;
}

/* Reads all events; those of rings_number() come in order. Returns their number. */
static uint64_t read_numbers(struct spoor_session *session, uint64_t *ret_handled)
{
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_value value;
	uint64_t next = 0;

	while (spoor_listener_read(session, &view, 0) == 1) {
		assert_int_equal(spoor_event_field(&view, "value", &value), 0);
		if (view.info->id == 1)
			assert_int_equal(value.u64, next++);
		else
			assert_int_equal(value.u64, (*ret_handled)++);
	}
	return next;
}

static void late_loop_thread_loses_nothing(void **state)
{
	sem_t steps[2];
	pthread_t thread;
	uint64_t none = 0;

	(void)state;
	struct spoor_session *session = start();
	sem_init(&steps[0], 0, 0);
	sem_init(&steps[1], 0, 0);
	wait_for_large_rings();
	loop_hold();
	assert_int_equal(pthread_create(&thread, NULL, fire_many, steps), 0);
	while (sem_wait(&steps[0]))
		;
	assert_in_range(large_rings(THREAD_LEFT) + large_rings(THREAD_LIVE), 3, 8);
	sem_post(&go_on);
	assert_int_equal(spoor_session_flush(session, 60000), 0);
	assert_int_equal(counts_of(session).written, FIRED);
	/* What it has left keeps no memory. */
	struct thread_state *left = thread_state_first();
	while (left->ring_class != RING_LARGE ||
		__atomic_load_n(&left->status, __ATOMIC_ACQUIRE) != THREAD_LEFT)
		left = left->next;
	for (int i = 0; i < 3000 && __atomic_load_n(&left->main.base, __ATOMIC_RELAXED); i++)
		usleep(10000);
	assert_null(__atomic_load_n(&left->main.base, __ATOMIC_RELAXED));
	sem_post(&steps[1]);
	pthread_join(thread, NULL);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written + counts_of(session).lost, 2 * FIRED);
	assert_int_equal(counts_of(session).lost, 0);
	assert_int_equal(read_numbers(session, &none), 2 * FIRED);
	spoor_session_free(session);
}

/* ---- Losses and moves ---- */

enum { LOSERS = 4, LOSER_EVENTS = 2000000 };

static void *fire_numbers(void *context)
{
	(void)context;
	for (uint64_t value = 1; value <= LOSER_EVENTS; value++)
		rings_number(value);
	return NULL;
}

/* What a thread loses is reported by its next event, although it has moved in between. */
static void losses_are_reported_at_their_place(void **state)
{
	struct spoor_event_view view = { .size = sizeof(view) };
	struct {
		uint64_t thread_id, last;
	} seen[LOSERS] = { 0 };
	pthread_t threads[LOSERS];
	struct spoor_value value;
	uint64_t gaps = 0;

	(void)state;
	struct spoor_session *session = start();
	wait_for_large_rings();
	for (int i = 0; i < LOSERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire_numbers, NULL), 0);
	/* The rings are full at the end of each hold. */
	for (int round = 0; round < 20; round++) {
		loop_hold();
		usleep(20000);
		sem_post(&go_on);
		usleep(2000);
	}
	for (int i = 0; i < LOSERS; i++)
		pthread_join(threads[i], NULL);
	spoor_session_stop(session);
	while (spoor_listener_read(session, &view, 0) == 1) {
		int i = 0;
		while (seen[i].thread_id && seen[i].thread_id != view.thread_id)
			assert_true(++i < LOSERS);
		seen[i].thread_id = view.thread_id;
		assert_int_equal(spoor_event_field(&view, "value", &value), 0);
		assert_int_equal(value.u64 - seen[i].last - 1, view.lost_before);
		gaps += view.lost_before;
		seen[i].last = value.u64;
	}
	for (int i = 0; i < LOSERS; i++)
		gaps += LOSER_EVENTS - seen[i].last;
	assert_int_equal(gaps, counts_of(session).lost);
	spoor_session_free(session);
}

/* ---- Threads that fire much, one after the other ---- */

static sem_t bursts_end;

enum { BURST_THREADS = 12, BURSTS = 2 };

static void *fire_burst(void *context)
{
	sem_t *burst = context;

	for (int i = 0; i < BURSTS; i++) {
		while (sem_wait(burst))
			;
		for (uint64_t value = 0; value < FIRED; value++)
			rings_number(value);
		sem_post(&bursts_end);
	}
	return NULL;
}

/* The rings of one burst serve the next ones, although the threads that fired it live on. */
static void idle_threads_keep_no_large_rings(void **state)
{
	pthread_t threads[BURST_THREADS];
	sem_t bursts[BURST_THREADS];

	(void)state;
	struct spoor_session *session = start();
	sem_init(&bursts_end, 0, 0);
	for (int i = 0; i < BURST_THREADS; i++) {
		sem_init(&bursts[i], 0, 0);
		assert_int_equal(pthread_create(&threads[i], NULL, fire_burst, &bursts[i]), 0);
	}
	for (int round = 0; round < BURSTS * BURST_THREADS; round++) {
		struct spoor_event_view view = { .size = sizeof(view) };
		wait_for_large_rings();
		loop_hold(); /* so that each burst needs several rings */
		sem_post(&bursts[round % BURST_THREADS]);
		while (sem_wait(&bursts_end))
			;
		sem_post(&go_on);
		assert_int_equal(spoor_session_flush(session, 60000), 0);
		while (spoor_listener_read(session, &view, 0) == 1)
			;
	}
	for (int i = 0; i < BURST_THREADS; i++)
		pthread_join(threads[i], NULL);
	spoor_session_stop(session);
	assert_int_equal(counts_of(session).written, BURSTS * BURST_THREADS * (uint64_t)FIRED);
	spoor_session_free(session);
}

/* ---- Handlers that fire so much that they move the thread ---- */

static uint64_t handled;
static bool firing_ends;

static void on_signal(int signal)
{
	(void)signal;
	for (int i = 0; i < 700; i++)
		rings_handled(__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED));
}

static void *fire_interrupted(void *context)
{
	uint64_t i = 0;

	(void)context;
	rings_number(i++);
	/* The first signal's events find room: on a busy machine the ring may be full from here on. */
	while (!__atomic_load_n(&handled, __ATOMIC_RELAXED))
		usleep(1000);
	while (!__atomic_load_n(&firing_ends, __ATOMIC_RELAXED))
		rings_number(i++);
	return (void *)(uintptr_t)i;
}

/* Each event is written or counted as lost, and those that are written come in order. */
static void handlers_move_threads(void **state)
{
	struct sigaction action = { .sa_handler = on_signal }, before;
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_value value;
	uint64_t next[3] = { 0 };
	pthread_t thread;
	void *fired;

	(void)state;
	struct spoor_session *session = start();
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	wait_for_large_rings();
	assert_int_equal(pthread_create(&thread, NULL, fire_interrupted, NULL), 0);
	pthread_kill(thread, SIGUSR1);
	for (int i = 0; i < 6000 && !__atomic_load_n(&handled, __ATOMIC_RELAXED); i++)
		usleep(10000);
	for (int round = 0; round < 60; round++) {
		/* Full rings most of the time: the loop thread is held again and again. */
		loop_hold();
		for (int i = 0; i < 20; i++) {
			pthread_kill(thread, SIGUSR1);
			usleep(50);
		}
		sem_post(&go_on);
		usleep(1000);
	}
	__atomic_store_n(&firing_ends, true, __ATOMIC_RELAXED);
	pthread_join(thread, &fired);
	spoor_session_stop(session);
	struct spoor_session_counts counts = counts_of(session);
	assert_int_equal(counts.written + counts.lost, (uintptr_t)fired + handled);
	uint64_t read = 0;
	while (spoor_listener_read(session, &view, 0) == 1) {
		read++;
		assert_int_equal(spoor_event_field(&view, "value", &value), 0);
		assert_true(value.u64 >= next[view.info->id]);
		next[view.info->id] = value.u64 + 1;
	}
	assert_int_equal(read, counts.written);
	assert_true(next[1] > 0 && next[2] > 0);
	spoor_session_free(session);
	sigaction(SIGUSR1, &before, NULL);
}

/* As a pass without a session does while a thread is still in a record for the last one. */
static void prepare(void *context)
{
	(void)context;
	while (!rings_prepare())
		;
	sem_post(&held);
}

/* A size that the program has chosen is that of the only ring, also if others were made ready before. */
static void chosen_size_is_fixed(void **state)
{
	struct spoor_options options = {
		.size = sizeof(options), .flags = SPOOR_START_NO_SERVER, .ring_bytes = 64 << 10
	};
	sem_t steps[2];
	pthread_t thread;

	(void)state;
	assert_int_equal(loop_post(prepare, NULL), 0);
	while (sem_wait(&held))
		;
	spoor_stop();
	assert_int_equal(spoor_start(&options), 0);
	struct spoor_session *session = start();
	sem_init(&steps[0], 0, 0);
	sem_init(&steps[1], 0, 1);
	loop_hold();
	assert_int_equal(pthread_create(&thread, NULL, fire_many, steps), 0);
	while (sem_wait(&steps[0]))
		;
	bool larger = false;
	for (struct thread_state *each = thread_state_first(); each; each = each->next)
		larger = larger ||
			 (__atomic_load_n(&each->status, __ATOMIC_ACQUIRE) == THREAD_LIVE &&
				 each->main.mask + 1 > options.ring_bytes);
	sem_post(&go_on);
	assert_false(larger);
	pthread_join(thread, NULL);
	spoor_session_stop(session);
	assert_true(counts_of(session).lost >= FIRED - (64 << 10) / 32);
	assert_int_equal(counts_of(session).written + counts_of(session).lost, 2 * FIRED);
	spoor_session_free(session);
}

static int set_up(void **state)
{
	struct spoor_options options = { .size = sizeof(options), .flags = SPOOR_START_NO_SERVER };

	(void)state;
	sem_init(&held, 0, 0);
	sem_init(&go_on, 0, 0);
	return spoor_start(&options) || spoor_provider_register(&rings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_are_ready_when_a_session_has_started),
		cmocka_unit_test(late_loop_thread_loses_nothing),
		cmocka_unit_test(losses_are_reported_at_their_place),
		cmocka_unit_test(idle_threads_keep_no_large_rings),
		cmocka_unit_test(handlers_move_threads),
		cmocka_unit_test(chosen_size_is_fixed),
	};

	return cmocka_run_group_tests_name("rings", tests, set_up, test_paths_tear_down);
}
