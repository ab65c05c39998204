/* CTF: metadata that arrives in pieces, packets of a growing trace, losses, limits of types. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "formats/ctf_losses.h"
#include "formats/ctf_metadata.h"
#include "formats/ctf_read.h"
#include "trace/clr_event.h"
#include "trace/trace.h"

static const char head[] =
	"/* CTF 1.8 */ typealias integer { size = 8; align = 8; signed = 0; } := uint8_t;\n"
	"typealias integer { size = 32; align = 8; signed = 0; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; signed = 0; } := unsigned long;\n"
	"trace { byte_order = le; packet.header := struct { uint32_t magic; uint32_t stream_id; }; };\n"
	"env { domain = \"ust\"; };\n"
	"clock { name = \"monotonic\"; freq = 1000000000; offset = 1000; };\n"
	"stream { id = 0; packet.context := struct { unsigned long content_size; unsigned long packet_size;\n"
	"  unsigned long events_discarded; uint32_t cpu_id; };\n"
	"  event.header := struct { uint8_t id; integer { size = 64; align = 8; map = clock.monotonic.value; } t; };\n"
	"  event.context := struct { uint32_t _vpid; uint32_t _vtid; }; };\n";

static char folder[64];

static void put_file(const char *name, const char *mode, const void *data, size_t size)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, mode);
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void put_text(const char *mode, const char *text)
{
	put_file("metadata", mode, text, strlen(text));
}

/* A packet with one event of this id and payload. */
static void put_packet(const char *name, uint8_t id, uint64_t time_ns, uint64_t discarded,
	const void *payload, size_t size)
{
	struct bytes b = { 0 };
	uint64_t bits = (8 + 28 + 1 + 8 + 8 + size) * 8;

	bytes_u32(&b, 0xc1fc1fc1);
	bytes_u32(&b, 0);
	bytes_u64(&b, bits);
	bytes_u64(&b, bits + 64);
	bytes_u64(&b, discarded);
	bytes_u32(&b, 1);
	bytes_u8(&b, id);
	bytes_u64(&b, time_ns);
	bytes_u32(&b, 70);
	bytes_u32(&b, 71);
	bytes_add(&b, payload, size);
	bytes_u64(&b, 0);
	put_file(name, "a", b.data, b.len);
	bytes_done(&b);
}

static int make_folder(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/test_ctf.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "metadata", "a", "b", "r_0_0", "r_0_1", "r_0_2",
		"p/metadata", "p/a", "q/metadata", "q/a", "r/metadata", "r/a", "p", "q", "r" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		(void)remove(path); /* not all of them exist */
	}
	return rmdir(folder);
}

/* Nothing, half of the metadata, a packet before the description of its event. */
static void grows(void **state)
{
	struct trace trace;
	struct ctf_reader *reader;
	struct ctf_event event;
	struct diag diag = { 0 };
	int64_t offset_ns;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_reader_open(folder, &trace, CTF_GROWING, &reader, &diag), 0);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);
	assert_false(ctf_reader_clock(reader, &offset_ns));

	put_file("metadata", "w", head, 100);
	assert_int_equal(ctf_reader_look(reader, &diag), 0);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);
	put_packet("a", 9, 500, 0, "\x05", 1);
	assert_int_equal(ctf_reader_look(reader, &diag), 0);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);

	put_text("a", head + 100);
	assert_int_equal(ctf_reader_look(reader, &diag), 0);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);
	assert_true(ctf_reader_clock(reader, &offset_ns));
	assert_int_equal(offset_ns, 1000);
	put_text("a", "event { name = \"shop:order\"; id = 9; stream_id = 0; loglevel = 4;\n"
		      "fields := struct { uint8_t _number; }; }");
	assert_int_equal(ctf_reader_look(reader, &diag), 0);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);
	put_text("a", ";\n");
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);
	assert_int_equal(ctf_reader_look(reader, &diag), 0);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 1);
	assert_int_equal(event.event.time_ns, 500);
	assert_int_equal(event.pid, 70);
	assert_int_equal(event.tid, 71);
	assert_int_equal(event.event.cpu, 1);
	assert_int_equal(event.event.payload_size, 1);
	assert_int_equal(event.event.payload[0], 5);
	const struct schema *schema = &trace.schemas.items[event.event.schema_index];
	assert_string_equal(trace_text(&trace, schema->provider), "shop");
	assert_string_equal(trace_text(&trace, schema->name), "order");
	assert_int_equal(schema->level, 3);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);

	/* Two files are merged; the counter of lost events grows in each. */
	put_packet("a", 9, 800, 3, "\x06", 1);
	put_packet("b", 9, 700, 2, "\x07", 1);
	put_packet("b", 9, 900, 7, "\x08", 1);
	put_packet("b", 9, 950, 0, "\x09", 1); /* a counter that was not written */
	put_packet("b", 9, 960, 8, "\x0a", 1);
	assert_int_equal(ctf_reader_look(reader, &diag), 0);
	static const struct {
		uint64_t time_ns;
		uint32_t lost;
	} expected[] = { { 700, 2 }, { 800, 3 }, { 900, 5 }, { 950, 0 }, { 960, 1 } };
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(ctf_reader_next(reader, &event, &diag), 1);
		assert_int_equal(event.event.time_ns, expected[i].time_ns);
		assert_int_equal(event.event.lost_before, expected[i].lost);
	}
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);
	assert_int_equal(ctf_reader_lost(reader), 11);
	ctf_reader_close(reader);
	trace_done(&trace);
}

