/*
 * Where the arguments of a USDT probe are, from the text in its note: "-4@%edi 8@-16(%rbp) 8@$3" (x86-64) or
 * "-4@w0 8@[sp, 16] 8@3" (arm64).
 *
 * Registers are offsets in the kernel's struct pt_regs, which a BPF program of an uprobe gets.
 */
#ifndef SPOOR_CODE_USDT_ARGUMENTS_H
#define SPOOR_CODE_USDT_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USDT_ARGUMENTS_MAX 48u /* of one probe; sys/sdt.h has 12, libspoor 48 */
#define USDT_NO_REGISTER   UINT16_MAX

enum usdt_machine { USDT_X86 = 3, USDT_X86_64 = 62, USDT_ARM64 = 183 }; /* e_machine of ELF */

enum usdt_place {
	USDT_UNKNOWN,  /* it cannot be read: a vector register, or a text that is not understood */
	USDT_CONSTANT, /* `value` */
	USDT_REGISTER, /* `base`, of which the lower bits from `shift` on */
	USDT_MEMORY,   /* at `base` + (`index` << `scale`) + `value` */
	USDT_SYMBOL,   /* in memory at the symbol's address + `value` */
};

struct usdt_argument {
	int64_t value;
	const char *symbol; /* symbol_len bytes of the parsed text */
	uint16_t symbol_len;
	uint16_t base;  /* offset of the register; USDT_NO_REGISTER: none */
	uint16_t index; /* offset of the index register; USDT_NO_REGISTER: none */
	uint8_t scale;
	uint8_t shift;
	uint8_t size;  /* 1, 2, 4 or 8 bytes */
	uint8_t place; /* enum usdt_place */
	bool is_signed;
	bool is_float; /* of 4 or 8 bytes */
};

/*
 * The arguments of a probe in an image for `machine` (e_machine of ELF). Returns their number, at most
 * USDT_ARGUMENTS_MAX; those after that are left out. An argument that is not understood is USDT_UNKNOWN.
 */
unsigned usdt_arguments_parse(uint16_t machine, const char *text,
	struct usdt_argument ret_arguments[USDT_ARGUMENTS_MAX]);

/* Offset of the instruction pointer; USDT_NO_REGISTER: registers of this machine are unknown. */
uint16_t usdt_instruction_pointer(uint16_t machine);

#endif
