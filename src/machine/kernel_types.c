/*
 * See kernel_types.h. The description: a header, then types, each of 12 bytes (name u32, info u32, size or type u32)
 * and as many more as its kind and the number of its members say, then the names.
 *
 *   offset  size  field of the header
 *   0       2     0xeb9f
 *   2       2     version, flags
 *   4       4     bytes of the header, from which the following offsets count
 *   8       8     offset and size of the types
 *   16      8     offset and size of the names
 */
#include "machine/kernel_types.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/input.h"

#define PATH            "/sys/kernel/btf/vmlinux"
#define DESCRIPTION_MAX (64u << 20)
#define MAGIC           0xeb9fu
#define HEADER_BYTES    24u
#define TYPE_BYTES      12u
#define MEMBER_BYTES    12u

enum kind {
	KIND_INT = 1,
	KIND_ARRAY = 3,
	KIND_STRUCT = 4,
	KIND_UNION = 5,
	KIND_ENUM = 6,
	KIND_FUNCTION_TYPE = 13,
	KIND_VARIABLE = 14,
	KIND_SECTION = 15,
	KIND_TAG = 17,
	KIND_ENUM64 = 19,
	KIND_MAX = 19,
};

struct type_description {
	const uint8_t *types;
	const uint8_t *types_end;
	const char *names;
	uint32_t names_size;
};

static uint32_t u32(const uint8_t *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Bytes after a type of this kind with `count` members. */
static size_t more_bytes(uint32_t kind, uint32_t count)
{
	switch (kind) {
	case KIND_INT:
	case KIND_VARIABLE:
	case KIND_TAG:
		return 4;
	case KIND_ARRAY:
		return 12;
	case KIND_STRUCT:
	case KIND_UNION:
	case KIND_SECTION:
	case KIND_ENUM64:
		return (size_t)count * MEMBER_BYTES;
	case KIND_ENUM:
	case KIND_FUNCTION_TYPE:
		return (size_t)count * 8;
	default:
		return 0;
	}
}

/* The names end with a NUL. */
static bool has_name(const struct type_description *description, uint32_t at, const char *name)
{
	return at < description->names_size && strcmp(description->names + at, name) == 0;
}

static bool open_description(const uint8_t *data, size_t size, struct type_description *description)
{
	uint16_t magic;

	if (size < HEADER_BYTES)
		return false;
	memcpy(&magic, data, sizeof(magic));
	uint64_t types = (uint64_t)u32(data + 4) + u32(data + 8);
	uint64_t names = (uint64_t)u32(data + 4) + u32(data + 16);
	uint32_t types_size = u32(data + 12);
	uint32_t names_size = u32(data + 20);

	if (magic != MAGIC || types + types_size > size || names + names_size > size ||
		!names_size || data[names + names_size - 1])
		return false;
	*description = (struct type_description){ .types = data + types,
		.types_end = data + types + types_size,
		.names = (const char *)data + names,
		.names_size = names_size };
	return true;
}

/* A type that has members, and whether some of them are bit fields. */
struct type_members {
	const uint8_t *first;
	uint32_t count;
	bool bit_fields;
};

static int find_member(const struct type_description *description,
	const struct type_members *members, const char *name, uint32_t *ret_offset)
{
	for (uint32_t i = 0; i < members->count; i++) {
		const uint8_t *at = members->first + (size_t)i * MEMBER_BYTES;
		uint32_t bits = u32(at + 8);
		if (!has_name(description, u32(at), name))
			continue;
		if (bits % 8 || (members->bit_fields && bits >> 24))
			return -EBADMSG;
		*ret_offset = bits / 8;
		return 0;
	}
	return -ENOENT;
}

static int find_struct(const struct type_description *description, const char *name,
	struct type_members *ret_members)
{
	for (const uint8_t *at = description->types; at < description->types_end;) {
		size_t left = (size_t)(description->types_end - at);
		if (left < TYPE_BYTES)
			return -EBADMSG;
		uint32_t info = u32(at + 4);
		uint32_t kind = info >> 24 & 0x1f;
		uint32_t count = info & 0xffff;
		size_t bytes = TYPE_BYTES + more_bytes(kind, count);
		/* how long a type of an unknown kind is cannot be known */
		if (kind > KIND_MAX || bytes > left)
			return -EBADMSG;
		if (kind == KIND_STRUCT && has_name(description, u32(at), name)) {
			*ret_members = (struct type_members){ at + TYPE_BYTES, count, info >> 31 };
			return 0;
		}
		at += bytes;
	}
	return -ENOENT;
}

int kernel_types_find(const uint8_t *data, size_t size, const char *type,
	const char *const *members, uint32_t count, uint32_t *ret_offsets)
{
	struct type_description description;
	struct type_members found = { .count = 0 };

	if (!open_description(data, size, &description))
		return -EBADMSG;
	int result = find_struct(&description, type, &found);

	for (uint32_t i = 0; i < count && result == 0; i++)
		result = find_member(&description, &found, members[i], &ret_offsets[i]);
	return result;
}

int kernel_types_read(const char *type, const char *const *members, uint32_t count,
	uint32_t *ret_offsets)
{
	struct input in;
	struct diag diag = { 0 };
	uint8_t *data;
	size_t size;
	int result = input_open(&in, PATH, &diag);

	if (result < 0)
		return result;
	result = input_read_all(&in, DESCRIPTION_MAX, &data, &size, &diag);
	input_close(&in);
	if (result < 0)
		return result;
	result = kernel_types_find(data, size, type, members, count, ret_offsets);
	free(data);
	return result;
}
