/*
 * clr_names.c and the readers below it: names from the memory of a made-up process of each supported
 * .NET version; and damaged memory, which never gives a wrong name. Real processes: feature/recording/managed_memory.
 */
#include "unit/test.h"

#include <errno.h>

#include "base/text.h"
#include "code/clr_contract.h"
#include "code/clr_image.h"
#include "code/codemap.h"
#include "unit/clr_process.h"

#define TINY TEST_DATA "/pe/tiny_r2r.dll"

struct opened {
	struct clr_process process;
	struct clr_images images;
	struct clr_names *names;
};

static void open_it(struct opened *o, enum clr_version version)
{
	*o = (struct opened){ .names = NULL };
	clr_process_init(&o->process, version, TINY);
	assert_int_equal(clr_process_open(&o->process, &o->images, &o->names), 0);
	if (version != CLR_VERSION_8) /* which is known with the first name */
		assert_int_equal(clr_names_layout(o->names)->version, version);
}

static void close_it(struct opened *o)
{
	clr_names_close(o->names);
	clr_images_done(&o->images);
	clr_process_done(&o->process);
}

static void put(struct opened *o, uint64_t place, uint64_t value, unsigned size)
{
	clr_process_put(&o->process, place, value, size);
}

static bool find(struct opened *o, uint64_t place, struct clr_found *ret_found)
{
	return clr_names_find(o->names, CLR_BASE + place, ret_found);
}

static void expect_add(struct opened *o, uint64_t place)
{
	struct clr_found found;

	assert_true(find(o, place, &found));
	assert_string_equal(found.name_space, "Spoor.Tiny.Work");
	assert_string_equal(found.name, "Add");
	assert_string_equal(found.signature, "int32  (int32,class System.String)");
	assert_int_equal(found.begin, CLR_BASE + CLR_METHOD_CODE);
	assert_int_equal(found.end, CLR_BASE + CLR_METHOD_CODE_END);
	assert_int_equal(found.kind, CODE_JIT);
	assert_true(found.lasts);
}

static void expect_none(struct opened *o, uint64_t place)
{
	struct clr_found found;

	assert_false(find(o, place, &found));
}

static void check_version(enum clr_version version)
{
	struct clr_found found;
	struct opened o;

	open_it(&o, version);
	if (version == CLR_VERSION_8)
		expect_none(&o, CLR_DYNAMIC_CODE); /* it does not confirm the version */
	expect_add(&o, CLR_METHOD_CODE);
	assert_int_equal(clr_names_layout(o.names)->version, version);
	expect_add(&o, CLR_METHOD_CODE + 31);
	expect_add(&o, CLR_METHOD_CODE + 0x120); /* the next unit of the nibble map */
	expect_add(&o, CLR_METHOD_CODE_END - 1);
	assert_true(find(&o, CLR_METHOD_CODE, &found));
	if (version != CLR_VERSION_8)
		assert_string_equal(found.module_path, "/app/tiny.dll");
	else
		assert_true(text_ends_with(found.module_path, ".dll"));
	assert_true(find(&o, CLR_DYNAMIC_CODE + 5, &found));
	assert_string_equal(found.name_space, "dynamicClass");
	assert_string_equal(found.name, "Made_1");
	assert_string_equal(found.signature, "int32  (class System.String)");
	assert_int_equal(found.kind, CODE_DYNAMIC);
	assert_false(found.lasts);
	/* before the first method, behind each, outside the heap, and the image itself */
	expect_none(&o, CLR_CODE);
	expect_none(&o, CLR_METHOD_CODE - 1);
	expect_none(&o, CLR_METHOD_CODE_END);
	expect_none(&o, CLR_DYNAMIC_CODE_END);
	expect_none(&o, CLR_CODE_END + 8);
	expect_none(&o, CLR_TEXT);
	assert_true(clr_names_may_come(o.names, CLR_BASE + CLR_METHOD_CODE_END));
	assert_false(clr_names_may_come(o.names, CLR_BASE + CLR_TEXT));
	clr_names_pass(o.names);
	expect_add(&o, CLR_METHOD_CODE + 2);
	close_it(&o);
}

static void test_versions(void **state)
{
	(void)state;
	check_version(CLR_VERSION_10);
	check_version(CLR_VERSION_9);
	check_version(CLR_VERSION_8);
}

