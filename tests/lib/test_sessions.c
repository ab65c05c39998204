/*
 * Eight threads fire while three blocking sessions, each with its own filter, run all the time, and
 * 105 short sessions start and end. Every event of a long session arrives exactly once, and no
 * session receives an event that it did not enable.
 */
#include "lib/read_back.h"

#include <pthread.h>
#include <semaphore.h>

#include <spoor/spoor.h>

#include "lib/pipe/pipe_session.h"

#define THREADS 8
#define SHORT   105u

SPOOR_PROVIDER(many, "Many")
SPOOR_EVENT(many, first, 1, SPOOR_INFO, 0x1, (u32, thread), (u32, number))
SPOOR_EVENT(many, second, 2, SPOOR_INFO, 0x2, (u32, thread), (u32, number))
SPOOR_EVENT(many, third, 3, SPOOR_VERBOSE, 0x4, (u32, thread), (u32, number), (text, word))

/* What a session has received; written by its listener thread. */
struct received {
	uint64_t keywords; /* of the session */
	uint64_t count;
	uint64_t wrong;
	uint32_t next[THREADS][4]; /* by thread and event id */
};

static void receive(const struct spoor_event_view *event, void *context)
{
	struct received *received = context;
	struct spoor_value thread;
	struct spoor_value number;

	received->count++;
	if (event->info->id < 1 || event->info->id > 3 ||
		!(received->keywords & UINT64_C(1) << (event->info->id - 1)) ||
		spoor_event_field(event, "thread", &thread) ||
		spoor_event_field(event, "number", &number) || thread.u64 >= THREADS) {
		received->wrong++;
		return;
	}
	uint32_t *next = &received->next[thread.u64][event->info->id];
	/* A short session begins in the middle, and may lose events. */
	if (number.u64 < *next)
		received->wrong++;
	*next = (uint32_t)number.u64 + 1;
}

static struct spoor_session *start(struct received *received, uint32_t policy)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = "Many",
		.keywords = received->keywords,
		.level = SPOOR_VERBOSE };
	struct spoor_session_options options = { .size = sizeof(options),
		.wants = &want,
		.want_count = 1,
		.policy = policy,
		.block_ms = 600000 };
	struct spoor_session *session = NULL;

	assert_int_equal(spoor_session_start_callback(&options, receive, received, &session), 0);
	return session;
}

static bool stop;               /* atomic */
static uint32_t fired[THREADS]; /* of each kind; by thread */

static void *fire_all(void *context)
{
	uint32_t thread = (uint32_t)(uintptr_t)context;
	uint32_t i = 0;

	for (; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		many_first(thread, i);
		many_second(thread, i);
		many_third(thread, i, "some text");
		if (i % 4 == 0)
			usleep(1000);
	}
	fired[thread] = i;
	return NULL;
}

/* Ends a session; returns what it received and lost. */
static struct spoor_session_counts end(struct spoor_session *session, struct received *received)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	assert_int_equal(spoor_session_stop(session), 0);
	spoor_session_count(session, &counts);
	spoor_session_free(session);
	assert_int_equal(received->wrong, 0);
	assert_int_equal(received->count, counts.written);
	return counts;
}

static void counts_are_exact(void **state)
{
	static struct received long_ones[3];
	struct spoor_session *sessions[3];
	pthread_t threads[THREADS];
	uint64_t expected = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		long_ones[i] = (struct received){ .keywords = UINT64_C(1) << i };
		sessions[i] = start(&long_ones[i], SPOOR_BLOCK);
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fire_all, (void *)i), 0);
	for (uint32_t i = 0; i < SHORT; i++) {
		struct received received = { .keywords = 1 + i % 7 };
		struct spoor_session *session = start(&received, i % 3);
		usleep(3000);
		(void)end(session, &received);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(fired[i] > 0);
		expected += fired[i];
	}
	for (int i = 0; i < 3; i++) {
		struct spoor_session_counts counts = end(sessions[i], &long_ones[i]);
		assert_int_equal(counts.lost, 0);
		assert_int_equal(counts.written, expected);
		for (int t = 0; t < THREADS; t++)
			assert_int_equal(long_ones[i].next[t][i + 1], fired[t]);
	}
	print_message("%u events of each kind\n", (unsigned)expected);
}

static bool relay_ends; /* atomic */
static sem_t baton[2];

/*
 * Two threads that are inside records by turns: one begins a record before the other one ends its
 * own. So at each time one of them is inside a record, and each is outside again and again.
 */
static void *relay(void *context)
{
	unsigned self = *(const unsigned *)context;
	uint32_t payload[2] = { self, 0 };

	/* The second thread is one record behind. */
	while (self && sem_wait(&baton[self]))
		;
	for (bool ends = false; !ends; payload[1]++) {
		ends = __atomic_load_n(&relay_ends, __ATOMIC_RELAXED);
		struct spoor_slot slot = spoor_fire_begin(&many_first_event, sizeof(payload));
		sem_post(&baton[!self]);
		while (sem_wait(&baton[self]))
			;
		if (!slot.at)
			continue;
		memcpy(slot.at, payload, sizeof(payload));
		spoor_fire_end(slot);
	}
	sem_post(&baton[!self]); /* the other one may wait */
	return NULL;
}

/* A session ends although some thread is always inside a record, and its slot is free then. */
static void a_session_ends_beside_records(void **state)
{
	static struct received all = { .keywords = 0x1 };
	static const unsigned numbers[2] = { 0, 1 };
	pthread_t threads[2];

	unsigned quarantined = 0;

	(void)state;
	struct spoor_session *stays = start(&all, SPOOR_DROP_NEWEST);
	/* Both before a thread posts one. */
	for (int i = 0; i < 2; i++)
		sem_init(&baton[i], 0, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, relay,
					 (void *)(uintptr_t)&numbers[i]),
			0);
	}
	for (unsigned i = 0; i < 10; i++) {
		static struct received some = { .keywords = 0x2 };
		struct spoor_session *session = start(&some, SPOOR_DROP_NEWEST);
		assert_int_equal(spoor_session_stop(session), 0);
		spoor_session_free(session);
		/* A later session is not to be counted for this one. */
		quarantined += sessions_quarantined();
		for (int ms = 0; sessions_quarantined() && ms < 60000; ms++)
			usleep(1000);
		assert_false(sessions_quarantined());
	}
	/* On a busy machine a thread may get no processor for a second. */
	assert_true(quarantined < 5);
	__atomic_store_n(&relay_ends, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(spoor_session_stop(stays), 0);
	spoor_session_free(stays);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&many);
}

static int tear_down(void **state)
{
	(void)state;
	spoor_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_are_exact),
		cmocka_unit_test(a_session_ends_beside_records),
	};

	return cmocka_run_group_tests_name("sessions", tests, set_up, tear_down);
}
