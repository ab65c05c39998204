/*
 * Copies a nettrace file of version 6 with other symbols: some ProcessSymbol events are replaced,
 * further ones and events of another kind follow at the end. All other bytes stay the same.
 *
 * TraceEvent takes the first of several names for an address, so a better name must take the place
 * of the one before it.
 */
#ifndef SPOOR_NETTRACE_NETTRACE_EDIT_H
#define SPOOR_NETTRACE_NETTRACE_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct diag;
struct input;
struct payload_symbol;
struct trace;

struct nettrace_edit {
	/*
	 * For each ProcessSymbol, with its mapping and range but no name. True: all of *symbol was
	 * set, but the id, which is kept.
	 */
	bool (*change)(void *context, struct payload_symbol *symbol);
	/* The next further symbol, after the last event; false: no more. The id is set here. */
	bool (*next)(void *context, struct payload_symbol *ret_symbol);
	/*
	 * Appends the payload of the next event of `line_schema` in `trace`, after the symbols;
	 * false: no more. NULL: there are none.
	 */
	bool (*next_lines)(void *context, struct bytes *payload);
	const struct trace *trace;
	uint32_t line_schema;
	/* Takes the bytes of the new file in order. 0, or a negative errno, which ends the copy. */
	int (*write)(void *context, const uint8_t *data, size_t size);
	void *context;
};

/*
 * Reads `in`, unpacked, up to the end mark, which is not written: the caller does. -ENOTSUP: another
 * format. -EBADMSG: the file is damaged, or ends before its end mark.
 */
int nettrace_edit(struct input *in, const struct nettrace_edit *edit, struct diag *diag);

#endif
