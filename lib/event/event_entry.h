/*
 * An entry of the registry (provider.h): the copy of an event's description that rings, sinks and
 * files read, with what is computed from it once. Entries do not change after event_entry_new().
 * The functions need no lock.
 */
#ifndef SPOOR_LIB_EVENT_EVENT_ENTRY_H
#define SPOOR_LIB_EVENT_EVENT_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include <spoor/spoor.h>

#define REGISTRY_NAME_MAX    1024
#define REGISTRY_FIELD_DEPTH 8
#define REGISTRY_FIELDS_MAX  1024 /* of one event, nested fields included */

enum entry_flag {
	ENTRY_WELL_KNOWN = 1 << 0,
	ENTRY_VERBATIM = 1 << 1, /* the payload is the same in nettrace, because no field is TEXT */
	ENTRY_OWN = 1 << 2,      /* an event of the library: only session_emit() writes it */
	ENTRY_UNLOGGED = 1 << 3, /* of registry_add_unlogged(): loggers do not get it */
};

/*
 * One step of reading a payload from the front to the end. Consecutive fields of fixed size are one
 * step.
 */
enum plan_op {
	PLAN_FIXED, /* `size` bytes */
	PLAN_TEXT,
	PLAN_TEXT16,
	PLAN_ARRAY, /* of elements of `size` bytes */
	PLAN_TEXTS,
	PLAN_TEXT16S,
	PLAN_STRUCTS, /* array of structs: the next `size` steps, once for each element */
};

struct plan_step {
	uint32_t op;
	uint32_t size;
};

struct event_entry {
	struct spoor_event_info info; /* deep copy */
	uint32_t index;
	uint32_t flags;
	uint64_t hash;
	/*
	 * in streams: that of `info`, or, if another definition of this id already has that one, a later
	 * one. Readers know an event by provider, id and version.
	 */
	uint8_t stream_version;
	/* of the payload, when all fields have a fixed size, else 0 */
	uint32_t fixed_size;
	uint32_t plan_count;
	const struct plan_step *plan;
	uint32_t metadata_size;
	const uint8_t *metadata; /* nettrace 4: the record that follows the metadata id */
};

/* Equal descriptions have equal hashes. */
uint64_t event_info_hash(const struct spoor_event_info *info, uint32_t flags);
bool event_info_same(const struct spoor_event_info *a, const struct spoor_event_info *b);
/* Apart from the id. */
bool event_info_same_content(const struct spoor_event_info *a, const struct spoor_event_info *b);

/*
 * Checks that every sink can write these fields, and adds their number to `total`. `depth` is 0 for
 * the fields of an event. 0 or -EINVAL.
 */
int event_fields_check(const struct spoor_field *fields, uint32_t count, uint32_t depth,
	uint32_t *total);

/*
 * Makes an entry from a description whose `fields_total` fields were checked. The caller sets its
 * index. It is never freed. 0 or -ENOMEM.
 */
int event_entry_new(const struct spoor_event_info *info, uint32_t flags, uint8_t stream_version,
	uint32_t fields_total, uint64_t hash, struct event_entry **ret_entry);

#endif
