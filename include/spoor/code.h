/*
 * Names for code that a program generates at run time (a JIT, trampolines of an interpreter). Code
 * that is announced here has a name in every trace, and in perf.
 *
 *     spoor_code_add(code, size, "Rule::match", NULL);
 *     ...
 *     spoor_code_move(code, moved);       a collector moved it
 *     spoor_code_remove(moved);           before its memory is used for something else
 *
 * The names are in the rundown at the end of each session of a tool (as methods of the module that
 * the options name), in the live events of sessions that enable Microsoft-Windows-DotNETRuntime
 * with keyword 0x10, and in the files of spoor_code_files().
 *
 * Rules. All functions may be called from any thread, before spoor_start() too. They take a lock
 * and allocate: do not call them in a signal handler. They return 0 or a negative errno. All texts
 * and tables are copied. After fork() the child has the ranges of its parent; the files belong to
 * the parent, so the child calls spoor_code_files() again if it needs its own.
 */
#ifndef SPOOR_CODE_H
#define SPOOR_CODE_H

#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From `offset` bytes after the begin on, the code belongs to this line. */
struct spoor_code_line {
	uint32_t offset;
	uint32_t line;
	const char *file; /* NULL: as in the previous entry */
};

/* `size` is sizeof(struct spoor_code_options). */
struct spoor_code_options {
	size_t size;
	const char *module;    /* the module that is shown with the name; NULL: "generated" */
	const char *signature; /* "(int)"; NULL: none */
	/* in ascending order of offset; written into the jitdump file */
	const struct spoor_code_line *lines;
	size_t line_count;
};

/*
 * Announces code. -EINVAL: no bytes, no name, or the range exceeds the address space; -ENOMEM;
 * -ENOSPC: more than a million ranges exist. Ranges that overlap the new one are removed.
 */
SPOOR_API int spoor_code_add(const void *address, size_t size, const char *name,
	const struct spoor_code_options *options);

/*
 * Announces that the whole range that was added at `from` is at `to` now. -ENOENT: no range was
 * added at `from`.
 */
SPOOR_API int spoor_code_move(const void *from, const void *to);
SPOOR_API int spoor_code_remove(const void *address);

enum spoor_code_file {
	/* perf-PID.map: address, size, name; perf uses the last line for an address */
	SPOOR_CODE_PERF_MAP = 1 << 0,
	/* jit-PID.dump: with times, lines and the code itself, for perf inject --jit */
	SPOOR_CODE_JITDUMP = 1 << 1,
};

/*
 * Writes these files from now on in `folder` (NULL: /tmp, where perf looks for a map), starting
 * with the ranges that exist. Files that are not named in `files` are closed. Modes are 0600; an
 * existing file is replaced; symbolic links are not followed. Returns the error of the first file
 * that could not be created; the other file is still created. If a write fails later, that file is
 * closed and the program is not notified.
 */
SPOOR_API int spoor_code_files(uint32_t files, const char *folder);

#ifdef __cplusplus
}
#endif

#endif
