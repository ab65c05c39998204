/* spoor doctor: tries what this user can record here, and names the rights for the rest. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/verbs.h"
#include "code/disassembler.h"
#include "machine/box.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "perf/capability.h"
#include "perf/io_probe.h"
#include "target/dotnet_needs.h"
#include "target/reachability.h"

#define OPTIONS_VERB doctor
#define OPTIONS_LIST "cli/doctor_options.def"
#include "cli/option_list.h"

static const char *const answers[] = {
	[CAPABILITY_NO] = "no",
	[CAPABILITY_LIMITED] = "part",
	[CAPABILITY_YES] = "yes",
};

#define ROW_COUNT   (CAPABILITY_COUNT + 5 + DOTNET_NEEDS_COUNT)
#define GRANT_COUNT 5u

/* The commands that give a group of users a copy of spoor with file capabilities. */
struct grant {
	char missing[256]; /* "CAP_PERFMON, CAP_SYSLOG"; "" when nothing is */
	char commands[GRANT_COUNT][4352];
};

/* The .NET processes as one row more. */
static void look_for_dotnet(struct capability *row)
{
	struct reachability reachability;

	*row = (struct capability){ .key = "dotnet_names",
		.what = ".NET names, from the runtimes",
		.answer = CAPABILITY_YES };
	if (reachability_count(&reachability, NULL) < 0) {
		row->answer = CAPABILITY_NO;
		text_set(row->reason, "/proc cannot be read");
		return;
	}
	cleanup(bytes_done) struct bytes reason = { 0 };

	if (!reachability.found && reachability.hidden)
		bytes_text(&reason, "no .NET process runs now that this user may look into");
	else if (!reachability.found)
		bytes_text(&reason, "no .NET process runs now");
	else
		bytes_printf(&reason, "%u of %u .NET processes", reachability.reachable,
			reachability.found);
	if (reachability.refused_pid) {
		bytes_printf(&reason, "; %u: ", reachability.refused_pid);
		text_add_safe_z(&reason, reachability.reason);
	}
	if (reachability.hidden) {
		bytes_printf(&reason, "; %u %s not be looked into", reachability.hidden,
			reachability.hidden == 1 ? "process may" : "processes may");
		if (reachability.likely)
			bytes_printf(&reason, ", %u of them .NET by %s", reachability.likely,
				reachability.likely == 1 ? "its command or socket"
							 : "their commands or sockets");
	}
	struct rights rights;

	/* Another user's socket needs both: to search its folder, and to connect (a write). */
	rights_read(&rights);
	if ((reachability.refused_pid || reachability.hidden) &&
		(rights.effective & (RIGHT_SYS_PTRACE | RIGHT_DAC_OVERRIDE)) !=
			(RIGHT_SYS_PTRACE | RIGHT_DAC_OVERRIDE))
		text_set(row->remedy,
			"other users' processes need CAP_SYS_PTRACE and CAP_DAC_OVERRIDE: %s",
			geteuid() ? "sudo, or a spoor for one group"
				  : "--cap-add, or run it on the host");
	if (reachability.refused_pid || reachability.hidden)
		row->answer = CAPABILITY_LIMITED;
	text_set(row->reason, "%s", bytes_z(&reason));
}

/* Whether files of other processes can be opened so that their links lead nowhere. */
static void look_for_files(struct capability *row)
{
	struct target_root root;
	struct diag diag = { 0 };
	uint64_t size;
	int fd;

	*row = (struct capability){ .key = "target_files",
		.what = "files of processes, opened safely",
		.answer = CAPABILITY_YES };
	if (target_root_open_here(&root, &diag) < 0)
		return; /* then nothing is known against it */
	/* The root folder itself: no file, but the kernel has answered. */
	if (target_root_open_file(&root, "/", 0, &fd, &size, &diag) == -ENOSYS) {
		row->answer = CAPABILITY_NO;
		text_set(row->reason,
			"there is no openat2 here: they are skipped, and the names in them");
		text_set(row->remedy,
			"Linux 5.6 or newer has it; an old container runtime may forbid it");
	}
	target_root_close(&root);
}

/* Whether annotate can show instructions. */
static void look_for_disassembly(struct capability *row)
{
	const char *why;

	*row = (struct capability){ .key = "disassembly",
		.what = "instructions, in spoor annotate --asm",
		.answer = CAPABILITY_YES };
	if (disassembler_is_available(&why))
		return;
	row->answer = CAPABILITY_NO;
	text_set(row->reason, "%s", why);
	text_set(row->remedy, "apt-get install libcapstone4");
}

