/* Calls over the network: pairs by activity, targets, failures, calls that have not ended, and their callers. */
#include "unit/answers_fixture.h"

#include <stdio.h>

enum { BEGINS = 1, ENDS = 2, FAILS = 3 };

static const char *const http = "System.Net.Http";
static const char *const names = "System.Net.NameResolution";
static const char *const security = "System.Net.Security";
static const char *const sockets = "System.Net.Sockets";

static void pass(struct fixture *f, uint64_t at_ms, const char *provider, uint16_t id,
	uint8_t activity, struct bytes *payload)
{
	const uint8_t ids[EVENT_ACTIVITY_SIZE] = { activity };
	struct bytes none = { 0 };
	const struct schema schema = { .provider_kind = PROVIDER_OTHER,
		.provider = trace_add_text(&f->trace, provider),
		.event_id = id };

	fixture_event(f, at_ms, &schema, activity ? ids : NULL, payload ? payload : &none);
}

static void request(struct fixture *f, uint64_t at_ms, uint8_t activity, const char *host)
{
	struct bytes payload = { 0 };

	fixture_utf16(&payload, "https");
	fixture_utf16(&payload, host);
	bytes_u32(&payload, 443);
	pass(f, at_ms, http, BEGINS, activity, &payload);
}

static void answer(struct fixture *f, uint64_t at_ms, uint8_t activity, uint32_t status)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, status);
	pass(f, at_ms, http, ENDS, activity, &payload);
}

static const struct call_row *row_at(const struct fixture *f, uint32_t i)
{
	const struct calls_process *process = &f->answers.calls.processes.items[0];

	assert_true(i < process->row_count);
	return &f->answers.calls.rows.items[process->row_at + i];
}

static const char *target(const struct fixture *f, const struct call_row *row)
{
	return strtab_get(&f->answers.calls.targets, row->target);
}

static void test_requests(void **state)
{
	struct fixture f;
	static const uint64_t frames[] = { JIT + 0x210 };

	(void)state;
	fixture_begin(&f, ANSWER_HTTP);
	fixture_stack(&f, frames, 1);
	answer(&f, 5, 9, 200); /* it began before the recording */
	request(&f, 10, 1, "shop");
	request(&f, 20, 2, "shop");
	request(&f, 30, 3, "bank");
	request(&f, 35, 0, "nobody"); /* without an activity it has no end */
	answer(&f, 60, 1, 200);
	answer(&f, 70, 2, 503);
	request(&f, 80, 1, "shop"); /* the activity's id may return */
	pass(&f, 90, http, FAILS, 1, NULL);
	answer(&f, 100, 1, UINT32_MAX);
	fixture_finish(&f);
	assert_int_equal(f.answers.calls.processes.count, 1);
	assert_int_equal(f.answers.calls.processes.items[0].count, 4);
	assert_int_equal(f.answers.calls.processes.items[0].row_count, 2);
	/* A call that has not ended lasts until the end of the recording. */
	assert_string_equal(target(&f, row_at(&f, 1)), "https://shop:443");
	assert_string_equal(target(&f, row_at(&f, 0)), "https://bank:443");
	assert_int_equal(row_at(&f, 0)->unfinished, 1);
	assert_true(row_at(&f, 0)->unfinished_ns >= 70 * MS);
	assert_int_equal(row_at(&f, 0)->durations.count, 0);
	assert_int_equal(row_at(&f, 1)->durations.count, 3);
	assert_int_equal(row_at(&f, 1)->durations.total_ns, 120 * MS);
	assert_int_equal(row_at(&f, 1)->durations.longest_ns, 50 * MS);
	assert_int_equal(row_at(&f, 1)->durations.longest_at_ns, 20 * MS);
	assert_int_equal(row_at(&f, 1)->failed, 2);
	const struct tally_row *most = &f.answers.calls.tally.rows.list.items[0];
	assert_string_equal(fixture_function(&f, most->key.place), "Shop.Program.Main()");
	fixture_end(&f);
}

/*
 * Requests of two flows, each of which makes another request first. The ends of the outer ones have no
 * activity, and there is one that is not of any.
 */
static void test_requests_inside_of_requests(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_HTTP);
	answer(&f, 5, 0, 200);
	request(&f, 10, 1, "shop");
	request(&f, 12, 1, "tokens");
	request(&f, 14, 2, "shop");
	request(&f, 16, 2, "tokens");
	answer(&f, 30, 1, 200);
	answer(&f, 40, 2, 200);
	answer(&f, 60, 0, 200);
	answer(&f, 80, 0, 503);
	answer(&f, 90, 0, 200);
	request(&f, 100, 1, "shop"); /* the activity's id may return */
	answer(&f, 110, 1, 200);
	fixture_finish(&f);
	assert_int_equal(f.answers.calls.processes.items[0].count, 5);
	assert_int_equal(f.answers.calls.processes.items[0].row_count, 2);
	assert_string_equal(target(&f, row_at(&f, 0)), "https://shop:443");
	assert_int_equal(row_at(&f, 0)->durations.count, 3);
	assert_int_equal(row_at(&f, 0)->durations.total_ns, (50 + 66 + 10) * MS);
	assert_int_equal(row_at(&f, 0)->failed, 1);
	assert_int_equal(row_at(&f, 0)->unfinished, 0);
	assert_int_equal(row_at(&f, 1)->durations.count, 2);
	assert_int_equal(row_at(&f, 1)->durations.total_ns, (18 + 24) * MS);
	assert_int_equal(row_at(&f, 1)->unfinished, 0);
	fixture_end(&f);
}

