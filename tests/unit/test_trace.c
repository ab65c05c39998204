/*
 * trace.c: identity of processes and threads, the mapping at an address, and one index for equal
 * stacks.
 */
#include "unit/test.h"

#include "trace/trace.h"

static void test_processes(void **state)
{
	struct trace trace;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(trace_find_process(&trace, 5), 0);
	uint32_t five = trace_process(&trace, 5);
	assert_int_equal(trace_process(&trace, 5), five);
	uint32_t main_thread = trace.processes.items[five].main_thread;
	assert_int_equal(trace_thread(&trace, 5, 5), main_thread);
	uint32_t seven = trace_thread(&trace, 5, 7);
	assert_int_equal(trace_thread(&trace, 5, 7), seven);
	/* The same thread id in another process is another thread, and both are kept. */
	uint32_t other = trace_thread(&trace, 6, 7);
	assert_int_not_equal(other, seven);
	assert_int_equal(trace_thread(&trace, 5, 7), seven);
	assert_int_equal(trace_thread(&trace, 6, 7), other);
	uint32_t again = trace_new_process(&trace, 5);
	assert_int_not_equal(again, five);
	assert_int_equal(trace_find_process(&trace, 5), again);
	assert_int_not_equal(trace_thread(&trace, 5, 7), seven);
	assert_int_equal(trace.threads.items[trace_thread(&trace, 5, 7)].process, again);
	trace_done(&trace);
}

static uint32_t map_at(struct trace *trace, uint32_t process, uint64_t begin, uint64_t end)
{
	uint32_t index = trace_add_mapping(trace, process);

	trace->mappings.items[index].begin = begin;
	trace->mappings.items[index].end = end;
	return index;
}

static void test_mappings(void **state)
{
	struct trace trace;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	uint32_t process = trace_process(&trace, 5);
	uint32_t kernel = map_at(&trace, 0, 0xffff800000000000, UINT64_MAX);
	uint32_t old = map_at(&trace, process, 0x1000, 0x3000);
	uint32_t new = map_at(&trace, process, 0x2000, 0x4000);
	assert_int_equal(trace_find_mapping(&trace, process, 0xfff), 0);
	assert_int_equal(trace_find_mapping(&trace, process, 0x1fff), old);
	assert_int_equal(trace_find_mapping(&trace, process, 0x2000), new);
	assert_int_equal(trace_find_mapping(&trace, process, 0x4000), 0);
	assert_int_equal(trace_find_mapping(&trace, process, 0xffffffff81000000), kernel);
	assert_int_equal(trace_find_mapping(&trace, 0, 0xffffffff81000000), kernel);
	trace_done(&trace);
}

static void test_stacks(void **state)
{
	struct stack_table table = { 0 };
	uint32_t indexes[2000];
	uint32_t count;

	(void)state;
	assert_int_equal(stack_table_intern(&table, NULL, 0), 0);
	for (int round = 0; round < 2; round++) {
		for (uint64_t i = 0; i < 2000; i++) {
			uint64_t frames[] = { i, i * i, 7 };
			uint32_t index = stack_table_intern(&table, frames, (uint32_t)(i % 3 + 1));
			if (round)
				assert_int_equal(index, indexes[i]);
			indexes[i] = index;
			assert_int_equal(stack_table_get(&table, index, &count)[0], i);
			assert_int_equal(count, i % 3 + 1);
		}
	}
	assert_int_equal(table.stacks.count, 2001);
	assert_null(stack_table_get(&table, 2001, &count));
	assert_int_equal(count, 0);
	stack_table_done(&table);
}

static void test_known_schemas(void **state)
{
	struct trace trace;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	for (int known = 1; known < KNOWN_EVENT_COUNT; known++) {
		uint32_t index = trace_known_schema(&trace, (enum known_event)known);
		assert_true(index);
		assert_int_equal(trace_known_schema(&trace, (enum known_event)known), index);
		const struct schema *schema = &trace.schemas.items[index];
		assert_int_equal(provider_kind_of(trace_text(&trace, schema->provider)),
			schema->provider_kind);
		assert_int_equal(schema->has_guid, schema->provider_kind == PROVIDER_SPOOR);
	}
	const struct schema *end =
		&trace.schemas.items[trace_known_schema(&trace, SPOOR_SESSION_END)];
	assert_int_equal(end->fields.count, 3);
	assert_int_equal(end->fields.items[1].type, FIELD_ARRAY);
	assert_int_equal(end->fields.items[1].element, FIELD_TEXT16);
	assert_string_equal(trace_text(&trace, end->fields.items[2].name), "Count");
	trace_done(&trace);
}

/* A recorder at its memory limit still says what was lost, by name. */
static void test_known_schema_when_full(void **state)
{
	struct trace trace;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	trace.strings.full = true;
	const struct schema *loss = &trace.schemas.items[trace_known_schema(&trace, SPOOR_LOSS)];
	assert_string_equal(trace_text(&trace, loss->provider), "Spoor");
	assert_string_equal(trace_text(&trace, loss->name), "Loss");
	assert_string_equal(trace_text(&trace, loss->fields.items[1].name), "Unit");
	assert_string_equal(trace_text(&trace, loss->fields.items[2].name), "Count");
	assert_true(trace.strings.full);
	assert_int_equal(trace_add_text(&trace, "another"), 0);
	trace_done(&trace);
}

/* A program's events never have a name that Spoor's own have. */
static void test_foreign_providers(void **state)
{
	static const struct {
		const char *name;
		const char *shown;
	} cases[] = {
		{ "shop", "shop" },
		{ "Spoor", "Spoor (of a program)" },
		{ "Spoor-Shop", "Spoor-Shop (of a program)" },
		{ "spoor_library", "spoor_library" },
		{ "Universal.System", "Universal.System (of a program)" },
		{ "Universal", "Universal" },
		{ "", "" },
	};
	struct trace trace;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *name = cases[i].name;
		assert_string_equal(trace_text(&trace,
					    trace_add_foreign_provider(&trace, name, strlen(name))),
			cases[i].shown);
	}
	/* The name need not end where the text ends. */
	assert_string_equal(trace_text(&trace,
				    trace_add_foreign_provider(&trace, "Spoor:event", 5)),
		"Spoor (of a program)");
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_known_schemas),
		cmocka_unit_test(test_known_schema_when_full),
		cmocka_unit_test(test_foreign_providers),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
