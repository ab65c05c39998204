/* target_root.c: only regular files of bounded size, never outside the root, never a wait. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/target_root.h"

struct place {
	char folder[64];
	struct target_root root;
};

static int open_in(const struct place *place, const char *name, uint64_t size_max, uint64_t *size)
{
	char path[256];
	int fd = -1;

	snprintf(path, sizeof(path), "%s/%s", place->folder, name);
	int r = target_root_open_file(&place->root, path, size_max, &fd, size, NULL);
	if (r == 0)
		close(fd);
	return r;
}

static void at(const struct place *place, const char *name, char path[256])
{
	snprintf(path, 256, "%s/%s", place->folder, name);
}

static void test_kinds_of_files(void **state)
{
	struct place place = { .folder = "/tmp/spoor-test-XXXXXX" };
	char path[256], other[256];
	uint64_t size = 0;

	(void)state;
	assert_non_null(mkdtemp(place.folder));
	assert_int_equal(target_root_open(&place.root, (uint32_t)getpid(), NULL), 0);
	assert_true(place.root.ours);
	at(&place, "file", path);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "hello", 5), 5);
	close(fd);
	at(&place, "pipe", other);
	assert_int_equal(mkfifo(other, 0600), 0);
	at(&place, "link", other);
	assert_int_equal(symlink("file", other), 0);
	at(&place, "magic", other);
	assert_int_equal(symlink("/proc/self/exe", other), 0);
	at(&place, "up", other);
	assert_int_equal(symlink("../../../../../../etc/passwd", other), 0);

	assert_int_equal(open_in(&place, "file", 5, &size), 0);
	assert_int_equal(size, 5);
	assert_int_equal(open_in(&place, "link", 5, &size), 0);
	assert_int_equal(open_in(&place, "file", 4, &size), -EFBIG);
	assert_int_equal(open_in(&place, "pipe", 5, &size), -EINVAL);
	assert_int_equal(open_in(&place, ".", 5, &size), -EINVAL);
	assert_int_equal(open_in(&place, "none", 5, &size), -ENOENT);
	assert_int_equal(open_in(&place, "magic", UINT64_MAX, &size), -ELOOP);
	assert_int_equal(open_in(&place, "up", UINT64_MAX, &size), 0); /* in its root, as it sees it */
	target_root_close(&place.root);

	static const char *const names[] = { "file", "pipe", "link", "magic", "up" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		at(&place, names[i], path);
		unlink(path);
	}
	rmdir(place.folder);
}

static void test_gone(void **state)
{
	struct target_root root;
	struct diag diag = { 0 };
	int fd;

	(void)state;
	assert_int_equal(target_root_open(&root, 4194300, &diag), -ESRCH);
	assert_non_null(strstr(diag.text, "4194300"));
	target_root_close(&root);
	assert_int_equal(target_memory_open(4194300, &fd), -ESRCH);
}

static void test_memory(void **state)
{
	static const char secret[] = "read me from outside";
	char buffer[sizeof(secret)] = "";
	int fd;

	(void)state;
	assert_int_equal(target_memory_open((uint32_t)getpid(), &fd), 0);
	assert_int_equal(target_memory_read(fd, (uint64_t)(uintptr_t)secret, buffer, sizeof(buffer)),
		sizeof(buffer));
	assert_string_equal(buffer, secret);
	assert_int_equal(target_memory_read(fd, 8, buffer, sizeof(buffer)), -EIO);
	assert_int_equal(target_memory_read(fd, UINT64_MAX - 100, buffer, sizeof(buffer)), -EIO);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds_of_files),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests_name("target_root", tests, NULL, NULL);
}
