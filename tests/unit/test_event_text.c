/*
 * event_text.c: prints payloads as lines: with a schema that fits, with one that does not fit, and
 * of the runtime's own events.
 */
#include "unit/test.h"

#include <math.h>

#include "base/bytes.h"
#include "base/json.h"
#include "render/event_line.h"
#include "render/event_text.h"
#include "trace/clr_event.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/trace.h"
#include "unit/json_check.h"

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

static void add_field(struct schema *schema, const char *name, unsigned type, unsigned element,
	unsigned depth)
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

static void expect_json(const struct bytes *payload, size_t size, bool whole, const char *fields)
{
	struct bytes out = { 0 };
	struct json j = { .out = &out };
	const struct event event = {
		.schema_index = trace.schemas.count - 1,
		.payload = payload->data,
		.payload_size = (uint32_t)size,
	};

	json_object(&j, NULL);
	assert_int_equal(event_text_json(&j, &trace, &event), whole);
	json_end(&j);
	assert_string_equal(bytes_z(&out), fields);
	assert_true(json_is_valid(bytes_z(&out), out.len));
	bytes_done(&out);
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
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"Number\":-5,\"Name\":\"caf\xc3\xa9\\n\",\"Inner\":{\"Weight\":0.25,\"Good\":true},\"List\":[7,8],\"Last\":-1}}");
	/* Bytes that end inside a field give no value. */
	expect_json(&payload, 4, false, "{\"fields\":{}}");
	expect(&payload, 4, "My-Source/Order", "?");
	expect_json(&payload, payload.len - 2, false,
		"{\"fields\":{\"Number\":-5,\"Name\":\"caf\xc3\xa9\\n\",\"Inner\":{\"Weight\":0.25,\"Good\":true},\"List\":[7]}}");
	/*
	 * Of any prefix of a payload the complete fields are printed, and no byte beyond it is
	 * read.
	 */
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
	new_schema("Microsoft-Windows-DotNETRuntime", "", 1)->version = 1;
	bytes_u32(&payload, 12);
	bytes_u32(&payload, 2);
	bytes_u32(&payload, 0);
	bytes_u32(&payload, 1);
	bytes_u16(&payload, 8);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/GC/Start",
		"Count=12 Depth=2 Reason=0 Type=1 ClrInstanceID=8");
	bytes_u64(&payload, 3);
	new_schema("Microsoft-Windows-DotNETRuntime", "", 1)->version = 2;
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/GC/Start",
		"Count=12 Depth=2 Reason=0 Type=1 ClrInstanceID=8 ClientSequenceNumber=3");
	/*
	 * A truncated payload shows its complete fields. In version 0 the second field is another
	 * one.
	 */
	expect(&payload, 18, "Microsoft-Windows-DotNETRuntime/GC/Start",
		"Count=12 Depth=2 Reason=0 Type=1 ClrInstanceID=8");
	(void)new_schema("Microsoft-Windows-DotNETRuntime", "", 1);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/GC/Start",
		"Count=12 Reason=2");
	/* An event that is not in the list is shown by its number. */
	(void)new_schema("Microsoft-Windows-DotNETRuntime", "", 9999);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/9999", "(26 bytes)");
	bytes_done(&payload);
	trace_done(&trace);
}

