/* See frame_chain.h. */
#include "code/frame_chain.h"

#define LENGTH_MAX  512u
#define NONE        SIZE_MAX
#define REACH       (UINT64_C(1) << 16) /* no function is longer than this */
#define SKIPPED_MAX 3u

/* The next record of the chain after the one at `at`; NONE if it is not in the copy. */
static size_t next_of(const struct frame_chain *chain, size_t at)
{
	uint64_t offset = chain->words[at] - chain->sp;

	if (chain->words[at] <= chain->sp || offset % 8 || offset / 8 <= at + 1 ||
		offset / 8 + 1 >= chain->count)
		return NONE;
	return (size_t)(offset / 8);
}

static bool returns(const struct frame_chain *chain, size_t at, uint64_t *ret_target)
{
	return chain->is_return(chain->context, chain->words[at + 1], ret_target);
}

/* The number of stored records from `at` on, up to the first one without a next. */
static uint32_t follow(const struct frame_chain *chain, size_t at, size_t *records)
{
	uint64_t target;
	uint32_t count = 0;

	while (at != NONE && count < LENGTH_MAX && returns(chain, at, &target)) {
		records[count++] = at;
		at = next_of(chain, at);
	}
	return count;
}

/* The positions of the frames' return addresses in the copy, leaf first. */
struct places {
	size_t at[LENGTH_MAX];
	uint32_t count;
};

static void add_place(struct places *places, size_t at)
{
	if (places->count < LENGTH_MAX)
		places->at[places->count++] = at;
}

/*
 * Whether this chain passes through all managed frames from the first record's on. Small methods
 * have no record: their return address is between the neighbouring records.
 */
static bool passes_through(const struct frame_chain *chain, const size_t *records, uint32_t count,
	const uint64_t *managed, uint32_t managed_count, struct places *places)
{
	uint32_t next = 1; /* the first record is that of managed[0] */

	places->count = 0;
	add_place(places, records[0] + 1);
	for (uint32_t i = 1; i < count; i++) {
		for (size_t at = records[i - 1] + 2; at < records[i] && next < managed_count;
			at++) {
			if (chain->words[at] != managed[next] ||
				chain->words[records[i] + 1] == managed[next])
				continue;
			add_place(places, at);
			next++;
		}
		add_place(places, records[i] + 1);
		next += next < managed_count && chain->words[records[i] + 1] == managed[next];
	}
	return next == managed_count;
}

/* The record whose next is at `at` and whose call leads to its frame. NONE: no or several. */
static size_t previous_of(const struct frame_chain *chain, size_t at)
{
	uint64_t address = chain->sp + at * 8;
	uint64_t called = 0;
	size_t found = NONE;

	(void)returns(chain, at, &called); /* succeeds: `at` is in the chain */
	for (size_t i = 0; i + 1 < at; i++) {
		uint64_t target;
		if (chain->words[i] != address || !returns(chain, i, &target))
			continue;
		uint64_t inside = chain->words[i + 1];
		if (called && (inside < called || inside - called > REACH))
			continue;
		if (found != NONE)
			return NONE;
		found = i;
	}
	return found;
}

/*
 * Finds the record that certainly belongs to the chain. For a leaf that called native code, the
 * runtime reports an address shortly before the return address; for other frames the exact one.
 */
static bool find_managed(const struct frame_chain *chain, const uint64_t *managed,
	uint32_t managed_count, struct places *places, uint32_t *ret_skipped)
{
	size_t records[LENGTH_MAX];

	for (uint32_t skipped = 0; skipped < SKIPPED_MAX && skipped < managed_count; skipped++) {
		for (size_t i = 0; i + 1 < chain->count; i++) {
			if (chain->words[i + 1] - managed[skipped] >=
					(skipped ? 1 : FRAME_CHAIN_LEAF_REACH) ||
				next_of(chain, i) == NONE)
				continue;
			uint32_t count = follow(chain, i, records);
			if (!count || !passes_through(chain, records, count, managed + skipped,
					      managed_count - skipped, places))
				continue;
			*ret_skipped = skipped;
			return true;
		}
	}
	return false;
}

static bool find_start(const struct frame_chain *chain, struct places *places)
{
	for (size_t i = chain->count < 2 ? 0 : chain->count - 2; i > 0; i--) {
		uint64_t target;
		if (next_of(chain, i) != NONE ||
			!chain->is_start(chain->context, chain->words[i + 1]) ||
			!returns(chain, i, &target) || previous_of(chain, i) == NONE)
			continue;
		places->at[0] = i + 1;
		places->count = 1;
		return true;
	}
	return false;
}

uint32_t frame_chain_find(const struct frame_chain *chain, const uint64_t *managed,
	uint32_t managed_count, uint64_t *ret_frames, uint32_t room, uint32_t *ret_skipped)
{
	struct places places = { .count = 0 };
	size_t before[LENGTH_MAX];
	uint32_t before_count = 0;
	uint32_t used = 0;

	*ret_skipped = 0;
	if (managed_count ? !find_managed(chain, managed, managed_count, &places, ret_skipped)
			  : !find_start(chain, &places))
		return 0;
	for (size_t at = places.at[0] - 1; !*ret_skipped && before_count < LENGTH_MAX;) {
		at = previous_of(chain, at);
		if (at == NONE)
			break;
		before[before_count++] = at + 1;
	}
	for (uint32_t i = before_count; i-- > 0 && used < room;)
		ret_frames[used++] = chain->words[before[i]];
	for (uint32_t i = 0; i < places.count && used < room; i++)
		ret_frames[used++] = chain->words[places.at[i]];
	return used;
}
