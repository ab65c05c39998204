/*
 * See xctrace_read.h. An element with an `id` may be meant again by an element of the same name with
 * `ref`: all that have one are kept in `things`. Elements that say nothing of samples are passed
 * over.
 */
#include "formats/xctrace_read.h"

#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/map.h"
#include "base/vec.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define PARSE_BYTES 65536u
#define DEPTH_MAX   32u
#define TEXT_MAX    4096u
#define FRAMES_MAX  1024u /* of a stack */
#define THINGS_MAX  (64u << 20)

enum xml_kind {
	XML_OTHER,
	XML_ROW,
	XML_TIME,
	XML_THREAD,
	XML_TID,
	XML_PROCESS,
	XML_PID,
	XML_CORE,
	XML_WEIGHT,
	XML_STACK,
	XML_FRAME,
	XML_BINARY,
};

static const struct {
	const char *name;
	enum xml_kind kind;
} xml_names[] = {
	{ "row", XML_ROW },
	{ "sample-time", XML_TIME },
	{ "thread", XML_THREAD },
	{ "tid", XML_TID },
	{ "process", XML_PROCESS },
	{ "pid", XML_PID },
	{ "core", XML_CORE },
	{ "weight", XML_WEIGHT },
	{ "backtrace", XML_STACK },
	{ "frame", XML_FRAME },
	{ "binary", XML_BINARY },
};

/* An element with all that it says; which members count depends on its kind. */
struct thing {
	uint8_t kind;    /* enum xml_kind */
	uint32_t name;   /* strtab: of a frame (0: none), a process, a thread; a binary's path */
	uint32_t unique; /* strtab: a binary's UUID in lower-case hexadecimal, or 0 */
	uint32_t image;  /* of a frame: its binary in `things`, or 0 */
	uint32_t pid;
	uint64_t value; /* a number; a frame's address; a binary's load address; a thread's tid */
	uint32_t first; /* of a stack: in `stack_frames` */
	uint32_t count;
};

struct open_element {
	struct thing thing;
	uint64_t id;        /* 0: none */
	uint32_t reference; /* in `things`; 0: it is no reference */
};

struct xctrace_row {
	uint64_t time_ns;
	uint64_t weight_ns;
	uint32_t pid;
	uint32_t tid;
	uint32_t thread_name;
	uint32_t process_name;
	uint32_t first; /* in `row_frames` */
	uint32_t count;
	int32_t cpu;
};

/* What callers have as an opaque struct source. */
struct xctrace_reader {
	struct input in;
	struct trace *trace;
	XML_Parser parser;
	int error;
	bool ended;
	unsigned depth;
	struct open_element open[DEPTH_MAX];
	char text[TEXT_MAX];
	size_t text_size;
	VEC(struct thing) things; /* item 0 unused */
	struct map by_id;         /* id and kind -> index in things */
	VEC(uint32_t) stack_frames;
	VEC(uint32_t) frames;         /* of the stack that is open: things */
	struct xctrace_row row;       /* that is open */
	VEC(struct xctrace_row) rows; /* complete, up to `row_next` returned */
	VEC(uint32_t) row_frames;
	size_t row_next;
	struct map mappings; /* process and binary -> index in trace.mappings */
	struct map symbols;  /* process, address and name -> 1 */
	struct bytes payload;
	uint64_t carried_ns;
	uint64_t sorted_ns;
};

static uint64_t id_key(uint64_t id, uint8_t kind)
{
	return hash_u64(id * 16 + kind);
}

static void fail(struct xctrace_reader *s, int error)
{
	if (!s->error)
		s->error = error;
	(void)XML_StopParser(s->parser, XML_FALSE);
}

/* ---- Values ---- */

/* "0x1a2b" and "42" */
static uint64_t number_of(const char *text)
{
	return strtoull(text, NULL, 0);
}

static uint32_t text_index(struct xctrace_reader *s, const char *text, size_t size)
{
	uint32_t index = size ? strtab_add(&s->trace->strings, text, size) : 0;

	if (size && !index)
		fail(s, -ENOMEM);
	return index;
}

/* The text before the last `mark`, as "Main Thread" of "Main Thread 0x12aa (shop, pid: 581)". */
static uint32_t text_before(struct xctrace_reader *s, const char *text, const char *mark)
{
	size_t size = strlen(text);

	for (const char *at = strstr(text, mark); at; at = strstr(at + 1, mark))
		size = (size_t)(at - text);
	return text_index(s, text, size);
}

