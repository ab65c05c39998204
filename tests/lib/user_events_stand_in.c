/*
 * With LD_PRELOAD: the kernel's user_events for a program, where the kernel has none. In the folder
 * USER_EVENTS_FOLDER, "enabled" has a line with a pattern for each tracepoint that a tool enables,
 * which may change at any time; "registered" gets a line for each registration and its end; and
 * "written" a line for each event: tracepoint, process, thread, and its bytes in hexadecimal.
 *
 * It refuses what the kernel refuses: sizes, bits, flags and addresses that are wrong, a word that
 * is registered twice, and events of tracepoints that are not enabled.
 *
 * With USER_EVENTS_UPROBES (user_events_uprobes.h) it has tracepoints that a recorder enables, instead of the file
 * "enabled"; descriptors of user_events_data that another process has opened are known by their file; and with
 * USER_EVENTS_WAIT a registration returns when a recorder has enabled the tracepoint.
 */
/* open() and open64() are two functions here. */
#undef _FILE_OFFSET_BITS
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "user_events_uprobes.h"

#define FILES_MAX       1024
#define TRACEPOINTS_MAX 4096
#define EVENT_MAX       (256u << 10)
#define DATA_PATH       "/sys/kernel/tracing/user_events_data"
#define WAIT_MS         100000
#define DESCRIPTION     " u8 eventheader_flags; u8 version; u16 id; u16 tag; u8 opcode; u8 level"

