/*
 * See targets.h.
 *
 * One walk over /proc. Only files that the query needs are read: names need stat and status (and
 * the arguments of processes called "dotnet"), containers the control group, .NET the mappings.
 */
#include "target/targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "machine/command_line.h"
#include "machine/container.h"
#include "machine/kernel_file.h"
#include "machine/proc.h"
#include "machine/target_root.h"
#include "target/known_programs.h"

#define FIRST_PID_NAMESPACE \
	0xeffffffcu /* PROC_PID_INIT_INO: the kernel's number for the machine's own */
#define HOST_NAME_MAX_BYTES 256u
#define ID_PREFIX_MIN       4u /* shorter beginnings of a container's id fit too many */

/* Facts that are read of a process, each at most one time. */
enum candidate_fact {
	FACT_NAME = 1 << 0,
	FACT_PLACE = 1 << 1, /* cgroup and container */
	FACT_HOST_NAME = 1 << 2,
	FACT_UTS = 1 << 3,  /* uts_own and uts_name */
	FACT_KIND = 1 << 4, /* signs to machine */
};

/* The facts about one process, read when a condition needs them. */
struct candidate {
	struct proc_process process;
	unsigned known; /* enum candidate_fact: was read, or could not be */
	char name[256];
	char cgroup[4096];
	char container[CONTAINER_ID_ROOM];
	char host_name[HOST_NAME_MAX_BYTES];
	/* "" unless it is in another UTS namespace, with its own host name */
	char uts_name[HOST_NAME_MAX_BYTES];
	bool uts_own;
	unsigned signs;
	char coreclr[4096];
	bool hidden; /* its mappings are not readable for this user */
	enum dotnet_kind kind;
	uint16_t machine;
};

struct choosing {
	const struct target_query *query;
	struct targets *targets;
	struct proc_reader proc;
	struct id_list pids;
	VEC(struct proc_process)
	processes; /* parallel to pids, when the query has trees; pid 0: the process has exited */
	struct known_programs programs;
	VEC(bool) fits;  /* per pattern, in the order of fits_any(): the process at hand */
	VEC(bool) found; /* ... any process that was taken */
	struct candidate now;
};

/* ---- one process ---- */

/* True the first time: the caller reads the fact now. */
static bool begin_fact(struct candidate *now, enum candidate_fact fact)
{
	bool first = !(now->known & (unsigned)fact);

	now->known |= (unsigned)fact;
	return first;
}

static void copy_text(char *out, size_t room, const char *text, size_t len)
{
	if (len >= room)
		len = room - 1;
	memcpy(out, text, len);
	out[len] = '\0';
}

/* The application for a .NET host, else the program. */
static const char *candidate_name(struct choosing *c)
{
	struct candidate *now = &c->now;
	const char *args;
	const char *name;
	size_t len;
	size_t name_len;

	if (!begin_fact(now, FACT_NAME))
		return now->name;
	if (strcmp(now->process.comm, "dotnet") == 0 &&
		proc_read_arguments(&c->proc, now->process.pid, &args, &len) == 0 &&
		command_line_application(args, len, &name, &name_len))
		copy_text(now->name, sizeof(now->name), name, name_len);
	else
		copy_text(now->name, sizeof(now->name), now->process.comm,
			strlen(now->process.comm));
	return now->name;
}

static void candidate_place(struct choosing *c)
{
	struct candidate *now = &c->now;
	const char *path;
	size_t len;

	if (!begin_fact(now, FACT_PLACE))
		return;
	if (proc_read_cgroup(&c->proc, now->process.pid, &path, &len, NULL) < 0)
		return;
	copy_text(now->cgroup, sizeof(now->cgroup), path, len);
	(void)container_id_from_cgroup(path, len, now->container); /* none: stays empty */
}

/*
 * The host name of its container: from its environment at its start, else from its /etc/hostname.
 */
