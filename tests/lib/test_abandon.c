/*
 * A handler leaves a firing by siglongjmp(): the record counts as lost, later events of the thread
 * arrive, sessions end without delay, and their slots can be used again. A handler that interrupts
 * a firing and returns is not taken for one that left it, on whatever stack it runs.
 */
#include "lib/read_back.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <spoor/spoor.h>

#define STACK_BYTES (1u << 20)
#define APART       (4u << 20)

SPOOR_PROVIDER(left, "Left")
SPOOR_EVENT(left, number, 1, SPOOR_INFO, 0x1, (u64, value))
SPOOR_EVENT(left, bytes, 2, SPOOR_INFO, 0x1, (blob, data))

static uint8_t *page; /* not readable: the firing of its bytes faults inside the record */
static __thread sigjmp_buf place;
static volatile sig_atomic_t fires_in_handler;

static void on_fault_leave(int number)
{
	(void)number;
	if (fires_in_handler)
		left_number(77);
	siglongjmp(place, 1);
}

static void on_fault_return(int number)
{
	(void)number;
	left_number(77);
	assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
}

/* Fires a second event inside the first: its own fault leaves both. */
static void on_signal_fault(int number)
{
	(void)number;
	left_bytes(page, 100);
}

static void handle(int number, void (*function)(int), int flags)
{
	struct sigaction action = { .sa_handler = function, .sa_flags = flags };

	assert_int_equal(sigaction(number, &action, NULL), 0);
}

static struct spoor_session *listen(uint64_t keywords)
{
	struct spoor_want want = {
		.size = sizeof(want), .name = "Left", .keywords = keywords, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session = NULL;

	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	return session;
}

/* Ends the session, and checks how many events it received and how many were lost. */
static void ends_with(struct spoor_session *session, uint64_t written, uint64_t lost)
{
	struct spoor_session_counts counts = { .size = sizeof(counts) };

	assert_int_equal(spoor_session_stop(session), 0);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written, written);
	assert_int_equal(counts.lost, lost);
	spoor_session_free(session);
}

static __attribute__((noinline)) void leave_a_record(void)
{
	left_bytes(page, 100);
}

static void leave(void)
{
	if (sigsetjmp(place, 1) == 0) {
		leave_a_record();
		fail_msg("the firing did not fault");
	}
}

static void later_events_arrive(void **state)
{
	(void)state;
	handle(SIGSEGV, on_fault_leave, 0);
	for (int with = 0; with < 2; with++) {
		struct spoor_session *session = listen(UINT64_MAX);
		fires_in_handler = with;
		for (uint64_t i = 0; i < 200; i++) {
			leave();
			left_number(i);
		}
		uint64_t written = 0;
		struct spoor_event_view view = { .size = sizeof(view) };
		assert_int_equal(spoor_session_flush(session, 10000), 0);
		for (uint64_t next = 0; spoor_listener_read(session, &view, 0) == 1; written++) {
			struct spoor_value value;
			assert_int_equal(spoor_event_field(&view, "value", &value), 0);
			if (value.u64 == 77 && with && next != 77)
				continue;
			assert_int_equal(value.u64, next++);
		}
		assert_int_equal(written, with ? 400 : 200);
		ends_with(session, written, 200);
	}
	fires_in_handler = 0;
}

static uint64_t clock_ms(void)
{
	return spoor_now_ns() / 1000000;
}

static uint32_t released; /* atomic */

static void *leave_and_wait(void *context)
{
	(void)context;
	leave();
	__atomic_store_n(&released, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&released, __ATOMIC_ACQUIRE) != 2)
		usleep(1000);
	left_number(1);
	return NULL;
}

/*
 * A thread that fires no further event after it left a record: only the first session waits for
 * it, and all slots can be used, many times.
 */
