/*
 * user_event_table.c, header_event.c and dotnet_user_event.c: raw data of samples becomes events with names, fields and
 * values, and malformed data is counted.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/json.h"
#include "formats/dotnet_user_event.h"
#include "recording/user_event_table.h"
#include "render/event_text.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define HEADER_FIELDS                                            \
	"field:u8 eventheader_flags;offset:8;size:1;signed:0;\n" \
	"field:u8 version;offset:9;size:1;signed:0;\n"           \
	"field:u16 id;offset:10;size:2;signed:0;\n"              \
	"field:u16 tag;offset:12;size:2;signed:0;\n"             \
	"field:u8 opcode;offset:14;size:1;signed:0;\n"           \
	"field:u8 level;offset:15;size:1;signed:0;\n"
#define DOTNET_FIELDS                                                 \
	"field:u8 version;offset:8;size:1;signed:0;\n"                \
	"field:u16 event_id;offset:9;size:2;signed:0;\n"              \
	"field:__rel_loc u8 extension[];offset:11;size:4;signed:1;\n" \
	"field:__rel_loc u8 payload[];offset:15;size:4;signed:1;\n"

static struct trace trace;
static struct user_event_table table;
static struct tracepoint_format format;
static struct bytes raw;

static int setup(void **state)
{
	(void)state;
	if (trace_init(&trace) < 0)
		return -1;
	user_event_table_init(&table, &trace);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	user_event_table_done(&table);
	trace_done(&trace);
	bytes_done(&raw);
	return 0;
}

static int add(uint16_t id, const char *name, const char *provider, const char *fields)
{
	char text[4096];

	snprintf(text, sizeof(text), "name: %s\nID: %u\nformat:\n%s", name, id, fields);
	assert_int_equal(tracepoint_format_parse(text, strlen(text), &format, NULL), 0);
	return user_event_table_add(&table, name, provider, &format);
}

/* The fields that all tracepoints have. */
static void raw_begin(uint16_t id)
{
	bytes_reset(&raw);
	bytes_u16(&raw, id);
	bytes_u16(&raw, 0);
	bytes_u32(&raw, 4711);
}

static void raw_header(unsigned flags, unsigned id)
{
	raw_begin(500);
	bytes_u8(&raw, (uint8_t)flags);
	bytes_u8(&raw, 3); /* version */
	bytes_u16(&raw, (uint16_t)id);
	bytes_u16(&raw, 0x1234); /* tag */
	bytes_u8(&raw, 1);       /* opcode */
	bytes_u8(&raw, 4);
}

static void raw_extension(unsigned kind, const char *data, size_t size)
{
	bytes_u16(&raw, (uint16_t)size);
	bytes_u16(&raw, (uint16_t)kind);
	bytes_add(&raw, data, size);
}

#define DESCRIPTION(text) raw_extension(1, text, sizeof(text) - 1)

/* Decodes a copy of exact size. */
static bool decode_part(size_t size, struct user_event *event)
{
	uint8_t *exact = malloc(size + 1);

	memcpy(exact, raw.data, size);
	bool decoded = user_event_table_decode(&table, 4711, exact, size, event);
	free(exact);
	return decoded;
}

static void expect_event(const char *provider, const char *name, const char *fields)
{
	struct user_event found;
	struct bytes out = { 0 };
	struct json j = { .out = &out };

	assert_true(user_event_table_has(&table, raw.data, raw.len));
	assert_true(decode_part(raw.len, &found));
	const struct schema *schema = &trace.schemas.items[found.schema_index];
	const struct event event = { .schema_index = found.schema_index,
		.payload = found.payload,
		.payload_size = found.payload_size };

	assert_string_equal(trace_text(&trace, schema->provider), provider);
	assert_string_equal(trace_text(&trace, schema->name), name);
	json_object(&j, NULL);
	assert_true(event_text_json(&j, &trace, &event));
	json_end(&j);
	char wanted[1024];
	snprintf(wanted, sizeof(wanted), "{\"fields\":%s}", fields);
	assert_string_equal(bytes_z(&out), wanted);
	bytes_done(&out);
}

