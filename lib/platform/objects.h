/*
 * The objects that this process is made of (program, shared objects, vDSO) and the functions in them, by name.
 *
 * A file may have been replaced since it was loaded: its program headers and notes (with the build id) are held against those in memory, and a file that is
 * another one has no functions. Files are read, not mapped: one that is cut short meanwhile is an end of file and no signal.
 */
#ifndef SPOOR_LIB_PLATFORM_OBJECTS_H
#define SPOOR_LIB_PLATFORM_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJECT_NAME_MAX 1024u

struct object {
	char *path;
	uint64_t base;     /* what is added to addresses in the file */
	uint64_t begin;    /* of its code */
	uint64_t end;
	const void *image; /* the vDSO: the whole file is here, image_size bytes */
	size_t image_size;
	void *headers;     /* a copy of its program headers */
	unsigned header_count;
	void *notes;       /* and of its notes, one behind the other, each cut at 4 KiB: it may be unloaded meanwhile */
};

/* -ENOMEM. The caller frees by objects_free(). Sorted by `begin`. */
int objects_list(struct object **ret_objects, size_t *ret_count);
void objects_free(struct object *objects, size_t count);

struct object_symbols;

struct object_symbol {
	uint64_t begin;
	uint64_t size;
	uint32_t name;  /* for object_symbol_name() */
	uint32_t rank;  /* of several names for one place the lowest is the best */
};

/* NULL: no such file, another file, or one without symbols. */
struct object_symbols *object_symbols_open(const struct object *object);

/* The next function; 1, 0 none left, -EAGAIN: enough work for now, call again. */
int object_symbols_next(struct object_symbols *symbols, struct object_symbol *ret_symbol);

/* False when it cannot be read. */
bool object_symbol_name(struct object_symbols *symbols, uint32_t name, char text[OBJECT_NAME_MAX]);
void object_symbols_close(struct object_symbols *symbols);

/* Whether it lies in this process's C++ runtime to make a C++ name readable; the caller frees. NULL: as it is. */
char *object_demangle(const char *name);

#endif
