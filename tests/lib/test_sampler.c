/*
 * Samples of threads that sleep: each one that is due reaches the sink, and is in the session's
 * counts as written or as lost.
 */
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <spoor/spoor.h>

#include "lib/event/event_entry.h"
#include "lib/pipe/pipe_session.h"
#include "lib/pipe/sink.h"
#include "lib/platform/platform.h"

#define EXTERNAL 1u /* values of the sample's field */
#define RUNNING  2u

/* A destination that counts what it takes and refuses. */
struct counting_sink {
	struct sink sink;
	uint64_t worker_id; /* atomic */
	int refusal; /* what it returns for samples of the worker that sleeps; 0: it takes them */
	uint64_t taken, refused; /* read after the session's end */
	sem_t ran, slept;        /* posted for each sample of the worker */
};

static struct counting_sink *counting; /* of the session that runs; freed with it */

static int counting_event(struct sink *sink, const struct pipe_event *event)
{
	uint32_t kind;
	int r = 0;

	(void)sink;
	if (event->entry->flags & ENTRY_OWN)
		return 0;
	assert_int_equal(event->payload_size, sizeof(kind));
	memcpy(&kind, event->payload, sizeof(kind));
	bool of_worker =
		event->thread_id == __atomic_load_n(&counting->worker_id, __ATOMIC_ACQUIRE);
	if (of_worker && kind == EXTERNAL)
		r = counting->refusal;
	if (r)
		counting->refused++;
	else
		counting->taken++;
	if (of_worker)
		sem_post(kind == RUNNING ? &counting->ran : &counting->slept);
	return r;
}

static void counting_free(struct sink *sink)
{
	free(sink);
}

static const struct session_sink_ops counting_ops = {
	.name = "counting",
	.event = counting_event,
	.free = counting_free,
};

static sem_t may_end;

/* Runs until it was sampled, then sleeps. */
static void *work(void *context)
{
	(void)context;
	__atomic_store_n(&counting->worker_id, platform_thread_id(), __ATOMIC_RELEASE);
	while (sem_trywait(&counting->ran))
		;
	while (sem_wait(&may_end))
		;
	return NULL;
}

static void wait_for(sem_t *semaphore)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 120;
	while (sem_timedwait(semaphore, &until))
		assert_int_equal(errno, EINTR);
}

struct outcome {
	struct spoor_session_counts counts;
	uint64_t taken, refused; /* by the sink */
};

/* A session in which samples of a sleeping thread have this result. */
static struct outcome sample(int refusal)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = "Microsoft-DotNETCore-SampleProfiler",
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	struct session_config config = { .options = { .size = sizeof(config.options),
						 .wants = &want,
						 .want_count = 1,
						 .stacks = true } };
	struct outcome outcome = { .counts = { .size = sizeof(outcome.counts) } };
	struct session *session = NULL;
	pthread_t thread;

	counting = calloc(1, sizeof(*counting));
	assert_non_null(counting);
	counting->sink.ops = &counting_ops;
	counting->refusal = refusal;
	config.sink = &counting->sink;
	sem_init(&counting->ran, 0, 0);
	sem_init(&counting->slept, 0, 0);
	sem_init(&may_end, 0, 0);
	assert_int_equal(session_new(&config, &session), 0);
	assert_int_equal(session_enable(session), 0);
	assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
	wait_for(&counting->slept);
	wait_for(&counting->slept);
	sem_post(&may_end);
	pthread_join(thread, NULL);
	session_stop(session, false);
	assert_int_equal(session_wait(session, UINT64_C(120000000000)), 0);
	spoor_session_count((struct spoor_session *)session, &outcome.counts);
	outcome.taken = counting->taken;
	outcome.refused = counting->refused;
	session_unref(session);
	return outcome;
}

static void taken_samples_are_written(void **state)
{
	(void)state;
	struct outcome outcome = sample(0);
	assert_true(outcome.taken >= 3); /* one of the running thread, two of the sleeping one */
	assert_int_equal(outcome.counts.written, outcome.taken);
	assert_int_equal(outcome.counts.lost, 0);
}

static void refused_samples_are_lost(void **state)
{
	static const int refusals[] = { -ENOBUFS, -EMSGSIZE };

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct outcome outcome = sample(refusals[i]);
		assert_true(outcome.refused >= 2);
		assert_int_equal(outcome.counts.written, outcome.taken);
		assert_int_equal(outcome.counts.lost, outcome.refused);
	}
}

static int set_up(void **state)
{
	struct spoor_options options = { .size = sizeof(options), .flags = SPOOR_START_NO_SERVER };

	(void)state;
	return spoor_start(&options);
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
		cmocka_unit_test(taken_samples_are_written),
		cmocka_unit_test(refused_samples_are_lost),
	};

	return cmocka_run_group_tests_name("sampler", tests, set_up, tear_down);
}
