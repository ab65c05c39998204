/*
 * See clr_unwind.h.
 *
 *   UNWIND_INFO, little-endian
 *   offset  size  field
 *   0       1     version (3 bits), flags
 *   1       1     size of the prolog
 *   2       1     number of codes
 *   3       1     frame register (4 bits), its distance from the stack pointer in 16 bytes
 *   4       2 n   codes, the last instruction of the prolog first; personality and more follow
 *
 *   code
 *   0       1     end of its instruction in the prolog
 *   1       1     operation (4 bits), its operand
 *   2       2 n   more of the operand, by operation
 *
 * A code whose instruction has not run yet is skipped. The code of on-stack replacement begins with
 * codes at offset 0, for the frame of the code that it replaces: they always hold.
 */
#include "code/clr_unwind.h"

#include <string.h>

#include "base/cursor.h"

#define VERSION      1u
#define FLAG_CHAINED 4u
#define FRAME_MAX    (INT64_C(1) << 28) /* larger than any stack */
#define WORD         8
#define CODES_MAX    48u

enum register_number { RBP = CLR_FRAME_POINTER, RSP = 7, PC = 16 };

enum operation {
	OP_PUSH,
	OP_ALLOC_LARGE,
	OP_ALLOC_SMALL,
	OP_SET_FRAME,
	OP_SAVE,
	OP_SAVE_FAR,
	OP_SAVE_VECTOR = 8,
	OP_SAVE_VECTOR_FAR,
	OP_SET_FRAME_LARGE = 11, /* not on Windows */
};

/* From the processor's numbers to those of DWARF. */
static const uint8_t numbers[] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

/* Where the stack pointer of the caller is found: register `base` + `distance`. */
struct frame {
	uint8_t base;
	int64_t distance;
	uint32_t saved; /* bit i: register i is at base + slots[i] */
	int64_t slots[UNWIND_REGISTERS];
};

static bool save(struct frame *frame, uint8_t number, int64_t at)
{
	if (number == RSP || at > FRAME_MAX || at < -FRAME_MAX)
		return false;
	frame->saved |= 1u << number;
	frame->slots[number] = at;
	return true;
}

static bool pop(struct frame *frame, uint8_t number)
{
	bool saved = save(frame, number, frame->distance);

	frame->distance += WORD;
	return saved;
}

static bool release(struct frame *frame, int64_t size)
{
	frame->distance += size;
	return size >= 0 && frame->distance <= FRAME_MAX;
}

/* False: registers were saved relative to another register before, as no compiler does. */
static bool set_base(struct frame *frame, uint8_t number, int64_t distance)
{
	frame->base = number;
	frame->distance = distance;
	return !frame->saved && distance >= -FRAME_MAX && distance <= FRAME_MAX;
}

static bool finish(const struct frame *frame, struct unwind_rules *ret_rules)
{
	int64_t cfa = frame->distance + WORD;

	*ret_rules = (struct unwind_rules){ .cfa = { .value = cfa, .kind = RULE_VALUE_OFFSET },
		.cfa_register = frame->base,
		.return_register = PC };
	ret_rules->registers[PC] = (struct unwind_rule){ .value = -WORD, .kind = RULE_OFFSET };
	for (uint32_t i = 0; i < UNWIND_REGISTERS; i++)
		if (frame->saved >> i & 1)
			ret_rules->registers[i] =
				(struct unwind_rule){ .value = frame->slots[i] - cfa,
					.kind = RULE_OFFSET };
	return true;
}

/* ---- unwind information ---- */

size_t clr_unwind_size(const uint8_t *head)
{
	return CLR_UNWIND_HEAD + 2u * head[2];
}

/* Bytes of a code after its first two. */
static unsigned more_bytes(unsigned operation, unsigned operand)
{
	switch (operation) {
	case OP_ALLOC_LARGE:
		return operand ? 4 : 2;
	case OP_SAVE:
	case OP_SAVE_VECTOR:
		return 2;
	case OP_SAVE_FAR:
	case OP_SAVE_VECTOR_FAR:
	case OP_SET_FRAME_LARGE:
		return 4;
	default:
		return 0;
	}
}

