/*
 * See port.h.
 *
 * What the target calls TMPDIR is resolved inside its root (openat2 with RESOLVE_IN_ROOT), because
 * an absolute symbolic link in a container means a place in the container. Without the right to
 * look into the root it is resolved in ours, which is the same place for a process of our own mount
 * namespace. Without openat2 nothing that a target names is opened. The listening process is taken
 * from the socket's peer credentials (SO_PEERCRED), which the kernel fills in.
 */
#include "dotnet/port.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/text.h"
#include "dotnet/reason.h"
#include "machine/proc.h"
#include "machine/rights.h"

#define STAT_MAX    4096u
#define STATUS_MAX  (64u << 10)
#define ENVIRON_MAX (8u << 20) /* the kernel allows 6 MiB of arguments and environment */

/* Entries searched for an unknown name: a full /tmp must not delay the recorder. */
#define SCAN_MAX 20000u

/* What the runtime keeps of a path that does not fit: sun_path without its NUL. */
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

#define NAME_FORMAT  "dotnet-diagnostic-%" PRIu32 "-%" PRIu64 "-socket"
#define OTHER_FORMAT "dotnet-diagnostic-%" PRIu32 "-0%" PRIu64 "-socket"
#define NAME_PREFIX  "dotnet-diagnostic-%" PRIu32 "-"
#define NAME_ROOM    80u

#define TASKS_LOOKED_AT 1024u

/* A whole small file of /proc; a NUL is appended. */
static int read_proc(uint32_t pid, const char *file, size_t limit, char **ret_text,
	size_t *ret_size)
{
	char path[64];
	struct input in;
	uint8_t *data;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/%s", pid, file);
	int r = input_open(&in, path, NULL);
	if (r < 0)
		return r;
	r = input_read_all(&in, limit, &data, ret_size, NULL);
	input_close(&in);
	if (r == 0)
		*ret_text = (char *)data;
	return r;
}

/* Fields 3 and 22, counted after the last ')': command names may hold blanks and ")". */
int dotnet_parse_stat(const char *text, char *ret_state, uint64_t *ret_start_ticks)
{
	const char *at = strrchr(text, ')');

	if (!at || at[1] != ' ')
		return -EBADMSG;
	*ret_state = at[2];
	for (unsigned field = 2; field < 22; field++) {
		at = strchr(at + 1, ' ');
		if (!at)
			return -EBADMSG;
	}
	char *end;
	*ret_start_ticks = strtoull(at + 1, &end, 10);
	return end > at + 1 ? 0 : -EBADMSG;
}

static int read_stat(uint32_t pid, char *ret_state, uint64_t *ret_start_ticks)
{
	cleanup(freep) char *text = NULL;
	size_t size;
	int r = read_proc(pid, "stat", STAT_MAX, &text, &size);

	return r < 0 ? r : dotnet_parse_stat(text, ret_state, ret_start_ticks);
}

uint32_t dotnet_parse_inner_pid(const char *text, uint32_t pid)
{
	unsigned long inner = pid;
	const char *line = strstr(text, "\nNSpid:");

	if (!line)
		return pid;
	for (const char *at = line + 7; *at && *at != '\n';) {
		char *end;
		unsigned long number = strtoul(at, &end, 10);
		if (end == at)
			break;
		inner = number;
		at = end;
	}
	return inner <= UINT32_MAX ? (uint32_t)inner : pid;
}

static uint32_t read_inner_pid(uint32_t pid)
{
	cleanup(freep) char *text = NULL;
	size_t size;

	return read_proc(pid, "status", STATUS_MAX, &text, &size) < 0
		       ? pid
		       : dotnet_parse_inner_pid(text, pid);
}

void dotnet_parse_tmpdir(const char *environment, size_t size, char tmpdir[DOTNET_DIR_MAX])
{
	static const char name[] = "TMPDIR=";
	const size_t name_len = sizeof(name) - 1;

	tmpdir[0] = '\0';
	for (size_t at = 0; at < size;) {
		size_t len = strnlen(environment + at, size - at);
		if (len >= name_len && memcmp(environment + at, name, name_len) == 0) {
			if (len - name_len >= DOTNET_DIR_MAX)
				return;
			memcpy(tmpdir, environment + at + name_len, len - name_len);
			tmpdir[len - name_len] = '\0';
			return;
		}
		at += len + 1;
	}
}