/* Whether record --io can count system calls: its programs are loaded, and not attached. */
static void look_for_io(struct capability *row)
{
	struct io_probe *probe = NULL;
	int error = io_probe_open(0, &probe);

	io_probe_close(probe);
	*row = (struct capability){ .key = "io_calls",
		.what = "system calls, of spoor record --io",
		.answer = error < 0 ? CAPABILITY_NO : CAPABILITY_YES };
	if (error == -EPERM || error == -EACCES) {
		text_set(row->reason, "needs CAP_BPF and CAP_PERFMON");
		text_set(row->remedy, "%s",
			geteuid() ? "sudo, or a spoor for one group"
				  : "--cap-add, or run it on the host");
	} else if (error == -EXDEV) {
		text_set(row->reason,
			"in a container the kernel's programs cannot tell its processes from others");
		text_set(row->remedy, "run it on the host");
	} else if (error == -ENOTSUP) {
		text_set(row->reason, "not on this processor");
	} else if (error < 0) {
		text_set(row->reason, "the kernel refuses the programs: %s", strerror(-error));
		text_set(row->remedy, "Linux 5.12 or newer has what they need");
	}
}

/* What record goes by where perf_event_open is refused; `samples` is the row of that. */
static void look_for_clocks(struct capability *row, const struct capability *samples)
{
	*row = (struct capability){ .key = "thread_clocks",
		.what = "CPU time by the threads' clocks",
		.answer = CAPABILITY_YES };
	if (samples->answer == CAPABILITY_NO)
		text_set(row->reason,
			"spoor record goes by these: .NET runtimes sample their managed stacks, other programs have no stacks");
}

/* The program itself, to be copied. */
static void own_path(char *path, size_t room)
{
	ssize_t n = readlink("/proc/self/exe", path, room - 1);

	if (n > 0)
		path[n] = '\0';
	cleanup(bytes_done) struct bytes safe = { 0 };

	if (n > 0)
		text_add_safe_z(&safe, path);
	/* A quote would end the shell word; a character shown otherwise names another file. */
	if (n <= 0 || strchr(path, '\'') || strcmp(bytes_z(&safe), path) != 0)
		(void)snprintf(path, room, "spoor"); /* fits */
}

/* Words of the capabilities wanted and missing, as capabilities(7) or setcap(8) have them. */
static void make_grant(struct grant *grant)
{
	struct rights rights;
	char path[4096];
	char list[256];
	size_t used = 0;
	size_t listed = 0;

	memset(grant, 0, sizeof(*grant));
	rights_read(&rights);
	if (rights.effective & RIGHT_SYS_ADMIN)
		rights.effective |= RIGHT_PERFMON | RIGHT_BPF | RIGHT_CHECKPOINT_RESTORE;
	if (rights.effective & RIGHT_DAC_OVERRIDE)
		rights.effective |= RIGHT_DAC_READ_SEARCH;
	for (uint32_t right = 1; right <= RIGHTS_WANTED; right <<= 1) {
		if (!(right & RIGHTS_WANTED))
			continue;
		const char *name = right_name((enum right)right);
		/* fits */
		listed += (size_t)snprintf(list + listed, sizeof(list) - listed, "%s%s",
			listed ? "," : "", name);
		if (!(rights.effective & right))
			used += (size_t)snprintf(grant->missing + used,
				sizeof(grant->missing) - used, "%s%s", used ? ", " : "",
				name); /* fits */
	}
	for (char *c = list; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c = (char)(*c + 32);
	own_path(path, sizeof(path));
	int i = 0;

	(void)snprintf(grant->commands[i++], sizeof(grant->commands[0]),
		"sudo groupadd --system spoor");
	(void)snprintf(grant->commands[i++], sizeof(grant->commands[0]),
		/* fits */
		"sudo install -o root -g spoor -m 0750 '%s' /usr/local/bin/spoor-group", path);
	(void)snprintf(grant->commands[i++], sizeof(grant->commands[0]),
		"sudo setcap %s=p /usr/local/bin/spoor-group", list);
	(void)snprintf(grant->commands[i++], sizeof(grant->commands[0]),
		"sudo usermod -a -G spoor USER");
	(void)snprintf(grant->commands[i], sizeof(grant->commands[0]), "spoor-group record");
}

static void print_grant(const struct grant *grant)
{
	if (!grant->missing[0])
		return;
	printf("\nmissing  %s\n", grant->missing);
	if (geteuid() == 0) {
		puts("This root lacks them itself, as in a container: add them there (--cap-add), or run it on the host.");
		return;
	}
	puts("For all of it: sudo spoor record.  Or a spoor for the members of one group, who then see what every process does:");
	for (size_t i = 0; i < GRANT_COUNT; i++)
		printf("  %s\n", grant->commands[i]);
}

static void print_table(const struct capability *table)
{
	int width = 0;

	for (size_t i = 0; i < ROW_COUNT; i++)
		if ((int)strlen(table[i].what) > width)
			width = (int)strlen(table[i].what);
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct capability *row = &table[i];
		printf("%-*s  ", width, row->what);
		if (row->answer == CAPABILITY_YES && !row->reason[0])
			puts(answers[row->answer]);
		else
			printf("%-4s  %s%s%s\n", answers[row->answer], row->reason,
				row->remedy[0] ? "; " : "", row->remedy);
	}
}

