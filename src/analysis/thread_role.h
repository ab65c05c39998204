/*
 * What a thread of the .NET runtime is for, by the name that the runtime gives it. Of threads that
 * serve the program (thread pool, timers, sockets) the role is THREAD_OTHER, as of all others.
 */
#ifndef SPOOR_ANALYSIS_THREAD_ROLE_H
#define SPOOR_ANALYSIS_THREAD_ROLE_H

enum thread_role {
	THREAD_OTHER,
	THREAD_COLLECTOR, /* server and background garbage collection */
	THREAD_TIERED_COMPILATION,
	THREAD_FINALIZER,
	THREAD_SAMPLER, /* EventPipe: its sampler, and the writer of its stream */
};

/* `name` as the kernel has it: at most 15 characters. */
enum thread_role thread_role_of(const char *name);

/* "[garbage collector]"; "" for THREAD_OTHER */
const char *thread_role_label(enum thread_role role);

#endif
