/* The folder of spoor inject, in this process's own root: only its own paths, files in place of others, and no link is followed. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "forward/hook_folder.h"

static void test_only_its_own_paths(void **state)
{
	static const char *const foreign[] = { "", "/", "/etc", "/tmp", "/tmp/spoor-inject-",
		"/tmp/spoor-inject-0123456789abcde", "/tmp/spoor-inject-0123456789abcdef0",
		"/tmp/spoor-inject-0123456789abcdeF", "/tmp/../etc/spoor-inject-0123456789abcdef",
		"/tmp/spoor-inject-0123456789abcdef/x", "/home/spoor-inject-0123456789abcdef" };

	(void)state;
	for (size_t i = 0; i < sizeof(foreign) / sizeof(*foreign); i++) {
		struct hook_folder folder;
		struct diag diag = { 0 };
		int error = hook_folder_open(&folder, (uint32_t)getpid(), foreign[i], &diag);
		if (error == -ENOSYS)
			skip();
		assert_int_equal(error, -EPERM);
		assert_int_equal(folder.fd, -1);
	}
}

static void test_a_folder_and_its_files(void **state)
{
	struct hook_folder folder, again;
	struct diag diag = { 0 };
	struct bytes text = { 0 };
	struct stat st;
	char path[HOOK_PATH_MAX], link[HOOK_PATH_MAX + 16];

	(void)state;
	assert_false(hook_folder_path(3, 0, path));
	assert_true(hook_folder_path(0, 0x5a0000 + (uint32_t)getpid(), path));
	int error = hook_folder_open(&folder, (uint32_t)getpid(), path, &diag);
	if (error == -ENOSYS)
		skip();
	assert_int_equal(error, 0);
	assert_string_equal(path, folder.path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(hook_folder_state(&folder, &text, &diag), -ENOENT);

	assert_int_equal(hook_folder_put(&folder, "settings", "a longer text", 13, &diag), 0);
	assert_int_equal(hook_folder_put(&folder, "settings", "off\n", 4, &diag), 0);
	assert_int_equal(hook_folder_put(&folder, "state", "on\n", 3, &diag), 0);
	assert_int_equal(hook_folder_state(&folder, &text, &diag), 0);
	assert_string_equal(bytes_z(&text), "on\n");
	hook_folder_forget_state(&folder);
	assert_int_equal(hook_folder_state(&folder, &text, &diag), -ENOENT);

	/* A link in place of the state is not followed. */
	snprintf(link, sizeof(link), "%s/state", path);
	assert_int_equal(symlink("/etc/passwd", link), 0);
	assert_true(hook_folder_state(&folder, &text, &diag) < 0);
	assert_string_equal(bytes_z(&text), "on\n");

	/* The same folder is opened again, and is made again after its removal. */
	assert_int_equal(hook_folder_open(&again, (uint32_t)getpid(), path, &diag), 0);
	hook_folder_close(&again);
	hook_folder_remove(&folder, (uint32_t)getpid());
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(hook_folder_open(&again, (uint32_t)getpid(), path, &diag), 0);
	assert_int_equal(access(path, F_OK), 0);
	hook_folder_remove(&again, (uint32_t)getpid());

	/* A link in place of the folder. */
	assert_int_equal(symlink("/tmp", path), 0);
	assert_true(hook_folder_open(&again, (uint32_t)getpid(), path, &diag) < 0);
	assert_int_equal(unlink(path), 0);
	bytes_done(&text);
}

static void test_bytes_that_are_no_hook(void **state)
{
	static const uint8_t bytes[512] = { 'M', 'Z' };
	struct diag diag = { 0 };

	(void)state;
	assert_true(hook_check(bytes, sizeof(bytes), &diag) < 0);
	assert_true(hook_check(bytes, 1, &diag) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_its_own_paths),
		cmocka_unit_test(test_a_folder_and_its_files),
		cmocka_unit_test(test_bytes_that_are_no_hook),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
