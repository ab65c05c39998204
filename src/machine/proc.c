/*
 * Reads /proc without stdio: one buffer, one open, and as few reads a file as the kernel allows,
 * because every recording scans the whole machine. The parsers trust nothing: a process chooses its
 * comm, its arguments and the names of its files.
 */
#include "machine/proc.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/map.h"
#include "machine/kernel_file.h"

#define PATH_ROOM     64u         /* "4194304/task/4194304/status" */
#define FLAG_KTHREAD  0x00200000u /* PF_KTHREAD of stat's flags */
#define LIST_MAX      (1u << 22)  /* PID_MAX_LIMIT */
#define NS_PER_SECOND 1000000000ull

/* PROCMAP_QUERY, which Debian 12's headers lack. In: address and name buffer. Out: one mapping. */
struct map_query {
	uint64_t size;
	uint64_t flags;
	uint64_t address;
	uint64_t begin;
	uint64_t end;
	uint64_t vma_flags;
	uint64_t page_size;
	uint64_t file_offset;
	uint64_t inode;
	uint32_t device_major;
	uint32_t device_minor;
	uint32_t name_size; /* with its NUL; 0: the mapping has no name */
	uint32_t build_id_size;
	uint64_t name;
	uint64_t build_id;
};

static_assert(sizeof(struct map_query) == 104, "the kernel's layout");

#define MAP_QUERY            _IOWR('f', 17, struct map_query)
#define MAP_QUERY_READABLE   0x01u
#define MAP_QUERY_WRITABLE   0x02u
#define MAP_QUERY_EXECUTABLE 0x04u
#define MAP_QUERY_SHARED     0x08u
#define MAP_QUERY_OR_NEXT    0x10u

/* Scanning */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* A decimal number at *at, which moves past it. False if there is none or it does not fit. */
static bool scan_u64(const char **at, const char *end, uint64_t *ret_value)
{
	const char *p = *at;
	uint64_t value = 0;

	if (p == end || !is_digit(*p))
		return false;
	for (; p < end && is_digit(*p); p++) {
		uint64_t digit = (uint64_t)(*p - '0');
		if (value > (UINT64_MAX - digit) / 10)
			return false;
		value = value * 10 + digit;
	}
	*at = p;
	*ret_value = value;
	return true;
}

static bool scan_hex(const char **at, const char *end, uint64_t *ret_value)
{
	const char *p = *at;
	uint64_t value = 0;

	for (; p < end; p++) {
		unsigned digit;
		if (is_digit(*p))
			digit = (unsigned)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (unsigned)(*p - 'a') + 10;
		else
			break;
		if (value >> 60)
			return false;
		value = value << 4 | digit;
	}
	if (p == *at)
		return false;
	*at = p;
	*ret_value = value;
	return true;
}

static bool scan_char(const char **at, const char *end, char c)
{
	if (*at == end || **at != c)
		return false;
	(*at)++;
	return true;
}

static void scan_blanks(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		(*at)++;
}

static char *put_text(char *at, const char *text)
{
	size_t len = strlen(text);

	memcpy(at, text, len);
	return at + len;
}

static char *put_number(char *at, uint32_t value)
{
	char digits[10];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		*at++ = digits[--n];
	return at;
}

/* "PID/file", or "PID/task/TID/file" when `tid` is not 0. */
static void make_path(char path[PATH_ROOM], uint32_t pid, uint32_t tid, const char *file)
{
	char *at = put_number(path, pid);

	if (tid)
		at = put_number(put_text(at, "/task/"), tid);
	*at++ = '/';
	*put_text(at, file) = 0;
}

/* The parsers */

size_t proc_strip_deleted(const char *path, size_t len, bool *ret_deleted)
{
	static const char tail[] = " (deleted)";
	size_t tail_len = sizeof(tail) - 1;

	*ret_deleted = len > tail_len && !memcmp(path + len - tail_len, tail, tail_len);
	return *ret_deleted ? len - tail_len : len;
}

static void copy_comm(char comm[PROC_COMM_MAX], const char *text, size_t len)
{
	if (len > PROC_COMM_MAX - 1)
		len = PROC_COMM_MAX - 1;
	memcpy(comm, text, len);
	comm[len] = 0;
}

