/*
 * A diagnostics port that Spoor listens at: runtimes with its path in DOTNET_DiagnosticPorts
 * connect to it, and by default wait before their first instruction until they are resumed.
 *
 *   reverse_listen(path, &reverse, &diag);
 *   each turn:  reverse_await(reverse, &set), poll_set_wait(&set), reverse_advance(reverse);
 *   while (reverse_next(reverse, &peer)) ...        a runtime that was not seen before: send requests through reverse_endpoint(reverse, peer)
 *   reverse_close(reverse);                         also removes the socket's file
 *
 * A runtime connects and sends an advertisement (34 bytes: its cookie and pid), waits for one
 * request, and connects again once it has replied: one connection, one exchange. So the connect
 * function of reverse_endpoint() returns the connection that waits, or -EAGAIN.
 */
#ifndef SPOOR_DOTNET_REVERSE_H
#define SPOOR_DOTNET_REVERSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dotnet/exchange.h"

struct diag;
struct poll_set;
struct reverse;

/* runtimes that run, or were not forgotten; further ones are resumed immediately */
#define REVERSE_PEERS_MAX       4096u
#define REVERSE_CONNECTIONS_MAX 256u /* that wait at a time */

struct reverse_peer {
	uint8_t cookie[16]; /* of this run of the runtime */
	uint64_t inner_pid; /* as it sees itself */
	/* from the socket's peer credentials; 0: of a pid namespace that we cannot see */
	uint32_t pid;
};

/* Decodes a runtime's advertisement, which has no pid (0). False: it is none. */
#define REVERSE_ADVERTISE_SIZE 34u
bool reverse_parse_advertise(const uint8_t *data, size_t size, struct reverse_peer *ret_peer);

/* Makes the socket, which must not exist, for this user only. */
int reverse_listen(const char *path, struct reverse **ret_reverse, struct diag *diag);

/* Adds the descriptors to wait for. */
void reverse_await(const struct reverse *reverse, struct poll_set *set);

/* Accepts connections and reads the advertisements. Never blocks. */
void reverse_advance(struct reverse *reverse);

/* The next runtime that this function has not returned yet. */
bool reverse_next(struct reverse *reverse, uint32_t *ret_peer);

const struct reverse_peer *reverse_peer(const struct reverse *reverse, uint32_t peer);

/* Lives as long as the port. */
struct dotnet_endpoint reverse_endpoint(struct reverse *reverse, uint32_t peer);

/* The caller has resumed this runtime. */
void reverse_resumed(struct reverse *reverse, uint32_t peer);

/* Releases the peer number, for another runtime once the process has ended. */
void reverse_forget(struct reverse *reverse, uint32_t peer);

/*
 * Resumes every runtime that waits or connects and was not resumed, and sends it nothing else,
 * until `until_ns` (CLOCK_MONOTONIC) or until no runtime has connected for `quiet_ns`.
 */
void reverse_release(struct reverse *reverse, uint64_t until_ns, uint64_t quiet_ns);

/*
 * For a command that has the port in its environment: forks a helper which, when this process is
 * killed or calls reverse_leave(), resumes every runtime that waits or connects, and removes the
 * socket in the end. The helper stays as long as the process `pid` runs and for 5 s more, and as
 * long as any process has the port in its environment. Without it these runtimes would wait for
 * ever. Call it early, as guard_start().
 *
 * When this process is stopped or hangs (no reverse_advance() for GUARD_PATIENCE_NS without using
 * CPU, or for GUARD_BUSY_NS), the helper resumes the runtimes that connect until it continues. A
 * connection that this process has accepted before waits for it.
 */
int reverse_stand_in(struct reverse *reverse, uint32_t pid, struct diag *diag);

/* Before this process stops itself: waiting runtimes reconnect, to the helper. */
void reverse_hang_up(struct reverse *reverse);

/*
 * Runtimes that the helper has resumed while this process was stopped, and that it had not seen.
 * One that still runs connects to the port as a new one.
 */
uint64_t reverse_missed(const struct reverse *reverse);

/*
 * From now on the helper resumes runtimes, and this process accepts none. A runtime that is being
 * resumed here may be resumed twice, which does no harm. Without a helper nothing happens.
 */
void reverse_leave(struct reverse *reverse);

/* Ends the helper, unless a process still has the port in its environment. */
void reverse_close(struct reverse *reverse);

/* Why accept() fails now: a negative errno (-EMFILE, -ENFILE); 0: it does not. */
int reverse_error(const struct reverse *reverse);

/*
 * Number of runtimes that were resumed immediately because the peer table (REVERSE_PEERS_MAX) was
 * full. reverse_next() does not return them.
 */
uint64_t reverse_unplaced(const struct reverse *reverse);

#endif
