/* usdt_sites.c and usdt_probe.c: samples as the program writes them become payloads; damaged ones are refused. */
#include "unit/test.h"

#include "base/bytes.h"
#include "perf/usdt_probe.h"
#include "recording/usdt_sites.h"
#include "trace/schema.h"

#define MARK 0xffffu

/* Appends a sample: `count` values, then texts. */
static void hit_put(struct bytes *raw, uint32_t number, unsigned count, uint64_t unreadable,
	uint64_t texts, const uint64_t *values, const char *text, size_t text_size)
{
	bytes_u64(raw, MARK | (uint64_t)count << 16 | (uint64_t)number << 32);
	bytes_u64(raw, unreadable);
	bytes_u64(raw, texts);
	bytes_u64(raw, count * 8 + text_size);
	for (unsigned i = 0; i < count; i++)
		bytes_u64(raw, values[i]);
	if (text_size)
		bytes_add(raw, text, text_size);
}

static bool decode(struct usdt_sites *sites, const struct bytes *raw, struct bytes *payload,
	uint32_t *ret_schema, unsigned *ret_unreadable)
{
	const struct usdt_raw sample = { .bytes = raw->data, .size = raw->len };

	return usdt_sites_decode(sites, &sample, payload, ret_schema, ret_unreadable);
}

static void sites_fill(struct usdt_sites *sites)
{
	static const uint8_t arguments[] = { FIELD_I32, FIELD_U64 | USDT_ARGUMENT_TEXT,
		FIELD_U64 | USDT_ARGUMENT_TEXT };

	for (size_t i = 0; i < sizeof(arguments); i++)
		assert_true(vec_add(&sites->arguments, arguments[i]));
	assert_true(vec_add(&sites->rows,
		((struct usdt_row){
			.argument_count = 0, .schema_index = 1, .schema_unreadable = 2 })));
	assert_true(vec_add(&sites->rows,
		((struct usdt_row){
			.argument_count = 3, .schema_index = 3, .schema_unreadable = 4 })));
}

static void test_payload(void **state)
{
	const uint64_t values[] = { (uint64_t)-7, 0x7f0012345678, 0x7f0012345680 };
	struct usdt_sites sites = { .absent = { .fd = -1 } };
	struct bytes raw = { 0 };
	struct bytes payload = { 0 };
	struct bytes wanted = { 0 };
	uint32_t schema = 0;
	unsigned unreadable = 9;

	(void)state;
	sites_fill(&sites);
	hit_put(&raw, 1, 3, 0, 6, values, "tea\0\x01z", 7);
	assert_true(decode(&sites, &raw, &payload, &schema, &unreadable));
	assert_int_equal(schema, 3);
	assert_int_equal(unreadable, 0);
	bytes_u32(&wanted, (uint32_t)-7);
	bytes_u64(&wanted, values[1]);
	bytes_add(&wanted, "t\0e\0a\0\0", 8);
	bytes_u64(&wanted, values[2]);
	bytes_add(&wanted, "\x01\0z\0\0", 6); /* control characters are part of a text */
	assert_int_equal(payload.len, wanted.len);
	assert_memory_equal(payload.data, wanted.data, wanted.len);

	/* An argument that could not be read is named, and a text of a process that has ended. */
	bytes_reset(&raw);
	bytes_reset(&payload);
	hit_put(&raw, 1, 3, 5, 0, values, NULL, 0);
	assert_true(decode(&sites, &raw, &payload, &schema, &unreadable));
	assert_int_equal(schema, 4);
	assert_int_equal(unreadable, 3);
	static const char names[] = "a\0r\0g\0"
				    "0\0 \0a\0r\0g\0"
				    "1\0_\0t\0e\0x\0t\0 \0a\0r\0g\0"
				    "2\0\0";
	assert_true(payload.len > sizeof(names));
	assert_memory_equal(payload.data + payload.len - sizeof(names), names, sizeof(names));

	/* No arguments. */
	bytes_reset(&raw);
	bytes_reset(&payload);
	hit_put(&raw, 0, 0, 0, 0, NULL, NULL, 0);
	assert_true(decode(&sites, &raw, &payload, &schema, &unreadable));
	assert_int_equal(schema, 1);
	assert_int_equal(payload.len, 0);
	bytes_done(&raw);
	bytes_done(&payload);
	bytes_done(&wanted);
	usdt_sites_done(&sites);
}

static void test_refused(void **state)
{
	const uint64_t values[48] = { 1 };
	struct usdt_sites sites = { .absent = { .fd = -1 } };
	struct bytes raw = { 0 };
	struct bytes payload = { 0 };
	uint32_t schema;
	unsigned unreadable;
	struct usdt_hit hit;

	(void)state;
	sites_fill(&sites);
	/* an unknown site, and another count of arguments */
	hit_put(&raw, 2, 3, 0, 0, values, NULL, 0);
	assert_false(decode(&sites, &raw, &payload, &schema, &unreadable));
	bytes_reset(&raw);
	hit_put(&raw, 1, 2, 0, 0, values, NULL, 0);
	assert_false(decode(&sites, &raw, &payload, &schema, &unreadable));
	/* texts that are said to be there and are not: empty ones */
	bytes_reset(&raw);
	hit_put(&raw, 1, 3, 0, 6, values, "no end", 6);
	assert_true(decode(&sites, &raw, &payload, &schema, &unreadable));
	/* each prefix */
	for (size_t len = 0; len < raw.len; len++) {
		uint8_t *copy = malloc(len + 1);
		memcpy(copy, raw.data, len);
		assert_false(usdt_hit_read(copy, len, &hit));
		free(copy);
	}
	/* the data of a tracepoint, more values than there can be, fewer bytes than the values take */
	raw.data[0] = 5;
	assert_false(usdt_hit_read(raw.data, raw.len, &hit));
	bytes_reset(&raw);
	hit_put(&raw, 1, 49, 0, 0, (const uint64_t[49]){ 0 }, NULL, 0);
	assert_false(usdt_hit_read(raw.data, raw.len, &hit));
	bytes_reset(&raw);
	hit_put(&raw, 1, 3, 0, 0, values, NULL, 0);
	raw.data[24] = 23;
	assert_false(usdt_hit_read(raw.data, raw.len, &hit));
	bytes_done(&raw);
	bytes_done(&payload);
	usdt_sites_done(&sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_payload),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
