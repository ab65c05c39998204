/* See unwind_rules.h. Instructions: DWARF 5, section 6.4.2, and those of GNU and AArch64. */
#include "code/unwind_rules.h"

#include "code/frame_entry.h"

#define REMEMBERED_MAX 8u
/* A function's instructions; a longer list is refused, so that no lookup takes milliseconds. */
#define CODE_SIZE_MAX (64u << 10)

enum {
	CFA_ADVANCE_LOC = 0x40, /* these three have an operand in the lower six bits */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
};

struct evaluation {
	const struct frame_entry *entry;
	uint64_t vaddr; /* the address whose rules are wanted */
	uint64_t at;    /* the rules hold from here on */
	struct unwind_rules rules;
	struct unwind_rules initial; /* after the CIE's instructions */
	struct unwind_rules remembered[REMEMBERED_MAX];
	uint32_t remembered_count;
	bool in_cie;
};

static void set_rule(struct evaluation *e, uint64_t number, enum unwind_rule_kind kind,
	int64_t value)
{
	if (number < UNWIND_REGISTERS)
		e->rules.registers[number] =
			(struct unwind_rule){ .value = value, .kind = (uint8_t)kind };
}

/* Offsets wrap around as the processor's addresses do. */
static int64_t scaled(const struct evaluation *e, uint64_t factor)
{
	return (int64_t)(factor * (uint64_t)e->entry->cie.data_align);
}

static struct unwind_rule read_expression(struct cursor *c, enum unwind_rule_kind kind)
{
	uint64_t size = cursor_varuint(c);
	const uint8_t *expression = size <= UINT16_MAX ? cursor_take(c, (size_t)size) : NULL;

	c->short_read |= !expression;
	return (struct unwind_rule){
		.expression = expression, .size = (uint16_t)size, .kind = (uint8_t)kind
	};
}

static void set_expression(struct evaluation *e, struct cursor *c, enum unwind_rule_kind kind)
{
	uint64_t number = cursor_varuint(c);
	struct unwind_rule rule = read_expression(c, kind);

	if (number < UNWIND_REGISTERS)
		e->rules.registers[number] = rule;
}

static bool set_cfa(struct evaluation *e, uint64_t number, int64_t offset)
{
	e->rules.cfa = (struct unwind_rule){ .value = offset, .kind = RULE_VALUE_OFFSET };
	e->rules.cfa_register = (uint32_t)number;
	return number < UNWIND_REGISTERS;
}

static bool restore(struct evaluation *e, uint64_t number)
{
	if (number < UNWIND_REGISTERS)
		e->rules.registers[number] = e->initial.registers[number];
	return !e->in_cie;
}

static void advance(struct evaluation *e, uint64_t factor)
{
	e->at += factor * e->entry->cie.code_align;
}

static bool step_location(struct evaluation *e, struct cursor *c, uint8_t code)
{
	bool ok = true;

	switch (code) {
	case CFA_SET_LOC: {
		uint64_t vaddr = e->entry->code_vaddr + (uint64_t)(c->at - e->entry->code.at);
		e->at = frame_pointer_read_at(c, e->entry->cie.encoding, true, vaddr, &ok);
		return ok && !e->in_cie;
	}
	case CFA_ADVANCE_LOC1:
		advance(e, cursor_u8(c));
		return true;
	case CFA_ADVANCE_LOC2:
		advance(e, cursor_u16(c));
		return true;
	default:
		advance(e, cursor_u32(c));
		return true;
	}
}

static bool step_cfa(struct evaluation *e, struct cursor *c, uint8_t code)
{
	uint64_t number;

	switch (code) {
	case CFA_DEF_CFA:
		number = cursor_varuint(c);
		return set_cfa(e, number, (int64_t)cursor_varuint(c));
	case CFA_DEF_CFA_SF:
		number = cursor_varuint(c);
		return set_cfa(e, number, scaled(e, (uint64_t)cursor_sleb(c)));
	case CFA_DEF_CFA_REGISTER:
		return e->rules.cfa.kind == RULE_VALUE_OFFSET &&
		       set_cfa(e, cursor_varuint(c), e->rules.cfa.value);
	case CFA_DEF_CFA_OFFSET:
		return e->rules.cfa.kind == RULE_VALUE_OFFSET &&
		       set_cfa(e, e->rules.cfa_register, (int64_t)cursor_varuint(c));
	case CFA_DEF_CFA_OFFSET_SF:
		return e->rules.cfa.kind == RULE_VALUE_OFFSET &&
		       set_cfa(e, e->rules.cfa_register, scaled(e, (uint64_t)cursor_sleb(c)));
	default: /* CFA_DEF_CFA_EXPRESSION */
		e->rules.cfa = read_expression(c, RULE_VALUE_EXPRESSION);
		return true;
	}
}

