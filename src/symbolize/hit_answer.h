/*
 * Finds the name of a sampled address, with questions to the symbol worker where a file must be read.
 * Part of the symbolizer.
 */
#ifndef SPOOR_SYMBOLIZE_HIT_ANSWER_H
#define SPOOR_SYMBOLIZE_HIT_ANSWER_H

#include "symbolize/symbolizer_state.h"

/* NULL without memory. */
struct symbol_worker *hit_answer_worker(struct symbolizer *symbolizer);

/* Fetches the answers that are ready, for one pass over the waiting addresses. */
void hit_answer_take(struct symbolizer *symbolizer);

/*
 * Called after a pass. Answers about a file, with or without a symbol, are kept for other processes
 * with the same address (a program that is started repeatedly), at most ANSWERS_KEPT_MAX. Failures
 * to open a file are dropped, because another process may provide the file.
 */
void hit_answer_drop(struct symbolizer *symbolizer, bool all);

/* Opens kernel_asked, one time. False: the kernel answers no queries, so the worker reads its file. */
bool hit_answer_open_kernel(struct symbolizer *symbolizer);

/* Names a sampled address. Returns its state: named, the cause of no name, or waiting. */
uint8_t hit_answer(struct symbolizer *symbolizer, struct symbolizer_hit_entry *hit, uint64_t now_ns,
	bool last);

#endif