/* Events of the runtime's list with arrays that an earlier field counts. */
static void test_runtime_arrays(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	(void)new_schema("Microsoft-Windows-DotNETRuntime", "", 72); /* MethodDetails */
	bytes_u64(&payload, 1);
	bytes_u64(&payload, 2);
	bytes_u32(&payload, 3);
	bytes_u32(&payload, 2); /* TypeParameterCount, which is not directly before its array */
	bytes_u64(&payload, 4);
	bytes_u64(&payload, 5);
	bytes_u64(&payload, 6);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/Method/MethodDetails",
		"MethodID=1 TypeID=2 MethodToken=3 TypeParameterCount=2 LoaderModuleID=4 TypeParameters=[5,6]");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"MethodID\":1,\"TypeID\":2,\"MethodToken\":3,\"TypeParameterCount\":2,\"LoaderModuleID\":4,\"TypeParameters\":[5,6]}}");
	expect(&payload, payload.len - 8, "Microsoft-Windows-DotNETRuntime/Method/MethodDetails",
		"MethodID=1 TypeID=2 MethodToken=3 TypeParameterCount=2 LoaderModuleID=4 TypeParameters=[5,?");
	payload.data[20] = 0;
	expect(&payload, payload.len - 16, "Microsoft-Windows-DotNETRuntime/Method/MethodDetails",
		"MethodID=1 TypeID=2 MethodToken=3 TypeParameterCount=0 LoaderModuleID=4 TypeParameters=[]");

	/* BulkType: structs that contain a text and an array */
	(void)new_schema("Microsoft-Windows-DotNETRuntime", "", 15);
	bytes_reset(&payload);
	bytes_u32(&payload, 2);
	bytes_u16(&payload, 9);
	for (unsigned i = 0; i < 2; i++) {
		bytes_u64(&payload, 16 + i);
		bytes_u64(&payload, 32);
		bytes_u32(&payload, 0);
		bytes_u32(&payload, 1);
		bytes_u8(&payload, 18);
		bytes_utf16z(&payload, "List", 4, SIZE_MAX);
		bytes_u32(&payload, i);
		if (i)
			bytes_u64(&payload, 64);
	}
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/Type/BulkType",
		"Count=2 ClrInstanceID=9 Values=[{TypeID=16 ModuleID=32 TypeNameID=0 Flags=1 CorElementType=18 Name=\"List\" TypeParameterCount=0 "
		"TypeParameters=[]},{TypeID=17 ModuleID=32 TypeNameID=0 Flags=1 CorElementType=18 Name=\"List\" TypeParameterCount=1 "
		"TypeParameters=[64]}]");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"Count\":2,\"ClrInstanceID\":9,\"Values\":[{\"TypeID\":16,\"ModuleID\":32,\"TypeNameID\":0,\"Flags\":1,"
		"\"CorElementType\":18,\"Name\":\"List\",\"TypeParameterCount\":0,\"TypeParameters\":[]},{\"TypeID\":17,\"ModuleID\":32,"
		"\"TypeNameID\":0,\"Flags\":1,\"CorElementType\":18,\"Name\":\"List\",\"TypeParameterCount\":1,\"TypeParameters\":[64]}]}}");
	/* With a count that is too large the array ends at the end of the payload. */
	memset(payload.data, 0xff, 4);
	expect_json(&payload, 7, false,
		"{\"fields\":{\"Count\":4294967295,\"ClrInstanceID\":9,\"Values\":[{}]}}");

	(void)new_schema("Microsoft-Windows-DotNETRuntime", "", 260); /* CodeSymbolsStart: bytes */
	bytes_reset(&payload);
	bytes_u64(&payload, 7);
	bytes_u16(&payload, 1);
	bytes_u16(&payload, 0);
	bytes_u32(&payload, 3);
	bytes_add(&payload, "\1\2\3", 3);
	bytes_u16(&payload, 8);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/CodeSymbols/Start",
		"ModuleId=7 TotalChunks=1 ChunkNumber=0 ChunkLength=3 Chunk=0x010203 ClrInstanceID=8");

	/* StressLogEvent_V1: 8-bit text */
	new_schema("Microsoft-Windows-DotNETRuntimeStress", "", 0)->version = 1;
	bytes_reset(&payload);
	bytes_u32(&payload, 2);
	bytes_u8(&payload, 3);
	bytes_add(&payload, "stack\n", 7);
	bytes_u16(&payload, 8);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntimeStress/StressLogEvent",
		"Facility=2 LogLevel=3 Message=\"stack\\n\" ClrInstanceID=8");
	bytes_done(&payload);
	trace_done(&trace);
}

/*
 * Dynamic events of a collector: known ones by their fields, unknown ones as bytes, broken ones as
 * generic dynamic events.
 */