static void test_header_values(void **state)
{
	(void)state;
	assert_int_equal(add(500, "Acme_Shop_L4Kff_L4K2aGstore", NULL, HEADER_FIELDS), 0);
	raw_header(7, 17);
	DESCRIPTION("Sold;x=1\0"
		    "a\0\x02"
		    "b\0\x82\x02"
		    "c\0\x83\x90\xff\xff" /* a port with a tag */
		    "d;unit=s\0\x84\x08"
		    "e\0\x85\x02"
		    "f\0\x86\x0f"
		    "g\0\x08"
		    "h\0\x0a"
		    "i\0\x8a\x09"
		    "j\0\x84\x07"
		    "k\0\x82\x07"
		    "l\0\x07"
		    "m\0\x8a\x0a"
		    "n\0\x0b"
		    "o\0\x0c"
		    "p\0\x06");
	bytes_add(&raw, "\xc8\xfe\x1f\x90\0\0\x40\xbf", 8);
	bytes_u64(&raw, (uint64_t)-12345678901);
	bytes_add(&raw, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16);
	bytes_add(&raw, "w\0\xe4\0\0\0", 6);
	bytes_add(&raw, "\3\0t\xc3\xa9", 5);
	bytes_add(&raw, "\2\0\xde\xad", 4);
	bytes_u32(&raw, 1);
	bytes_u8(&raw, 0);
	bytes_add(&raw, "zero", 5);
	bytes_add(&raw, "\1\0\xe9", 3);
	bytes_add(&raw, "\2\0a\0b\0", 6);
	bytes_add(&raw, "\1\0\x1f\xf4\x01\0", 6);
	bytes_add(&raw, "0123456789abcdef", 16);
	size_t whole = raw.len;
	bytes_add(&raw, "\0\0\0\0\0", 5); /* the padding of a sample */
	expect_event("Acme_Shop_L4Kff", "Sold",
		"{\"a\":200,\"b\":-2,\"c\":8080,\"d\":-0.75,\"e\":-12345678901,\"f\":\"00112233-4455-6677-8899-aabbccddeeff\","
		"\"g\":\"wä\",\"h\":\"té\",\"i\":[222,173],\"j\":true,\"k\":false,\"l\":\"zero\",\"m\":\"é\",\"n\":\"ab\",\"o\":\"🐟\","
		"\"p\":[48,49,50,51,52,53,54,55,56,57,97,98,99,100,101,102]}");
	const struct schema *schema = vec_last(&trace.schemas);
	assert_int_equal(schema->event_id, 17);
	assert_int_equal(schema->version, 3);
	assert_int_equal(schema->opcode, 1);
	assert_int_equal(schema->level, 4);
	assert_int_equal(schema->keywords, 0x2a);
	/* the same layout, one time */
	assert_int_equal(table.layouts.count, 1);
	/* Every shorter event is malformed. */
	struct user_event event;
	for (size_t size = 16; size < whole; size++)
		assert_false(decode_part(size, &event));
	assert_int_equal(table.malformed, whole - 16);
	assert_true(decode_part(whole, &event));
}

static void test_header_nested(void **state)
{
	(void)state;
	assert_int_equal(add(500, "p_L5K0", NULL, HEADER_FIELDS), 0);
	raw_header(7, 0);
	DESCRIPTION("nest\0"
		    "s\0\x81\x02" /* a struct of two */
		    "x\0\x02"
		    "t\0\x81\x01"
		    "y\0\x03"
		    "r\0\xc1\x02" /* an array of structs */
		    "n\0\x0a"
		    "v\0\x42"
		    "z\0\x23\2\0" /* two u16 */
		    "blobs\0\xca\x09");
	bytes_add(&raw, "\7\x39\x30", 3);
	bytes_add(&raw, "\2\0\1\0a\3\0\1\2\3\2\0bc\0\0", 16);
	bytes_add(&raw, "\1\0\2\0", 4);
	bytes_add(&raw, "\2\0\1\0\xff\0\0", 7);
	expect_event("p", "nest",
		"{\"s\":{\"x\":7,\"t\":{\"y\":12345}},\"r\":[{\"n\":\"a\",\"v\":[1,2,3]},{\"n\":\"bc\",\"v\":[]}],\"z\":[1,2],\"blobs\":[[255],[]]}");
	assert_int_equal(vec_last(&trace.schemas)->event_id, 0x4000);
}

