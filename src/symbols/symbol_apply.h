/*
 * Writes names into a recording: a copy with them takes the file's place in one step.
 *
 * The new file is like the old one but for its symbols, packed if the old one is, and has its mode.
 * Refused: a file that its recorder still writes, one that changes meanwhile, a pipe.
 */
#ifndef SPOOR_SYMBOLS_SYMBOL_APPLY_H
#define SPOOR_SYMBOLS_SYMBOL_APPLY_H

struct diag;
struct line_names;
struct symbol_names;
struct trace;

/*
 * `output` NULL: in place of `path`, whose old content is gone; else into this file, whose old
 * content becomes OUTPUT.old. `lines` NULL: no lines are written. On failure nothing has changed. -EBUSY: it is still being written.
 */
int symbol_apply(const char *path, const char *output, const struct symbol_names *found,
	const struct line_names *lines, struct trace *trace, struct diag *diag);

#endif
