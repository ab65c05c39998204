/*
 * Perf maps: the text files in which runtimes list compiled code (/tmp/perf-PID.map).
 *
 *   7f3a10002000 1a0 int32 [Shop] Shop.Cart::Sum(int32[])[OptimizedTier1]
 *
 * Begin (with or without 0x) and size are hexadecimal; the rest is the name. The file has no times:
 * a later line replaces the bodies that it overlaps. Names of .NET are split into the codemap's
 * parts; any other is stored in `name`, with an empty name space.
 */
#ifndef SPOOR_CODE_PERF_MAP_H
#define SPOOR_CODE_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

struct codemap;
struct diag;
struct input;

#define PERF_MAP_LINE_MAX (32u << 10) /* longer names are truncated */
#define PERF_MAP_SIZE_MAX (UINT64_C(512) << 20)

/*
 * Adds every line from time 0 on, except malformed ones. Returns the number of bodies, or a
 * negative errno (earlier bodies remain). -EMSGSIZE: larger than PERF_MAP_SIZE_MAX.
 */
int perf_map_read(struct input *in, struct codemap *map, struct diag *diag);

/* One name as perf maps and jitdumps spell it, added as a body. For both readers. */
int perf_map_add(struct codemap *map, uint64_t begin, uint64_t size, const char *name,
	size_t name_len, uint64_t from_ns);

#endif
