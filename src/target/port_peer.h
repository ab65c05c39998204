/*
 * The process of a runtime that has connected to Spoor's diagnostics port, or listens at a path: a
 * struct target with the facts that /proc shows.
 *
 *   port_peer_read(facts, TARGET_PLACE, &peer);             of one that has connected
 *   port_peer_ask(path, TARGET_PLACE, &peer, &diag);        of one that listens: sends it ProcessInfo
 *   ... peer.target ...
 *   port_peer_done(&peer);
 */
#ifndef SPOOR_TARGET_PORT_PEER_H
#define SPOOR_TARGET_PORT_PEER_H

#include <stdbool.h>

#include "target/targets.h"

struct diag;
struct reverse_peer;

struct port_peer {
	struct target target; /* texts live as long as this */
	/*
	 * its pid is valid in our pid namespace. Else it is the pid that the runtime reported, and
	 * another process here may have that number
	 */
	bool seen;
	struct targets targets;
	char name[64];
};

/* `details` as targets_choose() takes them. */
void port_peer_read(const struct reverse_peer *facts, unsigned details, struct port_peer *ret_peer);

/* Waits for its answer, a few seconds at most. */
int port_peer_ask(const char *path, unsigned details, struct port_peer *ret_peer,
	struct diag *diag);

void port_peer_done(struct port_peer *peer);

#endif
