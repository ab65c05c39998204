/* See gcdump_read.h. The layout is drawn in docs/formats/gcdump.md. */
#include "formats/gcdump_read.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/text.h"
#include "formats/gcdump_tag.h"
#include "formats/gcdump_write.h"
#include "trace/heap_graph.h"

#define TEXT_UNITS_MAX (1u << 24) /* the log of PerfView's collector can take megabytes */
#define TYPES_MAX      (1u << 22)
#define NAMELESS       "UNKNOWN 0x"

struct file {
	struct cursor c;
	const uint8_t *begin;
	const char *name;
	struct diag *diag;
	struct bytes text;
};

static int broken(struct file *f, const char *what)
{
	return diag_set(f->diag, -EBADMSG, "cannot read '%s': %s at offset %zu", f->name, what,
		(size_t)(f->c.at - f->begin));
}

/* Into f->text: a count of UTF-16 units, then one to three bytes each; surrogates are combined. */
static bool take_text(struct file *f)
{
	uint32_t units = cursor_u32(&f->c);
	uint8_t pair[4];
	size_t pending = 0; /* bytes of `pair` in use */

	bytes_reset(&f->text);
	if (units == UINT32_MAX)
		return true; /* no text */
	if (units > TEXT_UNITS_MAX || units > cursor_left(&f->c))
		f->c.short_read = true;
	for (uint32_t i = 0; i < units && !f->c.short_read; i++) {
		uint32_t unit = cursor_u8(&f->c);
		if (unit >= 0xe0) {
			unit = (unit & 0x0f) << 12 | (uint32_t)(cursor_u8(&f->c) & 0x3f) << 6;
			unit |= cursor_u8(&f->c) & 0x3f;
		} else if (unit >= 0xc0) {
			unit = (unit & 0x1f) << 6 | (cursor_u8(&f->c) & 0x3f);
		}
		bool low = unit >= 0xdc00 && unit < 0xe000;
		if (pending && !low) { /* half of a pair */
			text_add_utf16(&f->text, pair, 1);
			pending = 0;
		}
		pair[pending++] = (uint8_t)unit;
		pair[pending++] = (uint8_t)(unit >> 8);
		if (unit >= 0xd800 && unit < 0xdc00)
			continue;
		text_add_utf16(&f->text, pair, pending / 2);
		pending = 0;
	}
	if (pending)
		text_add_utf16(&f->text, pair, 1);
	return !f->c.short_read;
}

static bool text_is(struct file *f, const char *text)
{
	return take_text(f) && strcmp(bytes_z(&f->text), text) == 0;
}

/* The type of the object that begins here: a definition, or a reference to an earlier one. */
static bool begin_type(struct file *f, const char *type)
{
	uint8_t tag = cursor_u8(&f->c);

	if (tag == GCDUMP_REFERENCE) {
		cursor_skip(&f->c, 4);
		return !f->c.short_read;
	}
	if (tag != GCDUMP_BEGIN_OBJECT || cursor_u8(&f->c) != GCDUMP_NULL)
		return false;
	cursor_skip(&f->c, 8); /* versions */
	return text_is(f, type) && cursor_u8(&f->c) == GCDUMP_END_OBJECT;
}

static bool begin_object(struct file *f, const char *type)
{
	return cursor_u8(&f->c) == GCDUMP_BEGIN_OBJECT && begin_type(f, type);
}

/* A signed number in groups of 7 bits, the highest first. */
static int64_t take_compressed(struct cursor *c)
{
	uint8_t byte = cursor_u8(c);
	int64_t value = byte & 0x40 ? (int64_t)(byte & 0x7f) - 0x80 : byte & 0x7f;

	for (unsigned i = 0; i < 4 && byte & 0x80; i++) {
		byte = cursor_u8(c);
		value = value * 128 + (byte & 0x7f);
	}
	if (byte & 0x80)
		c->short_read = true;
	return value;
}

