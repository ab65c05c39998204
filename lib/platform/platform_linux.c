/*
 * Linux: all system calls of the pipe. Works with glibc and musl. Features of newer kernels
 * (membarrier 4.14, memfd 3.17, MADV_WIPEONFORK 4.14) have a fallback.
 */
#include "lib/platform/platform.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define HUGE_PAGE     ((uintptr_t)2 << 20)
#define POPULATED_MAX (UINT64_C(256) << 20)
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t platform_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t platform_utc_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

/* A small file of /proc or /sys; the bytes read, or 0. */
static size_t read_small(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0)
		return 0;
	while (len < size) {
		ssize_t n = read(fd, out + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	close(fd);
	return len;
}

bool platform_counter_is_clock(void)
{
#if defined(__x86_64__)
	char name[16];
	size_t len = read_small("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		name, sizeof(name));

	return len >= 4 && memcmp(name, "tsc\n", 4) == 0;
#elif defined(__aarch64__)
	char name[24];
	size_t len = read_small("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		name, sizeof(name));

	return len >= 17 && memcmp(name, "arch_sys_counter\n", 17) == 0;
#else
	return false;
#endif
}

void platform_random(uint8_t *bytes, size_t size)
{
	if (getrandom(bytes, size, GRND_NONBLOCK) == (ssize_t)size)
		return;
	/*
	 * Early in the boot the system has no random bytes yet. Then the result only has to differ
	 * between processes.
	 */
	uint64_t seed = (uint64_t)getpid() << 32 ^ platform_now_ns();
	for (size_t i = 0; i < size; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(seed >> 56);
	}
}

void platform_sleep_ns(uint64_t ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u) };

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* ---- Threads ---- */

uint64_t platform_thread_id(void)
{
	return (uint64_t)syscall(SYS_gettid);
}

uint64_t platform_process_id(void)
{
	return (uint64_t)getpid();
}

bool platform_thread_alive(uint64_t thread_id)
{
	return syscall(SYS_tgkill, getpid(), (pid_t)thread_id, 0) == 0 || errno != ESRCH;
}

int platform_cpu_count(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 0 ? (int)count : 1;
}

static bool hex_digit(char c, uintptr_t *value)
{
	unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
			 : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
						: 16;

	if (digit > 15)
		return false;
	*value = *value << 4 | digit;
	return true;
}

/*
 * Lines of /proc/self/maps begin with "LOW-HIGH rwxp". Only that part of a line is read, so no line
 * is too long.
 */
bool platform_memory_around(uintptr_t address, uintptr_t *ret_low, uintptr_t *ret_high)
{
	int before = errno;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	enum { LOW, HIGH, RIGHTS, REST } at = LOW;
	uintptr_t low = 0;
	uintptr_t high = 0;
	bool found = false;
	char buffer[1024];
	ssize_t n;

	while (fd >= 0 && !found &&
		((n = read(fd, buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR))) {
		for (ssize_t i = 0; i < n && !found; i++) {
			char c = buffer[i];
			if (c == '\n') {
				at = LOW;
				low = high = 0;
			} else if (at == LOW && !hex_digit(c, &low)) {
				at = HIGH;
			} else if (at == HIGH && !hex_digit(c, &high)) {
				at = RIGHTS;
			} else if (at == RIGHTS) {
				found = c == 'r' && address >= low && address < high;
				at = REST;
			}
		}
	}
	if (fd >= 0)
		close(fd);
	errno = before;
	if (!found)
		return false;
	*ret_low = low;
	*ret_high = high;
	return true;
}

bool platform_signal_stack(uintptr_t *ret_low, uintptr_t *ret_high)
{
	stack_t stack;

	if (sigaltstack(NULL, &stack) || (stack.ss_flags & SS_DISABLE))
		return false;
	*ret_low = (uintptr_t)stack.ss_sp;
	*ret_high = *ret_low + stack.ss_size;
	return true;
}

bool platform_barrier_everywhere(void)
{
	/*
	 * Registering is idempotent, and a child of fork() may not inherit it. So the process
	 * registers when the barrier is refused.
	 */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
		return true;
	if (errno == EPERM &&
		syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0)
		return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
	return false;
}

void platform_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec timeout = { .tv_sec = (time_t)(timeout_ns / 1000000000u),
		.tv_nsec = (long)(timeout_ns % 1000000000u) };
	int before = errno;

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &timeout, NULL, 0);
	errno = before;
}

void platform_wake_all(const uint32_t *word)
{
	int before = errno;

	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	errno = before;
}

void platform_signals_block(struct platform_signals *ret_before)
{
	sigset_t all;

	_Static_assert(sizeof(sigset_t) <= sizeof(*ret_before),
		"the signal mask of this libc fits");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, (sigset_t *)(void *)ret_before);
}

void platform_signals_restore(const struct platform_signals *before)
{
	pthread_sigmask(SIG_SETMASK, (const sigset_t *)(const void *)before, NULL);
}

void platform_thread_name(const char *name)
{
	prctl(PR_SET_NAME, name, 0, 0, 0);
}

static bool raise_threads; /* atomic */

void platform_raise_threads(bool raised)
{
	__atomic_store_n(&raise_threads, raised, __ATOMIC_RELAXED);
}

