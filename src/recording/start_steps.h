/* Writes the steps of a .NET program's start into the file, each one time. */
#ifndef SPOOR_RECORDING_START_STEPS_H
#define SPOOR_RECORDING_START_STEPS_H

#include <stdint.h>

struct process_table;

/* The process has mapped the file `path` at `time_ns`: a step if it is a library of .NET's host. */
void start_steps_note_image(struct process_table *table, uint32_t process, const char *path,
	uint64_t time_ns);

/*
 * The runtime of the process is known: writes the step of its exec. A single-file program maps no
 * library of the host.
 */
void start_steps_note_exec(struct process_table *table, uint32_t process);

#endif
