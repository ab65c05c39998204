/*
 * The system calls for input and output of the recorded processes: takes the sums of perf/io_probe.h, names what
 * they are about, and writes them to the file (IoCalls).
 *
 *   io_recording_open(&io)                    `table` is set; without a probe there is a reason in io.limit
 *   io_recording_start(&io)
 *   io_recording_flush(&io, false)            at each flush, after the reorder window, before ended processes go
 *   io_recording_stop(&io);  io_recording_flush(&io, true)
 *   io_recording_done(&io)
 *
 * The sums of a process whose fork or exec may not have left the reorder window yet wait for the next flush. All zero
 * records nothing.
 */
#ifndef SPOOR_RECORDING_IO_RECORDING_H
#define SPOOR_RECORDING_IO_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "perf/io_probe.h"
#include "recording/io_names.h"

struct process_table;

struct io_row {
	struct io_sum sum;
	uint32_t text; /* in io_recording.texts; 0: not known */
	uint32_t process;
	uint8_t thing;   /* enum io_thing */
	uint8_t flushes; /* that it has waited for its process */
};

struct io_rows {
	VEC(struct io_row) list;
};

struct io_recording {
	struct process_table *table; /* borrowed, set by the session */
	struct io_probe *probe;      /* NULL: nothing is recorded */
	struct diag limit;           /* limit.error: why not; with a remedy */
	struct io_names names;
	struct io_rows rows; /* that wait for their process */
	struct strtab texts; /* of these rows */
	uint64_t from_ns;    /* of the last flush */
	uint64_t count;      /* calls that were written */
	uint64_t cut;        /* calls for which there was no room here or in the file */
	uint64_t lost;       /* these and those of the probe, as of the last report */
};

void io_recording_open(struct io_recording *io);

/* Before the processes may run. Without a probe a notice says why. */
void io_recording_start(struct io_recording *io);
void io_recording_stop(struct io_recording *io);

/* `last`: nothing may wait any longer. */
void io_recording_flush(struct io_recording *io, bool last);

size_t io_recording_size_bytes(const struct io_recording *io);
void io_recording_done(struct io_recording *io);

#endif