/* Each damage is one that a running process makes: a freed node, header, method or name. */
static void test_races(void **state)
{
	const struct clr_layout *at;
	struct opened o;

	(void)state;
	open_it(&o, CLR_VERSION_10);
	at = &o.process.at;
	/* a freed heap node, seen before the heap is known */
	put(&o, CLR_HEAP + at->heap_base, CLR_BASE + CLR_CODE + 8, 8);
	expect_none(&o, CLR_METHOD_CODE);
	put(&o, CLR_HEAP + at->heap_base, CLR_BASE + CLR_CODE, 8);
	expect_add(&o, CLR_METHOD_CODE);
	/* the header of a stub, of freed memory, of another method */
	put(&o, CLR_METHOD_CODE - 8, 3, 8);
	expect_none(&o, CLR_METHOD_CODE);
	put(&o, CLR_METHOD_CODE - 8, UINT64_C(0x7fff00000000), 8);
	expect_none(&o, CLR_METHOD_CODE);
	put(&o, CLR_METHOD_CODE - 8, CLR_BASE + CLR_HEADER + 0x100, 8);
	expect_none(&o, CLR_METHOD_CODE);
	put(&o, CLR_METHOD_CODE - 8, CLR_BASE + CLR_HEADER, 8);
	expect_add(&o, CLR_METHOD_CODE);
	/* an unwind table without end, and one that ends before the address */
	put(&o, CLR_HEADER + at->header_unwind_count, UINT32_MAX, 4);
	expect_none(&o, CLR_METHOD_CODE);
	put(&o, CLR_HEADER + at->header_unwind_count, 1, 4);
	expect_none(&o, CLR_METHOD_CODE + 16);
	put(&o, CLR_HEADER + at->header_unwind_count, 2, 4);
	/* a dynamic method whose memory is used by another one */
	put(&o, CLR_DYNAMIC_CHUNK + at->chunk_bytes + at->dynamic_bytes + at->slot_bytes,
		CLR_BASE + CLR_DYNAMIC_CODE + 0x40, 8);
	expect_none(&o, CLR_DYNAMIC_CODE);
	put(&o, CLR_DYNAMIC_CHUNK + at->chunk_bytes + at->dynamic_bytes + at->slot_bytes,
		CLR_BASE + CLR_DYNAMIC_CODE, 8);
	/* names that are no names: empty, not UTF-8, a control character */
	struct clr_found found;
	for (unsigned i = 0; i < 3; i++) {
		put(&o, CLR_NAME, (uint8_t) "\0\xff\n"[i], 1);
		expect_none(&o, CLR_DYNAMIC_CODE);
	}
	put(&o, CLR_NAME, 'M', 1);
	assert_true(find(&o, CLR_DYNAMIC_CODE, &found));
	/* a type that is not the method's */
	put(&o, CLR_TYPE + at->type_token, 2 << 8, 4);
	expect_none(&o, CLR_METHOD_CODE);
	put(&o, CLR_TYPE + at->type_token, 1 << 8, 4);
	expect_none(&o, CLR_METHOD_CODE);
	close_it(&o);
}

/* Places of the versions of the ordinary method's code, and its native code slot. */
enum { DATA = 0xf000, STATE = 0xf040, FIRST = 0xf080, SECOND = 0xf100 };

static uint8_t tier_at(struct opened *o, uint64_t place, uint8_t kind)
{
	struct clr_found found;

	assert_true(find(o, place, &found));
	assert_string_equal(found.name, "Add");
	assert_int_equal(found.kind, kind);
	return found.tier;
}

static void put_version(struct opened *o, uint64_t place, uint64_t code, uint32_t tier)
{
	const struct clr_layout *at = &o->process.at;

	put(o, place + at->node_code, CLR_BASE + code, 8);
	put(o, place + at->node_method, CLR_BASE + CLR_CHUNK + at->chunk_bytes + at->method_align,
		8);
	put(o, place + at->node_next + 12, tier, 4);
}

