/* nettrace_read.c with the stream of a runtime, and with broken streams. */
#include "unit/test.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/map.h"
#include "nettrace/nettrace_read.h"
#include "trace/event.h"
#include "trace/event_label.h"
#include "trace/trace.h"

struct seen {
	uint32_t events;
	uint32_t samples;
	uint32_t methods;
	uint32_t stacks;
	uint64_t hash;
};

static void see(struct seen *seen, const struct trace *trace, const struct event *event)
{
	const struct schema *schema = &trace->schemas.items[event->schema_index];

	seen->events++;
	seen->samples += schema->provider_kind == PROVIDER_SAMPLE;
	seen->methods += schema->kind == EVENT_METHOD;
	seen->stacks += event->stack_index != 0;
	seen->hash = hash_u64(seen->hash ^ event->time_ns) + event->thread_index +
		     event->stack_index + hash_bytes(event->payload, event->payload_size) +
		     event->lost_before;
}

static int run(const uint8_t *data, size_t size, size_t piece, unsigned flags, struct trace *trace,
	struct seen *seen, struct nettrace_head *head, struct diag *diag)
{
	struct event event;
	int r = 0;

	*seen = (struct seen){ 0 };
	assert_int_equal(trace_init(trace), 0);
	struct nettrace_decoder *decoder = nettrace_decoder_new(trace, "stream", flags);
	assert_non_null(decoder);
	for (size_t at = 0; at < size && r >= 0; at += piece) {
		assert_int_equal(nettrace_decoder_push(decoder, data + at,
					 size - at < piece ? size - at : piece),
			0);
		while ((r = nettrace_decoder_next(decoder, &event, diag)) > 0)
			see(seen, trace, &event);
	}
	if (r == 0)
		r = nettrace_decoder_finish(decoder, diag);
	if (head)
		*head = *nettrace_decoder_head(decoder);
	nettrace_decoder_free(decoder);
	return r;
}

static uint8_t *sample(size_t *ret_size)
{
	struct input in;
	uint8_t *data;

	assert_int_equal(input_open(&in, TEST_DATA "/nettrace/runtime-v4.nettrace", NULL), 0);
	assert_int_equal(input_read_all(&in, 1 << 20, &data, ret_size, NULL), 0);
	input_close(&in);
	return data;
}

static void test_runtime_stream(void **state)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct trace bytewise_trace;
	struct seen seen;
	struct seen bytewise;
	struct nettrace_head head;
	size_t size;
	uint8_t *data = sample(&size);

	(void)state;
	int r = run(data, size, size, 0, &trace, &seen, &head, &diag);
	assert_string_equal(diag.text, "");
	assert_int_equal(r, 0);
	assert_int_equal(head.version, 4);
	assert_int_equal(head.ticks_per_second, 1000000000);
	assert_true(head.process_id);
	assert_true(head.utc_ns > UINT64_C(1700000000000000000));
	assert_true(seen.events > 100);
	assert_true(seen.samples > 10);
	assert_true(seen.methods > 10);
	assert_true(seen.stacks > 10);
	assert_int_equal(trace.processes.count, 2);
	assert_int_equal(trace.processes.items[1].pid, head.process_id);
	assert_true(trace.recording.end_ns > trace.recording.sync_ns);

	assert_int_equal(run(data, size, 1, 0, &bytewise_trace, &bytewise, NULL, &diag), 0);
	assert_memory_equal(&seen, &bytewise, sizeof(seen));
	trace_done(&bytewise_trace);

	assert_int_equal(run(data, size, 1000, NETTRACE_NAMES_ONLY, &bytewise_trace, &bytewise,
				 NULL, &diag),
		0);
	assert_int_equal(bytewise.events, seen.events);
	assert_int_equal(bytewise.stacks, 0);
	assert_int_equal(bytewise_trace.threads.count, 1);
	assert_int_equal(bytewise_trace.recording.end_ns, 0);
	trace_done(&bytewise_trace);
	trace_done(&trace);
	free(data);
}

