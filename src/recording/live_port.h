/*
 * The listen port of a live session. The recorded command and its children inherit the port's
 * address in their environment, and each .NET runtime among them connects to it and waits before
 * its first instruction (dotnet/reverse.h).
 *
 * A runtime that has connected is held until the process table has been updated to the time of the
 * connection, about 10 ms, because only then its process is known. Its session is opened and the
 * runtime is resumed (managed_hold()). A runtime that is not recorded is resumed without a session.
 */
#ifndef SPOOR_RECORDING_LIVE_PORT_H
#define SPOOR_RECORDING_LIVE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "dotnet/held_runtime.h"

struct poll_set;
struct process_table;
struct reverse;

/* Records of other CPUs are in their rings after this delay. */
#define LIVE_PORT_SKEW_NS UINT64_C(10000000)

/* A runtime that has connected to the listen port. */
struct live_newcomer {
	struct held_runtime held;
	uint64_t came_ns;
	bool judged; /* it is resumed without a session */
};

/* All zero: no listen port. */
struct live_port {
	/* borrowed; set by the session */
	struct reverse *reverse; /* NULL: none */
	struct process_table *table;
	/*
	 * Without perf events the process table lags, so each runtime is resumed; it is found by
	 * its mappings, as any other.
	 */
	bool table_lags;
	VEC(struct live_newcomer) newcomers;
};

/* Adds what it waits for. */
void live_port_await(const struct live_port *port, struct poll_set *set);

/*
 * Called in each step, after the rings were read. live_port_take() returns true if a runtime waits
 * that connected at `until_ns` or before: the reorder window is then released up to that time.
 * live_port_judge() follows: it hands the runtimes whose process is in the table by `until_ns` to
 * managed_hold(), or resumes them.
 */
bool live_port_take(struct live_port *port, uint64_t until_ns, uint64_t now_ns);
void live_port_judge(struct live_port *port, uint64_t until_ns, uint64_t now_ns);

/*
 * Ends the port's part in the recording: from now on its helper process (reverse_stand_in())
 * resumes the runtimes that wait and that connect later.
 */
void live_port_leave(struct live_port *port);

void live_port_done(struct live_port *port);

#endif
