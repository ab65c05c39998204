/* See dotnet_needs.h. */
#include "target/dotnet_needs.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "machine/cgroup.h"
#include "machine/dump_check.h"
#include "machine/kernel_file.h"
#include "machine/proc.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "target/targets.h"

#define LTTNG_PROVIDER  "libcoreclrtraceptprovider.so"
#define LTTNG_LIBRARY   "liblttng-ust.so."
#define LIBRARY_MAX     (UINT64_C(256) << 20)
#define SOCKET_NAME_MAX 64u /* "/dotnet-diagnostic-4194304-18446744073709551615-socket" */

/* The data from which the rows are made. */
struct needs_facts {
	struct rights rights;
	/* the .NET processes that we may look into, and those that we may not */
	struct targets targets;
	bool listed;
};

__attribute__((format(printf, 3, 4))) static void say(struct capability *row,
	enum capability_answer answer, const char *format, ...)
{
	va_list args;

	row->answer = answer;
	va_start(args, format);
	(void)vsnprintf(row->reason, sizeof(row->reason), format, args); /* a cut end is fine */
	va_end(args);
}

static const char *how_to_get_rights(const struct needs_facts *look)
{
	return look->rights.euid ? "sudo, or a spoor for one group"
				 : "--cap-add, or run it on the host";
}

/* ---- the rows ---- */

static void others(struct capability *row, const struct needs_facts *look)
{
	bool trace = look->rights.effective & RIGHT_SYS_PTRACE;
	bool connect = look->rights.effective & RIGHT_DAC_OVERRIDE;

	if (trace && connect) {
		say(row, CAPABILITY_YES, "%s", "");
		return;
	}
	if (!trace && !connect)
		say(row, CAPABILITY_LIMITED, "%s",
			"of this user only: CAP_SYS_PTRACE (to find a socket) and CAP_DAC_OVERRIDE (to connect) are missing");
	else
		say(row, CAPABILITY_LIMITED, "of this user only: %s is missing",
			trace ? "CAP_DAC_OVERRIDE (to connect)"
			      : "CAP_SYS_PTRACE (to find a socket)");
	text_set(row->remedy, "%s", how_to_get_rights(look));
}

/* The variable that switches a process's diagnostics off; NULL none. */
static const char *switched_off_by(struct proc_reader *proc, uint32_t pid)
{
	static const char *const names[] = { "DOTNET_EnableDiagnostics",
		"DOTNET_EnableDiagnostics_IPC", "COMPlus_EnableDiagnostics",
		"COMPlus_EnableDiagnostics_IPC" };
	const char *value;
	size_t len;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (proc_read_variable(proc, pid, names[i], &value, &len) == 0 && len == 1 &&
			*value == '0')
			return names[i];
	return NULL;
}

static void switched_on(struct capability *row, const struct needs_facts *look)
{
	const char *own = getenv("DOTNET_EnableDiagnostics");
	uint32_t off = 0;
	uint32_t first = 0;
	const char *by = NULL;
	struct proc_reader proc;

	say(row, CAPABILITY_YES, "%s", "");
	if (own && strcmp(own, "0") == 0) {
		say(row, CAPABILITY_LIMITED, "%s",
			"DOTNET_EnableDiagnostics is 0 here: what is started from this shell has no socket");
		text_set(row->remedy, "unset DOTNET_EnableDiagnostics");
	}
	if (proc_open(&proc, NULL) < 0)
		return;
	vec_each(target, &look->targets.list) {
		const char *name =
			target->kind == DOTNET_UNKNOWN ? NULL : switched_off_by(&proc, target->pid);
		if (!name)
			continue;
		off++;
		by = first ? by : name;
		first = first ? first : target->pid;
	}
	proc_close(&proc);
	if (!off)
		return;
	say(row, CAPABILITY_LIMITED, "switched off in %s: %u has %s=0",
		TEXT_THINGS(off, "process", "processes"), first, by);
	text_set(row->remedy, "start %s without it; CPU samples are had all the same",
		off == 1 ? "it" : "them");
}

/* The folder for the sockets of runtimes started here, and for Spoor's port for a command. */
static void socket_folder(struct capability *row, const struct needs_facts *look)
{
	const char *folder = getenv("TMPDIR");
	struct stat status;

	(void)look;
	if (!folder || !*folder)
		folder = "/tmp";
	if (stat(folder, &status) < 0 || !S_ISDIR(status.st_mode))
		say(row, CAPABILITY_NO, "'%.200s' is no folder", folder);
	else if (access(folder, W_OK | X_OK) < 0)
		say(row, CAPABILITY_NO, "'%.150s' cannot be written to: %s", folder,
			strerror(errno));
	else if (strlen(folder) + SOCKET_NAME_MAX > sizeof(((struct sockaddr_un *)0)->sun_path))
		say(row, CAPABILITY_LIMITED, "the path of '%.150s' may be too long for a socket",
			folder);
	else
		say(row, CAPABILITY_YES, "%s", strcmp(folder, "/tmp") == 0 ? "" : folder);
	if (row->answer != CAPABILITY_YES)
		text_set(row->remedy,
			"let TMPDIR name a short one that can be written to, here and for the programs");
}