static void read_tmpdir(uint32_t pid, char tmpdir[DOTNET_DIR_MAX])
{
	cleanup(freep) char *text = NULL;
	size_t size;

	tmpdir[0] = '\0';
	if (read_proc(pid, "environ", ENVIRON_MAX, &text, &size) == 0)
		dotnet_parse_tmpdir(text, size, tmpdir);
}

int dotnet_target_read(uint32_t pid, struct dotnet_target *ret_target, struct diag *diag)
{
	char state;
	uint64_t start_ticks;
	int r = read_stat(pid, &state, &start_ticks);

	if (r == -ENOENT || r == -ESRCH)
		return diag_set(diag, -ESRCH, "no process has the pid %" PRIu32, pid);
	if (r < 0)
		return diag_set(diag, r, "cannot read /proc/%" PRIu32 "/stat: %m", pid);
	ret_target->pid = pid;
	ret_target->inner_pid = read_inner_pid(pid);
	ret_target->start_ticks = start_ticks;
	ret_target->borrows = false;
	read_tmpdir(pid, ret_target->tmpdir);
	return 0;
}

char dotnet_target_state(const struct dotnet_target *target)
{
	char state;
	uint64_t start_ticks;

	if (read_stat(target->pid, &state, &start_ticks) < 0 || start_ticks != target->start_ticks)
		return 0;
	return state;
}

uint64_t dotnet_target_age_ns(const struct dotnet_target *target)
{
	uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t now_ticks = proc_now_ticks();

	return now_ticks > target->start_ticks ? (now_ticks - target->start_ticks) * tick_ns : 0;
}

unsigned dotnet_signs_of_path(const char *path)
{
	static const char jit_memory[] = "/memfd:doublemapper";
	static const char deleted[] = " (deleted)";
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t len = strlen(name);

	if (!strncmp(path, jit_memory, sizeof(jit_memory) - 1))
		return DOTNET_SIGN_JIT_MEMORY;
	if (len >= sizeof(deleted) - 1 && !strcmp(name + len - (sizeof(deleted) - 1), deleted))
		len -= sizeof(deleted) - 1;
	if (len == strlen("libcoreclr.so") && !memcmp(name, "libcoreclr.so", len))
		return DOTNET_SIGN_CORECLR;
	if (!strncmp(name, "libmonosgen-2.0.so", strlen("libmonosgen-2.0.so")))
		return DOTNET_SIGN_MONO;
	return 0;
}

const char *dotnet_switched_off_by(struct proc_reader *proc, uint32_t pid)
{
	static const char *const names[] = { "DOTNET_EnableDiagnostics",
		"DOTNET_EnableDiagnostics_IPC", "COMPlus_EnableDiagnostics",
		"COMPlus_EnableDiagnostics_IPC" };
	const char *text;
	size_t len;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (proc_read_variable(proc, pid, names[i], &text, &len) == 0 && len == 1 &&
			text[0] == '0')
			return names[i];
	return NULL;
}

bool dotnet_is_switched_off(uint32_t pid)
{
	struct proc_reader proc;

	if (proc_open(&proc, NULL) < 0)
		return false;
	bool off = dotnet_switched_off_by(&proc, pid) != NULL;
	proc_close(&proc);
	return off;
}

bool dotnet_signs_worth_asking(unsigned signs)
{
	return signs & (DOTNET_SIGN_SOCKET | DOTNET_SIGN_CORECLR | DOTNET_SIGN_JIT_MEMORY);
}

/* The target's path of the directory, with a final slash. False: too long for a socket. */
static bool target_directory(const struct dotnet_target *target,
	char directory[SOCKET_PATH_MAX + 1])
{
	const char *dir = target->tmpdir[0] ? target->tmpdir : "/tmp/";
	size_t len = strlen(dir);

	if (len + 1 > SOCKET_PATH_MAX)
		return false;
	memcpy(directory, dir, len + 1);
	if (dir[len - 1] != '/')
		strcpy(directory + len, "/");
	return true;
}

/* A folder below another; links lead nowhere else. */
static int open_below(int folder, const char *path, uint64_t resolve)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/*
 * An O_PATH descriptor of the target's directory. A relative TMPDIR is relative to the working
 * directory at the target's start, which /proc does not show; the current one is used.
 * *ret_hidden: the target's root may not be looked into, and our own is used.
 */