static void print_json(const struct capability *table, const struct grant *grant)
{
	cleanup(bytes_done) struct bytes out = { 0 };
	struct json json = { .out = &out };
	struct rights rights;
	struct box box;

	rights_read(&rights);
	box_read(&box);
	json_object(&json, NULL);
	json_z(&json, "host", box.host);
	json_z(&json, "kernel", box.kernel);
	json_z(&json, "system", box.system);
	json_z(&json, "architecture", box.architecture);
	json_u64(&json, "cpus_online", box.cpu_online);
	json_u64(&json, "memory_bytes", box.memory_bytes);
	json_u64(&json, "user_id", rights.euid);
	if (rights.perf_event_paranoid == RIGHTS_PARANOID_UNKNOWN)
		json_null(&json, "perf_event_paranoid");
	else
		json_i64(&json, "perf_event_paranoid", rights.perf_event_paranoid);
	json_i64(&json, "kptr_restrict", rights.kptr_restrict);
	json_u64(&json, "perf_event_max_stack", rights.perf_event_max_stack);
	json_u64(&json, "perf_event_max_sample_rate", rights.perf_event_max_sample_rate);
	json_u64(&json, "open_files_max", rights.open_files_max);
	json_array(&json, "capabilities");
	for (size_t i = 0; i < ROW_COUNT; i++) {
		json_object(&json, NULL);
		json_z(&json, "name", table[i].key);
		json_z(&json, "what", table[i].what);
		json_z(&json, "answer", answers[table[i].answer]);
		json_z(&json, "reason", table[i].reason);
		json_z(&json, "remedy", table[i].remedy);
		json_end(&json);
	}
	json_end(&json);
	json_z(&json, "missing", grant->missing);
	json_array(&json, "grant_commands");
	for (size_t i = 0; i < GRANT_COUNT && grant->missing[0] && rights.euid; i++)
		json_z(&json, NULL, grant->commands[i]);
	json_end(&json);
	json_end(&json);
	puts(bytes_z(&out));
}

int cmd_doctor(const struct verb *self, int argc, char **argv)
{
	struct doctor_values values = { 0 };
	struct arguments args;
	struct capability table[ROW_COUNT];
	struct grant grant;
	int code;

	if (!options_parse(self, argc, argv, &values, &args, &code))
		return code;
	if (args.words.count || args.command) {
		code = options_misused(self, "doctor takes no words");
	} else {
		rights_raise();
		capability_probe(table);
		look_for_clocks(&table[CAPABILITY_COUNT], &table[0]);
		look_for_files(&table[CAPABILITY_COUNT + 1]);
		look_for_dotnet(&table[CAPABILITY_COUNT + 2]);
		look_for_disassembly(&table[CAPABILITY_COUNT + 3]);
		look_for_io(&table[CAPABILITY_COUNT + 4]);
		dotnet_needs_probe(&table[CAPABILITY_COUNT + 5]);
		make_grant(&grant);
		if (values.json) {
			print_json(table, &grant);
		} else {
			print_table(table);
			print_grant(&grant);
		}
		code = message_finish_output();
	}
	options_done(self, &values, &args);
	return code;
}
