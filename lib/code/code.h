/* The generated code of this process, for the rundown. Any thread; functions take a lock. */
#ifndef SPOOR_LIB_CODE_CODE_H
#define SPOOR_LIB_CODE_CODE_H

#include "lib/code/code_range.h"
#include "lib/platform/module.h"

/*
 * Copies the first range that ends after `address`; the caller frees it with code_range_done(). 1,
 * 0: no such range, -ENOMEM.
 */
int code_after(uint64_t address, struct announced_code *ret_range);
void code_range_done(struct announced_code *range);

extern const struct module code_module;

#endif
