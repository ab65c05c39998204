/*
 * types_writer FILE: writes one event of every kind, declared and made at run time, into a nettrace
 * file that TraceEvent reads (types.sh).
 */
#include <stdio.h>

#include "lib/all_types.h"

static void at_run_time(void)
{
	static const spoor_char16 wide[] = { 'W', 0x20ac, 0 };
	static const struct spoor_guid guid = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
		16 } };
	static const int16_t numbers[] = { -1, 2 };
	static const char *const texts[] = { "a", "b" };
	struct spoor_event_source *source = spoor_source_new("Run-Time");
	struct spoor_writer w;

	for (int i = 0; i < 2; i++) {
		if (spoor_source_begin(source, "Plain", SPOOR_WARNING, 0x4, &w)) {
			spoor_write_boolean(&w, "Yes", true);
			spoor_write_i8(&w, "I8", -1);
			spoor_write_u8(&w, "U8", 255);
			spoor_write_i16(&w, "I16", -2);
			spoor_write_u16(&w, "U16", 65535);
			spoor_write_i32(&w, "I32", -3);
			spoor_write_u32(&w, "U32", (uint32_t)i);
			spoor_write_i64(&w, "I64", -4);
			spoor_write_u64(&w, "U64", 18446744073709551615u);
			spoor_write_f32(&w, "F32", 0.5f);
			spoor_write_f64(&w, "F64", 1e300);
			spoor_write_char16(&w, "Char", 'c');
			spoor_write_guid(&w, "Guid", &guid);
			spoor_write_time(&w, "Time", 0);
			spoor_write_pointer(&w, "Pointer", NULL);
			spoor_write_text(&w, "Text", "text");
			spoor_write_text16(&w, "Text16", wide);
			(void)spoor_source_end(&w);
		}
	}
	/* The same name with other fields is another event. */
	if (spoor_source_begin(source, "Plain", SPOOR_WARNING, 0x4, &w)) {
		spoor_write_array(&w, "Numbers", SPOOR_TYPE_I16, numbers, 2);
		spoor_write_text_array(&w, "Texts", texts, 2);
		spoor_write_struct_begin(&w, "Outer");
		spoor_write_u32(&w, "Inside", 7);
		spoor_write_struct_begin(&w, "Inner");
		spoor_write_text(&w, "Deep", "deep");
		spoor_write_struct_end(&w);
		spoor_write_struct_end(&w);
		spoor_write_blob(&w, "Blob", "\x01\x02", 2);
		spoor_write_u8(&w, "Last", 9);
		(void)spoor_source_end(&w);
	}
	if (spoor_source_begin(source, "Empty", SPOOR_WARNING, 0, &w))
		(void)spoor_source_end(&w);
	spoor_source_free(source);
}

int main(int argc, char **argv)
{
	struct spoor_want wants[2] = {
		{ .size = sizeof(wants[0]),
			.name = "Types",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE },
		{ .size = sizeof(wants[0]),
			.name = "Run-Time",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE },
	};
	struct spoor_session_options options = {
		.size = sizeof(options), .wants = wants, .want_count = 2
	};
	struct spoor_file_options file = { .size = sizeof(file),
		.path = argc > 1 ? argv[1] : NULL };
	struct spoor_session *session = NULL;

	if (argc < 2 || spoor_start(NULL) || spoor_provider_register(&types) ||
		spoor_session_start_file(&options, &file, &session)) {
		fprintf(stderr, "types_writer FILE\n");
		return 1;
	}
	types_fire_all();
	at_run_time();
	spoor_session_free(session);
	spoor_stop();
	return 0;
}
