/*
 * What the library needs of the system beyond C and POSIX threads. Each system has one
 * implementation (platform_linux.c); the rest of lib/ that works on memory alone is portable.
 *
 * "Firing path" marks functions that are called while an event is fired: they neither allocate nor
 * lock, and are safe in signal handlers. All functions may be called from any thread.
 */
#ifndef SPOOR_LIB_PLATFORM_PLATFORM_H
#define SPOOR_LIB_PLATFORM_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/platform/ticks.h"

/* ---- Time ---- */

uint64_t platform_now_ns(void);       /* CLOCK_MONOTONIC; firing path */
uint64_t platform_utc_ns(void);       /* CLOCK_REALTIME */
bool platform_counter_is_clock(void); /* the kernel keeps time with the counter of ticks_read() */
void platform_sleep_ns(uint64_t ns);

/* ---- Threads ---- */

uint64_t platform_thread_id(void); /* the kernel's id; firing path (one system call) */
uint64_t platform_process_id(void);
bool platform_thread_alive(uint64_t thread_id); /* a thread of this process */
int platform_cpu_count(void);

/*
 * The readable memory around `address` (a stack); false: not found. Takes some 50 us. Safe in
 * signal handlers.
 */
bool platform_memory_around(uintptr_t address, uintptr_t *ret_low, uintptr_t *ret_high);

/*
 * The bounds of the calling thread's alternate signal stack; false: it has none. Safe in signal
 * handlers.
 */
bool platform_signal_stack(uintptr_t *ret_low, uintptr_t *ret_high);

/*
 * When this returns true, every other thread of the process has executed a full memory barrier
 * since the call. False: the kernel has no such call, or a filter refuses it.
 */
bool platform_barrier_everywhere(void);

/* A full memory barrier of the calling thread; firing path. GCC's thread sanitizer has no fences. */
static inline void platform_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	uint32_t word = 0;
	__atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * platform_wait() waits while *word is `expected`, for at most timeout_ns; platform_wake_all() ends
 * the waits. Both are safe in signal handlers.
 */
void platform_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void platform_wake_all(const uint32_t *word);

/*
 * Blocks all signals of the calling thread, and restores the previous mask. Firing path, when a
 * thread is set up.
 */
struct platform_signals {
	uint64_t words[16];
};
void platform_signals_block(struct platform_signals *ret_before);
void platform_signals_restore(const struct platform_signals *before);

/* Sets the name of the calling thread. */
void platform_thread_name(const char *name);

/*
 * platform_thread_raise() gives the calling thread the nice value -10 if `raised` was true in the last
 * call of platform_raise_threads() and the system allows it; threads that it makes have the usual one.
 */
void platform_raise_threads(bool raised);
void platform_thread_raise(void);

/* ---- Memory ---- */

/*
 * Private memory that a child of fork() reads as zeroes. NULL: no memory. Firing path, when a
 * thread is set up.
 */
void *platform_map_private(size_t size);

/*
 * Memory that is reused many times: populated from the start (up to 256 MiB), in huge pages if the
 * system has them. NULL: no memory.
 */
void *platform_map_large(size_t size);

/*
 * Maps `size` bytes of the file at `offset` twice, at consecutive addresses; a child of fork() does
 * not have the mapping. fd -1: anonymous memory. NULL: no memory. Firing path, when a thread is set
 * up.
 */
void *platform_map_twice(int fd, uint64_t offset, size_t size);
/* maps it one time; the arguments and result of platform_map_twice() */
void *platform_map_file(int fd, uint64_t offset, size_t size);
int platform_file_grow(int fd, uint64_t size); /* firing path, when a thread is set up */
void platform_unmap(void *memory, size_t size);
/* allocates the pages of mapped memory, if the kernel can (5.14); firing path, as above */
void platform_populate(void *memory, size_t size);
/* asks for huge pages in memory of platform_map_twice(), if the system has them for such memory */
void platform_prefer_huge(void *memory, size_t size);
/* of platform_map_twice(): discards the content and returns the memory to the system */
void platform_release(void *memory, size_t size);
int platform_memory_file(const char *name); /* a memfd, CLOEXEC; negative errno */
size_t platform_page_size(void);

/* ---- Other ---- */

/*
 * Fills `bytes` with random bytes of the system. Never blocks: before the system has any, the bytes
 * only differ between processes.
 */
void platform_random(uint8_t *bytes, size_t size);

/*
 * Two non-blocking, close-on-exec fds; a write to the second makes the first readable. They may be
 * the same fd. 0 or a negative errno.
 */
int platform_wake_fds(int ret_fds[2]);
void platform_close(int fd);

/* Text for a ProcessInfo event, cut to `size`. */
void platform_command_line(char *out, size_t size);
void platform_os_name(char *out, size_t size);
const char *platform_architecture(void); /* "x64", "arm64", ...: the names that .NET uses */

/*
 * Does the program run with rights that its user does not have (AT_SECURE)? Then the environment is
 * not trusted.
 */
bool platform_is_secure(void);

#endif