/* More streams are described while a packet is read: the table of streams moves. */
static void streams_are_added(void **state)
{
	struct trace trace;
	struct ctf_reader *reader;
	struct ctf_event event;
	struct diag diag = { 0 };
	char text[64];

	(void)state;
	put_text("w", head);
	put_packet("a", 9, 500, 0, "\x05", 1);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_reader_open(folder, &trace, CTF_GROWING, &reader, &diag), 0);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);
	for (unsigned i = 1; i < 200; i++) {
		(void)snprintf(text, sizeof(text), "stream { id = %u; };\n", i);
		put_text("a", text);
	}
	put_text("a", "event { name = \"shop:order\"; id = 9; stream_id = 0;\n"
		      "fields := struct { uint8_t _number; }; };\n");
	assert_int_equal(ctf_reader_look(reader, &diag), 0);
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 1);
	assert_int_equal(event.event.time_ns, 500);
	assert_int_equal(event.tid, 71);
	ctf_reader_close(reader);
	trace_done(&trace);
}

/* A stream in several files has one counter; its losses are reported in the order of time. */
static void losses_over_files(void **state)
{
	static const uint32_t expected[] = { 10, 10, 10, 0, 5 };
	struct trace trace;
	struct ctf_reader *reader;
	struct ctf_event event;
	struct diag diag = { 0 };

	(void)state;
	put_text("w", head);
	put_text("a", "event { name = \"shop:order\"; id = 9; stream_id = 0;\n"
		      "fields := struct { uint8_t _number; }; };\n");
	put_packet("r_0_0", 9, 500, 10, "\x05", 1);
	put_packet("r_0_0", 9, 501, 20, "\x05", 1);
	put_packet("r_0_1", 9, 502, 30, "\x05", 1);
	put_packet("r_0_1", 9, 503, 30, "\x05", 1);
	put_packet("r_0_2", 9, 504, 35, "\x05", 1);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_reader_open(folder, &trace, CTF_WHOLE, &reader, &diag), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(ctf_reader_next(reader, &event, &diag), 1);
		assert_int_equal(event.event.time_ns, 500 + i);
		assert_int_equal(event.event.lost_before, expected[i]);
	}
	assert_int_equal(ctf_reader_next(reader, &event, &diag), 0);
	assert_int_equal(ctf_reader_lost(reader), 35);
	ctf_reader_close(reader);
	trace_done(&trace);
}

