/* Exceptions by type, message and stack: exact totals, bounded messages, filters; and what analyses share. */
#include "unit/answers_fixture.h"

#include <stdio.h>

#include "report/answer_report.h"
#include "trace/event_count.h"
#include "trace/report.h"
#include "trace/spoor_payload.h"

static void throw_at(struct fixture *f, uint64_t at_ms, const char *type, const char *message)
{
	struct bytes payload = { 0 };

	fixture_utf16(&payload, type);
	fixture_utf16(&payload, message);
	bytes_u64(&payload, JIT);
	bytes_u32(&payload, 0x80131509);
	bytes_u16(&payload, 1);
	bytes_u16(&payload, 9);
	fixture_pass(f, at_ms, CLR_ID_ExceptionThrown, 1, &payload);
}

static const struct tally_row *row_of(const struct fixture *f, uint32_t i)
{
	assert_true(i < f->answers.exceptions.tally.rows.list.count);
	return &f->answers.exceptions.tally.rows.list.items[i];
}

static const char *type_of(const struct fixture *f, const struct tally_row *row)
{
	return event_texts_get(&f->answers.exceptions.types, row->key.text);
}

static void test_rows(void **state)
{
	/* Thrown by the framework, for Main. */
	static const uint64_t parsed[] = { IMAGE + 8, JIT + 0x208, LIBC + 8 };
	static const uint64_t own[] = { JIT + 0x208, LIBC + 8 };
	struct fixture f;

	(void)state;
	fixture_begin(&f, ANSWER_EXCEPTIONS);
	fixture_stack(&f, parsed, 3);
	throw_at(&f, 10, "FormatException", "not a number");
	throw_at(&f, 20, "FormatException", "not a number");
	throw_at(&f, 30, "FormatException", "not a date");
	fixture_stack(&f, own, 2);
	throw_at(&f, 40, "FormatException", "not a date");
	f.stack = 0;
	throw_at(&f, 500, "KeyNotFoundException", "");
	fixture_finish(&f);

	const struct tally *tally = &f.answers.exceptions.tally;
	assert_int_equal(tally->processes.count, 1);
	const struct tally_process *process = &tally->processes.items[0];
	assert_int_equal(process->count, 5);
	assert_int_equal(process->row_count, 4);
	assert_int_equal(f.answers.span_ns, 1000 * MS);

	const struct tally_row *most = row_of(&f, 0);
	assert_int_equal(most->count, 2);
	assert_int_equal(most->first_ns, 10 * MS);
	assert_int_equal(most->last_ns, 20 * MS);
	assert_string_equal(type_of(&f, most), "FormatException");
	assert_string_equal(event_texts_get(&f.answers.exceptions.messages, most->key.detail),
		"not a number");
	const struct event_stack *stack = &f.answers.stacks.items.items[most->key.stack];
	assert_int_equal(stack->frame_count, 3);
	assert_non_null(strstr(fixture_function(&f, stack->leaf), "Serialize"));
	assert_non_null(strstr(fixture_function(&f, most->key.place), "Main"));
	assert_int_equal(row_of(&f, 3)->key.place, 0);

	/* Both stacks have the same own method, so two places are left. */
	struct tally_rows groups;
	assert_int_equal(tally_group(tally, process, TALLY_TEXT | TALLY_PLACE, &groups), 0);
	assert_int_equal(groups.list.count, 2);
	assert_int_equal(groups.list.items[0].count, 4);
	assert_int_equal(groups.list.items[0].first_ns, 10 * MS);
	assert_int_equal(groups.list.items[0].last_ns, 40 * MS);
	tally_rows_done(&groups);
	assert_int_equal(tally_group(tally, process, TALLY_DETAIL, &groups), 0);
	assert_int_equal(groups.list.count, 3);
	tally_rows_done(&groups);
	fixture_end(&f);
}

