/*
 * FastSerialization: objects between tags, each type defined at its first use. The graph is a list
 * of types, a list of offsets, and one blob of nodes: type, children as differences of numbers, and
 * size if it differs from the type's.
 */
#include "formats/gcdump_write.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/text.h"
#include "formats/gcdump_tag.h"
#include "trace/heap_graph.h"

#define BUFFER_BYTES (256u << 10)

struct out {
	int fd;
	const char *name;
	uint64_t offset; /* in the file, of the next byte */
	int error;
	size_t len;
	uint8_t *buffer;
};

static void flush(struct out *out)
{
	size_t done = 0;

	while (done < out->len && !out->error) {
		ssize_t n = write(out->fd, out->buffer + done, out->len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			out->error = -errno;
		else
			done += (size_t)n;
	}
	out->len = 0;
}

static void put(struct out *out, const void *data, size_t size)
{
	const uint8_t *at = data;

	out->offset += size;
	while (size) {
		size_t part = BUFFER_BYTES - out->len;
		if (part > size)
			part = size;
		memcpy(out->buffer + out->len, at, part);
		out->len += part;
		at += part;
		size -= part;
		if (out->len == BUFFER_BYTES)
			flush(out);
	}
}

static void put_u8(struct out *out, uint8_t value)
{
	put(out, &value, 1);
}

static void put_u32(struct out *out, uint32_t value)
{
	const uint8_t bytes[] = { (uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
		(uint8_t)(value >> 24) };

	put(out, bytes, sizeof(bytes));
}

static void put_u64(struct out *out, uint64_t value)
{
	put_u32(out, (uint32_t)value);
	put_u32(out, (uint32_t)(value >> 32));
}

static void put_unit(struct out *out, uint32_t unit)
{
	uint8_t bytes[3];
	size_t len = 0;

	if (unit < 0x80) {
		bytes[len++] = (uint8_t)unit;
	} else if (unit < 0x800) {
		bytes[len++] = (uint8_t)(0xc0 | unit >> 6);
		bytes[len++] = (uint8_t)(0x80 | (unit & 0x3f));
	} else {
		bytes[len++] = (uint8_t)(0xe0 | unit >> 12);
		bytes[len++] = (uint8_t)(0x80 | (unit >> 6 & 0x3f));
		bytes[len++] = (uint8_t)(0x80 | (unit & 0x3f));
	}
	put(out, bytes, len);
}

/* Each UTF-16 unit is counted and encoded separately, also the two of a surrogate pair. */
static void put_text(struct out *out, const char *text)
{
	size_t len = strlen(text);
	uint32_t units = 0;

	for (size_t at = 0; at < len;)
		units += text_next_char(text, len, &at) > 0xffff ? 2 : 1;
	put_u32(out, units);
	for (size_t at = 0; at < len;) {
		uint32_t c = text_next_char(text, len, &at);
		if (c > 0xffff) {
			put_unit(out, 0xd800 + ((c - 0x10000) >> 10));
			put_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
		} else {
			put_unit(out, c);
		}
	}
}

/* A signed number in groups of 7 bits, the highest first, 0x80 on all but the last; the length. */
static size_t make_compressed(int32_t value, uint8_t bytes[5])
{
	size_t len = 1;

	while (len < 5 &&
		(value < -(INT64_C(1) << (7 * len - 1)) || value >= INT64_C(1) << (7 * len - 1)))
		len++;
	for (size_t i = 0; i < len; i++) {
		unsigned shift = (unsigned)(7 * (len - 1 - i));
		uint32_t group = (uint32_t)((int64_t)value >> shift) & 0x7f;
		bytes[i] = (uint8_t)(group | (i + 1 < len ? 0x80 : 0));
	}
	return len;
}

/* Sizes are 32-bit in the format: a larger size is written as the maximum. */
static int32_t size_of(const struct heap_graph *graph, uint32_t node)
{
	uint64_t size = heap_graph_size(graph, node);

	return size > INT32_MAX ? INT32_MAX : (int32_t)size;
}

static int32_t type_size(const struct heap_type *type)
{
	return type->first_size > INT32_MAX ? INT32_MAX : (int32_t)type->first_size;
}

/* A node's record, written into `out` unless that is NULL. Returns its length. */
static uint64_t node_record(const struct heap_graph *graph, uint32_t node, struct out *out)
{
	uint32_t type = node ? heap_graph_node_type(graph, node) : 0;
	int32_t size = node ? size_of(graph, node) : 0;
	bool own_size = size != type_size(&graph->types.items[type]);
	uint32_t edge_count = 0;
	const uint32_t *edges = node ? heap_graph_edges(graph, node, &edge_count) : NULL;
	uint32_t children = 0;
	uint8_t bytes[5];
	uint64_t len;

	for (uint32_t i = 0; i < edge_count; i++)
		children += edges[i] != 0;
	int32_t head[] = { (int32_t)(type * 2 + own_size), size, (int32_t)children };
	len = 0;
	for (size_t i = 0; i < 3; i++) {
		if (i == 1 && !own_size)
			continue;
		size_t part = make_compressed(head[i], bytes);
		len += part;
		if (out)
			put(out, bytes, part);
	}
	for (uint32_t i = 0; i < edge_count; i++) {
		if (!edges[i])
			continue;
		size_t part = make_compressed((int32_t)((int64_t)edges[i] - node), bytes);
		len += part;
		if (out)
			put(out, bytes, part);
	}
	return len;
}

/* The definition of a type, at its first use. */
static void begin_object(struct out *out, const char *name, uint32_t version, uint32_t least_reader)
{
	put_u8(out, GCDUMP_BEGIN_OBJECT);
	put_u8(out, GCDUMP_BEGIN_OBJECT);
	put_u8(out, GCDUMP_NULL);
	put_u32(out, version);
	put_u32(out, least_reader);
	put_text(out, name);
	put_u8(out, GCDUMP_END_OBJECT);
}

static void put_types(struct out *out, const struct heap_graph *graph)
{
	char room[64];

	put_u32(out, graph->types.count);
	put_text(out, "UNDEFINED");
	put_u32(out, 0);
	put_text(out, "");
	for (uint32_t i = 1; i < graph->types.count; i++) {
		const struct heap_type *type = &graph->types.items[i];
		put_text(out, heap_graph_type_name(graph, i, room, sizeof(room)));
		put_u32(out, (uint32_t)type_size(type));
		put_text(out, strtab_get(&graph->strings, type->module));
	}
}

static void put_graph(struct out *out, const struct heap_graph *graph, uint64_t blob_bytes)
{
	uint32_t count = heap_graph_node_count(graph);
	uint64_t offset = 0;

	begin_object(out, GCDUMP_GRAPH, 1, 0);
	put_u64(out, graph->size_bytes);
	put_u32(out, graph->root);
	put_types(out, graph);
	put_u32(out, count);
	for (uint32_t node = 0; node < count && !out->error; node++) {
		put_u32(out, (uint32_t)offset);
		offset += node_record(graph, node, NULL);
	}
	put_u32(out, (uint32_t)blob_bytes);
	for (uint32_t node = 0; node < count && !out->error; node++)
		(void)node_record(graph, node, out); /* its length is computed already */
	put_u32(out, count);
	for (uint32_t node = 0; node < count && !out->error; node++)
		put_u64(out, heap_graph_address(graph, node));
	put_u8(out, GCDUMP_BYTE);
	put_u8(out, 1); /* 64-bit */
	put_u8(out, GCDUMP_END_OBJECT);
}

static void put_file(struct out *out, const struct heap_graph *graph,
	const struct gcdump_info *info, uint64_t blob_bytes)
{
	static const uint8_t one[] = { 0, 0, 0x80, 0x3f }; /* 1.0f */
	char log[256];

	put_text(out, GCDUMP_MAGIC);
	begin_object(out, GCDUMP_DUMP, 10, 8);
	put_graph(out, graph, blob_bytes);
	put_u8(out, 1);             /* 64-bit */
	put(out, one, sizeof(one)); /* averages: nothing was sampled */
	put(out, one, sizeof(one));
	put_u8(out, GCDUMP_NULL); /* no JavaScript heap */
	put_u8(out, GCDUMP_NULL); /* no segments */
	text_set(log, "%s%s", *info->missing ? GCDUMP_NOT_WHOLE : "",
		info->missing); /* truncated if it is too long */
	put_text(out, log);
	put_u64(out, (uint64_t)GCDUMP_TICKS_1970 + info->utc_ns / 100);
	put_text(out, info->machine);
	put_text(out, info->process_name);
	put_u32(out, info->pid);
	put_u64(out, info->committed_bytes);
	put_u64(out, info->working_set_bytes);
	put_u32(out, 0); /* no multipliers */
	put_u8(out, GCDUMP_SKIP_REGION);
	put_u32(out, 0);          /* the first forward reference */
	put_u8(out, GCDUMP_NULL); /* no COM */
	uint64_t forward = out->offset;
	put_u8(out, GCDUMP_STRING);
	put_text(out, info->tool);
	put_u8(out, GCDUMP_END_OBJECT);
	uint64_t table = out->offset;
	put_u32(out, 1);
	put_u32(out, (uint32_t)forward);
	uint64_t where = out->offset;
	put_u32(out, (uint32_t)table);
	put_u32(out, (uint32_t)where);
}

int gcdump_write(const struct heap_graph *graph, const struct gcdump_info *info, int fd,
	const char *name, struct diag *diag)
{
	struct out out = { .fd = fd, .name = name, .buffer = malloc(BUFFER_BYTES) };
	uint64_t blob_bytes = 0;

	if (!out.buffer)
		return diag_set(diag, -ENOMEM, "cannot write '%s': %m", name);
	for (uint32_t node = 0; node < heap_graph_node_count(graph); node++)
		blob_bytes += node_record(graph, node, NULL);
	/* 32-bit offsets limit the file too: the blob, 12 bytes for each node, and the types. */
	if (blob_bytes > INT32_MAX || blob_bytes + 12 * (uint64_t)heap_graph_node_count(graph) >
					      UINT32_MAX - (UINT64_C(64) << 20)) {
		free(out.buffer);
		return diag_set(diag, -EFBIG,
			"cannot write '%s': %u objects are more than a .gcdump file can hold", name,
			graph->object_count);
	}
	put_file(&out, graph, info, blob_bytes);
	flush(&out);
	free(out.buffer);
	return out.error ? diag_set(diag, out.error, "cannot write '%s': %m", name) : 0;
}
