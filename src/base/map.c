/* See map.h. */
#include "base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#ifdef SPOOR_HOSTILE
#define CAPACITY_MIN 2u
#else
#define CAPACITY_MIN 16u
#endif

uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93u;
	x ^= x >> 32;
	return x;
}

/* 64 x 64 -> 128 bits folded to 64: one multiplication mixes 16 bytes. */
static uint64_t fold(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 u128;
	u128 product = (u128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load64(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

uint64_t hash_bytes(const void *data, size_t size)
{
	const unsigned char *p = data;
	uint64_t a = 0x9e3779b97f4a7c15u ^ size;
	uint64_t b = 0xc2b2ae3d27d4eb4fu;
	size_t left = size;

	for (; left >= 32; p += 32, left -= 32) {
		a = fold(load64(p) ^ a, load64(p + 8) ^ 0x8ebc6af09c88c6e3u);
		b = fold(load64(p + 16) ^ b, load64(p + 24) ^ 0x589965cc75374cc3u);
	}
	for (; left >= 8; p += 8, left -= 8)
		a = fold(load64(p) ^ a, 0x1d8e4e27c47d124fu);
	if (left) {
		unsigned char tail[8] = { 0 };
		memcpy(tail, p, left);
		b = fold(load64(tail) ^ b, 0xeb44accab455d165u);
	}
	return fold(a ^ 0xa0761d6478bd642fu, b ^ size);
}

static uint32_t slot_of(const struct map *map, uint64_t key)
{
	return (uint32_t)hash_u64(key) & (map->capacity - 1);
}

struct map_walk map_find(const struct map *map, uint64_t key)
{
	struct map_walk walk = { .map = map, .key = key };

	if (!map->capacity)
		return walk;
	walk.at = slot_of(map, key);
	while (map->slots[walk.at].value) {
		if (map->slots[walk.at].key == key) {
			walk.value = map->slots[walk.at].value;
			return walk;
		}
		walk.at = (walk.at + 1) & (map->capacity - 1);
	}
	return walk;
}

void map_next(struct map_walk *walk)
{
	const struct map *map = walk->map;

	walk->value = 0;
	for (;;) {
		walk->at = (walk->at + 1) & (map->capacity - 1);
		const struct map_slot *slot = &map->slots[walk->at];
		if (!slot->value)
			return;
		if (slot->key == walk->key) {
			walk->value = slot->value;
			return;
		}
	}
}

uint32_t map_get(const struct map *map, uint64_t key)
{
	return map_find(map, key).value;
}

static void insert(struct map *map, uint64_t key, uint32_t value)
{
	uint32_t at = slot_of(map, key);

	while (map->slots[at].value)
		at = (at + 1) & (map->capacity - 1);
	map->slots[at] = (struct map_slot){ .key = key, .value = value };
	map->count++;
}

static bool grow(struct map *map)
{
	uint32_t capacity = map->capacity ? map->capacity * 2 : CAPACITY_MIN;

	if (capacity > (1u << 30))
		return false;
	struct map bigger = { .slots = calloc(capacity, sizeof(struct map_slot)),
		.capacity = capacity };
	if (!bigger.slots)
		return false;
	for (uint32_t i = 0; i < map->capacity; i++)
		if (map->slots[i].value)
			insert(&bigger, map->slots[i].key, map->slots[i].value);
	free(map->slots);
	*map = bigger;
	return true;
}

bool map_add(struct map *map, uint64_t key, uint32_t value)
{
	assert(value);
	if ((uint64_t)(map->count + 1) * 4 > (uint64_t)map->capacity * 3 && !grow(map))
		return false;
	insert(map, key, value);
	return true;
}

bool map_put(struct map *map, uint64_t key, uint32_t value)
{
	struct map_walk walk = map_find(map, key);

	assert(value);
	if (!walk.value)
		return map_add(map, key, value);
	map->slots[walk.at].value = value;
	return true;
}

void map_remove(struct map *map, uint64_t key, uint32_t value)
{
	struct map_walk walk = map_find(map, key);

	while (walk.value && walk.value != value)
		map_next(&walk);
	if (!walk.value)
		return;
	uint32_t mask = map->capacity - 1;
	uint32_t hole = walk.at;

	/* Entries after the hole move up, unless that would put one before its home slot. */
	for (uint32_t at = (hole + 1) & mask; map->slots[at].value; at = (at + 1) & mask) {
		uint32_t home = slot_of(map, map->slots[at].key);
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		map->slots[hole] = map->slots[at];
		hole = at;
	}
	map->slots[hole] = (struct map_slot){ 0 };
	map->count--;
}

void map_reset(struct map *map)
{
	if (map->capacity)
		memset(map->slots, 0, map->capacity * sizeof(struct map_slot));
	map->count = 0;
}

void map_done(struct map *map)
{
	free(map->slots);
	*map = (struct map){ 0 };
}

size_t map_size_bytes(const struct map *map)
{
	return map->capacity * sizeof(struct map_slot);
}
