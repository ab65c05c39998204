/*
 * memory_cgroup.c: both cgroup versions, containers and nested limits, with a simulated /proc and
 * /sys.
 */
#include "unit/test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/memory_cgroup.h"

static char root[64];

static void write_file(const char *path, const char *text)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
		*slash = '/';
	}
	FILE *file = fopen(whole, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/test_memory_cgroup.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	write_file("/proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\n");
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* The group of this process has no limit, but its parent has one. */
static void test_unified(void **state)
{
	struct memory_cgroup group;

	(void)state;
	write_file("/proc/self/cgroup", "0::/system.slice/shop.service/worker\n");
	write_file("/proc/self/mountinfo",
		"23 1 8:1 / / rw - ext4 /dev/sda rw\n30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
	write_file("/sys/fs/cgroup/system.slice/shop.service/worker/memory.max", "max\n");
	write_file("/sys/fs/cgroup/system.slice/shop.service/worker/memory.current", "1000\n");
	assert_int_equal(memory_cgroup_read(root, &group), -ENOENT);
	write_file("/sys/fs/cgroup/system.slice/shop.service/memory.max", "536870912\n");
	write_file("/sys/fs/cgroup/system.slice/shop.service/memory.current", "500000000\n");
	write_file("/sys/fs/cgroup/system.slice/shop.service/memory.stat",
		"anon 1\ninactive_file 100000000\nactive_file 7\n");
	assert_int_equal(memory_cgroup_read(root, &group), 0);
	assert_int_equal(group.limit_bytes, 536870912);
	assert_int_equal(group.used_bytes, 400000000);
	assert_int_equal(group.left_bytes, 136870912);
	assert_string_equal(group.path, "/system.slice/shop.service");
	write_file("/proc/10/cgroup", "0::/system.slice/shop.service\n");
	write_file("/proc/11/cgroup", "0::/system.slice/shop.service/other\n");
	write_file("/proc/12/cgroup", "0::/system.slice/shop.services\n");
	assert_true(memory_cgroup_holds(root, &group, 10));
	assert_true(memory_cgroup_holds(root, &group, 11));
	assert_false(memory_cgroup_holds(root, &group, 12));
	assert_false(memory_cgroup_holds(root, &group, 13));
	/* The innermost group has the least room now. */
	write_file("/sys/fs/cgroup/system.slice/shop.service/worker/memory.max", "5000\n");
	assert_int_equal(memory_cgroup_read(root, &group), 0);
	assert_int_equal(group.left_bytes, 4000);
	assert_false(memory_cgroup_holds(root, &group, 11));
}

/* In a container with a separate cgroup namespace its group is the root. */
static void test_container(void **state)
{
	struct memory_cgroup group;

	(void)state;
	write_file("/proc/self/cgroup", "0::/\n");
	write_file("/sys/fs/cgroup/memory.max", "268435456\n");
	write_file("/sys/fs/cgroup/memory.current", "300000000\n");
	assert_int_equal(memory_cgroup_read(root, &group), 0);
	assert_int_equal(group.left_bytes, 0);
	assert_string_equal(group.path, "");
	write_file("/proc/10/cgroup", "0::/\n");
	write_file("/proc/11/cgroup", "0::/sub\n");
	assert_true(memory_cgroup_holds(root, &group, 10));
	assert_true(memory_cgroup_holds(root, &group, 11));
}

/*
 * Version 1 together with a unified hierarchy without the memory controller. A part of the
 * hierarchy is mounted, as in a container without a cgroup namespace.
 */
static void test_version_1(void **state)
{
	struct memory_cgroup group;

	(void)state;
	write_file("/proc/self/cgroup",
		"9:name=systemd:/x\n4:cpuset,memory:/docker/abc/inner\n0::/\n");
	write_file("/proc/self/mountinfo",
		"31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n34 31 0:31 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
		"35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpuset,memory\n41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	write_file("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "9223372036854771712\n");
	write_file("/sys/fs/cgroup/memory/inner/memory.usage_in_bytes", "100\n");
	write_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "100000000\n");
	write_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "60000000\n");
	write_file("/sys/fs/cgroup/memory/memory.stat",
		"inactive_file 1\ntotal_inactive_file 20000000\n");
	assert_int_equal(memory_cgroup_read(root, &group), 0);
	assert_int_equal(group.left_bytes, 60000000);
	assert_string_equal(group.path, "/docker/abc");
	write_file("/proc/10/cgroup", "4:cpuset,memory:/docker/abc\n");
	assert_true(memory_cgroup_holds(root, &group, 10));
	write_file("/proc/10/cgroup", "4:cpuset,memory:/docker/def\n");
	assert_false(memory_cgroup_holds(root, &group, 10));
}

/* Files that are missing or contain invalid values. */
static void test_nothing(void **state)
{
	struct memory_cgroup group;

	(void)state;
	write_file("/proc/self/cgroup", "");
	assert_int_equal(memory_cgroup_read(root, &group), -ENOENT);
	write_file("/proc/self/cgroup", "nonsense\n0:\n4:memory\n");
	assert_int_equal(memory_cgroup_read(root, &group), -ENOENT);
	write_file("/proc/self/cgroup", "4:memory:/x\n");
	write_file("/proc/self/mountinfo", "1 2\n - cgroup\n1 2 3 - cgroup cgroup rw,memory\n");
	assert_int_equal(memory_cgroup_read(root, &group), -ENOENT);
	assert_int_equal(memory_cgroup_read("/nowhere", &group), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unified),
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests_name("memory_cgroup", tests, set_up, tear_down);
}
