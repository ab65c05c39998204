/*
 * spoor record: the machine, some processes or a command, sampled into one file.
 *
 * Parses, opens the file, drives the live session until there is a reason to end, and says what came of it. Words go to stderr.
 */
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "base/vec.h"
#include "cli/words.h"
#include "machine/memory_cgroup.h"
#include "machine/proc.h"
#include "model/trace.h"
#include "record/recorder.h"
#include "session/live.h"

#define PROGRESS_NS     UINT64_C(500000000)
#define DEFAULT_HZ      99u
#define COMMAND_TEXT    8192u
#define OWN_TRIES       5
#define MEMORY_LEFT_MIN UINT64_C(64000000)

struct record_values {
	bool all;
	struct texts pids;
	struct texts names;
	uint64_t frequency_hz;
	uint64_t duration_ns;
	const char *output;
	bool packed;
	uint64_t size_max;
	bool yes;
	bool report;
	bool no_symbols;
	bool no_dotnet;
	bool user_only;
	struct texts symbol_paths;
	bool quiet;
};

const struct option record_options[] = {
	{ 'a', "all", NULL, "the whole machine (the default without a target, where rights allow)", OPTION_FLAG,
		INTO(struct record_values, all) },
	{ 'p', "pid", "PID", "this process, its threads and what it starts; may be repeated, or PID,PID",
		OPTION_TEXTS, INTO(struct record_values, pids) },
	{ 'n', "name", "NAME", "processes of this name (* and ? allowed); may be repeated", OPTION_TEXTS,
		INTO(struct record_values, names) },
	{ 'F', "freq", "HZ", "samples a second and CPU (99)", OPTION_COUNT,
		INTO(struct record_values, frequency_hz) },
	{ 0, "duration", "TIME", "end after 30s, 500ms, 5m or hh:mm:ss; a bare number is seconds",
		OPTION_DURATION, INTO(struct record_values, duration_ns) },
	{ 'o', "output", "FILE", "the recording (NAME_DATE_TIME.nettrace); - is standard output", OPTION_TEXT,
		INTO(struct record_values, output) },
	{ 'z', "compress", NULL, "pack it with zstd (.nettrace.zst; so does -o FILE.zst)", OPTION_FLAG,
		INTO(struct record_values, packed) },
	{ 0, "max-size", "SIZE", "end when the recording has about 64M, 1.5G, 512MiB", OPTION_SIZE,
		INTO(struct record_values, size_max) },
	{ 0, "yes", NULL, "go on where little memory is left to the target", OPTION_FLAG,
		INTO(struct record_values, yes) },
	{ 0, "report", NULL, "print the report at the end", OPTION_FLAG, INTO(struct record_values, report) },
	{ 0, "user", NULL, "user code only, without the kernel", OPTION_FLAG,
		INTO(struct record_values, user_only) },
	{ 0, "symbol-path", "DIR", "look for separate debug files here too; may be repeated", OPTION_TEXTS,
		INTO(struct record_values, symbol_paths) },
	{ 0, "no-symbols", NULL, "addresses only, no names", OPTION_FLAG,
		INTO(struct record_values, no_symbols) },
	{ 0, "no-dotnet", NULL, "open no diagnostics session in .NET processes", OPTION_FLAG,
		INTO(struct record_values, no_dotnet) },
	{ 'q', "quiet", NULL, "only errors", OPTION_FLAG, INTO(struct record_values, quiet) },
	{ 0 },
};

struct recording_run {
	const struct record_values *values;
	struct arguments *args;
	VEC(uint32_t) pids;
	struct bytes subject;      /* "shop (4711)" */
	char name[64];             /* for the file's default name */
	char path[4096];
	struct live *live;
	struct screen screen;
	struct pollfd watched[2];  /* signals, the terminal */
	size_t watched_count;
	const char *reason;
	int child_status;
	bool child_reaped;
	bool interrupted;
	bool limit_said;           /* what this user cannot record */
	bool memory_limited;       /* together with the target */
};

/* ---- targets ---- */

static bool add_pid(struct recording_run *run, uint32_t pid)
{
	for (uint32_t i = 0; i < run->pids.count; i++)
		if (run->pids.items[i] == pid)
			return true;
	return vec_add(&run->pids, pid);
}

