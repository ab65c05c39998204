/*
 * Methods that a runtime has freed: their end is written in time order, so that samples before it have
 * their names, and samples after it are looked up again.
 */
#ifndef SPOOR_RECORDING_REMOVED_CODE_H
#define SPOOR_RECORDING_REMOVED_CODE_H

#include <stdint.h>

struct pending;
struct process_table;

/* Puts the removals that the symbolizer has noticed into the reorder window (PENDING_CODE_REMOVED). */
void removed_code_queue(struct process_table *table);

/* An item of kind PENDING_CODE_REMOVED. */
void removed_code_write(struct process_table *table, const struct pending *item);

/* Like removed_code_queue(), but those of this process take effect now. */
void removed_code_end(struct process_table *table, uint32_t process);

#endif