/* Which files and folders are one stream. */
static void streams_of_losses(void **state)
{
	static const struct {
		struct ctf_stream_key stream;
		uint64_t counter, more;
	} steps[] = {
		/* the chunks of a rotation have the trace's uuid */
		{ { "u", "s/1/c_0", 0, 3, 3 }, 5, 5 },
		{ { "u", "s/2/c_0", 0, 3, 3 }, 7, 2 },
		{ { "u", "s/2/c_0", 0, 3, 3 }, 6, 0 },
		{ { "u", "s/2/c_1", 0, 4, 4 }, 7, 7 },
		{ { "u", "s/2/d_0", 1, 3, 3 }, 7, 7 },
		{ { "v", "s/2/c_0", 0, 3, 3 }, 7, 7 },
		/* no uuid: the folder is the trace */
		{ { "", "s/1/c_0", 0, 3, 3 }, 5, 5 },
		{ { "", "s/1/c_0_1", 0, 3, 3 }, 6, 1 },
		{ { "", "s/2/c_0", 0, 3, 3 }, 6, 6 },
		/* no instance id: the name and the CPU */
		{ { "w", "s/1/c_0_0", 0, CTF_NO_NUMBER, 0 }, 5, 5 },
		{ { "w", "s/1/c_0_12", 0, CTF_NO_NUMBER, 0 }, 6, 1 },
		{ { "w", "s/2/c_0_0", 0, CTF_NO_NUMBER, 0 }, 9, 3 },
		{ { "w", "s/1/c_1_0", 0, CTF_NO_NUMBER, 1 }, 5, 5 },
		/* neither: each file */
		{ { "x", "s/1/c_0", 0, CTF_NO_NUMBER, CTF_NO_NUMBER }, 5, 5 },
		{ { "x", "s/1/c_1", 0, CTF_NO_NUMBER, CTF_NO_NUMBER }, 5, 5 },
		{ { "x", "s/1/c_1", 0, CTF_NO_NUMBER, CTF_NO_NUMBER }, 0, 0 },
	};
	struct ctf_losses losses = { 0 };
	uint64_t more, total = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		assert_true(ctf_losses_add(&losses, &steps[i].stream, steps[i].counter, &more));
		if (more != steps[i].more)
			fail_msg("step %zu: %d more", i, (int)more);
		total += more;
	}
	assert_int_equal(losses.total, total);
	ctf_losses_done(&losses);
}

/* A folder below with its own clock, and one event of this time. */
static void put_part(const char *name, const char *clock, uint64_t time_ns)
{
	static const char event[] = "event { name = \"shop:order\"; id = 9; stream_id = 0;\n"
				    "fields := struct { uint8_t _number; }; };\n";
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/metadata", name);
	/* the first description of a clock counts */
	put_file(path, "w", clock, strlen(clock));
	put_file(path, "a", head, strlen(head));
	put_file(path, "a", event, strlen(event));
	(void)snprintf(path, sizeof(path), "%s/a", name);
	put_packet(path, 9, time_ns, 0, "\x05", 1);
}

/* Parts with several clocks have one order and right dates. */
static void clocks_differ(void **state)
{
	static const uint64_t expected[] = { 5001000, 6000000, 6000500 };
	struct trace trace;
	struct source *source;
	struct event event;
	struct diag diag = { 0 };

	(void)state;
	put_part("p", "clock { name = \"m\"; offset = 5000000; };\n", 1000);
	put_part("q", "clock { name = \"m\"; offset = 6000000; };\n", 500);
	put_part("r", "clock { name = \"m\"; freq = 1000; offset = 5; };\n", 0);
	put_packet("r/a", 9, 1, 0, "\x05", 1);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_source_open(folder, &trace, &source, &diag), 0);
	const struct recording *recording = &trace.recording;
	assert_int_equal(ctf_source.next(source, &event, &diag), 1);
	assert_int_equal(recording->utc_ns, 5000000);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(ctf_source.next(source, &event, &diag), 1);
		assert_int_equal(event.time_ns - recording->sync_ns + recording->utc_ns,
			expected[i]);
	}
	assert_int_equal(ctf_source.next(source, &event, &diag), 0);
	ctf_source.close(source);
	trace_done(&trace);
}

/* One clock, whose offset was measured twice: its times are exact. */
static void clock_is_shared(void **state)
{
	struct trace trace;
	struct source *source;
	struct event event;
	struct diag diag = { 0 };

	(void)state;
	put_part("p", "clock { name = \"m\"; uuid = \"boot\"; offset = 5000900; };\n", 1000);
	put_part("q", "clock { name = \"m\"; uuid = \"boot\"; offset = 5000000; };\n", 1200);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_source_open(folder, &trace, &source, &diag), 0);
	assert_int_equal(ctf_source.next(source, &event, &diag), 1);
	assert_int_equal(event.time_ns, 1000);
	assert_int_equal(trace.recording.utc_ns, 5001000);
	assert_int_equal(ctf_source.next(source, &event, &diag), 1);
	assert_int_equal(event.time_ns, 1200);
	ctf_source.close(source);
	trace_done(&trace);
}