bool proc_parse_stat(const char *text, size_t len, struct proc_process *ret_process)
{
	const char *at = text;
	const char *end = text + len;
	struct proc_process process = { 0 };
	uint64_t value[25] = { 0 }; /* by the field numbers of proc(5) */

	if (!scan_u64(&at, end, &value[1]) || value[1] > UINT32_MAX)
		return false;
	/* The name may contain blanks and parentheses: it ends at the last one. */
	const char *open = memchr(at, '(', (size_t)(end - at));
	const char *shut = open ? memrchr(open, ')', (size_t)(end - open)) : NULL;
	if (!shut)
		return false;
	copy_comm(process.comm, open + 1, (size_t)(shut - open - 1));
	at = shut + 1;
	scan_blanks(&at, end);
	if (at == end)
		return false;
	process.state = *at++;
	for (unsigned field = 4; field <= 24; field++) {
		scan_blanks(&at, end);
		bool negative = scan_char(&at, end, '-');
		if (!scan_u64(&at, end, &value[field]))
			return false;
		if (negative)
			value[field] = 0; /* tty and tpgid are -1 if there is none */
	}
	if (value[4] > UINT32_MAX || value[20] > UINT32_MAX)
		return false;
	process.pid = (uint32_t)value[1];
	process.parent_pid = (uint32_t)value[4];
	process.inner_pid = process.pid;
	process.kernel_thread = value[9] & FLAG_KTHREAD;
	process.thread_count = (uint32_t)value[20];
	process.start_ticks = value[22];
	process.resident_bytes = value[24]; /* in pages; proc_read() converts them */
	*ret_process = process;
	return true;
}

/* The value of a line "Key:\tvalue"; NULL if it has another key. */
static const char *line_value(const char *line, const char *end, const char *key)
{
	size_t len = strlen(key);

	if ((size_t)(end - line) < len || memcmp(line, key, len))
		return NULL;
	line += len;
	scan_blanks(&line, end);
	return line;
}

static bool last_number(const char *at, const char *end, uint32_t *ret_value)
{
	uint64_t value;
	bool found = false;

	while (scan_u64(&at, end, &value)) {
		if (value > UINT32_MAX)
			return false;
		*ret_value = (uint32_t)value;
		found = true;
		scan_blanks(&at, end);
	}
	return found;
}

/* The second of the four ids: the effective one. */
static void second_number(const char *at, const char *end, uint32_t *value)
{
	uint64_t real, effective;

	if (!scan_u64(&at, end, &real))
		return;
	scan_blanks(&at, end);
	if (scan_u64(&at, end, &effective) && effective <= UINT32_MAX)
		*value = (uint32_t)effective;
}

/* status shows a newline in a name as \n and a backslash as \\. */
static void unescape_comm(char comm[PROC_COMM_MAX], const char *at, const char *end)
{
	size_t len = 0;

	while (at < end && len < PROC_COMM_MAX - 1) {
		char c = *at++;
		if (c == '\\' && at < end && (*at == 'n' || *at == '\\'))
			c = *at++ == 'n' ? '\n' : '\\';
		comm[len++] = c;
	}
	comm[len] = 0;
}

/* Walks the lines of a status file; `comm` may be NULL. */
static void parse_status(const char *text, size_t len, struct proc_process *process, char *comm)
{
	const char *end = text + len;

	for (const char *line = text; line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *stop = newline ? newline : end;
		const char *value;
		if (comm && (value = line_value(line, stop, "Name:"))) {
			unescape_comm(comm, value, stop);
		} else if ((value = line_value(line, stop, "Uid:"))) {
			second_number(value, stop, &process->uid);
		} else if ((value = line_value(line, stop, "Gid:"))) {
			second_number(value, stop, &process->gid);
		} else if ((value = line_value(line, stop, "NSpid:"))) {
			/* if it is missing: unchanged */
			(void)last_number(value, stop, &process->inner_pid);
			return; /* all values that we need have been read */
		}
		line = stop + 1;
	}
}

void proc_parse_status(const char *text, size_t len, struct proc_process *process)
{
	parse_status(text, len, process, NULL);
}

