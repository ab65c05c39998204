/*
 * threads_text.c with groups of stacks/thread_groups.c: the members of each group, their order, and
 * the output.
 */
#include "unit/test.h"

#include <string.h>

#include "base/bytes.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_groups.h"
#include "stacks/threads_text.h"
#include "trace/symbolmap.h"

static uint64_t frame(struct thread_dump *dump, const char *name, const char *module,
	enum function_kind kind)
{
	const struct dump_frame frame = {
		.name = strtab_add_z(&dump->texts, name),
		.module = strtab_add_z(&dump->texts, module),
		.kind = (uint8_t)kind,
	};

	return thread_dump_frame(dump, &frame);
}

static struct dump_thread *thread(struct thread_dump *dump, uint32_t tid, const char *name,
	uint32_t stack)
{
	struct dump_thread *thread = vec_push(&dump->threads);

	assert_non_null(thread);
	*thread = (struct dump_thread){
		.tid = tid,
		.inner_tid = tid,
		.name = strtab_add_z(&dump->texts, name),
		.syscall = strtab_add_z(&dump->texts, "futex"),
		.stack = stack,
		.mode = stack ? THREAD_NATIVE : THREAD_UNSAMPLED,
		.managed_count = stack ? 2 : 0,
		.state = 'S',
	};
	return thread;
}

static void fill(struct thread_dump *dump)
{
	assert_int_equal(thread_dump_init(dump), 0);
	dump->pid = 7;
	dump->name = strtab_add_z(&dump->texts, "shop\x1b");
	dump->native = true;
	dump->took_ns = 100000000;
	const uint64_t park[] = { frame(dump, "Shop.Park()", "Shop", FUNCTION_JIT),
		frame(dump, "Shop.Main()", "Shop", FUNCTION_JIT) };
	const uint64_t want[] = { frame(dump, "futex", "kernel", FUNCTION_KERNEL),
		frame(dump, "Shop.Want()", "Shop", FUNCTION_READYTORUN),
		frame(dump, "Shop.Main()", "Shop", FUNCTION_JIT) };
	assert_true(park[1] == want[2]); /* each frame is stored once */
	uint32_t parked = stack_table_intern(&dump->stacks, park, 2);
	uint32_t wanted = stack_table_intern(&dump->stacks, want, 3);
	thread(dump, 30, "native", 0);
	thread(dump, 12, "b", parked);
	thread(dump, 11, "a", parked);
	thread(dump, 10, "owner", wanted);
	struct dump_thread *waiter = thread(dump, 13, "waiter", wanted);
	waiter->lock = 0xabc;
	waiter->lock_owner = 10;
}

static const struct threads_text_options plain = { 0 };

static void test_groups(void **state)
{
	struct thread_dump dump;
	static const uint32_t order[] = { 11, 12, 10, 13, 30 };

	(void)state;
	fill(&dump);
	assert_int_equal(thread_groups_make(&dump), 0);
	/* a thread that waits for a lock and the owner of the lock are in different groups */
	assert_int_equal(dump.groups.count, 4);
	assert_int_equal(dump.groups.items[0].count, 2);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(dump.threads.items[dump.members.items[i]].tid, order[i]);
	thread_dump_done(&dump);
}

static void test_text(void **state)
{
	struct thread_dump dump;
	struct bytes out = { 0 };

	(void)state;
	fill(&dump);
	assert_int_equal(thread_groups_make(&dump), 0);
	threads_text(&dump, &plain, &out);
	const char *text = bytes_z(&out);
	assert_non_null(strstr(text,
		"shop\\x1b (7), 00:00:00 UTC: 5 threads, 4 with managed frames, 4 different stacks\nwhole, taken within 100 ms\n"));
	assert_non_null(strstr(text,
		"\n2 threads  waiting in futex\n  11 a, 12 b\n    Shop.Park()  Shop\n    Shop.Main()  Shop\n"));
	assert_non_null(strstr(text,
		"\n13 waiter  waiting in futex, for the lock of object 0xabc, held by 10 owner\n    futex        kernel\n"));
	assert_null(strstr(text, "locks without an owner"));
	dump.threads.items[0].waits_for = strtab_add_z(&dump.texts, "for a lock");
	dump.threads.items[0].waits_for_lock = true;
	bytes_reset(&out);
	threads_text(&dump, &plain, &out);
	assert_non_null(strstr(bytes_z(&out),
		"\nlocks without an owner: the runtime announces the owner only when a wait begins;"));
	bytes_reset(&out);
	threads_dotnet_stack(&dump, &out);
	assert_non_null(strstr(bytes_z(&out),
		"Thread (0xD):\n  [Native Frames]\n  Shop!Shop.Want()\n  Shop!Shop.Main()\n\n"));
	assert_null(strstr(bytes_z(&out), "futex"));
	bytes_reset(&out);
	threads_json(&dump, &out);
	assert_non_null(strstr(bytes_z(&out), "\"lock_object\":2748,\"lock_owner_tid\":10,"));
	assert_non_null(strstr(bytes_z(&out),
		"{\"name\":\"Shop.Want()\",\"module\":\"Shop\",\"kind\":\"r2r\"}"));
	bytes_done(&out);
	thread_dump_done(&dump);
}

/*
 * Frames and threads of little interest have one line each without --whole. JSON always contains
 * them.
 */
