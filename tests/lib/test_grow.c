/*
 * Structs that may grow: a program built with an older header passes a smaller one, one built with
 * a newer header a larger one. Both work, and no byte outside is accessed.
 */
#include "unit/test.h"

#include <errno.h>
#include <string.h>

#include <spoor/code.h>
#include <spoor/counter.h>
#include <spoor/spoor.h>

SPOOR_PROVIDER(grown, "Grown")
SPOOR_EVENT(grown, one, 1, SPOOR_INFO, 0x1, (u32, value))
SPOOR_EVENT(grown, two, 2, SPOOR_INFO, 0x1, (u32, value))

/* The bytes after an older header's struct may have any value. */
#define ANYTHING 0xa5

static unsigned drain(struct spoor_session *session, uint16_t id)
{
	struct spoor_event_view view = { .size = sizeof(view) };
	unsigned count = 0;

	while (spoor_listener_read(session, &view, 2000) == 1)
		count += view.info->id == id;
	return count;
}

static int start(void **state)
{
	struct spoor_options options;

	(void)state;
	memset(&options, ANYTHING, sizeof(options));
	options.size = offsetof(struct spoor_options, clock);
	options.flags = SPOOR_START_NO_SERVER;
	return spoor_start(&options) || spoor_provider_register(&grown);
}

static int stop(void **state)
{
	(void)state;
	spoor_stop();
	spoor_provider_unregister(&grown);
	return 0;
}

static void older_is_understood(void **state)
{
	struct spoor_want want;
	struct spoor_session_options options;
	struct spoor_session *session = NULL;

	(void)state;
	memset(&want, ANYTHING, sizeof(want));
	want.size = offsetof(struct spoor_want, arguments);
	want.name = "Grown";
	want.keywords = UINT64_MAX;
	want.level = SPOOR_VERBOSE;
	memset(&options, ANYTHING, sizeof(options));
	options.size = offsetof(struct spoor_session_options, policy);
	options.wants = &want;
	options.want_count = 1;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	grown_one(1);
	assert_int_equal(spoor_session_stop(session), 0);
	assert_int_equal(drain(session, 1), 1);

	/* The members that the caller has are set, and no byte after them. */
	struct spoor_session_counts counts;
	memset(&counts, ANYTHING, sizeof(counts));
	counts.size = offsetof(struct spoor_session_counts, lost);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written, 1);
	assert_int_equal(counts.lost, UINT64_C(0xa5a5a5a5a5a5a5a5));
	spoor_session_free(session);
}

static void newer_is_understood(void **state)
{
	struct {
		struct spoor_want known;
		uint64_t later[4];
	} wants[2] = { { .later = { 1, 2, 3, 4 } }, { .later = { 5, 6, 7, 8 } } };
	struct {
		struct spoor_session_options known;
		uint64_t later[4];
	} options = { .later = { 1 } };
	static const uint32_t none[] = { 99 };
	struct spoor_session *session = NULL;

	(void)state;
	/*
	 * A list of structs is read with the size that each struct has: the second element counts.
	 */
	wants[0].known = (struct spoor_want){ .size = sizeof(wants[0]),
		.name = "Nobody",
		.level = SPOOR_VERBOSE,
		.ids = none,
		.id_count = 1 };
	wants[1].known = (struct spoor_want){ .size = sizeof(wants[1]),
		.name = "Grown",
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	options.known = (struct spoor_session_options){
		.size = sizeof(options), .wants = &wants[0].known, .want_count = 2
	};
	assert_int_equal(spoor_session_start_listener(&options.known, &session), 0);
	grown_two(1);
	assert_int_equal(spoor_session_stop(session), 0);

	struct {
		struct spoor_event_view known;
		uint64_t later[4];
	} view;
	memset(&view, ANYTHING, sizeof(view));
	view.known.size = sizeof(view);
	assert_int_equal(spoor_listener_read(session, &view.known, 2000), 1);
	assert_int_equal(view.known.info->id, 2);
	assert_true(view.known.size <= sizeof(view.known)); /* as much of it was filled */
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(view.later[i], UINT64_C(0xa5a5a5a5a5a5a5a5));
	spoor_session_free(session);
}

static void older_views_are_not_overrun(void **state)
{
	struct spoor_want want = { .size = sizeof(want),
		.name = "Grown",
		.keywords = UINT64_MAX,
		.level = SPOOR_VERBOSE };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session = NULL;
	struct spoor_event_view view;

	(void)state;
	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	grown_one(7);
	assert_int_equal(spoor_session_stop(session), 0);
	memset(&view, ANYTHING, sizeof(view));
	view.size = offsetof(struct spoor_event_view, lost_before);
	assert_int_equal(spoor_listener_read(session, &view, 2000), 1);
	assert_int_equal(view.info->id, 1);
	assert_int_equal(view.lost_before, UINT64_C(0xa5a5a5a5a5a5a5a5));
	spoor_session_free(session);
}

static void counters_and_code_grow_too(void **state)
{
	struct spoor_counter_options counter;
	struct spoor_code_options code;
	static const char bytes[64];

	(void)state;
	memset(&counter, ANYTHING, sizeof(counter));
	counter.size = offsetof(struct spoor_counter_options, description);
	counter.unit = "ms";
	struct spoor_meter *meter = spoor_meter_open("Grown", NULL);
	errno = 0;
	struct spoor_counter *opened = spoor_counter_open(meter, SPOOR_GAUGE, "grown", &counter);
	assert_int_equal(errno, 0);
	spoor_gauge_set(opened, 1);
	spoor_counter_close(opened);
	spoor_meter_close(meter);

	memset(&code, ANYTHING, sizeof(code));
	code.size = offsetof(struct spoor_code_options, signature);
	code.module = "rules";
	assert_int_equal(spoor_code_add(bytes, sizeof(bytes), "rule", &code), 0);
	assert_int_equal(spoor_code_remove(bytes), 0);
}

static void nonsense_is_refused(void **state)
{
	struct spoor_want want = { .size = 3, .name = "Grown", .level = SPOOR_VERBOSE };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session = NULL;

	(void)state;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	want.size = sizeof(want);
	options.size = 3;
	assert_int_equal(spoor_session_start_listener(&options, &session), -EINVAL);
	assert_null(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(older_is_understood, start, stop),
		cmocka_unit_test_setup_teardown(newer_is_understood, start, stop),
		cmocka_unit_test_setup_teardown(older_views_are_not_overrun, start, stop),
		cmocka_unit_test_setup_teardown(counters_and_code_grow_too, start, stop),
		cmocka_unit_test_setup_teardown(nonsense_is_refused, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