/* An object of version 4. All objects except the head have a size and begin at a multiple of 4. */
static void object(struct bytes *b, const char *name, bool sized, const struct bytes *body)
{
	uint32_t version = sized ? 2 : 4;

	bytes_u8(b, 5);
	bytes_u8(b, 5);
	bytes_u8(b, 1);
	bytes_u32(b, version);
	bytes_u32(b, version);
	bytes_u32(b, (uint32_t)strlen(name));
	bytes_text(b, name);
	bytes_u8(b, 6);
	if (sized)
		bytes_u32(b, (uint32_t)body->len);
	while (sized && b->len % 4)
		bytes_u8(b, 0);
	bytes_add(b, body->data, body->len);
	bytes_u8(b, 6);
}

static void begin_v4(struct bytes *b)
{
	struct bytes head = { 0 };

	bytes_add(b, "Nettrace", 8);
	bytes_u32(b, 20);
	bytes_text(b, "!FastSerialization.1");
	for (int i = 0; i < 4; i++)
		bytes_u32(&head, i == 0 ? 2026 | 11 << 16 : i == 1 ? 21 << 16 : 0);
	bytes_u64(&head, 1000);
	bytes_u64(&head, 1000000000);
	bytes_u32(&head, 8);
	bytes_u32(&head, 77);
	bytes_u32(&head, 2);
	bytes_u32(&head, 1000000);
	object(b, "Trace", false, &head);
	bytes_done(&head);
}

static void begin_events_v4(struct bytes *body)
{
	bytes_u16(body, 20);
	bytes_u16(body, 1);
	bytes_u64(body, 0);
	bytes_u64(body, 0);
}

/* A compressed event of thread 7, without a stack. */
static void add_event_v4(struct bytes *body, uint8_t metadata_id, bool sorted, uint64_t ticks,
	const struct bytes *payload)
{
	bytes_u8(body, (uint8_t)(0x01 | 0x02 | 0x04 | 0x80 | (sorted ? 0x40 : 0)));
	bytes_u8(body, metadata_id);
	bytes_varuint(body, 0);
	bytes_varuint(body, 7);
	bytes_varuint(body, 0);
	bytes_varuint(body, 7);
	bytes_varuint(body, ticks);
	bytes_varuint(body, payload->len);
	bytes_add(body, payload->data, payload->len);
}

/*
 * Metadata records also have the flag of sorted events, with the time of their writing. Events
 * after them may be older.
 */
static void test_sorted(void **state)
{
	struct bytes b = { 0 };
	struct bytes metadata = { 0 };
	struct bytes body = { 0 };
	const struct bytes nothing = { 0 };
	struct trace trace;
	struct event event;

	(void)state;
	begin_v4(&b);
	bytes_u32(&metadata, 1);
	bytes_utf16z(&metadata, "P", 1, SIZE_MAX);
	bytes_u32(&metadata, 7);
	bytes_utf16z(&metadata, "E", 1, SIZE_MAX);
	bytes_u64(&metadata, 0);
	bytes_u32(&metadata, 0);
	bytes_u32(&metadata, 0);
	bytes_u32(&metadata, 0);
	begin_events_v4(&body);
	add_event_v4(&body, 0, true, 9000, &metadata);
	object(&b, "MetadataBlock", true, &body);
	assert_int_equal(trace_init(&trace), 0);
	struct nettrace_decoder *decoder = nettrace_decoder_new(&trace, "stream", 0);
	assert_non_null(decoder);
	assert_int_equal(nettrace_decoder_push(decoder, b.data, b.len), 0);
	assert_int_equal(nettrace_decoder_next(decoder, &event, NULL), 0);
	assert_int_equal(nettrace_decoder_sorted_ns(decoder), 0);
	size_t pushed = b.len;
	bytes_reset(&body);
	begin_events_v4(&body);
	add_event_v4(&body, 1, true, 2000, &nothing);
	add_event_v4(&body, 1, false, 1000, &nothing);
	object(&b, "EventBlock", true, &body);
	/* A sequence point: no event after it is older. A time in the future is not accepted. */
	bytes_reset(&body);
	bytes_u64(&body, UINT64_C(1) << 60);
	bytes_u32(&body, 0);
	object(&b, "SPBlock", true, &body);
	assert_int_equal(nettrace_decoder_push(decoder, b.data + pushed, b.len - pushed), 0);
	assert_int_equal(nettrace_decoder_next(decoder, &event, NULL), 1);
	assert_int_equal(event.time_ns, 2000);
	assert_int_equal(nettrace_decoder_sorted_ns(decoder), 2000);
	assert_int_equal(nettrace_decoder_next(decoder, &event, NULL), 1);
	assert_int_equal(event.time_ns, 3000); /* times are differences */
	assert_int_equal(nettrace_decoder_next(decoder, &event, NULL), 0);
	assert_int_equal(nettrace_decoder_sorted_ns(decoder), 3000);
	nettrace_decoder_free(decoder);
	trace_done(&trace);
	bytes_done(&metadata);
	bytes_done(&body);
	bytes_done(&b);
}

