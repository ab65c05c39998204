/*
 * The portable PDB of a managed assembly, and the assembly itself, where they are on this machine.
 *
 *   assembly_pdb_find(&pdb, &places, "/app/Shop.dll", id)      beside it, inside it, or in the symbol cache
 *   ... pdb.pdb ...
 *   assembly_pdb_done(&pdb)
 *
 * A file is used only if it has the GUID that the runtime reported for the assembly. Paths are tried
 * here, then as the process sees them, if it still runs.
 */
#ifndef SPOOR_SYMBOLS_ASSEMBLY_PDB_H
#define SPOOR_SYMBOLS_ASSEMBLY_PDB_H

#include <stdbool.h>
#include <stdint.h>

#include "code/portable_pdb.h"

struct symbol_cache;
struct trace;

struct assembly_places {
	const struct symbol_cache *cache; /* NULL: not searched */
	uint32_t pid;                     /* 0: the process is not on this machine */
};

/* `process` is an index in the trace. */
struct assembly_places assembly_places_of(const struct trace *trace, uint32_t process,
	const struct symbol_cache *cache);

struct assembly_pdb {
	uint8_t *data; /* owned; NULL: none was found */
	struct portable_pdb pdb;
};

/* Room for a GUID as the key of the symbol cache. */
#define PDB_KEY_ROOM 33u
void assembly_pdb_key(const uint8_t id[16], char ret_key[PDB_KEY_ROOM]);

bool assembly_pdb_find(struct assembly_pdb *found, const struct assembly_places *places,
	const char *assembly, const uint8_t id[16]);

/* Opens the assembly with this GUID; the caller closes the descriptor. -1: it is not here. */
int assembly_open(const struct assembly_places *places, const char *assembly, const uint8_t id[16]);

void assembly_pdb_done(struct assembly_pdb *found);

#endif
