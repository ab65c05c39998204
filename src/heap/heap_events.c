/* See heap_events.h. */
#include "heap/heap_events.h"

#include <errno.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/text.h"
#include "trace/clr_event.h"
#include "trace/heap_graph.h"

#define DEPTH_OLDEST        2u
#define TYPE_BLOCKING       0u
#define REASON_INDUCED      1u
#define STATIC_THREAD_LOCAL 1u

/* UTF-16 up to its zero, as UTF-8 into `out`. */
static void take_utf16z(struct cursor *c, struct bytes *out)
{
	const uint8_t *begin = c->at;
	size_t units = 0;

	bytes_reset(out);
	while (cursor_u16(c))
		units++;
	if (!c->short_read)
		text_add_utf16(out, begin, units);
}

#define NESTING_MAX 64u

/*
 * "Dictionary`2[System.String,Shop.Order[]]" as people write it:
 * "Dictionary<System.String,Shop.Order[]>". In place: it only gets shorter.
 */
static void make_readable(struct bytes *text)
{
	uint64_t generic = 0; /* a bit a bracket that is open: it is a list of types */
	unsigned depth = 0;
	size_t used = 0;

	for (size_t i = 0; i < text->len; i++) {
		char c = (char)text->data[i];
		if (c == '`') {
			while (i + 1 < text->len && text->data[i + 1] >= '0' &&
				text->data[i + 1] <= '9')
				i++;
			continue;
		}
		if (c == '[' && depth < NESTING_MAX) {
			char next = i + 1 < text->len ? (char)text->data[i + 1] : ']';
			bool list = next != ']' && next != ',' && next != '*';
			generic = generic << 1 | list;
			depth++;
			c = list ? '<' : '[';
		} else if (c == ']' && depth) {
			c = generic & 1 ? '>' : ']';
			generic >>= 1;
			depth--;
		}
		text->data[used++] = (uint8_t)c;
	}
	text->len = used;
}

static int add_text(struct heap_graph *graph, const struct bytes *text, uint32_t *ret_index)
{
	*ret_index =
		text->len ? strtab_add(&graph->strings, (const char *)text->data, text->len) : 0;
	return text->failed || (text->len && !*ret_index) ? -ENOMEM : 0;
}

static int take_types(struct heap_events *heap, struct cursor *c)
{
	uint32_t count = cursor_u32(c);
	cleanup(bytes_done) struct bytes text = { 0 };
	int error = 0;

	(void)cursor_u16(c); /* runtime instance */
	for (uint32_t i = 0; i < count && !error; i++) {
		uint64_t id = cursor_u64(c);
		uint64_t module = cursor_u64(c);
		(void)cursor_u32(c); /* name id, always 0 */
		uint32_t flags = cursor_u32(c);
		(void)cursor_u8(c); /* element type */
		take_utf16z(c, &text);
		make_readable(&text);
		uint32_t parameters = cursor_u32(c);
		if (c->short_read || parameters > cursor_left(c) / 8) {
			error = -EBADMSG;
			break;
		}
		cursor_skip(c, (size_t)parameters * 8);
		uint32_t name;
		uint32_t index = heap_graph_type(heap->graph, id);
		error = index ? add_text(heap->graph, &text, &name) : -ENOMEM;
		if (error)
			break;
		struct heap_type *type = &heap->graph->types.items[index];
		type->module_id = module;
		type->flags = flags & ~(uint32_t)HEAP_TYPE_ROOT;
		if (name)
			type->name = name;
	}
	return error;
}

/*
 * "Index, Count, instance", then `item_size` bytes each. True: the next block of its kind, with
 * *ret_count items that the payload contains.
 */
static bool begin_block(struct heap_events *heap, struct cursor *c, size_t item_size,
	uint32_t *next, uint32_t *ret_count)
{
	uint32_t index = cursor_u32(c);
	uint32_t count = cursor_u32(c);

	(void)cursor_u16(c); /* runtime instance */
	if (c->short_read || count > cursor_left(c) / item_size) {
		c->short_read = true;
		return false;
	}
	if (heap->gap || index != *next) {
		heap->gap = true;
		return false;
	}
	(*next)++;
	*ret_count = count;
	return true;
}

