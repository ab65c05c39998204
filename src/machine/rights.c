/*
 * Capabilities come from /proc/self/status rather than capget(2): the same answer, no header of its own.
 */
#include "machine/rights.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "machine/kernel_file.h"

/* Numbers of capabilities(7), which never change. */
static const struct {
	unsigned number;
	enum right right;
} capabilities[] = {
	{ 1, RIGHT_DAC_OVERRIDE },
	{ 2, RIGHT_DAC_READ_SEARCH },
	{ 14, RIGHT_IPC_LOCK },
	{ 19, RIGHT_SYS_PTRACE },
	{ 21, RIGHT_SYS_ADMIN },
	{ 23, RIGHT_SYS_NICE },
	{ 34, RIGHT_SYSLOG },
	{ 38, RIGHT_PERFMON },
};

static uint32_t effective_rights(void)
{
	char status[8192];
	uint32_t rights = 0;

	if (kernel_file_read(AT_FDCWD, "/proc/self/status", status, sizeof(status)) <= 0)
		return 0;
	const char *line = strstr(status, "\nCapEff:");
	if (!line)
		return 0;
	uint64_t mask = strtoull(line + strlen("\nCapEff:"), NULL, 16);
	for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
		if (mask >> capabilities[i].number & 1)
			rights |= (uint32_t)capabilities[i].right;
	return rights;
}

/* A number that is not negative, or `otherwise`. */
static uint32_t knob(const char *path, uint32_t otherwise)
{
	int64_t value;

	if (!kernel_file_number(path, &value) || value < 0 || value > UINT32_MAX)
		return otherwise;
	return (uint32_t)value;
}

static uint64_t limit(int resource)
{
	struct rlimit r;

	if (getrlimit((__rlimit_resource_t)resource, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return r.rlim_cur;
}

void rights_read(struct rights *ret_rights)
{
	struct rights r = { 0 };
	int64_t value;

	r.euid = geteuid();
	r.effective = effective_rights();
	r.perf_event_paranoid = RIGHTS_PARANOID_UNKNOWN;
	if (kernel_file_number("/proc/sys/kernel/perf_event_paranoid", &value) && value >= -1 &&
		value < RIGHTS_PARANOID_UNKNOWN)
		r.perf_event_paranoid = (int)value;
	r.kptr_restrict = (int)knob("/proc/sys/kernel/kptr_restrict", 1);
	r.perf_event_mlock_kb = knob("/proc/sys/kernel/perf_event_mlock_kb", 516);
	r.perf_event_max_stack = knob("/proc/sys/kernel/perf_event_max_stack", 127);
	r.perf_event_max_sample_rate = knob("/proc/sys/kernel/perf_event_max_sample_rate", 100000);
	r.open_files_max = limit(RLIMIT_NOFILE);
	r.locked_bytes_max = limit(RLIMIT_MEMLOCK);
	*ret_rights = r;
}

bool rights_perfmon(const struct rights *rights)
{
	return rights->effective & (RIGHT_PERFMON | RIGHT_SYS_ADMIN);
}

bool rights_allow_kernel(const struct rights *rights)
{
	return rights_perfmon(rights) || rights->perf_event_paranoid <= 1;
}

bool rights_allow_machine(const struct rights *rights)
{
	return rights_perfmon(rights) || rights->perf_event_paranoid <= 0;
}
