/* heap_snapshot.c with a runtime that this test simulates: one that refuses, collects nothing, or is given up. */
#include "unit/fake_runtime.h"

#include <errno.h>

#include "base/diag.h"
#include "heap/heap_snapshot.h"
#include "trace/heap_graph.h"

#define TIMEOUT_NS UINT64_C(300000000)

static int take(struct fake_runtime *runtime, struct pollfd *watched,
	struct heap_snapshot_result *ret_result, struct diag *diag)
{
	struct dotnet_target self;
	struct heap_graph graph;
	const struct heap_snapshot_options options = {
		.target = &self, .buffer_mb = 1, .timeout_ns = TIMEOUT_NS, .watched = watched
	};

	fake_runtime_start(runtime, NULL);
	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &self, NULL), 0);
	assert_int_equal(heap_graph_init(&graph), 0);
	int result = heap_snapshot_take(&options, &graph, ret_result, diag);

	assert_int_equal(graph.blocks.count, 0);
	heap_graph_done(&graph);
	fake_runtime_stop(runtime);
	return result;
}

static void test_refused(void **state)
{
	struct fake_runtime runtime = { .refuses = true };
	struct heap_snapshot_result result;
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(take(&runtime, NULL, &result, &diag), -EIO);
	assert_non_null(strstr(diag.text, "it could not make a session (all 64 may be taken)"));
	assert_int_equal(runtime.stops, 0);
}

/* Its sessions have no event of a collection. Each of them is ended by StopTracing. */
static void test_no_collection(void **state)
{
	struct fake_runtime runtime = { 0 };
	struct heap_snapshot_result result;
	struct diag diag = { 0 };

	(void)state;
	uint8_t *data = fake_stream("nettrace/gc-dynamic.nettrace", &runtime.stream_size);
	runtime.stream = data;
	assert_int_equal(take(&runtime, NULL, &result, &diag), -ETIMEDOUT);
	assert_non_null(strstr(diag.text, "no collection came"));
	assert_true(runtime.opened > 0);
	assert_int_equal(runtime.stops, runtime.opened);
	free(data);
}

static void test_given_up(void **state)
{
	struct fake_runtime runtime = { 0 };
	struct heap_snapshot_result result = { 0 };
	struct diag diag = { 0 };
	int ready[2];

	(void)state;
	assert_int_equal(pipe(ready), 0);
	close(ready[1]);
	struct pollfd watched = { ready[0], POLLIN, 0 };

	assert_int_equal(take(&runtime, &watched, &result, &diag), -ETIMEDOUT);
	assert_non_null(strstr(diag.text, "it was interrupted"));
	assert_true(result.interrupted);
	assert_true(watched.revents);
	assert_int_equal(runtime.stops, runtime.opened);
	close(ready[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_collection),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests_name("heap_snapshot", tests, NULL, NULL);
}