/* The versions are those of the method's code: each wrong link gives no tier, and the name stays. */
static void check_tiers(enum clr_version version)
{
	static const uint8_t tiers[] = { TIER_0, TIER_1, TIER_1_OSR, TIER_OPTIMIZED,
		TIER_0_INSTRUMENTED, TIER_1_INSTRUMENTED, TIER_UNKNOWN, TIER_UNKNOWN };
	const struct clr_layout *at;
	struct opened o;

	open_it(&o, version);
	at = &o.process.at;
	uint64_t method = CLR_CHUNK + at->chunk_bytes + at->method_align;
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	put(&o, method + at->method_data, CLR_BASE + DATA, 8);
	put(&o, DATA + at->data_state, CLR_BASE + STATE, 8);
	put(&o, STATE + at->state_node, CLR_BASE + FIRST, 8);
	put(&o, FIRST + at->node_next, CLR_BASE + SECOND, 8);
	put_version(&o, FIRST, CLR_CODE + 0x800, 4);
	for (uint32_t tier = 0; tier < sizeof(tiers); tier++) {
		put_version(&o, SECOND, CLR_METHOD_CODE, tier);
		assert_int_equal(tier_at(&o, CLR_METHOD_CODE + 0x120,
					 tiers[tier] == TIER_1_OSR ? CODE_OSR : CODE_JIT),
			tiers[tier]);
	}
	put_version(&o, SECOND, CLR_METHOD_CODE, 1);
	put(&o, FIRST + at->node_method, CLR_BASE + CLR_CHUNK, 8); /* another method's list */
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	put_version(&o, FIRST, CLR_CODE + 0x800, 4);
	put(&o, FIRST + at->node_next, UINT64_C(0x7fff00000000), 8);
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	put(&o, FIRST + at->node_next, CLR_BASE + FIRST, 8); /* without end */
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	/* First code is of tier 0 if the method has a later version that no profiler has made. */
	put(&o, FIRST + at->node_next, 0, 8);
	uint64_t token = o.process.block[method + at->method_token] |
			 (uint64_t)o.process.block[method + at->method_token + 1] << 8;
	put(&o, method + at->method_token, token | 0x8000, 2);
	put(&o, method + at->method_flags, 0x20, 2);
	put(&o, method + at->method_bytes, CLR_BASE + CLR_METHOD_CODE, 8);
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_0);
	put(&o, method + at->method_bytes, CLR_BASE + CLR_METHOD_CODE + 0x20, 8);
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	put(&o, method + at->method_bytes, CLR_BASE + CLR_METHOD_CODE, 8);
	put(&o, FIRST + at->node_il_version, 1, 8);
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	put(&o, FIRST + at->node_il_version, 0, 8);
	put_version(&o, FIRST, CLR_CODE + 0x800, 3);
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	put_version(&o, FIRST, CLR_CODE + 0x800, 1);
	put(&o, method + at->method_token, token, 2); /* a method without tiers */
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	close_it(&o);
}

static void test_tiers(void **state)
{
	struct opened o = { .images.size_bytes = 0 };
	struct clr_process *process = &o.process;

	(void)state;
	check_tiers(CLR_VERSION_10);
	check_tiers(CLR_VERSION_9);
	/* A description with other distances has no place for the tier. */
	clr_process_init(process, CLR_VERSION_10, TINY);
	char *flags = strstr((char *)process->block + CLR_JSON,
		"\"NativeCodeVersionNode\":{\"Flags\":[52");
	assert_non_null(flags);
	*strstr(flags, "52") = '6';
	uint64_t method = CLR_CHUNK + process->at.chunk_bytes + process->at.method_align;
	clr_process_pointer(process, method + process->at.method_data, DATA);
	clr_process_pointer(process, DATA + process->at.data_state, STATE);
	clr_process_pointer(process, STATE + process->at.state_node, FIRST);
	clr_process_pointer(process, FIRST + process->at.node_code, CLR_METHOD_CODE);
	clr_process_pointer(process, FIRST + process->at.node_method, method);
	clr_process_put(process, FIRST + process->at.node_next + 12, 1, 4);
	assert_int_equal(clr_process_open(process, &o.images, &o.names), 0);
	assert_int_equal(tier_at(&o, CLR_METHOD_CODE, CODE_JIT), TIER_UNKNOWN);
	close_it(&o);
}

static uint64_t torn_after;

/* The block is given to another method while it is read. */
static void tear(struct clr_process *process)
{
	if (process->read_count == torn_after)
		clr_process_pointer(process, CLR_METHOD_CODE - 8, CLR_HEADER + 0x100);
}

static void test_torn(void **state)
{
	struct clr_found found;
	struct opened o;

	(void)state;
	for (torn_after = 1; torn_after < 400; torn_after++) {
		open_it(&o, CLR_VERSION_10);
		o.process.read_count = 0;
		o.process.before_read = tear;
		/* either the method of before, complete, or none: never a mixture */
		if (find(&o, CLR_METHOD_CODE, &found)) {
			assert_string_equal(found.name, "Add");
			assert_string_equal(found.name_space, "Spoor.Tiny.Work");
		}
		close_it(&o);
	}
}

