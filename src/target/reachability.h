/*
 * Counts the .NET processes of the machine, and those whose diagnostics socket takes connections.
 * Nothing is sent to them.
 */
#ifndef SPOOR_TARGET_REACHABILITY_H
#define SPOOR_TARGET_REACHABILITY_H

#include <stdint.h>

struct diag;

struct reachability {
	uint32_t found; /* processes with signs of .NET whose mappings this user may read */
	/* other processes that look like .NET by their arguments or socket */
	uint32_t likely;
	uint32_t reachable;   /* of them: a socket that takes connections */
	uint32_t hidden;      /* processes whose mappings this user may not read */
	uint32_t refused_pid; /* the first that is not reachable; 0 none */
	char reason[256];     /* why it is not */
};

int reachability_count(struct reachability *ret_reachability, struct diag *diag);

#endif
