/* clr.c: the runtime's method and module events, whole, cut at every byte, and written back. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "code/codemap.h"
#include "trace/clr.h"
#include "trace/trace.h"

#define S UINT64_C(1000000000)

struct fields {
	uint64_t method_id;
	uint64_t begin;
	uint32_t size;
	uint32_t flags;
	const char *name;
	unsigned version;
};

static void put_method(struct bytes *out, const struct fields *f)
{
	bytes_u64(out, f->method_id);
	bytes_u64(out, 0x77);
	bytes_u64(out, f->begin);
	bytes_u32(out, f->size);
	bytes_u32(out, 0x06000001);
	bytes_u32(out, f->flags);
	bytes_utf16z(out, "Caf\xc3\xa9.\xf0\x9f\x8d\xb0", 10, SIZE_MAX);
	bytes_utf16z(out, f->name, strlen(f->name), SIZE_MAX);
	bytes_utf16z(out, "void  (int32)", 13, SIZE_MAX);
	bytes_u16(out, 0);
	if (f->version >= 2)
		bytes_u64(out, 1);
}

static int absorb(struct codemap *map, int rundown, uint32_t id, uint64_t time_ns, struct fields f)
{
	struct bytes payload = { 0 };

	put_method(&payload, &f);
	int r = clr_absorb_method(map, rundown, id, f.version, time_ns, payload.data, payload.len);
	bytes_done(&payload);
	return r;
}

static void test_load(void **state)
{
	struct codemap map = { 0 };
	static const struct {
		uint32_t flags;
		uint8_t kind;
		uint8_t tier;
	} cases[] = {
		{ 8 | 3 << 7, CODE_JIT, TIER_0 },
		{ 8 | 4 << 7, CODE_JIT, TIER_1 },
		{ 8 | 5 << 7, CODE_OSR, TIER_1_OSR },
		{ 0 | 2 << 7, CODE_READYTORUN, TIER_OPTIMIZED },
		{ 1 | 8 | 2 << 7, CODE_DYNAMIC, TIER_OPTIMIZED },
		{ 8 | 7 << 7 | 0xfffffc00, CODE_JIT, TIER_1_INSTRUMENTED },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint64_t begin = 0x1000 * (i + 1);
		assert_int_equal(absorb(&map, 0, CLR_ID_MethodLoadVerbose, 5 * S,
					 (struct fields){
						 i, begin, 0x100, cases[i].flags, "Bake", 2 }),
			1);
		const struct code *code = codemap_find(&map, begin + 0xff, 6 * S);
		assert_non_null(code);
		assert_int_equal(code->kind, cases[i].kind);
		assert_int_equal(code->tier, cases[i].tier);
		assert_int_equal(code->module_id, 0x77);
		assert_string_equal(code->name_space, "Caf\xc3\xa9.\xf0\x9f\x8d\xb0");
		assert_string_equal(code->name, "Bake");
		assert_string_equal(code->signature, "void  (int32)");
		assert_null(codemap_find(&map, begin + 0x100, 6 * S));
		/* The precompiled code existed before the session. */
		assert_int_equal(code->from_ns, cases[i].kind == CODE_READYTORUN ? 0 : 5 * S);
	}
	codemap_done(&map);
}

static void test_rundown_and_unload(void **state)
{
	struct codemap map = { 0 };
	struct fields a = { 1, 0x1000, 0x100, 8, "A", 2 };
	struct fields b = { 2, 0x1000, 0x100, 8, "B", 2 };

	(void)state;
	/*
	 * The rundown reports B. The live stream, read later, reports that A was unloaded and B
	 * loaded.
	 */
	assert_int_equal(absorb(&map, 1, CLR_ID_MethodDCEndVerbose, 9 * S, b), 1);
	assert_int_equal(absorb(&map, 0, CLR_ID_MethodUnloadVerbose, 4 * S, a), 1);
	assert_int_equal(absorb(&map, 0, CLR_ID_MethodLoadVerbose, 5 * S, b), 1);
	assert_string_equal(codemap_find(&map, 0x1010, 3 * S)->name, "A");
	assert_string_equal(codemap_find(&map, 0x1010, 6 * S)->name, "B");
	assert_int_equal(absorb(&map, 0, CLR_ID_MethodUnloadVerbose, 20 * S, b), 1);
	assert_string_equal(codemap_find(&map, 0x1010, 19 * S)->name, "B");
	assert_null(codemap_find(&map, 0x1010, 21 * S));
	codemap_done(&map);

	/* The same in the opposite order. */
	assert_int_equal(absorb(&map, 0, CLR_ID_MethodUnloadVerbose, 4 * S, a), 1);
	assert_int_equal(absorb(&map, 0, CLR_ID_MethodLoadVerbose, 5 * S, b), 1);
	assert_int_equal(absorb(&map, 1, CLR_ID_MethodDCEndVerbose, 9 * S, b), 1);
	assert_string_equal(codemap_find(&map, 0x1010, 3 * S)->name, "A");
	assert_string_equal(codemap_find(&map, 0x1010, 6 * S)->name, "B");
	codemap_done(&map);
}