static void test_dynamic(void **state)
{
	struct bytes data = { 0 };
	struct bytes payload = { 0 };
	struct bytes out = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	(void)new_schema("Microsoft-Windows-DotNETRuntime", "", 39);
	bytes_u16(&data, 1); /* version */
	bytes_u32(&data, 7);
	bytes_u32(&data, 1);
	bytes_u64(&data, 64);
	bytes_utf16z(&payload, "SpoorGCAllocContexts", 20, SIZE_MAX);
	bytes_u32(&payload, (uint32_t)data.len);
	bytes_add(&payload, data.data, data.len);
	bytes_u16(&payload, 0);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/SpoorGCAllocContexts",
		"Collection=7 Contexts=1 UnusedBytes=64");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"Collection\":7,\"Contexts\":1,\"UnusedBytes\":64}}");
	const struct event event = {
		.schema_index = trace.schemas.count - 1,
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len,
	};

	assert_true(event_text_field(&out, &trace, &event, "UnusedBytes"));
	assert_string_equal(bytes_z(&out), "64");
	bytes_reset(&out);
	event_text_bare_name(&out, &trace, &event);
	assert_string_equal(bytes_z(&out), "SpoorGCAllocContexts");
	assert_true(event_text_is_dynamic(&trace, &event));
	bytes_reset(&payload);
	bytes_utf16z(&payload, "SpoorGCAllocContexts_V2", 23, SIZE_MAX);
	bytes_u32(&payload, 8);
	bytes_add(&payload, data.data, 8); /* ends within Contexts */
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/SpoorGCAllocContexts_V2",
		"Collection=7?");
	expect_json(&payload, payload.len, false, "{\"fields\":{\"Collection\":7}}");
	bytes_reset(&payload);
	bytes_utf16z(&payload, "Foreign\n", 8, SIZE_MAX);
	bytes_u32(&payload, 3);
	bytes_add(&payload, "\x01\x02\xff", 3);
	expect(&payload, payload.len, "Microsoft-Windows-DotNETRuntime/Foreign\\n",
		"Data=0x0102ff");
	expect_json(&payload, payload.len, true, "{\"fields\":{\"Data\":\"0x0102ff\"}}");
	expect(&payload, payload.len - 1, "Microsoft-Windows-DotNETRuntime/GC/DynamicEvent",
		"Name=\"Foreign\\n\" DataSize=3?");
	bytes_done(&out);
	bytes_done(&data);
	bytes_done(&payload);
	trace_done(&trace);
}

/* Universal events have no description in the file; Universal.Events are shown by name. */
static void test_universal(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	(void)new_schema("Universal.System", "ProcessCreate", 1);
	bytes_varuint(&payload, 300);
	bytes_u16(&payload, 4);
	bytes_text(&payload, "a\"b\x1b");
	bytes_u16(&payload, 0);
	expect(&payload, payload.len, "Universal.System/ProcessCreate",
		"NamespaceId=300 Name=\"a\\\"b\\x1b\" NamespaceName=\"\"");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"NamespaceId\":300,\"Name\":\"a\\\"b\\u001b\",\"NamespaceName\":\"\"}}");
	expect_json(&payload, payload.len - 3, false, "{\"fields\":{\"NamespaceId\":300}}");
	bytes_reset(&payload);
	(void)new_schema("Universal.Events", "cswitch", 77);
	bytes_varuint(&payload, 12);
	bytes_varuint(&payload, 1);
	expect(&payload, payload.len, "Universal.Events/cswitch", "Value=12 State=1");
	(void)new_schema("Universal.Events", "clock", 2);
	expect(&payload, 1, "Universal.Events/clock", "Value=12");
	bytes_done(&payload);
	trace_done(&trace);
}

/*
 * A line has the time, the process and the thread, also in JSON; lost events are mentioned before
 * the next event.
 */