struct tracepoint {
	char name[256];
	uint32_t *word; /* NULL: not registered now */
	uint32_t enabled;
	uint8_t bit;
	int uprobe;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tracepoint tracepoints[TRACEPOINTS_MAX];
static uint32_t count; /* atomic */
static bool is_ours[FILES_MAX];
static pid_t watcher_pid;

static void path_of(char *out, size_t size, const char *name)
{
	const char *folder = getenv("USER_EVENTS_FOLDER");

	snprintf(out, size, "%s/%s", folder ? folder : ".", name);
}

static int plain_open(const char *path, int flags, unsigned mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* One system call, so that lines of several threads do not mix. */
static void append(const char *file, const char *line, size_t size)
{
	char path[512];

	path_of(path, sizeof(path), file);
	int fd = plain_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0 || syscall(SYS_write, fd, line, size) != (long)size)
		fprintf(stderr, "stand-in: cannot write %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		syscall(SYS_close, fd);
}

static bool is_enabled(const char *name)
{
	char path[512], text[8192], *at = text, *line;

	path_of(path, sizeof(path), "enabled");
	int fd = plain_open(path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		syscall(SYS_close, fd);
	text[size > 0 ? size : 0] = '\0';
	while ((line = strsep(&at, "\n")))
		if (*line && fnmatch(line, name, 0) == 0)
			return true;
	return false;
}

/* The lock is held. */
static void apply(struct tracepoint *each)
{
	uint32_t enabled =
		each->word &&
		(user_events_uprobes_exist() ? user_events_uprobe_is_enabled(each->uprobe)
					     : is_enabled(each->name));

	if (each->word)
		__atomic_store_n(each->word, enabled << each->bit, __ATOMIC_RELAXED);
	__atomic_store_n(&each->enabled, enabled, __ATOMIC_RELAXED);
}

static void *watch(void *context)
{
	(void)context;
	for (;;) {
		usleep(3000);
		pthread_mutex_lock(&lock);
		for (uint32_t i = 0; i < count; i++)
			apply(&tracepoints[i]);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void start_watching(void)
{
	pthread_t thread;

	if (watcher_pid == getpid())
		return;
	watcher_pid = getpid();
	if (pthread_create(&thread, NULL, watch, NULL) == 0)
		pthread_detach(thread);
}

struct __attribute__((packed)) registration {
	uint32_t size;
	uint8_t bit, word_size;
	uint16_t flags;
	uint64_t address, description;
	uint32_t index;
};

/* A program may know more members than the kernel, if they are 0. */
static int check_size(const void *request, uint32_t size, size_t known)
{
	const uint8_t *bytes = request;

	if (size < known)
		return EINVAL;
	for (size_t i = known; i < size; i++)
		if (size > 4096 || bytes[i])
			return E2BIG;
	return 0;
}

static int add(struct registration *request)
{
	const char *description = (const char *)(uintptr_t)request->description;
	size_t length = strcspn(description, " ");
	struct tracepoint *found = NULL;
	char line[400];

	int error = check_size(request, request->size, sizeof(*request));
	if (error)
		return error;
	if (request->flags || request->bit > 31 || request->word_size != 4 ||
		request->address % 4 || !length || length >= sizeof(found->name) ||
		(!user_events_uprobes_exist() && strcmp(description + length, DESCRIPTION) != 0))
		return EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		if ((uintptr_t)tracepoints[i].word == request->address)
			return EADDRINUSE;
		if (strncmp(tracepoints[i].name, description, length) == 0 &&
			!tracepoints[i].name[length])
			found = &tracepoints[i];
	}
	if (!found && count == TRACEPOINTS_MAX)
		return EMFILE;
	if (!found) {
		found = &tracepoints[count];
		memcpy(found->name, description, length);
		__atomic_store_n(&count, count + 1, __ATOMIC_RELEASE);
	} else if (found->word) {
		fprintf(stderr, "stand-in: %s has two words\n", found->name);
		return EINVAL;
	}
	found->uprobe = user_events_uprobes_exist() ? user_events_uprobe_make(description) : 0;
	if (found->uprobe < 0)
		return errno;
	found->bit = request->bit;
	found->word = (uint32_t *)(uintptr_t)request->address;
	request->index = (uint32_t)(found - tracepoints);
	apply(found);
	for (int ms = 0; getenv("USER_EVENTS_WAIT") && !found->enabled && ms < WAIT_MS; ms++) {
		usleep(1000);
		apply(found);
	}
	int size = snprintf(line, sizeof(line), "+ %s %d\n", found->name, (int)getpid());
	append("registered", line, (size_t)size);
	return 0;
}

struct __attribute__((packed)) end {
	uint32_t size;
	uint8_t bit, reserved;
	uint16_t reserved2;
	uint64_t address;
};

static int end(const struct end *request)
{
	char line[400];

	if (check_size(request, request->size, sizeof(*request)) || request->reserved ||
		request->reserved2)
		return EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		struct tracepoint *each = &tracepoints[i];
		if ((uintptr_t)each->word != request->address)
			continue;
		__atomic_store_n(each->word, 0, __ATOMIC_RELAXED);
		each->word = NULL;
		apply(each);
		int size = snprintf(line, sizeof(line), "- %s %d\n", each->name, (int)getpid());
		append("registered", line, (size_t)size);
		return 0;
	}
	return ENOENT;
}

/* ---- What the program calls ---- */

#pragma GCC visibility push(default)

static int any_open(const char *path, int flags, unsigned mode)
{
	char own[512];

	if (strcmp(path, DATA_PATH) != 0 || user_events_uprobes_exist())
		return plain_open(path, flags, mode);
	path_of(own, sizeof(own), "written");
	int fd = plain_open(own, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd >= 0 && fd < FILES_MAX)
		is_ours[fd] = true;
	return fd;
}

#define OPEN(name)                                      \
	int name(const char *path, int flags, ...)      \
	{                                               \
		va_list list;                           \
		va_start(list, flags);                  \
		unsigned mode = va_arg(list, unsigned); \
		va_end(list);                           \
		return any_open(path, flags, mode);     \
	}
OPEN(open)
OPEN(open64)

static bool is_own(int fd)
{
	struct stat status, data;

	if (user_events_uprobes_exist())
		return fstat(fd, &status) == 0 && stat(DATA_PATH, &data) == 0 &&
		       status.st_dev == data.st_dev && status.st_ino == data.st_ino;
	return fd >= 0 && fd < FILES_MAX && is_ours[fd];
}

int close(int fd)
{
	if (is_own(fd))
		is_ours[fd] = false;
	return (int)syscall(SYS_close, fd);
}

int ioctl(int fd, unsigned long request, ...)
{
	sigset_t all, before;
	va_list list;
	int error;

	va_start(list, request);
	void *argument = va_arg(list, void *);
	va_end(list);
	if (!is_own(fd))
		return (int)syscall(SYS_ioctl, fd, request, argument);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* _IOWR('*', 0, pointer), _IOW('*', 2, pointer) */
	if (request == 0xc0082a00u)
		start_watching();
	pthread_mutex_lock(&lock);
	error = request == 0xc0082a00u   ? add(argument)
		: request == 0x40082a02u ? end(argument)
					 : ENOTTY;
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		fprintf(stderr, "stand-in: request %#lx of %d is refused: %s\n", request,
			(int)getpid(), strerror(error));
	errno = error;
	return error ? -1 : 0;
}

/* Also in signal handlers: no lock. */
static int record(const struct iovec *parts, int part_count)
{
	static const char digits[] = "0123456789abcdef";
	uint32_t index;
	size_t size = 0, at = 0;

	for (int i = 0; i < part_count; i++)
		size += parts[i].iov_len;
	if (size < sizeof(index) + 8 || size > EVENT_MAX)
		return EINVAL;
	uint8_t *bytes = __builtin_alloca(size);
	for (int i = 0; i < part_count; at += parts[i++].iov_len)
		memcpy(bytes + at, parts[i].iov_base, parts[i].iov_len);
	memcpy(&index, bytes, sizeof(index));
	if (index >= __atomic_load_n(&count, __ATOMIC_ACQUIRE))
		return ENOENT;
	if (!__atomic_load_n(&tracepoints[index].enabled, __ATOMIC_RELAXED))
		return EBADF;
	char *line = __builtin_alloca(2 * size + 300);
	at = (size_t)sprintf(line, "%s %d %ld ", tracepoints[index].name, (int)getpid(),
		syscall(SYS_gettid));
	for (size_t i = sizeof(index); i < size; i++) {
		line[at++] = digits[bytes[i] >> 4];
		line[at++] = digits[bytes[i] & 15];
	}
	line[at++] = '\n';
	append("written", line, at);
	if (user_events_uprobes_exist())
		user_events_uprobe_fire(tracepoints[index].uprobe, bytes + sizeof(index),
			size - sizeof(index));
	return 0;
}

ssize_t writev(int fd, const struct iovec *parts, int part_count)
{
	if (!is_own(fd))
		return syscall(SYS_writev, fd, parts, part_count);
	int error = record(parts, part_count);
	size_t size = 0;
	for (int i = 0; i < part_count; i++)
		size += parts[i].iov_len;
	errno = error ? error : errno;
	return error ? -1 : (ssize_t)size;
}

static void in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, in_child);
}
