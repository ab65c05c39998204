/*
 * The listen port of a live session: the command that is recorded, and the processes that it starts, were told of it by their environment, and each .NET runtime among them
 * waits there before its first instruction (dotnet/reverse.h).
 *
 * A runtime that has come is held until the process table has reached the time at which it came, some 10 ms: only then it is known which process it is. Its session is
 * opened, then it is resumed (managed_hold()). One that is not recorded is resumed without a session.
 */
#ifndef SPOOR_RECORDING_LIVE_PORT_H
#define SPOOR_RECORDING_LIVE_PORT_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct live;

/* Descriptors to wait for: written to `fds` (at most `room`), their number returned. */
size_t live_port_fds(const struct live *live, struct pollfd *fds, size_t room);

/* When to call live_port_advance() at the latest; UINT64_MAX for never. */
uint64_t live_port_wake_ns(const struct live *live);

/* In each turn, when the rings were read. */
void live_port_advance(struct live *live, uint64_t now_ns);

/* The recording is over: from now on the port's helper (reverse_stand_in()) resumes the runtimes that wait and come. */
void live_port_leave(struct live *live);

void live_port_close(struct live *live);

#endif