static void test_lines(void **state)
{
	struct bytes out = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	new_schema("Microsoft-Windows-DotNETRuntime", "", 3)->version = 1;
	struct event event = {
		.time_ns = 5000,
		.schema_index = trace.schemas.count - 1,
		.thread_index = trace_thread(&trace, 7, 8),
		.payload = (const uint8_t *)"\x02",
		.payload_size = 2,
		.lost_before = 1,
		.cpu = 3,
	};
	const int64_t offset = INT64_C(1790000000000000000);

	event_line_lost(&out, &trace, &event, offset);
	event_line(&out, &trace, &event, offset);
	assert_string_equal(bytes_z(&out),
		"14:13:20.000005  7/8  -- 1 event was lost before this --\n"
		"14:13:20.000005  7/8  Microsoft-Windows-DotNETRuntime/GC/RestartEEStop  ClrInstanceID=2\n");
	bytes_reset(&out);
	event_line_lost_json(&out, &trace, &event, offset);
	assert_string_equal(bytes_z(&out),
		"{\"time\":\"2026-09-21T14:13:20.000005000Z\",\"pid\":7,\"tid\":8,\"cpu\":3,\"lost\":1}\n");
	bytes_reset(&out);
	event.cpu = EVENT_CPU_UNKNOWN;
	event.thread_index = 0;
	event.payload_size = 1;
	event_line_json(&out, &trace, &event, offset, NULL);
	assert_string_equal(bytes_z(&out),
		"{\"time\":\"2026-09-21T14:13:20.000005000Z\",\"provider\":\"Microsoft-Windows-DotNETRuntime\","
		"\"event\":\"GC/RestartEEStop\",\"id\":3,\"version\":1,\"level\":0,\"keywords\":\"0x0\",\"bytes\":1,\"fields\":{},"
		"\"broken\":true}\n");
	/* The attributes and the activity of an event, and a stack without names. */
	static const uint8_t activity[EVENT_ACTIVITY_SIZE] = { 0x33, 0x22, 0x11, 0, 0x55, 0x44,
		0x77, 0x66, 0x88, 0x99, 0xaa };
	const uint64_t frames[] = { 0x1000, 0x2000 };
	const struct event_labels labels = { .which = EVENT_LABEL_LEVEL | EVENT_LABEL_KEYWORDS |
						      EVENT_LABEL_OPCODE | EVENT_LABEL_VERSION,
		.level = 5,
		.keywords = UINT64_C(0xf00000000000),
		.opcode = 2,
		.version = 3 };
	struct event attributed = event;
	attributed.activity = activity;
	attributed.labels = &labels;
	attributed.stack_index = stack_table_intern(&trace.stacks, frames, 2);
	bytes_reset(&out);
	event_line_json(&out, &trace, &attributed, offset, NULL);
	assert_non_null(strstr(bytes_z(&out),
		"\"version\":3,\"level\":5,\"keywords\":\"0xf00000000000\",\"opcode\":2,\"activity\":\"00112233-4455-6677-8899-aa0000000000\",\"bytes\":1"));
	assert_non_null(strstr(bytes_z(&out),
		"\"stack\":[{\"address\":\"0x1000\"},{\"address\":\"0x2000\"}]}\n"));
	assert_null(strstr(bytes_z(&out), "related_activity"));
	assert_null(strstr(bytes_z(&out), "labels"));
	/* Labels. An id of zeros is not shown. */
	static const char list[] =
		"\x03"
		"\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36"
		"\x04"
		"\xb7\x02\xa9\x0b\xaa\x67\xf0\0"
		"\x05\x04"
		"City"
		"\x05"
		"R\"\n\xff."
		"\x06\x06"
		"Re\033try"
		"\x05";
	const struct event_labels listed = { .list = (const uint8_t *)list,
		.list_size = sizeof(list) - 1 };
	const struct event_labels zero = { .list = (const uint8_t *)"\x04\0\0\0\0\0\0\0",
		.list_size = 9 };
	event.labels = &listed;
	bytes_reset(&out);
	event_line_json(&out, &trace, &event, offset, NULL);
	assert_non_null(strstr(bytes_z(&out),
		"\"keywords\":\"0x0\",\"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"span_id\":\"00f067aa0ba902b7\","
		"\"labels\":{\"City\":\"R\\\"\\n\xef\xbf\xbd.\",\"Re\\\\x1btry\":-3},\"bytes\":1,"));
	bytes_reset(&out);
	event.payload_size = 2;
	event_line(&out, &trace, &event, offset);
	assert_non_null(strstr(bytes_z(&out),
		"  ClrInstanceID=2 {trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7 "
		"City=\"R\\\"\\n\xef\xbf\xbd.\" Re\\x1btry=-3}\n"));
	event.labels = &zero;
	bytes_reset(&out);
	event_line(&out, &trace, &event, offset);
	assert_non_null(strstr(bytes_z(&out), "  ClrInstanceID=2\n"));
	bytes_done(&out);
	trace_done(&trace);
}

/* A field of unknown length ends the line. */
static void test_unknown(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("My-Source", "Odd", 1);

	add_field(schema, "A", FIELD_U8, 0, 0);
	add_field(schema, "B", FIELD_ARRAY, 77, 0);
	add_field(schema, "C", FIELD_U8, 0, 0);
	bytes_u8(&payload, 5);
	bytes_u16(&payload, 1);
	bytes_u8(&payload, 6);
	expect(&payload, payload.len, "My-Source/Odd", "A=5 B=[?");
	bytes_done(&payload);
	trace_done(&trace);
}

