/*
 * Forwards calls between two objects without knowing their signatures.
 *
 * A forwarder of slot n replaces the first argument, the proxy's object, by the object behind it,
 * and jumps through slot n of that object's table. All other registers and the stack are unchanged,
 * so any arguments and results pass, also for slots that a later runtime adds. Only slots that the
 * proxy observes have a function of their own.
 */
#ifndef SPOOR_GC_PROXY_PROXY_FORWARD_H
#define SPOOR_GC_PROXY_PROXY_FORWARD_H

#include <stddef.h>

/* Maximum number of slots of a table. */
#define GC_FORWARD_SLOTS 128

/* The object that one side sees instead of `behind`; the forwarders know this layout. */
struct gc_forward {
	void *const *table;
	void *behind;
};

/* Fills a table with forwarders: each slot to the same slot. */
void gc_forward_fill(void *table[GC_FORWARD_SLOTS]);

#endif