/* maps escapes a newline in a path as \012 and nothing else: a backslash is not escaped. */
static size_t unescape_path(char *path, size_t len)
{
	size_t out = 0;

	if (!memchr(path, '\\', len))
		return len;
	for (size_t i = 0; i < len; i++) {
		if (len - i >= 4 && !memcmp(path + i, "\\012", 4)) {
			path[out++] = '\n';
			i += 3;
		} else {
			path[out++] = path[i];
		}
	}
	return out;
}

bool proc_parse_mapping(char *line, size_t len, struct proc_mapping *ret_mapping)
{
	const char *at = line;
	const char *end = line + len;
	struct proc_mapping mapping = { 0 };
	uint64_t major, minor;

	if (!scan_hex(&at, end, &mapping.begin) || !scan_char(&at, end, '-') ||
		!scan_hex(&at, end, &mapping.end) || !scan_char(&at, end, ' ') || end - at < 5)
		return false;
	mapping.readable = at[0] == 'r';
	mapping.writable = at[1] == 'w';
	mapping.executable = at[2] == 'x';
	mapping.shared = at[3] == 's';
	at += 4;
	if (!scan_char(&at, end, ' ') || !scan_hex(&at, end, &mapping.file_offset) ||
		!scan_char(&at, end, ' ') || !scan_hex(&at, end, &major) ||
		!scan_char(&at, end, ':') || !scan_hex(&at, end, &minor) ||
		!scan_char(&at, end, ' ') || !scan_u64(&at, end, &mapping.inode))
		return false;
	if (mapping.begin >= mapping.end || major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	mapping.device_major = (uint32_t)major;
	mapping.device_minor = (uint32_t)minor;
	/* One blank ends the inode, and more pad to a column. */
	scan_blanks(&at, end);
	char *path = line + (at - line);
	size_t path_len = unescape_path(path, (size_t)(end - at));
	path_len = proc_strip_deleted(path, path_len, &mapping.deleted);
	path[path_len] = 0;
	mapping.path = path;
	mapping.path_len = path_len;
	*ret_mapping = mapping;
	return true;
}

const char *proc_parse_cgroup(const char *text, size_t len, size_t *ret_len)
{
	const char *end = text + len;
	const char *best = NULL;
	size_t best_len = 0;

	*ret_len = 0;
	for (const char *line = text; line < end;) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *stop = newline ? newline : end;
		const char *first = memchr(line, ':', (size_t)(stop - line));
		const char *second =
			first ? memchr(first + 1, ':', (size_t)(stop - first - 1)) : NULL;
		if (second) {
			const char *path = second + 1;
			size_t path_len = (size_t)(stop - path);
			bool unified = second == first + 1 && first == line + 1 && *line == '0';
			if (!best || path_len > best_len || (unified && path_len > 1)) {
				best = path;
				best_len = path_len;
			}
			/* On a hybrid machine the unified group may be "/", which tells nothing. */
			if (unified && path_len > 1)
				break;
		}
		line = stop + 1;
	}
	*ret_len = best_len;
	return best;
}

bool container_id_from_cgroup(const char *path, size_t len, char ret_id[CONTAINER_ID_ROOM])
{
	const size_t digits = CONTAINER_ID_ROOM - 1;
	size_t run = 0;

	for (size_t i = len; i > 0; i--) {
		char c = path[i - 1];
		bool hex = is_digit(c) || (c >= 'a' && c <= 'f');
		run = hex ? run + 1 : 0;
		bool begins = i == 1 || !(is_digit(path[i - 2]) ||
						(path[i - 2] >= 'a' && path[i - 2] <= 'f'));
		if (run == digits && begins) {
			memcpy(ret_id, path + i - 1, digits);
			ret_id[digits] = 0;
			return true;
		}
	}
	return false;
}

/* The files */

int proc_open(struct proc_reader *proc, struct diag *diag)
{
	long ticks = sysconf(_SC_CLK_TCK);

	*proc = (struct proc_reader){ .fd = -1 };
	/* One byte for the NUL, after the largest size that is read. */
	proc->buffer = malloc(PROC_TEXT_MAX + 1);
	if (!proc->buffer)
		return diag_set(diag, -ENOMEM, "no memory to read /proc with");
	proc->capacity = PROC_TEXT_MAX + 1;
	proc->fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc->fd < 0) {
		int error = -errno;
		proc_close(proc);
		return diag_set(diag, error, "cannot open /proc: %m");
	}
	proc->tick_ns = NS_PER_SECOND / (uint64_t)(ticks > 0 ? ticks : 100);
	proc->boot_offset_ns = (int64_t)(clock_ns(CLOCK_BOOTTIME) - clock_monotonic_ns());
	return 0;
}