/* Arrays of objects, inside objects, of arrays, and empty. */
static void test_elements(void **state)
{
	struct bytes payload = { 0 };
	struct bytes out = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("My-Source", "Orders", 1);

	add_field(schema, "Lines", FIELD_ARRAY, FIELD_OBJECT, 0);
	add_field(schema, "Item", FIELD_TEXT16, 0, 1);
	add_field(schema, "Sizes", FIELD_FIXED_ARRAY, FIELD_U8, 1);
	schema->fields.items[2].count = 2;
	add_field(schema, "Grid", FIELD_ARRAY, FIELD_ARRAY, 0);
	add_field(schema, "", FIELD_ARRAY, FIELD_U16, 1);
	add_field(schema, "Name", FIELD_ARRAY, FIELD_CHAR8, 0);
	add_field(schema, "Last", FIELD_U8, 0, 0);
	bytes_u16(&payload, 2);
	bytes_utf16z(&payload, "tea", 3, SIZE_MAX);
	bytes_u16(&payload, 0x0201);
	bytes_utf16z(&payload, "", 0, SIZE_MAX);
	bytes_u16(&payload, 0x0403);
	bytes_u16(&payload, 2);
	bytes_u16(&payload, 1);
	bytes_u16(&payload, 5);
	bytes_u16(&payload, 0);
	bytes_u16(&payload, 4);
	bytes_text(&payload, "text");
	bytes_u8(&payload, 9);
	expect(&payload, payload.len, "My-Source/Orders",
		"Lines=[{Item=\"tea\" Sizes=[1,2]},{Item=\"\" Sizes=[3,4]}] Grid=[[5],[]] Name=\"text\" Last=9");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"Lines\":[{\"Item\":\"tea\",\"Sizes\":[1,2]},{\"Item\":\"\",\"Sizes\":[3,4]}],\"Grid\":[[5],[]],\"Name\":\"text\","
		"\"Last\":9}}");
	for (size_t cut = 0; cut < payload.len; cut++) {
		struct json j = { .out = &out };
		uint8_t *exact = malloc(cut + 1);
		const struct event event = { .schema_index = trace.schemas.count - 1,
			.payload = exact,
			.payload_size = (uint32_t)cut };
		memcpy(exact, payload.data, cut);
		bytes_reset(&out);
		json_object(&j, NULL);
		(void)event_text_json(&j, &trace, &event); /* JSON, cut anywhere */
		json_end(&j);
		assert_true(json_is_valid(bytes_z(&out), out.len));
		free(exact);
	}
	const struct event event = { .schema_index = trace.schemas.count - 1,
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len };

	bytes_reset(&out);
	assert_true(event_text_field(&out, &trace, &event, "Lines"));
	assert_string_equal(bytes_z(&out), "[{Item=\"tea\" Sizes=[1,2]},{Item=\"\" Sizes=[3,4]}]");
	bytes_reset(&out);
	assert_false(event_text_field(&out, &trace, &event, "Item"));
	assert_true(event_text_field(&out, &trace, &event, "Last"));
	assert_string_equal(bytes_z(&out), "9");

	/*
	 * Elements without bytes: 65,535 arrays of 65,535 elements that take no space in the
	 * payload.
	 */
	bytes_reset(&payload);
	schema = new_schema("My-Source", "Nothing", 2);
	add_field(schema, "A", FIELD_ARRAY, FIELD_OBJECT, 0);
	add_field(schema, "B", FIELD_ARRAY, FIELD_U8, 0);
	bytes_u16(&payload, 0xffff);
	bytes_u16(&payload, 0);
	expect(&payload, payload.len, "My-Source/Nothing", "A=[{}?");
	bytes_done(&out);
	bytes_done(&payload);
	trace_done(&trace);
}

/* Elements beyond those that a line shows are still read. */
static void test_many_elements(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("My-Source", "Many", 1);

	add_field(schema, "A", FIELD_ARRAY, FIELD_OBJECT, 0);
	add_field(schema, "N", FIELD_U8, 0, 1);
	add_field(schema, "Last", FIELD_U8, 0, 0);
	bytes_u16(&payload, 18);
	for (uint8_t i = 0; i < 19; i++)
		bytes_u8(&payload, i);
	expect(&payload, payload.len, "My-Source/Many",
		"A=[{N=0},{N=1},{N=2},{N=3},{N=4},{N=5},{N=6},{N=7},{N=8},{N=9},{N=10},{N=11},{N=12},{N=13},{N=14},{N=15},\xe2\x80\xa6] Last=18");
	bytes_done(&payload);
	trace_done(&trace);
}

