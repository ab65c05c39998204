/* Requests by route: pairs by the request's id, ids in paths, percentiles, and a bound of the routes. */
#include "trace/provider_kind.h"
#include "trace/source_event.h"
#include "unit/answers_fixture.h"

#include <stdio.h>

static void pass(struct fixture *f, uint64_t at_ms, bool begins, const char *id, const char *path)
{
	struct bytes payload = { 0 };
	const struct schema schema = { .provider_kind = PROVIDER_OTHER,
		.provider = trace_add_text(&f->trace, PROVIDER_KESTREL_NAME),
		.name = trace_add_text(&f->trace, begins ? "RequestStart" : "RequestStop"),
		.event_id =
			begins ? SOURCE_ID_HOSTING_REQUEST_START : SOURCE_ID_HOSTING_REQUEST_STOP };

	fixture_utf16(&payload, "connection");
	fixture_utf16(&payload, id);
	fixture_utf16(&payload, "HTTP/1.1");
	fixture_utf16(&payload, path);
	fixture_utf16(&payload, "GET");
	fixture_event(f, at_ms, &schema, NULL, &payload);
}

static void test_routes(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_REQUESTS);
	pass(&f, 1, false, "0", "/early"); /* it began before the recording */
	pass(&f, 10, true, "a", "/orders/17/lines");
	f.thread = trace_thread(&f.trace, 4711, 4712);
	pass(&f, 20, true, "b", "/orders/42/lines");
	pass(&f, 30, false, "b", "/orders/42/lines");
	pass(&f, 40, true, "b", "/health"); /* the place is free again */
	pass(&f, 45, false, "b", "/health");
	pass(&f, 60, false, "a", "/orders/17/lines"); /* on another thread than its begin */
	pass(&f, 70, true, "c", "/health");
	fixture_finish(&f);
	const struct requests *requests = &f.answers.requests;
	assert_int_equal(requests->processes.count, 1);
	const struct requests_process *process = &requests->processes.items[0];
	assert_int_equal(process->count, 3);
	assert_int_equal(process->unfinished, 1);
	assert_int_equal(process->row_count, 2);
	const struct request_route *row = &requests->rows.items[process->row_at];
	assert_string_equal(strtab_get(&requests->routes, row->route), "GET /orders/*/lines");
	assert_int_equal(row->durations.count, 2);
	assert_int_equal(row->durations.total_ns, 60 * MS);
	assert_int_equal(row->durations.longest_ns, 50 * MS);
	assert_int_equal(row->durations.longest_at_ns, 10 * MS);
	assert_string_equal(strtab_get(&requests->routes, row[1].route), "GET /health");
	assert_int_equal(row[1].durations.count, 1);
	fixture_end(&f);
}

static void pass_hosting(struct fixture *f, uint64_t at_ms, bool begins, uint8_t activity,
	const char *path)
{
	const uint8_t ids[EVENT_ACTIVITY_SIZE] = { activity };
	struct bytes payload = { 0 };
	const struct schema schema = { .provider_kind = PROVIDER_OTHER,
		.provider = trace_add_text(&f->trace, PROVIDER_HOSTING_NAME),
		.name = trace_add_text(&f->trace, begins ? "RequestStart" : "RequestStop"),
		.event_id =
			begins ? SOURCE_ID_HOSTING_REQUEST_START : SOURCE_ID_HOSTING_REQUEST_STOP };

	if (begins) {
		fixture_utf16(&payload, "GET");
		fixture_utf16(&payload, path);
	}
	fixture_event(f, at_ms, &schema, activity ? ids : NULL, &payload);
}

/* Those of record --profile http are paired by their activity; a server with both counts once. */
static void test_hosting(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_REQUESTS);
	pass_hosting(&f, 1, false, 9, NULL); /* it began before the recording */
	pass_hosting(&f, 10, true, 1, "/alloc");
	pass_hosting(&f, 20, true, 2, "/orders/7");
	pass_hosting(&f, 25, true, 0, "/without");
	pass_hosting(&f, 30, false, 1, NULL);
	pass_hosting(&f, 90, false, 2, NULL);
	fixture_finish(&f);
	const struct requests *requests = &f.answers.requests;
	assert_int_equal(requests->processes.count, 1);
	assert_int_equal(requests->processes.items[0].count, 2);
	assert_int_equal(requests->processes.items[0].unfinished, 0);
	assert_string_equal(strtab_get(&requests->routes, requests->rows.items[0].route),
		"GET /orders/*");
	assert_int_equal(requests->rows.items[0].durations.total_ns, 70 * MS);
	assert_int_equal(requests->rows.items[1].durations.total_ns, 20 * MS);
	fixture_end(&f);

	fixture_begin(&f, ANSWER_REQUESTS);
	pass(&f, 10, true, "a", "/alloc");
	pass_hosting(&f, 11, true, 1, "/alloc");
	pass_hosting(&f, 19, false, 1, NULL);
	pass(&f, 20, false, "a", "/alloc");
	fixture_finish(&f);
	assert_int_equal(f.answers.requests.processes.items[0].count, 1);
	assert_int_equal(f.answers.requests.rows.items[0].durations.total_ns, 10 * MS);
	fixture_end(&f);
}

/* 1 to 100 ms. */
static void test_percentiles(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_REQUESTS);
	for (uint64_t i = 1; i <= 100; i++) {
		pass(&f, i, true, "a", "/");
		pass(&f, 2 * i, false, "a", "/");
	}
	fixture_finish(&f);
	const struct request_route *row = &f.answers.requests.rows.items[0];
	assert_int_equal(row->durations.count, 100);
	assert_true(durations_percentile(&row->durations, 0.5) > 48 * MS &&
		    durations_percentile(&row->durations, 0.5) < 52 * MS);
	assert_true(durations_percentile(&row->durations, 0.99) > 95 * MS &&
		    durations_percentile(&row->durations, 0.99) <= 100 * MS);
	assert_int_equal(row->durations.longest_ns, 100 * MS);
	fixture_end(&f);
}

static void test_bound(void **state)
{
	struct fixture f;
	char path[32];

	(void)state;
	fixture_begin(&f, ANSWER_REQUESTS);
	for (unsigned i = 0; i < REQUEST_ROUTES_MAX + 20; i++) {
		(void)snprintf(path, sizeof(path), "/%c%c%c", 'a' + i % 26, 'a' + i / 26 % 26,
			'a' + i / 676);
		pass(&f, i, true, "a", path);
		pass(&f, i, false, "a", path);
	}
	fixture_finish(&f);
	assert_int_equal(f.answers.requests.rows.count, REQUEST_ROUTES_MAX + 1);
	assert_int_equal(f.answers.requests.processes.items[0].count, REQUEST_ROUTES_MAX + 20);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_hosting),
		cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
