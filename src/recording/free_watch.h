/*
 * Since when a .NET runtime has freed no code. Only its finalizer thread frees dynamic methods and
 * collectible assemblies, and only after a collection has found them unused: while that thread sleeps, each address
 * of code keeps its method.
 *
 *   free_watch_note(watch, proc, pid)         after each group of reads
 *   free_watch_since(watch, proc, pid)        after a later read
 */
#ifndef SPOOR_RECORDING_FREE_WATCH_H
#define SPOOR_RECORDING_FREE_WATCH_H

#include <stdint.h>

struct proc_reader;

struct free_watch {
	uint32_t tid;       /* of the finalizer thread; 0: not found */
	uint32_t tries;     /* of finding it */
	uint64_t switches;  /* its context switches when it was noted; 0: not noted */
	uint64_t switch_ns; /* a time after it was noted */
};

void free_watch_note(struct free_watch *watch, struct proc_reader *proc, uint32_t pid);

/* From this time until the call no code was freed; 0: unknown. */
uint64_t free_watch_since(const struct free_watch *watch, const struct proc_reader *proc,
	uint32_t pid);

#endif
