/*
 * symbol_worker.c with a thread that gets no CPU at a chosen point of its work. The functions that it calls are
 * wrapped by the linker, and the thread spins in one of them, as one that waits for a CPU stays where it is. Each
 * question has exactly one answer, its own.
 */
#include "unit/test.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clocks.h"
#include "machine/box.h"
#include "machine/cpu_clock.h"
#include "symbolize/name_tables.h"
#include "symbolize/symbol_worker.h"

#define SECOND_NS UINT64_C(1000000000)
#define QUESTIONS 600u /* more than there are slots */

void __real_name_tables_answer(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer);
void __wrap_name_tables_answer(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer);
uint64_t __real_clock_monotonic_ns(void);
uint64_t __wrap_clock_monotonic_ns(void);

bool __real_cpu_clock_parse_schedstat(const char *text, size_t len, uint64_t *ret_cpu_ns);
bool __wrap_cpu_clock_parse_schedstat(const char *text, size_t len, uint64_t *ret_cpu_ns);

static struct box box;
static atomic_int delayed_tid; /* 0: no thread has come to the point */
static atomic_bool
	all_delayed;      /* each thread is delayed, and has used no CPU time by its schedstat */
static atomic_int points; /* calls until the thread is delayed; negative: never */
static atomic_bool released;
static atomic_int delayed_count; /* threads in the delay */

static void point(void)
{
	int tid = (int)syscall(SYS_gettid);
	int none = 0;

	if (tid == getpid() || atomic_load(&released))
		return;
	if (!atomic_load(&all_delayed) &&
		(atomic_load(&points) < 0 || atomic_fetch_sub(&points, 1) != 0 ||
			!atomic_compare_exchange_strong(&delayed_tid, &none, tid)))
		return;
	atomic_fetch_add(&delayed_count, 1);
	while (!atomic_load(&released))
		(void)sched_yield();
	atomic_fetch_sub(&delayed_count, 1);
}

/* Before and behind the answer. The answer says which question it belongs to. */
void __wrap_name_tables_answer(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer)
{
	(void)tables;
	point();
	*answer = (struct name_answer){ .kind = question->kind, .place = question->place };
	answer->begin = question->place * 2;
	point();
}

uint64_t __wrap_clock_monotonic_ns(void)
{
	uint64_t time_ns = __real_clock_monotonic_ns();

	point();
	return time_ns;
}

bool __wrap_cpu_clock_parse_schedstat(const char *text, size_t len, uint64_t *ret_cpu_ns)
{
	if (!atomic_load(&all_delayed))
		return __real_cpu_clock_parse_schedstat(text, len, ret_cpu_ns);
	*ret_cpu_ns = 0;
	return true;
}

static void ask(struct symbol_worker *worker, uint64_t place)
{
	struct name_question *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->kind = ASK_KERNEL;
	q->place = place;
	symbol_worker_ask(worker, q);
}

/* Takes all answers that there are. */
static unsigned take(struct symbol_worker *worker, unsigned *seen)
{
	unsigned count = 0;

	for (struct name_answer *answer; (answer = symbol_worker_take(worker)); count++) {
		assert_true(answer->place < QUESTIONS);
		assert_int_equal(answer->begin, answer->place * 2);
		assert_non_null(answer->question);
		assert_int_equal(answer->question->place, answer->place);
		assert_int_equal(seen[answer->place]++, 0);
		symbol_worker_give_back(worker, answer);
	}
	return count;
}

static void await_delay(struct symbol_worker *worker)
{
	uint64_t until = __real_clock_monotonic_ns() + 60 * SECOND_NS;

	while (!atomic_load(&delayed_tid) && __real_clock_monotonic_ns() < until)
		(void)symbol_worker_wait(worker, __real_clock_monotonic_ns() + SECOND_NS / 1000);
	assert_true(atomic_load(&delayed_tid) != 0);
}

