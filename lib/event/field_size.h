/* A field of an event, and the size of its value in a payload, by its type. */
#ifndef SPOOR_LIB_EVENT_FIELD_SIZE_H
#define SPOOR_LIB_EVENT_FIELD_SIZE_H

#include <stddef.h>
#include <stdint.h>

#include <spoor/spoor.h>

/* FIELD("Name", TEXT): a struct spoor_field without parts. */
#define FIELD(name, type)                        \
	{                                        \
		name, SPOOR_TYPE_##type, 0, NULL \
	}

/*
 * In bytes; 0 for a type whose values differ in size. `type` is an enum spoor_type. Any thread,
 * signal handlers too.
 */
static inline size_t field_fixed_size(uint32_t type)
{
	switch (type) {
	case SPOOR_TYPE_I8:
	case SPOOR_TYPE_U8:
		return 1;
	case SPOOR_TYPE_I16:
	case SPOOR_TYPE_U16:
	case SPOOR_TYPE_CHAR16:
		return 2;
	case SPOOR_TYPE_BOOLEAN:
	case SPOOR_TYPE_I32:
	case SPOOR_TYPE_U32:
	case SPOOR_TYPE_F32:
		return 4;
	case SPOOR_TYPE_I64:
	case SPOOR_TYPE_U64:
	case SPOOR_TYPE_F64:
	case SPOOR_TYPE_TIME:
	case SPOOR_TYPE_POINTER:
		return 8;
	case SPOOR_TYPE_GUID:
		return 16;
	default:
		return 0;
	}
}

#endif
