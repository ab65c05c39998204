/*
 * gc_dynamic.c: reads the collectors' events from their bytes: whole, cut at every byte, and of
 * older and newer versions.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "unit/gc_dynamic_line.h"
#include "trace/gc_dynamic.h"

static void wrap(struct bytes *out, const char *name, const struct bytes *data)
{
	bytes_utf16z(out, name, strlen(name), SIZE_MAX);
	bytes_u32(out, (uint32_t)data->len);
	bytes_add(out, data->data, data->len);
	bytes_u16(out, 9);
}

/* A SpoorGCHandles event: two filled arrays and an empty one. */
static void put_handles(struct bytes *out)
{
	bytes_u16(out, 1);
	bytes_u32(out, 17);
	bytes_u16(out, 2);
	bytes_u32(out, 3);
	bytes_u32(out, UINT32_MAX);
	bytes_u16(out, 0);
	bytes_u16(out, 1);
	bytes_u32(out, 5);
}

static void assert_line(const char *name, const struct bytes *data, bool whole,
	const char *expected)
{
	struct bytes payload = { 0 }, line = { 0 };
	struct gc_dynamic event;

	wrap(&payload, name, data);
	assert_int_equal(gc_dynamic_open(payload.data, payload.len, &event), 0);
	assert_int_equal(gc_dynamic_line(&event, &line), whole);
	assert_string_equal(bytes_z(&line), expected);
	bytes_done(&payload);
	bytes_done(&line);
}

static void test_line(void **state)
{
	struct bytes data = { 0 };

	(void)state;
	put_handles(&data);
	assert_line("SpoorGCHandles", &data, true,
		"SpoorGCHandles Collection=17 Live=[3,4294967295] Created=[] Destroyed=[5]");
	assert_line("SpoorGCHandles_V2", &data, true,
		"SpoorGCHandles_V2 Collection=17 Live=[3,4294967295] Created=[] Destroyed=[5]");
	/* Additional bytes of a later version are ignored. An unknown event is shown as bytes. */
	bytes_u16(&data, 7);
	assert_line("SpoorGCHandles_V3", &data, true,
		"SpoorGCHandles_V3 Collection=17 Live=[3,4294967295] Created=[] Destroyed=[5] (2 "
		"more bytes)");
	assert_line("SpoorGCHandlesX", &data, true, "SpoorGCHandlesX (24 more bytes)");
	assert_line("SpoorGCHandles_V", &data, true, "SpoorGCHandles_V (24 more bytes)");
	assert_line("SpoorGCHandles_V2x", &data, true, "SpoorGCHandles_V2x (24 more bytes)");
	assert_line("CommittedUsage\n", &data, true, "CommittedUsage\\n (24 more bytes)");
	bytes_done(&data);
}

static void test_cut(void **state)
{
	struct bytes data = { 0 }, payload = { 0 }, line = { 0 };
	struct gc_dynamic event;
	struct gc_dynamic_field field;

	(void)state;
	put_handles(&data);
	wrap(&payload, "SpoorGCHandles", &data);
	/* All data is required except the instance id. */
	for (size_t i = 0; i < payload.len - 2; i++)
		assert_int_equal(gc_dynamic_open(payload.data, i, &event), -EBADMSG);
	assert_int_equal(gc_dynamic_open(payload.data, payload.len - 2, &event), 0);
	assert_int_equal(event.version, 1);
	assert_ptr_equal(event.data, payload.data + 2 * 15 + 4);

	/*
	 * Data that ends between two fields is an older version; data that ends inside a field is
	 * broken.
	 */
	for (size_t size = 0; size <= data.len; size++) {
		gc_dynamic_open_named("SpoorGCHandles", 14, data.data, size, &event);
		int r, fields = 0;
		while ((r = gc_dynamic_next(&event, &field)) > 0)
			fields++;
		bool between = size == 0 || size == 2 || size == 6 || size == 16 || size == 18 ||
			       size == 24;
		assert_int_equal(r, between ? 0 : -EBADMSG);
		assert_int_equal(fields, size < 6    ? 0
					 : size < 16 ? 1
					 : size < 18 ? 2
					 : size < 24 ? 3
						     : 4);
		assert_int_equal(gc_dynamic_next(&event, &field), 0);
		bytes_reset(&line);
		gc_dynamic_open_named("SpoorGCHandles", 14, data.data, size, &event);
		assert_int_equal(gc_dynamic_line(&event, &line), between);
	}
	bytes_done(&data);
	bytes_done(&payload);
	bytes_done(&line);
}

/*
 * Every entry of the list can be read: each field has a name and a known type, and no name of an
 * event contains a version.
 */
static void test_table(void **state)
{
	static const uint8_t zeros[4096] = { 0 };
	bool seen_pause = false;

	(void)state;
	assert_true(gc_dynamic_event_count >= 5);
	for (size_t i = 0; i < gc_dynamic_event_count; i++) {
		const struct gc_dynamic_event *entry = &gc_dynamic_events[i];
		struct gc_dynamic event;
		struct gc_dynamic_field field;
		unsigned fields = 0, commas = 0;
		assert_int_equal(strncmp(entry->name, "Spoor", 5), 0);
		assert_null(strstr(entry->name, "_V"));
		assert_true(entry->version >= 1);
		assert_true(strlen(entry->what) > 10);
		gc_dynamic_open_named(entry->name, strlen(entry->name), zeros, sizeof(zeros),
			&event);
		assert_ptr_equal(event.event, entry);
		while (gc_dynamic_next(&event, &field) > 0) {
			assert_true(field.name_len > 1 && field.name[0] >= 'A' &&
				    field.name[0] <= 'Z');
			fields++;
		}
		for (const char *p = entry->fields; *p; p++)
			commas += *p == '(';
		assert_int_equal(fields, commas);
		seen_pause |= strcmp(entry->name, "SpoorGCPause") == 0;
	}
	assert_true(seen_pause);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
