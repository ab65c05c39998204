/*
 * Events that samples of the kernel carry in their raw data, with a call chain: hits of USDT probes, user_events. They
 * are decoded when a ring is read, wait in the reorder window, and are written when they leave it.
 */
#ifndef SPOOR_RECORDING_HITS_H
#define SPOOR_RECORDING_HITS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/reorder_window.h"

struct perf_record;
struct process_table;

/* What became of the events of one kind. */
struct hits {
	uint64_t count;       /* written */
	uint64_t late;        /* of these */
	uint64_t cut;         /* not written, since the file was full */
	uint64_t memory_lost; /* not kept, without memory */
};

/* A decoded event; its pointers are borrowed for the call. */
struct hit_event {
	uint32_t schema_index;
	uint32_t payload_size;
	const uint8_t *payload;
	const uint8_t *activity; /* EVENT_ACTIVITY_SIZE bytes; NULL: none */
};

/* Puts an event of the sample `record` into the window; NULL, and counted: no memory. */
struct pending *hits_put(struct hits *hits, struct reorder_window *window, enum pending_kind kind,
	const struct perf_record *record, uint32_t stack_index, const struct hit_event *event);

/* Writes an item that leaves the window; its side is freed by the caller. False: of no recorded process, or cut. */
bool hits_write(struct hits *hits, struct process_table *table, const struct pending *item,
	uint64_t late_ns);

/* Events that were not written, apart from those that full rings lost. */
uint64_t hits_lost(const struct hits *hits);

#endif
