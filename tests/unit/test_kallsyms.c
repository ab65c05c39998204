/*
 * kallsyms.c: reads the text of /proc/kallsyms and finds names. The stored form gives the same
 * table. Hidden addresses and broken data are different errors.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/input.h"
#include "code/kallsyms.h"

static const char text[] = "0000000000000000 A fixed_percpu_data\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000000 T startup_64\n"
			   "ffffffff81000040 t local_alias\n"
			   "ffffffff81000040 T __exported\n"
			   "ffffffff81000040 W weak_one\n"
			   "ffffffff81000100 T do_syscall_64\n"
			   "ffffffff81000180 t last_function\n"
			   "ffffffff810001c0 T _etext\n"
			   "ffffffff82000000 D some_data\n"
			   "ffffffffc0201000 t ext4_read\t[ext4]\n"
			   "ffffffffc0201080 t ext4_write\t[ext4]\n"
			   "ffffffffc0100000 t bpf_prog_abc\t[bpf]\n"
			   "not a line\n"
			   "ffffffffc0201100 t unfinished\t[ext4]";

static struct kallsyms *read_text(const char *t, int expected, struct diag *diag)
{
	struct kallsyms *k = NULL;
	struct input in;

	input_from_memory(&in, t, strlen(t));
	assert_int_equal(kallsyms_read(&in, &k, diag), expected);
	input_close(&in);
	return k;
}

static void assert_name(const struct kallsyms *k, uint64_t address, const char *name,
	const char *module, uint64_t begin, uint64_t end)
{
	struct kallsyms_hit hit;

	assert_true(kallsyms_find(k, address, &hit));
	assert_string_equal(hit.name, name);
	assert_string_equal(hit.module, module);
	assert_true(hit.begin == begin && hit.end == end);
}

static void check(const struct kallsyms *k)
{
	struct kallsyms_hit hit;
	struct kallsyms_range range;

	assert_name(k, UINT64_C(0xffffffff81000000), "startup_64", "", UINT64_C(0xffffffff81000000),
		UINT64_C(0xffffffff81000040));
	assert_name(k, UINT64_C(0xffffffff810000ff), "__exported", "", UINT64_C(0xffffffff81000040),
		UINT64_C(0xffffffff81000100));
	assert_name(k, UINT64_C(0xffffffff810001bf), "last_function", "",
		UINT64_C(0xffffffff81000180), UINT64_C(0xffffffff810001c0));
	assert_name(k, UINT64_C(0xffffffffc0201000), "ext4_read", "ext4",
		UINT64_C(0xffffffffc0201000), UINT64_C(0xffffffffc0201080));
	assert_name(k, UINT64_C(0xffffffffc0201fff), "unfinished", "ext4",
		UINT64_C(0xffffffffc0201100), UINT64_C(0xffffffffc0202000));
	assert_name(k, UINT64_C(0xffffffffc0100abc), "bpf_prog_abc", "bpf",
		UINT64_C(0xffffffffc0100000), UINT64_C(0xffffffffc0101000));
	/*
	 * Addresses after the kernel's text, in data, between modules, and before the first symbol.
	 */
	assert_false(kallsyms_find(k, UINT64_C(0xffffffff810001c0), &hit));
	assert_false(kallsyms_find(k, UINT64_C(0xffffffff82000000), &hit));
	assert_false(kallsyms_find(k, UINT64_C(0xffffffffc0101000), &hit));
	assert_false(kallsyms_find(k, UINT64_C(0xffffffffc0202000), &hit));
	assert_false(kallsyms_find(k, 0x1000, &hit));
	assert_false(kallsyms_find(k, UINT64_MAX, &hit));

	assert_true(kallsyms_range(k, 0, &range));
	assert_true(range.begin == UINT64_C(0xffffffff81000000) &&
		    range.end == UINT64_C(0xffffffff810001c0));
	assert_true(kallsyms_range(k, 1, &range));
	assert_string_equal(range.module, "bpf");
	assert_true(kallsyms_range(k, 2, &range));
	assert_string_equal(range.module, "ext4");
	assert_true(range.end == UINT64_C(0xffffffffc0202000));
	assert_false(kallsyms_range(k, 3, &range));
}

static void test_read(void **state)
{
	struct kallsyms *k = read_text(text, 0, NULL);

	(void)state;
	check(k);
	kallsyms_free(k);
}

static void test_save_and_load(void **state)
{
	struct kallsyms *k = read_text(text, 0, NULL);
	struct kallsyms *loaded = NULL;
	struct bytes form = { 0 };
	struct bytes again = { 0 };

	(void)state;
	kallsyms_save(k, &form);
	kallsyms_free(k);
	assert_false(form.failed);
	assert_int_equal(kallsyms_load(form.data, form.len, &loaded), 0);
	check(loaded);
	kallsyms_save(loaded, &again);
	assert_int_equal(again.len, form.len);
	assert_memory_equal(again.data, form.data, form.len);
	kallsyms_free(loaded);

	/* Every truncation and every changed byte is detected. */
	for (size_t len = 0; len < form.len; len++)
		assert_int_equal(kallsyms_load(form.data, len, &loaded), -EBADMSG);
	for (size_t i = 0; i < form.len; i++) {
		form.data[i] ^= 0x20;
		assert_int_equal(kallsyms_load(form.data, form.len, &loaded), -EBADMSG);
		form.data[i] ^= 0x20;
	}
	bytes_done(&form);
	bytes_done(&again);
}

static void test_refused(void **state)
{
	struct diag diag = { 0 };

	(void)state;
	read_text("0000000000000000 T _text\n0000000000000000 T main\n", -EACCES, &diag);
	assert_non_null(strstr(diag.text, "hides"));
	assert_true(*diag.remedy);
	read_text("", -ENODATA, NULL);
	read_text("ffffffff82000000 D some_data\n", -ENODATA, NULL);
	read_text("garbage\n\n\n \t[\n", -ENODATA, NULL);
}

/*
 * The running kernel, if it shows its addresses: each function is found at the address of its first
 * byte.
 */
static void test_this_kernel(void **state)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	struct kallsyms *k = NULL;
	struct input in;
	char line[512];
	unsigned long long address;
	char type;
	unsigned seen = 0;
	unsigned missed = 0;

	(void)state;
	if (!file || input_open(&in, "/proc/kallsyms", NULL) < 0) {
		print_message("skipped: no /proc/kallsyms\n");
		skip();
	}
	int error = kallsyms_read(&in, &k, NULL);
	input_close(&in);
	if (error) {
		fclose(file);
		print_message("skipped: the kernel hides its addresses (%d)\n", error);
		skip();
	}
	while (fgets(line, sizeof(line), file)) {
		struct kallsyms_hit hit;
		if (sscanf(line, "%llx %c", &address, &type) != 2 || (type != 'T' && type != 't'))
			continue;
		seen++;
		if (!kallsyms_find(k, address, &hit))
			missed++;
	}
	fclose(file);
	assert_true(seen > 10000);
	/* Symbols such as _etext mark a place and have no code. */
	assert_true(missed < 40);
	kallsyms_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_save_and_load),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_this_kernel),
	};

	return cmocka_run_group_tests_name("kallsyms", tests, NULL, NULL);
}
