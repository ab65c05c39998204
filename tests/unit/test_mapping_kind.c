/* The kind of a mapping, by its name. */
#include "unit/test.h"

#include "code/mapping_kind.h"

static void test_kinds(void **state)
{
	static const struct {
		const char *path;
		enum mapping_kind kind;
	} cases[] = {
		{ "", MAPPING_JIT },
		{ "//anon", MAPPING_JIT },
		{ "[anon:.NET]", MAPPING_JIT },
		{ "[anon]", MAPPING_JIT },
		{ "[heap]", MAPPING_JIT },
		{ "/dev/zero (deleted)", MAPPING_JIT },
		{ "/memfd:doublemapper (deleted)", MAPPING_JIT },
		{ "/memfd:doublemapper", MAPPING_JIT },
		{ "/memfd:other.dll (deleted)", MAPPING_JIT },
		{ "memfd:doublemapper", MAPPING_JIT },
		{ "[stack]", MAPPING_STACK },
		{ "[vdso]", MAPPING_VDSO },
		{ "vmlinux", MAPPING_KERNEL },
		{ "[kernel.kallsyms]_text", MAPPING_KERNEL },
		{ "[kernel]", MAPPING_KERNEL },
		{ "/boot/vmlinux", MAPPING_NATIVE }, /* a file that a program mapped */
		{ "/app/Shop.dll", MAPPING_MANAGED_IMAGE },
		{ "/app/shop.DLL", MAPPING_MANAGED_IMAGE },
		{ "/app/Shop.dll (deleted)", MAPPING_MANAGED_IMAGE },
		{ "C:\\app\\Shop.exe", MAPPING_MANAGED_IMAGE },
		{ "/app/Shop", MAPPING_NATIVE },
		{ "/lib/libc.so.6", MAPPING_NATIVE },
		{ "/lib/libc.so.6 (deleted)", MAPPING_NATIVE },
		{ "/app/dll", MAPPING_NATIVE },
		{ "dll", MAPPING_NATIVE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (mapping_kind_of(cases[i].path) != cases[i].kind)
			print_error("'%s'\n", cases[i].path);
		assert_int_equal(mapping_kind_of(cases[i].path), cases[i].kind);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests_name("mapping_kind", tests, NULL, NULL);
}