static void test_header_extensions(void **state)
{
	struct user_event event;

	(void)state;
	assert_int_equal(add(500, "p_L5K0", NULL, HEADER_FIELDS), 0);
	raw_header(7, 1);
	raw_extension(0x8002, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
		16);
	raw_extension(0x8077, "???", 3);
	DESCRIPTION("e");
	assert_false(decode_part(raw.len, &event)); /* a name without an end */
	raw_header(7, 1);
	raw_extension(0x8002, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff",
		16);
	raw_extension(0x8077, "???", 3);
	DESCRIPTION("e\0");
	assert_true(decode_part(raw.len, &event));
	assert_memory_equal(event.activity,
		"\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xaa\xbb\xcc\xdd\xee\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
		32);
	expect_event("p", "e", "{}");
	/* without a description: the bytes */
	raw_header(3, 9);
	bytes_add(&raw, "abc", 3);
	expect_event("p", "Undescribed", "{\"Payload\":[97,98,99]}");
	assert_true(decode_part(raw.len, &event));
	assert_null(event.activity);
	/* big-endian; an extension that is missing */
	uint64_t before = table.malformed;
	raw_header(5, 1);
	assert_false(decode_part(raw.len, &event));
	raw_header(7, 1);
	assert_false(decode_part(raw.len, &event));
	assert_int_equal(table.malformed, before + 2);
}

static void test_header_broken(void **state)
{
#define CASE(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}
	static const struct {
		const char *text;
		size_t size;
	} cases[] = {
		CASE("e\0a"),
		CASE("e\0a\0"),
		CASE("e\0a\0\x00"),
		CASE("e\0a\0\x0e"), /* no such encoding */
		CASE("e\0a\0\x82"),
		CASE("e\0a\0\x82\x82"), /* no tag */
		CASE("e\0a\0\x22\0\0"), /* no elements */
		CASE("e\0a\0\x62\1\0"), /* both kinds of array */
		CASE("e\0a\0\x01"),     /* a struct without fields */
		CASE("e\0a\0\x81\2b\0\x02"),
		CASE("e\0a\0\x81\1a\0\x81\1a\0\x81\1a\0\x81\1a\0\x81\1a\0\x81\1a\0\x81\1a\0\x81\1a\0\x81\1a\0\x81\1a\0\x02"),
	};
	struct user_event event;
	struct bytes many = { 0 };

	(void)state;
	assert_int_equal(add(500, "p_L5K0", NULL, HEADER_FIELDS), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_header(7, 1);
		raw_extension(1, cases[i].text, cases[i].size);
		bytes_add(&raw, "\0\0\0\0\0\0\0\0", 8);
		if (decode_part(raw.len, &event))
			fail_msg("case %zu was accepted", i);
	}
	assert_int_equal(table.malformed, sizeof(cases) / sizeof(cases[0]));
	assert_int_equal(trace.schemas.count, 1);
	bytes_add(&many, "e\0", 2);
	for (unsigned i = 0; i <= HEADER_EVENT_FIELDS_MAX; i++)
		bytes_add(&many, "a\0\2", 3);
	raw_header(7, 1);
	raw_extension(1, (const char *)many.data, many.len);
	assert_false(decode_part(raw.len, &event));
	bytes_done(&many);
}

/* Two layouts of one id, and the limit of layouts. */
static void test_header_layouts(void **state)
{
	struct user_event event;
	char text[16];

	(void)state;
	assert_int_equal(add(500, "p_L5K0", NULL, HEADER_FIELDS), 0);
	raw_header(7, 5);
	DESCRIPTION("e\0a\0\2");
	bytes_u8(&raw, 1);
	expect_event("p", "e", "{\"a\":1}");
	raw_header(7, 5);
	DESCRIPTION("e\0b\0\3");
	bytes_u16(&raw, 2);
	expect_event("p", "e", "{\"b\":2}");
	assert_int_equal(vec_last(&trace.schemas)->event_id, 0x8005);
	/* as many as are allowed, without making them one by one */
	while (table.layouts.count < USER_EVENT_LAYOUTS_MAX)
		assert_non_null(vec_push(&table.layouts));
	expect_event("p", "e", "{\"b\":2}");
	raw_header(7, 6);
	raw_extension(1, text, (size_t)snprintf(text, sizeof(text), "new") + 1);
	assert_false(decode_part(raw.len, &event));
	assert_int_equal(table.without_layout, 1);
	assert_int_equal(table.malformed, 0);
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		size_t len;
		unsigned level;
		uint64_t keywords;
	} cases[] = {
		{ "a_L1K0", 1, 1, 0 },
		{ "a_b_LffKffffffffffffffffGx1", 3, 255, UINT64_MAX },
		{ "a_L5K1_L4K2", 6, 4, 2 },
		{ "_L1K0", 0, 0, 0 },
		{ "a_L1K", 0, 0, 0 },
		{ "a_LK1", 0, 0, 0 },
		{ "a_L100K1", 0, 0, 0 },
		{ "a_L1K11112222333344445", 0, 0, 0 },
		{ "a_L1K1x", 0, 0, 0 },
		{ "a_L1k1", 0, 0, 0 },
		{ "", 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t level = 0;
		uint64_t keywords = 0;
		if (header_event_name(cases[i].name, &level, &keywords) != cases[i].len ||
			level != cases[i].level || keywords != cases[i].keywords)
			fail_msg("%s", cases[i].name);
	}
}