/* The next of "12,34". False at the end, and where there is no process id: then *at is not at the end. */
static bool next_pid(const char **at, uint32_t *ret_pid)
{
	char number[24];
	size_t len = strcspn(*at, ",");
	uint64_t pid = 0;

	if (!len || len >= sizeof(number))
		return false;
	memcpy(number, *at, len);
	number[len] = '\0';
	if (!text_parse_u64(number, &pid) || !pid || pid > INT32_MAX)
		return false;
	*at += len;
	*at += **at == ',';
	*ret_pid = (uint32_t)pid;
	return true;
}

/* What is given for a process id and is none; NULL when all are. */
static const char *find_bad_pid(const struct record_values *values)
{
	for (uint32_t i = 0; i < values->pids.list.count; i++) {
		const char *at = values->pids.list.items[i];
		bool any = false;
		uint32_t pid;
		while (next_pid(&at, &pid))
			any = true;
		if (!any || *at)
			return values->pids.list.items[i];
	}
	return NULL;
}

static int add_pid_list(struct recording_run *run, const char *list, struct diag *diag)
{
	uint32_t pid;

	while (next_pid(&list, &pid))
		if (!add_pid(run, pid))
			return diag_set(diag, -ENOMEM, "cannot record: %m");
	return 0;
}

/* Into `room` bytes, cut if need be. */
static void copy_name(char *out, size_t room, const char *name, size_t len)
{
	if (len >= room)
		len = room - 1;
	memcpy(out, name, len);
	out[len] = '\0';
}

/* What people call a process: the application for a .NET host, else the program. */
static void application_name(struct proc_reader *proc, const struct proc_process *process, char *out,
	size_t room)
{
	const char *args;
	const char *name;
	size_t len;
	size_t name_len;

	if (strcmp(process->comm, "dotnet") == 0 &&
		proc_read_arguments(proc, process->pid, &args, &len) == 0 &&
		proc_parse_application(args, len, &name, &name_len))
		copy_name(out, room, name, name_len);
	else
		copy_name(out, room, process->comm, strlen(process->comm));
}

/* By the program's name, its command's (which comm cuts after 15 characters), or the application's. */
static bool matches(struct proc_reader *proc, const struct proc_process *process, const char *pattern)
{
	char name[256];
	const char *args;
	size_t len;

	application_name(proc, process, name, sizeof(name));
	if (text_glob(pattern, process->comm) || text_glob(pattern, name))
		return true;
	if (proc_read_arguments(proc, process->pid, &args, &len) < 0 || !len)
		return false;
	const char *slash = strrchr(args, '/');

	return text_glob(pattern, slash ? slash + 1 : args);
}

static int add_named(struct recording_run *run, struct proc_reader *proc, const char *pattern,
	struct diag *diag)
{
	struct id_list list = { 0 };
	uint32_t before = run->pids.count;
	int result = proc_list(proc, &list, diag);

	for (uint32_t i = 0; result == 0 && i < list.ids.count; i++) {
		struct proc_process process;
		if (list.ids.items[i] == (uint32_t)getpid() ||
			proc_read(proc, list.ids.items[i], &process) < 0 || process.kernel_thread)
			continue;
		if (matches(proc, &process, pattern) && !add_pid(run, process.pid))
			result = diag_set(diag, -ENOMEM, "cannot record: %m");
	}
	vec_done(&list.ids);
	if (result == 0 && run->pids.count == before) {
		result = diag_set(diag, -ESRCH, "no process is named '%s'", pattern);
		diag_remedy(diag, "pgrep -l . lists what runs; * and ? stand for any characters");
	}
	return result;
}

static int check_pid(struct proc_reader *proc, uint32_t pid, struct diag *diag)
{
	int alive = proc_alive(proc, pid);

	if (alive > 0)
		return 0;
	return diag_set(diag, -ESRCH, "no process has the id %u", pid);
}

