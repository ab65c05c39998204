/* text.c: escapes foreign text, and formats and parses numbers, durations and patterns. */
#include "unit/test.h"

#include <math.h>

#include "base/bytes.h"
#include "base/text.h"

static void test_shell_word(void **state)
{
	static const struct {
		const char *word;
		const char *text;
	} cases[] = {
		{ "app.nettrace", "app.nettrace" }, { "a b.nettrace", "'a b.nettrace'" },
		{ "it's", "'it'\\''s'" }, { "List<int>", "'List<int>'" },
		{ "-x.nettrace", "./-x.nettrace" }, { "-a b", "./'-a b'" }, { "", "''" },
		{ "a\nb", "'a\\nb'" }, /* different from the shell's escape, but harmless */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bytes out = { 0 };
		text_add_shell_word(&out, cases[i].word);
		assert_string_equal(bytes_z(&out), cases[i].text);
		bytes_done(&out);
	}
}

static void test_safe(void **state)
{
	static const struct {
		const char *raw;
		const char *safe;
	} cases[] = {
		{ "plain", "plain" },
		{ "two\nlines\tand\rmore", "two\\nlines\\tand\\rmore" },
		{ "\x1b[31mred\x07", "\\x1b[31mred\\x07" },
		{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f" },
		{ "broken \xff\xc3", "broken \xef\xbf\xbd\xef\xbf\xbd" },
		{ "overlong \xc0\xaf", "overlong \xef\xbf\xbd\xef\xbf\xbd" },
		{ "surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "turned \xe2\x80\xae round", "turned \\u202e round" },
		{ "c1 \xc2\x9b \xc2\x80 \xc2\x9f del \x7f", "c1 \\x9b \\x80 \\x9f del \\x7f" },
		{ "a bare c1 byte \x9b", "a bare c1 byte \xef\xbf\xbd" },
		{ "isolates \xe2\x81\xa6 \xe2\x81\xa9 marks \xd8\x9c \xe2\x80\x8f",
			"isolates \\u2066 \\u2069 marks \\u061c \\u200f" },
		{ "one cell\r\n\tof a table\xe2\x80\xa8", "one cell\\r\\n\\tof a table\\u2028" },
	};
	char out[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text_make_safe(cases[i].raw, strlen(cases[i].raw), out, sizeof(out));
		assert_string_equal(out, cases[i].safe);
	}
	/* not cut inside a character */
	assert_int_equal(text_make_safe("gr\xc3\xbc\xc3\x9f", 6, out, 5), 4);
	assert_string_equal(out, "gr\xc3\xbc");
}

static void test_url(void **state)
{
	static const char *const urls[][2] = {
		{ "https://a.example/b", "https://a.example/b" },
		{ "https://me:secret@a.example:80/b", "https://a.example:80/b" },
		{ "http://me:se@cr/et@a.example", "http://a.example" },
		{ "me:secret@a.example", "a.example" },
		{ "me:x://y@a\x1b", "a\\x1b" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct bytes out = { 0 };
		text_add_url(&out, urls[i][0], strlen(urls[i][0]));
		assert_string_equal(bytes_z(&out), urls[i][1]);
		bytes_done(&out);
	}
}

static void test_utf16_roundtrip(void **state)
{
	static const char text[] = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\xbe z";
	struct bytes wide = { 0 };
	struct bytes back = { 0 };

	(void)state;
	bytes_utf16z(&wide, text, sizeof(text) - 1, 1000);
	assert_int_equal(wide.len, 2 * 8);
	text_add_utf16(&back, wide.data, wide.len / 2 - 1);
	assert_string_equal(bytes_z(&back), text);
	bytes_reset(&back);
	text_add_utf16(&back, (const uint8_t *)"\x3d\xd8", 1); /* a lone surrogate */
	assert_string_equal(bytes_z(&back), "\xef\xbf\xbd");
	bytes_reset(&wide);
	bytes_utf16z(&wide, text, sizeof(text) - 1, 4); /* the pair does not fit whole */
	assert_int_equal(wide.len, 2 * 4);
	bytes_done(&wide);
	bytes_done(&back);
}

/*
 * The text of any number reads back as the same number. For numbers of a usual size no shorter
 * text does.
 */
static void test_floats(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = { { 0, "0" }, { -0.0, "-0" }, { 0.1, "0.1" }, { 12345678900, "12345678900" },
		{ 1e15, "1000000000000000" }, { -9007199254740991, "-9007199254740991" },
		{ 4e16, "40000000000000000" }, { -1e20, "-100000000000000000000" },
		{ 1e21, "1e+21" }, { 1e300, "1e+300" }, { 1.0 / 3, "0.3333333333333333" },
		{ 5e-324, "4.94065645841247e-324" }, { 1795250400.123456, "1795250400.123456" },
		{ INFINITY, "Infinity" }, { -INFINITY, "-Infinity" }, { NAN, "NaN" } };
	struct bytes out = { 0 };
	uint64_t bits = 88172645463325252;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text_add_f64(&out, cases[i].value);
		assert_string_equal(bytes_z(&out), cases[i].text);
		bytes_reset(&out);
	}
	text_add_f32(&out, 0.1f);
	bytes_text(&out, " ");
	text_add_f32(&out, 16777216);
	bytes_text(&out, " ");
	text_add_f32(&out, 1e15f);
	bytes_text(&out, " ");
	text_add_f32(&out, 3.4028235e38f);
	assert_string_equal(bytes_z(&out), "0.1 16777216 999999986991104 3.4028235e+38");
	for (unsigned i = 0; i < 100000; i++) {
		double value;
		float single;
		bits ^= bits << 13; /* xorshift: the same numbers in each run */
		bits ^= bits >> 7;
		bits ^= bits << 17;
		memcpy(&value, &bits, sizeof(value));
		memcpy(&single, &bits, sizeof(single));
		bytes_reset(&out);
		text_add_f64(&out, value);
		assert_true(isnan(value) || strtod(bytes_z(&out), NULL) == value);
		bytes_reset(&out);
		text_add_f32(&out, single);
		assert_true(isnan(single) || strtof(bytes_z(&out), NULL) == single);
	}
	bytes_done(&out);
}

static void test_things(void **state)
{
	struct bytes out = { 0 };

	(void)state;
	text_add_things(&out, 0, "event, ", "events, ");
	text_add_things(&out, 1, "event, ", "events, ");
	text_add_things(&out, 12345, "event", "events");
	char room[TEXT_PUT_ROOM];
	assert_string_equal(text_put_things(room, 1, "process", "processes"), "1 process");
	assert_string_equal(text_put_things(room, 0, "process", "processes"), "0 processes");
	assert_string_equal(text_put_things(room, 1000, "process", "processes"), "1,000 processes");
	assert_string_equal(
		text_put_things(room, 2, "",
			"a phrase that is much longer than the room for a number and its noun"),
		"2 a phrase that is much longer than the room for a number and i");
	assert_string_equal(bytes_z(&out), "0 events, 1 event, 12,345 events");
	bytes_done(&out);
}

static void test_numbers(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} durations[] = { { 12.1, "12.1 s" }, { 0.00109, "1.09 ms" }, { 0.5, "500 ms" },
		{ 0, "0.00 s" }, { 0.9999, "1.00 s" }, { 300, "5.00 min" }, { 2.5e-6, "2.50 us" },
		{ 99.96, "100 s" } };
	static const struct {
		uint64_t size;
		const char *text;
	} sizes[] = { { 0, "0 B" }, { 999, "999 B" }, { 2350000, "2.35 MB" }, { 340000, "340 kB" },
		{ 999999, "1.00 MB" }, { 4000000000, "4.00 GB" } };
	struct bytes out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		bytes_reset(&out);
		text_add_duration(&out, durations[i].seconds);
		assert_string_equal(bytes_z(&out), durations[i].text);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		bytes_reset(&out);
		text_add_size(&out, sizes[i].size);
		assert_string_equal(bytes_z(&out), sizes[i].text);
	}
	bytes_reset(&out);
	text_add_count(&out, 1234567);
	assert_string_equal(bytes_z(&out), "1,234,567");
	bytes_done(&out);
}