static const char *candidate_host_name(struct choosing *c)
{
	struct candidate *now = &c->now;
	struct target_root root = { .fd = -1 };
	uint64_t size;
	const char *value;
	size_t len;

	if (!begin_fact(now, FACT_HOST_NAME))
		return now->host_name;
	if (proc_read_variable(&c->proc, now->process.pid, "HOSTNAME", &value, &len) == 0) {
		copy_text(now->host_name, sizeof(now->host_name), value, len);
		return now->host_name;
	}
	if (target_root_open(&root, now->process.pid, NULL) < 0)
		return now->host_name;
	cleanup(closep) int fd = -1;

	if (!target_root_is_ours(&root) &&
		target_root_open_file(&root, "/etc/hostname", 4096, &fd, &size, NULL) == 0) {
		ssize_t n = read(fd, now->host_name, sizeof(now->host_name) - 1);
		now->host_name[n > 0 ? n : 0] = '\0';
		now->host_name[strcspn(now->host_name, "\r\n \t")] = '\0';
	}
	target_root_close(&root);
	return now->host_name;
}

static bool has_own_uts(struct choosing *c)
{
	struct candidate *now = &c->now;

	if (!begin_fact(now, FACT_UTS))
		return now->uts_own;
	now->uts_own = container_has_host_name(now->process.pid);
	if (now->uts_own)
		/* without the right to read it: stays empty */
		(void)container_host_name(now->process.pid, now->uts_name);
	return now->uts_own;
}

/* Any of its host names: the kernel's, and those in its environment and files. */
static bool fits_host_name(struct choosing *c, const char *pattern)
{
	return (has_own_uts(c) && c->now.uts_name[0] && text_glob(pattern, c->now.uts_name)) ||
	       text_glob(pattern, candidate_host_name(c));
}

static int on_mapping(void *user, const struct proc_mapping *mapping)
{
	struct candidate *now = user;
	unsigned signs = dotnet_signs_of_path(mapping->path);

	now->signs |= signs;
	if (signs & DOTNET_SIGN_CORECLR) {
		copy_text(now->coreclr, sizeof(now->coreclr), mapping->path, mapping->path_len);
		return 1;
	}
	return 0;
}

/* Of a process with unreadable mappings, the arguments and names in /tmp are still readable. */
static bool hidden_seems_dotnet(struct choosing *c)
{
	struct candidate *now = &c->now;
	struct dotnet_target target = {
		.pid = now->process.pid,
		.inner_pid = now->process.inner_pid,
		.start_ticks = now->process.start_ticks,
		.borrows = true,
	};

	if (strcmp(now->process.comm, "dotnet") == 0 &&
		strcmp(candidate_name(c), now->process.comm) != 0)
		return true;
	return dotnet_port_exists(&target);
}

/* A process without a runtime that has a diagnostics socket. */
static bool has_libspoor(uint32_t pid)
{
	struct dotnet_target target;

	return dotnet_target_read(pid, &target, NULL) == 0 && dotnet_port_exists(&target);
}

/* Kind and architecture. */
static void candidate_look(struct choosing *c)
{
	struct candidate *now = &c->now;
	uint32_t pid = now->process.pid;
	const char *program = "";
	size_t len;

	if (!begin_fact(now, FACT_KIND))
		return;
	if (now->process.kernel_thread || proc_state_has_ended(now->process.state))
		return;
	int result = proc_read_maps(&c->proc, pid, on_mapping, now);

	if (result == -EACCES || result == -EPERM) {
		now->hidden = true;
		c->targets->hidden_count++;
		if (hidden_seems_dotnet(c))
			now->kind = DOTNET_UNKNOWN;
		return;
	}
	if (proc_read_exe(&c->proc, pid, &program, &len) < 0)
		program = "";
	now->kind = dotnet_kind_of(now->signs, program, now->coreclr);
	if (now->kind != DOTNET_NOT && !(c->query->details & TARGET_DOTNET))
		return; /* all that choosing needs */
	const struct known_program *known = known_program_find(&c->programs, c->now.process.pid);

	if (known)
		now->machine = known->machine;
	if (known && (now->kind == DOTNET_NOT ||
			     (now->kind == DOTNET_SINGLE_FILE && known->kind == DOTNET_NATIVEAOT)))
		now->kind = known->kind;
	if (now->kind == DOTNET_NOT && c->query->libspoor && has_libspoor(pid))
		now->kind = DOTNET_LIBSPOOR;
}

/* ---- conditions ---- */

/*
 * By the program's name, its command's (which comm cuts after 15 characters), or the application's.
 */