void proc_close(struct proc_reader *proc)
{
	closep(&proc->fd);
	free(proc->buffer);
	*proc = (struct proc_reader){ .fd = -1 };
}

/* The numeric names in a folder. */
static int list_numbers(int folder, const char *path, struct id_list *list)
{
	int fd = openat(folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	DIR *dir = fdopendir(fd);
	if (!dir) {
		int error = -errno;
		(void)close(fd); /* fdopendir() did not take it over */
		return error;
	}
	int r = 0;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(dir);
		if (!entry) {
			r = -errno;
			break;
		}
		const char *at = entry->d_name;
		const char *end = at + strlen(at);
		uint64_t id;
		if (!scan_u64(&at, end, &id) || at != end || id > UINT32_MAX || !id)
			continue;
		if (list->ids.count >= LIST_MAX || !vec_add(&list->ids, (uint32_t)id)) {
			r = -ENOMEM;
			break;
		}
	}
	(void)closedir(dir); /* only read */
	return r;
}

int proc_list(struct proc_reader *proc, struct id_list *list, struct diag *diag)
{
	int r = list_numbers(proc->fd, ".", list);

	return r < 0 ? diag_set(diag, r, "cannot list the processes in /proc: %m") : 0;
}

/* If a file of a process does not exist, the process does not exist. */
static int gone(int error)
{
	return error == -ENOENT ? -ESRCH : error;
}

int proc_list_threads(struct proc_reader *proc, uint32_t pid, struct id_list *list)
{
	char path[PATH_ROOM];

	make_path(path, pid, 0, "task");
	return gone(list_numbers(proc->fd, path, list));
}

/* One read: for files that the kernel returns in one piece. */
static ssize_t read_once(struct proc_reader *proc, uint32_t pid, uint32_t tid, const char *file)
{
	char path[PATH_ROOM];

	make_path(path, pid, tid, file);
	cleanup(closep) int fd = openat(proc->fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gone(-errno);
	ssize_t n = read(fd, proc->buffer, proc->capacity - 1);
	if (n < 0)
		return gone(-errno);
	return n;
}

static ssize_t read_whole(struct proc_reader *proc, uint32_t pid, const char *file)
{
	char path[PATH_ROOM];

	make_path(path, pid, 0, file);
	ssize_t n = kernel_file_read(proc->fd, path, (char *)proc->buffer, proc->capacity);
	return n < 0 ? gone((int)n) : n;
}

int proc_read(struct proc_reader *proc, uint32_t pid, struct proc_process *ret_process)
{
	struct proc_process process;

	ssize_t n = read_once(proc, pid, 0, "stat");
	if (n < 0)
		return (int)n;
	if (!proc_parse_stat((const char *)proc->buffer, (size_t)n, &process))
		return n ? -EBADMSG : -ESRCH;
	/* Kernel threads, most of all processes, are root's, in the initial namespaces. */
	if (!process.kernel_thread) {
		n = read_once(proc, pid, 0, "status");
		if (n < 0)
			return (int)n;
		proc_parse_status((const char *)proc->buffer, (size_t)n, &process);
	}

	int64_t start = (int64_t)(process.start_ticks * proc->tick_ns) - proc->boot_offset_ns;
	process.start_ns = start > 0 ? (uint64_t)start : 0;
	process.resident_bytes *= (uint64_t)sysconf(_SC_PAGESIZE);
	*ret_process = process;
	return 0;
}

int proc_read_thread(struct proc_reader *proc, uint32_t pid, uint32_t tid,
	struct proc_thread *ret_thread)
{
	struct proc_process facts = { .inner_pid = tid };

	ssize_t n = read_once(proc, pid, tid, "status");
	if (n < 0)
		return (int)n;
	ret_thread->comm[0] = 0;
	parse_status((const char *)proc->buffer, (size_t)n, &facts, ret_thread->comm);
	ret_thread->tid = tid;
	ret_thread->inner_tid = facts.inner_pid;
	return 0;
}

int proc_read_thread_owner(struct proc_reader *proc, uint32_t tid, uint32_t *ret_pid)
{
	/* /proc lists processes only, but also opens threads */
	ssize_t n = read_once(proc, tid, 0, "status");

	if (n < 0)
		return (int)n;
	const char *line = (const char *)proc->buffer;
	const char *end = line + n;

	while (line < end) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *stop = newline ? newline : end;
		const char *value = line_value(line, stop, "Tgid:");
		if (value)
			return last_number(value, stop, ret_pid) ? 0 : -EBADMSG;
		line = stop + 1;
	}
	return -EBADMSG;
}