static int take_types(struct file *f, struct heap_graph *graph, uint32_t **ret_sizes,
	uint32_t *ret_count)
{
	uint32_t count = cursor_u32(&f->c);
	uint32_t *sizes = count && count <= TYPES_MAX ? calloc(count, sizeof(*sizes)) : NULL;

	if (!sizes)
		return count && count <= TYPES_MAX ? -ENOMEM
						   : broken(f, "an impossible number of types");
	*ret_sizes = sizes;
	*ret_count = count;
	for (uint32_t i = 0; i < count; i++) {
		if (!take_text(f))
			return broken(f, "a type that ends too early");
		/* Only objects that are referred to but not described have type 0, UNDEFINED. */
		struct heap_type *type = vec_push(&graph->types);
		if (!type)
			return -ENOMEM;
		type->name = strtab_add(&graph->strings, (const char *)f->text.data, f->text.len);
		if (f->text.len && f->text.data[0] == '[')
			type->flags = HEAP_TYPE_ROOT;
		sizes[i] = cursor_u32(&f->c);
		if (!take_text(f))
			return broken(f, "a type that ends too early");
		type = vec_last(&graph->types);
		type->module = strtab_add(&graph->strings, (const char *)f->text.data, f->text.len);
	}
	return 0;
}

struct nodes {
	const uint8_t *offsets; /* 4 bytes each */
	const uint8_t *blob;
	size_t blob_size;
	const uint8_t *addresses; /* 8 bytes each */
	const uint32_t *type_sizes;
	uint32_t type_count;
	uint32_t count;
};

static int take_node(struct file *f, struct heap_graph *graph, const struct nodes *nodes,
	uint32_t index)
{
	struct cursor offset = cursor_of(nodes->offsets + 4 * (size_t)index, 4);
	struct cursor address = cursor_of(nodes->addresses + 8 * (size_t)index, 8);
	uint32_t at = cursor_u32(&offset);

	if (at > nodes->blob_size)
		return broken(f, "a node outside the blob");
	struct cursor c = cursor_of(nodes->blob + at, nodes->blob_size - at);
	int64_t head = take_compressed(&c);
	uint32_t type = (uint32_t)(head >> 1);
	if (head < 0 || head >> 1 >= nodes->type_count)
		return broken(f, "a node of a type that is not there");
	int64_t size = head & 1 ? take_compressed(&c) : nodes->type_sizes[type];
	int64_t children = take_compressed(&c);
	if (c.short_read || size < 0 || children < 0 || (uint64_t)children > cursor_left(&c))
		return broken(f, "a node that is torn");
	/* Referred to but not described, it has only an address and is no object. */
	bool seen = type || size;
	/* Item 0 of our types is unused; roots have no address. */
	int error = heap_graph_add_resolved(graph, seen ? cursor_u64(&address) : 0, (uint64_t)size,
		type + 1);
	for (int64_t i = 0; i < children && !error; i++) {
		int64_t child = (int64_t)index + take_compressed(&c);
		if (c.short_read || child < 0 || child >= nodes->count)
			return broken(f, "a node that refers to one that is not there");
		error = heap_graph_add_resolved_edge(graph, (uint32_t)child + 1);
	}
	return error;
}

/* If the runtime did not send a type's name, writers use its number as the name. */
static void count_nameless(struct heap_graph *graph)
{
	for (uint32_t i = 1; i < graph->types.count; i++)
		if (strncmp(strtab_get(&graph->strings, graph->types.items[i].name), NAMELESS,
			    strlen(NAMELESS)) == 0)
			graph->nameless_bytes += graph->types.items[i].size_bytes;
}

static int take_graph(struct file *f, struct heap_graph *graph)
{
	struct nodes nodes = { 0 };
	uint32_t *type_sizes = NULL;
	int error = 0;

	if (!begin_object(f, GCDUMP_GRAPH))
		return broken(f, "no graph where one should begin");
	cursor_skip(&f->c, 8); /* total size: computed again */
	uint32_t root = cursor_u32(&f->c);
	error = take_types(f, graph, &type_sizes, &nodes.type_count);
	nodes.type_sizes = type_sizes;
	if (!error) {
		nodes.count = cursor_u32(&f->c);
		nodes.offsets = nodes.count < UINT32_MAX / 4
					? cursor_take(&f->c, 4 * (size_t)nodes.count)
					: NULL;
		nodes.blob_size = cursor_u32(&f->c);
		nodes.blob = cursor_take(&f->c, nodes.blob_size);
		uint32_t addresses = cursor_u32(&f->c);
		nodes.addresses =
			addresses == nodes.count ? cursor_take(&f->c, 8 * (size_t)addresses) : NULL;
		if (!nodes.count || !nodes.offsets || !nodes.addresses || f->c.short_read ||
			root >= nodes.count)
			error = broken(f, "the lists of nodes are torn");
	}
	for (uint32_t i = 0; i < nodes.count && !error; i++)
		error = take_node(f, graph, &nodes, i);
	if (!error)
		error = heap_graph_end_resolved(graph, root + 1);
	free(type_sizes);
	if (error == -ENOMEM || error == -EOVERFLOW)
		return diag_set(f->diag, error, "cannot read '%s': %m", f->name);
	if (!error) {
		count_nameless(graph);
		cursor_skip(&f->c, 2); /* 64-bit, with its tag */
		if (cursor_u8(&f->c) != GCDUMP_END_OBJECT)
			error = broken(f, "the graph does not end where it should");
	}
	return error;
}

