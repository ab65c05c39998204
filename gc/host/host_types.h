/*
 * Types and objects of a host (host.h), laid out as a runtime does: an object is a pointer to its
 * table word, the header word is before it, the fields follow.
 */
#ifndef SPOOR_GC_HOST_TYPES_H
#define SPOOR_GC_HOST_TYPES_H

#include "gc/host/host.h"

/* Bytes of the header and the table word; of these and the length of an array. */
#define HOST_OBJECT_HEAD 16u
#define HOST_ARRAY_HEAD  24u

enum host_type_flag {
	HOST_TYPE_HAS_FINALIZER = 0x00100000,
	HOST_TYPE_HAS_REFERENCES = 0x01000000,
};

/* The part of a method table that collectors read. The list of its references is before it. */
struct host_method_table {
	uint32_t flags; /* the low half: bytes of an element */
	uint32_t base_bytes;
	void *related;
	uint32_t more[2];
};

struct gc_host_type {
	struct gc_host_type *next;
	char *name;
	gc_host_finalize_function *finalize;
	void *finalize_context;
	bool is_array;
	void *block; /* the allocation that contains `table` and the words before it */
	struct host_method_table *table;
};

/* The size of a new object of this type, rounded as a runtime does. 0: too large. */
size_t host_type_bytes(const struct gc_host_type *type, uint32_t length);
size_t host_object_size(const struct gc_object *object);
void host_object_begin(struct gc_object *object, const struct gc_host_type *type, uint32_t length);

/* The type with which collectors fill free memory: an array of bytes. NULL: no memory. */
struct gc_host_type *host_type_free_space(void);
/* NULL: see gc_host_type_new(). */
struct gc_host_type *host_type_make(const struct gc_host_type_info *info);
void host_type_delete(struct gc_host_type *type);

#endif