static void raw_dotnet(unsigned id, const struct bytes *extension, const char *payload, size_t size)
{
	raw_begin(600);
	bytes_u8(&raw, 1);
	bytes_u16(&raw, (uint16_t)id);
	bytes_u16(&raw, 4);
	bytes_u16(&raw, (uint16_t)extension->len);
	bytes_u16(&raw, (uint16_t)extension->len);
	bytes_u16(&raw, (uint16_t)size);
	bytes_add(&raw, extension->data, extension->len);
	bytes_add(&raw, payload, size);
}

/* Appends the item of the metadata of Order(count), with the provider's name or without. */
static void put_metadata(struct bytes *out, unsigned id, const char *provider)
{
	struct bytes record = { 0 };

	if (provider)
		bytes_utf16z(&record, provider, strlen(provider), 100);
	bytes_u32(&record, id);
	bytes_utf16z(&record, "Order", 5, 100);
	bytes_u64(&record, 0x11);
	bytes_u32(&record, 2); /* version */
	bytes_u32(&record, 3); /* level */
	bytes_u32(&record, 1);
	bytes_u32(&record, FIELD_I32);
	bytes_utf16z(&record, "count", 5, 100);
	bytes_u8(out, 1);
	bytes_u32(out, (uint32_t)record.len);
	bytes_add(out, record.data, record.len);
	bytes_done(&record);
}

static void test_dotnet(void **state)
{
	static const char *const spellings[] = { NULL, "", "My-Source" };
	struct bytes extension = { 0 };
	const struct bytes none = { 0 };
	struct user_event event;

	(void)state;
	assert_int_equal(add(600, "spoor_1_0", "My-Source", DOTNET_FIELDS), 0);
	for (unsigned i = 0; i < 3; i++) {
		bytes_reset(&extension);
		bytes_u8(&extension, 2);
		bytes_add(&extension, "0123456789abcdef", 16);
		put_metadata(&extension, 7 + i, spellings[i]);
		bytes_u8(&extension, 3);
		bytes_add(&extension, "fedcba9876543210", 16);
		raw_dotnet(7 + i, &extension, "\x2a\0\0\0", 4);
		expect_event("My-Source", "Order", "{\"count\":42}");
		assert_true(decode_part(raw.len, &event));
		assert_memory_equal(event.activity, "0123456789abcdeffedcba9876543210", 32);
		const struct schema *schema = vec_last(&trace.schemas);
		assert_int_equal(schema->event_id, 7 + i);
		assert_int_equal(schema->version, 2);
		assert_int_equal(schema->level, 3);
		assert_int_equal(schema->keywords, 0x11);
		/* later events have no metadata */
		raw_dotnet(7 + i, &none, "\x2b\0\0\0", 4);
		expect_event("My-Source", "Order", "{\"count\":43}");
		assert_true(decode_part(raw.len, &event));
		assert_null(event.activity);
	}
	assert_int_equal(trace.schemas.count, 4);
	assert_int_equal(table.undescribed, 0);
	/* of another process that has sent no metadata */
	raw_dotnet(7, &none, "\x2c\0\0\0", 4);
	assert_true(user_event_table_decode(&table, 4712, raw.data, raw.len, &event));
	assert_int_equal(trace.schemas.items[event.schema_index].name, 0);
	assert_int_equal(trace.schemas.items[event.schema_index].event_id, 7);
	assert_int_equal(table.undescribed, 1);
	/* another version of the layout; a place beyond the end */
	raw.data[8] = 2;
	assert_false(decode_part(raw.len, &event));
	raw.data[8] = 1;
	assert_false(decode_part(raw.len - 1, &event));
	assert_int_equal(table.malformed, 2);
	bytes_done(&extension);
}