bool clr_unwind_rules(const uint8_t *info, size_t size, uint64_t offset,
	struct unwind_rules *ret_rules)
{
	if (size < CLR_UNWIND_HEAD || (info[0] & 7) != VERSION || info[0] >> 3 & FLAG_CHAINED ||
		size < clr_unwind_size(info))
		return false;
	struct cursor c = cursor_of(info + CLR_UNWIND_HEAD, 2u * info[2]);
	struct frame frame = { .base = RSP };
	struct frame moved = {
		.base = RSP
	}; /* registers saved by moves: from the finished frame's end */
	uint8_t frame_register = numbers[info[3] & 15];
	bool framed = false; /* the frame register is set at this offset */
	bool valid = true;

	while (valid && c.at < c.end) {
		uint8_t end = cursor_u8(&c);
		uint8_t both = cursor_u8(&c);
		unsigned operation = both & 15;
		uint8_t operand = both >> 4;
		unsigned more = more_bytes(operation, operand);
		int64_t value = more == 4 ? cursor_u32(&c) : more == 2 ? cursor_u16(&c) : 0;
		if (end > offset)
			continue;
		switch (operation) {
		case OP_PUSH:
			valid = pop(&frame, numbers[operand]);
			break;
		case OP_ALLOC_LARGE:
			valid = operand <= 1 && release(&frame, operand ? value : value * WORD);
			break;
		case OP_ALLOC_SMALL:
			valid = release(&frame, (operand + 1) * WORD);
			break;
		case OP_SET_FRAME:
		case OP_SET_FRAME_LARGE:
			if (operation == OP_SET_FRAME)
				value = info[3] >> 4;
			valid = !framed && frame_register == RBP &&
				set_base(&frame, frame_register, -16 * value);
			moved.distance = -16 * value;
			framed = true;
			break;
		case OP_SAVE:
		case OP_SAVE_FAR:
			valid = save(&moved, numbers[operand],
				operation == OP_SAVE ? value * WORD : value);
			break;
		case OP_SAVE_VECTOR:
		case OP_SAVE_VECTOR_FAR:
			break;
		default:
			valid = false;
		}
	}
	for (uint32_t i = 0; valid && i < UNWIND_REGISTERS; i++)
		if (moved.saved >> i & 1)
			valid = save(&frame, (uint8_t)i, moved.distance + moved.slots[i]);
	return valid && !c.short_read && finish(&frame, ret_rules);
}

/* ---- instructions of prologs and epilogs ---- */

enum frame_effect {
	EFFECT_NONE,       /* of these, or in the middle of a larger step */
	EFFECT_RELEASE,    /* adds its operand to the stack pointer */
	EFFECT_FROM_FRAME, /* the stack pointer becomes the frame pointer plus the operand */
	EFFECT_SET_FRAME, /* the frame pointer becomes one of this frame, or of the funclet's method */
};

/* The begin of an instruction that builds or releases a frame. */
struct frame_code {
	uint8_t bytes[4];
	uint8_t len;
	uint8_t operand; /* bytes of the operand that follows: 1 or 4; 0: none */
	uint8_t effect;  /* enum frame_effect */
};

