/* See explain.h. */
#include "perf/explain.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "machine/rights.h"

static void advise(const struct rights *rights, struct diag *diag)
{
	if (rights->euid == 0)
		diag_remedy(diag,
			"this root lacks the right itself, as in a container: add CAP_PERFMON "
			"(--cap-add PERFMON), or run it on the host");
	else
		diag_remedy(diag,
			"run it with sudo, or with a spoor that has the rights for one group: spoor doctor "
			"says how");
}

int explain_rights(const struct rights *rights, enum explain_what what, int error,
	struct diag *diag)
{
	static const char *const things[] = {
		[EXPLAIN_MACHINE] = "the kernel or other users' processes",
		[EXPLAIN_KERNEL] = "the kernel or other users' processes",
		[EXPLAIN_ANY] = "anything",
	};
	const char *thing = things[what];
	int paranoid = rights->perf_event_paranoid;

	if (paranoid == RIGHTS_PARANOID_UNKNOWN)
		return diag_set(diag, error, "cannot sample %s: this kernel has no perf events",
			thing);
	/* The sysctls allow it: a security module or a seccomp filter forbids it. */
	if (rights_perfmon(rights) || (what == EXPLAIN_MACHINE && rights_allow_machine(rights)) ||
		(what == EXPLAIN_KERNEL && rights_allow_kernel(rights)) ||
		(what == EXPLAIN_ANY && paranoid <= 2)) {
		diag_set(diag, error,
			"cannot sample %s: perf_event_open is forbidden here, though perf_event_paranoid is %d%s",
			thing, paranoid, rights_perfmon(rights) ? " and CAP_PERFMON is there" : "");
		diag_remedy(diag,
			"a container's seccomp filter or a security module forbids it: allow "
			"perf_event_open there, or run it on the host");
		return error;
	}
	if (paranoid == 1)
		thing = "other users' processes or the whole machine";
	else if (paranoid > 2)
		thing = "anything";
	diag_set(diag, error,
		"cannot sample %s: perf_event_paranoid is %d and CAP_PERFMON is missing", thing,
		paranoid);
	advise(rights, diag);
	return error;
}

int explain_target(const struct rights *rights, enum explain_what what, const uint32_t *pids,
	size_t pid_count, int error, struct diag *diag)
{
	for (size_t i = 0; i < pid_count; i++) {
		char path[32];
		struct stat st;
		snprintf(path, sizeof(path), "/proc/%" PRIu32, pids[i]);
		if (stat(path, &st) < 0 || st.st_uid == rights->euid)
			continue;
		diag_set(diag, error,
			"cannot record process %" PRIu32 ": it belongs to user %u, and %s", pids[i],
			st.st_uid,
			rights->euid == 0 ? "CAP_SYS_PTRACE is missing" : "we are not root");
		diag_remedy(diag,
			rights->euid == 0
				? "add CAP_PERFMON and CAP_SYS_PTRACE, or run it on the host"
				: "run it with sudo");
		return error;
	}
	return explain_rights(rights, what, error, diag);
}
