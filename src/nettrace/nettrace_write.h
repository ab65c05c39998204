/*
 * The file sink: nettrace version 6 (docs/formats/nettrace.md; Spoor's events in it:
 * docs/formats/spoor-nettrace.md).
 *
 * Events are buffered; flush() numbers the new stacks (sorted from the root, so that neighbours
 * share bytes when packed), threads and metadata, and writes whole blocks. On a regular file that
 * starts empty the blocks' bytes and a final zero word go in first, the word that opens them last:
 * whenever Spoor is killed, the file can be read up to the last flush. On anything else (pipe,
 * O_APPEND) blocks follow one another and end() writes the end mark. Packed with zstd
 * (packed_file.h) the same holds for the unpacked file.
 *
 * When a write fails (disk full), the file is cut back to the last complete flush, and the next
 * flush() tries again. After a failure in the middle of a write to a pipe every later call fails
 * the same way. Writing into a closed pipe raises SIGPIPE; the program ignores it.
 *
 * The events' times must not decrease; an earlier time becomes the latest so far, and is counted.
 */
#ifndef SPOOR_NETTRACE_NETTRACE_WRITE_H
#define SPOOR_NETTRACE_NETTRACE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "nettrace/nettrace_head_write.h"
#include "trace/flow.h"

struct trace;

struct nettrace_sink_options {
	int fd;                          /* opened by the caller for writing; stays his */
	const char *name;                /* for messages; borrowed until close */
	const struct nettrace_key *keys; /* own key/value pairs for the file's head; may be NULL */
	size_t key_count;
	bool packed; /* with zstd */
	/* Writes at a place of a regular file, for tests; NULL: pwrite(2) */
	ssize_t (*write_at)(int fd, const void *data, size_t size, off_t offset);
};

struct nettrace_sink_counts {
	uint64_t bytes;              /* in the file by now */
	uint64_t events;             /* in the file by now */
	uint64_t events_by_kind[16]; /* enum event_kind */
	uint64_t stacks;             /* stack rows written */
	uint64_t stack_frames;
	uint64_t stack_bytes;  /* stack blocks, before packing */
	uint64_t event_bytes;  /* event blocks, likewise */
	uint64_t clamped;      /* events whose time was moved to keep the order */
	uint64_t payloads_cut; /* payloads above EVENT_PAYLOAD_MAX */
	uint64_t stacks_cut;   /* stacks above 8190 frames */
	/* events not taken because an earlier write had failed and the buffer is full */
	uint64_t refused;
};

extern const struct sink_ops nettrace_sink;

/*
 * Writes the head of the file immediately. `trace` must have its recording.sync_ns and utc_ns by
 * then (no event may be earlier than sync_ns), and cpu_possible, page_size_bytes, period_ns and
 * recorder_process if they are known.
 */
int nettrace_sink_open(const struct nettrace_sink_options *options, struct trace *trace,
	struct sink **ret_sink, struct diag *diag);

/* Valid until the sink is closed. */
const struct nettrace_sink_counts *nettrace_sink_counts(const struct sink *sink);

#endif
