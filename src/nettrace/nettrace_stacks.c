/* See nettrace_stacks.h. */
#include "nettrace/nettrace_stacks.h"

#include <errno.h>
#include <string.h>

#include "base/partition_point.h"
#include "trace/trace.h"

#define STACK_SIZE_MAX (1u << 19)

/* *ret_at: where a range belongs in the sorted list. False when it overlaps one in the list. */
static bool place_range(const struct nettrace_decoder *d, uint32_t first, uint32_t count,
	uint32_t *ret_at)
{
	uint32_t low = partition_point(d->ranges.count, i, d->ranges.items[i].first <= first);

	*ret_at = low;
	if (low && first - d->ranges.items[low - 1].first < d->ranges.items[low - 1].count)
		return false;
	return low == d->ranges.count || (uint64_t)first + count <= d->ranges.items[low].first;
}

static int add_range(struct nettrace_decoder *d, uint32_t first, uint32_t count, uint32_t stacks_at,
	uint32_t at)
{
	struct id_range *before = at ? &d->ranges.items[at - 1] : NULL;

	if (before && before->first + before->count == first &&
		before->at + before->count == stacks_at) {
		before->count += count;
		return 0;
	}
	if (!vec_push(&d->ranges))
		return -ENOMEM;
	struct id_range *range = &d->ranges.items[at];
	memmove(range + 1, range, (d->ranges.count - 1 - at) * sizeof(*range));
	*range = (struct id_range){ .first = first, .count = count, .at = stacks_at };
	return 0;
}

int nettrace_read_stacks(struct nettrace_decoder *d, struct cursor c, struct diag *diag)
{
	const uint8_t *at = c.at;
	uint32_t first = cursor_u32(&c);
	uint32_t count = cursor_u32(&c);
	uint32_t stacks_at = d->stack_indexes.count;
	uint32_t place;

	if (d->no_stacks)
		return 0;
	if (c.short_read || count > cursor_left(&c) / 4 || (uint64_t)first + count > UINT32_MAX)
		return stream_broken(d, offset_of(d, at), diag,
			"a stack block for %u stacks is too short", count);
	if (!count)
		return 0;
	if (!place_range(d, first, count, &place))
		return stream_broken(d, offset_of(d, at), diag,
			"stack ids from %u on are given twice", first);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *stack_at = c.at;
		uint32_t size = cursor_u32(&c);
		const uint8_t *frames = cursor_take(&c, size);
		if (!frames || size > STACK_SIZE_MAX || size % d->pointer_size)
			return stream_broken(d, offset_of(d, stack_at), diag, "a stack of %u bytes",
				size);
		uint32_t depth = size / d->pointer_size;
		vec_reset(&d->frames);
		if (!vec_reserve(&d->frames, (size_t)depth + 1))
			return stream_no_memory(d, diag);
		struct cursor f = cursor_of(frames, size);
		if (d->pointer_size == 8) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			if (size)
				memcpy(d->frames.items, frames, size);
#else
			for (uint32_t j = 0; j < depth; j++)
				d->frames.items[j] = cursor_u64(&f);
#endif
		} else {
			for (uint32_t j = 0; j < depth; j++)
				d->frames.items[j] = cursor_u32(&f);
		}
		uint32_t index = stack_table_intern(&d->trace->stacks, d->frames.items, depth);
		if ((depth && !index) || !vec_add(&d->stack_indexes, index))
			return stream_no_memory(d, diag);
	}
	return add_range(d, first, count, stacks_at, place) < 0 ? stream_no_memory(d, diag) : 0;
}
