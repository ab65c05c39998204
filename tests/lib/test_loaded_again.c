/*
 * A plug-in that is loaded again with another definition of an event, in one session: its id and
 * version are the same. Readers of files know an event by these, so there the second one has a version of
 * its own. Callbacks get the version that was declared.
 */
#include "lib/read_back.h"

#include <spoor/spoor.h>

static const struct spoor_field number_field[] = { { "value", SPOOR_TYPE_U32, 0, NULL } };
static const struct spoor_field text_field[] = { { "value", SPOOR_TYPE_TEXT, 0, NULL } };

/* A version of the plug-in, whose provider exists while it is loaded. */
static void load_and_fire(const struct spoor_field *field, uint8_t version, const void *payload,
	size_t size)
{
	struct spoor_provider provider = { .size = sizeof(provider), .name = "Again" };
	struct spoor_event event = { .size = sizeof(event),
		.provider = &provider,
		.name = "work",
		.fields = field,
		.field_count = 1,
		.id = 1,
		.version = version };
	struct spoor_event *list[] = { &event };

	provider.events = list;
	provider.events_end = list + 1;
	assert_int_equal(spoor_provider_register(&provider), 0);
	spoor_fire(&event, payload, size);
	spoor_provider_unregister(&provider);
}

static void fire_both(void)
{
	static const char text[] = "\5\0seven"; /* its length, and a zero byte */
	uint32_t number = 7;

	load_and_fire(number_field, 0, &number, sizeof(number));
	load_and_fire(text_field, 0, text, sizeof(text));
	load_and_fire(number_field, 0, &number, sizeof(number));
	/* Declared with the version that the second one has got. */
	load_and_fire(number_field, 1, &number, sizeof(number));
}

static void definitions_have_versions_of_their_own(void **state)
{
	static const uint32_t versions[] = { 0, 1, 0, 2 };
	static const uint32_t sizes[] = { 4, 12, 4, 4 };
	struct spoor_want want = { .size = sizeof(want), .name = "Again", .level = SPOOR_VERBOSE };
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_file_options to = { .size = sizeof(to), .path = test_path("again.nettrace") };
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_session *file = NULL, *listener = NULL;
	struct read_file read;
	size_t count = 0;

	(void)state;
	assert_int_equal(spoor_session_start_file(&options, &to, &file), 0);
	assert_int_equal(spoor_session_start_listener(&options, &listener), 0);
	fire_both();
	assert_int_equal(spoor_session_stop(file), 0);
	assert_int_equal(spoor_session_stop(listener), 0);
	read_back(to.path, &read);
	assert_int_equal(read.result, 0);
	for (size_t i = 0; i < read.count; i++) {
		if (strcmp(read.events[i].provider, "Again") != 0)
			continue;
		assert_true(count < 4);
		assert_int_equal(read.events[i].id, 1);
		assert_int_equal(read.events[i].version, versions[count]);
		/* A text is UTF-16 with a zero there. */
		assert_int_equal(read.events[i].payload_size, sizes[count]);
		count++;
	}
	assert_int_equal(count, 4);
	for (count = 0; spoor_listener_read(listener, &view, 1000) == 1; count++)
		assert_int_equal(view.info->version, count == 3);
	assert_int_equal(count, 4);
	read_free(&read);
	spoor_session_free(file);
	spoor_session_free(listener);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(definitions_have_versions_of_their_own),
	};

	return cmocka_run_group_tests_name("loaded again", tests, set_up, test_paths_tear_down);
}
