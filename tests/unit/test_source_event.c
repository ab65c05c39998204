/* Events of EventSources are found by provider, id and name, and others are none. */
#include "unit/test.h"

#include "trace/provider_kind.h"
#include "trace/source_event.h"

static void test_rows_are_found(void **state)
{
	(void)state;
#define SOURCE_EVENT(event, provider, event_id, name) \
	assert_int_equal(source_event_of(provider, event_id, name), SOURCE_##event);
#include "trace/source_events.def"
#undef SOURCE_EVENT
}

static void test_both_requests_have_the_same_ids(void **state)
{
	(void)state;
	assert_int_equal((int)SOURCE_ID_KESTREL_REQUEST_START,
		(int)SOURCE_ID_HOSTING_REQUEST_START);
	assert_int_equal((int)SOURCE_ID_KESTREL_REQUEST_STOP, (int)SOURCE_ID_HOSTING_REQUEST_STOP);
}

static void test_others_are_none(void **state)
{
	(void)state;
	assert_int_equal(source_event_of("Other", 3, "RequestStart"), SOURCE_OTHER);
	assert_int_equal(source_event_of(PROVIDER_HOSTING_NAME, 4, "RequestStart"), SOURCE_OTHER);
	assert_int_equal(source_event_of(PROVIDER_HOSTING_NAME, 3, "RequestStop"), SOURCE_OTHER);
	assert_int_equal(source_event_of(PROVIDER_HOSTING_NAME, 7, ""), SOURCE_OTHER);
	assert_int_equal(source_event_of(PROVIDER_SQL_CLIENT_NAME, 1, "Other"), SOURCE_OTHER);
	assert_int_equal(source_event_of("", 0, ""), SOURCE_OTHER);
}

/* By the name alone where ids differ between versions, and any other event of a listener's. */
static void test_names_alone(void **state)
{
	(void)state;
	assert_int_equal(source_event_of(PROVIDER_SQL_CLIENT_NAME, 9, "EndExecute"),
		SOURCE_SQL_CLIENT_END);
	assert_int_equal(source_event_of(PROVIDER_DIAGNOSTIC_SOURCE_NAME, 9, "Activity2Stop"),
		SOURCE_LISTENER);
	assert_int_equal(source_event_of(PROVIDER_HOSTING_NAME, 6, "ServerReady"),
		SOURCE_HOSTING_SERVER_READY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_found),
		cmocka_unit_test(test_both_requests_have_the_same_ids),
		cmocka_unit_test(test_others_are_none),
		cmocka_unit_test(test_names_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