static void test_runtime_prefixes(void **state)
{
	uint32_t last = 0;
	size_t size;
	uint8_t *data = sample(&size);

	(void)state;
	for (size_t cut = 0; cut < size; cut += cut < 200 || cut + 200 > size ? 1 : 97) {
		struct diag diag = { 0 };
		struct trace trace;
		struct seen seen;
		uint8_t *exact = malloc(cut + 1);
		memcpy(exact, data, cut);
		if (run(exact, cut, cut + 1, 0, &trace, &seen, NULL, &diag) != -EBADMSG)
			fail_msg("cut at %zu of %zu", cut, size);
		assert_non_null(strstr(diag.text, "offset"));
		assert_true(seen.events >= last);
		last = seen.events;
		trace_done(&trace);
		free(exact);
	}
	assert_true(last > 100);
	free(data);
}

static void begin_v6(struct bytes *b)
{
	bytes_add(b, "Nettrace", 8);
	bytes_u32(b, 0);
	bytes_u32(b, 6);
	bytes_u32(b, 0);
	bytes_u32(b, 1u << 24 | 40);
	for (int i = 0; i < 4; i++)
		bytes_u32(b, i == 0 ? 2026 | 11 << 16 : i == 1 ? 21 << 16 : 0);
	bytes_u64(b, 1000);
	bytes_u64(b, 10000000); /* ticks of 100 ns */
	bytes_u32(b, 8);
	bytes_u32(b, 0);
}

static void block(struct bytes *b, unsigned kind, const struct bytes *body)
{
	bytes_u32(b, (uint32_t)body->len | kind << 24);
	bytes_add(b, body->data, body->len);
}

static void add_metadata(struct bytes *b)
{
	struct bytes body = { 0 };

	bytes_u16(&body, 0);
	bytes_u16(&body, 1 + 2 + 1 + 2 + 2 + 2);
	bytes_u8(&body, 1); /* id */
	bytes_u8(&body, 1);
	bytes_u8(&body, 'P');
	bytes_u8(&body, 7);
	bytes_u8(&body, 1);
	bytes_u8(&body, 'E');
	bytes_u16(&body, 0);
	bytes_u16(&body, 0);
	block(b, 3, &body);
	bytes_done(&body);
}

static void add_thread(struct bytes *b, uint8_t row, uint8_t pid, uint8_t tid)
{
	struct bytes body = { 0 };

	bytes_u16(&body, 5);
	bytes_u8(&body, row);
	bytes_u8(&body, 2);
	bytes_u8(&body, pid);
	bytes_u8(&body, 3);
	bytes_u8(&body, tid);
	block(b, 6, &body);
	bytes_done(&body);
}

/*
 * Uncompressed, with both values of the sorted flag: Spoor does not write this, but the format
 * allows it.
 */
