/*
 * Changes of the machine during a recording: CPUs that come online or go offline, a suspend, a new
 * time of day. Each is written to the file with a notice. The first two members are set by the
 * session, and borrowed.
 */
#ifndef SPOOR_RECORDING_MACHINE_CHANGES_H
#define SPOOR_RECORDING_MACHINE_CHANGES_H

#include <stdint.h>

#include "pipeline/clock_watch.h"

struct recorder;
struct session_writer;

struct machine_changes {
	struct session_writer *writer;
	struct recorder *recorder;
	struct clock_watch clocks;
	uint64_t checked_ns;
};

/* Called at the session's begin; also writes the offset of the kernel's clock. */
void machine_changes_begin(struct machine_changes *changes);

/* Does nothing within a second of the last check. */
void machine_changes_check(struct machine_changes *changes, uint64_t now_ns);

#endif