static uint32_t hex_index(struct xctrace_reader *s, const char *text)
{
	char hex[33];
	size_t size = 0;

	for (; *text && size < sizeof(hex) - 1; text++) {
		if (*text >= 'A' && *text <= 'F')
			hex[size++] = (char)(*text - 'A' + 'a');
		else if ((*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'f'))
			hex[size++] = *text;
		else if (*text != '-')
			return 0;
	}
	return text_index(s, hex, size);
}

/* ---- Elements ---- */

static void attributes_read(struct xctrace_reader *s, struct open_element *element,
	const char **attributes)
{
	struct thing *thing = &element->thing;

	for (; *attributes; attributes += 2) {
		const char *name = attributes[0], *value = attributes[1];
		if (strcmp(name, "id") == 0) {
			element->id = number_of(value);
		} else if (strcmp(name, "ref") == 0) {
			struct map_walk w =
				map_find(&s->by_id, id_key(number_of(value), thing->kind));
			for (; w.value; map_next(&w))
				if (s->things.items[w.value].kind == thing->kind)
					break;
			element->reference = w.value;
		} else if (thing->kind == XML_FRAME && strcmp(name, "addr") == 0) {
			thing->value = number_of(value);
		} else if (thing->kind == XML_FRAME && strcmp(name, "name") == 0) {
			/* A frame without a name has its address as name. */
			bool is_name = strncmp(value, "0x", 2) != 0 &&
				       strcmp(value, "<deduplicated_symbol>") != 0;
			thing->name = is_name ? text_index(s, value, strlen(value)) : 0;
		} else if (thing->kind == XML_BINARY && strcmp(name, "load-addr") == 0) {
			thing->value = number_of(value);
		} else if (thing->kind == XML_BINARY && strcmp(name, "UUID") == 0) {
			thing->unique = hex_index(s, value);
		} else if (thing->kind == XML_BINARY &&
			   (strcmp(name, "path") == 0 ||
				   (strcmp(name, "name") == 0 && !thing->name))) {
			thing->name = text_index(s, value, strlen(value));
		} else if (thing->kind == XML_THREAD && strcmp(name, "fmt") == 0) {
			thing->name = text_before(s, value, " 0x");
		} else if (thing->kind == XML_PROCESS && strcmp(name, "fmt") == 0) {
			thing->name = text_before(s, value, " (");
		}
	}
}

static void XMLCALL element_begin(void *context, const char *name, const char **attributes)
{
	struct xctrace_reader *s = context;
	enum xml_kind kind = XML_OTHER;

	if (s->error)
		return;
	if (s->depth == DEPTH_MAX) {
		fail(s, -EBADMSG);
		return;
	}
	for (size_t i = 0; i < sizeof(xml_names) / sizeof(xml_names[0]); i++)
		if (strcmp(name, xml_names[i].name) == 0)
			kind = xml_names[i].kind;
	struct open_element *element = &s->open[s->depth++];
	*element = (struct open_element){ .thing = { .kind = (uint8_t)kind } };
	if (kind == XML_OTHER)
		return;
	attributes_read(s, element, attributes);
	s->text_size = 0;
	if (kind == XML_ROW)
		s->row = (struct xctrace_row){ .first = (uint32_t)s->row_frames.count,
			.cpu = EVENT_CPU_UNKNOWN };
	else if (kind == XML_STACK)
		s->frames.count = 0;
}

static void XMLCALL element_text(void *context, const char *text, int size)
{
	struct xctrace_reader *s = context;
	const size_t room = TEXT_MAX - 1 - s->text_size;
	const size_t taken = (size_t)size < room ? (size_t)size : room;

	memcpy(s->text + s->text_size, text, taken);
	s->text_size += taken;
}

static void keep_stack(struct xctrace_reader *s, struct thing *thing)
{
	thing->first = (uint32_t)s->stack_frames.count;
	thing->count = (uint32_t)s->frames.count;
	vec_each(frame, &s->frames)
		if (!vec_add(&s->stack_frames, *frame))
			fail(s, -ENOMEM);
}

