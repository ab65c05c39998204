/* capget(2) and capset(2) directly: two calls, against libcap in a static program. */
#include "machine/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/kernel_file.h"

#define UNCHANGED UINT64_MAX /* larger than any capability number */

/* Numbers of capabilities(7), which never change; older headers do not have the newest. */
static const struct {
	unsigned number;
	enum right right;
	const char *name;
} capabilities[] = {
	{ 0, RIGHT_CHOWN, "CAP_CHOWN" },
	{ 1, RIGHT_DAC_OVERRIDE, "CAP_DAC_OVERRIDE" },
	{ 2, RIGHT_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" },
	{ 3, RIGHT_FOWNER, "CAP_FOWNER" },
	{ 5, RIGHT_KILL, "CAP_KILL" },
	{ 14, RIGHT_IPC_LOCK, "CAP_IPC_LOCK" },
	{ 19, RIGHT_SYS_PTRACE, "CAP_SYS_PTRACE" },
	{ 21, RIGHT_SYS_ADMIN, "CAP_SYS_ADMIN" },
	{ 23, RIGHT_SYS_NICE, "CAP_SYS_NICE" },
	{ 34, RIGHT_SYSLOG, "CAP_SYSLOG" },
	{ 38, RIGHT_PERFMON, "CAP_PERFMON" },
	{ 39, RIGHT_BPF, "CAP_BPF" },
	{ 40, RIGHT_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE" },
};

#define CAPABILITY_COUNT (sizeof(capabilities) / sizeof(capabilities[0]))

struct sets {
	uint64_t effective;
	uint64_t permitted;
	uint64_t inheritable;
};

static uint64_t join(uint32_t low, uint32_t high)
{
	return (uint64_t)high << 32 | low;
}

static int get(struct sets *ret_sets)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	ret_sets->effective = join(data[0].effective, data[1].effective);
	ret_sets->permitted = join(data[0].permitted, data[1].permitted);
	ret_sets->inheritable = join(data[0].inheritable, data[1].inheritable);
	return 0;
}

static int set(const struct sets *sets)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].effective = (uint32_t)(sets->effective >> 32 * i);
		data[i].permitted = (uint32_t)(sets->permitted >> 32 * i);
		data[i].inheritable = (uint32_t)(sets->inheritable >> 32 * i);
	}
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

static uint64_t mask_of(uint32_t rights)
{
	uint64_t mask = 0;

	for (size_t i = 0; i < CAPABILITY_COUNT; i++)
		if (rights & (uint32_t)capabilities[i].right)
			mask |= UINT64_C(1) << capabilities[i].number;
	return mask;
}

static uint32_t effective_rights(void)
{
	struct sets sets;
	uint32_t rights = 0;

	if (get(&sets) < 0)
		return 0;
	for (size_t i = 0; i < CAPABILITY_COUNT; i++)
		if (sets.effective >> capabilities[i].number & 1)
			rights |= (uint32_t)capabilities[i].right;
	return rights;
}

/* A number that is not negative, else `otherwise`. */
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

const char *right_name(enum right right)
{
	for (size_t i = 0; i < CAPABILITY_COUNT; i++)
		if (capabilities[i].right == right)
			return capabilities[i].name;
	return "";
}

/* The kernel reports whether the program gained capabilities at exec. */
bool rights_are_borrowed(void)
{
	return getauxval(AT_SECURE) && getuid() != 0 && geteuid() != 0;
}

int rights_begin(struct diag *diag)
{
	if (getuid() != geteuid() || getgid() != getegid()) {
		diag_set(diag, -EPERM,
			"spoor is not made to run setuid or setgid: what its user names would be opened as another");
		diag_remedy(diag,
			"chmod ug-s SPOOR; man spoor-doctor shows how a group gets the rights");
		return -EPERM;
	}
	if (rights_are_borrowed()) {
		/*
		 * The kernel clears this flag for a program that gains capabilities by exec, but
		 * not if its caller held them. Children inherit it: they hold sockets that the user
		 * may not have.
		 */
		(void)prctl(PR_SET_DUMPABLE, 0); /* cannot fail for 0 */
		(void)rights_lower();            /* until a verb needs them */
	}
	return 0;
}

void rights_raise(void)
{
	struct sets sets;

	if (!rights_are_borrowed() || get(&sets) < 0)
		return;
	sets.effective = sets.permitted;
	(void)set(&sets); /* permitted capabilities can always be raised */
}

uint64_t rights_pause(uint32_t rights)
{
	struct sets sets;

	if (get(&sets) < 0)
		return UNCHANGED;
	uint64_t before = sets.effective;

	sets.effective &= ~mask_of(rights);
	return set(&sets) < 0 ? UNCHANGED : before;
}

uint64_t rights_lower(void)
{
	struct sets sets;

	if (!rights_are_borrowed() || get(&sets) < 0)
		return UNCHANGED;
	uint64_t before = sets.effective;

	sets.effective = 0;
	return set(&sets) < 0 ? UNCHANGED : before;
}

void rights_restore(uint64_t before)
{
	struct sets sets;

	if (before == UNCHANGED || get(&sets) < 0)
		return;
	sets.effective = before & sets.permitted;
	(void)set(&sets); /* as in rights_raise() */
}

void rights_return(void)
{
	if (rights_are_borrowed())
		(void)set(&(struct sets){ 0 }); /* dropping capabilities cannot fail */
}

int rights_reduce(uint32_t keep)
{
	struct sets sets;
	int result = get(&sets);

	if (result < 0)
		return result;
	uint64_t kept = sets.permitted & mask_of(keep);

	if ((keep & RIGHT_PERFMON) && !(sets.permitted & mask_of(RIGHT_PERFMON)))
		kept |= sets.permitted & mask_of(RIGHT_SYS_ADMIN);
	if ((keep & RIGHT_SYS_PTRACE) && geteuid() == 0 && !(kept & mask_of(RIGHT_SYS_PTRACE)))
		kept = sets.permitted;
	/* Linux 4.3; older kernels have no ambient capabilities */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	result = set(&(struct sets){ .effective = kept, .permitted = kept });
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 && result == 0)
		result = -errno;
	return result;
}
