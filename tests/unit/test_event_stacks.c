/* event_stacks.c: the method that is named for an event, by the functions of its stack. */
#include "unit/test.h"

#include "analysis/event_stacks.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define FRAMES_MAX 4u

struct frame {
	enum function_kind kind;
	const char *module;
	const char *name;
};

#define OWN(name)                              \
	{                                      \
		FUNCTION_JIT, "Shop.dll", name \
	}
#define FRAMEWORK(name)                                                 \
	{                                                               \
		FUNCTION_READYTORUN, "System.Private.CoreLib.dll", name \
	}
#define MARK                                                 \
	{                                                    \
		FUNCTION_UNKNOWN, "", STACK_LOST_CALLER_NAME \
	}

static const struct {
	struct frame frames[FRAMES_MAX]; /* leaf first */
	const char *own;
} cases[] = {
	{ { FRAMEWORK("System.Threading.Monitor.Wait(object)"), OWN("Shop.Get()"),
		  OWN("Shop.Main()") },
		"Shop.Get()" },
	/* the missed caller may be the method that is searched for */
	{ { FRAMEWORK("System.Threading.Monitor.Wait(object)"), MARK, OWN("Shop.Main()") },
		STACK_LOST_CALLER_NAME },
	/* what is missing above it changes nothing */
	{ { OWN("Shop.Get()"), MARK, OWN("Shop.Main()") }, "Shop.Get()" },
	/* a thread of the runtime, of which no method is the user's */
	{ { FRAMEWORK("System.Threading.Monitor.Wait(object)"), MARK,
		  FRAMEWORK("System.Threading.Thread.StartCallback()") },
		"System.Threading.Monitor.Wait(object)" },
};

static void test_own(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct event_stack *stack;
		struct event_stacks stacks;
		struct symbolmap names;
		struct trace trace;

		assert_int_equal(trace_init(&trace), 0);
		assert_int_equal(symbolmap_init(&names, &trace, METHOD_NAME_LONG), 0);
		stacks = (struct event_stacks){ .trace = &trace };
		assert_non_null(vec_push(&stacks.items));
		stack = vec_push(&stacks.items);
		assert_non_null(stack);
		for (; stack->frame_count < FRAMES_MAX && cases[i].frames[stack->frame_count].name;
			stack->frame_count++) {
			const struct frame *frame = &cases[i].frames[stack->frame_count];
			struct function *function = vec_push(&names.functions);
			uint32_t index = names.functions.count - 1;
			assert_non_null(function);
			function->name = function->full_name = trace_add_text(&trace, frame->name);
			function->module = trace_add_text(&trace, frame->module);
			function->kind = (uint8_t)frame->kind;
			function->method = index;
			function->named = true;
			assert_true(vec_add(&stacks.functions, index));
		}
		event_stacks_place(&stacks, &names);
		assert_string_equal(trace_text(&trace, names.functions.items[stack->own].name),
			cases[i].own);
		event_stacks_done(&stacks);
		symbolmap_done(&names);
		trace_done(&trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_own) };

	return cmocka_run_group_tests_name("event_stacks", tests, NULL, NULL);
}
