/*
 * Events made at run time: kinds, limits, structs; and fields taken out of payloads, good and bad
 * ones.
 */
#include "unit/test.h"

#include <errno.h>
#include <pthread.h>

#include <spoor/spoor.h>

static struct spoor_session *listen(const char *provider, uint32_t level)
{
	struct spoor_want want = {
		.size = sizeof(want), .name = provider, .keywords = 0x3, .level = level
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_session *session = NULL;

	assert_int_equal(spoor_session_start_listener(&options, &session), 0);
	return session;
}

static void kinds_by_what_they_say(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Source");
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_writer w;
	struct spoor_value value;
	uint16_t ids[4];

	(void)state;
	assert_non_null(source);
	assert_false(spoor_source_begin(source, "One", SPOOR_INFO, 0, &w));
	struct spoor_session *session = listen("source", SPOOR_INFO);
	/*
	 * The same event twice, one with another field, one with another level, and one that no
	 * session enables.
	 */
	for (int i = 0; i < 4; i++) {
		assert_true(spoor_source_begin(source, "One", i == 3 ? SPOOR_ERROR : SPOOR_INFO,
			0x1, &w));
		spoor_write_i32(&w, i == 2 ? "other" : "number", -i);
		assert_int_equal(spoor_source_end(&w), 0);
	}
	assert_false(spoor_source_begin(source, "One", SPOOR_VERBOSE, 0x1, &w));
	assert_false(spoor_source_begin(source, "One", SPOOR_INFO, 0x4, &w));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(spoor_listener_read(session, &view, 2000), 1);
		ids[i] = view.info->id;
		assert_int_equal(spoor_event_field(&view, i == 2 ? "other" : "number", &value), 0);
		assert_int_equal(value.i64, -i);
	}
	assert_int_equal(ids[0], ids[1]);
	assert_int_not_equal(ids[0], ids[2]);
	assert_int_not_equal(ids[0], ids[3]);
	assert_int_not_equal(ids[2], ids[3]);
	spoor_session_free(session);
	spoor_source_free(source);
}

static void structs_nest_and_are_found(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Source");
	struct spoor_event_view view = { .size = sizeof(view) };
	struct spoor_writer w;
	struct spoor_value value, inner;
	static const uint32_t numbers[] = { 5, 6, 7 };
	static const char *const texts[] = { "x", "yy" };

	(void)state;
	struct spoor_session *session = listen("Source", SPOOR_INFO);
	assert_true(spoor_source_begin(source, "Nested", SPOOR_INFO, 0, &w));
	spoor_write_struct_begin(&w, "outer");
	spoor_write_array(&w, "numbers", SPOOR_TYPE_U32, numbers, 3);
	spoor_write_struct_begin(&w, "inner");
	spoor_write_f64(&w, "value", 0.25);
	spoor_write_struct_end(&w);
	spoor_write_struct_end(&w);
	spoor_write_text_array(&w, "texts", texts, 2);
	assert_int_equal(spoor_source_end(&w), 0);
	assert_int_equal(spoor_listener_read(session, &view, 2000), 1);
	assert_int_equal(spoor_event_field(&view, "outer.inner.value", &value), 0);
	assert_true(value.f64 == 0.25);
	assert_int_equal(spoor_event_field(&view, "outer.inner.nothing", &value), -ENOENT);
	assert_int_equal(spoor_event_field(&view, "outer.numbers", &value), 0);
	assert_true(value.is_array);
	assert_int_equal(value.count, 3);
	size_t position = 0;
	size_t offset = 0;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(spoor_value_next(&value, &position, &offset, &inner), 1);
		assert_int_equal(inner.u64, numbers[i]);
	}
	assert_int_equal(spoor_value_next(&value, &position, &offset, &inner), 0);
	assert_int_equal(spoor_event_field(&view, "texts", &value), 0);
	position = offset = 0;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(spoor_value_next(&value, &position, &offset, &inner), 1);
		assert_string_equal(inner.bytes, texts[i]);
	}

	/*
	 * Any prefix of the payload either lacks a part of a field or ends between two fields: no
	 * byte after it is read.
	 */
	struct spoor_event_view cut = view;
	for (size_t size = 0; size < view.payload_size; size++) {
		uint8_t *bytes = malloc(size ? size : 1);
		memcpy(bytes, view.payload, size);
		cut.payload = bytes;
		cut.payload_size = size;
		position = 0;
		int r;
		while ((r = spoor_event_next_field(&cut, &position, &value)) == 1)
			;
		assert_int_equal(r, -EBADMSG);
		free(bytes);
	}
	spoor_session_free(session);
	spoor_source_free(source);
}

