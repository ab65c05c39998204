/* Generated code that is known now, for the rundown. */
#ifndef SPOOR_LIB_CODE_CODE_H
#define SPOOR_LIB_CODE_CODE_H

#include <spoor/code.h>

#include "lib/pipe/modules.h"

#define CODE_MAX       (1u << 20)
#define CODE_NAME_MAX  4096u
#define CODE_LINES_MAX 65536u

struct code_range {
	uint64_t begin;
	uint64_t size;
	uint64_t id;       /* never used again */
	char *name;
	char *module;
	char *signature;
	struct code_lines *lines;
	bool gone;         /* removed: named until somebody else is there */
};

/*
 * The first range that ends after `address`, copied with texts of its own (code_range_done()); 1, 0 there is none, -ENOMEM.
 */
int code_after(uint64_t address, struct code_range *ret_range);
void code_range_done(struct code_range *range);

extern const struct module code_module;

#endif
