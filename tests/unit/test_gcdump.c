/* Written then read is equal; and what is broken is told. Writes the smallest files of tests/data/gcdump with SPOOR_GOLDEN in the environment. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/dominators.h"
#include "base/diag.h"
#include "format/gcdump_read.h"
#include "format/gcdump_write.h"
#include "model/heap_graph.h"

#define BASE UINT64_C(0x7f0000001000)

static const struct gcdump_info info = { .machine = "web-3 \xf0\x9f\x90\xbe", .process_name = "shop", .log = "", .tool = "test",
	.pid = 4711, .utc_ns = UINT64_C(1795249812000000000), .working_set_bytes = 1 << 20 };

static uint32_t type(struct heap_graph *graph, uint64_t id, const char *name, const char *module)
{
	uint32_t index = heap_graph_type(graph, id);
	struct heap_type *row = &graph->types.items[index];

	row->name = strtab_add_z(&graph->strings, name);
	row->module_id = id;
	assert_int_equal(heap_graph_add_module(graph, id, module, strlen(module)), 0);
	return index;
}

/* A list of orders held by a static variable, one order held by a handle, garbage in between, and one object larger than 2 GiB. */
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
		assert_int_equal(heap_graph_add_node(graph, BASE + 1000 * i + 32, 22 + i % 7 * 2, text, 0), 0);
	}
	for (uint32_t i = 1; i <= 100; i++) {
		assert_int_equal(heap_graph_add_edge(graph, BASE + 1000 * i + 32), 0);
		assert_int_equal(heap_graph_add_edge(graph, i % 10 ? 0 : BASE + 1000 * (i - 1)), 0);
	}
	assert_int_equal(heap_graph_add_node(graph, BASE + (1 << 20), UINT64_C(3) << 30, bytes, 0), 0);
	assert_int_equal(heap_graph_add_root(graph, &(struct heap_root){ .object = BASE, .is_static = true,
		.name = strtab_add_z(&graph->strings, "all") }), 0);
	assert_int_equal(heap_graph_add_root(graph, &(struct heap_root){ .object = BASE + 2000, .kind = HEAP_ROOT_HANDLE }), 0);
	assert_int_equal(heap_graph_resolve(graph), 0);
}

static void write_graph(const struct heap_graph *graph, uint8_t **ret_data, size_t *ret_size)
{
	struct diag diag = { 0 };
	struct stat status;
	int fd = (int)memfd_create("heap", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(gcdump_write(graph, &info, fd, "heap", &diag), 0);
	assert_int_equal(fstat(fd, &status), 0);
	*ret_size = (size_t)status.st_size;
	*ret_data = malloc(*ret_size);
	assert_int_equal(pread(fd, *ret_data, *ret_size, 0), *ret_size);
	close(fd);
}

static void test_round_trip(void **state)
{
	struct heap_graph graph, again;
	struct gcdump_origin origin;
	struct dominators d, e;
	struct diag diag = { 0 };
	uint8_t *data;
	size_t size;
	char room_a[64], room_b[64];

	(void)state;
	make_graph(&graph);
	write_graph(&graph, &data, &size);
	if (getenv("SPOOR_GOLDEN")) {
		FILE *file = fopen(TEST_DATA "/gcdump/small.gcdump", "w");
		assert_non_null(file);
		assert_int_equal(fwrite(data, 1, size, file), size);
		fclose(file);
	}
	assert_int_equal(heap_graph_init(&again), 0);
	assert_int_equal(gcdump_read(data, size, "heap", &again, &origin, &diag), 0);
	assert_string_equal(origin.machine, info.machine);
	assert_string_equal(origin.process_name, "shop");
	assert_int_equal(origin.pid, 4711);
	assert_int_equal(origin.utc_ns, info.utc_ns);
	/* The file's nodes and types are ours, each one further on: its first of both is UNDEFINED. */
	assert_int_equal(heap_graph_node_count(&again), heap_graph_node_count(&graph) + 1);
	assert_int_equal(again.object_count, graph.object_count);
	for (uint32_t node = 1; node < heap_graph_node_count(&graph); node++) {
		uint32_t a_count, b_count, b_at = 0;
		const uint32_t *a = heap_graph_edges(&graph, node, &a_count);
		const uint32_t *b = heap_graph_edges(&again, node + 1, &b_count);
		assert_string_equal(heap_graph_type_name(&graph, heap_graph_node_type(&graph, node), room_a, sizeof(room_a)),
			heap_graph_type_name(&again, heap_graph_node_type(&again, node + 1), room_b, sizeof(room_b)));
		assert_int_equal(heap_graph_address(&graph, node), heap_graph_address(&again, node + 1));
		uint64_t node_size = heap_graph_size(&graph, node);
		assert_int_equal(node_size > INT32_MAX ? INT32_MAX : node_size, heap_graph_size(&again, node + 1));
		for (uint32_t i = 0; i < a_count; i++)
			if (a[i])
				assert_int_equal(a[i] + 1, b[b_at++]);
		assert_int_equal(b_at, b_count);
	}
	assert_int_equal(dominators_init(&d, &graph), 0);
	assert_int_equal(dominators_init(&e, &again), 0);
	assert_int_equal(d.count, e.count);
	assert_int_equal(d.retained[0], e.retained[0]);
	dominators_done(&d);
	dominators_done(&e);
	free(data);
	heap_graph_done(&graph);
	heap_graph_done(&again);
}

/* Whatever the place where it is cut: told, not taken for whole. Behind the graph there is nothing that a report needs. */
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
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