static void test_folded(void **state)
{
	struct thread_dump dump;
	struct bytes out = { 0 };

	(void)state;
	fill(&dump);
	const uint64_t frames[] = { frame(&dump, "futex_do_wait", "kernel", FUNCTION_KERNEL),
		frame(&dump, "do_syscall_64", "kernel", FUNCTION_KERNEL),
		frame(&dump, "wait", "libc.so.6", FUNCTION_NATIVE),
		frame(&dump, "libx.so+0x10", "libx.so", FUNCTION_NATIVE),
		frame(&dump, "libx.so+0x20", "libx.so", FUNCTION_NATIVE),
		frame(&dump, "liby.so+0x30", "liby.so", FUNCTION_NATIVE) };
	uint32_t stack = stack_table_intern(&dump.stacks, frames, 6);
	thread(&dump, 40, "mine", stack)->managed_count = 0;
	for (uint32_t i = 0; i < 12; i++)
		thread(&dump, 41 + i, i < 10 ? ".NET TP Worker" : ".NET TP Gate", stack)->idle =
			true;
	assert_int_equal(thread_groups_make(&dump), 0);
	threads_text(&dump, &plain, &out);
	assert_non_null(strstr(bytes_z(&out),
		"\n40 mine  waiting in futex\n    [2 frames of the kernel]\n    wait          libc.so.6\n"
		"    [2 frames of libx.so without symbols]\n    liby.so+0x30  liby.so\n"));
	assert_non_null(strstr(bytes_z(&out),
		"\n\n12 threads of the runtime: 10 .NET TP Worker, 2 .NET TP Gate (--whole shows them)\n"));
	bytes_reset(&out);
	threads_text(&dump, &(struct threads_text_options){ .whole = true }, &out);
	assert_non_null(strstr(bytes_z(&out), "\n    do_syscall_64  kernel\n"));
	assert_non_null(strstr(bytes_z(&out), "\n    libx.so+0x20   libx.so\n"));
	assert_non_null(strstr(bytes_z(&out), "\n12 threads  waiting in futex\n"));
	assert_null(strstr(bytes_z(&out), "idle"));
	bytes_reset(&out);
	threads_json(&dump, &out);
	assert_non_null(strstr(bytes_z(&out), "\"name\":\"libx.so+0x20\""));
	assert_non_null(strstr(bytes_z(&out), "\"tid\":52,"));
	bytes_done(&out);
	thread_dump_done(&dump);
}

static void test_short_names(void **state)
{
	struct thread_dump dump;
	struct bytes out = { 0 };

	(void)state;
	assert_int_equal(thread_dump_init(&dump), 0);
	const struct dump_frame named = {
		.name = strtab_add_z(&dump.texts, "Shop.Api.Orders.Get()"),
		.short_name = strtab_add_z(&dump.texts, "Api.Orders.Get()"),
		.module = strtab_add_z(&dump.texts, "Shop"),
		.kind = FUNCTION_JIT,
	};
	const uint64_t frames[] = { thread_dump_frame(&dump, &named) };
	thread(&dump, 1, "main", stack_table_intern(&dump.stacks, frames, 1));
	assert_int_equal(thread_groups_make(&dump), 0);
	threads_text(&dump, &plain, &out);
	assert_non_null(strstr(bytes_z(&out), "\n    Api.Orders.Get()  Shop\n"));
	bytes_reset(&out);
	threads_text(&dump, &(struct threads_text_options){ .long_names = true }, &out);
	assert_non_null(strstr(bytes_z(&out), "\n    Shop.Api.Orders.Get()  Shop\n"));
	bytes_reset(&out);
	threads_json(&dump, &out);
	threads_dotnet_stack(&dump, &out);
	assert_null(strstr(bytes_z(&out), "\"Api.Orders"));
	assert_null(strstr(bytes_z(&out), "!Api.Orders"));
	bytes_done(&out);
	thread_dump_done(&dump);
}

/* Frames of one time and a wait of another are not joined. */
static void test_moved(void **state)
{
	struct thread_dump dump;
	struct bytes out = { 0 };

	(void)state;
	fill(&dump);
	dump.threads.items[1].moved = true;
	assert_int_equal(thread_groups_make(&dump), 0);
	assert_int_equal(dump.groups.count, 5);
	threads_text(&dump, &plain, &out);
	assert_non_null(strstr(bytes_z(&out),
		"\n12 b  waiting in futex; the frames are of another moment, it ran in between\n    Shop.Park()"));
	bytes_reset(&out);
	threads_json(&dump, &out);
	assert_non_null(strstr(bytes_z(&out),
		"\"name\":\"b\",\"state\":\"S\",\"mode\":\"native\",\"system_call\":\"futex\",\"waits_at\":\"\","
		"\"kernel_function\":\"\",\"waits_for\":\"\",\"same_moment\":false,\"idle\":false,"));
	bytes_done(&out);
	thread_dump_done(&dump);
}

/* On a small terminal only the middle of long names is left out. */
static void test_narrow(void **state)
{
	struct thread_dump dump;
	struct bytes out = { 0 };
	char name[121];

	(void)state;
	memset(name, 'x', 120);
	name[120] = '\0';
	assert_int_equal(thread_dump_init(&dump), 0);
	const uint64_t frames[] = { frame(&dump, name, "Shop", FUNCTION_JIT) };
	thread(&dump, 1, "main", stack_table_intern(&dump.stacks, frames, 1));
	assert_int_equal(thread_groups_make(&dump), 0);
	threads_text(&dump, &(struct threads_text_options){ .columns = 70 }, &out);
	const char *line = strstr(bytes_z(&out), "    xxx");
	assert_non_null(line);
	/* 40 columns; the mark has three bytes */
	assert_int_equal(strcspn(line, "\n"), 4 + 40 + 2 + 2 + 4);
	assert_non_null(strstr(line, "\xe2\x80\xa6xxx"));
	bytes_done(&out);
	thread_dump_done(&dump);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_short_names),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_narrow),
	};

	return cmocka_run_group_tests_name("threads_text", tests, NULL, NULL);
}