/*
 * Elements at an offset in the payload, which counts from the end of the field or from the begin of
 * the payload.
 */
static void test_located(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("My-Source", "Located", 1);

	add_field(schema, "Name", FIELD_REL_LOC, FIELD_CHAR8, 0);
	add_field(schema, "Numbers", FIELD_DATA_LOC, FIELD_U16, 0);
	add_field(schema, "Wide", FIELD_DATA_LOC, FIELD_CHAR16, 0);
	add_field(schema, "Last", FIELD_U8, 0, 0);
	bytes_u32(&payload, 4u << 16 | 9); /* 9 bytes after offset 4 */
	bytes_u32(&payload, 4u << 16 | 17);
	bytes_u32(&payload, 4u << 16 | 21);
	bytes_u8(&payload, 7);
	bytes_add(&payload, "abc", 4); /* padded with a NUL */
	bytes_u16(&payload, 1);
	bytes_u16(&payload, 2);
	bytes_utf16z(&payload, "x", 1, SIZE_MAX);
	expect(&payload, payload.len, "My-Source/Located",
		"Name=\"abc\" Numbers=[1,2] Wide=\"x\" Last=7");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"Name\":\"abc\",\"Numbers\":[1,2],\"Wide\":\"x\",\"Last\":7}}");
	/* An offset beyond the payload. */
	expect(&payload, payload.len - 1, "My-Source/Located", "Name=\"abc\" Numbers=[1,2]?");

	/* Many offsets that refer to the same bytes. */
	bytes_reset(&payload);
	schema = new_schema("My-Source", "Again", 2);
	add_field(schema, "A", FIELD_ARRAY, FIELD_DATA_LOC, 0);
	add_field(schema, "", FIELD_DATA_LOC, FIELD_DATA_LOC, 1);
	add_field(schema, "", FIELD_DATA_LOC, FIELD_U8, 2);
	bytes_u16(&payload, 8000);
	for (int i = 0; i < 8000; i++)
		bytes_u32(&payload, 32000u << 16 | 2);
	struct bytes out = { 0 };
	const struct event event = { .schema_index = trace.schemas.count - 1,
		.payload = payload.data,
		.payload_size = (uint32_t)payload.len };
	event_text_fields(&out, &trace, &event);
	assert_int_equal(out.data[out.len - 1], '?');
	bytes_done(&out);
	bytes_done(&payload);
	trace_done(&trace);
}

/*
 * Bools of four bytes and of one byte have the same type in a description, and so have two forms of
 * byte arrays. The size of the payload decides between them.
 */
static void test_open_layouts(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("DhCorProfilerProvider", "Odd", 1);

	add_field(schema, "Id", FIELD_U32, 0, 0);
	add_field(schema, "Good", FIELD_BOOL, 0, 0);
	bytes_u32(&payload, 5);
	bytes_u8(&payload, 1);
	expect(&payload, payload.len, "DhCorProfilerProvider/Odd", "Id=5 Good=true");
	bytes_u8(&payload, 0);
	bytes_u16(&payload, 0);
	expect(&payload, payload.len, "DhCorProfilerProvider/Odd", "Id=5 Good=true");
	expect(&payload, payload.len - 1, "DhCorProfilerProvider/Odd", "Id=5?");
	bytes_reset(&payload);
	schema = new_schema("P", "Bytes", 2);
	add_field(schema, "Data", FIELD_ARRAY, FIELD_U8, 0);
	add_field(schema, "Good", FIELD_BOOL, 0, 0);
	bytes_u32(&payload, 3);
	bytes_add(&payload, "\1\2\3", 3);
	bytes_u32(&payload, 1);
	expect(&payload, payload.len, "P/Bytes", "Data=[1,2,3] Good=true");
	bytes_reset(&payload);
	bytes_u16(&payload, 3);
	bytes_add(&payload, "\1\2\3", 3);
	bytes_u8(&payload, 0);
	expect(&payload, payload.len, "P/Bytes", "Data=[1,2,3] Good=false");
	/* Four bools of one byte each are not one bool of four bytes. */
	bytes_reset(&payload);
	schema = new_schema("P", "Four", 3);
	for (int i = 0; i < 4; i++)
		add_field(schema, "B", FIELD_BOOL, 0, 0);
	bytes_u32(&payload, 0x01000001);
	expect(&payload, payload.len, "P/Four", "B=true B=false B=false B=true");
	bytes_done(&payload);
	trace_done(&trace);
}

