/*
 * The kernel's function names, from /proc/kallsyms or from the compact form cached for this boot.
 *
 *   kallsyms_read(&input, &k, diag)           text; -EACCES when all addresses are hidden (kptr_restrict)
 *   kallsyms_save(k, &bytes)                  to be stored; byte order and layout of this machine
 *   kallsyms_load(data, size, &k)             checks bounds and order; the memory must outlive k
 *
 * One symbol for each address (global before local before weak), sorted. A function ends where the
 * next symbol begins; the last one of a module or of the kernel's text ends with its page.
 */
#ifndef SPOOR_CODE_KALLSYMS_H
#define SPOOR_CODE_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct diag;
struct input;
struct kallsyms;

#define KALLSYMS_TEXT_MAX    (64u << 20)
#define KALLSYMS_SYMBOLS_MAX (1u << 20)

struct kallsyms_hit {
	uint64_t begin;
	uint64_t end;       /* exclusive */
	const char *name;   /* valid as long as the kallsyms */
	const char *module; /* "ext4", "bpf"; "" for the kernel itself */
};

/* The code of the kernel ("") or of a module, from its first symbol to the end of its last. */
struct kallsyms_range {
	uint64_t begin;
	uint64_t end; /* exclusive */
	const char *module;
};

/* Text of /proc/kallsyms up to the input's end. The input stays the caller's. */
int kallsyms_read(struct input *in, struct kallsyms **ret_kallsyms, struct diag *diag);

/* -EBADMSG: truncated, or of another layout. `data` is 8-byte aligned and stays the caller's. */
int kallsyms_load(const void *data, size_t size, struct kallsyms **ret_kallsyms);
void kallsyms_save(const struct kallsyms *kallsyms, struct bytes *out);

bool kallsyms_find(const struct kallsyms *kallsyms, uint64_t address, struct kallsyms_hit *ret_hit);

/* Range 0 is the kernel, the modules follow in order of their address; false: no such range. */
bool kallsyms_range(const struct kallsyms *kallsyms, uint32_t number,
	struct kallsyms_range *ret_range);

/* The memory that it owns (for a loaded one: only itself). */
size_t kallsyms_size_bytes(const struct kallsyms *kallsyms);

/* NULL is harmless. */
void kallsyms_free(struct kallsyms *kallsyms);

#endif
