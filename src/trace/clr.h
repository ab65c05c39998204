/*
 * Decodes the CLR's events that method names need: load, unload and rundown of methods and modules.
 * Layouts: the runtime's manifest, checked against .NET 10.0.12 (facts: diagnostics-ipc.md 3.1a).
 */
#ifndef SPOOR_TRACE_CLR_H
#define SPOOR_TRACE_CLR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/clr_event.h"

struct bytes;
struct code;
struct codemap;

/* Keywords of Microsoft-Windows-DotNETRuntime and its rundown provider. */
#define CLR_KEYWORD_LOADER UINT64_C(0x8)
#define CLR_KEYWORD_JIT    UINT64_C(0x10)
#define CLR_KEYWORD_NGEN   UINT64_C(0x20)
#define CLR_KEYWORD_IL_MAP UINT64_C(0x20000) /* IL offsets of compiled methods */
/* exceptions: each step; the throw alone */
#define CLR_KEYWORD_EXCEPTION  UINT64_C(0x8000)
#define CLR_KEYWORD_MONITORING UINT64_C(0x200000000)

/* The runtime's sampler: a thread's stack, and whether it was in managed code then. */
#define CLR_THREAD_SAMPLE  0u
#define CLR_SAMPLE_MANAGED 2u

/*
 * Takes one event of the CLR, or with `rundown` of its rundown provider, into the map; other ids
 * are ignored. 1: the map changed, 0: not, -EBADMSG: too short, or codemap_add()'s error.
 */
int clr_absorb_method(struct codemap *map, int rundown, uint32_t event_id, uint32_t version,
	uint64_t time_ns, const uint8_t *payload, size_t size);

/* Whether the event is of an assembly that can be unloaded, with its methods. */
bool clr_is_collectible(int rundown, uint32_t event_id, const uint8_t *payload, size_t size);

/* The payload of MethodUnloadVerbose (version 1) for a body, as the runtime would write it. */
void clr_method_unload_payload(const struct code *code, struct bytes *out);

#endif