/* The element's place in `things`: kept if it can be meant again, or is part of another one. */
static uint32_t keep(struct xctrace_reader *s, const struct open_element *element)
{
	if (element->reference)
		return element->reference;
	if (s->things.count >= THINGS_MAX) {
		fail(s, -EFBIG);
		return 0;
	}
	const uint32_t index = (uint32_t)s->things.count;
	if (!vec_add(&s->things, element->thing) ||
		(element->id &&
			!map_add(&s->by_id, id_key(element->id, element->thing.kind), index))) {
		fail(s, -ENOMEM);
		return 0;
	}
	return index;
}

static void add_to_parent(struct xctrace_reader *s, const struct thing *thing, uint32_t index,
	struct thing *parent)
{
	if (parent->kind == XML_STACK && thing->kind == XML_FRAME) {
		if (s->frames.count < FRAMES_MAX && !vec_add(&s->frames, index))
			fail(s, -ENOMEM);
	} else if (parent->kind == XML_FRAME && thing->kind == XML_BINARY) {
		parent->image = index;
	} else if (parent->kind == XML_THREAD && thing->kind == XML_TID) {
		parent->value = thing->value;
	} else if (parent->kind == XML_THREAD && thing->kind == XML_PROCESS) {
		parent->pid = thing->pid;
		parent->unique = thing->name; /* of a thread: the name of its process */
	} else if (parent->kind == XML_PROCESS && thing->kind == XML_PID) {
		parent->pid = (uint32_t)thing->value;
	}
}

static void add_to_row(struct xctrace_reader *s, const struct thing *thing)
{
	switch ((enum xml_kind)thing->kind) {
	case XML_TIME:
		s->row.time_ns = thing->value;
		break;
	case XML_WEIGHT:
		s->row.weight_ns = thing->value;
		break;
	case XML_CORE:
		s->row.cpu = thing->value < INT32_MAX ? (int32_t)thing->value : EVENT_CPU_UNKNOWN;
		break;
	case XML_THREAD:
		s->row.pid = thing->pid;
		s->row.tid = (uint32_t)thing->value;
		s->row.thread_name = thing->name;
		s->row.process_name = thing->unique;
		break;
	case XML_STACK:
		if (s->row.count)
			break;
		s->row.count = thing->count;
		for (uint32_t i = 0; i < thing->count; i++)
			if (!vec_add(&s->row_frames, s->stack_frames.items[thing->first + i]))
				fail(s, -ENOMEM);
		break;
	default:
		break;
	}
}

static bool is_in_row(const struct xctrace_reader *s)
{
	for (unsigned i = 0; i < s->depth; i++)
		if (s->open[i].thing.kind == XML_ROW)
			return true;
	return false;
}

static void XMLCALL element_end(void *context, const char *name)
{
	struct xctrace_reader *s = context;

	(void)name;
	if (s->error || !s->depth)
		return;
	struct open_element *element = &s->open[--s->depth];
	const enum xml_kind kind = element->thing.kind;
	if (kind == XML_OTHER)
		return;
	s->text[s->text_size] = '\0';
	if (kind == XML_TIME || kind == XML_TID || kind == XML_PID || kind == XML_CORE ||
		kind == XML_WEIGHT)
		element->thing.value = number_of(s->text);
	if (kind == XML_ROW) {
		/* A row without a thread is of another table. */
		if (s->row.tid && !vec_add(&s->rows, s->row))
			fail(s, -ENOMEM);
		s->row.count = 0;
		return;
	}
	if (kind == XML_STACK && !element->reference)
		keep_stack(s, &element->thing);
	const uint32_t index = keep(s, element);
	if (!index)
		return;
	const struct thing kept = s->things.items[index];
	if (s->depth)
		add_to_parent(s, &kept, index, &s->open[s->depth - 1].thing);
	if (is_in_row(s))
		add_to_row(s, &kept);
	s->text_size = 0;
}

/* An export has no entities: none is expanded. */
static void XMLCALL entity_declared(void *context, const char *name, int is_parameter,
	const char *value, int value_size, const char *base, const char *system, const char *public,
	const char *notation)
{
	(void)name, (void)is_parameter, (void)value, (void)value_size, (void)base, (void)system;
	(void)public, (void)notation;
	fail(context, -EBADMSG);
}

/* ---- Tables of the trace ---- */