static const struct frame_code release_codes[] = {
	{ { 0x48, 0x83, 0xc4 }, 3, 1, EFFECT_RELEASE },       /* add rsp, imm8 */
	{ { 0x48, 0x81, 0xc4 }, 3, 4, EFFECT_RELEASE },       /* add rsp, imm32 */
	{ { 0x48, 0x8d, 0x64, 0x24 }, 4, 1, EFFECT_RELEASE }, /* lea rsp, [rsp + disp8] */
	{ { 0x48, 0x8d, 0xa4, 0x24 }, 4, 4, EFFECT_RELEASE }, /* lea rsp, [rsp + disp32] */
	{ { 0x48, 0x8d, 0x65 }, 3, 1, EFFECT_FROM_FRAME },    /* lea rsp, [rbp + disp8] */
	{ { 0x48, 0x8d, 0xa5 }, 3, 4, EFFECT_FROM_FRAME },    /* lea rsp, [rbp + disp32] */
	{ { 0x48, 0x8b, 0xe5 }, 3, 0, EFFECT_FROM_FRAME },    /* mov rsp, rbp */
	{ { 0x48, 0x89, 0xec }, 3, 0, EFFECT_FROM_FRAME },    /* mov rsp, rbp */
	{ { 0xc5, 0xf8, 0x77 }, 3, 0, EFFECT_NONE },          /* vzeroupper */
	{ .len = 0 },
};

static const struct frame_code build_codes[] = {
	{ { 0x48, 0x83, 0xec }, 3, 1, EFFECT_NONE },       /* sub rsp, imm8 */
	{ { 0x48, 0x81, 0xec }, 3, 4, EFFECT_NONE },       /* sub rsp, imm32 */
	{ { 0xc5, 0xf8, 0x77 }, 3, 0, EFFECT_NONE },       /* vzeroupper */
	{ { 0x48, 0x8b, 0x45 }, 3, 1, EFFECT_NONE },       /* mov rax, [rbp + disp8]: replacement */
	{ { 0x85, 0x84, 0x24 }, 3, 4, EFFECT_NONE },       /* test [rsp + disp32], eax: a probe */
	{ { 0x4c, 0x8d, 0x9c, 0x24 }, 4, 4, EFFECT_NONE }, /* lea r11, [rsp + disp32], before */
	{ { 0xe8 }, 1, 4, EFFECT_NONE },                   /* call disp32, a probe, and after it */
	{ { 0xff, 0x15 }, 2, 4, EFFECT_NONE },             /* (call [rip + disp32]) */
	{ { 0x49, 0x8b, 0xe3 }, 3, 0, EFFECT_NONE },       /* mov rsp, r11 */
	{ { 0x48, 0x8d, 0x6c, 0x24 }, 4, 1, EFFECT_SET_FRAME }, /* lea rbp, [rsp + disp8] */
	{ { 0x48, 0x8d, 0xac, 0x24 }, 4, 4, EFFECT_SET_FRAME }, /* lea rbp, [rsp + disp32] */
	{ { 0x48, 0x8b, 0xec }, 3, 0, EFFECT_SET_FRAME },       /* mov rbp, rsp */
	{ { 0x48, 0x89, 0xe5 }, 3, 0, EFFECT_SET_FRAME },       /* mov rbp, rsp */
	{ { 0x48, 0x8b, 0x6f }, 3, 1, EFFECT_SET_FRAME }, /* mov rbp, [rdi + disp8]: a funclet */
	{ { 0x48, 0x8b, 0xaf }, 3, 4, EFFECT_SET_FRAME }, /* mov rbp, [rdi + disp32] */
	{ { 0x48, 0x8b, 0xef }, 3, 0, EFFECT_SET_FRAME }, /* mov rbp, rdi */
	{ .len = 0 },
};

static const struct frame_code *find_code(const struct frame_code *codes, const uint8_t *code,
	size_t size)
{
	for (; codes->len; codes++)
		if (size >= (size_t)codes->len + codes->operand &&
			!memcmp(code, codes->bytes, codes->len))
			return codes;
	return NULL;
}

/* Bytes of `push register` (`opcode` 0x50) or `pop register` (0x58); 0: another instruction. */
static size_t stack_code_at(const uint8_t *code, size_t size, uint8_t opcode, uint8_t *ret_number)
{
	size_t prefix = size && code[0] == 0x41;

	if (size <= prefix || (code[prefix] & 0xf8) != opcode)
		return 0;
	*ret_number = numbers[(code[prefix] & 7) + 8 * prefix];
	return prefix + 1;
}

