/*
 * The managed code of one live process: the address range of each method, from its begin to its
 * end.
 *
 * Filled from method and module events (clr_absorb_method()), searched by (address, time). Old
 * bodies remain for earlier samples. A full name is composed only for sampled code.
 */
#ifndef SPOOR_CODE_CODEMAP_H
#define SPOOR_CODE_CODEMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"

struct bytes;

/* MethodFlags bits 7 to 9 (facts: diagnostics-ipc.md 3.1a). */
enum code_tier {
	TIER_UNKNOWN,
	TIER_MIN_OPT,
	TIER_OPTIMIZED,
	TIER_0,
	TIER_1,
	TIER_1_OSR,
	TIER_0_INSTRUMENTED,
	TIER_1_INSTRUMENTED,
};

/* The name of a range whose owner at a time is not known; readers show it as unnamed code. */
#define CODE_UNREAD_NAME "(JIT code)"

/* The kind of a body, as CodeAdded records it. */
enum code_kind { CODE_UNKNOWN, CODE_JIT, CODE_READYTORUN, CODE_STUB, CODE_DYNAMIC, CODE_OSR };

struct code {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t method_id;
	uint64_t module_id;
	uint64_t from_ns;  /* 0: it existed before the session */
	uint64_t until_ns; /* UINT64_MAX while it exists */
	/* if from_ns is unknown: a time at which it existed; 0: unknown too */
	uint64_t stood_ns;
	const char *name_space; /* the three are in the codemap's texts; never NULL */
	const char *name;
	const char *signature;
	/* for the codemap: index + 1 of the previous body with the same begin */
	uint32_t older;
	uint8_t kind;          /* enum code_kind */
	uint8_t tier;          /* enum code_tier */
	bool written;          /* for the caller: its CodeAdded event has been written */
	bool removal_reported; /* for the caller: its end has been noticed */
	bool reused;           /* for the caller: its address was used by another body before */
	bool il_written;       /* for the caller: its IL offsets have been written */
	/* its times come from reads of the memory: no other sample is of it (see codemap_add()) */
	bool exact;
	uint32_t token;   /* of the method in its assembly; 0 unknown */
	uint64_t version; /* of the method's code: unique among the bodies of a method id */
};

/* Where the code of an IL offset begins. */
struct il_offset {
	uint32_t native; /* from the begin of the body */
	uint32_t il;     /* or one of the values below */
};

#define IL_NO_MAPPING UINT32_MAX
#define IL_PROLOG     (UINT32_MAX - 1)
#define IL_EPILOG     (UINT32_MAX - 2)

/* The IL offsets of one body, by native offset. */
struct il_map {
	uint64_t method_id;
	uint64_t version;
	uint32_t at; /* in codemap.il_offsets */
	uint32_t count;
};

struct code_module {
	uint64_t id;
	const char *path; /* of the IL image; "" if it has none */
	uint64_t from_ns;
	uint64_t until_ns;
	uint8_t pdb_id[16]; /* GUID of its symbol file, as in the image; all 0: unknown */
};

/* One item of the search order. */
struct code_order {
	uint64_t begin;
	/* greatest end of this and all earlier items: how far back a search must go */
	uint64_t reach;
	uint32_t code; /* index */
};

struct codemap {
	struct strtab texts; /* names, signatures and paths, each stored once */
	/* if not NULL, used instead of `texts`: borrowed, shared by several maps */
	struct strtab *shared;
	VEC(struct code) codes; /* in order of arrival */
	/* by begin, then arrival; of the first `order.count` codes */
	VEC(struct code_order) order;
	/* begin -> index + 1 of the newest body with that begin; of the first `indexed` codes */
	struct map begin_index;
	uint32_t indexed;
	VEC(struct code_module) modules;
	struct map module_index; /* module id -> index + 1 of the newest item of modules */
	VEC(struct il_map) il_maps;
	VEC(struct il_offset) il_offsets;
	struct map il_index;     /* hash of method id and version -> index + 1 in il_maps */
	uint64_t max_size_bytes; /* the map does not grow beyond this (0: no limit) */
	uint64_t refused_count;  /* methods that were rejected because of that limit */
	/* when no session was open: a body that was not reported before came later */
	uint64_t since_ns;
	uint32_t changes; /* number of methods added or removed so far */
};

/*
 * Adds a body; its texts are copied. Adding the same range and method again only refreshes it. Of
 * two overlapping bodies, the one that came first (by from_ns) ends where the other begins; one
 * whose begin is unknown came after all bodies before its stood_ns. An until_ns of 0 or UINT64_MAX:
 * the body exists. -EINVAL for an empty range, -ENOMEM, or -ENOSPC at max_size_bytes.
 *
 * An exact body ends the exact ones with the same begin, and no other body changes its times.
 */
int codemap_add(struct codemap *map, const struct code *code);

/* Ends the bodies that begin at `begin`. */
void codemap_remove(struct codemap *map, uint64_t begin, uint64_t until_ns);

int codemap_add_module(struct codemap *map, uint64_t module_id, const char *path, uint64_t from_ns);

/* The symbol file of a module that was added before. */
void codemap_set_pdb(struct codemap *map, uint64_t module_id, const uint8_t pdb_id[16]);

/* The module, or NULL. Valid until one is added. */
const struct code_module *codemap_module(const struct codemap *map, uint64_t module_id);

/*
 * Adds the IL offsets of a body, which may be added before or after; sorts them. The first ones of
 * a body remain. 0, -ENOMEM, or -ENOSPC at max_size_bytes.
 */
int codemap_add_il(struct codemap *map, uint64_t method_id, uint64_t version,
	const struct il_offset *offsets, uint32_t count);

/* NULL: none were added for this body. Valid until some are added. */
const struct il_offset *codemap_find_il(const struct codemap *map, const struct code *code,
	uint32_t *ret_count);

/* Sorts new bodies into the order: then every until_ns is as exact as the events allow. */
void codemap_settle(struct codemap *map);

/*
 * The owner of `address` at `time_ns`, else the body that came there within the next 250 ms,
 * because events are stamped after the code has begun to run (except an exact one); or NULL. Valid
 * until a body is added.
 */
struct code *codemap_find(struct codemap *map, uint64_t address, uint64_t time_ns);

/* The first body at `address` that came later and is not exact, or NULL. Valid until a body is added. */
struct code *codemap_find_next(struct codemap *map, uint64_t address, uint64_t time_ns);

/* Whether an event announced this module, with or without a path. */
bool codemap_has_module(const struct codemap *map, uint64_t module_id);

/* "System.Private.CoreLib" for a path ".../System.Private.CoreLib.dll"; "" if it is unknown. */
const char *codemap_assembly(const struct codemap *map, uint64_t module_id, size_t *ret_len);

/*
 * The text of a ProcessSymbol: "RETURN [Assembly] Namespace.Type::Method(args)[Tier]" for JIT code
 * (as PerfView parses it), "Namespace.Type::Method(args)" for ReadyToRun code in an image.
 */
void codemap_symbol_text(const struct codemap *map, const struct code *code, bool in_image,
	struct bytes *out);

const char *code_tier_tag(enum code_tier tier); /* "OptimizedTier1" */

/* Releases memory kept for growth or that can be rebuilt, for a map that will rarely grow. */
void codemap_trim(struct codemap *map);

/* Does not include a shared table of texts. */
size_t codemap_size_bytes(const struct codemap *map);
void codemap_done(struct codemap *map);

#endif
