/* Activities: nesting, the W3C header in and out, what events carry. */
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spoor/activity.h>

#include "lib/event/activity.h"

SPOOR_PROVIDER(test, "Test-Activities")
SPOOR_EVENT(test, step, 1, SPOOR_INFO, 0x1, (u32, number))

struct seen {
	char name[32];
	uint8_t id[16];
	uint8_t related[16];
	bool has_id;
	char words[3][40]; /* of ActivityStart: trace, span, parent */
	uint32_t number;
};
static struct seen seen[64];
static unsigned seen_count;

static void text_of(const struct spoor_event_view *event, const char *field, char *to, size_t size)
{
	struct spoor_value value;

	if (spoor_event_field(event, field, &value) == 0)
		snprintf(to, size, "%s", (const char *)value.bytes);
}

static void see(const struct spoor_event_view *event, void *context)
{
	struct seen *to = &seen[seen_count];
	struct spoor_value value;

	(void)context;
	if (seen_count == 64)
		return;
	snprintf(to->name, sizeof(to->name), "%s", event->info->name);
	to->has_id = event->activity_id != NULL;
	if (event->activity_id)
		memcpy(to->id, event->activity_id, 16);
	if (event->related_activity_id)
		memcpy(to->related, event->related_activity_id, 16);
	text_of(event, "TraceId", to->words[0], sizeof(to->words[0]));
	text_of(event, "SpanId", to->words[1], sizeof(to->words[1]));
	text_of(event, "ParentSpanId", to->words[2], sizeof(to->words[2]));
	if (spoor_event_field(event, "number", &value) == 0)
		to->number = (uint32_t)value.u64;
	seen_count++;
}