static void test_dotnet_runtime(void **state)
{
	const struct bytes none = { 0 };
	struct user_event event;

	(void)state;
	assert_int_equal(add(600, "spoor_1_1", PROVIDER_CLR_NAME, DOTNET_FIELDS), 0);
	/* GCStart_V2: Count, Depth, Reason, Type, ClrInstanceID, ClientSequenceNumber */
	raw_dotnet(1, &none, "\5\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\x0a\0\0\0\0\0\0\0\0\0", 26);
	assert_true(decode_part(raw.len, &event));
	const struct schema *schema = &trace.schemas.items[event.schema_index];
	assert_int_equal(schema->event_id, 1);
	assert_int_equal(schema->version, 2);
	assert_int_equal(schema->level, 4);
	assert_int_equal(schema->keywords, 1);
	expect_event(PROVIDER_CLR_NAME, "",
		"{\"Count\":5,\"Depth\":1,\"Reason\":2,\"Type\":0,\"ClrInstanceID\":10,\"ClientSequenceNumber\":0}");
	assert_int_equal(table.undescribed, 0);
}

static void test_plain(void **state)
{
	struct user_event event;

	(void)state;
	assert_int_equal(add(700, "order", NULL,
				 "field:u32 count;offset:8;size:4;signed:0;\n"
				 "field:s16 change;offset:12;size:2;signed:1;\n"
				 "field:char name[4];offset:14;size:4;signed:1;\n"
				 "field:__rel_loc char[] product;offset:18;size:4;signed:1;\n"
				 "field:__rel_loc u16 ports[];offset:22;size:4;signed:1;\n"
				 "field:bool done;offset:26;size:1;signed:0;\n"),
		0);
	raw_begin(700);
	bytes_u32(&raw, 3);
	bytes_u16(&raw, (uint16_t)-5);
	bytes_add(&raw, "tea\0", 4);
	bytes_u16(&raw, 5);
	bytes_u16(&raw, 6); /* with its NUL */
	bytes_u16(&raw, 7);
	bytes_u16(&raw, 5); /* half an element more */
	bytes_u8(&raw, 1);
	bytes_add(&raw, "gr\xc3\xbcn\0", 6);
	bytes_add(&raw, "\1\0\2\0\3", 5);
	expect_event("user_events", "order",
		"{\"count\":3,\"change\":-5,\"name\":\"tea\",\"product\":\"grün\",\"ports\":[1,2],\"done\":true}");
	for (size_t size = 8; size < raw.len; size++)
		assert_false(decode_part(size, &event));
	assert_int_equal(table.malformed, raw.len - 8);
	/* of no tracepoint that was added */
	raw.data[0]++;
	assert_false(user_event_table_has(&table, raw.data, raw.len));
	assert_false(decode_part(raw.len, &event));
	assert_int_equal(table.malformed, raw.len - 8);
	assert_false(user_event_table_has(&table, raw.data, 1));
}

static void test_tracepoints(void **state)
{
	(void)state;
	assert_int_equal(add(1, "a", NULL, ""), 0);
	assert_int_equal(add(1, "b", NULL, ""), -EEXIST);
	/* EventHeader's fields, but not its name; and the other way round */
	assert_int_equal(add(2, "c", NULL, HEADER_FIELDS), 0);
	assert_int_equal(add(3, "d_L1K1", NULL, "field:u8 x;offset:8;size:1;signed:0;\n"), 0);
	assert_int_equal(vec_last(&table.tracepoints)->kind, USER_TRACEPOINT_PLAIN);
	assert_int_equal(add(4, "Spoor_L1K1", NULL, HEADER_FIELDS), 0);
	assert_string_equal(trace_text(&trace, vec_last(&table.tracepoints)->provider),
		"Spoor (of a program)");
	for (unsigned i = table.tracepoints.count; i < USER_TRACEPOINTS_MAX; i++)
		assert_non_null(vec_push(&table.tracepoints));
	assert_int_equal(add(5, "e", NULL, ""), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_header_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header_nested, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header_extensions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header_broken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header_layouts, setup, teardown),
		cmocka_unit_test(test_names),
		cmocka_unit_test_setup_teardown(test_dotnet, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dotnet_runtime, setup, teardown),
		cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tracepoints, setup, teardown),
	};

	return cmocka_run_group_tests_name("user_event_table", tests, NULL, NULL);
}
