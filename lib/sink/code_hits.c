/*
 * A set of addresses: open addressing with a power of two of places, at most half of them used. 0
 * is a free place; no code is at address 0.
 */
#include "lib/sink/code_hits.h"

#include <stdlib.h>
#include <string.h>

static uint64_t *places;
static uint32_t place_count;
static uint32_t taken;
static unsigned holders;

static uint32_t hits_place(uint64_t address)
{
	return (uint32_t)((address * 0x9e3779b97f4a7c15u) >> 32) & (place_count - 1);
}

static bool hits_grow(void)
{
	uint64_t *old = places;
	uint32_t old_count = place_count;
	uint32_t count = old_count ? old_count * 2 : 4096;
	uint64_t *grown = count <= CODE_HITS_MAX * 2 ? calloc(count, sizeof(*grown)) : NULL;

	if (!grown)
		return false;
	places = grown;
	place_count = count;
	for (uint32_t i = 0; i < old_count; i++) {
		if (!old[i])
			continue;
		uint32_t at = hits_place(old[i]);
		while (places[at])
			at = (at + 1) & (place_count - 1);
		places[at] = old[i];
	}
	free(old);
	return true;
}

void code_hits_hold(void)
{
	holders++;
}

void code_hits_release(void)
{
	if (--holders == 0)
		code_hits_forget();
}

void code_hits_forget(void)
{
	free(places);
	places = NULL;
	place_count = 0;
	taken = 0;
	holders = 0;
}

void code_hits_add(const uint64_t *frames, uint32_t count)
{
	if (!holders)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (!frames[i])
			continue;
		if (taken * 2 >= place_count && !hits_grow())
			return;
		uint32_t at = hits_place(frames[i]);
		while (places[at] && places[at] != frames[i])
			at = (at + 1) & (place_count - 1);
		taken += !places[at];
		places[at] = frames[i];
	}
}

static int hits_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t *code_hits_sorted(size_t *ret_count)
{
	uint64_t *sorted = taken ? malloc(taken * sizeof(*sorted)) : NULL;
	size_t count = 0;

	for (uint32_t i = 0; sorted && i < place_count; i++)
		if (places[i])
			sorted[count++] = places[i];
	if (sorted)
		qsort(sorted, count, sizeof(*sorted), hits_compare);
	*ret_count = count;
	return sorted;
}
