/* clr_frame.c, and functions with their unwind information (clr_code.c), in a made-up process of each .NET version. */
#include "code/clr_frame.h"

#include "code/clr_code.h"
#include "code/clr_image.h"
#include "code/clr_unwind.h"
#include "unit/clr_process.h"
#include "unit/test.h"

#define TINY TEST_DATA "/pe/tiny_r2r.dll"

#define RSP 7u

/* Where the test puts unwind information, relative to the section's begin. */
#define INFO_METHOD  0x800u
#define INFO_FUNCLET 0x840u
#define TABLE        0x900u
#define HEADERS      0x300u /* between the code of the two methods */

struct opened {
	struct clr_process process;
	struct clr_images images;
	struct clr_names *names;
};

static void put_bytes(struct opened *o, uint64_t place, const char *bytes, size_t size)
{
	memcpy(o->process.block + place, bytes, size);
}

#define PUT(o, place, text) put_bytes((o), (place), (text), sizeof(text) - 1)

/* The method: push rax; call; add rsp, 8; ret. Its funclet: push rbp; push rbx; sub rsp, 24. */
static void open_it(struct opened *o, enum clr_version version)
{
	*o = (struct opened){ .names = NULL };
	clr_process_init(&o->process, version, TINY);
	uint64_t unwinds = CLR_HEADER + o->process.at.header_unwinds;
	clr_process_put(&o->process, unwinds + 8, INFO_METHOD, 4);
	clr_process_put(&o->process, unwinds + 20, INFO_FUNCLET, 4);
	PUT(o, CLR_CODE + INFO_METHOD, "\x19\x01\x01\x00\x01\x02");
	PUT(o, CLR_CODE + INFO_FUNCLET, "\x19\x06\x03\x00\x06\x22\x02\x30\x01\x50");
	PUT(o, CLR_METHOD_CODE, "\x50\xe8\x00\x00\x00\x00\x48\x83\xc4\x08\xc3");
	PUT(o, CLR_METHOD_CODE + 16, "\x55\x53\x48\x83\xec\x18\x48\x8d\x6c\x24\x20\x90\x90");
	assert_int_equal(clr_process_open(&o->process, &o->images, &o->names), 0);
}

static void close_it(struct opened *o)
{
	clr_names_close(o->names);
	clr_images_done(&o->images);
	clr_process_done(&o->process);
}

static enum clr_frame find(struct opened *o, uint64_t place, bool exact, struct unwind_rules *ret)
{
	bool lasts = false;
	enum clr_frame found =
		clr_frame_find(clr_names_code(o->names), CLR_BASE + place, exact, ret, &lasts);

	if (found == CLR_FRAME_RULES)
		assert_true(lasts);
	return found;
}

static void expect(struct opened *o, uint64_t place, bool exact, uint32_t number, int64_t offset)
{
	struct unwind_rules rules;

	assert_int_equal(find(o, place, exact, &rules), CLR_FRAME_RULES);
	assert_int_equal(rules.cfa_register, number);
	assert_int_equal(rules.cfa.value, offset);
}

static void expect_misses(struct opened *o, uint64_t place, bool exact, bool expected)
{
	bool lasts;

	assert_int_equal(clr_frame_misses_caller(clr_names_code(o->names), CLR_BASE + place, exact,
				 &lasts),
		expected);
}

static void check_version(enum clr_version version)
{
	struct unwind_rules rules;
	struct opened o;

	open_it(&o, version);
	expect(&o, CLR_METHOD_CODE, true, RSP, 8);
	expect(&o, CLR_METHOD_CODE + 1, true, RSP, 16);
	expect(&o, CLR_METHOD_CODE + 5, false, RSP, 16); /* within the call */
	expect(&o, CLR_METHOD_CODE + 6, true, RSP, 16);
	expect(&o, CLR_METHOD_CODE + 10, true, RSP, 8); /* behind add rsp, 8 */
	expect_misses(&o, CLR_METHOD_CODE + 5, false, true);
	/* the funclet, which has a frame pointer from its fourth instruction on */
	expect(&o, CLR_METHOD_CODE + 16, true, RSP, 8);
	expect(&o, CLR_METHOD_CODE + 17, true, RSP, 16);
	expect(&o, CLR_METHOD_CODE + 16 + 11, true, RSP, 48);
	expect_misses(&o, CLR_METHOD_CODE + 16, true, true);
	expect_misses(&o, CLR_METHOD_CODE + 16 + 6, true, true);
	expect_misses(&o, CLR_METHOD_CODE + 16 + 11, true, false);
	expect_misses(&o, CLR_METHOD_CODE + 16 + 0x120, false, false);
	/* before, between and behind the methods; the dynamic one has no valid information */
	assert_int_equal(find(&o, CLR_METHOD_CODE - 1, false, &rules), CLR_FRAME_NONE);
	assert_int_equal(find(&o, CLR_METHOD_CODE_END, false, &rules), CLR_FRAME_NONE);
	assert_int_equal(find(&o, CLR_TEXT, false, &rules), CLR_FRAME_NONE);
	assert_int_equal(find(&o, CLR_DYNAMIC_CODE + 20, false, &rules), CLR_FRAME_UNKNOWN);
	expect_misses(&o, CLR_DYNAMIC_CODE + 20, false, false);
	expect_misses(&o, CLR_TEXT, false, false);
	/* the block was freed */
	clr_process_put(&o.process, CLR_METHOD_CODE - 8, 3, 8);
	assert_int_equal(find(&o, CLR_METHOD_CODE, true, &rules), CLR_FRAME_NONE);
	close_it(&o);
}

