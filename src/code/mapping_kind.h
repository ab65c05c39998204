/* The kind of a mapping, by the kernel's name of it: one rule for recorder, reader, thread dump. */
#ifndef SPOOR_CODE_MAPPING_KIND_H
#define SPOOR_CODE_MAPPING_KIND_H

enum mapping_kind {
	MAPPING_NATIVE,        /* a file with native code */
	MAPPING_MANAGED_IMAGE, /* a .dll or .exe, with precompiled managed code */
	/* where compilers put code: anonymous, named by prctl(2), heap, memfd */
	MAPPING_JIT,
	MAPPING_STACK, /* of the main thread */
	MAPPING_VDSO,
	MAPPING_KERNEL, /* the kernel or its modules */
};

/* A name in /proc/PID/maps or an mmap record, with or without " (deleted)"; "" is anonymous. */
enum mapping_kind mapping_kind_of(const char *path);

#endif