/* A storm of messages takes bounded memory, and the total remains exact. */
static void test_messages(void **state)
{
	const uint32_t count = EXCEPTIONS_MESSAGES_MAX + 500;
	struct fixture f;
	uint64_t sum = 0;

	(void)state;
	fixture_begin(&f, ANSWER_EXCEPTIONS);
	for (uint32_t i = 0; i < count; i++) {
		char text[32];
		(void)snprintf(text, sizeof(text), "message %u", i);
		throw_at(&f, i % 900, "Storm", text);
	}
	fixture_finish(&f);
	const struct tally *tally = &f.answers.exceptions.tally;
	assert_int_equal(tally->rows.list.count, EXCEPTIONS_MESSAGES_MAX + 1);
	assert_int_equal(tally->processes.items[0].count, count);
	for (uint32_t i = 0; i < TIMELINE_PLACES; i++)
		sum += tally->processes.items[0].line.amounts[i];
	assert_int_equal(sum, count);
	assert_int_equal(row_of(&f, 0)->count, 500);
	assert_int_equal(row_of(&f, 0)->key.detail, 0);
	assert_true(f.answers.exceptions.messages.overflows);
	fixture_end(&f);
}

/* As a recorder writes it at a flush: exceptions between two times that are not in the file. */
static void count_of(struct fixture *f, const char *type, const char *source, uint64_t at_ms,
	uint64_t first_ms, uint64_t last_ms, uint64_t count)
{
	struct bytes payload = { 0 };

	payload_event_count(&payload, &(struct payload_event_count){ .type = type,
					      .source = source,
					      .provider = PROVIDER_CLR_NAME,
					      .event_id = CLR_ID_ExceptionThrown,
					      .count = count,
					      .first_ns = BEGIN_NS + first_ms * MS,
					      .last_ns = BEGIN_NS + last_ms * MS });
	vec_last(&f->trace.schemas)->provider = trace_add_text(&f->trace, PROVIDER_CLR_NAME);
	fixture_event(f, at_ms,
		&(struct schema){
			.provider_kind = PROVIDER_SPOOR, .event_id = ID_SPOOR_EVENT_COUNT },
		NULL, &payload);
}

static void count_at(struct fixture *f, uint64_t at_ms, uint64_t first_ms, uint64_t last_ms,
	uint64_t count)
{
	count_of(f, "Storm", "", at_ms, first_ms, last_ms, count);
}

/* Those that were not observed are in the total, and the report says whose number that is. */
static void test_unseen(void **state)
{
	struct fixture f;
	struct report report = { 0 };
	struct bytes out = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_EXCEPTIONS);
	throw_at(&f, 100, "Storm", "broken pipe");
	count_at(&f, 900, 200, 300, 20);
	count_of(&f, "", EVENT_COUNT_COUNTER, 900, 200, 600, 4000);
	count_of(&f, "", EVENT_COUNT_ESTIMATE, 900, 600, 700, 300);
	fixture_finish(&f);
	const struct exceptions *exceptions = &f.answers.exceptions;
	const struct tally_process *process = &exceptions->tally.processes.items[0];
	assert_int_equal(process->count, 4321);
	assert_int_equal(exceptions_of_kind(exceptions, process, EXCEPTION_WRITTEN), 1);
	assert_int_equal(exceptions_of_kind(exceptions, process, EXCEPTION_ONLY_COUNTED), 20);
	assert_int_equal(exceptions_of_kind(exceptions, process, EXCEPTION_UNSEEN), 4000);
	assert_int_equal(exceptions_of_kind(exceptions, process, EXCEPTION_ESTIMATED), 300);
	report.trace = &f.trace;
	report.names = &f.names;
	assert_int_equal(answer_report_text(ANSWER_EXCEPTIONS, &f.answers, &report, 0, &out), 0);
	assert_non_null(strstr(bytes_z(&out), "  not observed 4,000 of them, "));
	assert_non_null(strstr(bytes_z(&out), "  estimated 300 of them, "));
	assert_non_null(strstr(bytes_z(&out), " 4,300   99.5 %  (type not known)\n"));
	bytes_done(&out);
	fixture_end(&f);
}