static int take_nodes(struct heap_events *heap, struct cursor *c)
{
	uint32_t count;
	uint64_t last_id = 0;
	uint32_t type = 0;

	if (!begin_block(heap, c, 32, &heap->next_node_block, &count))
		return c->short_read ? -EBADMSG : 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t address = cursor_u64(c);
		uint64_t size = cursor_u64(c);
		uint64_t id = cursor_u64(c);
		uint64_t edges = cursor_u64(c);
		if (!type || id != last_id)
			type = heap_graph_type(heap->graph, id);
		if (!type)
			return -ENOMEM;
		last_id = id;
		int error = heap_graph_add_node(heap->graph, address, size, type, edges);
		if (error)
			return error;
	}
	return 0;
}

static int take_edges(struct heap_events *heap, struct cursor *c)
{
	uint32_t count;

	if (!begin_block(heap, c, 12, &heap->next_edge_block, &count))
		return c->short_read ? -EBADMSG : 0;
	for (uint32_t i = 0; i < count; i++) {
		int error = heap_graph_add_edge(heap->graph, cursor_u64(c));
		(void)cursor_u32(c); /* which field: the runtime writes 0 */
		if (error)
			return error;
	}
	heap->reported_edges += count;
	return 0;
}

static int take_roots(struct heap_events *heap, struct cursor *c)
{
	uint32_t count;

	if (!begin_block(heap, c, 21, &heap->next_root_block, &count))
		return c->short_read ? -EBADMSG : 0;
	for (uint32_t i = 0; i < count; i++) {
		struct heap_root root = { .object = cursor_u64(c) };
		root.kind = cursor_u8(c);
		root.flags = cursor_u32(c);
		(void)cursor_u64(c); /* the address of the root itself */
		int error = heap_graph_add_root(heap->graph, &root);
		if (error)
			return error;
	}
	return 0;
}

static int take_weak_table(struct heap_events *heap, struct cursor *c)
{
	uint32_t count;

	if (!begin_block(heap, c, 24, &heap->next_weak_block, &count))
		return c->short_read ? -EBADMSG : 0;
	for (uint32_t i = 0; i < count; i++) {
		struct heap_root root = { .kind = HEAP_ROOT_HANDLE, .dependent = true };
		root.key = cursor_u64(c);
		root.object = cursor_u64(c);
		(void)cursor_u64(c); /* as above */
		int error = heap_graph_add_root(heap->graph, &root);
		if (error)
			return error;
	}
	return 0;
}

static int take_static_vars(struct heap_events *heap, struct cursor *c)
{
	uint32_t count = cursor_u32(c);
	cleanup(bytes_done) struct bytes text = { 0 };
	int error = 0;

	(void)cursor_u64(c); /* application domain */
	(void)cursor_u16(c); /* runtime instance */
	for (uint32_t i = 0; i < count && !error; i++) {
		struct heap_root root = { .is_static = true };
		(void)cursor_u64(c); /* the address of the variable */
		root.object = cursor_u64(c);
		uint64_t type_id = cursor_u64(c);
		root.thread_static = cursor_u32(c) & STATIC_THREAD_LOCAL;
		take_utf16z(c, &text);
		if (c->short_read) {
			error = -EBADMSG;
			break;
		}
		root.type = heap_graph_type(heap->graph, type_id);
		error = root.type ? add_text(heap->graph, &text, &root.name) : -ENOMEM;
		if (!error)
			error = heap_graph_add_root(heap->graph, &root);
	}
	return error;
}

static int take_module(struct heap_events *heap, struct cursor *c)
{
	struct bytes il = { 0 };
	cleanup(bytes_done) struct bytes native = { 0 };
	uint64_t module = cursor_u64(c);
	int error = 0;

	(void)cursor_u64(c); /* assembly */
	(void)cursor_u32(c); /* flags */
	(void)cursor_u32(c); /* reserved */
	take_utf16z(c, &il);
	take_utf16z(c, &native);
	const struct bytes *path = il.len ? &il : &native;
	if (c->short_read)
		error = -EBADMSG;
	else if (path->len)
		error = heap_graph_add_module(heap->graph, module, (const char *)path->data,
			path->len);
	bytes_done(&il);
	return error;
}

