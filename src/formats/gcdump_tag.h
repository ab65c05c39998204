/* The tags and texts of a .gcdump file, for its reader and its writer (docs/formats/gcdump.md). */
#ifndef SPOOR_FORMATS_GCDUMP_TAG_H
#define SPOOR_FORMATS_GCDUMP_TAG_H

#include <stdint.h>

/* The byte before each object and each deferred value. */
enum gcdump_tag {
	GCDUMP_NULL = 1,
	GCDUMP_REFERENCE = 2,
	GCDUMP_BEGIN_OBJECT = 4,
	GCDUMP_END_OBJECT = 6,
	GCDUMP_BYTE = 8,
	GCDUMP_SKIP_REGION = 12,
	GCDUMP_STRING = 13,
};

/* The file's first text, and the types of its objects. */
#define GCDUMP_MAGIC   "!FastSerialization.1"
#define GCDUMP_DUMP    "GCHeapDump"
#define GCDUMP_GRAPH   "Graphs.MemoryGraph"
#define GCDUMP_INFO    "DotNetHeapInfo"
#define GCDUMP_SEGMENT "GCHeapDumpSegment"

/* 1970, in units of 100 ns since the year 1. */
#define GCDUMP_TICKS_1970 INT64_C(621355968000000000)

#endif
