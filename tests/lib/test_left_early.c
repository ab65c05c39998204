/*
 * A handler leaves an event before its record has a header: at the first store into the ring, after
 * any single instruction, or while the thread waits for room. The event counts once or, before the
 * library has read who wants it, not at all; later events take the thread's normal ring.
 */
#include "lib/read_back.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <spoor/spoor.h>

#include "lib/event/thread_ring.h"
#include "lib/pipe/pipe_session.h"

SPOOR_PROVIDER(early, "Early")
SPOOR_EVENT(early, number, 1, SPOOR_INFO, 0x1, (u64, value))
SPOOR_EVENT(early, bytes, 2, SPOOR_INFO, 0x1, (blob, data))

static __thread sigjmp_buf place;

static void handle(int number, void (*function)(int, siginfo_t *, void *))
{
	struct sigaction action = { .sa_sigaction = function, .sa_flags = SA_SIGINFO };

	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static struct spoor_session *listen(struct spoor_session_options options)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = "Early",
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	struct spoor_session *session = NULL;

	options.size = sizeof(options);
	options.wants = &want;
	options.want_count = 1;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	return session;
}

static struct spoor_session_counts counts_of(const struct spoor_session *session)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	spoor_session_count(session, &counts);
	return counts;
}

static void ends_with(struct spoor_session *session, uint64_t written, uint64_t lost)
{
	assert_int_equal(spoor_session_stop(session), 0);
	assert_int_equal(counts_of(session).written, written);
	assert_int_equal(counts_of(session).lost, lost);
	spoor_session_free(session);
}

static bool is_on_normal_ring(uint64_t nested_published)
{
	return !(current_thread->main.front->front.turn & 1) &&
	       !(current_thread->nested.front->front.turn & 1) &&
	       current_thread->nested.front->front.published == nested_published;
}

/* ---- At the first store into the ring ---- */

static __thread uint8_t *closed; /* two pages of the ring, where the next record will be */

static void on_fault(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	if (mprotect(closed, 2 * 4096, PROT_READ | PROT_WRITE))
		abort();
	siglongjmp(place, 1);
}

/* The session is flushed: the library's thread reads nothing there. */
static void leave_at_header(struct spoor_session *session)
{
	const struct thread_ring *ring = &current_thread->main;

	assert_int_equal(spoor_session_flush(session, 60000), 0);
	closed = ring->base + (ring->front->front.published & ring->mask & ~UINT64_C(4095));
	if (sigsetjmp(place, 1) == 0) {
		assert_int_equal(mprotect(closed, 2 * 4096, PROT_NONE), 0);
		early_number(UINT64_MAX);
		fail_msg("the firing did not fault");
	}
}

static void before_the_header(void **state)
{
	(void)state;
	handle(SIGSEGV, on_fault);
	for (int stacks = 0; stacks < 2; stacks++) {
		struct spoor_session *session =
			listen((struct spoor_session_options){ .stacks = stacks == 1 });
		early_number(0);
		uint64_t nested = current_thread->nested.front->front.published;
		for (uint64_t i = 1; i <= 50; i++) {
			leave_at_header(session);
			early_number(i);
			assert_true(is_on_normal_ring(nested));
		}
		ends_with(session, 51, 50);
	}
}

static void the_thread_stops_the_session(void **state)
{
	(void)state;
	handle(SIGSEGV, on_fault);
	for (uint64_t i = 0; i < 20; i++) {
		struct spoor_session *session = listen((struct spoor_session_options){ 0 });
		early_number(i);
		leave_at_header(session);
		ends_with(session, 1, 1);
		assert_false(sessions_quarantined());
	}
}

static uint32_t step; /* atomic */

static void step_wait(uint32_t wanted)
{
	while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) != wanted)
		usleep(1000);
}

static void *leave_and_wait(void *session)
{
	early_number(1);
	leave_at_header(session);
	__atomic_store_n(&step, 1, __ATOMIC_RELEASE);
	step_wait(2);
	early_number(2);
	early_number(3);
	return NULL;
}