/* A date before 1970 is none, not one in the year 2554. */
static void offset_is_negative(void **state)
{
	struct trace trace;
	struct source *source;
	struct event event;
	struct diag diag = { 0 };

	(void)state;
	put_part("p", "clock { name = \"m\"; offset_s = -1; offset = 7; };\n", 1000);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_source_open(folder, &trace, &source, &diag), 0);
	assert_int_equal(ctf_source.next(source, &event, &diag), 1);
	assert_int_equal(event.time_ns, 1000);
	assert_int_equal(trace.recording.utc_ns, 0);
	ctf_source.close(source);
	trace_done(&trace);
}

/* .NET's tracepoints have the runtime's identity and layout, packed or not. */
static void runtime_events(void **state)
{
	static const uint8_t fields[] = { 1, 0, 0, 0, 2, 0, 0, 0 };
	static const uint8_t packed[] = { 3, 0, 0, 0, 3, 0, 0, 0, 7, 8, 9 };
	static const uint8_t text[] = "name";
	struct trace trace;
	struct source *source;
	struct event event;
	struct diag diag = { 0 };

	(void)state;
	put_text("w", head);
	put_text("a",
		"event { name = \"DotNETRuntime:GCStart\"; id = 1; stream_id = 0; loglevel = 13;\n"
		" fields := struct { uint32_t _Count; uint32_t _Reason; }; };\n"
		"event { name = \"DotNETRuntime:GCBulkType_Unknown\"; id = 2; stream_id = 0;\n"
		" fields := struct { string _Text; }; };\n"
		"event { name = \"DotNETRuntime:BulkType\"; id = 3; stream_id = 0; fields := struct {\n"
		" uint32_t _length; uint32_t ____data___length; uint8_t ___data__[____data___length]; }; };\n");
	put_packet("a", 1, 1, 0, fields, sizeof(fields));
	put_packet("a", 2, 2, 0, text, sizeof(text));
	put_packet("a", 3, 3, 0, packed, sizeof(packed));
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_source_open(folder, &trace, &source, &diag), 0);
	assert_int_equal(ctf_source.next(source, &event, &diag), 1);
	const struct schema *schema = &trace.schemas.items[event.schema_index];
	assert_string_equal(trace_text(&trace, schema->provider), PROVIDER_CLR_NAME);
	assert_int_equal(schema->provider_kind, PROVIDER_CLR);
	assert_int_equal(schema->event_id, CLR_ID_GCStart);
	assert_int_equal(schema->name, 0);
	assert_int_equal(event.payload_size, sizeof(fields));
	assert_memory_equal(event.payload, fields, sizeof(fields));
	/* A name that the manifest does not have stays an event of its own. */
	assert_int_equal(ctf_source.next(source, &event, &diag), 1);
	schema = &trace.schemas.items[event.schema_index];
	assert_string_equal(trace_text(&trace, schema->provider), "DotNETRuntime");
	assert_memory_equal(event.payload, "n\0a\0m\0e\0\0", 10);
	assert_int_equal(ctf_source.next(source, &event, &diag), 1);
	assert_int_equal(trace.schemas.items[event.schema_index].event_id, CLR_ID_BulkType);
	assert_int_equal(event.payload_size, 3);
	assert_memory_equal(event.payload, packed + 8, 3);
	assert_int_equal(ctf_source.next(source, &event, &diag), 0);
	assert_string_equal(trace_text(&trace, trace.processes.items[1].name), "");
	assert_int_equal(trace.processes.items[1].pid, 70);
	ctf_source.close(source);
	trace_done(&trace);
}

static void refuses(const char *declaration, const char *why)
{
	struct ctf_metadata metadata;
	struct diag diag = { 0 };

	assert_int_equal(ctf_metadata_init(&metadata), 0);
	int result = ctf_metadata_add(&metadata, (const uint8_t *)declaration, strlen(declaration),
		&diag);
	if (result == 0 || !strstr(diag.text, why))
		fail_msg("'%s': %d '%s'", declaration, result, diag.text);
	ctf_metadata_done(&metadata);
}

