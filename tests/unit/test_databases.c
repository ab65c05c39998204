/* Commands to databases: spans with tags, pairs of Entity Framework and of SqlClient, and what is none. */
#include "unit/answers_fixture.h"

#include <stdarg.h>

/* An event of the bridge, with keys and values up to a NULL. */
static void bridge(struct fixture *f, uint64_t at_ms, uint8_t activity, const char *schema_name,
	const char *name, ...)
{
	const uint8_t ids[EVENT_ACTIVITY_SIZE] = { activity };
	const struct schema schema = { .provider_kind = PROVIDER_OTHER,
		.provider = trace_add_text(&f->trace, "Microsoft-Diagnostics-DiagnosticSource"),
		.name = trace_add_text(&f->trace, schema_name),
		.event_id = 157 };
	struct bytes payload = { 0 };
	struct bytes pairs = { 0 };
	uint16_t count = 0;
	va_list args;

	va_start(args, name);
	for (const char *key; (key = va_arg(args, const char *)); count++) {
		fixture_utf16(&pairs, key);
		fixture_utf16(&pairs, va_arg(args, const char *));
	}
	va_end(args);
	fixture_utf16(&payload, "a source");
	fixture_utf16(&payload, name);
	bytes_u16(&payload, count);
	bytes_add(&payload, pairs.data, pairs.len);
	bytes_done(&pairs);
	fixture_event(f, at_ms, &schema, activity ? ids : NULL, &payload);
}

static const struct database_row *row_at(const struct fixture *f, uint32_t i)
{
	const struct databases *databases = &f->answers.databases;

	assert_int_equal(databases->processes.count, 1);
	assert_true(i < databases->processes.items[0].row_count);
	return &databases->rows.items[databases->processes.items[0].row_at + i];
}

static const char *text_of(const struct fixture *f, uint32_t text)
{
	return strtab_get(&f->answers.databases.texts, text);
}

static void test_spans(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_DATABASES);
	for (unsigned i = 0; i < 3; i++)
		bridge(&f, 100 + 100 * i, 1, "ActivityStop", "SELECT", "DisplayName", "SELECT x",
			"Status", i == 1 ? "Error" : "Unset", "Duration", "200000", "Tags",
			"[db.system.name, postgresql],[server.address, db.example],[server.port, 5432],"
			"[db.namespace, books],[db.query.text, SELECT [a], b\n  FROM c]",
			NULL);
	/* the names of earlier conventions, and no statement */
	bridge(&f, 500, 2, "ActivityStop", "GET", "Duration", "100000", "DisplayName", "GET key",
		"Tags", "[db.system, redis],[net.peer.name, cache]", NULL);
	/* no command: another span, one whose value names a tag, a begin, one without a duration */
	bridge(&f, 510, 3, "ActivityStop", "GET", "Duration", "100000", "Tags", "[http.url, x]",
		NULL);
	bridge(&f, 520, 3, "ActivityStop", "GET", "Duration", "1", "Tags", "[topic, db.system]",
		NULL);
	bridge(&f, 530, 3, "ActivityStart", "GET", "Duration", "1", "Tags", "[db.system, x]", NULL);
	bridge(&f, 540, 3, "ActivityStop", "GET", "Tags", "[db.system, x]", NULL);
	bridge(&f, 550, 3, "ActivityStop", "GET", "Duration", "1", "Tags", "[db.system", NULL);
	fixture_finish(&f);
	assert_int_equal(f.answers.databases.processes.items[0].count, 4);
	assert_int_equal(f.answers.databases.processes.items[0].row_count, 2);
	const struct database_row *row = row_at(&f, 0);
	assert_string_equal(text_of(&f, row->target), "db.example:5432/books (postgresql)");
	assert_string_equal(text_of(&f, row->statement), "SELECT [a], b FROM c");
	assert_int_equal(row->source, DATABASE_SPANS);
	assert_int_equal(row->durations.count, 3);
	assert_int_equal(row->failed, 1);
	assert_int_equal(row->durations.total_ns, 60 * MS);
	assert_int_equal(row->durations.longest_at_ns, 280 * MS);
	row = row_at(&f, 1);
	assert_string_equal(text_of(&f, row->target), "cache (redis)");
	assert_string_equal(text_of(&f, row->statement), "GET key");
	fixture_end(&f);
}