/* What the recording is called: the application, the command, or the machine. */
static void name_it(struct recording_run *run, struct proc_reader *proc)
{
	const char *name = "machine";
	char host[256] = "";
	struct proc_process process = { 0 };

	if (run->pids.count) {
		for (uint32_t i = 0; i < run->pids.count; i++) {
			char called[256];
			if (proc_read(proc, run->pids.items[i], &process) < 0)
				continue;
			application_name(proc, &process, called, sizeof(called));
			if (run->subject.len)
				bytes_text(&run->subject, ", ");
			text_add_safe(&run->subject, called, strlen(called));
			bytes_printf(&run->subject, " (%u)", run->pids.items[i]);
			if (i == 0)
				copy_name(run->name, sizeof(run->name), called, strlen(called));
		}
		name = run->name;
	} else if (run->args->command) {
		const char *slash = strrchr(run->args->command[0], '/');
		name = slash ? slash + 1 : run->args->command[0];
		text_add_safe(&run->subject, name, strlen(name));
	} else {
		(void)gethostname(host, sizeof(host) - 1); /* stays empty */
		bytes_text(&run->subject, "all of ");
		text_add_safe(&run->subject, host, strlen(host));
		name = host[0] ? host : "machine";
	}
	char clean[sizeof(run->name)];
	size_t used = 0;

	for (; *name && used + 1 < sizeof(clean); name++) {
		bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
			(*name >= '0' && *name <= '9') || (used && (*name == '.' || *name == '-' || *name == '_'));
		if (plain)
			clean[used++] = *name;
	}
	clean[used] = '\0';
	(void)snprintf(run->name, sizeof(run->name), "%s", used ? clean : "recording"); /* fits */
}

static int choose_targets(struct recording_run *run, struct diag *diag)
{
	const struct record_values *values = run->values;
	struct proc_reader proc;
	int result = proc_open(&proc, diag);

	if (result < 0)
		return result;
	for (uint32_t i = 0; result == 0 && i < values->pids.list.count; i++)
		result = add_pid_list(run, values->pids.list.items[i], diag);
	for (uint32_t i = 0; result == 0 && i < run->pids.count; i++)
		result = check_pid(&proc, run->pids.items[i], diag);
	for (uint32_t i = 0; result == 0 && i < values->names.list.count; i++)
		result = add_named(run, &proc, values->names.list.items[i], diag);
	if (result == 0)
		name_it(run, &proc);
	proc_close(&proc);
	return result;
}

/* Without the right to see the whole machine: what this user runs. */
static int choose_own_processes(struct recording_run *run, struct diag *diag)
{
	struct proc_reader proc;
	struct id_list list = { 0 };
	int result = proc_open(&proc, diag);

	if (result < 0)
		return result;
	result = proc_list(&proc, &list, diag);
	for (uint32_t i = 0; result == 0 && i < list.ids.count; i++) {
		struct proc_process process;
		if (list.ids.items[i] == (uint32_t)getpid() ||
			proc_read(&proc, list.ids.items[i], &process) < 0 || process.uid != geteuid() ||
			process.state == 'Z')
			continue;
		if (!add_pid(run, process.pid))
			result = diag_set(diag, -ENOMEM, "cannot record: %m");
	}
	vec_done(&list.ids);
	proc_close(&proc);
	return result;
}

/* ---- memory ---- */

/* What we take counts against the limit of a target in our own control group. */
static bool shares_memory(const struct recording_run *run, const struct memory_cgroup *group)
{
	for (uint32_t i = 0; i < run->pids.count; i++)
		if (memory_cgroup_holds("", group, run->pids.items[i]))
			return true;
	return !run->pids.count; /* the machine, or a command that we start */
}

static int look_at_memory(struct recording_run *run, struct diag *diag)
{
	struct memory_cgroup group;
	cleanup(bytes_done) struct bytes left = { 0 };

	if (memory_cgroup_read("", &group) < 0 || !shares_memory(run, &group))
		return 0;
	run->memory_limited = true;
	text_add_size(&left, group.left_bytes);
	bytes_text(&left, " of ");
	text_add_size(&left, group.limit_bytes);
	if (group.left_bytes < MEMORY_LEFT_MIN && !run->values->yes) {
		diag_set(diag, -ENOMEM, "only %s of memory are left to the control group that the recorder shares with its target",
			bytes_z(&left));
		diag_remedy(diag, "record from outside of that container, or go on with --yes");
		return -ENOMEM;
	}
	if (!run->values->quiet)
		fprintf(stderr, "memory     %s left to the control group shared with the target\n", bytes_z(&left));
	return 0;
}

/* ---- the file ---- */