/* Null, or DotNetHeapInfo: the size of all segments, then seven addresses for each. */
static bool skip_segments(struct file *f)
{
	uint8_t tag = cursor_u8(&f->c);

	if (tag == GCDUMP_NULL)
		return true;
	if (tag != GCDUMP_BEGIN_OBJECT || !begin_type(f, GCDUMP_INFO))
		return false;
	cursor_skip(&f->c, 8);
	uint32_t count = cursor_u32(&f->c);
	for (uint32_t i = 0; i < count && !f->c.short_read; i++) {
		if (!begin_object(f, GCDUMP_SEGMENT))
			return false;
		cursor_skip(&f->c, 7 * 8);
		if (cursor_u8(&f->c) != GCDUMP_END_OBJECT)
			return false;
	}
	return cursor_u8(&f->c) == GCDUMP_END_OBJECT && !f->c.short_read;
}

static void copy_text(const struct file *f, char *out, size_t room)
{
	size_t len = f->text.len < room - 1 ? f->text.len : room - 1;

	if (len)
		memcpy(out, f->text.data, len);
	out[len] = '\0';
}

/* The data after the graph is informative only: if its form is unknown, it is ignored. */
static void take_origin(struct file *f, struct gcdump_origin *origin)
{
	struct gcdump_origin read = { 0 };
	char log[sizeof(read.missing)];

	cursor_skip(&f->c, 9); /* 64-bit, two averages */
	if (cursor_u8(&f->c) != GCDUMP_NULL || !skip_segments(f) || !take_text(f))
		return;
	if (strncmp(bytes_z(&f->text), GCDUMP_NOT_WHOLE, strlen(GCDUMP_NOT_WHOLE)) == 0) {
		copy_text(f, log, sizeof(log));
		memcpy(read.missing, log + strlen(GCDUMP_NOT_WHOLE),
			strlen(log) - strlen(GCDUMP_NOT_WHOLE) + 1);
	}
	int64_t ticks = (int64_t)cursor_u64(&f->c);
	if (!take_text(f))
		return;
	copy_text(f, read.machine, sizeof(read.machine));
	if (!take_text(f))
		return;
	copy_text(f, read.process_name, sizeof(read.process_name));
	read.pid = cursor_u32(&f->c);
	if (ticks > GCDUMP_TICKS_1970 && ticks - GCDUMP_TICKS_1970 < INT64_MAX / 100)
		read.utc_ns = (uint64_t)(ticks - GCDUMP_TICKS_1970) * 100;
	if (!f->c.short_read)
		*origin = read;
}

int gcdump_read(const uint8_t *data, size_t size, const char *name, struct heap_graph *graph,
	struct gcdump_origin *ret_origin, struct diag *diag)
{
	struct file f = { .c = cursor_of(data, size), .begin = data, .name = name, .diag = diag };
	struct gcdump_origin origin = { 0 };
	int error;

	if (!text_is(&f, GCDUMP_MAGIC) || !begin_object(&f, GCDUMP_DUMP)) {
		error = diag_set(diag, -EBADMSG, "cannot read '%s': it is no .gcdump file", name);
	} else {
		error = take_graph(&f, graph);
		if (!error)
			take_origin(&f, &origin);
	}
	bytes_done(&f.text);
	if (!error)
		*ret_origin = origin;
	return error;
}
