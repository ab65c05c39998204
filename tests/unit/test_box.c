/* box.c: parses lists of CPUs, and uses a cache folder only if no other user can write to it. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/box.h"
#include "machine/rights.h"

static int parse(const char *text, struct cpu_list *list)
{
	vec_reset(&list->cpus);
	return box_parse_cpu_list(text, strlen(text), list);
}

static void test_cpu_list(void **state)
{
	struct cpu_list list = { 0 };

	(void)state;
	assert_int_equal(parse("0-3,8,10-11\n", &list), 0);
	assert_int_equal(list.cpus.count, 7);
	assert_int_equal(list.cpus.items[4], 8);
	assert_int_equal(list.cpus.items[6], 11);
	assert_int_equal(parse("5", &list), 0);
	assert_int_equal(list.cpus.count, 1);
	assert_int_equal(parse("\n", &list), 0);
	assert_int_equal(list.cpus.count, 0);
	static const char *const broken[] = { "a", "1-", "-1", "3-1", "1,1", "5,3", "1-2-3",
		"0-99999999", "99999999999999999999", "1;2", "1,,2" };
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		assert_int_equal(parse(broken[i], &list), -EBADMSG);
	vec_done(&list.cpus);
}

static void test_this_box(void **state)
{
	struct box box;
	struct rights rights;
	struct cpu_list list = { 0 };

	(void)state;
	box_read(&box);
	assert_true(box.host[0] && box.kernel[0] && box.system[0] && box.architecture[0]);
	assert_true(box.cpu_online >= 1 && box.cpu_possible >= box.cpu_online);
	assert_int_equal(box.page_size_bytes, sysconf(_SC_PAGESIZE));
	assert_true(box.memory_bytes > 16u << 20);
	assert_int_equal(box_read_online_cpus(&list, NULL), 0);
	assert_int_equal(list.cpus.count, box.cpu_online);
	assert_true(box_cpu_numbers() > *vec_last(&list.cpus));
	assert_true(box_cpu_numbers() >= box.cpu_possible);
	vec_done(&list.cpus);
	rights_read(&rights);
	assert_int_equal(rights.euid, geteuid());
	assert_true(rights.open_files_max > 0);
}

/* Runs as another user with a separate home, because the test must not change root's folder. */
static int cache_cases(const char *home)
{
	struct box box;
	struct stat st;
	struct diag diag = { 0 };
	char path[256], other[256];
	int fd = -1;

	if (geteuid() == 0 &&
		(setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		return 1;
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", home, 1);
	box_read(&box);
	if (!box.boot_id[0])
		return 0;
	/* Opening our folder removes the folder of another boot. */
	snprintf(path, sizeof(path), "%s/.cache", home);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/.cache/spoor", home);
	mkdir(path, 0700);
	snprintf(other, sizeof(other), "%s/.cache/spoor/00000000-0000-0000-0000-000000000000",
		home);
	mkdir(other, 0700);
	if (box_open_cache(&box, &fd, &diag) < 0)
		return 2;
	close(fd);
	if (stat(other, &st) == 0)
		return 3;
	/* A folder that others may write to is refused. */
	chmod(path, 0777);
	if (box_open_cache(&box, &fd, &diag) != -EPERM)
		return 4;
	chmod(path, 0700);
	snprintf(other, sizeof(other), "%s/.cache/elsewhere", home);
	if (rename(path, other) < 0 || symlink(other, path) < 0)
		return 5;
	/* A symbolic link instead of the folder is refused. */
	if (box_open_cache(&box, &fd, NULL) >= 0)
		return 6;
	unlink(path);
	setenv("HOME", "relative", 1);
	return box_open_cache(&box, &fd, NULL) == -ENOENT ? 0 : 7;
}

static void test_cache_folder(void **state)
{
	char home[] = "/tmp/spoor-test-XXXXXX";
	char command[128];

	(void)state;
	assert_non_null(mkdtemp(home));
	assert_int_equal(chmod(home, 0777), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(cache_cases(home));
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	snprintf(command, sizeof(command), "rm -r '%s'", home);
	assert_int_equal(system(command), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpu_list),
		cmocka_unit_test(test_this_box),
		cmocka_unit_test(test_cache_folder),
	};

	return cmocka_run_group_tests_name("box", tests, NULL, NULL);
}
