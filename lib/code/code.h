/* Generated code that is known now, for the rundown. */
#ifndef SPOOR_LIB_CODE_CODE_H
#define SPOOR_LIB_CODE_CODE_H

#include "lib/code/code_range.h"
#include "lib/platform/module.h"

/*
 * The first range that ends after `address`, copied with texts of its own (code_range_done()); 1, 0 there is none, -ENOMEM.
 */
int code_after(uint64_t address, struct code_range *ret_range);
void code_range_done(struct code_range *range);

extern const struct module code_module;

#endif
