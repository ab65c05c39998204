/*
 * Lines of managed code, from the IL offsets that a recording or a precompiled assembly has, and a
 * portable PDB of this machine (symbols/assembly_pdb.h). Called after line_names_find().
 *
 * A PDB is used only if it has the GUID that the runtime reported for the assembly.
 */
#ifndef SPOOR_SYMBOLS_MANAGED_LINES_H
#define SPOOR_SYMBOLS_MANAGED_LINES_H

struct line_names;
struct symbol_cache;

/* Answers the addresses of line_names.missing that are in managed code. `cache` may be NULL. 0, or -ENOMEM. */
int managed_lines_find(struct line_names *lines, const struct symbol_cache *cache);

#endif