static void test_parse_duration(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms; /* 0: refused */
	} cases[] = { { "30s", 30000 }, { "500ms", 500 }, { "5m", 300000 }, { "2h", 7200000 },
		{ "7", 7000 }, { "0.25", 250 }, { "00:01:30", 90000 }, { "1:00:00:00", 86400000 },
		{ "01:02:03", 3723000 }, { "0", 0 }, { "", 0 }, { "abc", 0 }, { "-5", 0 },
		{ "5x", 0 }, { "1e30", 0 }, { "inf", 0 }, { "0x10", 0 }, { "00:61:00", 0 },
		{ "1:2", 0 }, { "::", 0 }, { "nan", 0 }, { " 5", 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 0;
		assert_int_equal(text_parse_duration(cases[i].text, &ns), cases[i].ms != 0);
		assert_int_equal(ns, cases[i].ms * 1000000);
	}
}

static void test_patterns(void **state)
{
	(void)state;
	assert_true(text_glob("shop*", "shop-api"));
	assert_true(text_glob("*.dll", "a.b.dll"));
	assert_true(text_glob("a?c", "abc"));
	assert_false(text_glob("a?c", "ac"));
	assert_false(text_glob("", "x"));
	assert_true(text_glob("*", ""));
	assert_int_equal(text_distance("record", "recrod"), 2);
	assert_int_equal(text_distance("flame", "flame"), 0);
	assert_int_equal(text_distance("", "abc"), 3);
}

