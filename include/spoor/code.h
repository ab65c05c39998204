/*
 * Code that a program generates (a JIT, an interpreter's trampolines): who names it here gets it named in every trace, and by perf.
 *
 *     spoor_code_add(code, size, "Rule::match", NULL);
 *     ...
 *     spoor_code_move(code, moved);       a collector moved it
 *     spoor_code_remove(moved);           before its memory is used for something else
 *
 * The names are in the rundown at the end of each session of a tool (as methods of the module that the options name), live in sessions that want
 * Microsoft-Windows-DotNETRuntime with keyword 0x10, and in the files of spoor_code_files(). All functions take a lock; none is for signal handlers.
 */
#ifndef SPOOR_CODE_H
#define SPOOR_CODE_H

#include <spoor/spoor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From `offset` bytes behind the begin on, the code stands for this line. */
struct spoor_code_line {
	uint32_t offset;
	uint32_t line;
	const char *file; /* NULL: as in the entry before */
};

/* `size` is sizeof(struct spoor_code_options). Texts are copied. */
struct spoor_code_options {
	size_t size;
	const char *module;    /* whose code it is; NULL: "generated" */
	const char *signature; /* "(int)"; NULL: none */
	const struct spoor_code_line *lines; /* in ascending order; in the jitdump */
	size_t line_count;
};

/* -EINVAL: no bytes, no name, or beyond the end of memory; -ENOMEM; -ENOSPC: more than a million at once. What lay there before is removed. */
SPOOR_API int spoor_code_add(const void *address, size_t size, const char *name, const struct spoor_code_options *options);

/* The whole of what was added at `from`. -ENOENT: nothing was. */
SPOOR_API int spoor_code_move(const void *from, const void *to);
SPOOR_API int spoor_code_remove(const void *address);

enum spoor_code_file {
	SPOOR_CODE_PERF_MAP = 1 << 0, /* perf-PID.map: address, size, name; perf takes the last line for an address */
	SPOOR_CODE_JITDUMP = 1 << 1,  /* jit-PID.dump: with times, lines and the code itself, for perf inject --jit */
};

/*
 * Writes these files from now on, in `folder` (NULL: /tmp, where perf looks for a map), beginning with what is there already; files that are not named are ended.
 * Modes are 0600, an existing file is replaced, a link not followed. -errno of the first that could not be made; the other is made all the same.
 * A write that fails later ends that file.
 */
SPOOR_API int spoor_code_files(uint32_t files, const char *folder);

#ifdef __cplusplus
}
#endif

#endif