static int open_output(struct recording_run *run, int *ret_fd, struct diag *diag)
{
	const char *path = run->values->output;

	if (path && strcmp(path, "-") == 0) {
		if (isatty(STDOUT_FILENO)) {
			diag_set(diag, -EINVAL, "a recording is not written to a terminal");
			diag_remedy(diag, "give a file with -o, or a pipe");
			return -EINVAL;
		}
		int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return diag_set(diag, -errno, "cannot write to standard output: %m");
		(void)snprintf(run->path, sizeof(run->path), "-"); /* fits */
		*ret_fd = fd;
		return 0;
	}
	if (!path) {
		char stamp[32];
		time_t now = time(NULL);
		struct tm utc;
		gmtime_r(&now, &utc);
		(void)strftime(stamp, sizeof(stamp), "%Y%m%d_%H%M%S", &utc); /* fits */
		(void)snprintf(run->path, sizeof(run->path), "%s_%s.nettrace%s", run->name, stamp,
			run->values->packed ? ".zst" : ""); /* fits */
	} else if ((size_t)snprintf(run->path, sizeof(run->path), "%s", path) >= sizeof(run->path)) {
		return diag_set(diag, -ENAMETOOLONG, "cannot write the recording: its path is too long");
	}
	int fd = open(run->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600);

	if (fd < 0) {
		diag_set(diag, -errno, "cannot write '%s': %m", run->path);
		diag_remedy(diag, "choose another place with -o FILE");
		return diag->error;
	}
	*ret_fd = fd;
	return 0;
}

