/* The frames of a dump, named: managed, native, and of the kernel. */
#ifndef SPOOR_STACKS_FRAME_NAMES_H
#define SPOOR_STACKS_FRAME_NAMES_H

#include <stddef.h>
#include <stdint.h>

struct stack_code_mapping;
struct stacks_taking;

/* NULL: the address is in no mapping of code. */
const struct stack_code_mapping *code_mapping_of(const struct stacks_taking *t, uint64_t address);

/* The last part of its path. */
const char *code_mapping_name(const struct stacks_taking *t,
	const struct stack_code_mapping *mapping);

/* A text of the dump. */
uint32_t frame_text(struct stacks_taking *t, const char *text);

/* Frames of the dump. A managed one is 0 if the address is in no method's code. */
uint32_t frame_managed(struct stacks_taking *t, uint64_t address, uint64_t time_ns);
uint32_t frame_native(struct stacks_taking *t, uint64_t address);
uint32_t frame_kernel(struct stacks_taking *t, const char *name, size_t len);

#endif