static bool fits_name(struct choosing *c, const char *pattern)
{
	const char *args;
	size_t len;

	if (text_glob(pattern, c->now.process.comm) || text_glob(pattern, candidate_name(c)))
		return true;
	if (proc_read_arguments(&c->proc, c->now.process.pid, &args, &len) < 0 || !len)
		return false;
	const char *slash = strrchr(args, '/');

	return text_glob(pattern, slash ? slash + 1 : args);
}

/* The last part of a control group's path, as "web" of ".../docker-web.scope". */
static bool fits_last_part(const char *cgroup, const char *pattern)
{
	const char *slash = strrchr(cgroup, '/');
	char part[256];

	copy_text(part, sizeof(part), slash ? slash + 1 : cgroup,
		strlen(slash ? slash + 1 : cgroup));
	if (!part[0])
		return false;
	if (text_glob(pattern, part))
		return true;
	char *dot = strrchr(part, '.');

	if (!dot || strcmp(dot, ".scope") != 0)
		return false;
	*dot = '\0';
	const char *dash = strchr(part, '-');

	return text_glob(pattern, part) || (dash && text_glob(pattern, dash + 1));
}

static bool fits_container_name(void *user, const char *name)
{
	return text_glob(user, name);
}

static bool fits_container(struct choosing *c, const char *pattern)
{
	const struct candidate *now = &c->now;
	size_t len = strlen(pattern);

	candidate_place(c);
	if (len >= ID_PREFIX_MIN && strncmp(now->container, pattern, len) == 0)
		return true;
	if (now->container[0] && container_names("", now->container, fits_container_name,
					 (void *)(uintptr_t)pattern))
		return true;
	if (!now->container[0] && now->process.inner_pid == now->process.pid && !has_own_uts(c))
		return false; /* a service's control group is no container */
	return fits_last_part(now->cgroup, pattern) || fits_host_name(c, pattern);
}

static bool fits_pod(struct choosing *c, const char *pattern)
{
	candidate_place(c);
	if (!c->now.container[0] && c->now.process.inner_pid == c->now.process.pid &&
		!has_own_uts(c))
		return false;
	return fits_host_name(c, pattern);
}

/*
 * The pattern is "/system.slice/shop.service" or "shop.service"; control groups below them fit too.
 */
static bool fits_cgroup(struct choosing *c, const char *pattern)
{
	char path[sizeof(c->now.cgroup)];

	candidate_place(c);
	copy_text(path, sizeof(path), c->now.cgroup, strlen(c->now.cgroup));
	for (;;) {
		for (const char *at = path; at; at = strchr(at + 1, '/'))
			if (text_glob(pattern, at) || (*at == '/' && text_glob(pattern, at + 1)))
				return true;
		char *slash = strrchr(path, '/');
		if (!slash || slash == path)
			return false;
		*slash = '\0';
	}
}

static const struct proc_process *find_process(const struct choosing *c, uint32_t pid)
{
	for (uint32_t i = 0; i < c->processes.count; i++)
		if (c->processes.items[i].pid == pid)
			return &c->processes.items[i];
	return NULL;
}

static bool fits_tree(const struct choosing *c, uint32_t root)
{
	const struct proc_process *process = &c->now.process;

	/* Parents were read one by one while processes started and ended: a ring is possible. */
	for (uint32_t steps = 0; process && steps < c->processes.count; steps++) {
		if (process->pid == root)
			return true;
		process = process->parent_pid ? find_process(c, process->parent_pid) : NULL;
	}
	return false;
}

static size_t pattern_count(const struct target_query *query)
{
	return query->name_count + query->container_count + query->pod_count + query->cgroup_count +
	       query->tree_count;
}

/* Whether any pattern fits this process. All are tried, so that each records if it ever fitted. */
static bool fits_any(struct choosing *c)
{
	const struct target_query *query = c->query;
	bool *fits = c->fits.items;
	bool any = query->all || (query->own && c->now.process.uid == geteuid());
	const struct {
		const char *const *items;
		size_t count;
		bool (*fit)(struct choosing *, const char *);
	} kinds[] = {
		{ query->names, query->name_count, fits_name },
		{ query->containers, query->container_count, fits_container },
		{ query->pods, query->pod_count, fits_pod },
		{ query->cgroups, query->cgroup_count, fits_cgroup },
	};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t i = 0; i < kinds[k].count; i++)
			any |= *fits++ = kinds[k].fit(c, kinds[k].items[i]);
	for (size_t i = 0; i < query->tree_count; i++)
		any |= *fits++ = fits_tree(c, query->trees[i]);
	return any;
}

