/*
 * Writing nettrace version 4: what runtimes send over their sockets and every reader takes. An encoder turns events into blocks; who it is made for takes
 * the bytes away (file, socket, memory).
 *
 *   nettrace4_begin()      head of the stream: 32 bytes of prefix, the Trace object
 *   nettrace4_event()      ...
 *   nettrace4_flush()      what is pending becomes blocks in `out`: metadata, stacks, events
 *   nettrace4_point()      flush and a sequence point: stacks are forgotten, losses become known
 *   nettrace4_end()        flush, a last sequence point, the end tag
 *
 * Offsets count from the first byte of the stream, so the encoder knows how many bytes it has given away.
 */
#ifndef SPOOR_LIB_SINK_NETTRACE4_H
#define SPOOR_LIB_SINK_NETTRACE4_H

#include "lib/event/outbuf.h"
#include "lib/pipe/sink.h"

struct nettrace4;

struct nettrace4 *nettrace4_new(struct outbuf *out);
void nettrace4_free(struct nettrace4 *encoder);

/* The stream is another process's (recover.c): what its head says. Before nettrace4_begin(). */
void nettrace4_set_process(struct nettrace4 *encoder, uint64_t process_id, uint64_t utc_ns, uint64_t sync_ns);

/* A new stream (of a rotated file too): forgets what it has described before; sequence numbers go on. */
int nettrace4_begin(struct nettrace4 *encoder);

/* 0; -EMSGSIZE: more than SPOOR_PAYLOAD_MAX bytes in this format, or a payload that does not fit its fields; -ENOMEM. */
int nettrace4_event(struct nettrace4 *encoder, const struct pipe_event *event);
int nettrace4_flush(struct nettrace4 *encoder);

/* `session`: whose threads are listed (NULL: none). */
int nettrace4_point(struct nettrace4 *encoder, uint64_t time_ns, struct session *session);
int nettrace4_end(struct nettrace4 *encoder, uint64_t time_ns, struct session *session);

size_t nettrace4_pending(const struct nettrace4 *encoder);   /* bytes of events not yet flushed */
bool nettrace4_wants_point(const struct nettrace4 *encoder); /* the table of stacks is full, or the last point is long ago */
bool nettrace4_since_point(const struct nettrace4 *encoder); /* any event since the last point */
uint64_t nettrace4_last_ns(const struct nettrace4 *encoder); /* latest time written */

/*
 * What was flushed into `out` so far is safe (written). Rolling back forgets all since then, pending events too, as if it had never been: the next
 * bytes follow what was safe.
 */
int nettrace4_safe(struct nettrace4 *encoder);
void nettrace4_roll_back(struct nettrace4 *encoder);

/* The sampling period that stands in heads of streams from here on. */
void nettrace4_set_sampling_ns(uint32_t period_ns);

#endif
