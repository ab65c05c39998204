/*
 * The steps of the start of a .NET process that its recorder sees in the kernel's records: the exec,
 * and the first mapping of each library of the host. They are events of their own (StartStep),
 * because a mapping is in the file only from its first sample on. Constant data.
 */
#ifndef SPOOR_TRACE_START_STEP_H
#define SPOOR_TRACE_START_STEP_H

#include <stddef.h>

enum start_step {
	START_STEP_NONE,
	START_STEP_EXEC,
	START_STEP_HOSTFXR, /* resolves the framework; a program with a runtime beside it has none */
	START_STEP_HOSTPOLICY, /* resolves the assemblies */
	START_STEP_CORECLR,    /* the runtime */
	START_STEPS
};

/* "hostfxr", as in the event. */
const char *start_step_name(enum start_step step);

/* START_STEP_NONE: no such name, or a mapped file that is no step. */
enum start_step start_step_of_name(const char *name);
enum start_step start_step_of_image(const char *path);

#endif
