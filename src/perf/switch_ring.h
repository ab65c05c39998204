/*
 * The context switches that the program of sched_probe.h has seen: a ring for each CPU, in memory that it shares with
 * the recorder. A switch takes a few stores. No other program can interrupt it on its CPU, so it needs no lock.
 *
 *   switch_ring_begin(ring);                     the entries in it now
 *   drain the ring of perf of the same CPU       it has the stacks of all these switches
 *   while (switch_ring_next(ring, &entry)) ...
 *
 * An entry whose thread left the CPU in an unknown block has SWITCH_ENTRY_SAMPLE, and its stack is in a sample with
 * the same time, unless that was lost.
 */
#ifndef SPOOR_PERF_SWITCH_RING_H
#define SPOOR_PERF_SWITCH_RING_H

#include <stdbool.h>
#include <stdint.h>

#define SWITCH_RING_BYTES_MAX (32u << 20) /* of all CPUs together */
#define SWITCH_RING_ENTRIES   16384u      /* of a CPU, if they fit; a power of two */
#define SWITCH_RING_PARTS     4u /* the recorder is woken when another part of the ring is full */

enum switch_entry_flag {
	SWITCH_ENTRY_OUT =
		1
		<< 0, /* the previous thread is recorded; else its ids are right and that is all */
	SWITCH_ENTRY_IN = 1 << 1,     /* the next thread is recorded */
	SWITCH_ENTRY_SAMPLE = 1 << 2, /* the stack is in a sample */
	SWITCH_ENTRY_KNOWN = 1 << 3,  /* `row` and `version` are those of a known block */
};

/* As the program writes it. */
struct switch_entry {
	uint64_t time_ns;
	uint32_t tid; /* of the thread that left the CPU */
	uint32_t pid;
	uint32_t next_tid; /* of the one that came */
	uint32_t next_pid;
	uint32_t row;
	uint32_t version;
	uint32_t state; /* prev_state of sched_switch */
	uint32_t flags; /* enum switch_entry_flag */
};

/* One for each CPU number, before the entries. */
struct switch_ring_head {
	uint64_t written; /* entries so far; by the program, as the next */
	uint64_t lost;
	uint64_t unused[6]; /* to the next cache line */
	uint64_t taken;     /* by the recorder, as the next */
	uint64_t open;      /* 0: nothing is written */
	uint64_t unused_too[6];
};

struct switch_ring {
	struct switch_ring_head *head;
	const struct switch_entry *entries;
	uint64_t end;  /* of the entries that switch_ring_next() returns */
	uint64_t lost; /* as of the last switch_ring_lost() */
	uint32_t mask;
};

/* Entries that each of so many rings has; 0: they do not fit. */
uint32_t switch_ring_entries(uint32_t cpu_count);

/* Bytes of all heads, and of them and the entries. */
uint64_t switch_ring_heads_bytes(uint32_t cpu_count);
uint64_t switch_ring_bytes(uint32_t cpu_count);

/* The ring of a CPU below `cpu_count` in memory of switch_ring_bytes(). */
struct switch_ring switch_ring_at(void *memory, uint32_t cpu_count, uint32_t cpu);

void switch_ring_begin(struct switch_ring *ring);
bool switch_ring_next(struct switch_ring *ring, struct switch_entry *ret_entry);

/* Entries that did not fit since the last call. */
uint64_t switch_ring_lost(struct switch_ring *ring);

/* Whether switches are written from now on. */
void switch_ring_open(struct switch_ring *ring, bool open);

#endif