static void add_plain_events(struct bytes *b, uint32_t stack)
{
	struct bytes body = { 0 };

	bytes_u16(&body, 24);
	bytes_u16(&body, 0);
	for (int i = 0; i < 5; i++)
		bytes_u32(&body, 0);
	for (uint32_t i = 0; i < 2; i++) {
		bytes_u32(&body, 48 + 3);
		bytes_u32(&body, 1u | i << 31);
		bytes_u32(&body, i ? 6 : 1); /* four are missing */
		bytes_u64(&body, 0);
		bytes_u64(&body, 0);
		bytes_u32(&body, 3);
		bytes_u32(&body, stack);
		bytes_u64(&body, 2000 + i);
		bytes_u32(&body, 0);
		bytes_u32(&body, 3);
		bytes_add(&body, "abc", 3);
	}
	block(b, 2, &body);
	bytes_done(&body);
}

static void add_stack(struct bytes *b, uint32_t id)
{
	struct bytes body = { 0 };

	bytes_u32(&body, id);
	bytes_u32(&body, 1);
	bytes_u32(&body, 16);
	bytes_u64(&body, 0x1000);
	bytes_u64(&body, 0x2000);
	block(b, 5, &body);
	bytes_done(&body);
}

static void test_other_writers(void **state)
{
	struct diag diag = { 0 };
	struct bytes b = { 0 };
	struct bytes unknown = { 0 };
	struct trace trace;
	struct input in;
	struct source *source;
	struct event event;

	(void)state;
	begin_v6(&b);
	bytes_text(&unknown, "of a kind that we don't know");
	block(&b, 99, &unknown);
	add_metadata(&b);
	add_thread(&b, 0, 9, 11);
	add_stack(&b, 70000);
	add_stack(&b, 5);
	add_plain_events(&b, 5);
	bytes_u32(&b, 0);
	bytes_text(&b, "never read");
	assert_true(nettrace_source.probe(b.data, b.len));
	assert_int_equal(trace_init(&trace), 0);
	input_from_memory(&in, b.data, b.len);
	assert_int_equal(nettrace_source.open(&in, &trace, true, &source, &diag), 0);
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t count;
		assert_int_equal(nettrace_source.next(source, &event, &diag), 1);
		assert_int_equal(event.time_ns, (2000 + i) * 100);
		assert_int_equal(event.lost_before, i ? 4 : 0);
		assert_int_equal(event.cpu, 3);
		assert_int_equal(event.payload_size, 3);
		assert_int_equal(trace.threads.items[event.thread_index].tid, 11);
		const uint64_t *frames = stack_table_get(&trace.stacks, event.stack_index, &count);
		assert_int_equal(count, 2);
		assert_int_equal(frames[1], 0x2000);
	}
	assert_int_equal(nettrace_source.next(source, &event, &diag), 0);
	assert_int_equal(trace.recording.sync_ns, 100000);
	/* date -u -d '2026-11-21' +%s */
	assert_int_equal(trace.recording.utc_ns, UINT64_C(1795219200000000000));
	nettrace_source.close(source);
	trace_done(&trace);
	bytes_done(&unknown);
	bytes_done(&b);
}

/* One field: an array of objects with an array of arrays in each. */
static void add_array_metadata(struct bytes *b)
{
	static const uint8_t fields[] = { 1, 0, 22, 0, 1, 'L', FIELD_ARRAY, FIELD_OBJECT, 2, 0, 3,
		0, 1, 'A', FIELD_U8, 9, 0, 1, 'B', FIELD_ARRAY, FIELD_FIXED_ARRAY, FIELD_U16, 3, 0,
		0, 0 };
	struct bytes body = { 0 };

	bytes_u16(&body, 0);
	bytes_u16(&body, (uint16_t)(1 + 2 + 1 + 2 + sizeof(fields) + 2));
	bytes_u8(&body, 1); /* id */
	bytes_u8(&body, 1);
	bytes_u8(&body, 'P');
	bytes_u8(&body, 7);
	bytes_u8(&body, 1);
	bytes_u8(&body, 'E');
	bytes_add(&body, fields, sizeof(fields));
	bytes_u16(&body, 0);
	block(b, 3, &body);
	bytes_done(&body);
}