static int open_directory(uint32_t pid, const char *directory, bool *ret_hidden)
{
	char path[64];

	*ret_hidden = false;
	if (directory[0] != '/') {
		snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cwd", pid);
		cleanup(closep) int cwd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		return cwd < 0 ? -errno : open_below(cwd, directory, RESOLVE_BENEATH);
	}
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/root", pid);
	cleanup(closep) int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 && (errno == ENOENT || errno == ESRCH))
		return -ESRCH;
	*ret_hidden = root < 0;
	cleanup(closep) int ours = root < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	return open_below(root < 0 ? ours : root, directory, RESOLVE_IN_ROOT);
}

static bool is_socket(int directory, const char *name)
{
	struct stat st;

	return fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

/*
 * Does it see another start time than we do? False also if that is unknown: otherwise a socket of
 * an earlier process with this pid would match.
 */
static bool other_time_namespace(uint32_t pid)
{
	char path[64];
	struct stat its, ours;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/ns/time", pid);
	return stat(path, &its) == 0 && stat("/proc/self/ns/time", &ours) == 0 &&
	       (its.st_ino != ours.st_ino || its.st_dev != ours.st_dev);
}

/*
 * For a target whose key differs from /proc/PID/stat (a time namespace shifts start times): the
 * newest socket of this pid. Its peer credentials show later whether the target owns it. Not used
 * where the key must be right: reading a /tmp with the sockets of 14,000 exited runtimes takes 5
 * ms, and a process without a socket is checked repeatedly.
 */
static bool scan_for_name(int directory, uint32_t inner_pid, char name[NAME_ROOM])
{
	char prefix[NAME_ROOM];
	int len = snprintf(prefix, sizeof(prefix), NAME_PREFIX, inner_pid);
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct timespec newest = { 0 };
	bool found = false;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	struct dirent *entry;
	for (unsigned i = 0; i < SCAN_MAX && (entry = readdir(dir)); i++) {
		struct stat st;
		if (strncmp(entry->d_name, prefix, (size_t)len) != 0 ||
			strlen(entry->d_name) >= NAME_ROOM ||
			fstatat(directory, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			!S_ISSOCK(st.st_mode))
			continue;
		if (!found || st.st_mtim.tv_sec > newest.tv_sec ||
			(st.st_mtim.tv_sec == newest.tv_sec &&
				st.st_mtim.tv_nsec > newest.tv_nsec)) {
			newest = st.st_mtim;
			strcpy(name, entry->d_name);
			found = true;
		}
	}
	closedir(dir);
	return found;
}

/* The fourth number after "Uid:" or "Gid:", which the kernel uses for access to files. */
static unsigned long filesystem_id(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	unsigned long id = UINT32_MAX;
	char *end;

	for (unsigned i = 0; line && i < 4; i++, line = end)
		id = strtoul(i ? line : line + strlen(key), &end, 10);
	return id;
}

static bool has_group(const char *status, unsigned long group)
{
	const char *at = strstr(status, "\nGroups:");

	if (filesystem_id(status, "\nGid:") == group)
		return true;
	for (at = at ? at + strlen("\nGroups:") : "\n"; *at && *at != '\n';) {
		char *end;
		if (strtoul(at, &end, 10) == group && end != at)
			return true;
		at = end + strspn(end, " \t");
	}
	return false;
}

/* By the mode bits, and not where access lists grant more. True also if it is unknown. */
static bool may_make_sockets(uint32_t pid, int directory)
{
	cleanup(freep) char *text = NULL;
	size_t size;
	struct stat st;

	if (fstat(directory, &st) < 0 || read_proc(pid, "status", STATUS_MAX, &text, &size) < 0)
		return true;
	const char *capabilities = strstr(text, "\nCapEff:");

	if (!capabilities ||
		strtoull(capabilities + strlen("\nCapEff:"), NULL, 16) >> CAP_DAC_OVERRIDE & 1)
		return true;
	mode_t needed = filesystem_id(text, "\nUid:") == st.st_uid ? 0300
			: has_group(text, st.st_gid)               ? 0030
								   : 0003;

	return (st.st_mode & needed) == needed;
}

/* Why there may be no socket in a directory that could be opened. */
static int explain_none(const struct dotnet_target *target, int directory, const char *path,
	struct diag *diag)
{
	struct statvfs space;

	if (fstatvfs(directory, &space) == 0 && space.f_flag & ST_RDONLY)
		return diag_set(diag, -ENOENT,
			"its temporary directory '%s' is read-only, so it has no diagnostics socket",
			path);
	if (!may_make_sockets(target->pid, directory))
		return diag_set(diag, -ENOENT,
			"its user may not write to its temporary directory '%s', so it has no diagnostics socket",
			path);
	return reason_set(diag, -ENOENT, REASON_NO_SOCKET);
}

/*
 * Its temporary directory, with the caller's own rights if they suffice. *ret_borrowed: they do
 * not, and the capabilities of spoor's file were used. The caller chooses the TMPDIR of a process
 * that he starts. So what these capabilities find there is no answer for him, except the socket
 * itself.
 */
static int open_temporary(const struct dotnet_target *target, const char *path, bool *ret_hidden,
	bool *ret_borrowed)
{
	*ret_borrowed = false;
	if (!rights_are_borrowed())
		return open_directory(target->pid, path, ret_hidden);
	uint64_t before = rights_lower();
	int fd = open_directory(target->pid, path, ret_hidden);

	rights_restore(before);
	if (!target->borrows || (fd >= 0 && !*ret_hidden) ||
		(fd < 0 && fd != -EACCES && fd != -EPERM && !*ret_hidden))
		return fd;
	if (fd >= 0)
		(void)close(fd); /* it was only looked at */
	*ret_borrowed = true;
	return open_directory(target->pid, path, ret_hidden);
}

/* True if thread names may be a runtime's (".NET ..."), or are unknown. */
static bool has_runtime_threads(uint32_t pid)
{
	char path[64];
	struct dirent *entry;
	unsigned looked = 0;

	text_set(path, "/proc/%" PRIu32 "/task", pid);
	DIR *tasks = opendir(path);
	if (!tasks)
		return true;
	bool found = false;
	while (!found && looked < TASKS_LOOKED_AT && (entry = readdir(tasks))) {
		cleanup(freep) char *name = NULL;
		size_t size;
		if (entry->d_name[0] == '.')
			continue;
		looked++;
		text_set(path, "task/%.20s/comm", entry->d_name);
		if (read_proc(pid, path, STATUS_MAX, &name, &size) == 0)
			found = strncmp(name, ".NET ", 5) == 0;
	}
	(void)closedir(tasks); /* it was only read */
	return found || !looked || looked == TASKS_LOOKED_AT;
}

/* Unreadable files; more rights would not help where nothing suggests .NET. */
static int explain_hidden(const struct dotnet_target *target, struct diag *diag)
{
	if (!rights_are_borrowed() && !has_runtime_threads(target->pid))
		return reason_set(diag, -ENOENT, REASON_NO_RUNTIME);
	return reason_set(diag, -EACCES, geteuid() == 0 ? REASON_HIDDEN_FROM_ROOT : REASON_HIDDEN);
}

/* The directory's descriptor or a negative errno. *ret_guessed: the name may be wrong. */
static int find_socket(const struct dotnet_target *target, char name[NAME_ROOM], bool *ret_guessed,
	struct diag *diag)
{
	char directory[SOCKET_PATH_MAX + 1];
	bool hidden;
	bool borrowed;

	if (!target_directory(target, directory))
		return reason_set(diag, -ENAMETOOLONG, REASON_TMPDIR_TOO_LONG);
	cleanup(closep) int fd = open_temporary(target, directory, &hidden, &borrowed);
	if (fd == -ESRCH)
		return reason_set(diag, -ESRCH, REASON_ENDED);
	if (fd < 0 && borrowed)
		return reason_set(diag, -ENOENT, REASON_NO_SOCKET);
	if (fd == -ENOSYS)
		return diag_set(diag, fd,
			"its files cannot be looked into safely: there is no openat2 here (Linux 5.6)");
	if (fd == -EACCES || fd == -EPERM)
		return diag_set(diag, -EACCES,
			"its temporary directory may not be looked into: %m");
	if (fd < 0 && hidden)
		return explain_hidden(target, diag);
	if (fd < 0)
		return diag_set(diag, fd, "cannot open its temporary directory '%s': %m",
			directory);

	snprintf(name, NAME_ROOM, NAME_FORMAT, target->inner_pid, target->start_ticks);
	/* The runtime cuts the whole path; a name cut to nothing was never bound. */
	size_t room = SOCKET_PATH_MAX - strlen(directory);
	if (strlen(name) > room)
		name[room] = '\0';
	*ret_guessed = false;
	if (name[0] && is_socket(fd, name))
		return TAKE_FD(fd);
	/* libspoor's, in a process that may load a runtime later (lib/server/server.h) */
	char other[NAME_ROOM];
	snprintf(other, sizeof(other), OTHER_FORMAT, target->inner_pid, target->start_ticks);
	if (strlen(other) <= room && is_socket(fd, other)) {
		memcpy(name, other, sizeof(other));
		return TAKE_FD(fd);
	}
	*ret_guessed = true;
	if (room >= NAME_ROOM && other_time_namespace(target->pid) &&
		scan_for_name(fd, target->inner_pid, name))
		return TAKE_FD(fd);
	if (borrowed)
		return reason_set(diag, -ENOENT, REASON_NO_SOCKET);
	if (hidden)
		return explain_hidden(target, diag);
	if (room < NAME_ROOM)
		return reason_set(diag, -ENOENT, REASON_NO_SOCKET_LONG_PATH);
	return explain_none(target, fd, directory, diag);
}

bool dotnet_port_exists(const struct dotnet_target *target)
{
	char name[NAME_ROOM];
	bool guessed;
	cleanup(closep) int directory = find_socket(target, name, &guessed, NULL);

	return directory >= 0;
}

/* Its four user ids: it may have been any of these, or root, when it began to listen. */
static bool is_user_of(uint32_t pid, uid_t uid)
{
	cleanup(freep) char *text = NULL;
	size_t size;

	if (uid == 0)
		return true;
	if (read_proc(pid, "status", STATUS_MAX, &text, &size) < 0)
		return false;
	const char *line = strstr(text, "\nUid:");
	for (const char *at = line ? line + 5 : "\n"; *at && *at != '\n';) {
		char *end;
		unsigned long number = strtoul(at, &end, 10);
		if (end == at)
			break;
		if (number == uid)
			return true;
		at = end;
	}
	return false;
}

/*
 * Every user with write access to /tmp can put a socket there with any pid in its name. The
 * listener's pid comes from the kernel (SO_PEERCRED). Its user is compared too: the pid may have
 * been reused since, while another process keeps the old listener's socket open.
 */
static int check_peer(int fd, const struct dotnet_target *target, struct diag *diag)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return diag_set(diag, -errno, "cannot tell who listens at its socket: %m");
	/* 0: no pid in our namespace, so it is not the target. */
	if (peer.pid != (pid_t)target->pid)
		return diag_set(diag, -EPERM, "another process (pid %d) listens at its socket",
			peer.pid);
	if (!is_user_of(target->pid, peer.uid))
		return diag_set(diag, -EPERM, "another user (%u) listens at its socket", peer.uid);
	return 0;
}

static int connect_to(const struct dotnet_target *target, dotnet_socket_fn *made, void *context,
	struct diag *diag)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char name[NAME_ROOM];
	bool guessed;
	cleanup(closep) int directory = find_socket(target, name, &guessed, diag);

	if (directory < 0)
		return directory;
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return diag_set(diag, -errno, "cannot make a socket: %m");
	/* The socket that was checked; and this path always fits into sun_path. */
	cleanup(closep) int place = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (place < 0 && errno != ENOENT)
		return diag_set(diag, -errno, "cannot open its diagnostics socket: %m");
	if (place < 0 || fstat(place, &st) < 0 || !S_ISSOCK(st.st_mode))
		return reason_set(diag, -ENOENT, REASON_SOCKET_GONE);
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", place);
	if (made)
		made(context, fd);
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = errno;
		/* The file of an exited process with this pid: killed runtimes leave theirs. */
		if (error == ECONNREFUSED && guessed)
			return reason_set(diag, -ENOENT, REASON_NO_SOCKET);
		if (error == ECONNREFUSED)
			return reason_set(diag, -error, REASON_NOT_LISTENING);
		if (error == EACCES || error == EPERM)
			return reason_set(diag, -EACCES, REASON_SOCKET_OF_OTHER);
		return diag_set(diag, -error, "cannot connect to its diagnostics socket: %m");
	}
	int r = check_peer(fd, target, diag);
	return r < 0 ? r : TAKE_FD(fd);
}

int dotnet_port_connect(const struct dotnet_target *target, struct diag *diag)
{
	return dotnet_port_connect_announced(target, NULL, NULL, diag);
}

int dotnet_port_connect_announced(const struct dotnet_target *target, dotnet_socket_fn *made,
	void *context, struct diag *diag)
{
	if (target->borrows)
		return connect_to(target, made, context, diag);
	uint64_t before = rights_lower();
	int fd = connect_to(target, made, context, diag);

	rights_restore(before);
	if (!diag || fd != -EACCES || !rights_are_borrowed() || is_user_of(target->pid, getuid()))
		return fd;
	*diag = (struct diag){ 0 }; /* the same in better words */
	return reason_set(diag, fd, REASON_NAMES_ONLY);
}