static void test_xml(void **state)
{
	static const char raw[] = "List<T> & \"x\" \x01 \xff";
	struct bytes out = { 0 };

	(void)state;
	text_add_xml(&out, raw, sizeof(raw) - 1);
	assert_string_equal(bytes_z(&out),
		"List&lt;T&gt; &amp; &quot;x&quot; \xef\xbf\xbd \xef\xbf\xbd");
	bytes_done(&out);
}

static void test_parse_size(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = { { "1", 1 }, { "4096", 4096 }, { "64M", 64000000 }, { "64m", 64000000 },
		{ "1.5 GB", 1500000000 }, { "512KiB", 524288 }, { "2k", 2000 }, { "2K", 2000 },
		{ "1Mi", 1048576 }, { "3T", UINT64_C(3000000000000) }, { "10B", 10 } };
	static const char *const bad[] = { "", "M", "-1", "0", "0.5", "64X", "64MBs", "64 M B",
		"0x40", "1e30", "inf", "nan", "+5", " 5" };
	uint64_t bytes = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(text_parse_size(good[i].text, &bytes));
		assert_int_equal(bytes, good[i].bytes);
	}
	bytes = 77;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(text_parse_size(bad[i], &bytes));
	assert_int_equal(bytes, 77);
}

static void test_begins_and_ends(void **state)
{
	(void)state;
	assert_true(text_begins_with("libc.so.6", "libc."));
	assert_true(text_begins_with("libc", ""));
	assert_false(text_begins_with("lib", "libc"));
	assert_false(text_begins_with("Libc", "lib"));
	assert_true(text_ends_with("a.dll", ".dll"));
	assert_false(text_ends_with("a.DLL", ".dll"));
	assert_false(text_ends_with("ll", ".dll"));
	assert_true(text_ends_with_any_case("a.DLL (deleted)", 5, ".dll"));
	assert_false(text_ends_with_any_case("a.DLL (deleted)", 4, ".dll"));
	assert_false(text_ends_with_any_case("ll", 2, ".dll"));
	assert_string_equal(text_base_name("/usr/lib/libc.so.6"), "libc.so.6");
	assert_string_equal(text_base_name("libc.so.6"), "libc.so.6");
	assert_string_equal(text_base_name("/usr/lib/"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_size),
		cmocka_unit_test(test_shell_word),
		cmocka_unit_test(test_safe),
		cmocka_unit_test(test_url),
		cmocka_unit_test(test_utf16_roundtrip),
		cmocka_unit_test(test_floats),
		cmocka_unit_test(test_things),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_parse_duration),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_xml),
		cmocka_unit_test(test_begins_and_ends),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
