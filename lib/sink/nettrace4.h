/*
 * Writes nettrace version 4: what .NET runtimes send over their sockets, and what every reader
 * accepts. An encoder turns events into blocks in `out`, from which its owner writes them to a
 * file, a socket or memory.
 *
 *   nettrace4_begin()      head of the stream: 32 bytes of prefix, the Trace object
 *   nettrace4_event()      ...
 *   nettrace4_flush()      writes pending events as blocks into `out`: metadata, stacks, events
 *   nettrace4_point()      flush and a sequence point: stacks are forgotten, readers can compute losses
 *   nettrace4_end()        flush, a last sequence point, the end tag
 *
 * Offsets count from the first byte of the stream, also when the owner has emptied `out`. An
 * encoder belongs to one thread at a time. Functions return 0 or a negative errno.
 */
#ifndef SPOOR_LIB_SINK_NETTRACE4_H
#define SPOOR_LIB_SINK_NETTRACE4_H

#include "lib/event/outbuf.h"
#include "lib/pipe/sink.h"

struct nettrace4;
struct record_run;

struct nettrace4 *nettrace4_new(struct outbuf *out);
void nettrace4_free(struct nettrace4 *encoder);

/*
 * For a stream about another process (recover.c): the values in its head. Before nettrace4_begin().
 */
void nettrace4_set_process(struct nettrace4 *encoder, uint64_t process_id, uint64_t utc_ns,
	uint64_t sync_ns);

/*
 * Begins a new stream (also the next file of a rotation): metadata is written again; sequence
 * numbers continue.
 */
int nettrace4_begin(struct nettrace4 *encoder);

/*
 * 0; -EMSGSIZE: a payload that does not match its fields, or has no text and is larger than
 * SPOOR_PAYLOAD_MAX; -ENOMEM. The texts of a payload that exceeds SPOOR_PAYLOAD_MAX in this format
 * are cut.
 */
int nettrace4_event(struct nettrace4 *encoder, const struct pipe_event *event);
/*
 * Encodes as many records as it can from the front of the run, after at least one event of it by
 * nettrace4_event(), faster than that function; removes them, and returns their number. The next
 * event needs nettrace4_event() again: the block is full, the event is of a new kind, it has a stack
 * or an activity, or it does not fit.
 */
uint32_t nettrace4_records(struct nettrace4 *encoder, struct record_run *run);
int nettrace4_flush(struct nettrace4 *encoder);

/* `rows`: the threads that the point lists (session_point_rows()); NULL: none. */
int nettrace4_point(struct nettrace4 *encoder, uint64_t time_ns, const struct outbuf *rows);
int nettrace4_end(struct nettrace4 *encoder, uint64_t time_ns, const struct outbuf *rows);

/* bytes of events that are not flushed */
size_t nettrace4_pending(const struct nettrace4 *encoder);
/* the table of stacks is full, or POINT_BYTES were written since the last point */
bool nettrace4_wants_point(const struct nettrace4 *encoder);
bool nettrace4_since_point(const struct nettrace4 *encoder); /* any event since the last point */

/*
 * nettrace4_safe() marks all that was flushed into `out` as written. nettrace4_roll_back() restores
 * that state: later events, pending ones too, are forgotten, and the next bytes follow the marked
 * ones.
 */
int nettrace4_safe(struct nettrace4 *encoder);
void nettrace4_roll_back(struct nettrace4 *encoder);

/*
 * Adds the addresses of stacks to the set that a rundown names (code_hits.h). Then the encoder
 * belongs to the loop thread.
 */
void nettrace4_collect_code(struct nettrace4 *encoder);

#endif
