/*
 * The functions of a Go program, from the table that its runtime needs (.gopclntab), so that programs
 * without a symbol table have names too.
 */
#ifndef SPOOR_CODE_GO_FUNCTIONS_H
#define SPOOR_CODE_GO_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GO_FUNCTIONS_MAX (4u << 20)

/* The header of a table. Offsets are from the begin of its bytes. */
struct go_table {
	const uint8_t *data;
	size_t size;
	uint8_t code_unit; /* instructions begin at multiples of so many bytes */
	uint8_t pointer_size;
	bool relative;        /* since 1.18: addresses are u32s, from code_begin on */
	bool has_start_lines; /* since 1.20: records have the line where the function begins */
	uint64_t count;       /* of functions */
	uint64_t code_begin;
	uint64_t names;
	uint64_t units;
	uint64_t files;
	uint64_t values;
	uint64_t functions;
};

/* 0; -EBADMSG: it is no such table, or damaged; -ENOTSUP: of Go before 1.16, or without its addresses. */
int go_table_read(struct go_table *ret_table, const uint8_t *data, size_t size);

/* `name`: where its name begins, after *ret_names. False: stop. */
typedef bool go_function(void *context, uint64_t begin, uint64_t end, uint32_t name);

/*
 * Calls `each` for every function, ascending by address. `table` is the section's content. Returns 0;
 * -EBADMSG: it is no such table, or damaged (some functions may have been reported); -ENOTSUP: of Go
 * before 1.16, or without its addresses; -ECANCELED: `each` has stopped it. *ret_names is the offset of
 * the names in the section; it is set before the first call.
 */
int go_functions_read(const uint8_t *table, size_t size, uint64_t *ret_names, go_function *each,
	void *context);

#endif
