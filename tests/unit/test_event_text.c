/* event_text.c: payloads as lines, of schemas that fit, that don't, and of the runtime's own events. */
#include "unit/test.h"

#include "base/bytes.h"
#include "export/event_text.h"
#include "model/clr_event.h"
#include "model/event.h"
#include "model/schema.h"
#include "model/trace.h"

static struct trace trace;

static struct schema *new_schema(const char *provider, const char *name, uint32_t id)
{
	struct schema *schema = vec_push(&trace.schemas);

	schema->provider = trace_add_text(&trace, provider);
	schema->provider_kind = (uint8_t)provider_kind_of(provider);
	schema->name = trace_add_text(&trace, name);
	schema->event_id = id;
	return schema;
}

static void add_field(struct schema *schema, const char *name, unsigned type, unsigned element, unsigned depth)
{
	struct field *field = vec_push(&schema->fields);

	field->name = trace_add_text(&trace, name);
	field->type = (uint8_t)type;
	field->element = (uint8_t)element;
	field->depth = (uint16_t)depth;
}

static void expect(const struct bytes *payload, size_t size, const char *name, const char *fields)
{
	uint8_t *exact = malloc(size + 1);
	struct bytes out = { 0 };
	const struct event event = {
		.schema_index = trace.schemas.count - 1,
		.payload = exact,
		.payload_size = (uint32_t)size,
	};

	memcpy(exact, payload->data ? payload->data : (const uint8_t *)"", size);
	event_text_name(&out, &trace, &event);
	assert_string_equal(bytes_z(&out), name);
	bytes_reset(&out);
	event_text_fields(&out, &trace, &event);
	assert_string_equal(bytes_z(&out), fields);
	bytes_done(&out);
	free(exact);
}

static void test_described(void **state)
{
	struct bytes payload = { 0 };
	struct bytes out = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("My-Source", "Order", 1);

	add_field(schema, "Number", FIELD_I64, 0, 0);
	add_field(schema, "Name", FIELD_TEXT16, 0, 0);
	add_field(schema, "Inner", FIELD_OBJECT, 0, 0);
	add_field(schema, "Weight", FIELD_F64, 0, 1);
	add_field(schema, "Good", FIELD_BOOL, 0, 1);
	add_field(schema, "List", FIELD_ARRAY, FIELD_U16, 0);
	add_field(schema, "Last", FIELD_I8, 0, 0);
	bytes_u64(&payload, (uint64_t)-5);
	bytes_utf16z(&payload, "caf\xc3\xa9\n", 6, SIZE_MAX);
	bytes_f64(&payload, 0.25);
	bytes_u32(&payload, 1);
	bytes_u16(&payload, 2);
	bytes_u16(&payload, 7);
	bytes_u16(&payload, 8);
	bytes_u8(&payload, 0xff);
	expect(&payload, payload.len, "My-Source/Order",
		"Number=-5 Name=\"caf\xc3\xa9\\n\" Weight=0.25 Good=true List=[7,8] Last=-1");
	/* Any beginning of it is printed as far as it goes, and nothing beyond is read. */
	for (size_t cut = 0; cut < payload.len; cut++) {
		uint8_t *exact = malloc(cut + 1);
		const struct event event = {
			.schema_index = trace.schemas.count - 1,
			.payload = exact,
			.payload_size = (uint32_t)cut,
		};
		memcpy(exact, payload.data, cut);
		event_text_fields(&out, &trace, &event);
		bytes_reset(&out);
		free(exact);
	}
	const struct event event = {
		.schema_index = trace.schemas.count - 1,
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len,
	};

	assert_true(event_text_field(&out, &trace, &event, "Weight"));
	assert_string_equal(bytes_z(&out), "0.25");
	bytes_reset(&out);
	assert_true(event_text_field(&out, &trace, &event, "Name"));
	assert_string_equal(bytes_z(&out), "caf\xc3\xa9\\n");
	bytes_reset(&out);
	assert_false(event_text_field(&out, &trace, &event, "Weigh"));
	assert_int_equal(out.len, 0);
	bytes_done(&out);
	bytes_done(&payload);
	trace_done(&trace);
}

static void test_runtime(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	(void)new_schema("Microsoft-Windows-DotNETRuntime", "", 1);
	bytes_u32(&payload, 12);
	bytes_u32(&payload, 2);
	bytes_u32(&payload, 0);
	bytes_u32(&payload, 1);
	bytes_u16(&payload, 8);
	/* An older version of the event is shorter. */
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/GC/Start", "Count=12 Depth=2 Reason=0 Type=1 ClrInstanceID=8");
	bytes_u64(&payload, 3);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/GC/Start",
		"Count=12 Depth=2 Reason=0 Type=1 ClrInstanceID=8 ClientSequenceNumber=3");
	/* Of one that is not in the list there is the number. */
	(void)new_schema("Microsoft-Windows-DotNETRuntime", "", 9999);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/9999", "(26 bytes)");
	bytes_done(&payload);
	trace_done(&trace);
}

/* What has a length that is not known ends the line. */
static void test_unknown(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("My-Source", "Odd", 1);

	add_field(schema, "A", FIELD_U8, 0, 0);
	add_field(schema, "B", FIELD_ARRAY, FIELD_OBJECT, 0);
	add_field(schema, "C", FIELD_U8, 0, 0);
	bytes_u8(&payload, 5);
	bytes_u16(&payload, 1);
	bytes_u8(&payload, 6);
	expect(&payload, payload.len, "My-Source/Odd", "A=5 B=[?");
	bytes_done(&payload);
	trace_done(&trace);
}

/* The list: each letter is one, each event once. */
static void test_list(void **state)
{
	static const struct clr_event list[] = {
#define CLR_EVENT(provider, id, name, fields) { provider, id, name, fields },
#include "model/clr_events.def"
#undef CLR_EVENT
	};

	(void)state;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		assert_ptr_equal(clr_event_find(list[i].provider_kind, list[i].id)->name, clr_event_find(list[i].provider_kind, list[i].id)->name);
		assert_string_equal(clr_event_find(list[i].provider_kind, list[i].id)->name, list[i].name);
		for (const char *at = list[i].fields; *at;) {
			assert_non_null(strchr("S1248PBXDGVHU", *at));
			assert_int_equal(at[1], ' ');
			at += 2 + strcspn(at + 2, ",");
			at += strspn(at, ", ");
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_described),
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests_name("event_text", tests, NULL, NULL);
}
