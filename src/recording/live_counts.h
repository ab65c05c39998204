/* The counters of a live session (live.h), as the caller shows them and as the file has them. */
#ifndef SPOOR_RECORDING_LIVE_COUNTS_H
#define SPOOR_RECORDING_LIVE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "code/unwind.h"
#include "pipeline/output_limit.h"
#include "symbolize/symbolizer.h"

struct live;

/* The message for live_counts.dotnet_withheld. */
/* Its arguments are "1 .NET process", "its" or "2 .NET processes", "their". */
#define LIVE_WITHHELD \
	"the events of %s of other users were left out: the capabilities of spoor's file are for %s names and stacks only"
#define LIVE_WITHHELD_REMEDY "record with sudo to have the events too, or choose --no-events"

/* Counters for the progress line and the summary. */
struct live_counts {
	uint64_t samples;
	uint64_t lost; /* samples that the kernel reported as lost */
	uint64_t late;
	uint64_t blocks; /* of threads, with options.off_cpu */
	uint64_t events; /* of .NET runtimes */
	uint64_t lttng_events;
	uint64_t lttng_lost;    /* discarded by LTTng, or of unknown processes */
	bool lttng_incomplete;  /* more may be missing; a notice has the reason */
	const char *lttng_left; /* the session of LTTng that may be left, borrowed; NULL: none */
	uint64_t usdt_events;
	uint64_t usdt_lost;       /* events of probes not written, apart from `lost` */
	uint64_t usdt_unreadable; /* arguments that could not be read */
	uint32_t usdt_sites;      /* places in code that were probed */
	uint32_t usdt_refused;    /* places that could not be probed */
	uint32_t usdt_missed;     /* images that were not probed before their process ended */
	bool usdt;                /* probes were requested */
	uint64_t user_events;
	uint64_t user_events_lost;         /* events not written, apart from `lost` */
	uint32_t user_tracepoints;         /* tracepoints that were opened */
	uint32_t user_tracepoints_refused; /* tracepoints that could not be opened */
	bool user_events_wanted;           /* they were requested */
	uint64_t events_counted;           /* not written: see event_bound.h */
	/* by a runtime, or here because a memory or size limit was reached */
	uint64_t events_lost;
	uint64_t bytes; /* in the file */
	/* estimated CPU time of the command that no sample covers */
	uint64_t unsampled_ns;
	uint64_t command_ns; /* total CPU time of the command */
	uint64_t frames;     /* of samples; counted at the end */
	uint64_t unnamed[UNNAMED_CAUSE_COUNT];
	uint64_t begin_ns;
	uint64_t end_ns;
	uint32_t dotnet_asked;
	uint32_t dotnet_known;
	/* processes whose events were not recorded (managed_withheld()) */
	uint32_t dotnet_withheld;
	uint32_t dotnet_memory; /* processes whose methods were read from their memory */
	bool dotnet_not_asked;  /* because of options.names_from_memory */
	uint32_t dotnet_silent; /* processes that were stopped or did not answer */
	uint32_t targets_left;
	bool memory_full;
	enum output_limit_kind limit; /* the limit that was reached */
	uint64_t unwound;             /* samples whose stack was unwound, and how those ended */
	uint64_t unwound_ends[UNWIND_END_COUNT];
};

void live_count(const struct live *live, struct live_counts *ret_counts);

/* Writes the losses that are not written yet, and the event that ends the session. */
void live_counts_end(struct live *live, const char *reason);

#endif
