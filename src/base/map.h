/*
 * The hash index: 64-bit keys, which need not be well mixed, to 32-bit values. All zero is empty.
 *
 * A value of 0 means "none", as index 0 does everywhere. One key may have several values (map_add),
 * for content indexed by its hash:
 *
 *   for (struct map_walk w = map_find(&m, hash); w.value; map_next(&w))
 *           if (same(w.value, content)) return w.value;
 */
#ifndef SPOOR_BASE_MAP_H
#define SPOOR_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t key;
	uint32_t value; /* 0: empty slot */
};

struct map {
	struct map_slot *slots;
	uint32_t capacity; /* a power of two, or 0 */
	uint32_t count;
};

struct map_walk {
	const struct map *map;
	uint64_t key;
	uint32_t at;
	uint32_t value; /* 0 at the end */
};

/* The first value under `key`, or 0. */
uint32_t map_get(const struct map *map, uint64_t key);

/* Replaces the first value (not 0) under `key`, or adds it. False when there is no memory. */
bool map_put(struct map *map, uint64_t key, uint32_t value);

/* Adds a further value under `key`. False when there is no memory. `value` is not 0. */
bool map_add(struct map *map, uint64_t key, uint32_t value);

/* Removes `value` under `key`; no effect if it does not exist. */
void map_remove(struct map *map, uint64_t key, uint32_t value);

/* All values under `key`, one by one. The map must not change meanwhile. */
struct map_walk map_find(const struct map *map, uint64_t key);
void map_next(struct map_walk *walk);

/* Removes all entries; keeps the memory. */
void map_reset(struct map *map);
void map_done(struct map *map);

/* Memory the map holds. */
size_t map_size_bytes(const struct map *map);

/* A well-mixed 64-bit hash of content, and of one number. Stable within a run only. */
uint64_t hash_bytes(const void *data, size_t size);
uint64_t hash_u64(uint64_t value);

#endif
