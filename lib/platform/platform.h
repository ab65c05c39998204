/*
 * What the library needs of the system beyond C and POSIX threads. One file a system implements it (platform_linux.c); everything else in lib/ that
 * works on memory alone builds anywhere.
 *
 * Functions that may run on the firing path say so: those neither allocate nor lock, and are safe in signal handlers.
 */
#ifndef SPOOR_LIB_PLATFORM_PLATFORM_H
#define SPOOR_LIB_PLATFORM_PLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/platform/ticks.h"

/* ---- Time ---- */

uint64_t platform_now_ns(void); /* CLOCK_MONOTONIC; firing path */
uint64_t platform_utc_ns(void); /* since 1970 */
bool platform_counter_is_clock(void); /* the kernel keeps time with the counter of ticks_read() */
void platform_sleep_ns(uint64_t ns);

/* ---- Threads ---- */

uint64_t platform_thread_id(void);   /* as the kernel knows it; firing path (one system call) */
uint64_t platform_process_id(void);
bool platform_thread_alive(uint64_t thread_id); /* of this process */
int platform_cpu_count(void);

/* The readable memory around `address` (a stack); false when it cannot be found. Some 50 us, but safe in signal handlers. */
bool platform_memory_around(uintptr_t address, uintptr_t *ret_low, uintptr_t *ret_high);

/*
 * After it returns true, every other thread of the process has passed a full memory barrier since the call. False: this kernel has nothing of the kind
 * (the caller waits instead).
 */
bool platform_barrier_everywhere(void);

/* Waits while *word is `expected`, at most timeout_ns. Both are safe in signal handlers. */
void platform_wait(const uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void platform_wake_all(const uint32_t *word);

/* Blocks all signals of the calling thread / puts them back; firing path (setting up a thread). */
struct platform_signals {
	uint64_t words[16];
};
void platform_signals_block(struct platform_signals *ret_before);
void platform_signals_restore(const struct platform_signals *before);

/* Sets the name of the calling thread. */
void platform_thread_name(const char *name);

/* ---- Memory ---- */

/* Memory that a fork()ed child finds zeroed (private_), or shared with a file. NULL when there is none. Firing path: setting up a thread. */
void *platform_map_private(size_t size);

/* Memory that will be written again and again: there from the start (up to 256 MiB), in huge pages where the system has them. NULL when there is none. */
void *platform_map_large(size_t size);

/*
 * `size` bytes of the file at `offset`, twice, one behind the other; a child of fork() does not have it. fd -1: of no
 * file. NULL when there is none. Firing path: setting up a thread.
 */
void *platform_map_twice(int fd, uint64_t offset, size_t size);
void *platform_map_file(int fd, uint64_t offset, size_t size); /* once */
int platform_file_grow(int fd, uint64_t size); /* firing path: setting up a thread */
void platform_unmap(void *memory, size_t size);
void platform_release(void *memory, size_t size); /* of platform_map_twice(): contents are gone, memory goes back */
int platform_memory_file(const char *name); /* a memfd, CLOEXEC; negative errno */
size_t platform_page_size(void);

/* ---- The rest ---- */

/* Fills `bytes` with random bytes of the system. Never blocks: before the system has any, the bytes only differ between processes. */
void platform_random(uint8_t *bytes, size_t size);

/* Two fds, non-blocking and CLOEXEC; what is written to the second wakes the first. They may be the same. */
int platform_wake_fds(int ret_fds[2]);
void platform_close(int fd);

/* Text about the process and system for a ProcessInfo event. Each is cut to `size`. */
void platform_command_line(char *out, size_t size);
void platform_os_name(char *out, size_t size);
const char *platform_architecture(void); /* "x64", "arm64", ... as .NET says it */

/* Is this program run with rights its user does not have (AT_SECURE)? Then the environment is not to be believed. */
bool platform_is_secure(void);

#endif
