/* See cpu_limit.h. */
#include "machine/cpu_limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define TEXT_ROOM 4096u

/* In us. Version 2: "200000 100000" or "max 100000". Version 1: two files, -1 for no limit. */
static bool read_quota(const struct cgroup *group, uint64_t *ret_quota_us, uint64_t *ret_period_us)
{
	char text[64];

	if (!group->unified)
		return cgroup_read_number(group, "cpu.cfs_quota_us", ret_quota_us) &&
		       cgroup_read_number(group, "cpu.cfs_period_us", ret_period_us) &&
		       *ret_period_us;
	if (!cgroup_read(group, "cpu.max", text, sizeof(text)) || strncmp(text, "max", 3) == 0)
		return false;
	return sscanf(text, "%" SCNu64 " %" SCNu64, ret_quota_us, ret_period_us) == 2 &&
	       *ret_period_us;
}

static void read_throttling(const struct cgroup *group, struct cpu_limit *limit)
{
	char text[TEXT_ROOM];
	uint64_t value;

	if (!cgroup_read(group, "cpu.stat", text, sizeof(text)))
		return;
	/* if it is missing: stays 0 */
	(void)cgroup_parse_key(text, "nr_periods", &limit->periods);
	(void)cgroup_parse_key(text, "nr_throttled", &limit->throttled_periods); /* likewise */
	if (cgroup_parse_key(text, "throttled_usec", &value))
		limit->throttled_ns = value * 1000;
	else if (cgroup_parse_key(text, "throttled_time", &value))
		limit->throttled_ns = value; /* version 1 counts nanoseconds */
}

int cpu_limit_read(const char *root, uint32_t pid, struct cpu_limit *ret_limit)
{
	struct cgroup group;
	struct cpu_limit best = { 0 };
	double least = 0;

	if (cgroup_find(root, pid, "cpu", &group) < 0)
		return -ENOENT;
	do {
		uint64_t quota_us;
		uint64_t period_us;
		if (!read_quota(&group, &quota_us, &period_us))
			continue;
		double cpus = (double)quota_us / (double)period_us;
		if (least > 0 && cpus >= least)
			continue;
		least = cpus;
		best = (struct cpu_limit){ .quota_ns = quota_us * 1000,
			.period_ns = period_us * 1000 };
		/* as long as group.path */
		text_set(best.path, "%s", *group.path ? group.path : "/");
		read_throttling(&group, &best);
	} while (cgroup_up(&group));
	if (least <= 0)
		return -ENOENT;
	*ret_limit = best;
	return 0;
}