static void bad_metadata(void **state)
{
	struct bytes deep = { 0 };

	(void)state;
	refuses("event { fields := struct { foo_t x; }; };", "'foo_t' has no description");
	refuses("typealias integer { size = 65; } := a;", "1 to 64 bits");
	refuses("typealias integer { size = 8; align = 3; } := a;", "no power of two");
	refuses("typealias floating_point { exp_dig = 5; mant_dig = 11; } := a;", "neither");
	refuses("typealias string := t; typealias enum : t { A } := a;", "of no integer");
	refuses("struct a { variant <x> v y; };", "a type has no description");
	refuses("struct a { string x[; };", "is missing");
	refuses("event { name = \"a\" };", "a name is missing");
	refuses("stray;", "'stray' has no description");
	refuses("\x57\x1d\xd1\x75", "damaged");
	for (unsigned i = 0; i < 100; i++)
		bytes_text(&deep, "struct { ");
	bytes_text(&deep, "};");
	bytes_text(&deep, "}; };"); /* the cut is by depth: closed below */
	for (unsigned i = 0; i < 100; i++)
		bytes_text(&deep, "}; ");
	refuses(bytes_z(&deep), "too deeply");
	bytes_done(&deep);
}

/* Texts with C's escapes, in names and labels. */
static void escapes(void **state)
{
	static const char text[] =
		"event { name = \"a\\\"b\\\\c\\n\\x1b\\0339\\q\\x\"; id = 1; };\n"
		"typealias integer { size = 8; } := int;\n"
		"enum e { \"\\101\\7\" = 1, \"plain\" = 2, \"\" = 3 };\n";
	struct ctf_metadata metadata;
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(ctf_metadata_init(&metadata), 0);
	assert_int_equal(
		ctf_metadata_add(&metadata, (const uint8_t *)text, sizeof(text) - 1, &diag), 0);
	const struct ctf_event_class *event = ctf_metadata_event(&metadata, 0, 1);
	assert_non_null(event);
	assert_string_equal(strtab_get(&metadata.strings, event->name), "a\"b\\c\n\x1b\x1b"
									"9qx");
	assert_int_equal(metadata.ranges.count, 3);
	const struct ctf_range *ranges = metadata.ranges.items;
	assert_string_equal(strtab_get(&metadata.strings, ranges[0].label), "A\a");
	assert_string_equal(strtab_get(&metadata.strings, ranges[1].label), "plain");
	assert_string_equal(strtab_get(&metadata.strings, ranges[2].label), "");
	ctf_metadata_done(&metadata);
}

/* Types that double at each level, and empty ones that are counted: bounded. */
static void bombs(void **state)
{
	struct bytes text = { 0 };
	struct trace trace;
	struct source *source;
	struct event event;
	struct diag diag = { 0 };

	(void)state;
	put_text("w", head);
	bytes_text(&text, "struct s0 { struct { } a; struct { } b; };\n");
	for (unsigned i = 1; i < 60; i++)
		bytes_printf(&text, "struct s%u { struct s%u a; struct s%u b; };\n", i, i - 1,
			i - 1);
	bytes_text(&text,
		"event { name = \"a:b\"; id = 1; stream_id = 0; fields := struct { struct s59 x; }; };\n"
		"event { name = \"a:c\"; id = 2; stream_id = 0; fields := struct { uint32_t n; struct s59 x[n]; }; };\n");
	put_text("a", bytes_z(&text));
	put_packet("a", 2, 1, 0, "\xff\xff\xff\xff", 4);
	put_packet("b", 1, 2, 0, "", 0);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_source_open(folder, &trace, &source, &diag), 0);
	assert_true(ctf_source.next(source, &event, &diag) < 0);
	ctf_source.close(source);
	trace_done(&trace);
	bytes_done(&text);
}

/* A stream whose events take no bits would have events for ever. */
static void empty_events(void **state)
{
	struct trace trace;
	struct source *source;
	struct event event;
	struct diag diag = { 0 };

	(void)state;
	put_text("w", "trace { major = 1; minor = 8; byte_order = le; };\nstream { };\n"
		      "event { name = \"a:b\"; fields := struct { }; };\n");
	put_file("a", "w", "abcdefgh", 8);
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(ctf_source_open(folder, &trace, &source, &diag), 0);
	assert_int_equal(ctf_source.next(source, &event, &diag), -EBADMSG);
	assert_non_null(strstr(diag.text, "an event of 0 bits"));
	ctf_source.close(source);
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(grows, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(streams_are_added, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(losses_over_files, make_folder, remove_folder),
		cmocka_unit_test(streams_of_losses),
		cmocka_unit_test_setup_teardown(clocks_differ, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(clock_is_shared, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(offset_is_negative, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(runtime_events, make_folder, remove_folder),
		cmocka_unit_test(bad_metadata),
		cmocka_unit_test(escapes),
		cmocka_unit_test_setup_teardown(empty_events, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(bombs, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
