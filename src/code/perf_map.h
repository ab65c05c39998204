/*
 * Perf maps: the text files in which runtimes tell what they compiled (/tmp/perf-PID.map).
 *
 *   7f3a10002000 1a0 int32 [Shop] Shop.Cart::Sum(int32[])[OptimizedTier1]
 *
 * Begin (with or without 0x), size, both hexadecimal, and the rest of the line is the name. There is no time in it: a later line replaces
 * what it overlaps. Names of .NET are taken apart into the codemap's pieces; any other name stands whole in `name`, its name space empty.
 */
#ifndef SPOOR_CODE_PERF_MAP_H
#define SPOOR_CODE_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

struct codemap;
struct diag;
struct input;

#define PERF_MAP_LINE_MAX (32u << 10)   /* longer names are cut */
#define PERF_MAP_SIZE_MAX (UINT64_C(512) << 20)

/*
 * Adds every line to the map, from time 0 on. Lines that are not of this form are skipped. Returns how many were added, or a negative errno; what came
 * before a failure stands. -EMSGSIZE when the file passes PERF_MAP_SIZE_MAX. The input stays the caller's.
 */
int perf_map_read(struct input *in, struct codemap *map, struct diag *diag);

/* One name as perf maps and jitdumps spell it, added as a body. For both readers. */
int perf_map_add(struct codemap *map, uint64_t begin, uint64_t size, const char *name, size_t name_len,
	uint64_t from_ns);

#endif
