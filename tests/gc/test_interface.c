/*
 * interface.c: versions of runtimes; proxy_forward.c: calls through any slot, with more arguments
 * than registers hold.
 */
#include "unit/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gc/interface.h"
#include "gc/proxy/proxy_forward.h"

static void test_runtimes(void **state)
{
	bool known;

	(void)state;
	assert_int_equal(gc_runtime_of(1, &known)->dotnet, 8);
	assert_true(known);
	assert_int_equal(gc_runtime_of(1, &known)->to_clr_count, 50);
	assert_int_equal(gc_runtime_of(1, &known)->collectible_flag, 0x10000000);
	assert_int_equal(gc_runtime_of(2, &known)->dotnet, 9);
	assert_int_equal(gc_runtime_of(2, &known)->to_clr_count, 50);
	assert_int_equal(gc_runtime_of(4, &known)->dotnet, 10);
	assert_int_equal(gc_runtime_of(4, &known)->to_clr_count, 52);
	assert_true(known);
	for (uint32_t major = 0; major < 100; major++) {
		const struct gc_runtime *runtime = gc_runtime_of(major, &known);
		assert_int_equal(known, major == 1 || major == 2 || major == 4);
		assert_non_null(runtime);
		if (!known)
			assert_int_equal(runtime->dotnet, 10);
	}
}

/* Captures what gc_runtime_accept() prints on stderr. */
static bool accept_saying(uint32_t major, char *text, size_t size)
{
	const struct gc_runtime *runtime;
	int ends[2], before = dup(STDERR_FILENO);

	assert_int_equal(pipe(ends), 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	bool accepted = gc_runtime_accept("libx", major, &runtime);
	assert_true(dup2(before, STDERR_FILENO) >= 0);
	(void)close(before);
	(void)close(ends[1]);
	ssize_t len = read(ends[0], text, size - 1);
	(void)close(ends[0]);
	assert_true(len >= 0);
	text[len] = '\0';
	assert_non_null(runtime);
	return accepted;
}

static void test_accept(void **state)
{
	char text[600];

	(void)state;
	assert_int_equal(unsetenv("SPOOR_GC_UNKNOWN"), 0);
	assert_true(accept_saying(4, text, sizeof(text)));
	assert_string_equal(text, "");
	assert_true(accept_saying(5, text, sizeof(text)));
	assert_non_null(strstr(text, "libx: interface version 5 of this runtime is not known"));
	assert_int_equal(setenv("SPOOR_GC_UNKNOWN", "refuse", 1), 0);
	assert_false(accept_saying(5, text, sizeof(text)));
	assert_non_null(strstr(text, "SPOOR_GC_UNKNOWN=refuse is set, so it stops here"));
	assert_true(accept_saying(2, text, sizeof(text)));
	assert_string_equal(text, "");
}

/*
 * Fifteen arguments of all kinds: six in registers, nine on the stack, and eight floats in theirs.
 */
typedef uint64_t many_fn(void *self, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
	uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l,
	uint64_t m, uint64_t n, float v, double w);

struct many {
	void **table;
	uint64_t seed;
};

static unsigned called_slot;

#define SEVERAL(n, self, a, b, c, d, e, f, g, h, i, j, k, l, m, o, v, w)                        \
	((n) + (self)->seed + (a) + 2 * (b) + 3 * (c) + 4 * (d) + 5 * (e) + 6 * (f) + 7 * (g) + \
		8 * (h) + 9 * (i) + 10 * (j) + 11 * (k) + 12 * (l) + 13 * (m) + 14 * (o) +      \
		(uint64_t)(v) + (uint64_t)(w))

static uint64_t many(void *self, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
	uint64_t f, uint64_t g, uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l,
	uint64_t m, uint64_t n, float v, double w)
{
	struct many *object = self;

	called_slot = 1;
	return SEVERAL(0, object, a, b, c, d, e, f, g, h, i, j, k, l, m, n, v, w);
}

static uint64_t wrong_slot(void)
{
	called_slot = 2;
	return 0;
}

static void test_forward(void **state)
{
	static void *front_table[GC_FORWARD_SLOTS];
	void *table[GC_FORWARD_SLOTS];
	struct many object = { .table = table, .seed = 1000 };
	struct gc_forward front = { .table = front_table, .behind = &object };

	(void)state;
	gc_forward_fill(front_table);
	for (size_t slot = 0; slot < GC_FORWARD_SLOTS; slot++) {
		for (size_t i = 0; i < GC_FORWARD_SLOTS; i++)
			table[i] = (void *)(uintptr_t)wrong_slot;
		table[slot] = (void *)(uintptr_t)many;
		called_slot = 0;
		many_fn *call = (many_fn *)(uintptr_t)front.table[slot];
		uint64_t result =
			call(&front, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 1.5f, 2.5);
		assert_int_equal(called_slot, 1);
		assert_int_equal(result,
			SEVERAL(0, &object, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 1, 2));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtimes),
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
