/* See passing_code.h. */
#include "recording/passing_code.h"

#include <string.h>

#include "base/map.h"
#include "base/partition_point.h"
#include "code/clr_names.h"

#define SLOTS_MAX 16384u

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Everything that names a method. */
static uint64_t mark_of(const struct clr_found *found)
{
	return hash_u64(found->method_id) ^ hash_bytes(found->name, strlen(found->name)) ^
	       hash_u64(hash_bytes(found->name_space, strlen(found->name_space))) ^
	       hash_u64(hash_bytes(found->signature, strlen(found->signature)) + 1) ^
	       hash_u64(found->end + 2);
}

/* The first slot whose end is after the address. */
static uint32_t first_after(const struct passing_code *code, uint64_t address)
{
	return partition_point(code->slots.count, i, code->slots.items[i].end <= address);
}

static bool is_same(const struct passing_slot *slot, const struct clr_found *found)
{
	return slot->begin == found->begin && slot->end == found->end &&
	       slot->mark == mark_of(found);
}

static struct passing_slot *find_same(const struct passing_code *code,
	const struct clr_found *found)
{
	uint32_t at = first_after(code, found->begin);

	return at < code->slots.count && is_same(&code->slots.items[at], found)
		       ? &code->slots.items[at]
		       : NULL;
}

bool passing_code_has(const struct passing_code *code, uint64_t address)
{
	uint32_t at = first_after(code, address);

	return at < code->slots.count && code->slots.items[at].begin <= address;
}

bool passing_code_is_new(const struct passing_code *code, const struct clr_found *found)
{
	return !find_same(code, found);
}

static void end_slot(const struct passing_slot *slot, passing_change_fn *each, void *context)
{
	if (slot->open)
		each(context, &(struct passing_change){ .at_ns = slot->confirmed_ns + 1,
				      .begin = slot->begin,
				      .end = slot->end });
}

/* Ends the slots that overlap the range. *ret_free_ns: all have ended before; 0: there was none. */
static uint32_t end_range(struct passing_code *code, uint64_t begin, uint64_t end,
	passing_change_fn *each, void *context, uint64_t *ret_free_ns)
{
	uint32_t first = first_after(code, begin);
	uint32_t last = first;

	*ret_free_ns = 0;
	for (; last < code->slots.count && code->slots.items[last].begin < end; last++) {
		const struct passing_slot *slot = &code->slots.items[last];
		end_slot(slot, each, context);
		*ret_free_ns = later(*ret_free_ns, slot->confirmed_ns + 1);
	}
	if (last == first)
		return first;
	memmove(code->slots.items + first, code->slots.items + last,
		(code->slots.count - last) * sizeof(*code->slots.items));
	code->slots.count -= last - first;
	return first;
}

static void open_slot(struct passing_slot *slot, uint64_t from_ns, const struct clr_found *found,
	passing_change_fn *each, void *context)
{
	each(context,
		&(struct passing_change){
			.at_ns = from_ns, .begin = slot->begin, .end = slot->end, .found = found });
	slot->open = true;
}

void passing_code_read(struct passing_code *code, const struct passing_read *read,
	passing_change_fn *each, void *context)
{
	const struct clr_found *found = read->found;
	struct passing_slot *slot = found ? find_same(code, found) : NULL;

	if (slot) {
		/* Reads of one pass do not confirm each other: their pages are the same. */
		if (!slot->open && read->before_ns >= slot->first_ns)
			open_slot(slot, slot->first_ns, found, each, context);
		if (slot->confirmed_ns < read->before_ns)
			slot->confirmed_ns = read->before_ns;
		return;
	}
	uint64_t free_ns;
	uint32_t at = end_range(code, found ? found->begin : read->address,
		found ? found->end : read->address + 1, each, context, &free_ns);
	if (found || free_ns)
		code->replaced_ns = read->after_ns;
	if (!found)
		return;
	uint64_t from_ns = read->quiet_ns ? later(read->quiet_ns, free_ns) : 0;

	/* The earlier samples here are not of this method. */
	each(context, &(struct passing_change){
			      .at_ns = from_ns ? from_ns - 1 : later(read->sampled_ns, free_ns),
			      .begin = found->begin,
			      .end = found->end });
	if (code->slots.count >= SLOTS_MAX || !vec_reserve(&code->slots, 1))
		return; /* it has no name */
	memmove(code->slots.items + at + 1, code->slots.items + at,
		(code->slots.count - at) * sizeof(*code->slots.items));
	code->slots.count++;
	slot = &code->slots.items[at];
	*slot = (struct passing_slot){ .begin = found->begin,
		.end = found->end,
		.mark = mark_of(found),
		.first_ns = read->after_ns,
		.confirmed_ns = read->before_ns };
	if (from_ns)
		open_slot(slot, from_ns, found, each, context);
}

void passing_code_end(struct passing_code *code, passing_change_fn *each, void *context)
{
	vec_each(slot, &code->slots)
		end_slot(slot, each, context);
	code->slots.count = 0;
}

size_t passing_code_size_bytes(const struct passing_code *code)
{
	return code->slots.capacity * sizeof(*code->slots.items);
}

void passing_code_done(struct passing_code *code)
{
	vec_done(&code->slots);
}
