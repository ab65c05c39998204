/* See unwind_expression.h. Operations: DWARF 5, section 2.5. There are no loops: branches are refused. */
#include "code/unwind_expression.h"

#include <errno.h>

#include "base/cursor.h"
#include "code/unwind_state.h"

#define DEPTH_MAX  32u
#define SIZE_LIMIT 4096u

enum {
	OP_ADDR = 0x03,
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08,
	OP_CONST1S = 0x09,
	OP_CONST2U = 0x0a,
	OP_CONST2S = 0x0b,
	OP_CONST4U = 0x0c,
	OP_CONST4S = 0x0d,
	OP_CONST8U = 0x0e,
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_AND = 0x1a,
	OP_MINUS = 0x1c,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG31 = 0x8f,
	OP_NOP = 0x96,
};

struct machine {
	const struct unwind_registers *registers;
	const struct unwind_stack *memory;
	struct cursor code;
	uint64_t items[DEPTH_MAX];
	uint32_t count;
	int error;
};

static void push(struct machine *m, uint64_t value)
{
	if (m->count < DEPTH_MAX)
		m->items[m->count++] = value;
	else
		m->error = -EBADMSG;
}

static uint64_t pop(struct machine *m)
{
	if (m->count)
		return m->items[--m->count];
	m->error = -EBADMSG;
	return 0;
}

static void pick(struct machine *m, uint32_t depth)
{
	if (depth < m->count)
		push(m, m->items[m->count - 1 - depth]);
	else
		m->error = -EBADMSG;
}

static void push_register(struct machine *m, uint32_t number)
{
	uint64_t offset = (uint64_t)cursor_sleb(&m->code);

	if (!unwind_register_known(m->registers, number))
		m->error = -ENODATA;
	else
		push(m, m->registers->values[number] + offset);
}

static void load(struct machine *m)
{
	uint64_t address = pop(m);
	uint64_t value = 0;

	if (!m->error && !unwind_stack_read(m->memory, address, &value)) {
		m->error = -EFAULT;
		value = address;
	}
	push(m, value);
}

static bool push_constant(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->code;

	switch (op) {
	case OP_ADDR:
	case OP_CONST8U:
	case OP_CONST8S:
		push(m, cursor_u64(c));
		return true;
	case OP_CONST1U:
		push(m, cursor_u8(c));
		return true;
	case OP_CONST1S:
		push(m, (uint64_t)(int64_t)(int8_t)cursor_u8(c));
		return true;
	case OP_CONST2U:
		push(m, cursor_u16(c));
		return true;
	case OP_CONST2S:
		push(m, (uint64_t)(int64_t)(int16_t)cursor_u16(c));
		return true;
	case OP_CONST4U:
		push(m, cursor_u32(c));
		return true;
	case OP_CONST4S:
		push(m, (uint64_t)(int64_t)(int32_t)cursor_u32(c));
		return true;
	case OP_CONSTU:
		push(m, cursor_varuint(c));
		return true;
	case OP_CONSTS:
		push(m, (uint64_t)cursor_sleb(c));
		return true;
	default:
		return false;
	}
}

static uint64_t shifted(uint8_t op, uint64_t value, uint64_t by)
{
	if (op == OP_SHRA)
		return (uint64_t)((int64_t)value >> (by < 64 ? by : 63));
	if (by >= 64)
		return 0;
	return op == OP_SHL ? value << by : value >> by;
}

static bool push_result(struct machine *m, uint8_t op)
{
	uint64_t right = pop(m);
	uint64_t left = pop(m);

	switch (op) {
	case OP_AND:
		push(m, left & right);
		return true;
	case OP_OR:
		push(m, left | right);
		return true;
	case OP_XOR:
		push(m, left ^ right);
		return true;
	case OP_PLUS:
		push(m, left + right);
		return true;
	case OP_MINUS:
		push(m, left - right);
		return true;
	case OP_MUL:
		push(m, left * right);
		return true;
	case OP_SHL:
	case OP_SHR:
	case OP_SHRA:
		push(m, shifted(op, left, right));
		return true;
	case OP_EQ:
		push(m, left == right);
		return true;
	case OP_NE:
		push(m, left != right);
		return true;
	case OP_GE:
		push(m, (int64_t)left >= (int64_t)right);
		return true;
	case OP_GT:
		push(m, (int64_t)left > (int64_t)right);
		return true;
	case OP_LE:
		push(m, (int64_t)left <= (int64_t)right);
		return true;
	case OP_LT:
		push(m, (int64_t)left < (int64_t)right);
		return true;
	default:
		return false;
	}
}

static void execute(struct machine *m, uint8_t op)
{
	if (op >= OP_LIT0 && op <= OP_LIT31) {
		push(m, op - OP_LIT0);
		return;
	}
	if (op >= OP_BREG0 && op <= OP_BREG31) {
		push_register(m, op - OP_BREG0);
		return;
	}
	switch (op) {
	case OP_NOP:
		return;
	case OP_DEREF:
		load(m);
		return;
	case OP_DUP:
		pick(m, 0);
		return;
	case OP_OVER:
		pick(m, 1);
		return;
	case OP_PICK:
		pick(m, cursor_u8(&m->code));
		return;
	case OP_DROP:
		(void)pop(m);
		return;
	case OP_SWAP: {
		uint64_t right = pop(m);
		uint64_t left = pop(m);
		push(m, right);
		push(m, left);
		return;
	}
	case OP_NEG:
		push(m, 0 - pop(m));
		return;
	case OP_NOT:
		push(m, ~pop(m));
		return;
	case OP_PLUS_UCONST:
		push(m, pop(m) + cursor_varuint(&m->code));
		return;
	default:
		if (!push_constant(m, op) && !push_result(m, op))
			m->error = -EBADMSG;
	}
}

int unwind_expression_value(const uint8_t *expression, size_t size,
	const struct unwind_registers *registers, const struct unwind_stack *stack,
	const uint64_t *initial, uint64_t *ret_value)
{
	struct machine m = { .registers = registers, .memory = stack };

	if (!expression || size > SIZE_LIMIT)
		return -EBADMSG;
	m.code = cursor_of(expression, size);
	if (initial)
		push(&m, *initial);
	while (!m.error && cursor_left(&m.code)) {
		execute(&m, cursor_u8(&m.code));
		if (m.code.short_read)
			m.error = m.error ? m.error : -EBADMSG;
	}
	if (m.error == -EFAULT)
		*ret_value = m.items[m.count - 1];
	if (m.error)
		return m.error;
	*ret_value = pop(&m);
	return m.error;
}