static void heap(struct capability *row, const struct needs_facts *look)
{
	uint32_t found = 0;
	uint32_t reachable = 0;

	for (uint32_t i = 0; i < look->targets.list.count; i++) {
		found += look->targets.list.items[i].kind != DOTNET_UNKNOWN;
		reachable += look->targets.list.items[i].reachable;
	}
	if (reachable == found)
		say(row, CAPABILITY_YES, "%s", "");
	else
		say(row, reachable ? CAPABILITY_LIMITED : CAPABILITY_NO,
			"a snapshot takes the process's socket: %u of %u can be asked", reachable,
			found);
	if (row->answer != CAPABILITY_YES)
		text_set(row->remedy, "spoor ps says of each why not");
}

static void dump(struct capability *row, const struct needs_facts *look)
{
	uint32_t asked = 0;
	uint32_t good = 0;
	int64_t scope = 0;
	struct diag first = { 0 };

	if (kernel_file_number("/proc/sys/kernel/yama/ptrace_scope", &scope) && scope == 3) {
		say(row, CAPABILITY_NO, "%s",
			"kernel.yama.ptrace_scope is 3: this machine forbids ptrace until its next start");
		return;
	}
	vec_each(target, &look->targets.list) {
		struct dump_facts facts;
		struct diag diag = { 0 };
		if (target->kind == DOTNET_UNKNOWN)
			continue;
		asked++;
		struct dump_question question = { .pid = target->pid,
			.folder = "/tmp",
			.runtime_path = target->runtime_path,
			.single_file = target->kind == DOTNET_SINGLE_FILE };
		/* The default folder of a dump; -o names another. */
		if (target->reachable && dump_check(&question, &facts, &diag) == 0)
			good++;
		else if (!first.text[0] && diag.text[0])
			first = diag;
	}
	if (good == asked)
		say(row, CAPABILITY_YES, "%s", "");
	else
		say(row, good ? CAPABILITY_LIMITED : CAPABILITY_NO,
			"%u of %u .NET processes%s%.150s", good, asked, first.text[0] ? "; " : "",
			first.text);
	if (good != asked)
		text_set(row->remedy, "%.200s",
			first.remedy[0] ? first.remedy
					: "spoor ps says of each whether it can be asked");
}

/*
 * The sessions of a stopped or killed spoor are ended by its guard; those of a frozen one are not,
 * because the guard is in the same control group.
 */
static void guarded(struct capability *row, const struct needs_facts *look)
{
	struct cgroup group;
	uint32_t outside = 0;

	say(row, CAPABILITY_YES, "%s", "");
	if (!cgroup_find_freezable("", 0, &group))
		return;
	for (uint32_t i = 0; i < look->targets.list.count; i++)
		outside += !cgroup_holds(&group, look->targets.list.items[i].pid);
	say(row, CAPABILITY_YES,
		"unless the control group '%.100s' is frozen: a .NET process outside of it (%u now) then waits for spoor",
		group.path[0] ? group.path : "/", outside);
}

/* ---- LTTng ---- */

/* The name of the LTTng library that a runtime's provider is linked to, as "liblttng-ust.so.0". */
static bool needed_of(int fd, char *ret_name, size_t room)
{
	struct image_file file;
	struct elf elf;
	bool found = image_file_from_fd(&file, fd, NULL) == 0 && elf_read(&elf, &file, NULL) == 0;

	if (!found)
		return false;
	found = elf_find_needed(&elf, &file, LTTNG_LIBRARY, ret_name, room);
	elf_done(&elf);
	return found;
}

/* The LTTng provider in the folder of a process's runtime, as the process sees it. */
static bool provider_of_target(const struct target *target, char *ret_name, size_t room)
{
	char path[4096];
	const char *slash = strrchr(target->runtime_path, '/');
	uint64_t size;
	cleanup(closep) int fd = -1;

	return slash &&
	       (size_t)snprintf(path, sizeof(path), "%.*s/" LTTNG_PROVIDER,
		       (int)(slash - target->runtime_path), target->runtime_path) < sizeof(path) &&
	       target_file_open(target->pid, path, LIBRARY_MAX, &fd, &size, NULL) == 0 &&
	       needed_of(fd, ret_name, room);
}

/* The LTTng provider in the folder of the newest runtime that is installed here. */
static bool provider_of_machine(char *ret_name, size_t room)
{
	static const char *const places[] = { "/usr/share/dotnet", "/usr/lib/dotnet",
		"/usr/lib64/dotnet" };
	bool found = false;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++) {
		char pattern[128];
		glob_t paths = { 0 };
		text_set(pattern, "%s/shared/Microsoft.NETCore.App/*/" LTTNG_PROVIDER, places[i]);
		if (glob(pattern, 0, NULL, &paths) == 0 && paths.gl_pathc) {
			cleanup(closep) int fd =
				open(paths.gl_pathv[paths.gl_pathc - 1], O_RDONLY | O_CLOEXEC);
			found = fd >= 0 && needed_of(fd, ret_name, room);
		}
		globfree(&paths);
	}
	return found;
}

