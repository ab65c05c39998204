/*
 * gcdump files read back as they were written; those of other programs are read correctly; broken
 * ones are diagnosed. With SPOOR_GOLDEN in the environment it writes the files of
 * tests/data/gcdump.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "formats/gcdump_read.h"
#include "formats/gcdump_write.h"
#include "heap/heap_retained.h"
#include "trace/heap_graph.h"

#define BASE UINT64_C(0x7f0000001000)

static const struct gcdump_info info = { .machine = "web-3 \xf0\x9f\x90\xbe",
	.process_name = "shop",
	.missing = "",
	.tool = "test",
	.pid = 4711,
	.utc_ns = UINT64_C(1795249812000000000),
	.working_set_bytes = 1 << 20 };

static uint32_t type(struct heap_graph *graph, uint64_t id, const char *name, const char *module)
{
	uint32_t index = heap_graph_type(graph, id);
	struct heap_type *row = &graph->types.items[index];

	row->name = strtab_add_z(&graph->strings, name);
	row->module_id = id;
	assert_int_equal(heap_graph_add_module(graph, id, module, strlen(module)), 0);
	return index;
}

/*
 * A list of orders held by a static variable, one order held by a handle, garbage in between, and
 * one object larger than 2 GiB.
 */
static void make_graph(struct heap_graph *graph)
{
	assert_int_equal(heap_graph_init(graph), 0);
	uint32_t array = type(graph, 1, "Shop.Order[]", "/app/Shop.dll");
	uint32_t order = type(graph, 2, "Shop.Order", "/app/Shop.dll");
	uint32_t text = type(graph, 3, "System.String", "/dotnet/System.Private.CoreLib.dll");
	uint32_t bytes = type(graph, 4, "System.Byte[]", "/dotnet/System.Private.CoreLib.dll");

	assert_int_equal(heap_graph_add_node(graph, BASE, 8 * 100 + 24, array, 100), 0);
	for (uint32_t i = 1; i <= 100; i++) {
		assert_int_equal(heap_graph_add_edge(graph, BASE + 1000 * i), 0);
		assert_int_equal(heap_graph_add_node(graph, BASE + 1000 * i, 32, order, 2), 0);
		assert_int_equal(heap_graph_add_node(graph, BASE + 1000 * i + 32, 22 + i % 7 * 2,
					 text, 0),
			0);
	}
	for (uint32_t i = 1; i <= 100; i++) {
		assert_int_equal(heap_graph_add_edge(graph, BASE + 1000 * i + 32), 0);
		assert_int_equal(heap_graph_add_edge(graph, i % 10 ? 0 : BASE + 1000 * (i - 1)), 0);
	}
	assert_int_equal(heap_graph_add_node(graph, BASE + (1 << 20), UINT64_C(3) << 30, bytes, 0),
		0);
	assert_int_equal(heap_graph_add_root(graph,
				 &(struct heap_root){ .object = BASE,
					 .is_static = true,
					 .name = strtab_add_z(&graph->strings, "all") }),
		0);
	assert_int_equal(heap_graph_add_root(graph, &(struct heap_root){ .object = BASE + 2000,
							    .kind = HEAP_ROOT_HANDLE }),
		0);
	assert_int_equal(heap_graph_resolve(graph), 0);
}

