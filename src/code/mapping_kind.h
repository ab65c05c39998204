/*
 * The kind of a mapping, by the name that the kernel gives the mapping. The recorder, the reader of
 * recordings and the thread dump use the same rule, so an address has the same kind of name in all
 * of them.
 */
#ifndef SPOOR_CODE_MAPPING_KIND_H
#define SPOOR_CODE_MAPPING_KIND_H

enum mapping_kind {
	MAPPING_NATIVE,        /* a file with native code */
	MAPPING_MANAGED_IMAGE, /* a .dll or .exe, with precompiled managed code */
	/*
	 * memory without a file, where compilers put their code: anonymous, named by prctl(2),
	 * heap, memfd
	 */
	MAPPING_JIT,
	MAPPING_STACK, /* of the main thread */
	MAPPING_VDSO,
	MAPPING_KERNEL, /* the kernel or its modules */
};

/*
 * `path` is a line's name in /proc/PID/maps, or that of an mmap record, with or without "
 * (deleted)"; "" is anonymous memory.
 */
enum mapping_kind mapping_kind_of(const char *path);

#endif
