/*
 * Stores the contents of events in the tables of the trace: processes, mappings, symbols, code,
 * losses, notices, facts.
 *
 * Call absorb_event() for each event a source yields, in order, then absorb_end() once. A symbol or
 * a CodeAdded may follow the samples that it names.
 *
 * ProcessCreate and ExistingProcess name the process of their thread; again on the same one they
 * rename it (exec). (nettrace_read.c makes a new thread for a reused pid.) A CodeRemoved closes the
 * newest range with that begin and counts the process's code_epoch up; a sample belongs to the
 * epoch its process has when it is read. In files of other writers the CLR's own method events fill
 * the codes.
 *
 * The two top bits of a key of trace.mapping_by_id: 0 the mapping of that id, 1 the build id (text)
 * of mapping metadata, 3 the newest code range of a (process, begin).
 */
#ifndef SPOOR_TRACE_ABSORB_H
#define SPOOR_TRACE_ABSORB_H

#include <stdint.h>

struct diag;
struct event;
struct trace;

/*
 * 1: the tables have changed, 0: data only, -ENOMEM, or -EBADMSG: the payload cannot be decoded,
 * and the caller may continue with the next event.
 */
int absorb_event(struct trace *trace, const struct event *event, struct diag *diag);

/*
 * For readers that keep no facts: only the time base of dates. The head of a file has whole
 * milliseconds, the recorder's Session event the full precision. Results as above.
 */
int absorb_clock(struct trace *trace, const struct event *event);

/*
 * After the last event: `gap_count`, the events missing by the sequence numbers between the two
 * times, becomes a loss of its own (source "sequence") unless Loss events account for it.
 */
int absorb_end(struct trace *trace, uint64_t gap_count, uint64_t first_ns, uint64_t last_ns);

#endif
