/*
 * NULL is an empty value for every type of field that is a pointer: as a parameter of a fire
 * function, as a member of a struct, and with the functions that describe an event while it is
 * written.
 */
#include "unit/test.h"

#include <spoor/spoor.h>

SPOOR_PROVIDER(null, "Null")
SPOOR_STRUCT(null_inner, (text, text), (guid, guid))
SPOOR_STRUCT(null_all, (guid, guid), (pointer, pointer), (text, text), (text16, text16),
	(blob, blob), (i8_array, i8s), (u8_array, u8s), (i16_array, i16s), (u16_array, u16s),
	(i32_array, i32s), (u32_array, u32s), (i64_array, i64s), (u64_array, u64s),
	(f32_array, f32s), (f64_array, f64s), (text_array, texts), (object, inner, null_inner))
SPOOR_EVENT(null, guid, 1, SPOOR_INFO, 0, (u8, begin), (guid, it), (u8, end))
SPOOR_EVENT(null, pointer, 2, SPOOR_INFO, 0, (u8, begin), (pointer, it), (u8, end))
SPOOR_EVENT(null, text, 3, SPOOR_INFO, 0, (u8, begin), (text, it), (u8, end))
SPOOR_EVENT(null, text16, 4, SPOOR_INFO, 0, (u8, begin), (text16, it), (u8, end))
SPOOR_EVENT(null, blob, 5, SPOOR_INFO, 0, (u8, begin), (blob, it), (u8, end))
SPOOR_EVENT(null, numbers, 6, SPOOR_INFO, 0, (i8_array, a), (u8_array, b), (i16_array, c),
	(u16_array, d), (i32_array, e), (u32_array, f), (i64_array, g), (u64_array, h),
	(f32_array, i), (f64_array, j))
SPOOR_EVENT(null, texts, 7, SPOOR_INFO, 0, (u8, begin), (text_array, it), (u8, end))
SPOOR_EVENT(null, object, 8, SPOOR_INFO, 0, (u8, begin), (object, it, null_all), (u8, end))
SPOOR_EVENT(null, objects, 9, SPOOR_INFO, 0, (u8, begin), (object_array, it, null_all), (u8, end))

#define COUNT 3u /* what the caller says of arrays that do not exist */

static struct spoor_session *session;
static struct spoor_event_view view = { .size = sizeof(view) };

/* The next event has this payload: zeroes, between two bytes that are not. */
static void next_is(const char *name, size_t zeroes)
{
	static const uint8_t none[256];

	assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
	assert_string_equal(view.info->name, name);
	assert_int_equal(view.payload_size, zeroes + 2);
	const uint8_t *payload = view.payload;
	assert_int_equal(payload[0], 1);
	assert_memory_equal(payload + 1, none, zeroes);
	assert_int_equal(payload[1 + zeroes], 2);
}

static void one_value(void **state)
{
	(void)state;
	null_guid(1, NULL, 2);
	next_is("guid", 16);
	null_pointer(1, NULL, 2);
	next_is("pointer", 8);
	null_text(1, NULL, 2);
	next_is("text", 3);
	null_text16(1, NULL, 2);
	next_is("text16", 2);
}

static void arrays(void **state)
{
	static const char *const texts[] = { NULL, "x", NULL };
	struct spoor_value it;

	(void)state;
	null_blob(1, NULL, COUNT, 2);
	next_is("blob", 2);
	null_numbers(NULL, COUNT, NULL, COUNT, NULL, COUNT, NULL, COUNT, NULL, COUNT, NULL, COUNT,
		NULL, COUNT, NULL, COUNT, NULL, COUNT, NULL, COUNT);
	assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
	assert_int_equal(view.payload_size, 10 * 2);
	null_texts(1, NULL, COUNT, 2);
	next_is("texts", 2);
	null_objects(1, NULL, COUNT, 2);
	next_is("objects", 2);
	/* Texts of an array one by one. */
	null_texts(1, texts, COUNT, 2);
	assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
	assert_int_equal(spoor_event_field(&view, "it", &it), 0);
	assert_int_equal(it.count, COUNT);
	assert_int_equal(it.byte_count, 3 + 4 + 3);
}

/* guid, pointer, text, text16, eleven arrays, texts, inner text and guid */
#define OBJECT_ZEROES (16 + 8 + 3 + 2 + 11 * 2 + 2 + 3 + 16)

static void objects(void **state)
{
	const struct null_all empty = { .blob_count = COUNT,
		.i8s_count = COUNT,
		.u8s_count = COUNT,
		.i16s_count = COUNT,
		.u16s_count = COUNT,
		.i32s_count = COUNT,
		.u32s_count = COUNT,
		.i64s_count = COUNT,
		.u64s_count = COUNT,
		.f32s_count = COUNT,
		.f64s_count = COUNT,
		.texts_count = COUNT };
	struct spoor_value it;

	(void)state;
	null_object(1, NULL, 2);
	next_is("object", OBJECT_ZEROES);
	null_object(1, &empty, 2);
	next_is("object", OBJECT_ZEROES);
	null_objects(1, &empty, 1, 2);
	assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
	assert_int_equal(view.payload_size, 1 + 2 + OBJECT_ZEROES + 1);
	assert_int_equal(spoor_event_field(&view, "it", &it), 0);
	assert_int_equal(it.count, 1);
}

static void at_run_time(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Null");
	struct spoor_writer w;

	(void)state;
	assert_non_null(source);
	assert_true(spoor_source_begin(source, NULL, SPOOR_INFO, 0, &w));
	spoor_write_u8(&w, NULL, 1);
	spoor_write_guid(&w, "guid", NULL);
	spoor_write_pointer(&w, "pointer", NULL);
	spoor_write_text(&w, "text", NULL);
	spoor_write_text16(&w, "text16", NULL);
	spoor_write_blob(&w, "blob", NULL, COUNT);
	spoor_write_array(&w, "numbers", SPOOR_TYPE_U32, NULL, COUNT);
	spoor_write_text_array(&w, "texts", NULL, COUNT);
	spoor_write_struct_begin(&w, NULL);
	spoor_write_text(&w, NULL, NULL);
	spoor_write_struct_end(&w);
	spoor_write_u8(&w, "end", 2);
	assert_int_equal(spoor_source_end(&w), 0);
	next_is("", 16 + 8 + 3 + 2 + 2 + 2 + 2 + 3);
	spoor_source_free(source);
}

static int set_up(void **state)
{
	struct spoor_want want = {
		.size = sizeof(want), .name = "Null", .keywords = UINT64_MAX, .level = SPOOR_VERBOSE
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = &want, .want_count = 1
	};
	struct spoor_options start = { .size = sizeof(start), .flags = SPOOR_START_NO_SERVER };

	(void)state;
	return spoor_start(&start) || spoor_provider_register(&null) ||
	       spoor_session_start_listener(&options, &session);
}

static int tear_down(void **state)
{
	(void)state;
	spoor_session_free(session);
	spoor_stop();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_value),
		cmocka_unit_test(arrays),
		cmocka_unit_test(objects),
		cmocka_unit_test(at_run_time),
	};

	return cmocka_run_group_tests_name("null", tests, set_up, tear_down);
}
