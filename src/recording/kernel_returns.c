/* See kernel_returns.h. */
#include "recording/kernel_returns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define CHAINS \
	512u /* a power of two; a chain takes the place of another one with the same lower bits */
#define PLACES_MAX  64u
#define SAMPLES_MIN 4u
#define WORDS_MAX   (KNOWN_BLOCK_KERNEL / 8)

struct return_place {
	uint16_t offset;
	uint16_t frame;
};

struct kernel_chain {
	uint32_t frame_count; /* 0: free */
	uint32_t sample_count;
	uint32_t place_count;
	struct return_place places[PLACES_MAX]; /* by offset */
	uint64_t frames[KNOWN_BLOCK_RETURNS];
};

struct kernel_returns {
	struct kernel_chain chains[CHAINS];
};

int kernel_returns_new(struct kernel_returns **ret_returns)
{
	*ret_returns = calloc(1, sizeof(**ret_returns));
	return *ret_returns ? 0 : -ENOMEM;
}

void kernel_returns_free(struct kernel_returns *returns)
{
	free(returns);
}

static uint64_t word_at(const struct kernel_stack *stack, uint32_t i)
{
	uint64_t word;

	memcpy(&word, stack->words + (size_t)i * sizeof(word), sizeof(word));
	return word;
}

static uint32_t word_count(const struct kernel_stack *stack)
{
	return stack->word_count < WORDS_MAX ? stack->word_count : WORDS_MAX;
}

/* Every place that has an address of the chain; none if they are too many. */
static void find_places(struct kernel_chain *chain, const struct kernel_stack *stack)
{
	uint32_t words = word_count(stack);

	chain->place_count = chain->sample_count = 0;
	for (uint32_t i = 0; i < words; i++)
		for (uint32_t j = 0; j < chain->frame_count; j++) {
			if (word_at(stack, i) != chain->frames[j])
				continue;
			if (chain->place_count == PLACES_MAX) {
				chain->place_count = 0;
				return;
			}
			chain->places[chain->place_count++] =
				(struct return_place){ (uint16_t)i, (uint16_t)j };
		}
}

/* Leaves the places that this stack has as well. */
static void keep_places(struct kernel_chain *chain, const struct kernel_stack *stack)
{
	uint32_t words = word_count(stack);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < chain->place_count; i++) {
		struct return_place place = chain->places[i];
		if (place.offset < words &&
			word_at(stack, place.offset) == chain->frames[place.frame])
			chain->places[kept++] = place;
	}
	chain->place_count = kept;
}

static bool has_all(const struct kernel_chain *chain)
{
	uint64_t found = 0;

	for (uint32_t i = 0; i < chain->place_count; i++)
		found |= UINT64_C(1) << chain->places[i].frame;
	return found == (UINT64_C(1) << chain->frame_count) - 1;
}

/* Those after the last frame of the chain were left by earlier calls. */
static bool take_places(const struct kernel_chain *chain, struct kernel_places *ret_places)
{
	uint32_t count = chain->place_count;

	while (count && chain->places[count - 1].frame != chain->frame_count - 1)
		count--;
	if (count > KNOWN_BLOCK_RETURNS)
		return false;
	ret_places->count = count;
	for (uint32_t i = 0; i < count; i++) {
		ret_places->offsets[i] = chain->places[i].offset;
		ret_places->returns[i] = chain->frames[chain->places[i].frame];
	}
	return true;
}

bool kernel_returns_learn(struct kernel_returns *returns, const struct kernel_stack *stack,
	struct kernel_places *ret_places)
{
	uint32_t count = stack->frame_count > 1 ? stack->frame_count - 1 : stack->frame_count;
	size_t bytes = count * sizeof(stack->frames[0]);
	uint64_t hash = count;

	if (!count || count > KNOWN_BLOCK_RETURNS)
		return false;
	for (uint32_t i = 0; i < count; i++)
		hash = hash_u64(hash ^ stack->frames[i]);
	struct kernel_chain *chain = &returns->chains[hash & (CHAINS - 1)];

	if (chain->frame_count == count && memcmp(chain->frames, stack->frames, bytes) == 0) {
		keep_places(chain, stack);
	} else {
		chain->frame_count = count;
		memcpy(chain->frames, stack->frames, bytes);
		find_places(chain, stack);
	}
	if (!has_all(chain)) /* it was called in another way, or a word is missing */
		find_places(chain, stack);
	chain->sample_count += chain->sample_count < SAMPLES_MIN;
	return chain->sample_count == SAMPLES_MIN && has_all(chain) &&
	       take_places(chain, ret_places);
}

size_t kernel_returns_size_bytes(const struct kernel_returns *returns)
{
	return returns ? sizeof(*returns) : 0;
}
