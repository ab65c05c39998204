/*
 * Where the members of the kernel's structs are, from its own description of its types (BTF).
 *
 * kernel_types_read() needs some milliseconds and, for its call, as many bytes as the description has (5 MB).
 */
#ifndef SPOOR_MACHINE_KERNEL_TYPES_H
#define SPOOR_MACHINE_KERNEL_TYPES_H

#include <stddef.h>
#include <stdint.h>

/*
 * The offsets in bytes of `count` members of a struct, not of those in structs inside it. -ENOENT: the kernel has no
 * description, no such struct, or not all of these members. -EBADMSG: it is malformed, or a member is a bit field.
 */
int kernel_types_read(const char *type, const char *const *members, uint32_t count,
	uint32_t *ret_offsets);

/* The same of a description in memory, of this machine's byte order. */
int kernel_types_find(const uint8_t *data, size_t size, const char *type,
	const char *const *members, uint32_t count, uint32_t *ret_offsets);

#endif