static bool step_state(struct evaluation *e, uint8_t code)
{
	if (code == CFA_REMEMBER_STATE) {
		if (e->remembered_count == REMEMBERED_MAX)
			return false;
		e->remembered[e->remembered_count++] = e->rules;
		return true;
	}
	if (!e->remembered_count)
		return false;
	e->rules = e->remembered[--e->remembered_count];
	return true;
}

static bool step_register(struct evaluation *e, struct cursor *c, uint8_t code)
{
	uint64_t number = cursor_varuint(c);

	switch (code) {
	case CFA_OFFSET_EXTENDED:
		set_rule(e, number, RULE_OFFSET, scaled(e, cursor_varuint(c)));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		set_rule(e, number, RULE_OFFSET, scaled(e, (uint64_t)cursor_sleb(c)));
		return true;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		set_rule(e, number, RULE_OFFSET, scaled(e, 0 - cursor_varuint(c)));
		return true;
	case CFA_VAL_OFFSET:
		set_rule(e, number, RULE_VALUE_OFFSET, scaled(e, cursor_varuint(c)));
		return true;
	case CFA_VAL_OFFSET_SF:
		set_rule(e, number, RULE_VALUE_OFFSET, scaled(e, (uint64_t)cursor_sleb(c)));
		return true;
	case CFA_RESTORE_EXTENDED:
		return restore(e, number);
	case CFA_UNDEFINED:
		set_rule(e, number, RULE_UNDEFINED, 0);
		return true;
	case CFA_SAME_VALUE:
		set_rule(e, number, RULE_SAME, 0);
		return true;
	default: { /* CFA_REGISTER */
		uint64_t other = cursor_varuint(c);
		set_rule(e, number, RULE_REGISTER, (int64_t)other);
		return other < UNWIND_REGISTERS;
	}
	}
}

static bool step(struct evaluation *e, struct cursor *c)
{
	uint8_t code = cursor_u8(c);
	uint8_t low = code & 0x3f;

	switch (code & 0xc0) {
	case CFA_ADVANCE_LOC:
		advance(e, low);
		return true;
	case CFA_OFFSET:
		set_rule(e, low, RULE_OFFSET, scaled(e, cursor_varuint(c)));
		return true;
	case CFA_RESTORE:
		return restore(e, low);
	default:
		break;
	}
	switch (code) {
	case CFA_NOP:
	/* Says whether the return address is signed; the walk removes a signature in any case. */
	case CFA_AARCH64_NEGATE_RA_STATE:
		return true;
	case CFA_GNU_ARGS_SIZE:
		(void)cursor_varuint(c);
		return true;
	case CFA_SET_LOC:
	case CFA_ADVANCE_LOC1:
	case CFA_ADVANCE_LOC2:
	case CFA_ADVANCE_LOC4:
		return step_location(e, c, code);
	case CFA_DEF_CFA:
	case CFA_DEF_CFA_SF:
	case CFA_DEF_CFA_REGISTER:
	case CFA_DEF_CFA_OFFSET:
	case CFA_DEF_CFA_OFFSET_SF:
	case CFA_DEF_CFA_EXPRESSION:
		return step_cfa(e, c, code);
	case CFA_REMEMBER_STATE:
	case CFA_RESTORE_STATE:
		return step_state(e, code);
	case CFA_EXPRESSION:
		set_expression(e, c, RULE_EXPRESSION);
		return true;
	case CFA_VAL_EXPRESSION:
		set_expression(e, c, RULE_VALUE_EXPRESSION);
		return true;
	case CFA_OFFSET_EXTENDED:
	case CFA_OFFSET_EXTENDED_SF:
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
	case CFA_RESTORE_EXTENDED:
	case CFA_UNDEFINED:
	case CFA_SAME_VALUE:
	case CFA_REGISTER:
		return step_register(e, c, code);
	default:
		return false;
	}
}

/* Executes instructions until they hold for addresses after e->vaddr. */
static bool run(struct evaluation *e, struct cursor c)
{
	if (cursor_left(&c) > CODE_SIZE_MAX)
		return false;
	while (cursor_left(&c) && e->at <= e->vaddr)
		if (!step(e, &c) || c.short_read)
			return false;
	return true;
}

bool unwind_rules_find(const struct frame_entry *entry, uint64_t vaddr,
	struct unwind_rules *ret_rules)
{
	struct evaluation e;

	/* `initial` and `remembered` are written before they are read. */
	e.entry = entry;
	e.vaddr = vaddr;
	e.at = entry->begin;
	e.remembered_count = 0;
	e.in_cie = true;
	e.rules = (struct unwind_rules){
		.return_register = entry->cie.return_register,
		.signal = entry->cie.signal,
	};
	if (entry->cie.return_register >= UNWIND_REGISTERS || !run(&e, entry->cie.code) ||
		e.at != entry->begin)
		return false;
	e.initial = e.rules;
	e.in_cie = false;
	if (!run(&e, entry->code) || e.rules.cfa.kind == RULE_SAME)
		return false;
	*ret_rules = e.rules;
	return true;
}
