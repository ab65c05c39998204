/* spoor annotate --asm: finds the code and the lines of a function's bodies, and prints them. */
#ifndef SPOOR_CLI_ANNOTATE_ASM_H
#define SPOOR_CLI_ANNOTATE_ASM_H

#include <stdbool.h>

struct annotation_options;
struct bytes;
struct diag;
struct selection;

/* 0 or a negative errno with `diag`; *ret_found is false if no sampled function has this name. */
int annotate_asm(struct selection *s, const char *pattern, const struct annotation_options *options,
	bool json, struct bytes *out, bool *ret_found, struct diag *diag);

#endif