static void sessions_end_beside_a_stuck_thread(void **state)
{
	pthread_t thread;

	(void)state;
	handle(SIGSEGV, on_fault_leave, 0);
	released = 0;
	struct spoor_session *first = listen(UINT64_MAX);
	assert_int_equal(pthread_create(&thread, NULL, leave_and_wait, NULL), 0);
	while (!__atomic_load_n(&released, __ATOMIC_ACQUIRE))
		usleep(1000);
	ends_with(first, 0, 1);
	uint64_t from = clock_ms();
	for (int i = 0; i < 130; i++)
		ends_with(listen(UINT64_MAX), 0, 0);
	assert_in_range(clock_ms() - from, 0, 60000); /* it was 1 s for each of them */
	struct spoor_session *last = listen(UINT64_MAX);
	__atomic_store_n(&released, 2, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	left_number(2);
	ends_with(last, 2, 0);
}

/* A thread that ends with a record it left: the record counts for the session that still runs. */
static void *leave_and_end(void *context)
{
	(void)context;
	leave();
	return NULL;
}

static void a_thread_may_end_after_it(void **state)
{
	pthread_t thread;

	(void)state;
	handle(SIGSEGV, on_fault_leave, 0);
	struct spoor_session *session = listen(UINT64_MAX);
	assert_int_equal(pthread_create(&thread, NULL, leave_and_end, NULL), 0);
	pthread_join(thread, NULL);
	assert_int_equal(spoor_session_flush(session, 10000), 0);
	assert_int_equal(spoor_session_flush(session, 10000), 0);
	ends_with(session, 0, 1);
}

/* ---- Signal stacks ---- */

static bool leaves; /* the handler leaves */

static void *on_other_stack(void *context)
{
	stack_t stack = { .ss_sp = context, .ss_size = STACK_BYTES };

	assert_int_equal(sigaltstack(&stack, NULL), 0);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
		if (!leaves)
			leave_a_record();
		else if (sigsetjmp(place, 1) == 0)
			raise(SIGUSR1);
		left_number(i);
	}
	stack.ss_flags = SS_DISABLE;
	assert_int_equal(sigaltstack(&stack, NULL), 0);
	return NULL;
}

/* The signal stack is above the thread's stack, or below it. */
static void run_with_stacks(bool above)
{
	uint8_t *memory = mmap(NULL, APART + STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attributes;
	pthread_t thread;

	assert_true(memory != MAP_FAILED);
	pthread_attr_init(&attributes);
	assert_int_equal(
		pthread_attr_setstack(&attributes, memory + (above ? 0 : APART), STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attributes, on_other_stack,
				 memory + (above ? APART : 0)),
		0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
	munmap(memory, APART + STACK_BYTES);
}

static void handlers_on_a_signal_stack(void **state)
{
	(void)state;
#if defined(__SANITIZE_THREAD__)
	print_message(
		"skipped: the thread sanitizer cannot follow a jump out of nested handlers\n");
	skip();
#endif
	for (int above = 0; above < 2; above++) {
		/* The handler fires inside the firing, makes the page readable and returns. */
		struct spoor_session *session = listen(UINT64_MAX);
		leaves = false;
		handle(SIGSEGV, on_fault_return, SA_ONSTACK);
		run_with_stacks(above);
		ends_with(session, 300, 0);
		/* A firing on the signal stack is left. */
		session = listen(UINT64_MAX);
		leaves = true;
		handle(SIGUSR1, on_signal_fault, SA_ONSTACK);
		handle(SIGSEGV, on_fault_leave, SA_ONSTACK);
		run_with_stacks(above);
		ends_with(session, 100, 100);
	}
	assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);
}

static int set_up(void **state)
{
	(void)state;
	page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED || spoor_start(NULL) || spoor_provider_register(&left);
}

static int tear_down(void **state)
{
	(void)state;
	handle(SIGSEGV, SIG_DFL, 0);
	spoor_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(later_events_arrive),
		cmocka_unit_test(sessions_end_beside_a_stuck_thread),
		cmocka_unit_test(a_thread_may_end_after_it),
		cmocka_unit_test(handlers_on_a_signal_stack),
	};

	return cmocka_run_group_tests_name("abandon", tests, set_up, tear_down);
}