static void test_jit(void **state)
{
	(void)state;
	check_version(CLR_VERSION_10);
	check_version(CLR_VERSION_9);
	check_version(CLR_VERSION_8);
}

/* Code that may be freed does not last. */
static void test_collectible(void **state)
{
	struct unwind_rules rules;
	struct opened o;
	bool lasts = true;

	(void)state;
	open_it(&o, CLR_VERSION_10);
	clr_process_put(&o.process, CLR_SECTION + o.process.at.section_flags, 3, 4);
	assert_int_equal(clr_frame_find(clr_names_code(o.names), CLR_BASE + CLR_METHOD_CODE + 1,
				 true, &rules, &lasts),
		CLR_FRAME_RULES);
	assert_false(lasts);
	close_it(&o);
}

/* A precompiled image: the section begins with its headers, which lead to the table of its functions. */
static void open_image(struct opened *o)
{
	struct clr_process *p = &o->process;

	open_it(o, CLR_VERSION_9); /* whose description does not know these tables */
	clr_process_put(p, CLR_SECTION + p->at.section_flags, 0, 4);
	clr_process_pointer(p, CLR_SECTION + p->at.section_module, CLR_MODULE);
	PUT(o, CLR_CODE, "MZ");
	clr_process_put(p, CLR_CODE + 0x3c, HEADERS, 4);
	PUT(o, CLR_CODE + HEADERS, "PE\0\0");
	clr_process_put(p, CLR_CODE + HEADERS + 24, 0x20b, 2);
	clr_process_put(p, CLR_CODE + HEADERS + 24 + 108, 16, 4);
	clr_process_put(p, CLR_CODE + HEADERS + 24 + 112 + 24, TABLE, 4);
	clr_process_put(p, CLR_CODE + HEADERS + 24 + 112 + 28, 24, 4);
	static const uint32_t table[] = { 0x40, 0x50, INFO_METHOD, 0x50, 0x2a0, INFO_FUNCLET };
	for (unsigned i = 0; i < 6; i++)
		clr_process_put(p, CLR_CODE + TABLE + 4 * i, table[i], 4);
}

static void test_precompiled(void **state)
{
	struct unwind_rules rules;
	struct opened o;

	(void)state;
	open_image(&o);
	expect(&o, CLR_METHOD_CODE + 1, true, RSP, 16);
	expect(&o, CLR_METHOD_CODE + 16 + 11, true, RSP, 48);
	assert_int_equal(find(&o, CLR_METHOD_CODE - 1, false, &rules), CLR_FRAME_NONE);
	assert_int_equal(find(&o, CLR_METHOD_CODE_END, false, &rules), CLR_FRAME_NONE);
	/* an entry that refers to another one */
	clr_process_put(&o.process, CLR_CODE + TABLE + 8, INFO_METHOD | 1, 4);
	assert_int_equal(find(&o, CLR_METHOD_CODE + 1, true, &rules), CLR_FRAME_NONE);
	close_it(&o);
	/* headers of another kind */
	open_image(&o);
	clr_process_put(&o.process, CLR_CODE + HEADERS + 24, 0x10b, 2);
	assert_int_equal(find(&o, CLR_METHOD_CODE + 1, true, &rules), CLR_FRAME_NONE);
	close_it(&o);
	/* a table that is not mapped */
	open_image(&o);
	clr_process_put(&o.process, CLR_CODE + HEADERS + 24 + 112 + 24, 0x7fffffff, 4);
	assert_int_equal(find(&o, CLR_METHOD_CODE + 1, true, &rules), CLR_FRAME_NONE);
	close_it(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jit),
		cmocka_unit_test(test_collectible),
		cmocka_unit_test(test_precompiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
