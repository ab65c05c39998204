/*
 * The pipe from one end to the other: events fired by macros arrive in a listener, with names,
 * types and values.
 */
#include "unit/test.h"

#include <spoor/spoor.h>

#include "lib/event/thread_ring.h"
#include "lib/platform/platform.h"

SPOOR_PROVIDER(shop, "Shop")
SPOOR_EVENT(shop, tick, 1, SPOOR_INFO, 0)
SPOOR_EVENT(shop, order, 2, SPOOR_INFO, 0x1, (u32, id), (u64, bytes), (f64, price), (text, name))

SPOOR_STRUCT(shop_place, (text, (host, "host name")))
SPOOR_EVENT(shop, failure, 3, SPOOR_INFO, 0, (i32, (error, "errno")),
	(object, (at, "where"), shop_place), (u8_array, (bytes, "default")))

static struct spoor_session *listen(void)
{
	struct spoor_want want = {
		.size = sizeof(want), .name = "Shop", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session = NULL;

	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	return session;
}

static void values_arrive(void **state)
{
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_value value;

	(void)state;
	struct spoor_session *session = listen();
	assert_true(shop_order_enabled());
	uint64_t before = spoor_now_ns();
	shop_tick();
	shop_order(7, 1234567890123, 2.5, "tea");
	uint64_t after = spoor_now_ns();
	assert_int_equal(spoor_listener_read(session, &view, 1000), 1);
	assert_string_equal(view.info->name, "tick");
	assert_int_equal(spoor_listener_read(session, &view, 1000), 1);
	assert_string_equal(view.info->provider, "Shop");
	assert_string_equal(view.info->name, "order");
	assert_true(view.time_ns + 2000 >= before && view.time_ns <= after + 2000);
	assert_int_equal(spoor_event_field(&view, "id", &value), 0);
	assert_int_equal(value.u64, 7);
	assert_int_equal(spoor_event_field(&view, "bytes", &value), 0);
	assert_int_equal(value.u64, 1234567890123);
	assert_int_equal(spoor_event_field(&view, "price", &value), 0);
	assert_true(value.f64 == 2.5);
	assert_int_equal(spoor_event_field(&view, "name", &value), 0);
	assert_string_equal(value.bytes, "tea");
	assert_int_equal(spoor_event_field(&view, "nothing", &value), -2);
	assert_int_equal(spoor_session_stop(session), 0);
	assert_false(shop_order_enabled());
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written, 2);
	assert_int_equal(counts.lost, 0);
	spoor_session_free(session);
}

/* A field may have a name in traces that no parameter can have. */
static void fields_have_titles(void **state)
{
	struct spoor_event_view view = { .size = sizeof(view) };
	struct shop_place place = { .host = "a.example" };
	struct spoor_value value;

	(void)state;
	struct spoor_session *session = listen();
	shop_failure(-5, &place, (const uint8_t *)"ab", 2);
	assert_int_equal(spoor_listener_read(session, &view, 60000), 1);
	assert_int_equal(view.info->field_count, 3);
	assert_int_equal(spoor_event_field(&view, "errno", &value), 0);
	assert_int_equal(value.i64, -5);
	assert_int_equal(spoor_event_field(&view, "where.host name", &value), 0);
	assert_string_equal(value.bytes, "a.example");
	assert_int_equal(spoor_event_field(&view, "default", &value), 0);
	assert_int_equal(value.count, 2);
	spoor_session_stop(session);
	spoor_session_free(session);
}

/* Where the system refuses membarrier(), every event takes the path on which a thread makes a fence. */
static void fences_replace_the_barrier(void **state)
{
	(void)state;
	struct spoor_session *session = listen();
	assert_int_equal(pipe_hot.fences, !platform_barrier_everywhere());
	if (pipe_hot.fences)
		assert_int_equal(pipe_hot.special, UINT64_MAX);
	spoor_session_stop(session);
	spoor_session_free(session);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL) || spoor_provider_register(&shop);
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
		cmocka_unit_test(values_arrive),
		cmocka_unit_test(fields_have_titles),
		cmocka_unit_test(fences_replace_the_barrier),
	};

	return cmocka_run_group_tests_name("pipe", tests, set_up, tear_down);
}
