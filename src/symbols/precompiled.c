/* See precompiled.h. */
#include "symbols/precompiled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "code/codemap.h"
#include "code/r2r.h"
#include "image/image_file.h"
#include "symbols/assembly_pdb.h"
#include "trace/trace.h"

#define OFFSETS_MAX 20000u

/* A body that lacks something, and where its code is in the assembly's file. */
struct wanted {
	uint32_t body; /* index in trace.lines.bodies */
	uint32_t assembly;
	uint32_t process;
	uint32_t size;
	uint64_t offset;
};

/* The assembly of some bodies. */
struct assembly {
	struct r2r *image;      /* NULL: not here, or no IL offsets are wanted of it */
	struct image_file file; /* for the code */
	int fd;                 /* -1: not here, or no code is wanted */
};

static const struct mapping *find_mapping(const struct trace *trace, const struct process *process,
	uint64_t id)
{
	vec_each(index, &process->mappings)
		if (trace->mappings.items[*index].id == id)
			return &trace->mappings.items[*index];
	return NULL;
}

typedef VEC(struct wanted) wanted_list;

static bool collect_process(struct trace *trace, uint32_t index, wanted_list *list)
{
	const struct process *process = &trace->processes.items[index];
	uint32_t size;

	vec_each(code, &process->codes) {
		const struct line_place place = { code->mapping_id, code->begin, code->method_id,
			0 };
		const struct line_body *body = code->kind == CODE_READYTORUN
						       ? line_table_body(&trace->lines, &place)
						       : NULL;
		bool lacks_code = trace->code.wanted && body &&
				  !code_bytes_find(&trace->code, index, code->mapping_id,
					  code->begin, code->method_id, &size);
		const struct mapping *mapping =
			body && (!body->count || lacks_code)
				? find_mapping(trace, process, code->mapping_id)
				: NULL;
		/* Code of a bundle or a composite image is not in the assembly's own file. */
		if (!mapping || mapping->path != body->assembly || code->begin < mapping->begin)
			continue;
		const struct wanted wanted = { (uint32_t)(body - trace->lines.bodies.items),
			body->assembly, index, (uint32_t)(code->end - code->begin),
			code->begin - mapping->begin + mapping->file_offset };
		if (!vec_add(list, wanted))
			return false;
	}
	return true;
}

static int compare(const void *left, const void *right)
{
	const struct wanted *a = left;
	const struct wanted *b = right;

	if (a->assembly != b->assembly)
		return a->assembly < b->assembly ? -1 : 1;
	return a->body < b->body ? -1 : a->body > b->body;
}

static void close_assembly(struct assembly *assembly)
{
	r2r_close(assembly->image);
	closep(&assembly->fd);
	*assembly = (struct assembly){ .fd = -1 };
}

static void open_assembly(const struct trace *trace, const struct wanted *wanted,
	const struct symbol_cache *cache, struct assembly *ret_assembly)
{
	const struct line_body *body = &trace->lines.bodies.items[wanted->body];
	const char *path = trace_text(trace, body->assembly);
	const struct assembly_places places = assembly_places_of(trace, wanted->process, cache);
	struct assembly_pdb pdb;
	bool has_pdb = assembly_pdb_find(&pdb, &places, path, body->pdb_id);

	assembly_pdb_done(&pdb);
	*ret_assembly = (struct assembly){ .fd = -1 };
	if (!has_pdb && !trace->code.wanted)
		return;
	cleanup(closep) int fd = assembly_open(&places, path, body->pdb_id);
	if (fd < 0)
		return;
	if (trace->code.wanted && image_file_from_fd(&ret_assembly->file, fd, NULL) == 0)
		ret_assembly->fd = dup(fd);
	ret_assembly->file.fd = ret_assembly->fd;
	if (has_pdb && r2r_open(TAKE_FD(fd), &ret_assembly->image, NULL) < 0)
		ret_assembly->image = NULL; /* it has no precompiled code */
}

static int load_offsets(struct trace *trace, struct r2r *image, const struct wanted *wanted,
	struct il_offset *offsets)
{
	const struct line_body *body = &trace->lines.bodies.items[wanted->body];
	struct r2r_hit hit;

	if (body->count || !r2r_find_offset(image, wanted->offset, &hit) ||
		hit.begin_offset != wanted->offset ||
		(hit.token != body->token && hit.token >> 24 == body->token >> 24))
		return 0;
	int count = r2r_il_offsets(image, hit.begin_rva, offsets, OFFSETS_MAX);
	return count <= 0 || line_table_fill_body(&trace->lines, wanted->body, offsets,
				     (uint32_t)count)
		       ? 0
		       : -ENOMEM;
}

static int load_code(struct trace *trace, const struct image_file *file,
	const struct wanted *wanted)
{
	const struct line_body *body = &trace->lines.bodies.items[wanted->body];
	const struct code_copy copy = { .mapping_id = body->mapping_id,
		.begin = body->begin,
		.method_id = body->method_id,
		.process = wanted->process };
	uint8_t *code;

	if (image_file_load(file, wanted->offset, wanted->size, CODE_BODY_MAX, &code) < 0)
		return 0;
	bool added = code_bytes_add(&trace->code, &copy, 0, code, wanted->size);
	free(code);
	return added ? 0 : -ENOMEM;
}

static int load_all(struct trace *trace, const wanted_list *list, const struct symbol_cache *cache,
	struct il_offset *offsets)
{
	struct assembly assembly = { .fd = -1 };
	const uint8_t *id = NULL;
	int result = 0;

	for (uint32_t i = 0; i < list->count && result == 0; i++) {
		const struct wanted *wanted = &list->items[i];
		const uint8_t *own = trace->lines.bodies.items[wanted->body].pdb_id;
		if (!i || list->items[i - 1].assembly != wanted->assembly ||
			memcmp(id, own, 16) != 0) {
			close_assembly(&assembly);
			open_assembly(trace, wanted, cache, &assembly);
			id = own;
		}
		if (assembly.image)
			result = load_offsets(trace, assembly.image, wanted, offsets);
		if (result == 0 && assembly.fd >= 0)
			result = load_code(trace, &assembly.file, wanted);
	}
	close_assembly(&assembly);
	return result;
}

int precompiled_load(struct trace *trace, const struct symbol_cache *cache)
{
	cleanup(freep) struct il_offset *offsets = malloc(OFFSETS_MAX * sizeof(*offsets));
	wanted_list list = { 0 };
	bool done = offsets != NULL;
	int result = 0;

	for (uint32_t i = 1; i < trace->processes.count && done; i++)
		done = collect_process(trace, i, &list);
	if (done && list.count > 1)
		qsort(list.items, list.count, sizeof(*list.items), compare);
	result = done ? load_all(trace, &list, cache, offsets) : -ENOMEM;
	vec_done(&list);
	return result;
}
