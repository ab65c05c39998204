/* thread_role.c: the role of a runtime's thread by its name; and profile_add_roles(). */
#include "unit/test.h"

#include "analysis/thread_role.h"
#include "trace/symbolmap.h"
#include "unit/sample_trace.h"

static void test_names(void **state)
{
	(void)state;
	/* As the kernel has them: 15 characters. */
	assert_int_equal(thread_role_of(".NET Server GC"), THREAD_COLLECTOR);
	assert_int_equal(thread_role_of(".NET BGC"), THREAD_COLLECTOR);
	assert_int_equal(thread_role_of(".NET Tiered Com"), THREAD_TIERED_COMPILATION);
	assert_int_equal(thread_role_of(".NET Finalizer"), THREAD_FINALIZER);
	assert_int_equal(thread_role_of(".NET EventPipe"), THREAD_EVENT_PIPE);
	assert_int_equal(thread_role_of(".NET TP Worker"), THREAD_OTHER);
	assert_int_equal(thread_role_of("Server GC"), THREAD_OTHER);
	assert_int_equal(thread_role_of(".NET "), THREAD_OTHER);
	assert_int_equal(thread_role_of(""), THREAD_OTHER);
	assert_string_equal(thread_role_label(THREAD_OTHER), "");
	assert_string_equal(thread_role_label(THREAD_SERVICE), "");
	assert_true(thread_role_is_own(".NET Finalizer"));
	assert_true(thread_role_is_own(".NET Sockets"));
	assert_false(thread_role_is_own(".NET TP Worker"));
	assert_false(thread_role_is_own("shop"));
}

/* The same stack on a thread of the collector and on another one: one of them gets the label. */
static void test_profile(void **state)
{
	struct trace trace;
	struct profile profile = { .trace = &trace };
	struct symbolmap names;
	const uint64_t *frames = STACK(LIBC + 0x108, LIBC + 8);
	uint64_t labelled = 0;
	uint64_t others = 0;

	(void)state;
	sample_trace(&trace);
	uint32_t thread = trace_thread(&trace, 4711, 4720);
	trace.threads.items[thread].name = trace_add_text(&trace, ".NET Server GC");
	sample_add(&profile, 4711, 4720, 0, 3, frames);
	sample_add(&profile, 4711, 4712, 10, 2, frames);
	sample_add(&profile, 4711, 4720, 20, 1, STACK(0)); /* no stack, no label */
	assert_int_equal(symbolmap_init(&names, &trace, METHOD_NAME_SHORT), 0);
	assert_int_equal(profile_name(&profile, &names), 0);
	assert_int_equal(profile.frame_count, 10);
	assert_int_equal(profile_add_roles(&profile, &names), 0);
	assert_int_equal(profile.functions.count, profile.bodies.count);
	for (uint32_t i = 0; i < profile.stacks.count; i++) {
		const struct profile_stack *stack = &profile.stacks.items[i];
		if (!stack->frame_count)
			continue;
		uint32_t root = profile.functions.items[stack->at + stack->frame_count - 1];
		const char *name = trace_text(&trace, names.functions.items[root].name);
		if (strcmp(name, "[garbage collector]") == 0) {
			assert_int_equal(stack->frame_count, 3);
			labelled += stack->count;
		} else {
			assert_string_equal(name, "start_thread");
			assert_int_equal(stack->frame_count, 2);
			others += stack->count;
		}
	}
	assert_int_equal(labelled, 3);
	assert_int_equal(others, 2);
	symbolmap_done(&names);
	profile_done(&profile);
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
