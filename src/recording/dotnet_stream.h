/* The sessions of one runtime, each with its own stream, and what they are to report (dotnet_client.h). */
#ifndef SPOOR_RECORDING_DOTNET_STREAM_H
#define SPOOR_RECORDING_DOTNET_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct ipc_provider;

/* The streams that carry events for the caller come first. */
enum dotnet_stream {
	DOTNET_STREAM_LIVE,
	DOTNET_STREAM_STACKS,     /* events with stacks: wishes.stack_kinds */
	DOTNET_STREAM_ACTIVITIES, /* with stacks: wishes.activities */
	/* wishes.exceptions; closed and opened again at will */
	DOTNET_STREAM_EXCEPTIONS,
	/* wishes.allocations, with stacks; likewise */
	DOTNET_STREAM_ALLOCATIONS,
	DOTNET_STREAM_COUNTS,  /* the runtime's EventCounters: opened on demand only */
	DOTNET_STREAM_SAMPLES, /* the runtime's sampled stacks: wishes.samples */
	DOTNET_STREAM_RUNDOWN,
	/* methods compiled during it, if the live session does not report them */
	DOTNET_STREAM_METHODS,
	DOTNET_STREAM_SETTLE, /* no event: see dotnet_client_open() */
	DOTNET_STREAM_COUNT,
};

/* Methods are reported in any case. All zero: nothing else. */
struct dotnet_wishes {
	/*
	 * What the live session requests beside the method events, borrowed. Methods need level 5 of
	 * the runtime's own provider. Where the level given here is lower, the other events of level 5
	 * are left out by the runtime if it can (.NET 10), else they arrive and the caller must ignore
	 * them.
	 */
	const struct ipc_provider *providers;
	uint32_t provider_count;
	/*
	 * Events of these kinds (enum stacks_of) come with stacks, in a session of their own. The live
	 * session leaves them out, unless the runtime cannot filter events (before .NET 10): then the
	 * caller ignores those of the live session, see dotnet_client_takes_stacks().
	 */
	unsigned stack_kinds;
	/* Activities (dotnet/activity_providers.h), with stacks, in a session of their own. */
	bool activities;
	/*
	 * Exceptions, which the providers or stack_kinds request, come in a session of their own, with
	 * stacks if those were requested. It can be closed and opened again. Likewise the sampled
	 * allocations that stack_kinds requests.
	 */
	bool exceptions;
	bool allocations;
	/* The runtime samples its managed threads. */
	bool samples;
	/* The IL offsets of compiled methods, of those that exist and of new ones. */
	bool lines;
	/*
	 * No events for newly compiled methods, unless `providers` request level 5, which includes them:
	 * at level 5 a runtime also prepares events of its allocations and of the joins of its
	 * collector, whether they are sent or not. At level 4 it still reports, by name, which methods
	 * made at run time (LCG) were freed, and which modules were loaded and unloaded.
	 */
	bool without_methods;
	/*
	 * The runtime waits before its first instruction until it is resumed. So its live session
	 * reports every method that is compiled, and the precompiled ones at its end; there is no other
	 * rundown. The names are known once the session is open.
	 */
	bool from_start;
};

#endif