/* Bytes of `mov [rsp + disp], register`, which saves a register; 0: another instruction. */
static size_t save_at(const uint8_t *code, size_t size)
{
	if (size < 4 || (code[0] & 0xfb) != 0x48 || code[1] != 0x89 || (code[2] & 7) != 4 ||
		code[3] != 0x24)
		return 0;
	size_t len = code[2] >> 6 == 1 ? 5 : code[2] >> 6 == 2 ? 8 : 0;
	return len <= size ? len : 0;
}

bool clr_unwind_prolog(const uint8_t *code, size_t size, struct clr_prolog *ret_prolog)
{
	size_t at = 0;

	*ret_prolog = (struct clr_prolog){ .set_end = 0 };
	for (unsigned i = 0; i < CODES_MAX && at < size; i++) {
		uint8_t number;
		size_t len = stack_code_at(code + at, size - at, 0x50, &number);
		if (len) {
			ret_prolog->saves_first |= !at && number == RBP;
			at += len;
			continue;
		}
		len = save_at(code + at, size - at);
		at += len;
		if (len)
			continue;
		const struct frame_code *build = find_code(build_codes, code + at, size - at);
		if (!build)
			return false;
		at += (size_t)build->len + build->operand;
		if (build->effect == EFFECT_SET_FRAME) {
			ret_prolog->set_end = (uint32_t)at;
			return true;
		}
	}
	return false;
}

static int64_t signed_operand(const uint8_t *at, unsigned bytes)
{
	struct cursor c = cursor_of(at, bytes);

	return bytes == 4 ? (int32_t)cursor_u32(&c) : bytes == 1 ? (int8_t)cursor_u8(&c) : 0;
}

/*
 * Whether an instruction leaves the function. Of jumps through a register or memory, compilers mark those that
 * leave it with REX.W, for unwinders.
 */
static bool leaves(const uint8_t *code, size_t size, uint64_t address,
	const struct clr_range *function)
{
	unsigned bytes = size && code[0] == 0xe9 ? 4 : size && code[0] == 0xeb ? 1 : 0;

	if (size < 1u + bytes)
		return false;
	if (bytes) {
		uint64_t target = address + 1 + bytes + (uint64_t)signed_operand(code + 1, bytes);
		return target < function->begin || target >= function->end;
	}
	if (code[0] == 0xc3 || code[0] == 0xc2 || (size >= 2 && code[0] == 0xf3 && code[1] == 0xc3))
		return true;
	if (size >= 2 && code[0] == 0xff && code[1] == 0x25) /* jmp [rip + disp32] */
		return true;
	return size >= 3 && (code[0] & 0xf8) == 0x48 && code[1] == 0xff && (code[2] >> 3 & 7) == 4;
}

bool clr_unwind_epilog(const uint8_t *code, size_t size, uint64_t address,
	const struct clr_range *function, struct unwind_rules *ret_rules)
{
	struct frame frame = { .base = RSP };
	size_t at = 0;

	for (unsigned i = 0; i < CODES_MAX && at < size; i++) {
		uint8_t number;
		if (leaves(code + at, size - at, address + at, function))
			return finish(&frame, ret_rules);
		size_t len = stack_code_at(code + at, size - at, 0x58, &number);
		if (len) {
			if (!pop(&frame, number))
				return false;
			at += len;
			continue;
		}
		const struct frame_code *r = find_code(release_codes, code + at, size - at);
		if (!r)
			return false;
		int64_t value = signed_operand(code + at + r->len, r->operand);
		if ((r->effect == EFFECT_RELEASE && !release(&frame, value)) ||
			(r->effect == EFFECT_FROM_FRAME && !set_base(&frame, RBP, value)))
			return false;
		at += (size_t)r->len + r->operand;
	}
	return false;
}
