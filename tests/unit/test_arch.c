/*
 * arch.c: recognizes stubs by their bytes (copied from running .NET 10 processes), and separates
 * user from kernel addresses.
 */
#include "unit/test.h"

#include "code/arch.h"

struct sample {
	const char *hex;
	size_t at; /* the sampled instruction */
	size_t begin;
	const char *kind; /* NULL: not a stub */
};

static const struct sample samples[] = {
	{ "488b075249baa8302f4955560000488bd048c1e80c4803c2", 0, 0, "interface resolve stub" },
	{ "488b075249baa8302f4955560000488bd048c1e80c4803c2", 17, 0, "interface resolve stub" },
	{ "48b8388efd257f7f00004839079048b840c62a257f7f00000f8500000000ffe0", 16, 0,
		"interface dispatch stub" },
	{ "488bc44989fb4889f74d8b53204983c32041ffe201800080", 20, 0, "delegate shuffle thunk" },
	{ "ff25fa3f00004c8b15fb3f0000ff25fd3f000090662e0f1fff25fa3f00004c8b15fb3f0000ff25fd3f0000",
		24, 24, "method precode" },
	{ "4c8b15f93f0000ff25fb3f0000906690ff25fa3f00004c8b", 7, 0, "stub precode" },
	{ "488b05f93f000066ff087406ff25f93f0000ff25fb3f0000", 10, 0, "call counting stub" },
	{ "9048b800112233445566775048b80011223344556677ffe0", 11, 1, "interface lookup stub" },
	{ "488b07488b4040ff606838070000000000", 7, 0, "virtual call stub" },
	{ "4883c70848b87839cd84087f0000ffe0", 14, 0, "unboxing stub" },
	{ "48be980aad84087f000048b850139984087f0000ffe00000", 20, 0, "instantiating stub" },
	{ "4d89c14989c84889d14889f248bef03ad984087f000048b85031cd84087f0000ffe0", 2, 0,
		"instantiating stub" },
	{ "4889fe48bfd8130d85087f000048b8001e0285087f0000ffe0", 23, 0, "instantiating stub" },
	{ "48bf0011223344556677e9699e567ecccc", 10, 0, "ReadyToRun helper" },
	{ "c3662e0f1f8400000000000f1f4400004889374989f848b8ec0f2985f37e000048c1ef16803c0700", 32,
		16, "write barrier" },
	{ "4889370f1f0048b818100048647f00004839c6724b9048b8", 20, 0, "write barrier" },
	{ "554889e54883ec20488b4710c9c3cccccccccccccccccccc", 8, 0, NULL },
	/* After the end of a stub there is no stub. */
	{ "4883c70848b87839cd84087f0000ffe0554889e5", 16, 0, NULL },
};

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t len = 0;

	for (; hex[0] && hex[1]; hex += 2) {
		unsigned value;
		assert_int_equal(sscanf(hex, "%2x", &value), 1);
		out[len++] = (uint8_t)value;
	}
	return len;
}

static void test_stubs(void **state)
{
	const struct arch *arch = arch_by_name("x86_64");

	(void)state;
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		uint8_t code[128];
		size_t begin = 99;
		size_t size = from_hex(samples[i].hex, code);
		const struct arch_stub *stub =
			arch_find_stub(arch, code, size, samples[i].at, &begin);
		if (!samples[i].kind) {
			assert_null(stub);
			continue;
		}
		assert_non_null(stub);
		assert_string_equal(stub->kind, samples[i].kind);
		assert_int_equal(begin, samples[i].begin);
	}
}

/*
 * Each pattern finds a stub of its kind in its own bytes, is not longer than the stub, and fits
 * into the search window.
 */
static void test_table(void **state)
{
	const struct arch *arch = arch_by_name("x86_64");

	(void)state;
	assert_true(arch->stub_count > 0);
	for (size_t i = 0; i < arch->stub_count; i++) {
		const struct arch_stub *stub = &arch->stubs[i];
		size_t begin;
		unsigned known = 0;
		for (unsigned b = 0; b < stub->len; b++)
			known += stub->mask[b] == 0xff;
		assert_true(stub->len <= sizeof(stub->bytes) && stub->len <= stub->size_bytes);
		assert_true(stub->size_bytes <= arch->stub_search_back_bytes + 1u);
		assert_true(known >= 3);
		const struct arch_stub *found =
			arch_find_stub(arch, stub->bytes, sizeof(stub->bytes), 0, &begin);
		assert_non_null(found);
		assert_string_equal(found->kind, stub->kind);
	}
}

static void test_names(void **state)
{
	(void)state;
	assert_true(arch_by_name("x86_64")->kernel_begin == UINT64_C(0xffff800000000000));
	assert_string_equal(arch_by_name("aarch64")->name, "aarch64");
	assert_int_equal(arch_by_name("vax")->stub_count, 0);
	assert_true(arch_by_name("vax")->kernel_begin > UINT64_C(0x7fffffffffff));
	assert_non_null(arch_here());
}

static void test_calls(void **state)
{
	static const struct {
		const char *arch;
		const char *hex;
		bool is_call;
		int64_t offset;
	} calls[] = {
		{ "x86_64", "90e810000000", true, 16 },
		{ "x86_64", "e8f0ffffff", true, -16 },
		{ "x86_64", "90ffd0", true, 0 },         /* call rax */
		{ "x86_64", "41ffd2", true, 0 },         /* call r10 */
		{ "x86_64", "ff5018", true, 0 },         /* call [rax+0x18] */
		{ "x86_64", "ff9080000000", true, 0 },   /* call [rax+0x80] */
		{ "x86_64", "ff1578563412", true, 0 },   /* call [rip+...] */
		{ "x86_64", "ff542408", true, 0 },       /* call [rsp+8] */
		{ "x86_64", "ff942488000000", true, 0 }, /* call [rsp+0x88] */
		{ "x86_64", "ffe0", false, 0 },          /* jmp rax */
		{ "x86_64", "488b07", false, 0 },
		{ "x86_64", "ff", false, 0 },
		{ "x86_64", "", false, 0 },
		{ "aarch64", "04000094", true, 12 }, /* bl, to 4 instructions later */
		{ "aarch64", "ffffff97", true, -8 },
		{ "aarch64", "00013fd6", true, 0 },  /* blr x8 */
		{ "aarch64", "00011fd6", false, 0 }, /* br x8 */
		{ "aarch64", "000094", false, 0 },
		{ "vax", "e810000000", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		uint8_t code[32];
		int64_t offset = 0;
		size_t size = from_hex(calls[i].hex, code);
		assert_int_equal(arch_ends_with_call(arch_by_name(calls[i].arch), code, size,
					 &offset),
			calls[i].is_call);
		assert_int_equal(offset, calls[i].offset);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stubs),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests_name("arch", tests, NULL, NULL);
}
