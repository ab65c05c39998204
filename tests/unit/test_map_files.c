/* map_files.c: the files that a runtime leaves for perf, in the /tmp of this process. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/map_files.h"

/* No process has this id, so no file of another program is touched. */
static uint32_t unused_pid(void)
{
	return 0x40000000u + (uint32_t)getpid();
}

static const char *path_of(size_t which)
{
	static char path[64];

	if (which == 0)
		snprintf(path, sizeof(path), "/tmp/perf-%u.map", unused_pid());
	else if (which == 1)
		snprintf(path, sizeof(path), "/tmp/perfinfo-%u.map", unused_pid());
	else
		snprintf(path, sizeof(path), "/tmp/jit-%u.dump", unused_pid());
	return path;
}

static void put(size_t which)
{
	int fd = open(path_of(which), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static int clean(void **state)
{
	(void)state;
	for (size_t i = 0; i < 3; i++)
		if (unlink(path_of(i)) < 0)
			(void)rmdir(path_of(i)); /* it may not exist */
	return 0;
}

static int remove_files(uint32_t uid)
{
	struct diag diag = { 0 };

	return map_files_remove((uint32_t)getpid(), unused_pid(), uid, &diag);
}

static void test_each_kind_is_removed(void **state)
{
	(void)state;
	assert_int_equal(remove_files(geteuid()), 0);
	for (size_t i = 0; i < 3; i++)
		put(i);
	assert_int_equal(remove_files(geteuid()), 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(access(path_of(i), F_OK), -1);
	put(2);
	assert_int_equal(remove_files(geteuid()), 1);
}

static void test_files_of_another_user_stay(void **state)
{
	(void)state;
	put(0);
	assert_int_equal(remove_files(geteuid() + 1), 0);
	assert_int_equal(access(path_of(0), F_OK), 0);
}

static void test_only_regular_files(void **state)
{
	struct stat status;
	char file[] = "/tmp/spoor-unit-XXXXXX";
	int fd = mkstemp(file);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink(file, path_of(0)), 0);
	assert_int_equal(mkfifo(path_of(1), 0600), 0);
	assert_int_equal(mkdir(path_of(2), 0700), 0);
	assert_int_equal(remove_files(geteuid()), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(lstat(path_of(i), &status), 0);
	assert_int_equal(unlink(file), 0);
}

static void test_no_such_process(void **state)
{
	struct diag diag = { 0 };

	(void)state;
	put(0);
	assert_true(map_files_remove(0x3fffffffu, unused_pid(), geteuid(), &diag) < 0);
	assert_true(diag.text[0]);
	assert_int_equal(access(path_of(0), F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, clean, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_kind_is_removed),
		TEST(test_files_of_another_user_stay),
		TEST(test_only_regular_files),
		TEST(test_no_such_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
