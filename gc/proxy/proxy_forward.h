/*
 * Standing between two sides without knowing what they say to each other.
 *
 * A forwarder of slot n needs no signature: it puts the object that stands behind ours in the place of the first argument and jumps through slot n
 * of that object's own table. All other registers and the stack stay as they are, so any arguments and any result pass, also of slots that a
 * later runtime adds. Only slots that the proxy has something to say about get a function of their own.
 */
#ifndef SPOOR_GC_PROXY_PROXY_FORWARD_H
#define SPOOR_GC_PROXY_PROXY_FORWARD_H

#include <stddef.h>

/* As many slots as any table may grow to. */
#define GC_FORWARD_SLOTS 128

/* What one side sees instead of `behind`: the forwarders know this layout. */
struct gc_forward {
	void *const *table;
	void *behind;
};

/* Fills a table with forwarders: each slot to the same slot. */
void gc_forward_fill(void *table[GC_FORWARD_SLOTS]);

#endif
