/*
 * A table of distinct texts: equal texts have equal indexes, and index 0 is the empty text. Texts
 * are bytes, at most STRTAB_TEXT_MAX long, stored with a NUL. All zero is empty.
 */
#ifndef SPOOR_BASE_STRTAB_H
#define SPOOR_BASE_STRTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

#define STRTAB_TEXT_MAX (1u << 16)

struct strtab_entry {
	const char *text;
	uint32_t len;
};

struct strtab {
	struct arena arena;
	VEC(struct strtab_entry) entries; /* the entry at position 0 has index 1 */
	struct map index;
	bool full; /* set by the owner: new texts are not added, existing ones are found */
};

/* The index of the text; longer ones are cut. 0 (the text is lost): full, or no memory. */
uint32_t strtab_add(struct strtab *table, const char *text, size_t len);
/* The index of a text that is in the table; 0: it is not. */
uint32_t strtab_find(const struct strtab *table, const char *text, size_t len);

uint32_t strtab_add_z(struct strtab *table, const char *text);

/* NUL-terminated, valid as long as the table; "" for 0 and an index that does not exist. */
const char *strtab_get(const struct strtab *table, uint32_t index);
size_t strtab_len(const struct strtab *table, uint32_t index);

/* Memory the table holds. */
size_t strtab_size_bytes(const struct strtab *table);

void strtab_done(struct strtab *table);

#endif