/* Those that were only counted lie where they occurred, not where the count was written. */
static void test_counted(void **state)
{
	struct fixture f;
	struct report report = { 0 };
	struct bytes out = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_EXCEPTIONS);
	throw_at(&f, 100, "Storm", "broken pipe");
	throw_at(&f, 150, "Storm", "broken pipe");
	count_at(&f, 900, 200, 600, 4000);
	fixture_finish(&f);
	const struct exceptions *exceptions = &f.answers.exceptions;
	const struct tally_process *process = &exceptions->tally.processes.items[0];
	assert_int_equal(process->count, 4002);
	assert_int_equal(exceptions_of_kind(exceptions, process, EXCEPTION_ONLY_COUNTED), 4000);
	uint64_t width_ms = timeline_width_ns(&process->line) / MS;
	assert_in_range(process->line.amounts[timeline_peak(&process->line)], width_ms * 10 - 1,
		width_ms * 10 + 2);
	assert_int_equal(row_of(&f, 0)->count, 4000);
	assert_int_equal(row_of(&f, 0)->first_ns, 200 * MS);
	assert_int_equal(row_of(&f, 0)->last_ns, 600 * MS);
	report.trace = &f.trace;
	report.names = &f.names;
	assert_int_equal(answer_report_text(ANSWER_EXCEPTIONS, &f.answers, &report, 0, &out), 0);
	assert_non_null(strstr(bytes_z(&out), "  only counted 4,000 of them, above the rate of "));
	assert_non_null(strstr(bytes_z(&out), "  Storm\n                      broken pipe\n"));
	bytes_done(&out);
	fixture_end(&f);

	/* Damaged times. */
	fixture_begin(&f, ANSWER_EXCEPTIONS);
	throw_at(&f, 100, "Storm", "");
	count_at(&f, 900, 5000, 4000, 10);
	fixture_finish(&f);
	assert_int_equal(row_of(&f, 0)->first_ns, 900 * MS);
	assert_int_equal(f.answers.span_ns, 1000 * MS);
	fixture_end(&f);
}

static void test_filter(void **state)
{
	struct fixture f;
	struct bytes cut = { 0 };

	(void)state;
	fixture_begin(&f, ANSWER_EXCEPTIONS);
	f.profile.filter.from_ns = 20 * MS;
	f.profile.filter.to_ns = 40 * MS;
	for (uint64_t at_ms = 10; at_ms <= 50; at_ms += 10)
		throw_at(&f, at_ms, "E", "m");
	bytes_u16(&cut, 'E'); /* no NUL */
	fixture_pass(&f, 30, CLR_ID_ExceptionThrown, 1, &cut);
	fixture_finish(&f);
	assert_int_equal(f.answers.exceptions.tally.processes.items[0].count, 2);
	assert_int_equal(f.answers.span_ns, 20 * MS);
	fixture_end(&f);

	fixture_begin(&f, ANSWER_EXCEPTIONS);
	assert_true(vec_add(&f.profile.filter.tids, 4712));
	throw_at(&f, 1, "E", "m");
	f.thread = trace_thread(&f.trace, 4711, 4712);
	throw_at(&f, 2, "F", "m");
	fixture_finish(&f);
	assert_int_equal(f.answers.exceptions.tally.rows.list.count, 1);
	assert_string_equal(type_of(&f, row_of(&f, 0)), "F");
	fixture_end(&f);

	fixture_begin(&f, ANSWER_EXCEPTIONS);
	assert_true(vec_add(&f.profile.filter.pids, 4802));
	throw_at(&f, 1, "E", "m");
	fixture_finish(&f);
	assert_int_equal(f.answers.exceptions.tally.processes.count, 0);
	fixture_end(&f);

	/* Of a module: only stacks with a frame in it. */
	fixture_begin(&f, ANSWER_EXCEPTIONS);
	assert_true(vec_add(&f.profile.filter.modules, "Shop"));
	throw_at(&f, 1, "E", "m");
	fixture_stack(&f, (const uint64_t[]){ JIT + 0x208 }, 1);
	throw_at(&f, 2, "F", "m");
	fixture_stack(&f, (const uint64_t[]){ LIBC + 8 }, 1);
	throw_at(&f, 3, "G", "m");
	fixture_finish(&f);
	assert_int_equal(f.answers.exceptions.tally.rows.list.count, 1);
	assert_string_equal(type_of(&f, row_of(&f, 0)), "F");
	fixture_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_counted),
		cmocka_unit_test(test_unseen),
		cmocka_unit_test(test_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
