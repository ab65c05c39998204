/*
 * What differs between processor architectures, in one place. Everything else in the program is the same on all of them.
 */
#ifndef SPOOR_CODE_ARCH_H
#define SPOOR_CODE_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of runtime-made code that has no event, known by how it begins. */
struct arch_stub {
	const char *kind;        /* "interface dispatch stub" */
	uint8_t bytes[20];
	uint8_t mask[20];        /* 0xff: the byte must be equal, 0: any */
	uint8_t len;             /* of bytes and mask */
	uint16_t size_bytes;     /* of the whole stub */
};

struct arch {
	const char *name;               /* "x86_64", as uname(2) says it */
	uint64_t kernel_begin;          /* addresses from here on belong to the kernel */
	const struct arch_stub *stubs;  /* most specific first */
	size_t stub_count;
	uint8_t stub_search_back_bytes; /* how far before an address its stub may begin */
	/* Whether a call ends where code[size] would be; NULL: not known. *ret_offset is how far behind the call it goes; 0: not told by the code. */
	bool (*ends_with_call)(const uint8_t *code, size_t size, int64_t *ret_offset);
};

/* The architecture by uname's machine name; for an unknown one, a table with the usual 64-bit split and no stubs. */
const struct arch *arch_by_name(const char *machine);

/* The one this program was built for. */
const struct arch *arch_here(void);

/*
 * The stub that holds code[at], where `code` is memory read around the address. NULL when none is recognised. *ret_begin is the
 * offset in `code` where the stub begins.
 */
const struct arch_stub *arch_find_stub(const struct arch *arch, const uint8_t *code, size_t size,
	size_t at, size_t *ret_begin);

/* As the architecture's ends_with_call(); false where that is not known. */
bool arch_ends_with_call(const struct arch *arch, const uint8_t *code, size_t size, int64_t *ret_offset);

#endif
