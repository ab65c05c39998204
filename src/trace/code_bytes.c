/* See code_bytes.h. */
#include "trace/code_bytes.h"

#include <string.h>

static bool is_same(const struct code_copy *a, const struct code_copy *b)
{
	return a->process == b->process && a->mapping_id == b->mapping_id && a->begin == b->begin &&
	       a->method_id == b->method_id;
}

static uint64_t hash_of(const struct code_copy *body)
{
	return hash_u64(body->begin ^
			hash_u64(body->method_id ^
				 hash_u64(body->mapping_id ^ hash_u64(body->process))));
}

static const struct code_copy *find(const struct code_bytes *code, const struct code_copy *wanted)
{
	for (struct map_walk w = map_find(&code->index, hash_of(wanted)); w.value; map_next(&w))
		if (is_same(&code->copies.items[w.value - 1], wanted))
			return &code->copies.items[w.value - 1];
	return NULL;
}

bool code_bytes_add(struct code_bytes *code, const struct code_copy *body, uint32_t offset,
	const uint8_t *data, uint32_t size)
{
	struct code_copy *last = code->copies.count ? vec_last(&code->copies) : NULL;
	struct code_copy added = *body;

	if (!size || size > CODE_BODY_MAX || code->bytes.count + size > CODE_TOTAL_MAX)
		return true;
	if (offset && (!last || !is_same(last, body) || last->size != offset ||
			      last->size + size > CODE_BODY_MAX))
		return true;
	added.at = code->bytes.count;
	added.size = size;
	if (!offset && find(code, body))
		return true;
	if (!vec_reserve(&code->bytes, size))
		return false;
	if (offset)
		last->size += size;
	else if (!vec_add(&code->copies, added) ||
		 !map_add(&code->index, hash_of(body), code->copies.count))
		return false;
	memcpy(code->bytes.items + code->bytes.count, data, size);
	code->bytes.count += size;
	return true;
}

const uint8_t *code_bytes_find(const struct code_bytes *code, uint32_t process, uint64_t mapping_id,
	uint64_t begin, uint64_t method_id, uint32_t *ret_size)
{
	const struct code_copy wanted = {
		.mapping_id = mapping_id, .begin = begin, .method_id = method_id, .process = process
	};

	const struct code_copy *copy = find(code, &wanted);

	*ret_size = copy ? copy->size : 0;
	return copy ? code->bytes.items + copy->at : NULL;
}

void code_bytes_done(struct code_bytes *code)
{
	vec_done(&code->copies);
	vec_done(&code->bytes);
	map_done(&code->index);
}
