/* All properties of processor architectures that the program depends on. */
#ifndef SPOOR_CODE_ARCH_H
#define SPOOR_CODE_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of code that the runtime writes without an event. It is recognized by its first bytes. */
struct arch_stub {
	const char *kind; /* "interface dispatch stub" */
	uint8_t bytes[20];
	uint8_t mask[20];    /* 0xff: the byte must be equal, 0: any */
	uint8_t len;         /* of bytes and mask */
	uint16_t size_bytes; /* of the whole stub */
};

struct arch {
	const char *name;              /* "x86_64", as uname(2) reports it */
	uint64_t kernel_begin;         /* addresses from here on belong to the kernel */
	const struct arch_stub *stubs; /* most specific first */
	size_t stub_count;
	uint8_t stub_search_back_bytes; /* how far before an address its stub may begin */
	/*
	 * Whether a call instruction ends before code[size]; NULL: unknown for this architecture.
	 * *ret_offset is the distance from there to its target; 0: the code does not contain it.
	 */
	bool (*ends_with_call)(const uint8_t *code, size_t size, int64_t *ret_offset);
};

/* By uname's machine name; an unknown one has the usual 64-bit split and no stubs. */
const struct arch *arch_by_name(const char *machine);

/* The architecture that this program was built for. */
const struct arch *arch_here(void);

/* The stub that holds code[at] and begins at *ret_begin; NULL: none. `code` is memory around it. */
const struct arch_stub *arch_find_stub(const struct arch *arch, const uint8_t *code, size_t size,
	size_t at, size_t *ret_begin);

/* Calls the architecture's ends_with_call(); false if it has none. */
bool arch_ends_with_call(const struct arch *arch, const uint8_t *code, size_t size,
	int64_t *ret_offset);

#endif
