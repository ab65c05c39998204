/*
 * Stores the contents of events in the tables of the trace: processes, mappings, symbols, code,
 * losses, notices, facts.
 *
 * Call absorb_event() for each event a source yields, in order, then absorb_end() once. The order
 * of the file is enough: a symbol or a CodeAdded may follow the samples that it names.
 *
 * ProcessCreate and ExistingProcess name the process of their thread; again on the same one they
 * rename it (exec). (When a pid is reused, the new process has a new entry in the thread table:
 * nettrace_read.c.) A CodeRemoved closes the newest range with that begin and counts the process's
 * code_epoch up; a sample belongs to the epoch its process has when it is read. In files of other
 * writers the CLR's own method events fill the codes.
 *
 * In trace.mapping_by_id the two top bits of a key give the kind of the entry: 0 the mapping of
 * that id, 1 the build id (text) of mapping metadata, 3 the newest code range of a (process,
 * begin).
 */
#ifndef SPOOR_TRACE_ABSORB_H
#define SPOOR_TRACE_ABSORB_H

#include <stdint.h>

struct diag;
struct event;
struct trace;

/*
 * Returns 1 when the event changed the tables, 0 when it is data only, -ENOMEM, or -EBADMSG for a
 * payload that cannot be decoded (the event is skipped; the caller may continue).
 */
int absorb_event(struct trace *trace, const struct event *event, struct diag *diag);

/*
 * For readers that keep no facts: stores only the time base that turns event times into dates. The
 * head of a file has whole milliseconds, the recorder's Session event the full precision, and every
 * reader must compute the same date. Results as above.
 */
int absorb_clock(struct trace *trace, const struct event *event);

/*
 * After the last event: a gap in the sequence numbers that no Loss event accounts for becomes a
 * loss of its own (source "sequence"). `gap_count` is the total number of events that are missing
 * by the file's sequence numbers, between the two times.
 */
int absorb_end(struct trace *trace, uint64_t gap_count, uint64_t first_ns, uint64_t last_ns);

#endif
