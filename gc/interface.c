/* Identifies the runtime by the one number it passes: the major version of its interface. */
#include "gc/interface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Newest last. */
static const struct gc_runtime runtimes[] = {
	{ .major = 1,
		.dotnet = 8,
		.to_clr_count = 50,
		.sink_count = 38,
		.heap_count = 85,
		.answer_minor = 2,
		.dac_minor = 0,
		.collectible_flag = 0x10000000 },
	{ .major = 2,
		.dotnet = 9,
		.to_clr_count = 50,
		.sink_count = 38,
		.heap_count = 87,
		.answer_minor = 3,
		.dac_minor = 0,
		.collectible_flag = 0x00200000 },
	{ .major = 4,
		.dotnet = 10,
		.to_clr_count = GC_TO_CLR_COUNT,
		.sink_count = GC_SINK_COUNT,
		.heap_count = GC_HEAP_COUNT,
		.answer_minor = 5,
		.dac_minor = 4,
		.collectible_flag = 0x00200000 },
};

#define RUNTIMES (sizeof(runtimes) / sizeof(*runtimes))

const struct gc_runtime *gc_runtime_of(uint32_t ee_major, bool *ret_known)
{
	for (size_t i = 0; i < RUNTIMES; i++) {
		if (runtimes[i].major == ee_major) {
			*ret_known = true;
			return &runtimes[i];
		}
	}
	*ret_known = false;
	return &runtimes[RUNTIMES - 1];
}

bool gc_runtime_accept(const char *library, uint32_t ee_major,
	const struct gc_runtime **ret_runtime)
{
	const char *setting = getenv("SPOOR_GC_UNKNOWN");
	bool refuse = setting && strcmp(setting, "refuse") == 0;
	char text[400];
	bool known;

	*ret_runtime = gc_runtime_of(ee_major, &known);
	if (known)
		return true;
	int len = snprintf(text, sizeof(text),
		"%s: interface version %u of this runtime is not known (1, 2 and 4 are: .NET 8, 9, "
		"10). %s\n",
		library, ee_major,
		refuse ? "SPOOR_GC_UNKNOWN=refuse is set, so it stops here; unset DOTNET_GCName to "
			 "start with the runtime's own collector."
		       : "It continues as for .NET 10; set SPOOR_GC_UNKNOWN=refuse to stop instead.");
	if (len > 0) {
		/*
		 * The runtime's own way to report errors needs its table, whose layout is unknown
		 * here. A failed write cannot be reported.
		 */
		ssize_t written = write(STDERR_FILENO, text, (size_t)len);
		(void)written;
	}
	return !refuse;
}