static int take_block(struct heap_events *heap, uint32_t event_id, struct cursor *c)
{
	switch (event_id) {
	case CLR_ID_GCBulkNode:
		return take_nodes(heap, c);
	case CLR_ID_GCBulkEdge:
		return take_edges(heap, c);
	case CLR_ID_GCBulkRootEdge:
		return take_roots(heap, c);
	case CLR_ID_GCBulkRootConditionalWeakTableElementEdge:
		return take_weak_table(heap, c);
	default:
		return take_static_vars(heap, c);
	}
}

/*
 * A collection with another number begins or ends while ours has not ended: our end was lost, or it
 * was not the one that is walked.
 */
static void take_other(struct heap_events *heap, uint32_t count)
{
	if (!heap->begun || heap->ended || (int32_t)(count - heap->collection) <= 0)
		return;
	if (heap->blocks)
		heap->end_lost = true;
	else
		heap->begun = false;
}

static int take_start(struct heap_events *heap, struct cursor *c)
{
	uint32_t count = cursor_u32(c);
	uint32_t depth = cursor_u32(c);
	uint32_t reason = cursor_u32(c);
	uint32_t type = cursor_u32(c);

	if (c->short_read)
		return -EBADMSG;
	take_other(heap, count);
	if (heap->begun || depth < DEPTH_OLDEST || type != TYPE_BLOCKING ||
		reason != REASON_INDUCED)
		return 0;
	heap->begun = true;
	heap->collection = count;
	return 1;
}

static int take_end(struct heap_events *heap, struct cursor *c)
{
	uint32_t count = cursor_u32(c);

	if (c->short_read)
		return -EBADMSG;
	take_other(heap, count);
	if (!heap->begun || heap->ended || heap->end_lost || count != heap->collection)
		return 0;
	heap->ended = heap->blocks > 0;
	heap->begun = heap->ended;
	return heap->ended;
}

int heap_events_take(struct heap_events *heap, int rundown, uint32_t event_id,
	const uint8_t *payload, size_t size)
{
	struct cursor c = cursor_of(payload, size);
	bool inside = heap->begun && !heap->ended && !heap->end_lost;
	int error;

	if (rundown != (event_id == CLR_ID_ModuleDCEnd))
		return 0;
	switch (event_id) {
	case CLR_ID_GCStart:
		return take_start(heap, &c);
	case CLR_ID_GCEnd:
		return take_end(heap, &c);
	/* Types and modules are valid for the whole process, whichever collection sent them. */
	case CLR_ID_BulkType:
		error = take_types(heap, &c);
		break;
	case CLR_ID_ModuleLoad:
	case CLR_ID_ModuleDCEnd:
		error = take_module(heap, &c);
		break;
	case CLR_ID_GCBulkNode:
	case CLR_ID_GCBulkEdge:
	case CLR_ID_GCBulkRootEdge:
	case CLR_ID_GCBulkRootConditionalWeakTableElementEdge:
	case CLR_ID_GCBulkRootStaticVar:
		if (!inside)
			return 0;
		heap->blocks++;
		error = take_block(heap, event_id, &c);
		break;
	default:
		return 0;
	}
	if (!error && c.short_read)
		error = -EBADMSG;
	if (error)
		return error;
	heap->bytes += size;
	return 1;
}

const char *heap_events_missing(const struct heap_events *heap)
{
	if (!heap->begun)
		return "no collection was begun";
	if (heap->end_lost)
		return "the end of the collection was lost on the way";
	if (!heap->ended)
		return "the collection did not come to its end";
	if (heap->gap)
		return "blocks of it were lost on the way";
	if (heap->reported_edges != heap->graph->edge_count)
		return "references were lost on the way";
	return "";
}
