/*
 * The objects of this process (program, shared objects, vDSO) and the functions in them, by name.
 *
 * A file may have been replaced since it was loaded. So its program headers and notes (with the
 * build id) are compared with those in memory, and a file that differs has no functions. Files are
 * read, not mapped: if one is truncated meanwhile, that is an end of file and not a signal. Loop
 * thread.
 */
#ifndef SPOOR_LIB_PLATFORM_OBJECTS_H
#define SPOOR_LIB_PLATFORM_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJECT_NAME_MAX 1024u

struct object {
	char *path;
	/* load bias: the difference between addresses in memory and in the file */
	uint64_t base;
	uint64_t begin; /* first address of its code */
	uint64_t end;
	const void *image; /* the vDSO: the whole file in memory, image_size bytes; NULL: a file */
	size_t image_size;
	void *headers; /* a copy of its program headers */
	unsigned header_count;
	/* a copy of its notes, concatenated, each cut at 4 KiB; the object may be unloaded later */
	void *notes;
};

/* 0 or -ENOMEM. Sorted by `begin`. The caller frees with objects_free(). */
int objects_list(struct object **ret_objects, size_t *ret_count);
void objects_free(struct object *objects, size_t count);

struct object_symbols;

struct object_symbol {
	uint64_t begin;
	uint64_t size;
	uint32_t name; /* for object_symbol_name() */
	uint32_t rank; /* of several names for one address the lowest rank is the best */
};

/*
 * NULL: the file does not exist, or differs from the loaded one. A file without symbols has none.
 * The object exists until object_symbols_close().
 */
struct object_symbols *object_symbols_open(const struct object *object);

/*
 * The function at `address` by the unwind tables (.eh_frame_hdr), which stripped files have too.
 * False: not found.
 */
bool object_function_bounds(struct object_symbols *symbols, uint64_t address, uint64_t *ret_begin,
	uint64_t *ret_end);

/*
 * The next function: 1; 0: no more; -EAGAIN: call again (this call has read as much as one step
 * may).
 */
int object_symbols_next(struct object_symbols *symbols, struct object_symbol *ret_symbol);

/* False: the name cannot be read. */
bool object_symbol_name(struct object_symbols *symbols, uint32_t name, char text[OBJECT_NAME_MAX]);
void object_symbols_close(struct object_symbols *symbols);

/*
 * The readable form of a C++ name, if this process has a C++ runtime; the caller frees. NULL: use
 * the name unchanged.
 */
char *object_demangle(const char *name);

#endif
