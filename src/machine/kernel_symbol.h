/*
 * Names of kernel addresses, asked of the kernel one by one.
 *
 * /proc/kallsyms has them all, but printing it costs the kernel 35 ms, and a recording hits a few hundred. A BPF program of a dozen
 * instructions lets the kernel's own %pS name just those, at about a microsecond each. It needs CAP_BPF and CAP_PERFMON (root has them) and
 * a kernel of 5.14 or newer with BPF; where that is missing, /proc/kallsyms is read.
 *
 * Not safe for two threads at once.
 */
#ifndef SPOOR_MACHINE_KERNEL_SYMBOL_H
#define SPOOR_MACHINE_KERNEL_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

struct kernel_symbols;

struct kernel_symbol {
	uint64_t begin;
	uint64_t end;            /* exclusive */
	const char *name;        /* NUL-terminated; valid until the next call */
	const char *module;      /* "" for the kernel itself */
};

/* -EPERM: a right is missing. -ENOSYS, -EINVAL: the kernel cannot do it. */
int kernel_symbols_open(struct kernel_symbols **ret_symbols);

/* 1 and *ret_symbol, 0 when no function covers the address, or a negative errno. */
int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address,
	struct kernel_symbol *ret_symbol);

/* NULL is harmless. */
void kernel_symbols_close(struct kernel_symbols *symbols);

/*
 * The parser, apart from the kernel: "name+0x1a/0x40 [module]", in place. 1 and *ret_symbol, or 0 when it is not of that
 * form (an address without a symbol is printed as a number).
 */
int kernel_symbol_parse(char *text, uint64_t address, struct kernel_symbol *ret_symbol);

#endif