/* The mapping of an image in a process, which grows to hold the address. */
static int map_image(struct xctrace_reader *s, uint32_t process, uint32_t image, uint64_t address,
	uint32_t *ret_mapping)
{
	struct trace *trace = s->trace;
	const struct thing *binary = &s->things.items[image];
	const uint64_t key = (uint64_t)process << 32 | image;
	uint32_t index = map_get(&s->mappings, key);

	if (!index) {
		index = trace_add_mapping(trace, process);
		if (!index || !map_put(&s->mappings, key, index))
			return -ENOMEM;
		trace->mappings.items[index].begin = binary->value;
		trace->mappings.items[index].end = binary->value + 1;
		trace->mappings.items[index].id = index;
		trace->mappings.items[index].path = binary->name;
		trace->mappings.items[index].build_id = binary->unique;
	}
	struct mapping *mapping = &trace->mappings.items[index];
	if (address >= mapping->begin && address >= mapping->end && address < UINT64_MAX)
		mapping->end = address + 1;
	*ret_mapping = index;
	return 0;
}

/* The file has a name for each address, and no bounds of functions. */
static int name_address(struct xctrace_reader *s, uint32_t process, const struct thing *frame)
{
	const uint64_t key =
		hash_u64(frame->value ^ hash_u64((uint64_t)process << 32 | frame->name));
	struct symbol symbol = {
		.begin = frame->value, .end = frame->value + 1, .name = frame->name
	};
	uint32_t mapping = 0;

	if (!frame->image || frame->value == UINT64_MAX)
		return 0;
	int r = map_image(s, process, frame->image, frame->value, &mapping);
	if (r < 0 || !frame->name || map_get(&s->symbols, key))
		return r;
	/* The caller's address is looked up one byte lower. */
	if (symbol.begin)
		symbol.begin--;
	symbol.mapping_id = s->trace->mappings.items[mapping].id;
	return vec_add(&s->trace->symbols, symbol) && map_put(&s->symbols, key, 1) ? 0 : -ENOMEM;
}

static int stack_of(struct xctrace_reader *s, const struct xctrace_row *row, uint32_t process,
	uint32_t *ret_stack)
{
	uint64_t addresses[FRAMES_MAX];
	uint32_t count = 0;

	for (uint32_t i = 0; i < row->count; i++) {
		const struct thing frame = s->things.items[s->row_frames.items[row->first + i]];
		int r = name_address(s, process, &frame);
		if (r < 0)
			return r;
		addresses[count++] = frame.value;
	}
	*ret_stack = stack_table_intern(&s->trace->stacks, addresses, count);
	return 0;
}

static int row_event(struct xctrace_reader *s, const struct xctrace_row *row,
	struct event *ret_event)
{
	struct trace *trace = s->trace;
	const uint32_t thread = trace_thread(trace, row->pid, row->tid);
	const uint32_t schema = trace_known_schema(trace, EVENTS_CPU);
	uint32_t stack = 0;

	if (!thread || !schema)
		return -ENOMEM;
	const uint32_t process = trace->threads.items[thread].process;
	if (!trace->threads.items[thread].name)
		trace->threads.items[thread].name = row->thread_name;
	if (!trace->processes.items[process].name)
		trace->processes.items[process].name = row->process_name;
	int r = stack_of(s, row, process, &stack);
	if (r < 0)
		return r;
	s->carried_ns += row->weight_ns;
	const struct payload_cpu cpu = {
		.value = s->carried_ns / 1000000, .weight_ns = row->weight_ns, .count = 1
	};
	s->carried_ns %= 1000000;
	s->payload.len = 0;
	payload_cpu(&s->payload, &cpu, 0);
	if (s->payload.failed)
		return -ENOMEM;
	/* A time of 0 would be none. */
	*ret_event = (struct event){ .time_ns = row->time_ns + 1,
		.value = row->weight_ns,
		.payload = s->payload.data,
		.payload_size = (uint32_t)s->payload.len,
		.thread_index = thread,
		.stack_index = stack,
		.schema_index = schema,
		.cpu = row->cpu,
		.kind = EVENT_SAMPLE };
	if (!trace->recording.sync_ns)
		trace->recording.sync_ns = 1;
	if (ret_event->time_ns > trace->recording.end_ns)
		trace->recording.end_ns = ret_event->time_ns;
	s->sorted_ns = ret_event->time_ns;
	return 1;
}

/* ---- The source ---- */

static int xctrace_open(struct input *in, struct trace *trace, bool stacks,
	struct source **ret_source, struct diag *diag)
{
	(void)stacks;
	return xctrace_source_open(in, trace, ret_source, diag);
}