/* Lines and JSON show numbers exactly: no digit is lost or added. */
static void test_numbers(void **state)
{
	struct bytes payload = { 0 };
	uint32_t single;
	const float tenth = 0.1f;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("My-Source", "Numbers", 1);

	add_field(schema, "Whole", FIELD_F64, 0, 0);
	add_field(schema, "Third", FIELD_F64, 0, 0);
	add_field(schema, "Tenth", FIELD_F32, 0, 0);
	add_field(schema, "None", FIELD_F64, 0, 0);
	bytes_f64(&payload, 12345678900);
	bytes_f64(&payload, 1.0 / 3);
	memcpy(&single, &tenth, sizeof(single));
	bytes_u32(&payload, single);
	bytes_f64(&payload, -INFINITY);
	expect(&payload, payload.len, "My-Source/Numbers",
		"Whole=12345678900 Third=0.3333333333333333 Tenth=0.1 None=-Infinity");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"Whole\":12345678900,\"Third\":0.3333333333333333,\"Tenth\":0.1,\"None\":\"-Infinity\"}}");
	bytes_done(&payload);
	trace_done(&trace);
}

/*
 * A payload is broken if its description does not use all of its bytes, or if it ends before its
 * description does.
 */
static void test_other_size(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("P", "Sizes", 1);

	add_field(schema, "A", FIELD_U32, 0, 0);
	add_field(schema, "B", FIELD_U32, 0, 0);
	bytes_u32(&payload, 1);
	bytes_u32(&payload, 2);
	bytes_u8(&payload, 3);
	expect(&payload, 8, "P/Sizes", "A=1 B=2");
	expect_json(&payload, 8, true, "{\"fields\":{\"A\":1,\"B\":2}}");
	expect(&payload, 9, "P/Sizes", "A=1 B=2?");
	expect_json(&payload, 9, false, "{\"fields\":{\"A\":1,\"B\":2}}");
	expect(&payload, 4, "P/Sizes", "A=1?");
	expect_json(&payload, 4, false, "{\"fields\":{\"A\":1}}");
	expect_json(&payload, 0, false, "{\"fields\":{}}");
	/* An object without fields takes no bytes. */
	add_field(schema, "Empty", FIELD_OBJECT, 0, 0);
	expect_json(&payload, 8, true, "{\"fields\":{\"A\":1,\"B\":2,\"Empty\":{}}}");
	bytes_done(&payload);
	trace_done(&trace);
}

/*
 * An EventSource describes a one-byte enum as a byte but writes an int32. The size of the payload
 * decides if only one layout fits.
 */
static void test_wide(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("P", "En", 1);

	add_field(schema, "Long", FIELD_I64, 0, 0);
	add_field(schema, "Small", FIELD_U8, 0, 0);
	add_field(schema, "Value", FIELD_F64, 0, 0);
	bytes_u64(&payload, 7);
	bytes_u32(&payload, 2);
	bytes_f64(&payload, 0.5);
	expect(&payload, payload.len, "P/En", "Long=7 Small=2 Value=0.5");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"Long\":7,\"Small\":2,\"Value\":0.5}}");
	payload.data[9] = 1; /* no byte */
	expect_json(&payload, payload.len, false,
		"{\"fields\":{\"Long\":7,\"Small\":2,\"Value\":4.94065645841247e-324}}");
	bytes_reset(&payload);
	schema = new_schema("P", "Two", 2);
	add_field(schema, "A", FIELD_I8, 0, 0);
	add_field(schema, "B", FIELD_I8, 0, 0);
	bytes_u32(&payload, (uint32_t)-3);
	bytes_u8(&payload, 5);
	expect(&payload, payload.len, "P/Two", "A=-3 B=5");
	/* Both layouts fit. */
	bytes_reset(&payload);
	bytes_u32(&payload, 3);
	bytes_u8(&payload, 0);
	expect(&payload, payload.len, "P/Two", "A=3 B=0?");
	bytes_done(&payload);
	trace_done(&trace);
}