void platform_thread_raise(void)
{
	/* struct sched_attr, which the headers of older libraries lack. */
	const struct {
		uint32_t size;
		uint32_t policy; /* 0: SCHED_OTHER */
		uint64_t flags;  /* 1: SCHED_FLAG_RESET_ON_FORK */
		int32_t nice;
		uint32_t priority;
		uint64_t runtime_ns, deadline_ns, period_ns;
	} attributes = { .size = sizeof(attributes), .flags = 1, .nice = -10 };

	if (__atomic_load_n(&raise_threads, __ATOMIC_RELAXED))
		(void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/* ---- Memory ---- */

void *platform_map_private(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
#ifdef MADV_WIPEONFORK
	/* an older kernel: a child that is not made by fork() reads the parent's values */
	(void)madvise(memory, size, MADV_WIPEONFORK);
#endif
	return memory;
}

void platform_populate(void *memory, size_t size)
{
	int before = errno;

	(void)madvise(memory, size, MADV_POPULATE_WRITE);
	errno = before;
}

/* Private memory of `size` bytes whose begin is aligned to a huge page if it has two. */
static char *map_aligned(size_t size, int protection)
{
	size_t more = size >= 2 * HUGE_PAGE ? HUGE_PAGE : 0;
	char *memory = mmap(NULL, size + more, protection,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	size_t before =
		more ? (HUGE_PAGE - ((uintptr_t)memory & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1) : 0;
	if (before)
		munmap(memory, before);
	if (before < more)
		munmap(memory + before + size, more - before);
	return memory + before;
}

void platform_prefer_huge(void *memory, size_t size)
{
	int before = errno;

#ifdef MADV_HUGEPAGE
	(void)madvise(memory, size, MADV_HUGEPAGE);
#else
	(void)memory;
	(void)size;
#endif
	errno = before;
}

void *platform_map_large(size_t size)
{
	char *memory = map_aligned(size, PROT_READ | PROT_WRITE);

	if (!memory)
		return NULL;
	if (size >= 2 * HUGE_PAGE)
		platform_prefer_huge(memory, size);
	/*
	 * More than 256 MiB, a kernel before 5.14, or a memory limit: pages are allocated when they
	 * are touched.
	 */
	if (size <= POPULATED_MAX)
		platform_populate(memory, size);
	return memory;
}

/*
 * Without a file: shared anonymous memory, which mremap() with an old size of 0 maps a second time.
 * This needs no fd and is not subject to the program's limit on file sizes (RLIMIT_FSIZE, which
 * kills by a signal).
 */
void *platform_map_twice(int fd, uint64_t offset, size_t size)
{
	int flags = MAP_SHARED | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0);
	char *memory = map_aligned(2 * size, PROT_NONE);
	void *second;

	if (!memory)
		return NULL;
	if (mmap(memory, size, PROT_READ | PROT_WRITE, flags, fd, fd < 0 ? 0 : (off_t)offset) ==
		MAP_FAILED) {
		munmap(memory, 2 * size);
		return NULL;
	}
	if (fd < 0)
		second = mremap(memory, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, memory + size);
	else
		second =
			mmap(memory + size, size, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
	if (second == MAP_FAILED) {
		munmap(memory, 2 * size);
		return NULL;
	}
	(void)madvise(memory, 2 * size, MADV_DONTFORK);
	return memory;
}

int platform_file_grow(int fd, uint64_t size)
{
	struct rlimit limit;
	struct stat facts;

	/* ftruncate() beyond this limit would kill the program. */
	if (getrlimit(RLIMIT_FSIZE, &limit) ||
		(limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size))
		return -EFBIG;
	/* Two threads may extend the file at the same time: its size never shrinks. */
	while (fstat(fd, &facts) == 0 && (uint64_t)facts.st_size < size)
		if (ftruncate(fd, (off_t)size))
			return -errno;
	return 0;
}

void *platform_map_file(int fd, uint64_t offset, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);

	if (memory == MAP_FAILED)
		return NULL;
	(void)madvise(memory, size, MADV_DONTFORK);
	return memory;
}

void platform_unmap(void *memory, size_t size)
{
	if (memory)
		munmap(memory, size);
}

void platform_release(void *memory, size_t size)
{
	(void)madvise(memory, size, MADV_REMOVE);
}

int platform_memory_file(const char *name)
{
	int fd = (int)syscall(SYS_memfd_create, name, 1u /* MFD_CLOEXEC */);

	return fd < 0 ? -errno : fd;
}

size_t platform_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- Other ---- */

int platform_wake_fds(int ret_fds[2])
{
	int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	ret_fds[0] = ret_fds[1] = fd;
	return 0;
}

void platform_close(int fd)
{
	if (fd >= 0)
		close(fd);
}

void platform_command_line(char *out, size_t size)
{
	size_t len = read_small("/proc/self/cmdline", out, size - 1);

	while (len && !out[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!out[i])
			out[i] = ' ';
	out[len] = 0;
}

void platform_os_name(char *out, size_t size)
{
	struct utsname name;

	if (uname(&name))
		memset(&name, 0, sizeof(name));
	snprintf(out, size, "%s %s", name.sysname, name.release);
}

const char *platform_architecture(void)
{
#if defined(__x86_64__)
	return "x64";
#elif defined(__aarch64__)
	return "arm64";
#elif defined(__i386__)
	return "x86";
#elif defined(__arm__)
	return "arm";
#else
	return "unknown";
#endif
}

bool platform_is_secure(void)
{
	return getauxval(AT_SECURE) != 0;
}
