/*
 * Names the addresses of samples while recording.
 *
 * Each address that occurs in a stack of a process is looked up one time: the mapping that it
 * belongs to (kernel, ELF image, managed code, vdso, stub) and its symbol are emitted as events. So
 * the file contains its own names, and a killed recording keeps those written so far. If a name may
 * still arrive (a runtime reports a method about 100 ms after it first ran), the address waits for
 * it. An address without a name keeps module, build id and offset, and is counted by cause.
 *
 * Files are opened and read by the symbol worker (symbol_worker.h), so their names are written with a
 * later flush. At the end they are waited for, at most five seconds.
 *
 * Order of calls: symbolizer_init(); then for each sample, in time order, symbolizer_hit(); symbolizer_resolve()
 * at each flush; symbolizer_finish() one time at the end; symbolizer_done(). Not thread-safe.
 */
#ifndef SPOOR_SYMBOLIZE_SYMBOLIZER_H
#define SPOOR_SYMBOLIZE_SYMBOLIZER_H

#include "symbolize/symbolizer_state.h"

int symbolizer_init(struct symbolizer *symbolizer, const struct symbolizer_options *options);

/*
 * Opens the source of kernel symbols while the process has the rights for it. Otherwise the first
 * kernel address opens it.
 */
void symbolizer_open_kernel(struct symbolizer *symbolizer);

/*
 * Processes a sample's stack. This is cheap for a known pair of process and stack. *ret_stack_index
 * is the stack to write: it is cut at the first user frame that is in no executable mapping. There
 * the frame-pointer walk has failed (libc keeps no frame pointers), and the later frames were found
 * through that frame.
 */
int symbolizer_hit(struct symbolizer *symbolizer, uint32_t process, uint32_t stack_index,
	uint64_t time_ns, uint32_t *ret_stack_index);

/* As symbolizer_hit(), for a stack that a runtime walked: it is never cut. */
int symbolizer_hit_walked(struct symbolizer *symbolizer, uint32_t process, uint32_t stack_index,
	uint64_t time_ns);

/*
 * Calls `each` for every body that was removed since the last call, in no order. `code` is an index
 * in the process's codemap; the body is borrowed. The caller puts the removal into the reorder
 * window and then calls symbolizer_end_code().
 */
void symbolizer_removed_codes(struct symbolizer *symbolizer,
	void (*each)(void *context, uint32_t process, uint32_t code, const struct code *body),
	void *context);

/*
 * Removes a body when all samples before its end have been processed. Addresses in its range that
 * wait get their names, and later samples there are looked up again. Returns the body (borrowed) if
 * it is in the file, else NULL.
 */
const struct code *symbolizer_end_code(struct symbolizer *symbolizer, uint32_t process,
	uint32_t code, uint64_t begin);

/* Names those waiting addresses whose answers are available. `now_ns` is CLOCK_MONOTONIC. */
int symbolizer_resolve(struct symbolizer *symbolizer, uint64_t now_ns);

/* Waits for the last answers. Addresses without one get a fallback name, or count by cause. */
int symbolizer_finish(struct symbolizer *symbolizer);

/* True while a question about one of its addresses has no answer: its slot is not reused. */
bool symbolizer_awaits(const struct symbolizer *symbolizer, uint32_t process);

/*
 * Called before the trace's stack table is emptied: drops the pairs, keeps addresses and symbols.
 */
void symbolizer_forget_stacks(struct symbolizer *symbolizer);

/*
 * Frees the data of ended processes: `dead` is true for each. Their waiting addresses are named or
 * counted now, then their slots may be reused.
 */
void symbolizer_forget_processes(struct symbolizer *symbolizer, const bool *dead, uint32_t count);

/*
 * Drops symbol tables that can be read again from files; done by the symbol worker's thread, after
 * this call returns.
 */
void symbolizer_make_room(struct symbolizer *symbolizer);

/* Memory of all tables. */
uint64_t symbolizer_size_bytes(const struct symbolizer *symbolizer);

void symbolizer_done(struct symbolizer *symbolizer);

#endif