/* Takes back the file that nothing is in. What is no plain file (/dev/full) is not ours to take. */
static void remove_output(const struct recording_run *run, int fd)
{
	struct stat status;

	if (strcmp(run->path, "-") != 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		(void)unlink(run->path); /* then it stays, empty */
}

/* ---- words ---- */

static void add_elapsed(struct bytes *out, uint64_t ns)
{
	uint64_t s = ns / 1000000000;

	if (s >= 3600)
		bytes_printf(out, "%02u:", (unsigned)(s / 3600));
	bytes_printf(out, "%02u:%02u", (unsigned)(s / 60 % 60), (unsigned)(s % 60));
}

static void say_begin(struct recording_run *run)
{
	const struct recorder_info *info = live_recorder_info(run->live);

	if (info->limit.error && !run->limit_said)
		(void)words_fail(&info->limit); /* the recording goes on with less: its code is not ours */
	if (run->values->quiet)
		return;
	cleanup(bytes_done) struct bytes line = { 0 };

	bytes_printf(&line, "recording  %s", bytes_z(&run->subject));
	if (info->kernel_excluded)
		bytes_text(&line, ", user code only,");
	else if (!run->pids.count && !run->args->command)
		bytes_printf(&line, ": %u CPUs", info->ring_count);
	bytes_printf(&line, " at %u Hz", info->frequency_hz);
	if (run->screen.terminal && !run->values->duration_ns && !run->args->command)
		bytes_text(&line, "; Enter or Ctrl-C ends it");
	fprintf(stderr, "%s\n", bytes_z(&line));
}

static void say_progress(struct recording_run *run)
{
	if (!run->screen.terminal || run->values->quiet)
		return;
	struct live_counts counts;
	cleanup(bytes_done) struct bytes line = { 0 };

	live_count(run->live, &counts);
	bytes_text(&line, "\r  ");
	add_elapsed(&line, live_now_ns() - counts.begin_ns);
	bytes_text(&line, "  ");
	text_add_count(&line, counts.samples);
	bytes_text(&line, " samples  ");
	text_add_count(&line, counts.lost);
	bytes_text(&line, " lost  ");
	text_add_size(&line, counts.bytes);
	bytes_text(&line, "\x1b[K");
	fputs(bytes_z(&line), stderr);
	fflush(stderr);
}

static uint64_t sum_unnamed(const struct live_counts *counts)
{
	uint64_t sum = 0;

	for (int i = 0; i < UNNAMED_CAUSE_COUNT; i++)
		sum += counts->unnamed[i];
	return sum;
}

static void say_names(const struct live_counts *counts, struct bytes *out)
{
	static const char *const words[UNNAMED_CAUSE_COUNT] = {
		[UNNAMED_NO_SYMBOLS] = "in images without a symbol for them (shown as offsets)",
		[UNNAMED_NO_IMAGE] = "in images that could not be opened",
		[UNNAMED_NO_MAPPING] = "outside any known mapping",
		[UNNAMED_NO_METHOD] = "in JIT memory that no method owns",
		[UNNAMED_NOT_ASKED] = "of processes that could not be asked",
		[UNNAMED_KERNEL_HIDDEN] = "of the kernel, which hides its symbols from this user",
		[UNNAMED_NO_MEMORY] = "first hit when the recorder's memory was used up",
	};
	uint64_t unnamed = sum_unnamed(counts);
	const char *separator = "; ";

	if (!counts->frames)
		return;
	bytes_printf(out, "names      %.1f %% of ",
		100.0 * (double)(counts->frames - unnamed) / (double)counts->frames);
	text_add_count(out, counts->frames);
	bytes_text(out, " frames");
	for (int i = 0; i < UNNAMED_CAUSE_COUNT; i++) {
		double percent = 100.0 * (double)counts->unnamed[i] / (double)counts->frames;
		if (!counts->unnamed[i])
			continue;
		bytes_printf(out, "%s%.*f %% %s", separator, percent < 0.1 ? 2 : 1, percent, words[i]);
		separator = ", ";
	}
	bytes_text(out, "\n");
}

static void say_end(struct recording_run *run)
{
	struct live_counts counts;
	cleanup(bytes_done) struct bytes text = { 0 };

	if (run->screen.terminal && !run->values->quiet)
		fputs("\r\x1b[K", stderr);
	if (run->values->quiet)
		return;
	live_count(run->live, &counts);
	if (strcmp(run->path, "-") == 0)
		bytes_text(&text, "standard output");
	else
		text_add_safe(&text, run->path, strlen(run->path));
	bytes_text(&text, "  ");
	text_add_size(&text, counts.bytes);
	bytes_text(&text, ", ");
	text_add_count(&text, counts.samples);
	bytes_text(&text, " samples in ");
	text_add_duration(&text, (double)(counts.end_ns - counts.begin_ns) / 1e9);
	if (counts.lost) {
		bytes_text(&text, ", ");
		text_add_count(&text, counts.lost);
		bytes_printf(&text, " lost (%.1f %%)\n",
			100.0 * (double)counts.lost / (double)(counts.samples + counts.lost));
	} else {
		bytes_text(&text, ", nothing lost\n");
	}
	say_names(&counts, &text);
	if (strcmp(run->path, "-") != 0 && !run->values->report) {
		bytes_text(&text, "next       spoor report ");
		text_add_safe(&text, run->path, strlen(run->path));
		bytes_text(&text, "\n");
	}
	fputs(bytes_z(&text), stderr);
}

/* A size that was asked for is an end like any other; a disk that is nearly full is a failure. */
static int say_limit(struct recording_run *run, struct diag *diag)
{
	struct live_counts counts;

	live_count(run->live, &counts);
	if (counts.limit == OUTPUT_SIZE_LIMIT && !run->values->quiet)
		words_say("%s", live_end_reason(run->live));
	if (counts.limit != OUTPUT_DISK_LIMIT)
		return 0;
	diag_set(diag, -ENOSPC, "the recording was ended: %s", live_end_reason(run->live));
	diag_remedy(diag, "what was recorded up to then is whole; make room on the disk, or write to another one with -o");
	return -ENOSPC;
}

/* ---- the run ---- */

static bool stdin_is_ours(void)
{
	return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

static int watch_signals(struct recording_run *run, struct diag *diag)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return diag_set(diag, -errno, "cannot block signals: %m");
	(void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is told by the write */
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return diag_set(diag, -errno, "cannot watch signals: %m");
	run->watched[0] = (struct pollfd){ .fd = fd, .events = POLLIN };
	run->watched_count = 1;
	if (stdin_is_ours() && !run->args->command)
		run->watched[run->watched_count++] = (struct pollfd){ .fd = STDIN_FILENO, .events = POLLIN };
	return 0;
}

static void reap(struct recording_run *run)
{
	uint32_t pid = live_child_pid(run->live);
	int status;

	if (pid && !run->child_reaped && waitpid((pid_t)pid, &status, WNOHANG) == (pid_t)pid) {
		run->child_reaped = true;
		run->child_status = status;
		if (!run->reason) /* else it is we who ended it */
			run->reason = "the command ended";
	}
}

/* True when a signal or a key asks for the end. */
static void look_at_watched(struct recording_run *run)
{
	struct signalfd_siginfo info;

	while (run->watched[0].revents && read(run->watched[0].fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			reap(run);
		} else {
			run->interrupted = true;
			run->reason = info.ssi_signo == SIGINT ? "Ctrl-C" : "a signal";
		}
	}
	if (run->watched_count > 1 && run->watched[1].revents) {
		char line[256];
		ssize_t got = read(STDIN_FILENO, line, sizeof(line));
		if (got <= 0) { /* the terminal has gone, or nobody types there: nothing to wait for */
			run->watched_count = 1;
			return;
		}
		run->reason = "Enter";
	}
	run->watched[0].revents = 0;
}

static int run_until_end(struct recording_run *run, struct diag *diag)
{
	uint64_t duration_ns = run->values->duration_ns;
	uint64_t begin_ns = live_now_ns();
	uint64_t end_ns = duration_ns && duration_ns < UINT64_MAX - begin_ns ? begin_ns + duration_ns : UINT64_MAX;
	uint64_t progress_ns = 0;

	while (!run->reason) {
		uint64_t until_ns = end_ns;
		if (run->screen.terminal && !run->values->quiet && begin_ns + progress_ns + PROGRESS_NS < until_ns)
			until_ns = begin_ns + progress_ns + PROGRESS_NS;
		int result = live_step(run->live, run->watched, run->watched_count, until_ns, diag);
		if (result < 0)
			return result;
		look_at_watched(run);
		uint64_t now_ns = live_now_ns();
		if (!run->reason && now_ns >= end_ns)
			run->reason = "the time was up";
		if (!run->reason && result == 0) {
			reap(run);
			run->reason = run->reason ? run->reason : live_end_reason(run->live);
		}
		if (now_ns - begin_ns >= progress_ns + PROGRESS_NS) {
			progress_ns = now_ns - begin_ns;
			say_progress(run);
		}
	}
	return 0;
}

/* A command that outlives its time limit is ended, as Ctrl-C would. */
static void end_child(struct recording_run *run)
{
	uint32_t pid = live_child_pid(run->live);

	if (!pid)
		return;
	for (int i = 0; !run->child_reaped && i < 50; i++) {
		if (i == 0)
			(void)kill((pid_t)pid, run->interrupted ? SIGINT : SIGTERM); /* gone: then waitpid tells */
		reap(run);
		if (!run->child_reaped)
			(void)poll(NULL, 0, 20);
	}
	if (!run->child_reaped) {
		(void)kill((pid_t)pid, SIGKILL);
		if (waitpid((pid_t)pid, &run->child_status, 0) == (pid_t)pid)
			run->child_reaped = true;
	}
}

/* The child's end has been seen to; only what a person sends from now on cuts the end short. */
static void forget_child_signals(struct recording_run *run)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	while (sigtimedwait(&set, NULL, &(struct timespec){ 0 }) > 0)
		;
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigdelset(&set, SIGCHLD);
	(void)signalfd(run->watched[0].fd, &set, 0); /* the descriptor stays; at worst the end is cut short */
	run->watched[0].revents = 0;
}

static int child_code(const struct recording_run *run)
{
	if (!run->child_reaped)
		return EXIT_DONE;
	if (WIFEXITED(run->child_status))
		return WEXITSTATUS(run->child_status);
	return WIFSIGNALED(run->child_status) ? 128 + WTERMSIG(run->child_status) : EXIT_FAILED;
}

static int open_live(struct recording_run *run, struct live_options *options, struct diag *diag)
{
	int result = live_open(options, &run->live, diag);

	if (result != -EACCES || !options->machine || run->values->all)
		return result;
	/* Nobody asked for the whole machine by name: then what this user runs, and a sentence about the rest. */
	struct diag machine = *diag;

	options->machine = false;
	result = -ESRCH;
	/* One of them may end before it is opened: then they are looked for again. */
	for (int i = 0; i < OWN_TRIES && result == -ESRCH; i++) {
		*diag = (struct diag){ 0 };
		vec_reset(&run->pids);
		result = choose_own_processes(run, diag);
		if (result < 0)
			return result;
		options->pids = run->pids.items;
		options->pid_count = run->pids.count;
		result = live_open(options, &run->live, diag);
	}
	if (result < 0) {
		*diag = machine;
		return result;
	}
	(void)words_fail(&machine); /* said once; the recording goes on with less */
	run->limit_said = true;
	bytes_reset(&run->subject);
	bytes_printf(&run->subject, "this user's %u process%s", run->pids.count, run->pids.count == 1 ? "" : "es");
	return 0;
}

static int record(struct recording_run *run, int argc, char **argv, struct diag *diag)
{
	const struct record_values *values = run->values;
	char command_line[COMMAND_TEXT];
	cleanup(closep) int fd = -1;
	size_t used = 0;
	int result = choose_targets(run, diag);

	if (result < 0)
		return result;
	used = (size_t)snprintf(command_line, sizeof(command_line), "spoor");
	for (int i = 0; i < argc && used < sizeof(command_line); i++)
		used += (size_t)snprintf(command_line + used, sizeof(command_line) - used, " %s", argv[i]);
	struct live_options options = {
		.machine = values->all || (!run->pids.count && !run->args->command),
		.pids = run->pids.items,
		.pid_count = run->pids.count,
		.command = run->args->command,
		.frequency_hz = (uint32_t)values->frequency_hz,
		.user_only = values->user_only,
		.no_names = values->no_symbols,
		.no_dotnet = values->no_dotnet,
		.symbol_paths = values->symbol_paths.list.items,
		.size_max = values->size_max,
		.command_line = command_line,
		.version = SPOOR_VERSION,
	};

	result = look_at_memory(run, diag);
	if (result < 0)
		return result;
	options.spare_page_cache = run->memory_limited;
	result = open_output(run, &fd, diag);
	if (result < 0)
		return result;
	result = watch_signals(run, diag);
	if (result == 0)
		result = open_live(run, &options, diag);
	if (result == 0)
		result = live_write_to(run->live, fd,
			strcmp(run->path, "-") == 0 ? "standard output" : run->path, values->packed, diag);
	if (result == 0)
		result = live_start(run->live, diag);
	if (result < 0) {
		remove_output(run, fd);
		return result;
	}
	say_begin(run);
	result = run_until_end(run, diag);
	end_child(run);
	forget_child_signals(run);
	int end_result = live_end(run->live, run->reason ? run->reason : "a failed write", run->watched,
		run->watched_count, result < 0 ? NULL : diag);

	say_end(run);
	return result < 0 ? result : end_result < 0 ? end_result : say_limit(run, diag);
}

int cmd_record(const struct verb *self, int argc, char **argv)
{
	struct record_values values = { .frequency_hz = DEFAULT_HZ };
	struct arguments args;
	struct recording_run run = { .values = &values, .args = &args, .watched = { { .fd = -1 } } };
	struct diag diag = { 0 };
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	if (args.words.count) {
		code = options_misused(self, "'%s' is no option; a command to record stands behind --",
			args.words.items[0]);
	} else if (!values.frequency_hz || values.frequency_hz > RECORDER_HZ_MAX) {
		code = options_misused(self, "-F takes 1 to %u samples a second", RECORDER_HZ_MAX);
	} else if (args.command && (values.pids.list.count || values.names.list.count)) {
		code = options_misused(self, "a command and -p or -n exclude each other");
	} else if (find_bad_pid(&values)) {
		code = options_misused(self, "-p takes process ids, not '%s'; use -n NAME for a name",
			find_bad_pid(&values));
	} else if (values.report && values.output && strcmp(values.output, "-") == 0) {
		code = options_misused(self, "--report and -o - both want standard output");
	} else if (!vec_add(&values.symbol_paths.list, NULL)) {
		code = EXIT_FAILED;
	} else {
		size_t output_len = values.output ? strlen(values.output) : 0;
		if (output_len >= 4 && strcmp(values.output + output_len - 4, ".zst") == 0)
			values.packed = true;
		screen_look(stderr, COLOR_AUTO, &run.screen);
		int result = record(&run, argc, argv, &diag);
		code = result < 0 ? words_fail(&diag) : child_code(&run);
	}
	bool report = values.report && run.live && code != EXIT_MISUSED && code != EXIT_MISSING;

	live_close(run.live);
	closep(&run.watched[0].fd);
	if (report) {
		char *words[] = { "report", run.path, NULL };
		int report_code = verb_find("report")->run(verb_find("report"), 2, words);
		code = code ? code : report_code;
	}
	vec_done(&run.pids);
	bytes_done(&run.subject);
	options_done(self, &values, &args);
	return code;
}
