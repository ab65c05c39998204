/*
 * What a thread of the .NET runtime is for, by the name that the runtime gives it. Of threads that
 * serve the program (thread pool, timers, sockets) the role is THREAD_OTHER, as of all others; only
 * analyses of waits set them apart, as THREAD_SERVICE.
 */
#ifndef SPOOR_ANALYSIS_THREAD_ROLE_H
#define SPOOR_ANALYSIS_THREAD_ROLE_H

#include <stdbool.h>

enum thread_role {
	THREAD_OTHER,
	THREAD_COLLECTOR, /* server and background garbage collection */
	THREAD_TIERED_COMPILATION,
	THREAD_FINALIZER,
	THREAD_SERVICE,    /* without a label: serves the program, and runs none of its code */
	THREAD_EVENT_PIPE, /* its sampler, the senders of its sessions, and the diagnostics server */
};

/* `name` as the kernel has it: at most 15 characters. */
enum thread_role thread_role_of(const char *name);

/*
 * Whether the runtime made the thread for itself: one with a role, or that serves the program without
 * running its code, such as ".NET Sockets"; not the workers of the thread pool.
 */
bool thread_role_is_own(const char *name);

/* "[garbage collector]"; "" for THREAD_OTHER */
const char *thread_role_label(enum thread_role role);

#endif