static bool library_is_here(const char *name)
{
	static const char *const places[] = { "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
		"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64",
		"/lib", "/usr/lib", "/usr/local/lib" };
	char path[256];

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		text_set(path, "%s/%s", places[i], name); /* names are short */
		if (access(path, R_OK) == 0)
			return true;
	}
	return false;
}

static void lttng(struct capability *row, const struct needs_facts *look)
{
	char name[64];
	bool found = false;

	for (uint32_t i = 0; i < look->targets.list.count && !found; i++)
		found = provider_of_target(&look->targets.list.items[i], name, sizeof(name));
	if (!found)
		found = provider_of_machine(name, sizeof(name));
	if (!found) {
		say(row, CAPABILITY_NO, "%s",
			"no runtime was found that comes with " LTTNG_PROVIDER);
		return;
	}
	if (library_is_here(name)) {
		say(row, CAPABILITY_YES, "%s", "");
		return;
	}
	say(row, CAPABILITY_NO, "the runtime's provider is linked to %s, which is not here%s", name,
		library_is_here("liblttng-ust.so.1") && strcmp(name, "liblttng-ust.so.1") != 0
			? " (liblttng-ust.so.1 does not stand in for it)"
			: "");
	text_set(row->remedy, "%s",
		strcmp(name, "liblttng-ust.so.0") == 0
			? "Debian 11 and Ubuntu 20.04 have it; it can stand beside a newer one. spoor trace needs neither"
			: "install it; spoor trace does not need it");
}

/* Of programs that use libspoor with its LTTng logger. */
static void lttng_logger(struct capability *row, const struct needs_facts *look)
{
	(void)look;
	/* 2.13 and later, and 2.12 */
	if (library_is_here("liblttng-ust.so.1") || library_is_here("liblttng-ust.so.0")) {
		say(row, CAPABILITY_YES, "%s", "");
		return;
	}
	say(row, CAPABILITY_NO, "%s", "liblttng-ust.so.1 is not installed");
	text_set(row->remedy, "%s", "install liblttng-ust 2.12 or newer (Debian: liblttng-ust1)");
}

static void user_events(struct capability *row, const struct needs_facts *look)
{
	static const char *const paths[] = { "/sys/kernel/tracing/user_events_data",
		"/sys/kernel/debug/tracing/user_events_data" };
	int error = ENOENT;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		cleanup(closep) int fd = open(paths[i], O_RDWR | O_CLOEXEC);
		if (fd >= 0) {
			say(row, CAPABILITY_YES, "%s", "");
			return;
		}
		if (errno != ENOENT)
			error = errno;
	}
	bool mounted = access("/sys/kernel/tracing/events", F_OK) == 0;

	if (error != ENOENT) {
		say(row, CAPABILITY_NO, "user_events_data: %s", strerror(error));
		text_set(row->remedy, "%s", how_to_get_rights(look));
	} else if (mounted) {
		say(row, CAPABILITY_NO, "%s",
			"this kernel has none (CONFIG_USER_EVENTS, Linux 6.4 or newer)");
	} else {
		say(row, CAPABILITY_NO, "%s",
			look->rights.euid ? "tracefs can be read by root only"
					  : "tracefs is not mounted");
		text_set(row->remedy, "%s",
			look->rights.euid ? "run it with sudo"
					  : "mount -t tracefs tracefs /sys/kernel/tracing");
	}
}

static const struct {
	const char *key;
	const char *what;
	void (*probe)(struct capability *row, const struct needs_facts *look);
} rows[DOTNET_NEEDS_COUNT] = {
	{ "dotnet_others", "other users' .NET processes", others },
	{ "dotnet_diagnostics", ".NET diagnostics switched on", switched_on },
	{ "dotnet_socket_folder", "a folder for .NET's sockets", socket_folder },
	{ "dotnet_heap", "heap snapshots", heap },
	{ "dotnet_dump", "dumps by the runtime", dump },
	{ "dotnet_guard", ".NET sessions end with spoor", guarded },
	{ "dotnet_lttng", "LTTng events of .NET", lttng },
	{ "lttng_logger", "LTTng events of libspoor", lttng_logger },
	{ "user_events", "user_events of .NET 10 and libspoor", user_events },
};

void dotnet_needs_probe(struct capability ret_table[DOTNET_NEEDS_COUNT])
{
	const struct target_query query = {
		.all = true, .dotnet_only = true, .details = TARGET_REACH
	};
	struct needs_facts look = { 0 };

	rights_read(&look.rights);
	look.listed = targets_choose(&query, &look.targets, NULL) == 0;
	for (size_t i = 0; i < DOTNET_NEEDS_COUNT; i++) {
		ret_table[i] = (struct capability){ .key = rows[i].key, .what = rows[i].what };
		rows[i].probe(&ret_table[i], &look);
	}
	if (look.listed)
		targets_done(&look.targets);
}
