/*
 * Reads nettrace: version 4 (of runtimes' sockets) and version 6 (of this program and other
 * universal writers), with one decoder.
 *
 * The caller pushes bytes, in pieces of any size, and takes the events out:
 *
 *   nettrace_decoder_push(decoder, data, size);
 *   while ((r = nettrace_decoder_next(decoder, &event, diag)) > 0)
 *           ...                     r == 0: push more (or, at the end of the bytes: nettrace_decoder_finish())
 *
 * An event is yielded when its whole block has arrived: a prefix of a good file yields the events
 * of whole blocks and then one diagnosis. Events come in file order, which is time order in version
 * 6 files of Spoor, and in order per thread only in streams of a runtime.
 *
 * It fills trace.schemas, trace.threads (with their processes), trace.stacks and the clock and
 * machine facts of trace.recording. trace/absorb.c interprets the events.
 */
#ifndef SPOOR_NETTRACE_NETTRACE_READ_H
#define SPOOR_NETTRACE_NETTRACE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nettrace/nettrace_head.h"
#include "trace/flow.h"

struct nettrace_decoder;
struct stack_table;

enum nettrace_flag {
	/*
	 * For method names only: stack_index and thread_index stay 0, trace.recording is left
	 * alone, and the trace gets only schemas and strings. Each stream needs a separate trace,
	 * or the schemas of all streams accumulate.
	 */
	NETTRACE_NAMES_ONLY = 1 << 0,
	/* stack_index stays 0: a stream of any length needs no memory for stacks. */
	NETTRACE_NO_STACKS = 1 << 1,
};

/*
 * `name` is what messages call the stream (copied); `trace` outlives the decoder. NULL: no memory.
 */
struct nettrace_decoder *nettrace_decoder_new(struct trace *trace, const char *name,
	unsigned flags);
void nettrace_decoder_free(struct nettrace_decoder *decoder);

/* Takes a copy of the bytes. -ENOMEM, or 0. Events yielded before are no longer valid. */
int nettrace_decoder_push(struct nettrace_decoder *decoder, const void *data, size_t size);

/* Without the copy: room for at least `size` bytes (NULL: no memory), then how many were filled. */
uint8_t *nettrace_decoder_room(struct nettrace_decoder *decoder, size_t size);
void nettrace_decoder_filled(struct nettrace_decoder *decoder, size_t size);

/* Frees the buffer of a decoder without undecoded bytes: for streams that are mostly silent. */
void nettrace_decoder_rest(struct nettrace_decoder *decoder);

/*
 * 1 event, 0 needs more bytes or has ended, negative: broken, and stays so. The event's payload is
 * valid until the next call.
 */
int nettrace_decoder_next(struct nettrace_decoder *decoder, struct event *ret_event,
	struct diag *diag);

/* The stream's end mark was read; further bytes are ignored. */
bool nettrace_decoder_ended(const struct nettrace_decoder *decoder);

/* After the last bytes: 0 if there was an end mark, -EBADMSG and a diagnosis if not. */
int nettrace_decoder_finish(struct nettrace_decoder *decoder, struct diag *diag);

const struct nettrace_head *nettrace_decoder_head(const struct nettrace_decoder *decoder);

/* Events lost by the sequence numbers so far, whether or not an event has carried them. */
uint64_t nettrace_decoder_lost(const struct nettrace_decoder *decoder);

/*
 * For a version 4 stream of a known process, in a trace that several streams share: which of the
 * trace's threads an id of the stream is (0: no memory). No process is made, trace.recording is
 * left alone, and equal schemas are shared. Set before the first push.
 */
typedef uint32_t nettrace_thread_fn(void *context, uint64_t thread_id);
void nettrace_decoder_place(struct nettrace_decoder *decoder, nettrace_thread_fn *thread,
	void *context);

/*
 * Time of the last event whose writer guarantees that no later one in the stream is older; 0 before
 * the first such event. Writers that do not sort (version 6 of others) may never guarantee it.
 */
uint64_t nettrace_decoder_sorted_ns(const struct nettrace_decoder *decoder);

/*
 * Before the trace's stack table is replaced: copies what the stream may still refer to into
 * `fresh`. False: no memory, `fresh` is not to be used.
 */
bool nettrace_decoder_move_stacks(struct nettrace_decoder *decoder, struct stack_table *fresh);

/* To be called when the table has been replaced. */
void nettrace_decoder_stacks_moved(struct nettrace_decoder *decoder);

extern const struct source_ops nettrace_source;

#endif
