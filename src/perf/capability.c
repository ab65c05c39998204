/*
 * Every capability is tried, because no rule predicts the result of perf_event_open(2): sysctls,
 * capabilities, security modules and the processor influence it.
 */
#include "perf/capability.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/box.h"
#include "machine/kernel_file.h"
#include "machine/kernel_symbol.h"
#include "machine/rights.h"
#include "perf/attribute.h"
#include "perf/explain.h"
#include "perf/kernel_event.h"

#define TRY_HZ 99u

static void answer(struct capability *row, enum capability_answer value)
{
	row->answer = value;
}

static void from_diag(struct capability *row, enum capability_answer value, const struct diag *diag)
{
	answer(row, value);
	snprintf(row->reason, sizeof(row->reason), "%.*s", (int)sizeof(row->reason) - 1,
		diag->text);
	snprintf(row->remedy, sizeof(row->remedy), "%.*s", (int)sizeof(row->remedy) - 1,
		diag->remedy);
}

static void refused(struct capability *row, const struct capability_trials *trials,
	enum explain_what what, int error)
{
	struct diag diag = { 0 };
	int paranoid = trials->rights.perf_event_paranoid;

	if (!rights_perfmon(&trials->rights) && paranoid != RIGHTS_PARANOID_UNKNOWN &&
		paranoid > (int)what) {
		/* The row names the capability, so the reason is kept short. */
		answer(row, CAPABILITY_NO);
		snprintf(row->reason, sizeof(row->reason),
			"needs CAP_PERFMON (perf_event_paranoid is %d)", paranoid);
		snprintf(row->remedy, sizeof(row->remedy), "%s",
			trials->rights.euid == 0 ? "--cap-add PERFMON, or run it on the host"
						 : "sudo, or a spoor for one group");
		return;
	}
	/* fills diag, which is the purpose */
	(void)explain_rights(&trials->rights, what, error, &diag);
	from_diag(row, CAPABILITY_NO, &diag);
}

static void own_samples(struct capability *row, const struct capability_trials *trials)
{
	if (trials->own < 0) {
		refused(row, trials, EXPLAIN_ANY, trials->own);
	} else if (trials->kernel < 0) {
		answer(row, CAPABILITY_LIMITED);
		snprintf(row->reason, sizeof(row->reason),
			"user code only: perf_event_paranoid is %d",
			trials->rights.perf_event_paranoid);
	} else {
		answer(row, CAPABILITY_YES);
	}
}

static void machine_samples(struct capability *row, const struct capability_trials *trials)
{
	if (trials->machine < 0)
		refused(row, trials, EXPLAIN_MACHINE, trials->machine);
	else
		answer(row, CAPABILITY_YES);
}

static void kernel_stacks(struct capability *row, const struct capability_trials *trials)
{
	const struct rights *rights = &trials->rights;

	if (trials->kernel < 0) {
		refused(row, trials, EXPLAIN_KERNEL, trials->kernel);
		return;
	}
	/* kptr_restrict 1: needs CAP_SYSLOG, 2: never shown, 0: perf_event_paranoid decides. */
	if (trials->names_kernel) {
		answer(row, CAPABILITY_YES);
		return;
	}
	if (rights->kptr_restrict >= 2 ||
		(!(rights->effective & RIGHT_SYSLOG) &&
			(rights->kptr_restrict == 1 || rights->perf_event_paranoid > 1))) {
		answer(row, CAPABILITY_LIMITED);
		snprintf(row->reason, sizeof(row->reason), "without names: kptr_restrict is %d%s",
			rights->kptr_restrict,
			rights->effective & RIGHT_SYSLOG ? "" : " and CAP_SYSLOG is missing");
		snprintf(row->remedy, sizeof(row->remedy), "%s",
			rights->kptr_restrict >= 2 ? "CAP_BPF and CAP_PERFMON name it all the same"
			: rights->euid == 0        ? "--cap-add SYSLOG, or run it on the host"
						   : "sudo, or a spoor for one group");
		return;
	}
	answer(row, CAPABILITY_YES);
}

static void hardware_cycles(struct capability *row, const struct capability_trials *trials)
{
	if (trials->own < 0) {
		refused(row, trials, EXPLAIN_ANY, trials->own);
		return;
	}
	if (trials->cycles >= 0) {
		answer(row, CAPABILITY_YES);
		return;
	}
	answer(row, CAPABILITY_NO);
	if (trials->cycles == -EBUSY)
		snprintf(row->reason, sizeof(row->reason),
			"the counters are in use; cpu-clock is used");
	else
		snprintf(row->reason, sizeof(row->reason), "this %s has none; cpu-clock is used",
			trials->is_virtual ? "virtual machine" : "machine");
}

static void build_ids(struct capability *row, const struct capability_trials *trials)
{
	if (trials->own < 0) {
		refused(row, trials, EXPLAIN_ANY, trials->own);
	} else if (!trials->has_build_ids) {
		answer(row, CAPABILITY_LIMITED);
		snprintf(row->reason, sizeof(row->reason),
			"the kernel is older than Linux 5.12: they are read from the files");
	} else {
		answer(row, CAPABILITY_YES);
	}
}