static void delay_at(int at)
{
	struct symbol_worker *worker;
	unsigned seen[QUESTIONS] = { 0 };

	atomic_store(&released, false);
	atomic_store(&delayed_tid, 0);
	atomic_store(&points, at);
	assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
	symbol_worker_forbid_raise(worker);
	for (uint64_t i = 0; i < QUESTIONS; i++)
		ask(worker, i);
	await_delay(worker);
	unsigned count = take(worker, seen);
	/* Another thread takes over, unless all questions have been answered. */
	symbol_worker_hurry(worker);
	assert_true(symbol_worker_wait(worker, __real_clock_monotonic_ns() + 60 * SECOND_NS));
	count += take(worker, seen);
	assert_int_equal(count, QUESTIONS);
	/* The results of the delayed thread are dropped. */
	atomic_store(&released, true);
	while (atomic_load(&delayed_count))
		(void)sched_yield();
	assert_int_equal(take(worker, seen), 0);
	ask(worker, 0);
	assert_true(symbol_worker_wait(worker, __real_clock_monotonic_ns() + 60 * SECOND_NS));
	seen[0] = 0;
	assert_int_equal(take(worker, seen), 1);
	symbol_worker_free(worker);
}

/* Before the first question, between two answers and inside of one, and in the second round of the slots. */
static void test_points(void **state)
{
	static const int at[] = { 0, 1, 2, 3, 7, 8, 900 };

	(void)state;
	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		delay_at(at[i]);
}

/* A thread that is only slow loses nothing, and the answers come in the order of the questions. */
static void test_slow(void **state)
{
	struct symbol_worker *worker;
	struct name_answer *answer;

	(void)state;
	atomic_store(&released, false);
	atomic_store(&delayed_tid, 0);
	atomic_store(&points, 5);
	assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
	for (uint64_t i = 0; i < QUESTIONS; i++)
		ask(worker, i);
	await_delay(worker);
	assert_true(symbol_worker_open_count(worker) > 0);
	atomic_store(&released, true);
	symbol_worker_hurry(worker);
	assert_true(symbol_worker_wait(worker, __real_clock_monotonic_ns() + 60 * SECOND_NS));
	for (uint64_t i = 0; i < QUESTIONS; i++) {
		answer = symbol_worker_take(worker);
		assert_non_null(answer);
		assert_int_equal(answer->place, i);
		symbol_worker_give_back(worker, answer);
	}
	assert_null(symbol_worker_take(worker));
	symbol_worker_free(worker);
}

/*
 * A thread that gets no CPU is replaced after half a second, and the second one gets none either when the names
 * are wanted at the end: a third one has separate tables, and answers all questions.
 */
static void test_twice(void **state)
{
	struct symbol_worker *worker;
	unsigned seen[QUESTIONS] = { 0 };
	uint64_t until = __real_clock_monotonic_ns() + 60 * SECOND_NS;

	(void)state;
	atomic_store(&released, false);
	atomic_store(&all_delayed, true);
	assert_int_equal(symbol_worker_new(&box, NULL, &worker), 0);
	symbol_worker_forbid_raise(worker);
	for (uint64_t i = 0; i < QUESTIONS; i++)
		ask(worker, i);
	while (atomic_load(&delayed_count) < 2 && __real_clock_monotonic_ns() < until)
		(void)symbol_worker_wait(worker, __real_clock_monotonic_ns() + SECOND_NS / 1000);
	assert_int_equal(atomic_load(&delayed_count), 2);
	/* The third thread is not delayed. */
	atomic_store(&points, -1);
	atomic_store(&all_delayed, false);
	symbol_worker_hurry(worker);
	assert_true(symbol_worker_wait(worker, __real_clock_monotonic_ns() + 60 * SECOND_NS));
	assert_int_equal(take(worker, seen), QUESTIONS);
	atomic_store(&released, true);
	while (atomic_load(&delayed_count))
		(void)sched_yield();
	assert_int_equal(take(worker, seen), 0);
	symbol_worker_free(worker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_twice),
	};

	box_read(&box);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
