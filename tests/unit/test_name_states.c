/* name_states.c: the legal transitions of the sources of names, and no others. */
#include "unit/test.h"

#include "symbolize/name_states.h"

/* Names are requested before they arrive, and a .NET process stays one. */
static void test_managed(void **state)
{
	(void)state;
	for (unsigned from = MANAGED_NONE; from <= MANAGED_REFUSED; from++) {
		assert_false(managed_state_may_follow(from, MANAGED_NONE));
		assert_true(managed_state_may_follow(from, MANAGED_ASKING));
		assert_true(managed_state_may_follow(from, MANAGED_REFUSED));
		assert_int_equal(managed_state_may_follow(from, MANAGED_KNOWN),
			from != MANAGED_NONE);
	}
	enum managed_state managed = MANAGED_NONE;

	managed_state_enter(&managed, MANAGED_ASKING);
	managed_state_enter(&managed, MANAGED_KNOWN);
	assert_int_equal(managed, MANAGED_KNOWN);
}

static void test_maps(void **state)
{
	enum maps_state maps = MAPS_UNREAD;

	(void)state;
	assert_true(maps_state_may_follow(MAPS_UNREAD, MAPS_READ));
	assert_false(maps_state_may_follow(MAPS_ASKED, MAPS_ASKED));
	assert_false(maps_state_may_follow(MAPS_READ, MAPS_ASKED));
	assert_false(maps_state_may_follow(MAPS_READ, MAPS_UNREAD));
	maps_state_enter(&maps, MAPS_ASKED);
	maps_state_enter(&maps, MAPS_READ);
	assert_int_equal(maps, MAPS_READ);
}

static void test_code_memory(void **state)
{
	enum code_memory_state memory = CODE_MEMORY_UNOPENED;

	(void)state;
	assert_true(code_memory_may_follow(CODE_MEMORY_UNOPENED, CODE_MEMORY_UNREADABLE));
	assert_false(code_memory_may_follow(CODE_MEMORY_OPEN, CODE_MEMORY_OPEN));
	assert_false(code_memory_may_follow(CODE_MEMORY_UNREADABLE, CODE_MEMORY_OPEN));
	assert_false(code_memory_may_follow(CODE_MEMORY_UNREADABLE, CODE_MEMORY_UNOPENED));
	code_memory_enter(&memory, CODE_MEMORY_OPEN);
	code_memory_enter(&memory, CODE_MEMORY_UNREADABLE);
	assert_int_equal(memory, CODE_MEMORY_UNREADABLE);
}

static void test_sources(void **state)
{
	enum source_state opened = SOURCE_UNTRIED, failed = SOURCE_UNTRIED;

	(void)state;
	source_state_enter(&opened, true);
	source_state_enter(&failed, false);
	assert_int_equal(opened, SOURCE_OPEN);
	assert_int_equal(failed, SOURCE_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_managed),
		cmocka_unit_test(test_maps),
		cmocka_unit_test(test_code_memory),
		cmocka_unit_test(test_sources),
	};

	return cmocka_run_group_tests_name("name_states", tests, NULL, NULL);
}