/*
 * List 1: an activity, opcode 2, keywords 8, a trace id, a span id, a text, our own late_ns, a
 * number, level 5, version 3. List 2: a text.
 */
static void add_label_lists(struct bytes *b)
{
	struct bytes body = { 0 };

	bytes_u32(&body, 1);
	bytes_u32(&body, 2);
	bytes_u8(&body, 1);
	for (uint8_t i = 0; i < 16; i++)
		bytes_u8(&body, i);
	bytes_u8(&body, 7);
	bytes_u8(&body, 2);
	bytes_u8(&body, 8);
	bytes_u64(&body, 8);
	bytes_text(&body, "\x03"
			  "0123456789abcdef");
	bytes_u8(&body, 4);
	bytes_u64(&body, UINT64_C(0xf067aa0ba902b7));
	bytes_text(&body, "\x05\x04"
			  "City"
			  "\x04"
			  "Rome");
	bytes_text(&body, "\x06\x07"
			  "late_ns");
	bytes_varint(&body, 77);
	bytes_text(&body, "\x06\x05"
			  "Retry");
	bytes_varint(&body, -3);
	bytes_u8(&body, 9);
	bytes_u8(&body, 5);
	bytes_u8(&body, 10 | 0x80);
	bytes_u8(&body, 3);
	bytes_text(&body, "\x85\x04"
			  "City"
			  "\x04"
			  "Oslo");
	block(b, 8, &body);
	bytes_done(&body);
}

static void expect_text_label(struct cursor *c, const char *key, const char *text)
{
	struct event_label label;

	assert_true(event_label_next(c, &label));
	assert_int_equal(label.kind, LABEL_TEXT);
	assert_int_equal(label.key_len, strlen(key));
	assert_memory_equal(label.key, key, label.key_len);
	assert_int_equal(label.text_len, strlen(text));
	assert_memory_equal(label.text, text, label.text_len);
}

