/*
 * Names of kernel addresses, requested from the kernel one by one.
 *
 * /proc/kallsyms has all names, but the kernel takes 35 ms to print it, and a recording samples
 * only a few hundred kernel addresses. A BPF program of a dozen instructions lets the kernel's %pS
 * format these, in about 1 us each. It needs CAP_BPF and CAP_PERFMON (root has them) and a kernel
 * of 5.14 or newer with BPF; otherwise /proc/kallsyms is read.
 *
 * Not thread-safe.
 */
#ifndef SPOOR_MACHINE_KERNEL_SYMBOL_H
#define SPOOR_MACHINE_KERNEL_SYMBOL_H

#include <stddef.h>
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

/*
 * The parser, separate from the kernel: "name+0x1a/0x40 [module]", in place. 1 and *ret_symbol, or
 * 0 if it has another form (an address without a symbol is printed as a number).
 */
int kernel_symbol_parse(char *text, uint64_t address, struct kernel_symbol *ret_symbol);

#endif