#define EF "Microsoft.EntityFrameworkCore.Database.Command."

static void test_pairs(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_DATABASES);
	bridge(&f, 5, 9, "Activity2Stop", EF "CommandExecuted", NULL); /* it began before */
	bridge(&f, 10, 1, "Activity2Start", EF "CommandExecuting", "CommandText", "SELECT 1",
		"Database", "main", "DataSource", "", NULL);
	bridge(&f, 20, 2, "Activity2Start", EF "CommandExecuting", "CommandText", "SELECT 1",
		"Database", "main", NULL);
	bridge(&f, 40, 1, "Activity2Stop", EF "CommandExecuted", NULL);
	bridge(&f, 50, 2, "Activity2Stop", EF "CommandError", NULL);
	bridge(&f, 60, 3, "Activity2Start", EF "CommandExecuting", "CommandText", "SELECT 1",
		"Database", "main", NULL);
	/* without ids of activities: by the thread */
	bridge(&f, 70, 0, "Activity1Start", "Microsoft.Data.SqlClient.WriteCommandBefore",
		"CommandText", "EXEC p", "DataSource", "stock", "Database", "Stock", NULL);
	bridge(&f, 90, 0, "Activity1Stop", "Microsoft.Data.SqlClient.WriteCommandAfter", NULL);
	fixture_finish(&f);
	assert_int_equal(f.answers.databases.processes.items[0].row_count, 2);
	const struct database_row *row = row_at(&f, 0);
	assert_int_equal(row->source, DATABASE_ENTITY_FRAMEWORK);
	assert_string_equal(text_of(&f, row->target), "main");
	assert_int_equal(row->durations.count, 2);
	assert_int_equal(row->durations.total_ns, 60 * MS);
	assert_int_equal(row->failed, 1);
	assert_int_equal(row->unfinished, 1);
	row = row_at(&f, 1);
	assert_int_equal(row->source, DATABASE_SQL_CLIENT);
	assert_string_equal(text_of(&f, row->target), "stock/Stock");
	assert_int_equal(row->durations.total_ns, 20 * MS);
	fixture_end(&f);
}

static void sql_client(struct fixture *f, uint64_t at_ms, bool begins, uint32_t object,
	uint32_t state)
{
	struct bytes payload = { 0 };
	const struct schema schema = { .provider_kind = PROVIDER_OTHER,
		.provider = trace_add_text(&f->trace, "Microsoft.Data.SqlClient.EventSource"),
		.name = trace_add_text(&f->trace, begins ? "BeginExecute" : "EndExecute"),
		.event_id = begins ? 1 : 2 };

	bytes_u32(&payload, object);
	if (begins) {
		fixture_utf16(&payload, "stock");
		fixture_utf16(&payload, "Stock");
		fixture_utf16(&payload, "SELECT 1");
	} else {
		bytes_u32(&payload, state);
		bytes_u32(&payload, 0);
	}
	fixture_event(f, at_ms, &schema, NULL, &payload);
}

static void test_sql_client(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_DATABASES);
	sql_client(&f, 10, true, 0, 0);
	sql_client(&f, 20, true, 1, 0);
	sql_client(&f, 30, false, 1, 3);
	sql_client(&f, 50, false, 0, 2);
	struct bytes payload = { 0 };
	bytes_u16(&payload, 1); /* too short */
	fixture_event(&f, 60,
		&(struct schema){ .provider_kind = PROVIDER_OTHER,
			.provider =
				trace_add_text(&f.trace, "Microsoft-Diagnostics-DiagnosticSource"),
			.name = trace_add_text(&f.trace, "ActivityStop") },
		NULL, &payload);
	fixture_finish(&f);
	const struct database_row *row = row_at(&f, 0);
	assert_int_equal(row->durations.count, 2);
	assert_int_equal(row->durations.total_ns, 50 * MS);
	assert_int_equal(row->failed, 1);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_sql_client),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