static void write_graph_as(const struct heap_graph *graph, const struct gcdump_info *about,
	uint8_t **ret_data, size_t *ret_size)
{
	struct diag diag = { 0 };
	struct stat status;
	int fd = (int)memfd_create("heap", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(gcdump_write(graph, about, fd, "heap", &diag), 0);
	assert_int_equal(fstat(fd, &status), 0);
	*ret_size = (size_t)status.st_size;
	*ret_data = malloc(*ret_size);
	assert_int_equal(pread(fd, *ret_data, *ret_size, 0), *ret_size);
	close(fd);
}

static void write_graph(const struct heap_graph *graph, uint8_t **ret_data, size_t *ret_size)
{
	write_graph_as(graph, &info, ret_data, ret_size);
}

static void write_golden(const char *name, const uint8_t *data, size_t size)
{
	char path[512];

	if (!getenv("SPOOR_GOLDEN"))
		return;
	(void)snprintf(path, sizeof(path), TEST_DATA "/gcdump/%s.gcdump", name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
}

static void test_round_trip(void **state)
{
	struct heap_graph graph, again;
	struct gcdump_origin origin;
	struct heap_order d, e;
	struct diag diag = { 0 };
	uint8_t *data;
	size_t size;
	char room_a[64], room_b[64];

	(void)state;
	make_graph(&graph);
	write_graph(&graph, &data, &size);
	write_golden("small", data, size);
	assert_int_equal(heap_graph_init(&again), 0);
	assert_int_equal(gcdump_read(data, size, "heap", &again, &origin, &diag), 0);
	assert_string_equal(origin.machine, info.machine);
	assert_string_equal(origin.process_name, "shop");
	assert_int_equal(origin.pid, 4711);
	assert_int_equal(origin.utc_ns, info.utc_ns);
	/*
	 * Indexes of nodes and types in the file are one higher than ours, because its first of
	 * each is UNDEFINED.
	 */
	assert_int_equal(heap_graph_node_count(&again), heap_graph_node_count(&graph) + 1);
	assert_int_equal(again.object_count, graph.object_count);
	assert_int_equal(again.nameless_bytes, 0);
	for (uint32_t node = 1; node < heap_graph_node_count(&graph); node++) {
		uint32_t a_count, b_count, b_at = 0;
		const uint32_t *a = heap_graph_edges(&graph, node, &a_count);
		const uint32_t *b = heap_graph_edges(&again, node + 1, &b_count);
		assert_string_equal(heap_graph_type_name(&graph, heap_graph_node_type(&graph, node),
					    room_a, sizeof(room_a)),
			heap_graph_type_name(&again, heap_graph_node_type(&again, node + 1), room_b,
				sizeof(room_b)));
		assert_int_equal(heap_graph_address(&graph, node),
			heap_graph_address(&again, node + 1));
		uint64_t node_size = heap_graph_size(&graph, node);
		assert_int_equal(node_size > INT32_MAX ? INT32_MAX : node_size,
			heap_graph_size(&again, node + 1));
		for (uint32_t i = 0; i < a_count; i++)
			if (a[i])
				assert_int_equal(a[i] + 1, b[b_at++]);
		assert_int_equal(b_at, b_count);
	}
	assert_int_equal(heap_order_init(&d, &graph), 0);
	assert_int_equal(heap_order_init(&e, &again), 0);
	assert_int_equal(d.count, e.count);
	heap_order_done(&d);
	heap_order_done(&e);
	free(data);
	heap_graph_done(&graph);
	heap_graph_done(&again);
}

/* A type whose name the runtime did not send has no name in the file. */
static void test_nameless(void **state)
{
	struct heap_graph graph, again;
	struct gcdump_origin origin;
	struct diag diag = { 0 };
	uint8_t *data;
	size_t size;

	(void)state;
	assert_int_equal(heap_graph_init(&graph), 0);
	assert_int_equal(heap_graph_add_node(&graph, BASE, 40, heap_graph_type(&graph, 7), 0), 0);
	assert_int_equal(heap_graph_add_node(&graph, BASE + 40, 24,
				 type(&graph, 8, "Shop.Order", "/app/Shop.dll"), 0),
		0);
	assert_int_equal(heap_graph_resolve(&graph), 0);
	assert_int_equal(graph.nameless_bytes, 40);
	write_graph(&graph, &data, &size);
	assert_int_equal(heap_graph_init(&again), 0);
	assert_int_equal(gcdump_read(data, size, "heap", &again, &origin, &diag), 0);
	assert_int_equal(again.nameless_bytes, 40);
	free(data);
	heap_graph_done(&graph);
	heap_graph_done(&again);
}

/*
 * The reason for an incomplete snapshot is read back; any other text in the log is not taken for
 * one.
 */
static void test_not_whole(void **state)
{
	struct heap_graph graph, again;
	struct gcdump_origin origin;
	struct diag diag = { 0 };
	uint8_t *data;
	size_t size;

	(void)state;
	make_graph(&graph);
	for (unsigned i = 0; i < 2; i++) {
		struct gcdump_info note = info;
		note.missing = i ? "blocks of it were lost on the way" : "";
		write_graph_as(&graph, &note, &data, &size);
		if (i)
			write_golden("partial", data, size);
		assert_int_equal(heap_graph_init(&again), 0);
		assert_int_equal(gcdump_read(data, size, "heap", &again, &origin, &diag), 0);
		assert_string_equal(origin.missing, note.missing);
		heap_graph_done(&again);
		free(data);
	}
	heap_graph_done(&graph);
}

/*
 * A file that is cut anywhere is diagnosed and not accepted as complete. After the graph there is
 * nothing that a report needs.
 */
static void test_torn(void **state)
{
	struct heap_graph graph, again;
	struct gcdump_origin origin;
	uint8_t *data;
	size_t size;
	size_t whole_from = 0;

	(void)state;
	make_graph(&graph);
	write_graph(&graph, &data, &size);
	for (size_t cut = 0; cut <= size; cut++) {
		struct diag diag = { 0 };
		assert_int_equal(heap_graph_init(&again), 0);
		int result = gcdump_read(data, cut, "heap", &again, &origin, &diag);
		assert_true(result == 0 || (result == -EBADMSG && diag.text[0]));
		if (result == 0 && !whole_from)
			whole_from = cut;
		assert_true(!whole_from || result == 0);
		heap_graph_done(&again);
	}
	assert_true(whole_from > size / 2 && size - whole_from < 300);
	free(data);
	heap_graph_done(&graph);
}

/* ---- files as other programs write them ---- */

enum { NO_SIZE = -1, FOREIGN_NODES = 64, LONG_LOG = 70000 };

struct foreign_node {
	uint32_t type;
	int32_t size; /* NO_SIZE: the size of its type */
	uint64_t address;
	uint32_t child_count;
	uint32_t children[FOREIGN_NODES];
};

struct foreign {
	uint32_t count;
	struct foreign_node nodes[FOREIGN_NODES];
};

enum foreign_type { UNDEFINED, ROOTS, STATICS, VARIABLE, ORDER, TEXT, PROXY, FOREIGN_TYPES };

static const struct {
	const char *name;
	uint32_t size;
	const char *module;
} foreign_types[FOREIGN_TYPES] = {
	[UNDEFINED] = { "UNDEFINED", 0, "" },
	[ROOTS] = { "[.NET Roots]", 0, "" },
	[STATICS] = { "[static vars]", 0, "" },
	[VARIABLE] = { "[static var Shop.Cache.all]", 0, "" },
	[ORDER] = { "Shop.Order", 20, "C:\\app\\Shop.dll" },
	[TEXT] = { "System.String", 18, "mscorlib.dll" },
	[PROXY] = { "Shop.Proxy", 40, "C:\\app\\Shop.dll" },
};

static uint32_t foreign_add(struct foreign *f, enum foreign_type node_type, int32_t size,
	uint64_t address)
{
	assert_true(f->count < FOREIGN_NODES);
	f->nodes[f->count] =
		(struct foreign_node){ .type = node_type, .size = size, .address = address };
	return f->count++;
}

static void foreign_refer(struct foreign *f, uint32_t from, uint32_t to)
{
	f->nodes[from].children[f->nodes[from].child_count++] = to;
}

static void put_text(struct bytes *out, const char *text)
{
	bytes_u32(out, (uint32_t)strlen(text));
	bytes_text(out, text);
}

static void put_compressed(struct bytes *out, int32_t value)
{
	unsigned groups = 1;

	while (groups < 5 && (value < -(INT64_C(1) << (7 * groups - 1)) ||
				     value >= INT64_C(1) << (7 * groups - 1)))
		groups++;
	while (groups--)
		bytes_u8(out,
			(uint8_t)(((int64_t)value >> 7 * groups & 0x7f) | (groups ? 0x80 : 0)));
}

static void put_object(struct bytes *out, const char *name, uint32_t version)
{
	bytes_add(out, "\4\4\1", 3);
	bytes_u32(out, version);
	bytes_u32(out, 0);
	put_text(out, name);
	bytes_u8(out, 6);
}

/* With the heap's segments and a log, as PerfView writes them. */
static void put_foreign(const struct foreign *f, uint32_t root, bool is64, struct bytes *out)
{
	struct bytes blob = { 0 };

	put_text(out, "!FastSerialization.1");
	put_object(out, "GCHeapDump", 10);
	put_object(out, "Graphs.MemoryGraph", 1);
	bytes_u64(out, 0);
	bytes_u32(out, root);
	bytes_u32(out, FOREIGN_TYPES);
	for (uint32_t i = 0; i < FOREIGN_TYPES; i++) {
		put_text(out, foreign_types[i].name);
		bytes_u32(out, foreign_types[i].size);
		put_text(out, foreign_types[i].module);
	}
	bytes_u32(out, f->count);
	for (uint32_t i = 0; i < f->count; i++) {
		const struct foreign_node *node = &f->nodes[i];
		bytes_u32(out, (uint32_t)blob.len);
		put_compressed(&blob, (int32_t)(node->type * 2 + (node->size != NO_SIZE)));
		if (node->size != NO_SIZE)
			put_compressed(&blob, node->size);
		put_compressed(&blob, (int32_t)node->child_count);
		for (uint32_t c = 0; c < node->child_count; c++)
			put_compressed(&blob, (int32_t)node->children[c] - (int32_t)i);
	}
	bytes_u32(out, (uint32_t)blob.len);
	bytes_add(out, blob.data, blob.len);
	bytes_u32(out, f->count);
	for (uint32_t i = 0; i < f->count; i++)
		bytes_u64(out, f->nodes[i].address);
	bytes_u8(out, 8);
	bytes_u8(out, is64);
	bytes_u8(out, 6);
	bytes_u8(out, is64);
	bytes_u32(out, 0x3f800000);
	bytes_u32(out, 0x3f800000);
	bytes_u8(out, 1);
	put_object(out, "DotNetHeapInfo", 0);
	bytes_u64(out, 1 << 20);
	bytes_u32(out, 2);
	for (uint64_t i = 0; i < 2; i++) {
		if (i)
			bytes_add(out, "\4\2\0\0\0\0",
				6); /* the type is described at the first segment */
		else
			put_object(out, "GCHeapDumpSegment", 1);
		for (uint64_t field = 0; field < 7; field++)
			bytes_u64(out, 0x10000 * (i + field));
		bytes_u8(out, 6);
	}
	bytes_u8(out, 6);
	bytes_u32(out, is64 ? 100 : LONG_LOG);
	for (uint32_t i = 0; i < (is64 ? 100 : LONG_LOG); i++)
		bytes_u8(out, i % 80 == 79 ? '\n' : '.');
	bytes_u64(out, UINT64_C(621355968000000000) + info.utc_ns / 100);
	put_text(out, "WEB-3");
	put_text(out, "w3wp");
	bytes_u32(out, 4712);
	bytes_u64(out, 0);
	bytes_u64(out, 0);
	bytes_u32(out, 0);
	bytes_u8(out, 12);
	bytes_u32(out, 0);
	bytes_u8(out, 1);
	bytes_u8(out, 6);
	assert_false(out->failed);
	bytes_done(&blob);
}

/*
 * Twenty orders with a text each. The root nodes, an object that was never described, and an object
 * with a size but no address are between the orders. One text is between the last two orders, so
 * the block of the orders has to be split.
 */
static void make_foreign(struct foreign *f, uint64_t base, uint64_t align)
{
	uint32_t orders[20], proxy = 0, never_seen = 0;

	(void)foreign_add(f, UNDEFINED, NO_SIZE, 0);
	uint32_t root = foreign_add(f, ROOTS, NO_SIZE, 0);
	for (uint32_t i = 0; i < 20; i++) {
		orders[i] = foreign_add(f, ORDER, NO_SIZE, base + i * 44 * align);
		if (i == 4)
			foreign_refer(f, root, foreign_add(f, STATICS, NO_SIZE, 0));
		if (i == 9)
			proxy = foreign_add(f, PROXY, NO_SIZE, 0);
	}
	uint32_t variable = foreign_add(f, VARIABLE, NO_SIZE, 0);
	foreign_refer(f, f->nodes[root].children[0], variable);
	for (uint32_t i = 20; i-- > 0;) {
		uint64_t address = base + (i == 18 ? 18 * 44 + 20 : 20 * 44 + i * 60) * align;
		foreign_refer(f, variable, orders[i]);
		foreign_refer(f, orders[i],
			foreign_add(f, TEXT, i % 2 ? 18 + (int32_t)i : NO_SIZE, address));
		if (i == 3)
			never_seen = foreign_add(f, UNDEFINED, NO_SIZE, base + 8 * align);
	}
	foreign_refer(f, orders[1], never_seen);
	foreign_refer(f, orders[0], proxy);
}

static void check_foreign(const struct foreign *f, const char *name, bool is64, uint32_t objects,
	uint64_t size_bytes)
{
	struct heap_graph graph;
	struct gcdump_origin origin;
	struct diag diag = { 0 };
	struct bytes out = { 0 };

	put_foreign(f, 1, is64, &out);
	if (name)
		write_golden(name, out.data, out.len);
	assert_int_equal(heap_graph_init(&graph), 0);
	assert_int_equal(gcdump_read(out.data, out.len, "foreign", &graph, &origin, &diag), 0);
	assert_int_equal(graph.object_count, objects);
	assert_int_equal(graph.size_bytes, size_bytes);
	for (uint32_t i = 0; i < f->count; i++) {
		uint64_t address = f->nodes[i].type == UNDEFINED ? 0 : f->nodes[i].address;
		assert_int_equal(heap_graph_address(&graph, i + 1), address);
		if (address)
			assert_int_equal(heap_graph_find(&graph, address), i + 1);
		assert_int_equal(heap_graph_node_type(&graph, i + 1), f->nodes[i].type + 1);
	}
	assert_string_equal(origin.missing, "");
	assert_string_equal(origin.machine, "WEB-3");
	assert_string_equal(origin.process_name, "w3wp");
	assert_int_equal(origin.pid, 4712);
	assert_int_equal(origin.utc_ns, info.utc_ns);
	heap_graph_done(&graph);
	bytes_done(&out);
}

/* A variable with orders at random addresses, and nodes without an address between them. */
static uint32_t make_shuffled(struct foreign *f, unsigned seed, uint64_t base)
{
	bool taken[4 * FOREIGN_NODES] = { false };
	uint32_t at = 0, orders = 0;

	srand(seed);
	(void)foreign_add(f, UNDEFINED, NO_SIZE, 0);
	uint32_t root = foreign_add(f, ROOTS, NO_SIZE, 0);
	uint32_t statics = foreign_add(f, STATICS, NO_SIZE, 0);
	foreign_refer(f, root, statics);
	while (f->count < FOREIGN_NODES) {
		at = (at + 1 + (uint32_t)rand() % (rand() % 4 ? 3 : 4 * FOREIGN_NODES)) %
		     (4 * FOREIGN_NODES);
		bool is_order = rand() % 4 && !taken[at];
		foreign_refer(f, statics,
			foreign_add(f, is_order ? ORDER : VARIABLE, NO_SIZE,
				is_order ? base + at * 20 : 0));
		taken[at] |= is_order;
		orders += is_order;
	}
	return orders;
}

#define CRASHING_SEED 16u /* a file of this seed crashed the reader once */

static void test_foreign(void **state)
{
	struct foreign f = { 0 };

	(void)state;
	make_foreign(&f, 0x2a31004, 1);
	check_foreign(&f, "foreign32", false, 41, 20 * 20 + 20 * 18 + 100 + 40);
	f.count = 0;
	make_foreign(&f, UINT64_C(0x1e2c0001020), 2);
	check_foreign(&f, "foreign64", true, 41, 20 * 20 + 20 * 18 + 100 + 40);
	for (unsigned seed = 1; seed <= 500; seed++) {
		f.count = 0;
		uint32_t orders = make_shuffled(&f, seed, seed % 2 ? 0x2a31004 : 0x1e2c0001020);
		check_foreign(&f, seed == CRASHING_SEED ? "shuffled" : NULL, true, orders,
			orders * 20);
	}
}

static void test_disk_full(void **state)
{
	struct heap_graph graph;
	struct diag diag = { 0 };
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	make_graph(&graph);
	assert_true(fd >= 0);
	assert_int_equal(gcdump_write(&graph, &info, fd, "full", &diag), -ENOSPC);
	assert_non_null(strstr(diag.text, "cannot write 'full'"));
	close(fd);
	heap_graph_done(&graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_nameless),
		cmocka_unit_test(test_not_whole),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
