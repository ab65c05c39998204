/* Executable mappings as kernel records change them. */
#include "recording/code_spaces.h"

#include <unistd.h>

#include "base/clocks.h"
#include "base/strtab.h"
#include "machine/proc.h"
#include "unit/test.h"

#define PID 4000001u /* no process can have it */

static struct proc_reader proc;
static struct strtab strings;
static struct code_spaces spaces;

/* The changes that were announced: their number, and the last one. */
static struct {
	unsigned count;
	uint64_t begin;
	uint64_t end;
} changes;

static void note_change(void *user, const struct code_space *space, uint64_t begin, uint64_t end)
{
	assert_null(user);
	assert_int_equal(space->pid, PID);
	changes.count++;
	changes.begin = begin;
	changes.end = end;
}

static int set_up(void **state)
{
	(void)state;
	strings = (struct strtab){ 0 };
	spaces = (struct code_spaces){ .proc = &proc, .strings = &strings };
	return proc_open(&proc, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	code_spaces_done(&spaces);
	strtab_done(&strings);
	proc_close(&proc);
	return 0;
}

static void map(uint32_t pid, uint64_t begin, uint64_t end, const char *path)
{
	code_spaces_map(&spaces, pid,
		&(struct code_mapping){ .begin = begin,
			.end = end,
			.file_offset = 0x100,
			.path = strtab_add_z(&strings, path) },
		clock_monotonic_ns());
}

static void expect(uint32_t pid, uint64_t address, const char *path, uint64_t file_offset)
{
	struct code_space *space = code_spaces_get(&spaces, pid);
	const struct code_mapping *mapping = code_spaces_find(&spaces, space, address);

	if (!path) {
		assert_null(mapping);
		return;
	}
	assert_non_null(mapping);
	assert_string_equal(strtab_get(&strings, mapping->path), path);
	assert_int_equal(mapping->file_offset, file_offset);
}

/* A mapping replaces what it covers of others, in the middle as well. */
static void test_overlap(void **state)
{
	(void)state;
	code_spaces_exec(&spaces, PID, clock_monotonic_ns());
	map(PID, 0x1000, 0x9000, "/a");
	map(PID, 0x10000, 0x11000, "/c");
	map(PID, 0x1000, 0x9000, "/a"); /* the same again */
	map(PID, 0x3000, 0x5000, "/b");
	expect(PID, 0xfff, NULL, 0);
	expect(PID, 0x2fff, "/a", 0x100);
	expect(PID, 0x3000, "/b", 0x100);
	expect(PID, 0x5000, "/a", 0x4100);
	expect(PID, 0x9000, NULL, 0);
	expect(PID, 0x10fff, "/c", 0x100);
	map(PID, 0x2000, 0x10800, "/d");
	expect(PID, 0x1fff, "/a", 0x100);
	expect(PID, 0x5000, "/d", 0x100);
	expect(PID, 0x10800, "/c", 0x900);
}

/* Expects that so many ranges were announced, the last one as given. */
static void changed(unsigned count, uint64_t begin, uint64_t end)
{
	assert_int_equal(changes.count, count);
	assert_int_equal(changes.begin, begin);
	assert_int_equal(changes.end, end);
}

/* Only code that is unwound in another way is announced, and only where it was. */
static void test_changes(void **state)
{
	struct code_mapping file = { .begin = 0x1000,
		.end = 0x9000,
		.file_offset = 0x1000,
		.inode = 7,
		.path = strtab_add_z(&strings, "/a") };
	struct code_mapping part = file;

	(void)state;
	code_spaces_exec(&spaces, PID, clock_monotonic_ns());
	uint16_t number = code_spaces_get(&spaces, PID)->number;
	spaces.changed = note_change;
	code_spaces_map(&spaces, PID, &file, clock_monotonic_ns());
	/* A part changes its protection, then the whole grows. */
	part.begin = part.file_offset = 0x3000;
	part.end = 0x4000;
	code_spaces_map(&spaces, PID, &part, clock_monotonic_ns());
	file.end = 0xa000;
	code_spaces_map(&spaces, PID, &file, clock_monotonic_ns());
	assert_int_equal(changes.count, 0);
	/* A heap of a compiler grows, is split, and is replaced by another one. */
	map(PID, 0x10000, 0x14000, "//anon");
	map(PID, 0x10000, 0x18000, "//anon");
	map(PID, 0x12000, 0x13000, "/memfd:doublemapper");
	assert_int_equal(changes.count, 0);
	/* Precompiled code takes the place of a part: it may have other frames. */
	map(PID, 0x14000, 0x15000, "/app/x.dll");
	changed(1, 0x14000, 0x15000);
	changes.count = 0;
	/* Another offset, another file of the same name, another build id, and code with a table over code without. */
	part.file_offset = 0x2000;
	code_spaces_map(&spaces, PID, &part, clock_monotonic_ns());
	changed(1, 0x3000, 0x4000);
	part.inode = 8;
	code_spaces_map(&spaces, PID, &part, clock_monotonic_ns());
	changed(2, 0x3000, 0x4000);
	part.build_id = strtab_add_z(&strings, "1234");
	code_spaces_map(&spaces, PID, &part, clock_monotonic_ns());
	changed(3, 0x3000, 0x4000);
	map(PID, 0x17000, 0x19000, "/b");
	changed(4, 0x17000, 0x18000);
	map(PID, 0x18000, 0x1a000, "//anon");
	changed(5, 0x18000, 0x19000);
	assert_int_equal(code_spaces_get(&spaces, PID)->number, number);
	/* All of them. */
	code_spaces_exec(&spaces, PID, clock_monotonic_ns());
	changed(6, 0, UINT64_MAX);
	assert_int_not_equal(code_spaces_get(&spaces, PID)->number, number);
	code_spaces_exit(&spaces, PID);
	code_spaces_pass(&spaces);
	code_spaces_pass(&spaces);
	changed(7, 0, UINT64_MAX);
}

/* A child has its parent's mappings; a change in one is none in the other. */
static void test_fork(void **state)
{
	(void)state;
	code_spaces_exec(&spaces, PID, clock_monotonic_ns());
	map(PID, 0x1000, 0x2000, "/a");
	code_spaces_fork(&spaces, PID + 1, PID, clock_monotonic_ns());
	assert_int_equal(code_spaces_get(&spaces, PID)->number,
		code_spaces_get(&spaces, PID + 1)->number);
	map(PID, 0x3000, 0x4000, "/b");
	assert_int_not_equal(code_spaces_get(&spaces, PID)->number,
		code_spaces_get(&spaces, PID + 1)->number);
	expect(PID + 1, 0x1000, "/a", 0x100);
	expect(PID + 1, 0x3000, NULL, 0);
	expect(PID, 0x3000, "/b", 0x100);
	/* a thread is no process, and exec empties */
	code_spaces_fork(&spaces, PID, PID, clock_monotonic_ns());
	expect(PID, 0x3000, "/b", 0x100);
	code_spaces_exec(&spaces, PID + 1, clock_monotonic_ns());
	expect(PID + 1, 0x1000, NULL, 0);
	expect(PID, 0x1000, "/a", 0x100);
}

/* The ring that is read last may hold samples from before the exit. */
static void test_exit(void **state)
{
	(void)state;
	code_spaces_exec(&spaces, PID, clock_monotonic_ns());
	map(PID, 0x1000, 0x2000, "/a");
	code_spaces_exit(&spaces, PID);
	code_spaces_exit(&spaces, PID);
	code_spaces_pass(&spaces);
	expect(PID, 0x1000, "/a", 0x100);
	code_spaces_pass(&spaces);
	expect(PID, 0x1000, NULL, 0);
	/* the number is given again meanwhile: the new process stays */
	code_spaces_exec(&spaces, PID + 2, clock_monotonic_ns());
	code_spaces_exit(&spaces, PID + 2);
	code_spaces_fork(&spaces, PID + 2, PID, clock_monotonic_ns());
	map(PID + 2, 0x5000, 0x6000, "/n");
	code_spaces_pass(&spaces);
	code_spaces_pass(&spaces);
	expect(PID + 2, 0x5000, "/n", 0x100);
}

/* Processes of another pid namespace share the number 0: none of them has mappings. */
static void test_other_namespace(void **state)
{
	(void)state;
	code_spaces_exec(&spaces, 0, clock_monotonic_ns());
	map(0, 0x1000, 0x2000, "/a");
	assert_null(code_spaces_get(&spaces, 0));
	code_spaces_fork(&spaces, PID, 0, clock_monotonic_ns());
	expect(PID, 0x1000, NULL, 0);
}

static void old(uint32_t pid, uint64_t here)
{
	code_spaces_map(&spaces, pid,
		&(struct code_mapping){ .begin = here & ~0xfffull,
			.end = (here & ~0xfffull) + 0x1000,
			.path = strtab_add_z(&strings, "/before") },
		1);
}

/* A process that ran before is read from /proc; older records change nothing. */
static void test_proc(void **state)
{
	uint64_t here = (uint64_t)(uintptr_t)&test_proc;
	uint32_t pid = (uint32_t)getpid();
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	(void)state;
	assert_true(len > 0);
	path[len] = 0;
	old(pid, here);
	const struct code_mapping *mapping =
		code_spaces_find(&spaces, code_spaces_get(&spaces, pid), here);
	assert_non_null(mapping);
	assert_string_equal(strtab_get(&strings, mapping->path), path);
	old(pid, here);
	code_spaces_exec(&spaces, pid, 2);
	mapping = code_spaces_find(&spaces, code_spaces_get(&spaces, pid), here);
	assert_non_null(mapping);
	assert_string_equal(strtab_get(&strings, mapping->path), path);
}

/* Numbers that were used up begin again, which the user of the table sees. */
static void test_numbers(void **state)
{
	(void)state;
	code_spaces_exec(&spaces, PID, clock_monotonic_ns());
	for (uint64_t i = 0; i < 70000; i++) {
		code_spaces_exec(&spaces, PID, clock_monotonic_ns());
		map(PID, 0x1000, 0x2000, "/a");
		assert_int_not_equal(code_spaces_get(&spaces, PID)->number, 0);
	}
	assert_true(spaces.numbers_used_up);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_overlap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_changes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fork, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_namespace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_exit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_proc, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_numbers, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