/* The first session ends while the thread is still inside the record; later ones use its slot. */
static void sessions_end_meanwhile(void **state)
{
	pthread_t thread;

	(void)state;
	handle(SIGSEGV, on_fault);
	step = 0;
	struct spoor_session *first = listen((struct spoor_session_options){ 0 });
	assert_int_equal(pthread_create(&thread, NULL, leave_and_wait, first), 0);
	step_wait(1);
	ends_with(first, 1, 1);
	for (int i = 0; i < 130; i++)
		ends_with(listen((struct spoor_session_options){ 0 }), 0, 0);
	struct spoor_session *all[SESSIONS_MAX];
	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		all[i] = listen((struct spoor_session_options){ 0 });
	__atomic_store_n(&step, 2, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		ends_with(all[i], 2, 0);
}

/* ---- After any instruction ---- */

static volatile uint64_t steps_left; /* 0: no stepping */
static volatile bool is_firing;

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TRAP_FLAG 0x100

static void on_step(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)number;
	(void)info;
	if (steps_left && is_firing && --steps_left == 0)
		siglongjmp(place, 1);
	if (!steps_left)
		interrupted->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* The interrupted code runs in single steps from here on. */
static void on_begin(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)number;
	(void)info;
	interrupted->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

/* Fires, and leaves after so many instructions. False: it has returned before. */
static bool leave_after(uint64_t instructions)
{
	if (sigsetjmp(place, 1) == 0) {
		steps_left = instructions;
		raise(SIGUSR1);
		is_firing = true;
		early_number(1);
		is_firing = false;
		steps_left = 0;
		return false;
	}
	is_firing = false;
	return true;
}

static void after_any_instruction_with(bool stacks)
{
	struct spoor_session *session = listen((struct spoor_session_options){ .stacks = stacks });
	uint64_t expected = 1;
	uint64_t uncounted = 0;
	bool is_counted = false;
	bool was_left = true;

	early_number(0);
	uint64_t nested = current_thread->nested.front->front.published;
	for (uint64_t i = 1; was_left; i += stacks && i > 300 ? 7 : 1) {
		was_left = leave_after(i);
		early_number(2);
		if (!is_on_normal_ring(nested))
			fail_msg("left after %llu instructions: on the small ring",
				(unsigned long long)i);
		assert_int_equal(spoor_session_flush(session, 60000), 0);
		struct spoor_session_counts counts = counts_of(session);
		uint64_t count = counts.written + counts.lost - expected - 1;
		expected += 1 + count;
		/* Once the library has read who wants the event, it counts. */
		if (count > 1 || (is_counted && count != 1))
			fail_msg("left after %llu instructions: counted %llu times",
				(unsigned long long)i, (unsigned long long)count);
		is_counted = count == 1;
		uncounted += !count;
	}
	assert_true(is_counted);
	assert_int_equal(spoor_session_stop(session), 0);
	print_message("%llu events, %llu of them lost; %llu were left before\n",
		(unsigned long long)expected, (unsigned long long)counts_of(session).lost,
		(unsigned long long)uncounted);
	assert_true(counts_of(session).lost > 5);
	assert_int_equal(counts_of(session).written + counts_of(session).lost, expected);
	spoor_session_free(session);
	assert_false(sessions_quarantined());
}

static void after_any_instruction(void **state)
{
	(void)state;
	handle(SIGTRAP, on_step);
	handle(SIGUSR1, on_begin);
	after_any_instruction_with(false);
	after_any_instruction_with(true);
}
#else
static void after_any_instruction(void **state)
{
	(void)state;
	print_message("skipped: no single steps here\n");
	skip();
}
#endif

/* ---- While the thread waits for room ---- */

static struct thread_state *waiting; /* atomic */
static uint64_t begun;               /* events, also those that were left */

static void on_leave(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	(void)context;
	siglongjmp(place, 1);
}

static void *fire_until_left(void *session)
{
	static const uint8_t data[1000];

	if (sigsetjmp(place, 1) == 0) {
		early_number(0);
		begun++;
		__atomic_store_n(&waiting, current_thread->root, __ATOMIC_RELEASE);
		for (;;) {
			begun++;
			early_bytes(data, sizeof(data));
		}
	}
	__atomic_store_n(&waiting, NULL, __ATOMIC_RELEASE);
	if (session) {
		assert_int_equal(spoor_session_stop(session), 0);
		return NULL;
	}
	for (int i = 0; i < 100; i++)
		early_number(1);
	begun += 100;
	return NULL;
}

static void left_while_it_waits(bool stops_itself)
{
	struct spoor_session *session = listen((struct spoor_session_options){
		.policy = SPOOR_BLOCK, .block_ms = 600000, .buffer_bytes = 1 << 20 });
	struct spoor_event_view view = { .size = sizeof(view) };
	const struct thread_state *state;
	pthread_t thread;

	begun = 0;
	waiting = NULL;
	assert_int_equal(
		pthread_create(&thread, NULL, fire_until_left, stops_itself ? session : NULL), 0);
	/* It waits for the sink, which is full: a wait for room in its ring would end soon. */
	unsigned long long before;
	do {
		before = __atomic_load_n(&begun, __ATOMIC_RELAXED);
		usleep(50000);
	} while (!(state = __atomic_load_n(&waiting, __ATOMIC_ACQUIRE)) ||
		 !__atomic_load_n(&state->wait_count, __ATOMIC_RELAXED) ||
		 __atomic_load_n(&begun, __ATOMIC_RELAXED) != before);
	assert_int_equal(pthread_kill(thread, SIGUSR2), 0);
	while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE))
		usleep(1000);
	/* Room for the events that follow. */
	while (!stops_itself && spoor_listener_read(session, &view, 100) == 1)
		;
	pthread_join(thread, NULL);
	assert_int_equal(spoor_session_stop(session), 0);
	assert_int_equal(counts_of(session).lost, 1);
	assert_int_equal(counts_of(session).written, begun - 1);
	spoor_session_free(session);
}

static void while_it_waits(void **state)
{
	(void)state;
#if defined(__SANITIZE_THREAD__)
	print_message("skipped: the thread sanitizer delays handlers until the wait has ended\n");
	skip();
#endif
	handle(SIGUSR2, on_leave);
	for (int i = 0; i < 10; i++)
		left_while_it_waits(i & 1);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&early);
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
		cmocka_unit_test(before_the_header),
		cmocka_unit_test(the_thread_stops_the_session),
		cmocka_unit_test(sessions_end_meanwhile),
		cmocka_unit_test(after_any_instruction),
		cmocka_unit_test(while_it_waits),
	};

	return cmocka_run_group_tests_name("left early", tests, set_up, tear_down);
}
