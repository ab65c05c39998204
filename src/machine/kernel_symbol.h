/*
 * Names of kernel addresses, requested from the kernel one by one. Not thread-safe.
 *
 * /proc/kallsyms has all names, but takes 35 ms to print, and a recording samples only a few
 * hundred kernel addresses. A small BPF program lets the kernel's %pS format each in about 1 us. It
 * needs CAP_BPF, CAP_PERFMON and a kernel of 5.14 or newer with BPF.
 */
#ifndef SPOOR_MACHINE_KERNEL_SYMBOL_H
#define SPOOR_MACHINE_KERNEL_SYMBOL_H

#include <stdint.h>

struct kernel_symbols;

struct kernel_symbol {
	uint64_t begin;
	uint64_t end;       /* exclusive */
	const char *name;   /* NUL-terminated; valid until the next call */
	const char *module; /* "" for the kernel itself */
};

/* -EPERM: a right is missing. -ENOSYS, -EINVAL: the kernel does not support it. */
int kernel_symbols_open(struct kernel_symbols **ret_symbols);

/* 1 and *ret_symbol, 0 when no function covers the address, or a negative errno. */
int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address,
	struct kernel_symbol *ret_symbol);

/* NULL is harmless. */
void kernel_symbols_close(struct kernel_symbols *symbols);

/* Parses "name+0x1a/0x40 [module]", in place. 1 and *ret_symbol; 0: another form (no symbol). */
int kernel_symbol_parse(char *text, uint64_t address, struct kernel_symbol *ret_symbol);

#endif
