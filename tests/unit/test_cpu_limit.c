/*
 * cgroup.c and cpu_limit.c: both cgroup versions, containers and nested limits, with a simulated
 * /proc and /sys.
 */
#include "unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/cgroup.h"
#include "machine/cpu_limit.h"

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
	snprintf(root, sizeof(root), "/tmp/test_cpu_limit.XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* The pod's limit is lower than the container's, so it applies. */
static void test_unified(void **state)
{
	struct cpu_limit limit;

	(void)state;
	assert_int_equal(cpu_limit_read(root, 7, &limit), -ENOENT);
	write_file("/proc/7/cgroup", "0::/kubepods/pod1/c1\n");
	write_file("/proc/self/mountinfo",
		"23 1 8:1 / / rw - ext4 /dev/sda rw\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	write_file("/sys/fs/cgroup/kubepods/pod1/c1/cpu.max", "max 100000\n");
	assert_int_equal(cpu_limit_read(root, 7, &limit), -ENOENT);
	write_file("/sys/fs/cgroup/kubepods/pod1/c1/cpu.max", "400000 100000\n");
	write_file("/sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000\n");
	write_file("/sys/fs/cgroup/kubepods/pod1/cpu.stat",
		"usage_usec 5\nnr_periods 100\nnr_throttled 40\nthrottled_usec 2500000\n");
	assert_int_equal(cpu_limit_read(root, 7, &limit), 0);
	assert_string_equal(limit.path, "/kubepods/pod1");
	assert_int_equal(limit.quota_ns, 150000000);
	assert_int_equal(limit.period_ns, 100000000);
	assert_int_equal(limit.periods, 100);
	assert_int_equal(limit.throttled_periods, 40);
	assert_int_equal(limit.throttled_ns, 2500000000);
}

/*
 * Version 1 together with an empty unified tree, as on hybrid machines; cpu and cpuacct share a
 * hierarchy.
 */
static void test_version_1(void **state)
{
	struct cpu_limit limit;

	(void)state;
	write_file("/proc/self/cgroup", "4:memory:/elsewhere\n1:cpu,cpuacct:/docker/abc\n0::/\n");
	write_file("/proc/self/mountinfo",
		"30 23 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n");
	write_file("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
	write_file("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cpu_limit_read(root, 0, &limit), -ENOENT);
	write_file("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000\n");
	write_file("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.stat",
		"nr_periods 9\nnr_throttled 3\nthrottled_time 123456789\n");
	assert_int_equal(cpu_limit_read(root, 0, &limit), 0);
	assert_string_equal(limit.path, "/docker/abc");
	assert_int_equal(limit.quota_ns, 50000000);
	assert_int_equal(limit.throttled_ns, 123456789);
}

/* Inside a container that sees only its part of the hierarchy. */
static void test_inside(void **state)
{
	struct cpu_limit limit;

	(void)state;
	write_file("/proc/self/cgroup", "1:cpu:/docker/abc\n");
	write_file("/proc/self/mountinfo",
		"30 23 0:26 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
	write_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
	write_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	assert_int_equal(cpu_limit_read(root, 0, &limit), 0);
	assert_string_equal(limit.path, "/docker/abc");
	assert_int_equal(limit.quota_ns, 200000000);
	/* In a separate cgroup namespace its group is the root. */
	write_file("/proc/self/cgroup", "0::/\n");
	write_file("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
	write_file("/sys/fs/cgroup/cpu.max", "10000 100000\n");
	assert_int_equal(cpu_limit_read(root, 0, &limit), 0);
	assert_string_equal(limit.path, "/");
	assert_int_equal(limit.quota_ns, 10000000);
}

/* A group of either version can be frozen; the root group cannot. */
static void test_freezable(void **state)
{
	struct cgroup group;

	(void)state;
	assert_false(cgroup_find_freezable(root, 7, &group));
	write_file("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	write_file("/proc/7/cgroup", "0::/\n");
	assert_false(cgroup_find_freezable(root, 7, &group));
	write_file("/proc/7/cgroup", "0::/user.slice/a\n");
	write_file("/sys/fs/cgroup/user.slice/a/cgroup.freeze", "0\n");
	assert_true(cgroup_find_freezable(root, 7, &group));
	assert_string_equal(group.path, "/user.slice/a");
	write_file("/proc/8/cgroup", "0::/user.slice/a/b\n");
	write_file("/proc/9/cgroup", "0::/user.slice/ab\n");
	assert_true(cgroup_holds(&group, 7));
	assert_true(cgroup_holds(&group, 8));
	assert_false(cgroup_holds(&group, 9));
	assert_false(cgroup_holds(&group, 10));

	write_file("/proc/self/mountinfo",
		"31 23 0:27 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n");
	write_file("/proc/7/cgroup", "6:freezer:/a\n0::/\n");
	write_file("/proc/8/cgroup", "6:freezer:/\n0::/\n");
	write_file("/sys/fs/cgroup/freezer/a/freezer.state", "THAWED\n");
	assert_true(cgroup_find_freezable(root, 7, &group));
	assert_true(cgroup_holds(&group, 7));
	assert_false(cgroup_holds(&group, 8));
	assert_false(cgroup_find_freezable(root, 8, &group));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unified, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_version_1, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_inside, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_freezable, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