static void test_labels_and_arrays(void **state)
{
	struct bytes b = { 0 };
	struct bytes body = { 0 };
	struct trace trace;
	struct event event;

	(void)state;
	begin_v6(&b);
	add_array_metadata(&b);
	add_thread(&b, 0, 9, 11);
	add_label_lists(&b);
	begin_events_v4(&body); /* the same header */
	bytes_u8(&body, 0x01 | 0x10);
	bytes_varuint(&body, 1);
	bytes_varuint(&body, 2000);
	bytes_varuint(&body, 1);
	bytes_u8(&body, 0x10);
	bytes_varuint(&body, 1);
	bytes_varuint(&body, 2);
	bytes_u8(&body, 0x10);
	bytes_varuint(&body, 1);
	bytes_varuint(&body, 0);
	block(&b, 2, &body);
	assert_int_equal(trace_init(&trace), 0);
	struct nettrace_decoder *decoder = nettrace_decoder_new(&trace, "stream", 0);
	assert_non_null(decoder);
	assert_int_equal(nettrace_decoder_push(decoder, b.data, b.len), 0);
	assert_int_equal(nettrace_decoder_next(decoder, &event, NULL), 1);
	assert_non_null(event.labels);
	assert_int_equal(event.labels->which, EVENT_LABEL_OPCODE | EVENT_LABEL_KEYWORDS |
						      EVENT_LABEL_LEVEL | EVENT_LABEL_VERSION);
	assert_int_equal(event.labels->opcode, 2);
	assert_int_equal(event.labels->keywords, 8);
	assert_int_equal(event.labels->level, 5);
	assert_int_equal(event.labels->version, 3);
	assert_non_null(event.activity);
	assert_int_equal(event.activity[15], 15);
	assert_int_equal(event.late_ns, 77);
	struct cursor c = cursor_of(event.labels->list, event.labels->list_size);
	struct event_label label;
	assert_true(event_label_next(&c, &label));
	assert_int_equal(label.kind, LABEL_TRACE_ID);
	assert_memory_equal(label.trace_id, "0123456789abcdef", 16);
	assert_true(event_label_next(&c, &label));
	assert_int_equal(label.kind, LABEL_SPAN_ID);
	assert_int_equal(label.span_id, 0xf067aa0ba902b7);
	expect_text_label(&c, "City", "Rome");
	assert_true(event_label_next(&c, &label));
	assert_int_equal(label.kind, LABEL_NUMBER);
	assert_int_equal(label.key_len, 5);
	assert_int_equal(label.number, -3);
	assert_false(event_label_next(&c, &label));
	const struct schema *schema = &trace.schemas.items[event.schema_index];
	assert_int_equal(schema->fields.count, 4);
	assert_int_equal(schema->fields.items[0].element, FIELD_OBJECT);
	assert_int_equal(schema->fields.items[2].element, FIELD_FIXED_ARRAY);
	assert_int_equal(schema->fields.items[2].depth, 1);
	assert_int_equal(schema->fields.items[3].type, FIELD_FIXED_ARRAY);
	assert_int_equal(schema->fields.items[3].element, FIELD_U16);
	assert_int_equal(schema->fields.items[3].depth, 2);
	assert_int_equal(schema->fields.items[3].count, 3);
	assert_int_equal(nettrace_decoder_next(decoder, &event, NULL), 1);
	assert_non_null(event.labels);
	assert_int_equal(event.labels->which, 0);
	c = cursor_of(event.labels->list, event.labels->list_size);
	expect_text_label(&c, "City", "Oslo");
	assert_false(event_label_next(&c, &label));
	assert_int_equal(event.late_ns, 0);
	assert_int_equal(nettrace_decoder_next(decoder, &event, NULL), 1);
	assert_null(event.labels);
	nettrace_decoder_free(decoder);
	trace_done(&trace);
	bytes_done(&body);
	bytes_done(&b);
}

static void expect_broken(struct bytes *b, const char *text)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct seen seen;

	assert_int_equal(run(b->data, b->len, b->len, 0, &trace, &seen, NULL, &diag), -EBADMSG);
	if (!strstr(diag.text, text))
		fail_msg("'%s' lacks '%s'", diag.text, text);
	trace_done(&trace);
	bytes_done(b);
}

static void test_broken(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	bytes_text(&b, "PK\003\004 not ours");
	expect_broken(&b, "beyond offset 0: it does not begin as a nettrace file does");

	bytes_text(&b, "Nettrace");
	bytes_u32(&b, 0);
	bytes_u32(&b, 7);
	bytes_u32(&b, 0);
	expect_broken(&b, "version 7");

	begin_v6(&b);
	add_thread(&b, 0, 9, 11);
	add_plain_events(&b, 0);
	expect_broken(&b, "metadata id 1, which is not defined");

	begin_v6(&b);
	add_metadata(&b);
	add_plain_events(&b, 0);
	expect_broken(&b, "row 0, which is not defined");

	begin_v6(&b);
	add_thread(&b, 0, 9, 11);
	add_thread(&b, 0, 9, 11);
	expect_broken(&b, "thread row 0 is given twice");

	begin_v6(&b);
	add_stack(&b, 5);
	add_stack(&b, 5);
	expect_broken(&b, "given twice");

	begin_v6(&b);
	begin_v6(&b);
	expect_broken(&b, "it ends");

	begin_v6(&b);
	bytes_u32(&b, 5u << 24 | 8);
	bytes_u32(&b, 1);
	bytes_u32(&b, 0xffffffff);
	expect_broken(&b, "too short");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runtime_stream),
		cmocka_unit_test(test_sorted),
		cmocka_unit_test(test_runtime_prefixes),
		cmocka_unit_test(test_other_writers),
		cmocka_unit_test(test_labels_and_arrays),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests_name("nettrace_read", tests, NULL, NULL);
}