static void test_traceparent(void **state)
{
	static const char good[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	static const char *const bad[] = {
		"",
		"00",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01",
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
		"                                                        ",
	};
	uint8_t trace[16], span[8], flags = 9;
	struct spoor_activity activity, child;
	char text[SPOOR_TRACEPARENT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *exact = strdup(bad[i]);
		assert_false(traceparent_read(exact, trace, span, &flags));
		free(exact);
	}
	assert_int_equal(flags, 9);
	assert_true(traceparent_read(good, trace, span, &flags));
	assert_true(trace[0] == 0x0a && trace[15] == 0x9c && span[0] == 0xb7 && span[7] == 0x31 &&
		    flags == 1);
	assert_true(traceparent_read("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more",
		trace, span, &flags));

	/* The outgoing header has the same trace id and another span id. */
	assert_int_equal(spoor_activity_start(&activity, "in", good), 0);
	spoor_activity_traceparent(&activity, text);
	assert_int_equal(strlen(text), 55);
	assert_memory_equal(text, good, 36);
	assert_memory_not_equal(text + 36, good + 36, 16);
	assert_string_equal(text + 52, "-01");
	assert_memory_equal(activity.parent_span_id, "\xb7\xad\x6b\x71\x69\x20\x33\x31", 8);
	assert_int_equal(spoor_activity_start(&child, "child", NULL), 0);
	assert_memory_equal(child.trace_id, activity.trace_id, 16);
	assert_memory_equal(child.parent_span_id, activity.span_id, 8);
	spoor_activity_stop(&child);
	/* A malformed header starts a child of the current activity and returns an error. */
	assert_int_equal(spoor_activity_start(&child, "child", "nonsense"), -EINVAL);
	assert_memory_equal(child.trace_id, activity.trace_id, 16);
	spoor_activity_stop(&child);
	spoor_activity_stop(&activity);
	assert_null(spoor_activity_current());
}

static struct spoor_activity outer, inner;

static void *elsewhere(void *argument)
{
	struct spoor_activity_scope scope;

	(void)argument;
	test_step(5); /* at nothing */
	spoor_activity_enter(&outer, &scope);
	assert_ptr_equal(spoor_activity_current(), &outer);
	test_step(6);
	spoor_activity_leave(&scope);
	assert_null(spoor_activity_current());
	test_step(7);
	return NULL;
}

static const struct seen *step(uint32_t number)
{
	for (unsigned i = 0; i < seen_count; i++)
		if (strcmp(seen[i].name, "step") == 0 && seen[i].number == number)
			return &seen[i];
	fail_msg("no step %u", number);
	return NULL;
}

static void hex(char *to, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sprintf(to + 2 * i, "%02x", bytes[i]);
}

static void test_carried(void **state)
{
	const struct spoor_want wants[] = { { .size = sizeof(wants[0]),
						    .name = "Test-Activities",
						    .keywords = UINT64_MAX,
						    .level = 5 },
		{ .size = sizeof(wants[0]),
			.name = "Spoor-Activity",
			.keywords = UINT64_MAX,
			.level = 5 } };
	const struct spoor_session_options options = {
		.size = sizeof(options), .wants = wants, .want_count = 2
	};
	struct spoor_session *session;
	pthread_t thread;
	char text[40];

	(void)state;
	assert_int_equal(spoor_session_start_callback(&options, see, NULL, &session), 0);
	test_step(1);
	spoor_activity_start(&outer, "outer", NULL);
	test_step(2);
	spoor_activity_start(&inner, "inner", NULL);
	test_step(3);
	spoor_activity_stop(&inner);
	test_step(4);
	assert_int_equal(pthread_create(&thread, NULL, elsewhere, NULL), 0);
	pthread_join(thread, NULL);
	spoor_activity_stop(&outer);
	test_step(8);
	assert_int_equal(spoor_session_stop(session), 0);
	spoor_session_free(session);

	assert_false(step(1)->has_id || step(5)->has_id || step(7)->has_id || step(8)->has_id);
	assert_memory_equal(step(2)->id, outer.id.bytes, 16);
	assert_memory_equal(step(3)->id, inner.id.bytes, 16);
	assert_memory_equal(step(4)->id, outer.id.bytes, 16);
	assert_memory_equal(step(6)->id, outer.id.bytes, 16);
	unsigned starts = 0, stops = 0;
	for (unsigned i = 0; i < seen_count; i++) {
		starts += strcmp(seen[i].name, "ActivityStart") == 0;
		stops += strcmp(seen[i].name, "ActivityStop") == 0;
		if (strcmp(seen[i].name, "ActivityStart") != 0 ||
			memcmp(seen[i].id, inner.id.bytes, 16) != 0)
			continue;
		assert_memory_equal(seen[i].related, outer.id.bytes, 16);
		hex(text, inner.trace_id, 16);
		assert_string_equal(seen[i].words[0], text);
		hex(text, inner.span_id, 8);
		assert_string_equal(seen[i].words[1], text);
		hex(text, outer.span_id, 8);
		assert_string_equal(seen[i].words[2], text);
	}
	assert_int_equal(starts, 2);
	assert_int_equal(stops, 2);
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, 8);
}

/* Ids differ between threads, and between parent and child of fork(). */
static void test_ids(void **state)
{
	static uint8_t ids[10000][8];
	struct spoor_activity activity;
	int fds[2], status;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		spoor_activity_start(&activity, "", NULL);
		memcpy(ids[i], activity.span_id, 8);
		spoor_activity_stop(&activity);
	}
	qsort(ids, 10000, 8, by_bytes);
	for (int i = 1; i < 10000; i++)
		assert_memory_not_equal(ids[i], ids[i - 1], 8);
	assert_int_equal(pipe(fds), 0);
	pid_t child = fork();
	spoor_activity_start(&activity, "", NULL);
	if (child == 0) {
		(void)!write(fds[1], activity.span_id, 8);
		_exit(0);
	}
	uint8_t other[8];
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(read(fds[0], other, 8), 8);
	assert_memory_not_equal(other, activity.span_id, 8);
	spoor_activity_stop(&activity);
	close(fds[0]), close(fds[1]);
}

static int begin(void **state)
{
	const struct spoor_options options = { .size = sizeof(options),
		.flags = SPOOR_START_NO_SERVER };

	(void)state;
	return spoor_start(&options) || spoor_provider_register(&test);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traceparent),
		cmocka_unit_test(test_carried),
		cmocka_unit_test(test_ids),
	};

	return cmocka_run_group_tests(tests, begin, NULL);
}
