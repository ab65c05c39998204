/*
 * spoor diagnose of running processes: records them with `spoor record` in a child process, and
 * reads meanwhile what a recording lacks: memory, descriptors, run-queue delay, and stacks.
 *
 *   diagnose_live_run(&live, verb, &facts, &diag)    the recording is in live.path, or a failure
 *   ... the recording is read, and its facts are gathered ...
 *   diagnose_live_gather(&live, &facts)              adds the facts of these readings
 *   diagnose_live_done(&live)
 */
#ifndef SPOOR_CLI_DIAGNOSE_LIVE_H
#define SPOOR_CLI_DIAGNOSE_LIVE_H

#include <stdint.h>

#include "base/vec.h"
#include "cli/options.h"
#include "diagnose/stack_looks.h"
#include "machine/process_use.h"
#include "target/targets.h"

struct diag;
struct facts;
struct report;

#define LIVE_USES_MAX 8u

/* The readings of one process. */
struct live_process {
	struct process_use uses[LIVE_USES_MAX];
	uint32_t use_count;
	struct stack_looks looks;
};

struct diagnose_live {
	const struct target_query *query; /* the caller's, as the next */
	const struct texts *outputs;      /* of -o; may be empty */
	uint64_t duration_ns;
	struct targets targets;
	VEC(struct live_process) processes; /* in the order of the targets */
	char path[4096];                    /* of the recording */
};

/* The exit code; EXIT_DONE: the recording is complete. Otherwise the reason has been printed. */
int diagnose_live_run(struct diagnose_live *live, struct facts *facts);

/* Adds the observed processes that are not in the recording: they used no CPU. 0 or -ENOMEM. */
int diagnose_live_add_idle(const struct diagnose_live *live, struct facts *facts,
	const struct report *report);

/* 0 or -ENOMEM. */
int diagnose_live_gather(const struct diagnose_live *live, struct facts *facts);

void diagnose_live_done(struct diagnose_live *live);

#endif