/* A lookup within a lookup has a different id; the end of the outer one has none. */
static void test_lookups_inside_of_lookups(void **state)
{
	struct bytes name = { 0 };
	struct fixture f;

	(void)state;
	fixture_utf16(&name, "");
	fixture_begin(&f, ANSWER_HTTP);
	for (uint8_t i = 0; i < 5; i++) {
		struct bytes copies[2] = { { 0 }, { 0 } };
		bytes_add(&copies[0], name.data, name.len);
		bytes_add(&copies[1], name.data, name.len);
		pass(&f, 10 + 100u * i, names, BEGINS, (uint8_t)(1 + 2 * i), &copies[0]);
		pass(&f, 20 + 100u * i, names, BEGINS, (uint8_t)(2 + 2 * i), &copies[1]);
		pass(&f, 40 + 100u * i, names, ENDS, (uint8_t)(2 + 2 * i), NULL);
		pass(&f, 50 + 100u * i, names, ENDS, 0, NULL);
	}
	pass(&f, 600, names, ENDS, 0, NULL); /* of none */
	fixture_finish(&f);
	bytes_done(&name);
	assert_int_equal(f.answers.calls.processes.items[0].row_count, 1);
	assert_string_equal(target(&f, row_at(&f, 0)), "(empty)");
	assert_int_equal(row_at(&f, 0)->durations.count, 10);
	assert_int_equal(row_at(&f, 0)->durations.total_ns, 5 * (20 + 40) * MS);
	assert_int_equal(row_at(&f, 0)->unfinished, 0);
	fixture_end(&f);
}

static void begin_named(struct fixture *f, const char *provider, uint8_t activity, const char *name)
{
	struct bytes payload = { 0 };

	fixture_utf16(&payload, name);
	pass(f, activity, provider, BEGINS, activity, &payload);
	pass(f, activity + 1u, provider, ENDS, activity, NULL);
}

static void shake_hands(struct fixture *f, uint8_t activity, bool is_server, const char *host)
{
	struct bytes payload = { 0 };

	bytes_u32(&payload, is_server);
	fixture_utf16(&payload, host);
	pass(f, activity, security, BEGINS, activity, &payload);
	pass(f, activity + 1u, security, ENDS, activity, NULL);
}

static void test_targets(void **state)
{
	static const struct {
		const char *address;
		const char *shown;
	} addresses[] = {
		{ "InterNetwork:16:{31,144,10,0,0,7,0,0,0,0,0,0,0,0}", "10.0.0.7:8080" },
		{ "InterNetworkV6:28:{31,144,0,0,0,0,0,0,0,0,0,0,0,0,0,0,255,255,127,0,0,1,0,0,0,0}",
			"127.0.0.1:8080" },
		{ "InterNetworkV6:28:{0,80,0,0,0,0,32,1,13,184,0,0,0,0,0,0,0,0,0,0,0,1,0,0,0,0}",
			"[2001:db8:0:0:0:0:0:1]:80" },
		{ "InterNetwork:16:{31,144,10,0", "InterNetwork:16:{31,144,10,0" },
		{ "InterNetwork:16:{31,300,1,2,3,4}", "InterNetwork:16:{31,300,1,2,3,4}" },
		{ "Unix:110:{47}", "Unix:110:{47}" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		fixture_begin(&f, ANSWER_HTTP);
		begin_named(&f, sockets, 1, addresses[i].address);
		fixture_finish(&f);
		assert_string_equal(target(&f, row_at(&f, 0)), addresses[i].shown);
		assert_int_equal(row_at(&f, 0)->kind, ACTIVITY_CONNECT);
		fixture_end(&f);
	}
	fixture_begin(&f, ANSWER_HTTP);
	begin_named(&f, names, 1, "shop.example");
	shake_hands(&f, 10, false, "shop.example");
	shake_hands(&f, 20, true, "");
	pass(&f, 30, names, BEGINS, 30, NULL); /* too short */
	fixture_finish(&f);
	assert_int_equal(f.answers.calls.processes.items[0].count, 3);
	assert_int_equal(row_at(&f, 0)->kind, ACTIVITY_DNS);
	assert_string_equal(target(&f, row_at(&f, 0)), "shop.example");
	assert_string_equal(target(&f, row_at(&f, 1)), "shop.example");
	assert_string_equal(target(&f, row_at(&f, 2)), CALL_AS_SERVER);
	fixture_end(&f);
}

/* A process that has sent many events was not observed after the last of them. */
static void test_observed(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_HTTP);
	uint32_t shop = f.trace.threads.items[f.thread].process;
	f.trace.processes.items[shop].runtime_sessions =
		trace_add_text(&f.trace, "live X\nactivities, 16 MB, with stacks");
	request(&f, 10, 200, "bank");
	for (unsigned i = 0; i < 600; i++) {
		request(&f, 20 + i / 10, 1, "shop");
		answer(&f, 20 + i / 10, 1, 200);
	}
	fixture_finish(&f);
	assert_string_equal(target(&f, row_at(&f, 0)), "https://bank:443");
	assert_int_equal(row_at(&f, 0)->unfinished_ns, 69 * MS);
	fixture_end(&f);
}

static void test_bound(void **state)
{
	struct fixture f;
	char host[16];

	(void)state;
	fixture_begin(&f, ANSWER_HTTP);
	for (unsigned i = 0; i < CALL_TARGETS_MAX + 20; i++) {
		(void)snprintf(host, sizeof(host), "host%u", i);
		begin_named(&f, names, 1, host);
	}
	fixture_finish(&f);
	assert_int_equal(f.answers.calls.rows.count, CALL_TARGETS_MAX + 1);
	assert_int_equal(f.answers.calls.processes.items[0].count, CALL_TARGETS_MAX + 20);
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_requests_inside_of_requests),
		cmocka_unit_test(test_lookups_inside_of_lookups),
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_observed),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