/* ---- taking ---- */

static const char *keep_text(struct targets *targets, const char *text, size_t len)
{
	char *copy = arena_alloc(&targets->arena, len + 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

static const char *keep_z(struct targets *targets, const char *text)
{
	return keep_text(targets, text, strlen(text));
}

/* The arguments with blanks for NULs; *ret_short: for a table. Either is NULL without memory. */
static const char *keep_command_line(struct choosing *c, const char **ret_short)
{
	struct bytes command = { 0 };
	const char *args;
	size_t len;

	*ret_short = "";
	if (proc_read_arguments(&c->proc, c->now.process.pid, &args, &len) < 0)
		return "";
	command_line_shorten(args, len, &command);
	*ret_short = command.failed ? NULL : keep_text(c->targets, bytes_z(&command), command.len);
	bytes_done(&command);
	while (len && !args[len - 1])
		len--;
	char *copy = (char *)(uintptr_t)keep_text(c->targets, args, len);

	for (size_t i = 0; copy && i < len; i++)
		if (!copy[i])
			copy[i] = ' ';
	return copy;
}

/*
 * Whether its socket takes connections. Nothing is sent, so the target does not wait for anything.
 */
static int try_to_reach(struct choosing *c, struct target *target)
{
	struct dotnet_target port;
	struct diag diag = { 0 };
	int fd;

	target->reason = "";
	if (proc_state_is_stopped(target->state)) {
		target->reach_error = -EBUSY;
		target->reason = reason_text(REASON_STOPPED);
		return 0;
	}
	fd = dotnet_target_read(target->pid, &port, &diag);
	port.borrows = true;
	if (fd == 0)
		fd = dotnet_port_connect(&port, &diag);
	if (fd >= 0) {
		(void)close(fd); /* nothing was written to it */
		target->reachable = true;
		return 0;
	}
	target->reach_error = fd;
	target->reach_reason = diag.reason;
	target->reason = keep_z(c->targets, diag.text);
	return target->reason ? 0 : -ENOMEM;
}

static bool is_taken(const struct targets *targets, uint32_t pid)
{
	for (uint32_t i = 0; i < targets->list.count; i++)
		if (targets->list.items[i].pid == pid)
			return true;
	return false;
}

static int take(struct choosing *c)
{
	struct candidate *now = &c->now;
	unsigned details = c->query->details;
	size_t len = 0;

	if (is_taken(c->targets, now->process.pid))
		return 0;
	struct target *target = vec_push(&c->targets->list);

	if (!target)
		return -ENOMEM;
	if (details & (TARGET_DOTNET | TARGET_REACH))
		candidate_look(c);
	if (details & TARGET_PLACE)
		candidate_place(c);
	const char *version = dotnet_version_of_path(now->coreclr, &len);

	*target = (struct target){
		.pid = now->process.pid,
		.inner_pid = now->process.inner_pid,
		.parent_pid = now->process.parent_pid,
		.uid = now->process.uid,
		.thread_count = now->process.thread_count,
		.start_ticks = now->process.start_ticks,
		.start_ns = now->process.start_ns,
		.resident_bytes = now->process.resident_bytes,
		.state = now->process.state,
		.hidden = now->hidden,
		.kind = now->kind,
		.machine = now->machine,
		.name = keep_z(c->targets, candidate_name(c)),
		.program = keep_z(c->targets, now->process.comm),
		.container = keep_z(c->targets, now->container),
		.cgroup = keep_z(c->targets, now->cgroup),
		.runtime_path = keep_z(c->targets, now->coreclr),
		.runtime_version = keep_text(c->targets, version ? version : "", len),
		.command_line = "",
		.short_command = "",
		.reason = "",
		.architecture = "",
		.remedy = "",
	};
	if (details & TARGET_PLACE)
		target->command_line = keep_command_line(c, &target->short_command);
	if (!target->name || !target->program || !target->container || !target->cgroup ||
		!target->runtime_path || !target->runtime_version || !target->command_line ||
		!target->short_command)
		return -ENOMEM;
	if ((details & TARGET_REACH) && target->kind != DOTNET_NOT)
		return try_to_reach(c, target);
	return 0;
}

static void begin_candidate(struct choosing *c, const struct proc_process *process)
{
	/* Field by field, not the whole struct: its texts are long, and processes are many. */
	c->now.process = *process;
	c->now.known = 0;
	c->now.hidden = false;
	c->now.cgroup[0] = c->now.container[0] = c->now.host_name[0] = c->now.uts_name[0] =
		c->now.coreclr[0] = '\0';
	c->now.signs = 0;
	c->now.kind = DOTNET_NOT;
	c->now.machine = 0;
}

static int take_pid(struct choosing *c, uint32_t pid, struct diag *diag)
{
	struct proc_process process;
	int result = proc_alive(&c->proc, pid);

	if (result > 0)
		result = proc_read(&c->proc, pid, &process);
	else if (result == 0)
		result = -ESRCH;
	if (result == -ESRCH)
		return diag_set(diag, -ESRCH, "no process has the id %u", pid);
	if (result < 0)
		return diag_set(diag, result, "cannot read /proc/%u: %m", pid);
	begin_candidate(c, &process);
	result = take(c);
	return result < 0 ? diag_set(diag, result, "cannot look at process %u: %m", pid) : 0;
}

/* ---- the walk ---- */

static int judge(struct choosing *c, const struct proc_process *process)
{
	begin_candidate(c, process);
	if (!fits_any(c))
		return 0;
	if (c->query->dotnet_only) {
		candidate_look(c);
		if (c->now.kind == DOTNET_NOT)
			return 0;
	}
	for (uint32_t i = 0; i < c->found.count; i++)
		c->found.items[i] |= c->fits.items[i];
	return take(c);
}

static int walk(struct choosing *c, struct diag *diag)
{
	uint32_t self = (uint32_t)getpid();
	int result = proc_list(&c->proc, &c->pids, diag);

	if (result < 0)
		return result;
	if (!vec_reserve(&c->fits, pattern_count(c->query)) ||
		!vec_reserve(&c->found, pattern_count(c->query)))
		return diag_set(diag, -ENOMEM, "cannot look at the processes: %m");
	for (size_t i = 0; i < pattern_count(c->query); i++) {
		(void)vec_add(&c->fits, false); /* there is room */
		(void)vec_add(&c->found, false);
	}
	/* A tree needs the parents of all processes before the first process can be checked. */
	for (uint32_t i = 0; c->query->tree_count && i < c->pids.ids.count; i++) {
		struct proc_process process;
		if (proc_read(&c->proc, c->pids.ids.items[i], &process) < 0)
			process.pid = 0;
		if (!vec_add(&c->processes, process))
			return diag_set(diag, -ENOMEM, "cannot look at the processes: %m");
	}
	for (uint32_t i = 0; i < c->pids.ids.count; i++) {
		struct proc_process process;
		if (c->query->tree_count)
			process = c->processes.items[i];
		else if (proc_read(&c->proc, c->pids.ids.items[i], &process) < 0)
			process.pid = 0;
		if (!process.pid || process.pid == self || process.kernel_thread ||
			proc_state_has_ended(process.state))
			continue;
		result = judge(c, &process);
		if (result < 0)
			return diag_set(diag, result, "cannot look at process %u: %m", process.pid);
	}
	return 0;
}

static const char *dotnet_word(const struct choosing *c)
{
	return c->query->dotnet_only ? ".NET " : "";
}

static int tell_missing(const struct choosing *c, const char *what, const char *pattern,
	struct diag *diag)
{
	diag_set(diag, -ESRCH, "no %sprocess %s '%s'", dotnet_word(c), what, pattern);
	diag_remedy(diag, "spoor ps -a lists what runs; * and ? stand for any characters");
	return -ESRCH;
}

/* A pattern that no process fits is an error, so that a typing mistake is noticed. */
static int check_found(const struct choosing *c, struct diag *diag)
{
	const struct target_query *query = c->query;
	const bool *found = c->found.items;
	const struct {
		const char *const *items;
		size_t count;
		const char *what;
	} kinds[] = {
		{ query->names, query->name_count, "is named" },
		{ query->containers, query->container_count, "runs in a container" },
		{ query->pods, query->pod_count, "runs in a pod" },
		{ query->cgroups, query->cgroup_count, "runs in a control group" },
	};

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		for (size_t i = 0; i < kinds[k].count; i++)
			if (!*found++)
				return tell_missing(c, kinds[k].what, kinds[k].items[i], diag);
	for (size_t i = 0; i < query->tree_count; i++)
		if (!*found++)
			return diag_set(diag, -ESRCH, "no %sprocess is %u or descends from it",
				dotnet_word(c), query->trees[i]);
	return 0;
}

static int choose(struct choosing *c, struct diag *diag)
{
	const struct target_query *query = c->query;
	int result = 0;

	for (size_t i = 0; result == 0 && i < query->pid_count; i++)
		result = take_pid(c, query->pids[i], diag);
	if (result == 0 && (query->all || query->own || pattern_count(query)))
		result = walk(c, diag);
	if (result == 0)
		result = check_found(c, diag);
	return result;
}

/* Nothing was chosen: takes the container's only .NET process. */
static int choose_single(struct choosing *c, struct diag *diag)
{
	struct target_query query = *c->query;
	int result;

	query.all = query.dotnet_only = true;
	c->query = &query;
	result = choose(c, diag);
	if (result < 0)
		return result;
	uint32_t count = c->targets->list.count;

	if (count == 1)
		return 0;
	diag_set(diag, -ESRCH,
		count ? "%u .NET processes run in this container"
		      : "no .NET process runs in this container",
		count);
	diag_remedy(diag, count ? "choose with -p PID, -n NAME or --all; spoor ps lists them"
				: "spoor ps -a lists what runs");
	return -ESRCH;
}

bool target_query_chooses(const struct target_query *query)
{
	return query->pid_count || query->all || query->own || pattern_count(query);
}

int targets_choose(const struct target_query *query, struct targets *ret_targets, struct diag *diag)
{
	/* Allocated, because it is large: signal handlers need that room on the stack. */
	cleanup(freep) struct choosing *c = calloc(1, sizeof(*c));
	int result;

	*ret_targets = (struct targets){ 0 };
	if (!c)
		return diag_set(diag, -ENOMEM, "cannot look at the processes: %m");
	c->query = query;
	c->targets = ret_targets;
	result = proc_open(&c->proc, diag);
	if (result < 0)
		return result;
	if (!target_query_chooses(query) && query->single && targets_in_container())
		result = choose_single(c, diag);
	else
		result = choose(c, diag);
	proc_close(&c->proc);
	vec_done(&c->pids.ids);
	vec_done(&c->processes);
	known_programs_done(&c->programs);
	vec_done(&c->fits);
	vec_done(&c->found);
	if (result < 0)
		targets_done(ret_targets);
	return result;
}

void targets_done(struct targets *targets)
{
	arena_done(&targets->arena);
	vec_done(&targets->list);
	*targets = (struct targets){ 0 };
}

/* ---- names ---- */

void targets_add_subject(const struct targets *targets, struct bytes *out)
{
	for (uint32_t i = 0; i < targets->list.count; i++) {
		const struct target *target = &targets->list.items[i];
		if (i)
			bytes_text(out, ", ");
		text_add_safe_z(out, target->name);
		bytes_printf(out, " (%u)", target->pid);
	}
}

void target_file_stem(const char *name, char *out, size_t room)
{
	size_t used = 0;

	for (; *name && used + 1 < room; name++) {
		bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
			     (*name >= '0' && *name <= '9') ||
			     (used && (*name == '.' || *name == '-' || *name == '_'));
		if (plain)
			out[used++] = *name;
	}
	out[used] = '\0';
	if (!used)
		copy_text(out, room, "recording", strlen("recording"));
}

bool targets_in_container(void)
{
	char id[CONTAINER_ID_ROOM];
	char text[4096];
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != FIRST_PID_NAMESPACE)
		return true;
	ssize_t len = kernel_file_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text));

	return len > 0 && container_id_from_cgroup(text, (size_t)len, id);
}
