/* Awaits: pairs by task, logical stacks of methods that await one another, time of the innermost, unfinished awaits. */
#include "unit/answers_fixture.h"

#include <string.h>

enum { BEGINS = 10, ENDS = 11, AWAITS = 2, BLOCKS = 1 };

/* Shop.Program.Main() and Shop.Gone.Now() are the user's; LIBC stands for the framework. */
#define MAIN (JIT + 0x210)
#define GONE (JIT + 0x610)

static void pass(struct fixture *f, uint64_t at_ms, uint16_t id, const uint32_t *numbers,
	uint32_t count, bool in_activity)
{
	const uint8_t ids[EVENT_ACTIVITY_SIZE] = { 1 };
	struct bytes payload = { 0 };
	const struct schema schema = { .provider_kind = PROVIDER_OTHER,
		.provider = trace_add_text(&f->trace, "System.Threading.Tasks.TplEventSource"),
		.event_id = id };

	for (uint32_t i = 0; i < count; i++)
		bytes_u32(&payload, numbers[i]);
	fixture_event(f, at_ms, &schema, in_activity ? ids : NULL, &payload);
}

static void begin_await(struct fixture *f, uint64_t at_ms, uint64_t frame, uint32_t task,
	uint32_t after)
{
	fixture_stack(f, &frame, 1);
	pass(f, at_ms, BEGINS, (uint32_t[]){ 1, 0, task, AWAITS, after }, 5, true);
}

static void end_await(struct fixture *f, uint64_t at_ms, uint32_t task)
{
	pass(f, at_ms, ENDS, (uint32_t[]){ 1, 0, task }, 3, true);
}

static void get_methods(const struct fixture *f, unsigned mask, struct await_methods *methods)
{
	const struct tally *tally = &f->answers.awaits.tally;

	assert_int_equal(tally->processes.count, 1);
	assert_int_equal(awaits_methods(&f->answers.awaits, &f->names, &tally->processes.items[0],
				 mask, methods),
		0);
}

static const struct await_method *find_method(const struct fixture *f,
	const struct await_methods *methods, const char *name)
{
	for (uint32_t i = 0; i < methods->list.count; i++)
		if (strcmp(fixture_function(f, methods->list.items[i].method), name) == 0)
			return &methods->list.items[i];
	return NULL;
}

/* Main awaits Gone, through a method of the framework; Gone awaits a timer twice. */
static void test_nested(void **state)
{
	struct fixture f;
	struct await_methods methods;

	(void)state;
	fixture_begin(&f, ANSWER_ASYNC);
	begin_await(&f, 10, GONE, 1, 11);
	begin_await(&f, 10, LIBC + 0x10, 11, 12);
	begin_await(&f, 10, MAIN, 12, 13);
	end_await(&f, 210, 1);
	begin_await(&f, 220, GONE, 2, 11);
	end_await(&f, 270, 2);
	end_await(&f, 300, 11);
	end_await(&f, 300, 12);
	/* a thread that waits, and an end without a begin */
	pass(&f, 310, BEGINS, (uint32_t[]){ 1, 0, 3, BLOCKS, 0 }, 5, true);
	end_await(&f, 320, 3);
	pass(&f, 330, BEGINS, (uint32_t[]){ 1, 0, 4 }, 3, true);
	fixture_finish(&f);
	get_methods(&f, 0, &methods);
	assert_int_equal(methods.list.count, 2);
	const struct await_method *gone = find_method(&f, &methods, "Shop.Gone.Now()");
	const struct await_method *outer = find_method(&f, &methods, "Shop.Program.Main()");
	assert_ptr_equal(gone, &methods.list.items[0]);
	assert_int_equal(gone->count, 2);
	assert_int_equal(gone->self_ns, 250 * MS);
	assert_int_equal(gone->all_ns, 250 * MS);
	assert_int_equal(gone->longest_ns, 200 * MS);
	assert_int_equal(gone->longest_at_ns, 10 * MS);
	assert_int_equal(outer->count, 1);
	assert_int_equal(outer->all_ns, 290 * MS);
	assert_int_equal(outer->self_ns, 40 * MS);
	await_methods_done(&methods);
	/* Long ones only: the second of Gone is short, and belongs to Main then. */
	get_methods(&f, AWAIT_IS_LONG | AWAIT_IN_ACTIVITY, &methods);
	assert_int_equal(find_method(&f, &methods, "Shop.Gone.Now()")->self_ns, 200 * MS);
	assert_int_equal(find_method(&f, &methods, "Shop.Program.Main()")->self_ns, 90 * MS);
	await_methods_done(&methods);
	fixture_end(&f);
}

static void test_unfinished(void **state)
{
	struct fixture f;
	struct await_methods methods;

	(void)state;
	fixture_begin(&f, ANSWER_ASYNC);
	begin_await(&f, 400, GONE, 1, 11);
	begin_await(&f, 410, GONE, 2, 21);
	end_await(&f, 420, 2);
	fixture_finish(&f);
	get_methods(&f, 0, &methods);
	assert_int_equal(methods.list.count, 1);
	assert_int_equal(methods.list.items[0].count, 2);
	assert_int_equal(methods.list.items[0].pending, 1);
	assert_int_equal(methods.list.items[0].longest_ns, 600 * MS);
	await_methods_done(&methods);
	fixture_end(&f);
}

/* Awaits of the framework outside of the user's code are no method's. */
static void test_framework(void **state)
{
	struct fixture f;
	struct await_methods methods;

	(void)state;
	fixture_begin(&f, ANSWER_ASYNC);
	begin_await(&f, 10, LIBC + 0x10, 1, 11);
	end_await(&f, 20, 1);
	fixture_finish(&f);
	get_methods(&f, 0, &methods);
	assert_int_equal(methods.list.count, 0);
	await_methods_done(&methods);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_framework),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