int proc_read_exe(struct proc_reader *proc, uint32_t pid, const char **ret_path, size_t *ret_len)
{
	char path[PATH_ROOM];
	bool deleted;

	make_path(path, pid, 0, "exe");
	ssize_t n = readlinkat(proc->fd, path, (char *)proc->buffer, proc->capacity - 1);
	if (n < 0)
		return -errno;
	*ret_len = proc_strip_deleted((const char *)proc->buffer, (size_t)n, &deleted);
	proc->buffer[*ret_len] = 0;
	*ret_path = (const char *)proc->buffer;
	return 0;
}

int proc_read_arguments(struct proc_reader *proc, uint32_t pid, const char **ret_args,
	size_t *ret_len)
{
	ssize_t n = read_whole(proc, pid, "cmdline");

	if (n < 0)
		return (int)n;
	*ret_args = (const char *)proc->buffer;
	*ret_len = (size_t)n;
	return 0;
}

int proc_read_variable(struct proc_reader *proc, uint32_t pid, const char *name,
	const char **ret_value, size_t *ret_len)
{
	ssize_t n = read_whole(proc, pid, "environ");
	size_t name_len = strlen(name);

	if (n < 0)
		return (int)n;
	const char *end = (const char *)proc->buffer + n;
	for (const char *at = (const char *)proc->buffer; at < end;) {
		size_t len = strnlen(at, (size_t)(end - at));
		if (len > name_len && at[name_len] == '=' && !memcmp(at, name, name_len)) {
			*ret_value = at + name_len + 1;
			*ret_len = len - name_len - 1;
			return 0;
		}
		at += len + 1;
	}
	return -ENOENT;
}

int proc_read_cgroup(struct proc_reader *proc, uint32_t pid, const char **ret_path, size_t *ret_len,
	uint64_t *ret_hash)
{
	ssize_t n = read_whole(proc, pid, "cgroup");

	if (n < 0)
		return (int)n;
	const char *path = proc_parse_cgroup((const char *)proc->buffer, (size_t)n, ret_len);
	if (!path)
		return -ENOENT;
	*ret_path = path;
	if (ret_hash)
		*ret_hash = hash_bytes(proc->buffer, (size_t)n);
	((uint8_t *)proc->buffer)[(size_t)(path - (const char *)proc->buffer) + *ret_len] = 0;
	return 0;
}

int proc_read_namespaces(struct proc_reader *proc, uint32_t pid, uint64_t *ret_pid_namespace,
	uint64_t *ret_mount_namespace)
{
	char path[PATH_ROOM];
	struct stat pid_stat, mount_stat;

	make_path(path, pid, 0, "ns/pid");
	if (fstatat(proc->fd, path, &pid_stat, 0) < 0)
		return gone(-errno);
	make_path(path, pid, 0, "ns/mnt");
	if (fstatat(proc->fd, path, &mount_stat, 0) < 0)
		return gone(-errno);
	*ret_pid_namespace = pid_stat.st_ino;
	*ret_mount_namespace = mount_stat.st_ino;
	return 0;
}

/* Is it an executable mapping? Checked before the line is parsed, because most mappings are not. */
static bool line_executable(const char *line, size_t len)
{
	const char *blank = memchr(line, ' ', len);

	return blank && len - (size_t)(blank - line) > 4 && blank[3] == 'x';
}