static void test_dates_and_characters(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("P", "Dates", 1);

	add_field(schema, "When", FIELD_TIME, 0, 0);
	add_field(schema, "Then", FIELD_TIME, 0, 0);
	add_field(schema, "First", FIELD_TIME, 0, 0);
	add_field(schema, "Last", FIELD_TIME, 0, 0);
	add_field(schema, "Never", FIELD_TIME, 0, 0);
	add_field(schema, "Letter", FIELD_CHAR16, 0, 0);
	add_field(schema, "Quote", FIELD_CHAR16, 0, 0);
	add_field(schema, "Half", FIELD_CHAR16, 0, 0);
	add_field(schema, "Bell", FIELD_CHAR16, 0, 0);
	bytes_u64(&payload, UINT64_C(132224078450000000));
	bytes_u64(&payload, UINT64_C(132224078450012300));
	bytes_u64(&payload, 0);
	bytes_u64(&payload, UINT64_C(2650467743999999999));
	bytes_u64(&payload, UINT64_C(2650467744000000000));
	bytes_u16(&payload, 0xe9);
	bytes_u16(&payload, '"');
	bytes_u16(&payload, 0xd83d);
	bytes_u16(&payload, 7);
	expect(&payload, payload.len, "P/Dates",
		"When=2020-01-02T03:04:05Z Then=2020-01-02T03:04:05.00123Z First=1601-01-01T00:00:00Z Last=9999-12-31T23:59:59.9999999Z "
		"Never=2650467744000000000 Letter=\"\xc3\xa9\" Quote=\"\\\"\" Half=\"\xef\xbf\xbd\" Bell=\"\\x07\"");
	expect_json(&payload, payload.len, true,
		"{\"fields\":{\"When\":\"2020-01-02T03:04:05Z\",\"Then\":\"2020-01-02T03:04:05.00123Z\",\"First\":\"1601-01-01T00:00:00Z\","
		"\"Last\":\"9999-12-31T23:59:59.9999999Z\",\"Never\":2650467744000000000,\"Letter\":\"\xc3\xa9\",\"Quote\":\"\\\"\","
		"\"Half\":\"\xef\xbf\xbd\",\"Bell\":\"\\u0007\"}}");
	bytes_done(&payload);
	trace_done(&trace);
}

/* A self-describing event is an object without a name. */
static void test_nameless_object(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	struct schema *schema = new_schema("P", "S", 1);

	add_field(schema, "", FIELD_OBJECT, 0, 0);
	add_field(schema, "I", FIELD_I32, 0, 1);
	add_field(schema, "Inner", FIELD_OBJECT, 0, 1);
	add_field(schema, "J", FIELD_I32, 0, 2);
	bytes_u32(&payload, 1);
	bytes_u32(&payload, 2);
	expect(&payload, payload.len, "P/S", "I=1 J=2");
	expect_json(&payload, payload.len, true, "{\"fields\":{\"I\":1,\"Inner\":{\"J\":2}}}");
	bytes_done(&payload);
	trace_done(&trace);
}

/* Without a description the opcode is derived from the name, if possible. */
static void test_opcode(void **state)
{
	static const struct {
		const char *name;
		uint32_t id;
		uint8_t opcode;
		const char *text;
	} cases[] = { { "", 1, 0, ",\"opcode\":1,\"bytes\"" },
		{ "", 2, 0, ",\"opcode\":2,\"bytes\"" },
		{ "", 3, 0, "\"keywords\":\"0x0\",\"bytes\"" },
		{ "", 1, 9, ",\"opcode\":9,\"bytes\"" },
		{ "Mine/Start", 1, 0, ",\"opcode\":0,\"bytes\"" } };
	struct bytes out = { 0 };

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct schema *schema =
			new_schema("Microsoft-Windows-DotNETRuntime", cases[i].name, cases[i].id);
		schema->opcode = cases[i].opcode;
		const struct event event = { .schema_index = trace.schemas.count - 1 };
		bytes_reset(&out);
		event_line_json(&out, &trace, &event, 0, NULL);
		assert_non_null(strstr(bytes_z(&out), cases[i].text));
	}
	bytes_done(&out);
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_described),
		cmocka_unit_test(test_runtime),
		cmocka_unit_test(test_runtime_arrays),
		cmocka_unit_test(test_dynamic),
		cmocka_unit_test(test_universal),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_elements),
		cmocka_unit_test(test_many_elements),
		cmocka_unit_test(test_located),
		cmocka_unit_test(test_open_layouts),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_other_size),
		cmocka_unit_test(test_wide),
		cmocka_unit_test(test_dates_and_characters),
		cmocka_unit_test(test_nameless_object),
		cmocka_unit_test(test_opcode),
	};

	return cmocka_run_group_tests_name("event_text", tests, NULL, NULL);
}