static void xctrace_close(struct source *source)
{
	struct xctrace_reader *s = (struct xctrace_reader *)(void *)source;

	input_close(&s->in);
	if (s->parser)
		XML_ParserFree(s->parser);
	vec_done(&s->things);
	vec_done(&s->stack_frames);
	vec_done(&s->frames);
	vec_done(&s->rows);
	vec_done(&s->row_frames);
	map_done(&s->by_id);
	map_done(&s->mappings);
	map_done(&s->symbols);
	bytes_done(&s->payload);
	free(s);
}

int xctrace_source_open(struct input *in, struct trace *trace, struct source **ret_source,
	struct diag *diag)
{
	struct xctrace_reader *s = calloc(1, sizeof(*s));

	if (!s || !(s->parser = XML_ParserCreate(NULL)) ||
		!vec_add(&s->things, (struct thing){ 0 })) {
		if (s && s->parser)
			XML_ParserFree(s->parser);
		free(s);
		return diag_set(diag, -ENOMEM, "cannot read '%s': %m",
			in->name ? in->name : "memory");
	}
	s->in = *in;
	s->trace = trace;
	XML_SetUserData(s->parser, s);
	XML_SetElementHandler(s->parser, element_begin, element_end);
	XML_SetCharacterDataHandler(s->parser, element_text);
	XML_SetEntityDeclHandler(s->parser, entity_declared);
	*ret_source = (struct source *)(void *)s;
	return 0;
}

/* Forgets the rows that were returned. The frames of a row that is open stay. */
static void drop_rows(struct xctrace_reader *s)
{
	const uint32_t kept = s->row.count;

	if (kept)
		memmove(s->row_frames.items, &s->row_frames.items[s->row.first],
			kept * sizeof(*s->row_frames.items));
	s->row.first = 0;
	s->row_frames.count = kept;
	s->rows.count = 0;
	s->row_next = 0;
}

/* Parses until there is a row, or the file ends. */
static int parse_more(struct xctrace_reader *s, struct diag *diag)
{
	drop_rows(s);
	while (!s->rows.count && !s->ended) {
		void *buffer = XML_GetBuffer(s->parser, (int)PARSE_BYTES);
		if (!buffer)
			return -ENOMEM;
		ssize_t size = input_read(&s->in, buffer, PARSE_BYTES, diag);
		if (size < 0)
			return (int)size;
		s->ended = size == 0;
		if (XML_ParseBuffer(s->parser, (int)size, s->ended) != XML_STATUS_OK)
			return s->error ? s->error : -EBADMSG;
	}
	return s->error;
}

static int xctrace_next(struct source *source, struct event *ret_event, struct diag *diag)
{
	struct xctrace_reader *s = (struct xctrace_reader *)(void *)source;
	const char *name = s->in.name ? s->in.name : "memory";
	int r = 0;

	if (s->row_next == s->rows.count)
		r = parse_more(s, diag);
	if (r == 0 && s->row_next == s->rows.count)
		return 0;
	if (r == 0)
		r = row_event(s, &s->rows.items[s->row_next++], ret_event);
	if (r < 0) {
		const unsigned long line = XML_GetCurrentLineNumber(s->parser);
		s->ended = true;
		s->rows.count = 0;
		s->row_next = 0;
		if (r == -EBADMSG)
			diag_set(diag, r, "'%s' is damaged, or no export of xctrace: line %lu",
				name, line);
		else if (r == -EFBIG)
			diag_set(diag, r, "'%s' has too many elements: line %lu", name, line);
		else if (!diag->error)
			diag_set(diag, r, "cannot read '%s': %m", name);
	}
	return r;
}

static uint64_t xctrace_sorted_ns(const struct source *source)
{
	(void)source;
	return 0;
}

static uint64_t xctrace_lost(const struct source *source)
{
	(void)source;
	return 0;
}

static bool xctrace_probe(const uint8_t *head, size_t len)
{
	static const char mark[] = "<trace-query-result";

	return memmem(head, len, mark, sizeof(mark) - 1) != NULL;
}

const struct source_ops xctrace_source = {
	.name = "xctrace",
	.probe = xctrace_probe,
	.open = xctrace_open,
	.next = xctrace_next,
	.sorted_ns = xctrace_sorted_ns,
	.lost = xctrace_lost,
	.close = xctrace_close,
};
