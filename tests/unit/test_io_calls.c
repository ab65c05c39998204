/* Sums of system calls: by thing and call, over several flushes, by time; things by time; foreign payloads. */
#include "unit/answers_fixture.h"

#include <errno.h>

#include "trace/spoor_payload.h"

static void pass(struct fixture *f, uint64_t at_ms, const struct payload_io_calls *sum)
{
	struct bytes payload = { 0 };

	payload_io_calls(&payload, sum);
	fixture_event(f, at_ms,
		&(struct schema){ .provider_kind = PROVIDER_SPOOR, .event_id = ID_SPOOR_IO_CALLS },
		NULL, &payload);
}

static const struct io_calls_row *row_at(const struct fixture *f, uint32_t i)
{
	const struct io_calls *calls = &f->answers.io_calls;

	assert_int_equal(calls->processes.count, 1);
	assert_true(i < calls->processes.items[0].row_count);
	return &calls->rows.items[calls->processes.items[0].row_at + i];
}

static const char *text_of(const struct fixture *f, uint32_t text)
{
	return strtab_get(&f->answers.io_calls.texts, text);
}

static const struct payload_io_calls file_write = { .call = "write",
	.thing = "file",
	.name = "/a",
	.descriptor = 3,
	.count = 10,
	.errors = 1,
	.last_error = ENOSPC,
	.bytes = 100,
	.small = 9,
	.time_ns = 50,
	.longest_ns = 20 };

static void test_sums(void **state)
{
	struct fixture f;
	struct payload_io_calls second = file_write;

	(void)state;
	second.descriptor = 4;
	second.last_error = 0;
	second.again = 1;
	second.longest_ns = 25;
	fixture_begin(&f, ANSWER_IO);
	pass(&f, 100, &file_write);
	pass(&f, 600, &second);
	pass(&f, 600,
		&(struct payload_io_calls){ .call = "fsync",
			.thing = "file",
			.name = "/a",
			.descriptor = -1,
			.count = 1,
			.time_ns = 10,
			.longest_ns = 10 });
	pass(&f, 600,
		&(struct payload_io_calls){ .call = "read",
			.thing = "pipe",
			.name = "pipe:[7]",
			.descriptor = 5,
			.count = 2,
			.bytes = 7,
			.time_ns = 1000,
			.longest_ns = 900 });
	fixture_finish(&f);
	/* the pipe took longest; of the file, the call that took longest */
	assert_string_equal(text_of(&f, row_at(&f, 0)->name), "pipe:[7]");
	assert_int_equal(row_at(&f, 0)->kind, IO_CALL_READS);
	assert_int_equal(row_at(&f, 0)->thing, IO_THING_PIPE);
	const struct io_calls_row *row = row_at(&f, 1);
	assert_string_equal(text_of(&f, row->call), "write");
	assert_int_equal(row->sum.count, 20);
	assert_int_equal(row->sum.errors, 2);
	assert_int_equal(row->sum.again, 1);
	assert_int_equal(row->sum.bytes, 200);
	assert_int_equal(row->sum.small, 18);
	assert_int_equal(row->sum.time_ns, 100);
	assert_int_equal(row->sum.longest_ns, 25);
	assert_int_equal(row->longest_at_ns, 600 * MS);
	assert_int_equal(row->last_error, ENOSPC);
	assert_int_equal(row->descriptor, -1);
	assert_string_equal(text_of(&f, row_at(&f, 2)->call), "fsync");
	assert_true(io_calls_is_same_thing(row, row_at(&f, 2)));
	assert_false(io_calls_is_same_thing(row, row_at(&f, 0)));
	const struct io_calls_process *process = &f.answers.io_calls.processes.items[0];
	assert_int_equal(process->row_count, 3);
	assert_int_equal(process->all.count, 23);
	assert_int_equal(process->by_kind[IO_CALL_WRITES].bytes, 200);
	assert_int_equal(process->by_kind[IO_CALL_READS].bytes, 7);
	assert_int_equal(process->by_kind[IO_CALL_SYNCS].count, 1);
	fixture_end(&f);
}

/* Descriptors without a name are separate rows; those with the same name are one. */
static void test_descriptors(void **state)
{
	struct fixture f;
	struct payload_io_calls sum = file_write;

	(void)state;
	fixture_begin(&f, ANSWER_IO);
	sum.name = "";
	pass(&f, 100, &sum);
	sum.descriptor = 4;
	pass(&f, 100, &sum);
	pass(&f, 100, &sum);
	sum.thing = "a later one";
	pass(&f, 100, &sum);
	fixture_finish(&f);
	assert_int_equal(f.answers.io_calls.processes.items[0].row_count, 3);
	assert_int_equal(row_at(&f, 0)->descriptor, 4);
	assert_int_equal(row_at(&f, 0)->sum.count, 20);
	fixture_end(&f);
}

static void test_selected_time(void **state)
{
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_IO);
	f.profile.filter.from_ns = 300 * MS;
	f.profile.filter.to_ns = 700 * MS;
	pass(&f, 100, &file_write);
	pass(&f, 500, &file_write);
	pass(&f, 900, &file_write);
	fixture_finish(&f);
	assert_int_equal(row_at(&f, 0)->sum.count, 10);
	fixture_end(&f);
}

static void test_foreign_payloads(void **state)
{
	struct bytes whole = { 0 };
	struct fixture f;

	(void)state;
	payload_io_calls(&whole, &file_write);
	fixture_begin(&f, ANSWER_IO);
	for (size_t size = 0; size < whole.len; size++) {
		struct bytes part = { 0 };
		bytes_add(&part, whole.data, size);
		fixture_event(&f, 100,
			&(struct schema){
				.provider_kind = PROVIDER_SPOOR, .event_id = ID_SPOOR_IO_CALLS },
			NULL, &part);
	}
	fixture_finish(&f);
	assert_int_equal(f.answers.io_calls.processes.count, 0);
	fixture_end(&f);
	bytes_done(&whole);
}

static void test_names(void **state)
{
	(void)state;
	for (unsigned i = IO_CALL_NONE + 1; i < IO_CALLS; i++)
		assert_int_not_equal(io_call_kind_of(io_call_name(i)), IO_CALL_OTHER);
	assert_int_equal(io_call_kind_of("a later one"), IO_CALL_OTHER);
	assert_string_equal(io_call_name(IO_CALLS), "");
	for (unsigned i = 0; i < IO_THINGS; i++)
		assert_int_equal(io_thing_of(io_thing_name(i)), i);
	assert_string_equal(io_thing_name(IO_THINGS), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_selected_time),
		cmocka_unit_test(test_foreign_payloads),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
