/*
 * Samples that leave the reorder window: writes them, and the losses that the rings report.
 *
 * All zero is an empty struct. The members above `cpus` are set by the session.
 */
#ifndef SPOOR_RECORDING_SAMPLES_H
#define SPOOR_RECORDING_SAMPLES_H

#include <stdint.h>

#include "base/vec.h"
#include "code/unwind.h"

struct live_options;
struct pending;
struct process_table;
struct recorder_info;

/* PENDING_SHARE, value: the CPU time in the lower bits, the number of samples above. */
#define SAMPLES_SHARE_COUNT_SHIFT 48u
#define SAMPLES_SHARE_COUNT_MAX   UINT64_C(0xffff)
#define SAMPLES_SHARE_NS_MAX      ((UINT64_C(1) << SAMPLES_SHARE_COUNT_SHIFT) - 1)

/* PENDING_SAMPLE, value: enum sample_flag in the lower bits; above, 1 + enum unwind_end, or 0: not unwound. */
#define SAMPLES_END_SHIFT 32u

struct sample_cpu {
	uint64_t carry_ns;    /* remainder of sample weights below one millisecond */
	uint64_t last_ns;     /* time of the last record */
	uint64_t throttle_ns; /* since when the CPU is throttled; 0: it is not */
	/* the thread that exited last on it; 0: none */
	uint32_t exited_pid;
	uint32_t exited_tid;
};

struct samples {
	struct process_table *table; /* borrowed */
	uint64_t period_ns;          /* of the rings' samples */
	VEC(struct sample_cpu) cpus;
	uint64_t carry_ns; /* as of a CPU, of shares of CPU time */
	uint64_t count;    /* written */
	uint64_t late;
	uint64_t lost;
	uint64_t unwound; /* written samples whose stack was unwound */
	uint64_t unwound_ends
		[UNWIND_END_COUNT]; /* of `unwound`, by the way that the unwinding ended */
	/* dropped because the file size limit was reached, since the last report */
	uint64_t cut;
};

/* Each writes an item of the window, of kind PENDING_SAMPLE, PENDING_SHARE and PENDING_LOST. */
void samples_write(struct samples *samples, const struct pending *item, uint64_t late_ns);
void samples_write_share(struct samples *samples, const struct pending *item, uint64_t late_ns);
void samples_write_lost(struct samples *samples, const struct pending *item);

/* An item of kind PENDING_THROTTLE or PENDING_UNTHROTTLE: the suppressed samples are a loss. */
void samples_throttle(struct samples *samples, const struct pending *item);

/* Called for each item that a CPU's ring produced, after it was handled. */
void samples_note(struct samples *samples, const struct pending *item);

/* Writes the samples that were cut as a loss. */
void samples_tell_cut(struct samples *samples);

/*
 * Called when all samples are written. Returns how much of the command's CPU time `command_ns` no
 * sample covers, as an estimate, and writes a notice if it is not 0. 0 too if the sampled tasks are
 * not those of the command alone.
 */
uint64_t samples_tell_unsampled(struct samples *samples, const struct live_options *options,
	const struct recorder_info *info, uint64_t command_ns);

void samples_done(struct samples *samples);

#endif
