/*
 * demangle.c: C++, D, Swift and Rust names, old and new. A name that is not mangled is not changed, and
 * malicious names do no harm.
 */
#include "unit/test.h"

#include "base/bytes.h"
#include "code/demangle.h"

static const struct {
	const char *mangled;
	const char *readable; /* NULL: not a mangled name */
} names[] = {
	{ "_ZN4llvm5Value7getTypeEv", "llvm::Value::getType()" },
	{ "_Z3fooi", "foo(int)" },
	{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
		"std::vector<int, std::allocator<int> >::push_back(int const&)" },
	{ "_Z3foov.isra.0", "foo() [clone .isra.0]" },
	{ "_Z3foov.cold", "foo() [clone .cold]" },
	{ "_ZTv0_n24_N3FooD0Ev", "virtual thunk to Foo::~Foo()" },
	{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
	{ "_RNvC6my_app4main", "my_app::main" },
	{ "_D3std5stdio7writelnFAyaZv", "std.stdio.writeln(immutable(char)[])" },
	{ "_D4shop7Pricing4burnMFNaNbiZi", "shop.Pricing.burn(int)" },
	{ "_Dmain", "D main" },
	{ "_DYNAMIC", NULL },
	{ "_D1", NULL },
	{ "malloc", NULL },
	{ "_start", NULL },
	{ "__libc_start_main", NULL },
	{ "main.cold", NULL },
	{ "_Z", NULL },
	{ "_ZZZ", NULL },
	{ "", NULL },
};

static void test_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct bytes out = { 0 };
		bool readable = demangle(names[i].mangled, strlen(names[i].mangled), &out);
		assert_int_equal(readable, names[i].readable != NULL);
		assert_string_equal(bytes_z(&out), names[i].readable ? names[i].readable : "");
		bytes_done(&out);
	}
}

static void test_limits(void **state)
{
	static char name[DEMANGLE_INPUT_MAX + 2];
	struct bytes out = { 0 };

	(void)state;
	/* Pointers to pointers to pointers, and a name beyond the limit. */
	memcpy(name, "_Z1f", 4);
	memset(name + 4, 'P', DEMANGLE_INPUT_MAX - 4);
	name[DEMANGLE_INPUT_MAX - 1] = 'i';
	(void)demangle(name, DEMANGLE_INPUT_MAX, &out);
	assert_true(out.len <= DEMANGLE_OUTPUT_MAX + 3);
	bytes_reset(&out);
	assert_false(demangle(name, DEMANGLE_INPUT_MAX + 1, &out));
	assert_int_equal(out.len, 0);
	bytes_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests_name("demangle", tests, NULL, NULL);
}
