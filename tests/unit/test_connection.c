/* connection.c: the legal transitions of a runtime's connection, and the reports about it. */
#include "unit/test.h"

#include "recording/connection.h"

#define LAST_STATE   CONNECTION_OVER
#define LAST_METHODS METHODS_REFUSED

static void test_states(void **state)
{
	static const unsigned legal[][2] = {
		{ CONNECTION_WAITING, CONNECTION_ASKING },
		{ CONNECTION_WAITING, CONNECTION_OVER },
		{ CONNECTION_ASKING, CONNECTION_NAMED },
		{ CONNECTION_ASKING, CONNECTION_WAITING },
		{ CONNECTION_ASKING, CONNECTION_OVER },
		{ CONNECTION_NAMED, CONNECTION_AGAIN },
		{ CONNECTION_NAMED, CONNECTION_WAITING },
		{ CONNECTION_NAMED, CONNECTION_OVER },
		{ CONNECTION_AGAIN, CONNECTION_NAMED },
		{ CONNECTION_AGAIN, CONNECTION_WAITING },
		{ CONNECTION_AGAIN, CONNECTION_OVER },
	};
	unsigned count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++)
		assert_true(connection_may_enter(legal[i][0], legal[i][1]));
	for (unsigned from = 0; from <= LAST_STATE; from++)
		for (unsigned to = 0; to <= LAST_STATE; to++)
			count += connection_may_enter(from, to);
	assert_int_equal(count, sizeof(legal) / sizeof(legal[0]));
}

/* A session for methods is requested once for a client, and each client begins anew. */
static void test_methods(void **state)
{
	static const unsigned legal[][2] = {
		{ METHODS_NONE, METHODS_ANNOUNCED },
		{ METHODS_NONE, METHODS_QUIET },
		{ METHODS_QUIET, METHODS_WANTED },
		{ METHODS_WANTED, METHODS_ASKED },
		{ METHODS_ASKED, METHODS_REPORTED },
		{ METHODS_ASKED, METHODS_REFUSED },
		{ METHODS_ANNOUNCED, METHODS_NONE },
		{ METHODS_QUIET, METHODS_NONE },
		{ METHODS_WANTED, METHODS_NONE },
		{ METHODS_ASKED, METHODS_NONE },
		{ METHODS_REPORTED, METHODS_NONE },
		{ METHODS_REFUSED, METHODS_NONE },
	};
	unsigned count = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(legal) / sizeof(legal[0]); i++)
		assert_true(connection_may_enter_methods(legal[i][0], legal[i][1]));
	for (unsigned from = 0; from <= LAST_METHODS; from++)
		for (unsigned to = 0; to <= LAST_METHODS; to++)
			count += connection_may_enter_methods(from, to);
	assert_int_equal(count, sizeof(legal) / sizeof(legal[0]));
}

static void count_report(void *context, const struct managed_outcome *outcome)
{
	unsigned *reachable = context;

	reachable[outcome->reachable]++;
}

/* Names that the runtime has sent are kept; those of a runtime that hung can still come. */
static void test_reports(void **state)
{
	unsigned reports[2] = { 0 };
	struct managed managed = { .report = count_report, .context = reports };
	struct connection connection = { .managed = &managed };

	(void)state;
	assert_int_equal(connection.report, REPORT_NONE);
	connection_report(&connection, false, "it hung", REASON_KIND_HUNG);
	assert_int_equal(connection.report, REPORT_UNREACHABLE);
	connection_report(&connection, true, "", REASON_KIND_NONE);
	assert_int_equal(connection.report, REPORT_NAMED);
	connection_report(&connection, false, "it ended", REASON_KIND_ENDED);
	assert_int_equal(connection.report, REPORT_NAMED);
	assert_int_equal(reports[false], 2);
	assert_int_equal(reports[true], 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_methods),
		cmocka_unit_test(test_reports),
	};

	return cmocka_run_group_tests_name("connection", tests, NULL, NULL);
}
