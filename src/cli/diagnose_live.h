/*
 * spoor diagnose of running processes: records them with `spoor record` in a child process, and
 * observes meanwhile what samples and runtimes do not say: memory, descriptors, run-queue delay, and
 * stacks. The recorder writes these as events (recording/live_observations.h), so that the recording has all
 * that the verdict needs.
 *
 *   diagnose_live_run(&live)     the recording is in live.path, or a failure was printed
 *   diagnose_live_done(&live)
 */
#ifndef SPOOR_CLI_DIAGNOSE_LIVE_H
#define SPOOR_CLI_DIAGNOSE_LIVE_H

#include <stdint.h>

#include "cli/options.h"
#include "target/targets.h"

struct diagnose_live {
	const struct target_query *query; /* the caller's, as the next */
	const struct texts *outputs;      /* of -o; may be empty */
	uint64_t duration_ns;
	struct targets targets;
	char path[4096]; /* of the recording */
};

/* The exit code; EXIT_DONE: the recording is complete. Otherwise the reason has been printed. */
int diagnose_live_run(struct diagnose_live *live);

void diagnose_live_done(struct diagnose_live *live);

#endif
