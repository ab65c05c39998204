/*
 * Where a function's frame keeps the caller's registers at one address: what the instructions of its
 * FDE say, evaluated.
 *
 * Registers have the numbers of the processor's DWARF mapping. Those above UNWIND_REGISTERS (vector
 * registers) are ignored: no caller's frame depends on them.
 */
#ifndef SPOOR_CODE_UNWIND_RULES_H
#define SPOOR_CODE_UNWIND_RULES_H

#include <stdbool.h>
#include <stdint.h>

struct frame_entry;

#define UNWIND_REGISTERS 32u

enum unwind_rule_kind {
	RULE_SAME,             /* has the caller's value still */
	RULE_UNDEFINED,        /* is lost; of the return address: there is no caller */
	RULE_OFFSET,           /* is in memory at CFA + value */
	RULE_VALUE_OFFSET,     /* is CFA + value */
	RULE_REGISTER,         /* is in register `value` */
	RULE_EXPRESSION,       /* is in memory at the address that the expression computes */
	RULE_VALUE_EXPRESSION, /* is what the expression computes */
};

struct unwind_rule {
	union {
		int64_t value;
		const uint8_t *expression; /* in the section's memory */
	};
	uint16_t size; /* of the expression */
	uint8_t kind;  /* enum unwind_rule_kind */
};

struct unwind_rules {
	/* RULE_VALUE_OFFSET from cfa_register, or RULE_VALUE_EXPRESSION */
	struct unwind_rule cfa;
	uint32_t cfa_register;
	uint32_t return_register;
	struct unwind_rule registers[UNWIND_REGISTERS];
	bool signal; /* the caller was interrupted: its address is no return address */
};

/* The rules at `vaddr`, which the entry covers. False: malformed or unknown instructions. */
bool unwind_rules_find(const struct frame_entry *entry, uint64_t vaddr,
	struct unwind_rules *ret_rules);

#endif
