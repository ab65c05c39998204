/*
 * What a recording lacks of precompiled (ReadyToRun) methods, from their assemblies, as far as these have
 * the recorded GUID: IL offsets, which no runtime reports, and machine code.
 */
#ifndef SPOOR_SYMBOLS_PRECOMPILED_H
#define SPOOR_SYMBOLS_PRECOMPILED_H

struct symbol_cache;
struct trace;

/*
 * Adds IL offsets to the bodies in trace.lines that have none, if there is a PDB to find lines with; and
 * code to trace.code, if it is wanted. `cache` may be NULL. 0, or -ENOMEM.
 */
int precompiled_load(struct trace *trace, const struct symbol_cache *cache);

#endif
