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

#include <stdint.h>

struct live;
struct poll_set;

/* Adds what it waits for. */
void live_port_await(const struct live *live, struct poll_set *set);

/* Called in each step, after the rings were read. */
void live_port_advance(struct live *live, uint64_t now_ns);

/*
 * Ends the port's part in the recording: from now on its helper process (reverse_stand_in())
 * resumes the runtimes that wait and that connect later.
 */
void live_port_leave(struct live *live);

void live_port_close(struct live *live);

#endif
