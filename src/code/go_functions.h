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