/* A cleanup path may cancel what was ended. Small payloads are in the writer, large ones are not. */
static void a_second_end_has_no_effect(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Source");
	struct spoor_session *session = listen("Source", SPOOR_INFO);
	struct spoor_session_counts counts = { .size = sizeof(counts) };
	static char text[20000];
	struct spoor_writer w;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	for (int large = 0; large < 2; large++) {
		for (int second = 0; second < 3; second++) {
			assert_true(spoor_source_begin(source, "Twice", SPOOR_INFO, 0, &w));
			spoor_write_text(&w, "text", large ? text : "short");
			if (second == 2)
				spoor_source_cancel(&w);
			else
				assert_int_equal(spoor_source_end(&w), 0);
			if (second == 1)
				spoor_source_cancel(&w);
			else
				assert_int_equal(spoor_source_end(&w), -EINVAL);
		}
	}
	spoor_session_stop(session);
	spoor_session_count(session, &counts);
	assert_int_equal(counts.written, 4);
	assert_int_equal(counts.lost, 0);
	spoor_session_free(session);
	spoor_source_free(source);
}

/* Without a size there is nowhere for the event, which would be gone. */
static void a_view_needs_its_size(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Source");
	struct spoor_session *session = listen("Source", SPOOR_INFO);
	struct spoor_event_view view = { .size = 0 };
	struct spoor_writer w;

	(void)state;
	assert_true(spoor_source_begin(source, "One", SPOOR_INFO, 0, &w));
	assert_int_equal(spoor_source_end(&w), 0);
	assert_int_equal(spoor_listener_read(session, &view, 2000), -EINVAL);
	view.size = sizeof(view);
	assert_int_equal(spoor_listener_read(session, &view, 20000), 1);
	spoor_session_stop(session);
	spoor_session_free(session);
	spoor_source_free(source);
}

static void what_is_too_much_is_refused(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Source");
	struct spoor_session *session = listen("Source", SPOOR_INFO);
	struct spoor_writer w;
	static char large[60000];

	(void)state;
	assert_true(spoor_source_begin(source, "Open", SPOOR_INFO, 0, &w));
	spoor_write_struct_begin(&w, "never ended");
	assert_int_equal(spoor_source_end(&w), -EINVAL);
	assert_true(spoor_source_begin(source, "Deep", SPOOR_INFO, 0, &w));
	for (int i = 0; i < 9; i++)
		spoor_write_struct_begin(&w, "deeper");
	for (int i = 0; i < 9; i++)
		spoor_write_struct_end(&w);
	assert_int_equal(spoor_source_end(&w), -EINVAL);
	assert_true(spoor_source_begin(source, "Many", SPOOR_INFO, 0, &w));
	for (int i = 0; i < 65; i++)
		spoor_write_u8(&w, "field", 1);
	assert_int_equal(spoor_source_end(&w), -EINVAL);
	assert_true(spoor_source_begin(source, "Large", SPOOR_INFO, 0, &w));
	spoor_write_blob(&w, "one", large, sizeof(large));
	assert_int_equal(spoor_source_end(&w), 0);
	assert_true(spoor_source_begin(source, "Large", SPOOR_INFO, 0, &w));
	spoor_write_blob(&w, "one", large, sizeof(large));
	spoor_write_blob(&w, "two", large, sizeof(large));
	assert_int_equal(spoor_source_end(&w), -EINVAL);
	/* A program that makes up names without end does not exhaust its memory. */
	int last = 0;
	for (int i = 0; i < 4200 && last == 0; i++) {
		char name[32];
		snprintf(name, sizeof(name), "made up %d", i);
		assert_true(spoor_source_begin(source, name, SPOOR_INFO, 0, &w));
		last = spoor_source_end(&w);
	}
	assert_int_equal(last, -ENOSPC);
	spoor_session_free(session);
	spoor_source_free(source);
	assert_null(spoor_source_new(""));
}

static void *write_many(void *source)
{
	struct spoor_writer w;

	for (uint32_t i = 0; i < 2000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "kind%u", i % 50);
		if (!spoor_source_begin(source, name, SPOOR_INFO, 0, &w))
			continue;
		spoor_write_u32(&w, "number", i);
		assert_int_equal(spoor_source_end(&w), 0);
	}
	return NULL;
}

/* Several threads make the same kinds at the same time: each kind is registered once. */
static void threads_share_kinds(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Source");
	struct spoor_session *session = listen("Source", SPOOR_INFO);
	struct spoor_event_view view = { .size = sizeof(view) };
	pthread_t threads[4];
	uint16_t ids[50] = { 0 };
	uint32_t seen = 0;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, source), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	spoor_session_stop(session);
	for (; spoor_listener_read(session, &view, 0) == 1; seen++) {
		unsigned kind = (unsigned)atoi(view.info->name + 4);
		if (!ids[kind])
			ids[kind] = view.info->id;
		assert_int_equal(ids[kind], view.info->id);
	}
	assert_int_equal(seen, 8000);
	spoor_session_free(session);
	spoor_source_free(source);
}

static int set_up(void **state)
{
	(void)state;
	return spoor_start(NULL);
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
		cmocka_unit_test(kinds_by_what_they_say),
		cmocka_unit_test(structs_nest_and_are_found),
		cmocka_unit_test(a_second_end_has_no_effect),
		cmocka_unit_test(a_view_needs_its_size),
		cmocka_unit_test(what_is_too_much_is_refused),
		cmocka_unit_test(threads_share_kinds),
	};

	return cmocka_run_group_tests_name("event_source", tests, set_up, tear_down);
}
