/* See managed_lines.h. */
#include "symbols/managed_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "code/portable_pdb.h"
#include "symbols/assembly_pdb.h"
#include "symbols/line_names.h"
#include "symbols/precompiled.h"
#include "trace/trace.h"

/*
 * The IL offset of the statement that a native offset belongs to. Code without one (of the
 * epilogue, or made by the compiler) belongs to the statement before it.
 */
static bool find_il(const struct line_table *table, const struct line_body *body, uint64_t offset,
	uint32_t *ret_il)
{
	bool found = false;

	for (uint32_t i = 0; i < body->count; i++) {
		const struct il_offset *entry = &table->il.items[body->at + i];
		if (entry->native > offset)
			break;
		if (entry->il == IL_EPILOG || entry->il == IL_NO_MAPPING)
			continue;
		*ret_il = entry->il == IL_PROLOG ? 0 : entry->il;
		found = true;
	}
	return found;
}

static int add_line(struct line_names *lines, const struct portable_pdb *pdb,
	const struct line_body *body, const struct line_place *place)
{
	cleanup(bytes_done) struct bytes path = { 0 };
	struct line_frame frame = { 0 };
	uint32_t document;
	uint32_t il;

	if (!find_il(&lines->trace->lines, body, place->offset, &il) ||
		!portable_pdb_find(pdb, body->token, il, &document, &frame.line))
		return 0;
	if (portable_pdb_document(pdb, document, &path))
		frame.file = strtab_add(&lines->trace->strings, (const char *)path.data, path.len);
	lines->answered++;
	return line_table_add(&lines->trace->lines, place, &frame, 1) ? 0 : -ENOMEM;
}

/* An address, and its body as an index. */
struct managed_query {
	uint32_t missing;
	uint32_t body;
	uint32_t assembly;
};

static int compare_queries(const void *left, const void *right)
{
	const struct managed_query *a = left;
	const struct managed_query *b = right;

	if (a->assembly != b->assembly)
		return a->assembly < b->assembly ? -1 : 1;
	return a->missing < b->missing ? -1 : a->missing > b->missing;
}

/* Queries of one path may still be of two assemblies: one was replaced meanwhile. */
static int find_in_assembly(struct line_names *lines, const struct managed_query *queries,
	uint32_t count, const struct symbol_cache *cache)
{
	struct trace *trace = lines->trace;
	struct assembly_pdb found = { 0 };
	const uint8_t *id = NULL;
	int result = 0;
	uint32_t answered = lines->answered;

	for (uint32_t i = 0; i < count && result == 0; i++) {
		/* Copies: the tables grow. */
		struct line_body body = trace->lines.bodies.items[queries[i].body];
		struct line_place place = lines->missing.items[queries[i].missing].place;
		if (!id || memcmp(id, body.pdb_id, sizeof(body.pdb_id)) != 0) {
			id = trace->lines.bodies.items[queries[i].body].pdb_id;
			const struct assembly_places places = assembly_places_of(trace,
				lines->missing.items[queries[i].missing].process, cache);
			assembly_pdb_done(&found);
			(void)assembly_pdb_find(&found, &places, trace_text(trace, body.assembly),
				body.pdb_id); /* then it has no data */
		}
		if (found.data)
			result = add_line(lines, &found.pdb, &body, &place);
	}
	assembly_pdb_done(&found);
	lines->image_count++;
	if (lines->answered == answered) {
		lines->without++;
		if (!lines->first_without)
			lines->first_without = queries[0].assembly;
	}
	return result;
}

int managed_lines_find(struct line_names *lines, const struct symbol_cache *cache)
{
	VEC(struct managed_query) queries = { 0 };
	const struct line_table *table = &lines->trace->lines;
	int result = lines->missing.count ? precompiled_load(lines->trace, cache) : 0;

	for (uint32_t i = 0; i < lines->missing.count && result == 0; i++) {
		const struct line_missing *missing = &lines->missing.items[i];
		const struct line_body *body =
			missing->code ? line_table_body(table, &missing->place) : NULL;
		if (!body)
			continue;
		const struct managed_query query = { i, (uint32_t)(body - table->bodies.items),
			body->assembly };
		result = vec_add(&queries, query) ? 0 : -ENOMEM;
	}
	if (queries.count > 1)
		qsort(queries.items, queries.count, sizeof(*queries.items), compare_queries);
	for (uint32_t i = 0; i < queries.count && result == 0;) {
		uint32_t count = 1;
		while (i + count < queries.count &&
			queries.items[i + count].assembly == queries.items[i].assembly)
			count++;
		result = find_in_assembly(lines, queries.items + i, count, cache);
		i += count;
	}
	vec_done(&queries);
	return result;
}
