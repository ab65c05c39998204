/* The methods of .NET in which a thread waits, and those that run the code of others. */
#ifndef SPOOR_CODE_MANAGED_WAIT_H
#define SPOOR_CODE_MANAGED_WAIT_H

#include <stdbool.h>

struct managed_wait {
	const char *method; /* the beginning of its name */
	const char *words;  /* after "waits" */
	bool lock;
	bool idle;  /* a thread of the runtime without work */
	bool alone; /* only where no other wait is nearer to the leaf */
};

/* `name` with its namespace and arguments, "System.Threading.Monitor.Enter(object)". NULL: none. */
const struct managed_wait *managed_wait_of(const char *name);

/* Whether the method reads or writes files, sockets or terminals, for all its callers. */
bool managed_wait_is_io(const char *name);

/* Whether the method runs work items, timers or threads: its callers only started what waits. */
bool managed_wait_is_runner(const char *name);

#endif