static void test_module(void **state)
{
	struct codemap map = { 0 };
	struct bytes payload = { 0 };
	size_t len;

	(void)state;
	bytes_u64(&payload, 0x77);
	bytes_u64(&payload, 0x88);
	bytes_u32(&payload, 0x20);
	bytes_u32(&payload, 0);
	bytes_utf16z(&payload, "/app/Shop.dll", 13, SIZE_MAX);
	assert_int_equal(
		clr_absorb_method(&map, 1, CLR_ID_ModuleDCEnd, 2, S, payload.data, payload.len), 1);
	assert_memory_equal(codemap_assembly(&map, 0x77, &len), "Shop", 4);
	/* The same id is a different event in the other provider. */
	assert_int_equal(
		clr_absorb_method(&map, 0, CLR_ID_ModuleDCEnd, 2, S, payload.data, payload.len), 0);
	assert_int_equal(
		clr_absorb_method(&map, 1, CLR_ID_ModuleLoad, 2, S, payload.data, payload.len), 0);
	bytes_done(&payload);
	codemap_done(&map);
}

static void test_broken(void **state)
{
	struct codemap map = { 0 };
	struct bytes payload = { 0 };
	struct fields f = { 1, 0x1000, 0x100, 8, "A", 2 };

	(void)state;
	put_method(&payload, &f);
	size_t needed = payload.len - 10; /* without the data after the signature */
	for (size_t cut = 0; cut < needed; cut++) {
		uint8_t *exact = malloc(cut + 1);
		memcpy(exact, payload.data, cut);
		assert_int_equal(clr_absorb_method(&map, 0, CLR_ID_MethodLoadVerbose, 2, S, exact,
					 cut),
			-EBADMSG);
		assert_int_equal(clr_absorb_method(&map, 1, CLR_ID_ModuleDCEnd, 2, S, exact,
					 cut < 24 ? cut : 0),
			-EBADMSG);
		free(exact);
	}
	assert_int_equal(map.codes.count, 0);
	/* A range that wraps around, and an empty one. */
	f.begin = UINT64_MAX - 8;
	assert_int_equal(absorb(&map, 0, CLR_ID_MethodLoadVerbose, S, f), -EBADMSG);
	f.size = 0;
	assert_int_equal(absorb(&map, 0, CLR_ID_MethodLoadVerbose, S, f), 0);
	assert_int_equal(absorb(&map, 0, 145, S, f), 0);
	bytes_done(&payload);
	codemap_done(&map);
}

static void test_unload_payload(void **state)
{
	struct codemap map = { 0 };
	struct codemap back = { 0 };
	struct bytes payload = { 0 };

	(void)state;
	assert_int_equal(absorb(&map, 0, CLR_ID_MethodLoadVerbose, 5 * S,
				 (struct fields){ 9, 0x1000, 0x100, 8 | 4 << 7, "Bake", 2 }),
		1);
	const struct code *code = codemap_find(&map, 0x1000, 6 * S);
	clr_method_unload_payload(code, &payload);
	assert_int_equal(clr_absorb_method(&back, 0, CLR_ID_MethodUnloadVerbose, 1, 9 * S,
				 payload.data, payload.len),
		1);
	const struct code *same = codemap_find(&back, 0x10ff, 8 * S);
	assert_non_null(same);
	assert_int_equal(same->method_id, code->method_id);
	assert_int_equal(same->module_id, code->module_id);
	assert_int_equal(same->end, code->end);
	assert_int_equal(same->kind, code->kind);
	assert_int_equal(same->tier, code->tier);
	assert_string_equal(same->name_space, code->name_space);
	assert_string_equal(same->name, code->name);
	assert_string_equal(same->signature, code->signature);

	/* With names of any length the event stays below the limit of readers. */
	char *longest = malloc(60001);
	memset(longest, 'x', 60000);
	longest[60000] = '\0';
	struct code big = *code;
	big.name_space = big.name = big.signature = longest;
	bytes_reset(&payload);
	clr_method_unload_payload(&big, &payload);
	assert_true(payload.len <= EVENT_PAYLOAD_MAX);
	free(longest);
	bytes_done(&payload);
	codemap_done(&map);
	codemap_done(&back);
}

/*
 * An assembly with flags, in the live stream and in the rundown. Every shorter payload is rejected.
 */
static void test_collectible(void **state)
{
	struct bytes payload = { 0 };

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		bytes_u64(&payload, 0x100 + i);
	bytes_u32(&payload, 8 | 2);
	assert_true(clr_is_collectible(0, CLR_ID_AssemblyLoad, payload.data, payload.len));
	assert_true(clr_is_collectible(1, CLR_ID_AssemblyDCEnd, payload.data, payload.len));
	/* the payload is that of a module here */
	assert_false(clr_is_collectible(1, CLR_ID_AssemblyLoad, payload.data, payload.len));
	assert_false(clr_is_collectible(0, CLR_ID_AssemblyDCEnd, payload.data, payload.len));
	for (size_t cut = 0; cut < payload.len; cut++) {
		uint8_t *exact = malloc(cut + 1);
		memcpy(exact, payload.data, cut);
		assert_false(clr_is_collectible(0, CLR_ID_AssemblyLoad, exact, cut));
		free(exact);
	}
	payload.data[24] = 2; /* dynamic, and not collectible */
	assert_false(clr_is_collectible(0, CLR_ID_AssemblyLoad, payload.data, payload.len));
	bytes_done(&payload);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_rundown_and_unload),
		cmocka_unit_test(test_module),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_unload_payload),
		cmocka_unit_test(test_collectible),
	};

	return cmocka_run_group_tests_name("clr", tests, NULL, NULL);
}
