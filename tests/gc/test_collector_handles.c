/*
 * Handles without a runtime: kinds, their extra words, many threads.
 */
#include "unit/test.h"

#include <pthread.h>

#include "gc/collector/collector_handles.h"

static struct gc_object *object_of(uintptr_t number)
{
	return (struct gc_object *)(number * 8);
}

static void made_and_given_back(void **state)
{
	enum { MAKE = 3 * HANDLE_BLOCK_COUNT };
	static struct gc_object **made[MAKE];
	struct handles hs;

	(void)state;
	handles_init(&hs);
	for (int round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < MAKE; i++) {
			int32_t type = i % 2 ? GC_HANDLE_DEPENDENT : GC_HANDLE_PINNED;

			made[i] = handle_new(&hs, type, object_of(i + 1), (uintptr_t)i * 3);
			assert_non_null(made[i]);
			assert_int_equal(handle_type(made[i]), type);
		}
		assert_int_equal(handles_count(&hs), MAKE);
		for (uint32_t i = 0; i < MAKE; i++) {
			assert_ptr_equal(handle_load(made[i]), object_of(i + 1));
			assert_int_equal(*handle_extra(made[i]), i * 3);
		}
		for (uint32_t i = 0; i < MAKE; i++) {
			handle_free(&hs, made[i]);
			assert_null(*made[i]);
		}
		assert_int_equal(handles_count(&hs), 0);
	}
	/* Three rounds of the same number take no more blocks than one. */
	uint32_t blocks = 0;
	for (struct handle_block *b = hs.kinds[GC_HANDLE_PINNED].blocks; b; b = b->next)
		blocks++;
	assert_int_equal(blocks, 2);
	assert_null(handle_new(&hs, -1, NULL, 0));
	assert_null(handle_new(&hs, GC_HANDLE_TYPES, NULL, 0));
	handles_done(&hs);
}

static void sum(void *context, struct gc_object **handle, struct gc_object *object)
{
	(void)handle;
	*(uintptr_t *)context += (uintptr_t)object / 8;
}

static void each_of_a_kind(void **state)
{
	struct gc_object **made[100];
	struct handles hs;
	uintptr_t found = 0;

	(void)state;
	handles_init(&hs);
	for (uintptr_t i = 0; i < 100; i++)
		made[i] = handle_new(&hs, i % 2 ? GC_HANDLE_STRONG : GC_HANDLE_WEAK_LONG,
			i % 10 == 1 ? NULL : object_of(i), 0);
	handle_free(&hs, made[99]);
	handles_each(&hs, GC_HANDLE_STRONG, sum, &found);
	uintptr_t expected = 0;
	for (uintptr_t i = 1; i < 99; i += 2)
		expected += i % 10 == 1 ? 0 : i;
	assert_int_equal(found, expected);
	handles_done(&hs);
}

static void *make_and_free(void *context)
{
	struct handles *hs = context;
	struct gc_object **mine[64] = { 0 };
	uint32_t seed = (uint32_t)(uintptr_t)&seed;

	for (int step = 0; step < 20000; step++) {
		seed = seed * 1664525 + 1013904223;
		uint32_t at = (seed >> 16) % 64;

		if (mine[at]) {
			if (handle_load(mine[at]) != object_of(at + 1) ||
				*handle_extra(mine[at]) != at)
				return mine[at];
			handle_free(hs, mine[at]);
			mine[at] = NULL;
		} else {
			mine[at] = handle_new(hs,
				(int32_t)(seed >> 8) % 2 ? GC_HANDLE_STRONG : GC_HANDLE_WEAK_SHORT,
				object_of(at + 1), at);
		}
	}
	for (int i = 0; i < 64; i++) {
		if (mine[i])
			handle_free(hs, mine[i]);
	}
	return NULL;
}

static void threads_and_a_scan(void **state)
{
	pthread_t threads[4];
	struct handles hs;

	(void)state;
	handles_init(&hs);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, make_and_free, &hs), 0);
	for (int i = 0; i < 200; i++) {
		uintptr_t found = 0;

		handles_each(&hs, GC_HANDLE_STRONG, sum, &found);
		assert_in_range(found, 0, 4 * 64 * 65);
	}
	for (int i = 0; i < 4; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	assert_int_equal(handles_count(&hs), 0);
	handles_done(&hs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(made_and_given_back),
		cmocka_unit_test(each_of_a_kind),
		cmocka_unit_test(threads_and_a_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
