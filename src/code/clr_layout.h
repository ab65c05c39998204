/*
 * Where a .NET runtime (8 to 10, 64 bits) has the fields that are read from its memory, and where its
 * tables begin. .NET 10 describes all of them (clr_contract.h), 9 some, 8 none: the rest is a list,
 * clr_layout.def, which the readers check against the process before they rely on it.
 */
#ifndef SPOOR_CODE_CLR_LAYOUT_H
#define SPOOR_CODE_CLR_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct clr_contract;
struct clr_memory;

#define CLR_NO UINT64_MAX

enum clr_version {
	CLR_VERSION_UNKNOWN,
	CLR_VERSION_8,  /* no descriptor; all offsets are from the list */
	CLR_VERSION_9,  /* a descriptor without the execution manager, or none */
	CLR_VERSION_10, /* or newer, with version 2 of the execution manager's contract */
};

struct clr_layout {
	enum clr_version version;
	uint64_t code_map; /* address of the map of code ranges */
	/* 0: not described */
	uint64_t thread_store;
	uint64_t sync_table;
	uint64_t object_type; /* method tables of System.Object and System.String */
	uint64_t string_type;
#define CLR_FIELD(member, path, nine, eight)    uint64_t member;
#define CLR_OPTIONAL(member, path, nine, eight) uint64_t member;
#include "code/clr_layout.def"
#undef CLR_FIELD
#undef CLR_OPTIONAL
};

/*
 * Without a `contract` (NULL: the runtime exports none) `guess` is the version to read it as: 8, or 9
 * in a single-file program, which does not export its description. `dac_table` is the address of the variable that its
 * debugger reads (g_dacTable), 0 if it exports none. False: this runtime is not supported.
 */
bool clr_layout_read(struct clr_layout *layout, const struct clr_contract *contract,
	uint64_t dac_table, enum clr_version guess, struct clr_memory *memory);

#endif
