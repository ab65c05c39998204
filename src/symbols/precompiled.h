/*
 * IL offsets and machine code of precompiled (ReadyToRun) methods that a recording lacks, from the
 * assemblies with the recorded GUID. No runtime reports these IL offsets.
 */
#ifndef SPOOR_SYMBOLS_PRECOMPILED_H
#define SPOOR_SYMBOLS_PRECOMPILED_H

struct symbol_cache;
struct trace;

/*
 * Adds IL offsets to the bodies in trace.lines that have none, if there is a PDB to find lines with; and
 * code to trace.code, if trace.code.wanted. `cache` may be NULL. 0, or -ENOMEM.
 */
int precompiled_load(struct trace *trace, const struct symbol_cache *cache);

#endif
