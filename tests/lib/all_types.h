/* One event with every type of field, and the values that the tests and TraceEvent look for. */
#ifndef SPOOR_TESTS_LIB_ALL_TYPES_H
#define SPOOR_TESTS_LIB_ALL_TYPES_H

#include <spoor/spoor.h>

SPOOR_PROVIDER(types, "Types")

SPOOR_STRUCT(types_point, (i32, X), (f64, Y), (text, Label))

SPOOR_EVENT_NAMED(types, plain, "Plain", 1, 3, SPOOR_INFO, SPOOR_OPCODE_INFO, 0x11, (boolean, Yes),
	(i8, I8), (u8, U8), (i16, I16), (u16, U16), (i32, I32), (u32, U32), (i64, I64), (u64, U64),
	(f32, F32), (f64, F64), (char16, Char), (guid, Guid), (time, Time), (pointer, Pointer),
	(text, Text), (text16, Text16))
SPOOR_EVENT_NAMED(types, arrays, "Arrays", 2, 0, SPOOR_VERBOSE, SPOOR_OPCODE_INFO, 0, (blob, Blob),
	(u32_array, Numbers), (f64_array, Doubles), (text_array, Texts),
	(object, Point, types_point), (object_array, Points, types_point), (u16, Last))
SPOOR_EVENT_NAMED(types, nested, "Nested", 3, 0, SPOOR_INFO, SPOOR_OPCODE_INFO, 0, (u8, First),
	(object, Point, types_point), (u32, Last))
SPOOR_EVENT_NAMED(types, nothing, "Nothing", 4, 0, SPOOR_ALWAYS, SPOOR_OPCODE_INFO, 0)

static inline void types_fire_all(void)
{
	static const struct spoor_guid guid = { { 0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
		0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff } };
	static const spoor_char16 wide[] = { 'w', 0xe4, 0x20ac, 0 };
	static const uint8_t blob[] = { 1, 2, 255 };
	static const uint32_t numbers[] = { 7, 0, 4294967295u };
	static const double doubles[] = { 0.5, -2 };
	static const char *const texts[] = { "one", "", "dr\xc3\xa4i" };
	static const struct types_point points[2] = { { 1, 1.5, "a" },
		{ -2, 2.5, "\xe2\x82\xac" } };

	types_plain(true, -8, 200, -1600, 60000, -320000, 4000000000u, -64000000000,
		18000000000000000000u, 1.25f, -2.5, 0x20ac, &guid, 1700000000123456700,
		(const void *)(uintptr_t)0x7f0012345678, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x90\x9f",
		wide);
	types_arrays(blob, sizeof(blob), numbers, 3, doubles, 2, texts, 3, &points[0], points, 2,
		65535);
	types_nested(9, &points[1], 77);
	types_nothing();
}

#endif
