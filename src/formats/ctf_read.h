/*
 * Reads CTF 1.8 traces (docs/formats/ctf.md), as LTTng writes them: a folder, at any depth below it
 * a file `metadata`, and beside that the files of the streams. The events of all files are merged by
 * time.
 *
 *   ctf_reader_open("lttng-traces/s", &trace, CTF_WHOLE, &reader, &diag);
 *   while ((r = ctf_reader_next(reader, &event, &diag)) > 0) ...
 *   ctf_reader_close(reader);
 *
 * CTF_GROWING is for a trace that is being written: packets are read once they are whole, and 0 means
 * that there is none at present. ctf_reader_look() then looks for more. Its events are merged as far as
 * they have arrived.
 */
#ifndef SPOOR_FORMATS_CTF_READ_H
#define SPOOR_FORMATS_CTF_READ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "trace/event.h"
#include "trace/flow.h"

struct ctf_reader;
struct diag;
struct trace;

enum ctf_growth { CTF_WHOLE, CTF_GROWING };

/* `event.thread_index` is 0; these are the ids that the trace has; 0: it has none. */
struct ctf_event {
	struct event event; /* its payload is borrowed until the next call */
	const char
		*process_name; /* at most process_name_size bytes, borrowed likewise; NULL: none */
	size_t process_name_size;
	uint32_t pid; /* of the process's pid namespace, for events of user space */
	uint32_t tid;
	uint64_t pid_namespace; /* inode; 0 unknown */
};

/*
 * The trace is borrowed; it gets the schemas. -ENOENT: there is no CTF trace in the folder, unless it
 * is growing.
 */
int ctf_reader_open(const char *folder, struct trace *trace, enum ctf_growth growth,
	struct ctf_reader **ret_reader, struct diag *diag);

/* 1 an event, 0 none (see above), or a negative errno: the events before remain valid. */
int ctf_reader_next(struct ctf_reader *reader, struct ctf_event *ret_event, struct diag *diag);

/* 0, or a negative errno: a description is damaged, or no memory. */
int ctf_reader_look(struct ctf_reader *reader, struct diag *diag);

/* Called for each packet that is not needed any more; may be NULL. */
void ctf_reader_on_consumed(struct ctf_reader *reader,
	void (*consumed)(const char *path, uint64_t offset, uint64_t size));

/* Events that the tracer discarded, by the counters in the packets that were read. */
uint64_t ctf_reader_lost(const struct ctf_reader *reader);

/*
 * The clock of the trace: UTC minus the clock, in ns. False: not known (yet). The times of a whole
 * trace whose parts have several clocks are those of one of them; of a growing one, each part's own.
 */
bool ctf_reader_clock(const struct ctf_reader *reader, int64_t *ret_offset_ns);

void ctf_reader_close(struct ctf_reader *reader);

/* A saved trace as a source of events, with threads. It is opened by ctf_source_open() only. */
extern const struct source_ops ctf_source;
int ctf_source_open(const char *folder, struct trace *trace, struct source **ret_source,
	struct diag *diag);

#endif
