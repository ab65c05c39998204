/*
 * NULL is an empty value for every type of field that is a pointer: as a parameter of a fire
 * function, as a member of a struct, and with the functions that describe an event while it is
 * written. Objects that are NULL are refused, or have no effect.
 */
#include "unit/test.h"

#include <errno.h>

#include <spoor/activity.h>
#include <spoor/counter.h>
#include <spoor/sink.h>
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

/* NULL in place of an object, a view or a result: -EINVAL, or no effect. */
static void sessions(void **state)
{
	struct spoor_session_counts counts = { .size = sizeof(counts), .written = 7, .lost = 7 };
	struct spoor_value value, part;
	struct spoor_event_view none = { .size = sizeof(none) };
	struct spoor_session_options options = { .size = sizeof(options) };
	struct spoor_file_options file = { .size = sizeof(file), .path = "/nonexistent" };
	size_t position = 0, offset = 0;

	(void)state;
	assert_int_equal(spoor_session_start_file(NULL, &file, &session), -EINVAL);
	assert_int_equal(spoor_session_start_file(&options, NULL, &session), -EINVAL);
	assert_int_equal(spoor_session_start_file(&options, &file, NULL), -EINVAL);
	assert_int_equal(spoor_session_start_callback(&options, NULL, NULL, &session), -EINVAL);
	assert_int_equal(spoor_session_start_listener(&options, NULL), -EINVAL);
	assert_int_equal(spoor_session_start_rings(NULL, &session), -EINVAL);
	assert_int_equal(spoor_session_stop(NULL), -EINVAL);
	assert_int_equal(spoor_session_flush(NULL, 1), -EINVAL);
	assert_int_equal(spoor_session_snapshot(NULL, "x"), -EINVAL);
	assert_int_equal(spoor_session_snapshot(session, NULL), -EINVAL);
	assert_int_equal(spoor_session_id(NULL), 0);
	spoor_session_free(NULL);
	spoor_session_count(NULL, &counts);
	assert_int_equal(counts.written + counts.lost, 0);
	spoor_session_count(session, NULL);
	assert_int_equal(spoor_listener_read(NULL, &view, 0), -EINVAL);
	assert_int_equal(spoor_listener_read(session, NULL, 0), -EINVAL);

	null_text(1, "text", 2);
	assert_int_equal(spoor_listener_read(session, &view, 10000), 1);
	assert_int_equal(spoor_event_next_field(NULL, &position, &value), -EINVAL);
	assert_int_equal(spoor_event_next_field(&none, &position, &value), -EINVAL);
	assert_int_equal(spoor_event_next_field(&view, NULL, &value), -EINVAL);
	assert_int_equal(spoor_event_next_field(&view, &position, NULL), -EINVAL);
	assert_int_equal(spoor_event_field(NULL, "it", &value), -EINVAL);
	assert_int_equal(spoor_event_field(&view, NULL, &value), -EINVAL);
	assert_int_equal(spoor_event_field(&view, "it", NULL), -EINVAL);
	assert_int_equal(spoor_event_field(&view, "it", &value), 0);
	assert_int_equal(spoor_value_next(NULL, &position, &offset, &part), -EINVAL);
	assert_int_equal(spoor_value_next(&value, NULL, &offset, &part), -EINVAL);
	assert_int_equal(spoor_value_next(&value, &position, NULL, &part), -EINVAL);
	assert_int_equal(spoor_value_next(&value, &position, &offset, NULL), -EINVAL);
	assert_int_equal(spoor_provider_register(NULL), -EINVAL);
	spoor_provider_unregister(NULL);
	spoor_provider_conflict(NULL, 10);
}

static void writers(void **state)
{
	struct spoor_event_source *source = spoor_source_new("Null");
	struct spoor_writer w;

	(void)state;
	assert_null(spoor_source_new(NULL));
	spoor_source_free(NULL);
	spoor_source_set_enable(NULL, NULL, NULL);
	assert_false(spoor_source_enabled(NULL, SPOOR_INFO, 0));
	assert_false(spoor_source_begin(NULL, "x", SPOOR_INFO, 0, &w));
	assert_false(spoor_source_begin(source, "x", SPOOR_INFO, 0, NULL));
	assert_int_equal(spoor_source_end(NULL), -EINVAL);
	spoor_source_cancel(NULL);
	spoor_writer_set_opcode(NULL, SPOOR_OPCODE_START);
	spoor_write_boolean(NULL, "x", true);
	spoor_write_u64(NULL, "x", 1);
	spoor_write_text(NULL, "x", "text");
	spoor_write_text16(NULL, "x", NULL);
	spoor_write_array(NULL, "x", SPOOR_TYPE_TEXT, NULL, 1);
	spoor_write_text_array(NULL, "x", NULL, 1);
	spoor_write_struct_begin(NULL, "x");
	spoor_write_struct_end(NULL);
	spoor_source_free(source);
}

static void activities_and_counters(void **state)
{
	static const char zeroes[] = "00-00000000000000000000000000000000-0000000000000000-00";
	char text[SPOOR_TRACEPARENT_SIZE];
	struct spoor_activity activity;
	struct spoor_activity_scope scope;
	struct spoor_sink_counts counts = { .size = sizeof(counts), .sent = 7 };

	(void)state;
	assert_int_equal(spoor_activity_start(NULL, "x", NULL), -EINVAL);
	assert_int_equal(spoor_activity_start(&activity, NULL, NULL), 0);
	spoor_activity_stop(NULL);
	spoor_activity_enter(&activity, NULL);
	spoor_activity_enter(NULL, &scope);
	spoor_activity_leave(NULL);
	spoor_activity_leave(&scope);
	assert_ptr_equal(spoor_activity_current(), &activity);
	spoor_activity_traceparent(NULL, text);
	assert_string_equal(text, zeroes);
	spoor_activity_traceparent(&activity, NULL);
	spoor_activity_stop(&activity);

	assert_null(spoor_meter_open(NULL, NULL));
	spoor_meter_close(NULL);
	struct spoor_counter *counter = spoor_counter_open(NULL, SPOOR_COUNTER, "x", NULL);
	assert_non_null(counter);
	assert_ptr_equal(spoor_counter_tagged(NULL, NULL, 0), counter);
	assert_ptr_equal(spoor_counter_tagged(counter, NULL, 1), counter);
	spoor_counter_add(counter, 1);
	spoor_counter_close(NULL);
	assert_null(spoor_counter_listener_open(NULL));
	spoor_counter_listener_close(NULL);
	spoor_sink_count(NULL, &counts);
	assert_int_equal(counts.sent, 0);
	spoor_sink_close(NULL, &counts);
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
		cmocka_unit_test(sessions),
		cmocka_unit_test(writers),
		cmocka_unit_test(activities_and_counters),
	};

	return cmocka_run_group_tests_name("null", tests, set_up, tear_down);
}