/* Emits the whole lines, and moves the remainder to the begin; *len becomes its length. */
static int walk_lines(struct proc_reader *proc, size_t *len, uint32_t *count, proc_mapping_fn *each,
	void *user)
{
	char *line = (char *)proc->buffer;
	char *end = line + *len;

	for (char *newline; (newline = memchr(line, '\n', (size_t)(end - line)));) {
		struct proc_mapping mapping;
		size_t line_len = (size_t)(newline - line);
		if (line_executable(line, line_len) &&
			proc_parse_mapping(line, line_len, &mapping)) {
			if (++*count > PROC_MAPPINGS_MAX)
				return -E2BIG;
			int r = each(user, &mapping);
			if (r)
				return r;
		}
		line = newline + 1;
	}
	*len = (size_t)(end - line);
	memmove(proc->buffer, line, *len);
	return 0;
}

/*
 * Queries executable mappings (Linux 6.11): the kernel need not print the others. -ENOTTY: too old.
 */
static int query_maps(struct proc_reader *proc, int fd, proc_mapping_fn *each, void *user)
{
	uint64_t from = 0;

	for (uint32_t count = 0;;) {
		struct map_query query = { .size = sizeof(query),
			.flags = MAP_QUERY_EXECUTABLE | MAP_QUERY_OR_NEXT,
			.address = from,
			.name_size = (uint32_t)proc->capacity,
			.name = (uintptr_t)proc->buffer };
		int r = ioctl(fd, MAP_QUERY, &query);
		if (r < 0 && errno == ENAMETOOLONG) { /* queried again without its name */
			query.name_size = 0;
			query.name = 0;
			r = ioctl(fd, MAP_QUERY, &query);
		}
		if (r < 0)
			return errno == ENOENT ? 0 : errno == ENOTTY ? -ENOTTY : gone(-errno);
		if (query.begin >= query.end || query.end <= from)
			return -EBADMSG;
		from = query.end;
		struct proc_mapping mapping = { .begin = query.begin,
			.end = query.end,
			.file_offset = query.file_offset,
			.inode = query.inode,
			.device_major = query.device_major,
			.device_minor = query.device_minor,
			.readable = query.vma_flags & MAP_QUERY_READABLE,
			.writable = query.vma_flags & MAP_QUERY_WRITABLE,
			.executable = true,
			.shared = query.vma_flags & MAP_QUERY_SHARED };
		size_t len = query.name_size && query.name_size <= proc->capacity
				     ? query.name_size - 1
				     : 0;
		len = proc_strip_deleted((const char *)proc->buffer, len, &mapping.deleted);
		proc->buffer[len] = 0;
		mapping.path = (const char *)proc->buffer;
		mapping.path_len = len;
		if (++count > PROC_MAPPINGS_MAX)
			return -E2BIG;
		r = each(user, &mapping);
		if (r)
			return r;
	}
}

int proc_read_maps(struct proc_reader *proc, uint32_t pid, proc_mapping_fn *each, void *user)
{
	char path[PATH_ROOM];
	size_t len = 0;
	uint32_t count = 0;

	make_path(path, pid, 0, "maps");
	cleanup(closep) int fd = openat(proc->fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return gone(-errno);
	if (!proc->maps_as_text) {
		int r = query_maps(proc, fd, each, user);
		if (r != -ENOTTY)
			return r;
		proc->maps_as_text = true;
	}
	for (;;) {
		if (len == proc->capacity - 1)
			return -EBADMSG; /* a line is never that long */
		ssize_t n = read(fd, proc->buffer + len, proc->capacity - 1 - len);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return gone(-errno);
		}
		if (n == 0)
			return 0;
		len += (size_t)n;
		int r = walk_lines(proc, &len, &count, each, user);
		if (r)
			return r;
	}
}

uint64_t proc_now_ticks(void)
{
	return clock_ns(CLOCK_BOOTTIME) / (NS_PER_SECOND / (uint64_t)sysconf(_SC_CLK_TCK));
}

int proc_alive(struct proc_reader *proc, uint32_t pid)
{
	struct proc_process process;

	ssize_t n = read_once(proc, pid, 0, "stat");
	if (n == -ESRCH || n == 0)
		return 0;
	if (n < 0)
		return (int)n;
	if (!proc_parse_stat((const char *)proc->buffer, (size_t)n, &process))
		return -EBADMSG;
	/* A main thread may end before the others: a zombie that still has threads is alive. */
	return !proc_state_has_ended(process.state) || process.thread_count > 1;
}
