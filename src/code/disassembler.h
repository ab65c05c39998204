/*
 * Instructions as text, by capstone, which is loaded when it is needed.
 *
 *   disassembler_open("x86_64", &d, &diag)             -ENOSYS: capstone is not here, or it does not know the processor
 *   while (disassembler_next(d, code, size, at, &i)) at += i.size_bytes;
 *   disassembler_close(d)
 *
 * Not thread-safe.
 */
#ifndef SPOOR_CODE_DISASSEMBLER_H
#define SPOOR_CODE_DISASSEMBLER_H

#include <stdbool.h>
#include <stdint.h>

struct diag;
struct disassembler;

#define INSTRUCTION_TEXT_ROOM 208u

struct instruction {
	uint32_t size_bytes;
	bool decoded;    /* false: one byte, or word, that is no instruction */
	bool has_target; /* it calls or jumps to a fixed place */
	int64_t target;  /* from the begin of the code, with has_target */
	char operation[32];
	char text
		[INSTRUCTION_TEXT_ROOM]; /* "mov     eax, dword ptr [rbp + 0x24]"; targets are offsets in the code */
};

/* `machine` as uname(2) has it. */
int disassembler_open(const char *machine, struct disassembler **ret_disassembler,
	struct diag *diag);

/* The instruction at offset `at` of the code; false: the code ends there. */
bool disassembler_next(struct disassembler *disassembler, const uint8_t *code, uint32_t size,
	uint32_t at, struct instruction *ret_instruction);

/* NULL is harmless. */
void disassembler_close(struct disassembler *disassembler);

/* Whether capstone is here; *ret_why says why not. */
bool disassembler_is_available(const char **ret_why);

#endif
