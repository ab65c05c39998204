/*
 * The managed code of one live process: which method had which range, from when until when.
 *
 * Filled from the CLR's method and module events (clr_absorb_method()), asked by (address, time). Old bodies stay, because samples older than
 * their end still need them. Names are kept as UTF-8 pieces and put together only for what is hit.
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

/* What a body is, as CodeAdded records it. */
enum code_kind { CODE_UNKNOWN, CODE_JIT, CODE_READYTORUN, CODE_STUB, CODE_DYNAMIC, CODE_OSR };

struct code {
	uint64_t begin;
	uint64_t end;            /* exclusive */
	uint64_t method_id;
	uint64_t module_id;
	uint64_t from_ns;        /* 0: since before we asked */
	uint64_t until_ns;       /* UINT64_MAX while it stands */
	uint64_t stood_ns;       /* where from_ns is not known: a time at which it stood; 0: not known either */
	const char *name_space;  /* the three are in the codemap's texts; never NULL */
	const char *name;
	const char *signature;
	uint32_t older;          /* the codemap's: body that began here before, plus one */
	uint8_t kind;            /* enum code_kind */
	uint8_t tier;            /* enum code_tier */
	bool written;            /* the user's own marks: CodeAdded is in the file, */
	bool removal_told;       /* and its end has been noticed, */
	bool reused;             /* and it lies where another body was before */
};

struct code_module {
	uint64_t id;
	const char *path;        /* of the IL image; "" when it has none */
	uint64_t from_ns;
	uint64_t until_ns;
};

/* One item of the search order. */
struct code_order {
	uint64_t begin;
	uint64_t reach;                 /* greatest end up to here: how far back a search must look */
	uint32_t code;                  /* index */
};

struct codemap {
	struct strtab texts;            /* names, signatures and paths, each once, */
	struct strtab *shared;          /* or here, in a table of several maps that outlives them; NULL: not */
	VEC(struct code) codes;         /* in order of arrival */
	VEC(struct code_order) order;   /* by begin, then arrival; of the first `order.count` codes */
	struct map begin_index;         /* begin -> newest body that begins there, plus one; of the first `indexed` codes */
	uint32_t indexed;
	VEC(struct code_module) modules;
	struct map module_index;        /* module id -> newest item of modules, plus one */
	uint64_t max_size_bytes;        /* no longer grows beyond this (0: no limit) */
	uint64_t refused_count;         /* methods not taken because of that */
	uint64_t since_ns;              /* what stands and was not known came after this time, when nobody listened; 0 at first */
	uint32_t changes;               /* grows with each method added or removed */
};

/*
 * Adds a body; its texts are copied. The same range and method again only refreshes it. Of two bodies that overlap, the one that came first
 * (by from_ns) ends where the other begins; one whose begin is not known came after all that came before its stood_ns. until_ns may be known
 * already; 0 and UINT64_MAX mean that it stands. -EINVAL for an empty range, -ENOMEM, or -ENOSPC at max_size_bytes.
 */
int codemap_add(struct codemap *map, const struct code *code);

/* Ends the bodies that begin at `begin`. */
void codemap_remove(struct codemap *map, uint64_t begin, uint64_t until_ns);

int codemap_add_module(struct codemap *map, uint64_t module_id, const char *path, uint64_t from_ns);

/* Takes what was added since into the order: after it every until_ns is as good as it is known. */
void codemap_settle(struct codemap *map);

/*
 * The body that owned `address` at `time_ns`; when none did, but one that covers it came within the slack of 250 ms later (events are
 * stamped after the code has begun to run), that one. NULL none. Valid until the map is added to.
 */
struct code *codemap_find(struct codemap *map, uint64_t address, uint64_t time_ns);

/* The first body that covers `address` and came later than `time_ns`. NULL none. Valid as above. */
struct code *codemap_find_next(struct codemap *map, uint64_t address, uint64_t time_ns);

/* Whether an event announced this module, with or without a path. */
bool codemap_has_module(const struct codemap *map, uint64_t module_id);

/* "System.Private.CoreLib" for a path ".../System.Private.CoreLib.dll"; "" when unknown. */
const char *codemap_assembly(const struct codemap *map, uint64_t module_id, size_t *ret_len);

/*
 * The text of a ProcessSymbol: "RETURN [Assembly] Namespace.Type::Method(args)[Tier]" for JIT code (what PerfView takes apart), and
 * "Namespace.Type::Method(args)" for ReadyToRun code in an image, whose module is its mapping.
 */
void codemap_symbol_text(const struct codemap *map, const struct code *code, bool in_image,
	struct bytes *out);

const char *code_tier_tag(enum code_tier tier);   /* "OptimizedTier1" */

/* Gives back most of what was reserved for growth, and what the next addition can make again: for a map that will rarely grow any more. */
void codemap_trim(struct codemap *map);

/* Without a shared table of texts. */
size_t codemap_size_bytes(const struct codemap *map);
void codemap_done(struct codemap *map);

#endif