static void context_switches(struct capability *row, const struct capability_trials *trials)
{
	if (trials->own < 0) {
		refused(row, trials, EXPLAIN_ANY, trials->own);
		return;
	}
	if (trials->switches < 0) {
		answer(row, CAPABILITY_NO);
		snprintf(row->reason, sizeof(row->reason), "the kernel is older than Linux 4.3");
	} else if (trials->machine < 0) {
		answer(row, CAPABILITY_LIMITED);
		snprintf(row->reason, sizeof(row->reason), "own processes only");
	} else {
		answer(row, CAPABILITY_YES);
	}
}

static void tracepoints(struct capability *row, const struct capability_trials *trials)
{
	answer(row, CAPABILITY_NO);
	if (!trials->has_tracefs) {
		snprintf(row->reason, sizeof(row->reason), "%s",
			trials->rights.euid == 0 ? "tracefs is not mounted"
						 : "tracefs can be read by root only");
		snprintf(row->remedy, sizeof(row->remedy), "%s",
			trials->rights.euid == 0 ? "mount -t tracefs tracefs /sys/kernel/tracing"
						 : "run it with sudo");
		return;
	}
	if (trials->tracepoint < 0)
		refused(row, trials, EXPLAIN_MACHINE, trials->tracepoint);
	else
		answer(row, CAPABILITY_YES);
}

static void other_processes(struct capability *row, const struct capability_trials *trials)
{
	const struct rights *rights = &trials->rights;

	if (rights->effective & RIGHT_SYS_PTRACE) {
		answer(row, CAPABILITY_YES);
		return;
	}
	answer(row, CAPABILITY_LIMITED);
	snprintf(row->reason, sizeof(row->reason), "of this user only: CAP_SYS_PTRACE is missing");
	snprintf(row->remedy, sizeof(row->remedy), "%s",
		rights->euid == 0 ? "--cap-add SYS_PTRACE, or run it on the host"
				  : "sudo, or a spoor for one group");
}

static const struct {
	const char *key;
	const char *what;
	void (*probe)(struct capability *row, const struct capability_trials *trials);
} rows[CAPABILITY_COUNT] = {
	{ "samples_own", "CPU samples, this user's processes", own_samples },
	{ "samples_machine", "CPU samples, whole machine", machine_samples },
	{ "kernel_stacks", "kernel stacks and names", kernel_stacks },
	{ "other_processes", "memory maps, files of processes", other_processes },
	{ "hardware_cycles", "hardware counters", hardware_cycles },
	{ "build_ids", "build ids of mapped files", build_ids },
	{ "context_switches", "context switches", context_switches },
	{ "tracepoints", "tracepoints", tracepoints },
};

void capability_explain(const struct capability_trials *trials,
	struct capability ret_table[CAPABILITY_COUNT])
{
	for (size_t i = 0; i < CAPABILITY_COUNT; i++) {
		memset(&ret_table[i], 0, sizeof(ret_table[i]));
		ret_table[i].key = rows[i].key;
		ret_table[i].what = rows[i].what;
		rows[i].probe(&ret_table[i], trials);
	}
}

/* ---- trying ---- */

static int try_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = event_open(attr, pid, cpu);

	if (fd < 0)
		return fd;
	(void)close(fd); /* a try only */
	return 0;
}

/* The id of sched:sched_switch, with which tracepoints are tried. Negative: it cannot be read. */
static int64_t tracepoint_id(void)
{
	static const char *const paths[] = {
		"/sys/kernel/tracing/events/sched/sched_switch/id",
		"/sys/kernel/debug/tracing/events/sched/sched_switch/id",
	};
	int64_t id;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (kernel_file_number(paths[i], &id))
			return id;
	return -1;
}

/* Tries sched:sched_switch. */
static void try_tracepoint(struct capability_trials *trials)
{
	struct perf_event_attr attr;
	int64_t id = tracepoint_id();

	trials->has_tracefs = id >= 0;
	if (id < 0)
		return;
	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = (uint64_t)id;
	attr.sample_period = 1;
	attr.disabled = 1;
	trials->tracepoint = try_event(&attr, -1, 0);
}

/* Tries what depends on cpu-clock, with all options that the kernel accepts. */
static void try_samples(struct capability_trials *trials)
{
	struct perf_event_attr attr, cycles;
	struct kernel_symbols *symbols;
	struct box box;

	trials->own = attribute_probe(&attr, false, TRY_HZ);
	trials->machine = trials->kernel = trials->own;
	if (trials->own < 0)
		return;
	trials->has_build_ids = attr.build_id;
	trials->kernel = try_event(&attr, 0, -1);
	attr.exclude_kernel = 1;
	trials->machine = try_event(&attr, -1, 0);
	attr.context_switch = 1;
	trials->switches = try_event(&attr, 0, -1);
	if (trials->kernel >= 0 && kernel_symbols_open(&symbols) == 0) {
		kernel_symbols_close(symbols);
		trials->names_kernel = true;
	}
	trials->cycles = attribute_probe(&cycles, true, TRY_HZ);
	if (trials->cycles < 0) {
		box_read(&box);
		trials->is_virtual = box.virtualization[0];
	}
}

void capability_probe(struct capability ret_table[CAPABILITY_COUNT])
{
	struct capability_trials trials = { 0 };

	rights_read(&trials.rights);
	try_samples(&trials);
	try_tracepoint(&trials);
	capability_explain(&trials, ret_table);
}
