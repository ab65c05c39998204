/* The sessions of one runtime, each with its own stream (dotnet_client.h). */
#ifndef SPOOR_RECORDING_DOTNET_STREAM_H
#define SPOOR_RECORDING_DOTNET_STREAM_H

/* The streams that carry events for the caller come first. */
enum dotnet_stream {
	DOTNET_STREAM_LIVE,
	DOTNET_STREAM_STACKS,     /* events with stacks, after dotnet_client_stacks() */
	DOTNET_STREAM_ACTIVITIES, /* with stacks, after dotnet_client_activities() */
	/* exceptions, after dotnet_client_exceptions(); closed and opened again at will */
	DOTNET_STREAM_EXCEPTIONS,
	/* sampled allocations with stacks, after dotnet_client_allocations(); likewise */
	DOTNET_STREAM_ALLOCATIONS,
	DOTNET_STREAM_COUNTS,  /* the runtime's EventCounters: opened on demand only */
	DOTNET_STREAM_SAMPLES, /* the runtime's sampled stacks, after dotnet_client_sample() */
	DOTNET_STREAM_RUNDOWN,
	/* methods compiled during it, if the live session does not report them */
	DOTNET_STREAM_METHODS,
	DOTNET_STREAM_SETTLE, /* no event: see dotnet_client_open() */
	DOTNET_STREAM_COUNT,
};

#endif
