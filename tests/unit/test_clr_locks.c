/*
 * clr_locks.c: what of a runtime's memory is believed about the owner of a lock, in the made-up process of
 * clr_process.h. Real locks: feature/diagnose/diagnose_live.
 */
#include "unit/test.h"

#include <string.h>

#include "code/clr_image.h"
#include "code/clr_locks.h"
#include "unit/clr_process.h"

#define OBJECT 0x12000u
#define BLOCK  0x12100u
#define TABLE  0x12200u
#define STORE  0x12400u
#define THREAD 0x12500u /* of 0x40 bytes each */
#define NUMBER 7u
#define TID    4711u

static struct clr_process process;
static struct clr_layout layout;
static struct clr_memory memory;

static void put(uint64_t place, uint64_t value, unsigned size)
{
	clr_process_put(&process, place, value, size);
}

static bool owner(uint64_t *ret_tid)
{
	return clr_locks_owner(&layout, &memory, CLR_BASE + OBJECT, ret_tid);
}

/* A lock that thread 2 of 3 holds, and that others wait for. */
static void make(enum clr_version version)
{
	process = (struct clr_process){ .block = calloc(1, CLR_BYTES) };
	clr_memory_init(&memory, clr_process_read, &process, NULL);
	layout = (struct clr_layout){ .version = version,
		.sync_table = CLR_BASE + TABLE,
		.thread_store = CLR_BASE + STORE,
		.block_interop = 56,
		.store_first = 8,
		.store_count = 16,
		.thread_id = 8,
		.thread_os_id = 16,
		.thread_next = 24 };
	put(OBJECT - 4, 0x08000000 | NUMBER, 4);
	clr_process_pointer(&process, TABLE + NUMBER * 16, BLOCK);
	clr_process_pointer(&process, TABLE + NUMBER * 16 + 8, OBJECT);
	put(BLOCK, 1 | 2 << 6, 4);
	if (version == CLR_VERSION_10)
		put(BLOCK + 8, 2, 4);
	else
		clr_process_pointer(&process, BLOCK + 8, THREAD + 0x40);
	put(BLOCK + 16, TID, 8);
	put(BLOCK + 28, NUMBER | 0x80000000u, 4);
	put(STORE + 16, 3, 4);
	clr_process_pointer(&process, STORE + 8, THREAD + 24);
	for (unsigned i = 0; i < 3; i++) {
		put(THREAD + 0x40 * i + 8, i + 1, 4);
		put(THREAD + 0x40 * i + 16, TID - 1 + i, 8);
		if (i < 2)
			clr_process_pointer(&process, THREAD + 0x40 * i + 24,
				THREAD + 0x40 * (i + 1) + 24);
	}
}

static void test_owner(void **state)
{
	static const enum clr_version versions[] = { CLR_VERSION_9, CLR_VERSION_10 };
	uint64_t tid;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		make(versions[i]);
		assert_true(owner(&tid));
		assert_int_equal(tid, TID);
		clr_process_done(&process);
	}
}

/* Each change alone makes the owner unknown. */
static void test_doubt(void **state)
{
	static const struct {
		uint64_t place;
		uint64_t value;
		unsigned size;
	} changes[] = {
		{ OBJECT - 4, 5, 4 },                          /* a thin lock */
		{ OBJECT - 4, 0x0c000000 | NUMBER, 4 },        /* a hash */
		{ OBJECT - 4, 0x08000000 | (NUMBER + 1), 4 },  /* another block */
		{ OBJECT - 4, 0x0bffffff, 4 },                 /* beyond the table */
		{ TABLE + NUMBER * 16, 0, 8 },                 /* no block */
		{ TABLE + NUMBER * 16 + 8, CLR_BASE + 64, 8 }, /* another object */
		{ BLOCK, 2 << 6, 4 },                          /* not held */
		{ BLOCK, 1, 4 },                               /* without waiters */
		{ BLOCK + 8, 0, 8 },                           /* no holder */
		{ BLOCK + 8, 3, 4 },                           /* another thread than the id says */
		{ BLOCK + 16, 0, 8 },                          /* no thread */
		{ BLOCK + 16, TID + 1, 8 },                    /* another thread */
		{ BLOCK + 28, NUMBER + 1, 4 },                 /* the number of another block */
		{ STORE + 8, 0, 8 },                           /* no threads */
		{ THREAD + 0x40 + 16, 0, 8 },                  /* the thread has ended */
	};
	uint64_t tid;

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		make(CLR_VERSION_10);
		put(changes[i].place, changes[i].value, changes[i].size);
		assert_false(owner(&tid));
		clr_process_done(&process);
	}
	make(CLR_VERSION_10);
	layout.block_interop = 48; /* another layout of sync blocks */
	assert_false(owner(&tid));
	layout.block_interop = 56;
	/* a list of threads that never ends */
	clr_process_pointer(&process, THREAD + 24, THREAD + 24);
	assert_false(owner(&tid));
	assert_false(clr_locks_owner(&layout, &memory, 8, &tid));
	assert_false(clr_locks_owner(&layout, &memory, CLR_BASE + OBJECT + 4, &tid));
	clr_process_done(&process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owner),
		cmocka_unit_test(test_doubt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