/* A list that does not fit the runtime gives no name, also later. */
static void test_distrust(void **state)
{
	struct opened o;

	(void)state;
	open_it(&o, CLR_VERSION_9);
	put(&o, CLR_TYPE + o.process.at.type_token, 1 << 8, 4);
	expect_none(&o, CLR_METHOD_CODE);
	assert_true(clr_names_distrusts(o.names));
	expect_none(&o, CLR_DYNAMIC_CODE);
	close_it(&o);
}

static void test_refused(void **state)
{
	struct clr_images images = { .size_bytes = 0 };
	struct clr_process process;
	struct clr_names *names;

	(void)state;
	/* no image; no descriptor; another execution manager; a map that is not there yet */
	clr_process_init(&process, CLR_VERSION_10, TINY);
	process.block[0] = 0;
	assert_int_equal(clr_process_open(&process, &images, &names), -ENODATA);
	process.block[0] = 0x7f;
	process.block[CLR_DESCRIPTOR] ^= 1;
	assert_int_equal(clr_process_open(&process, &images, &names), -ENODATA);
	process.block[CLR_DESCRIPTOR] ^= 1;
	char *manager = strstr((char *)process.block + CLR_JSON, "\"ExecutionManager\":2");
	assert_non_null(manager);
	manager[strlen("\"ExecutionManager\":")] = '3';
	assert_int_equal(clr_process_open(&process, &images, &names), -ENODATA);
	manager[strlen("\"ExecutionManager\":")] = '2';
	clr_process_put(&process, CLR_SLOTS + 8, 0, 8);
	assert_int_equal(clr_process_open(&process, &images, &names), -ENODATA);
	clr_process_put(&process, CLR_SLOTS + 8, CLR_BASE + CLR_MAP, 8);
	assert_int_equal(clr_process_open(&process, &images, &names), 0);
	clr_names_close(names);
	clr_process_done(&process);
	clr_images_done(&images);
}

static void test_contract(void **state)
{
	static const char json[] =
		"{ \"types\" : {\"A\":{\"x\":1,\"!\":24,\"y\":[8,\"pointer\"]}},\n"
		"\"globals\":{\"n\":[\"0x1F\",\"uint8\"],\"s\":[[3],\"pointer\"],\"t\":[\"x64\",\"string\"]},"
		"\"list\":[],\"none\":{}}";
	struct clr_contract contract = { .slots = 0 };
	uint64_t number;

	(void)state;
	assert_true(clr_contract_parse(&contract, json, strlen(json)));
	assert_true(clr_contract_number(&contract, "types.A.x", &number) && number == 1);
	assert_true(clr_contract_number(&contract, "types.A.!", &number) && number == 24);
	assert_true(clr_contract_number(&contract, "types.A.y", &number) && number == 8);
	assert_true(clr_contract_number(&contract, "globals.n", &number) && number == 31);
	assert_true(clr_contract_number(&contract, "globals.s#", &number) && number == 3);
	assert_false(clr_contract_number(&contract, "globals.s", &number));
	assert_false(clr_contract_number(&contract, "globals.t", &number));
	assert_false(clr_contract_number(&contract, "types.A.z", &number));
	clr_contract_done(&contract);
	/* every text that is cut off is refused */
	for (size_t size = 0; size < strlen(json); size++) {
		struct clr_contract cut = { .slots = 0 };
		assert_false(clr_contract_parse(&cut, json, size));
		clr_contract_done(&cut);
	}
}

/* Processes with the same assembly share its metadata. */
static void test_shared(void **state)
{
	struct clr_process second;
	struct clr_names *names;
	struct clr_found found;
	struct opened o;

	(void)state;
	open_it(&o, CLR_VERSION_10);
	expect_add(&o, CLR_METHOD_CODE);
	size_t size = o.images.size_bytes;
	assert_true(size > 0);
	clr_process_init(&second, CLR_VERSION_9, TINY);
	assert_int_equal(clr_process_open(&second, &o.images, &names), 0);
	assert_true(clr_names_find(names, CLR_BASE + CLR_METHOD_CODE, &found));
	assert_int_equal(o.images.size_bytes, size);
	assert_int_equal(o.images.list.count, 1);
	assert_int_equal(o.images.list.items[0]->users, 2);
	clr_names_close(names);
	assert_int_equal(o.images.list.items[0]->users, 1);
	clr_process_done(&second);
	close_it(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_races),
		cmocka_unit_test(test_tiers),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_distrust),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_contract),
		cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
