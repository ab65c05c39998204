/*
 * See arch.h. The byte patterns of x86-64 are of code that live .NET 10.0 processes (System V
 * calling convention) write and announce by no event. A zero in a mask is a byte of an address or a
 * displacement.
 */
#include "code/arch.h"

#include <string.h>

/* Bytes that must be equal, and bytes that may have any value. */
#define X    0xff
#define ANY4 0, 0, 0, 0
#define ANY8 0, 0, 0, 0, 0, 0, 0, 0

/* "movabs REGISTER, imm64" is ten bytes, of which two are fixed. */
static const struct arch_stub x86_64_stubs[] = {
	/*
	 * The copied write barriers: one block of 272 bytes, patched in place for the collector in
	 * use. Its parts begin with the checked barrier, then mov [rdi], rsi and what the collector
	 * needs.
	 */
	{
		.kind = "write barrier", /* lea rax, [rip + x]; cmp rdi, [rax]; jb */
		.bytes = { 0x48, 0x8d, 0x05, ANY4, 0x48, 0x3b, 0x38, 0x72 },
		.mask = { X, X, X, ANY4, X, X, X, X },
		.len = 11,
		.size_bytes = 48,
	},
	{
		.kind = "write barrier", /* regions: mov r8, rdi; movabs rax */
		.bytes = { 0x48, 0x89, 0x37, 0x49, 0x89, 0xf8, 0x48, 0xb8 },
		.mask = { X, X, X, X, X, X, X, X },
		.len = 8,
		.size_bytes = 208,
	},
	{
		.kind = "write barrier", /* segments: nop; movabs rax */
		.bytes = { 0x48, 0x89, 0x37, 0x0f, 0x1f, 0x00, 0x48, 0xb8 },
		.mask = { X, X, X, X, X, X, X, X },
		.len = 8,
		.size_bytes = 128,
	},
	{
		/* movabs rax, type; cmp [rdi], rax; nop; movabs rax, target; jne; jmp rax */
		.kind = "interface dispatch stub",
		.bytes = { 0x48, 0xb8, ANY8, 0x48, 0x39, 0x07, 0x90, 0x48, 0xb8 },
		.mask = { X, X, ANY8, X, X, X, X, X, X },
		.len = 16,
		.size_bytes = 32,
	},
	{
		/* mov rax, [rdi]; push rdx; movabs r10, cache; ...: a lookup in a hash table */
		.kind = "interface resolve stub",
		.bytes = { 0x48, 0x8b, 0x07, 0x52, 0x49, 0xba },
		.mask = { X, X, X, X, X, X },
		.len = 6,
		.size_bytes = 112,
	},
	{
		/* movabs rax, token; push rax; movabs rax, resolver; jmp rax */
		.kind = "interface lookup stub",
		.bytes = { 0x48, 0xb8, ANY8, 0x50, 0x48, 0xb8 },
		.mask = { X, X, ANY8, X, X, X },
		.len = 13,
		.size_bytes = 32,
	},
	{
		/* mov rax, [rdi]; mov rax, [rax + x]; jmp [rax + y] */
		.kind = "virtual call stub",
		.bytes = { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x40, 0, 0xff, 0x60 },
		.mask = { X, X, X, X, X, X, 0, X, X },
		.len = 9,
		.size_bytes = 16,
	},
	{
		/* the same with 32-bit distances */
		.kind = "virtual call stub",
		.bytes = { 0x48, 0x8b, 0x07, 0x48, 0x8b, 0x80, ANY4, 0xff },
		.mask = { X, X, X, X, X, X, ANY4, X },
		.len = 11,
		.size_bytes = 24,
	},
	{
		/* mov rax, [rip + x]; dec word [rax]; je +6; jmp [rip + y]; jmp [rip + z] */
		.kind = "call counting stub",
		.bytes = { 0x48, 0x8b, 0x05, ANY4, 0x66, 0xff, 0x08, 0x74, 0x06, 0xff, 0x25 },
		.mask = { X, X, X, ANY4, X, X, X, X, X, X, X },
		.len = 14,
		.size_bytes = 24,
	},
	{
		/* jmp [rip + x]; mov r10, [rip + y]; jmp [rip + z] */
		.kind = "method precode",
		.bytes = { 0xff, 0x25, ANY4, 0x4c, 0x8b, 0x15, ANY4, 0xff, 0x25 },
		.mask = { X, X, ANY4, X, X, X, ANY4, X, X },
		.len = 15,
		.size_bytes = 24,
	},
	{
		/* mov r10, [rip + x]; jmp [rip + y] */
		.kind = "stub precode",
		.bytes = { 0x4c, 0x8b, 0x15, ANY4, 0xff, 0x25 },
		.mask = { X, X, X, ANY4, X, X },
		.len = 9,
		.size_bytes = 24,
	},
	{
		/* mov rsi, [rdi]; add rdi, 8; movabs rax, target; jmp rax */
		.kind = "unboxing stub",
		.bytes = { 0x48, 0x8b, 0x37, 0x48, 0x83, 0xc7, 0x08, 0x48, 0xb8 },
		.mask = { X, X, X, X, X, X, X, X, X },
		.len = 9,
		.size_bytes = 32,
	},
	{
		/* add rdi, 8; movabs rax, target; jmp rax */
		.kind = "unboxing stub",
		.bytes = { 0x48, 0x83, 0xc7, 0x08, 0x48, 0xb8, ANY8, 0xff, 0xe0 },
		.mask = { X, X, X, X, X, X, ANY8, X, X },
		.len = 16,
		.size_bytes = 16,
	},
	/*
	 * Instantiating stubs move the arguments up by one register, the last first, for the hidden
	 * one: then movabs rax, target; jmp rax. One pattern for each number of moves, the longest
	 * first.
	 */
	{
		.kind = "instantiating stub",
		.bytes = { 0x4d, 0x89, 0xc1, 0x49, 0x89, 0xc8, 0x48, 0x89, 0xd1, 0x48, 0x89, 0xf2,
			0x48, 0xbe },
		.mask = { X, X, X, X, X, X, X, X, X, X, X, X, X, X },
		.len = 14,
		.size_bytes = 40,
	},
	{
		.kind = "instantiating stub",
		.bytes = { 0x49, 0x89, 0xc8, 0x48, 0x89, 0xd1, 0x48, 0x89, 0xf2, 0x48, 0xbe, ANY8 },
		.mask = { X, X, X, X, X, X, X, X, X, X, X, ANY8 },
		.len = 19,
		.size_bytes = 32,
	},
	{
		.kind = "instantiating stub",
		.bytes = { 0x48, 0x89, 0xd1, 0x48, 0x89, 0xf2, 0x48, 0xbe, ANY8, 0x48, 0xb8 },
		.mask = { X, X, X, X, X, X, X, X, ANY8, X, X },
		.len = 18,
		.size_bytes = 32,
	},
	{
		.kind = "instantiating stub",
		.bytes = { 0x48, 0x89, 0xf2, 0x48, 0xbe, ANY8, 0x48, 0xb8 },
		.mask = { X, X, X, X, X, ANY8, X, X },
		.len = 15,
		.size_bytes = 32,
	},
	{
		.kind = "instantiating stub",
		.bytes = { 0x48, 0x89, 0xfe, 0x48, 0xbf, ANY8, 0x48, 0xb8 },
		.mask = { X, X, X, X, X, ANY8, X, X },
		.len = 15,
		.size_bytes = 32,
	},
	{
		.kind = "instantiating stub",
		.bytes = { 0x48, 0xbe, ANY8, 0x48, 0xb8 },
		.mask = { X, X, ANY8, X, X },
		.len = 12,
		.size_bytes = 24,
	},
	{
		/* mov rax, rsp; mov r11, rdi; then one move an argument; jmp [r11 + x] */
		.kind = "delegate shuffle thunk",
		.bytes = { 0x48, 0x8b, 0xc4, 0x49, 0x89, 0xfb },
		.mask = { X, X, X, X, X, X },
		.len = 6,
		.size_bytes = 96,
	},
	/* The target of import cells: load one or two constants, jump to the runtime's helper. */
	{
		.kind = "ReadyToRun helper", /* mov rsi, rdi; movabs rdi; jmp */
		.bytes = { 0x48, 0x8b, 0xf7, 0x48, 0xbf, ANY8, 0xe9 },
		.mask = { X, X, X, X, X, ANY8, X },
		.len = 14,
		.size_bytes = 24,
	},
	{
		.kind = "ReadyToRun helper", /* movabs rdi; movabs rsi; jmp */
		.bytes = { 0x48, 0xbf, ANY8, 0x48, 0xbe },
		.mask = { X, X, ANY8, X, X },
		.len = 12,
		.size_bytes = 32,
	},
	{
		.kind = "ReadyToRun helper", /* movabs rdi; jmp */
		.bytes = { 0x48, 0xbf, ANY8, 0xe9 },
		.mask = { X, X, ANY8, X },
		.len = 11,
		.size_bytes = 16,
	},
	{
		.kind = "ReadyToRun helper", /* movabs rsi; jmp */
		.bytes = { 0x48, 0xbe, ANY8, 0xe9 },
		.mask = { X, X, ANY8, X },
		.len = 11,
		.size_bytes = 16,
	},
	{
		.kind = "ReadyToRun helper", /* movabs rax; ret */
		.bytes = { 0x48, 0xb8, ANY8, 0xc3 },
		.mask = { X, X, ANY8, X },
		.len = 11,
		.size_bytes = 16,
	},
};

/* call rel32 (e8), or call of a register or memory (ff /2), with or without a REX prefix. */
static bool x86_64_ends_with_call(const uint8_t *code, size_t size, int64_t *ret_offset)
{
	const uint8_t *end = code + size;

	*ret_offset = 0;
	if (size >= 5 && end[-5] == 0xe8) {
		*ret_offset = (int32_t)((uint32_t)end[-4] | (uint32_t)end[-3] << 8 |
					(uint32_t)end[-2] << 16 | (uint32_t)end[-1] << 24);
		return true;
	}
	for (size_t len = 2; len <= 7 && len <= size; len++) {
		if (end[-(ptrdiff_t)len] != 0xff)
			continue;
		uint8_t modrm = end[1 - (ptrdiff_t)len];
		uint8_t mode = modrm >> 6;
		uint8_t rm = modrm & 7;
		if ((modrm >> 3 & 7) != 2)
			continue;
		size_t displacement = mode == 1 ? 1 : mode == 2 || (mode == 0 && rm == 5) ? 4 : 0;
		size_t expected = 2u + (mode != 3 && rm == 4) + displacement;
		if (expected == len)
			return true;
	}
	return false;
}

/* bl, or blr. */
static bool aarch64_ends_with_call(const uint8_t *code, size_t size, int64_t *ret_offset)
{
	*ret_offset = 0;
	if (size < 4)
		return false;
	const uint8_t *at = code + size - 4;
	uint32_t word = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
			(uint32_t)at[3] << 24;

	if (word >> 26 == 0x25) {
		int64_t words = word & 0x3ffffff;
		*ret_offset = (words >= 0x2000000 ? words - 0x4000000 : words) * 4 - 4;
		return true;
	}
	return (word & 0xfffffc1f) == 0xd63f0000;
}

/* The kernel's order: ax bx cx dx si di bp sp ip, r8 to r15; between them flags and segments. */
static const uint8_t x86_64_kernel_order[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14,
	15 };

/* rip, rsp, rbp, rbx, r12 to r15 */
static const uint8_t x86_64_block_registers[] = { 16, 7, 6, 3, 12, 13, 14, 15 };
static const uint16_t x86_64_block_offsets[] = { 128, 152, 32, 40, 24, 16, 8, 0 };

static const struct arch_unwind x86_64_unwind = {
	.kernel_mask = 0xff01ff,
	.kernel_order = x86_64_kernel_order,
	.kernel_count = sizeof(x86_64_kernel_order),
	.stack_register = 7,
	.frame_register = 6,
	.pc_register = 16,
	.slots = { 16, 6, 3, 12, 13, 14, 15 },
	.slot_count = 7,
	.preserved = 1u << 6 | 1u << 7 | 1u << 3 | 0xfu << 12,
	.managed_unwind = true,
	.code_mask = UINT64_MAX,
	.block_registers = x86_64_block_registers,
	.block_offsets = x86_64_block_offsets,
	.block_count = sizeof(x86_64_block_registers),
};

/* x0 to x30, sp, pc */
static const uint8_t aarch64_kernel_order[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
	15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, ARCH_NO_REGISTER };

/* pc, sp, x19 to x30 */
static const uint8_t aarch64_block_registers[] = { ARCH_NO_REGISTER, 31, 19, 20, 21, 22, 23, 24, 25,
	26, 27, 28, 29, 30 };
static const uint16_t aarch64_block_offsets[] = { 256, 248, 152, 160, 168, 176, 184, 192, 200, 208,
	216, 224, 232, 240 };

static const struct arch_unwind aarch64_unwind = {
	.kernel_mask = UINT64_C(0x1ffffffff),
	.kernel_order = aarch64_kernel_order,
	.kernel_count = sizeof(aarch64_kernel_order),
	.stack_register = 31,
	.frame_register = 29,
	.pc_register = ARCH_NO_REGISTER,
	.slots = { 30, 29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28 },
	.slot_count = 12,
	.preserved = 0x7ffu << 19 | 1u << 31,
	.code_mask = (UINT64_C(1) << 48) - 1,
	.block_registers = aarch64_block_registers,
	.block_offsets = aarch64_block_offsets,
	.block_count = sizeof(aarch64_block_registers),
};

/* r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, of which __USER_CS means 64 bits */
static const struct arch_system_call x86_64_system_call = {
	.parts = { { 7 * 8, 11 * 8 } },
	.arguments = { 7 * 8, 6 * 8, 5 * 8, 0 },
	.number = 8 * 8,
	.mode = 10 * 8,
	.mode_mask = 0xffff,
	.mode_64 = 0x33,
};

/* x0 to x3; pstate with PSR_MODE32_BIT, orig_x0 (as x0 has the result), syscallno */
static const struct arch_system_call aarch64_system_call = {
	.parts = { { 0, 4 * 8 }, { 33 * 8, 3 * 8 } },
	.arguments = { 5 * 8, 1 * 8, 2 * 8, 3 * 8 },
	.number = 6 * 8,
	.mode = 4 * 8,
	.mode_mask = 0x10,
};

static const struct arch archs[] = {
	{
		.name = "x86_64",
		.kernel_begin = UINT64_C(0xffff800000000000),
		.stubs = x86_64_stubs,
		.stub_count = sizeof(x86_64_stubs) / sizeof(x86_64_stubs[0]),
		.stub_search_back_bytes = 255,
		.ends_with_call = x86_64_ends_with_call,
		.unwind = &x86_64_unwind,
		.system_call = &x86_64_system_call,
	},
	{
		/* The kernel's half begins at 2^64 - 2^52 with 52-bit addresses, higher with 48. */
		.name = "aarch64",
		.kernel_begin = UINT64_C(0xfff0000000000000),
		.ends_with_call = aarch64_ends_with_call,
		.unwind = &aarch64_unwind,
		.system_call = &aarch64_system_call,
	},
};

static const struct arch generic = {
	.name = "unknown",
	.kernel_begin = UINT64_C(0x8000000000000000),
};

const struct arch *arch_by_name(const char *machine)
{
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (!strcmp(archs[i].name, machine))
			return &archs[i];
	}
	return &generic;
}

const struct arch *arch_here(void)
{
#if defined(__x86_64__)
	return arch_by_name("x86_64");
#elif defined(__aarch64__)
	return arch_by_name("aarch64");
#else
	return &generic;
#endif
}

static bool begins_with(const uint8_t *code, size_t size, const struct arch_stub *stub)
{
	if (size < stub->len)
		return false;
	for (size_t i = 0; i < stub->len; i++) {
		if ((code[i] ^ stub->bytes[i]) & stub->mask[i])
			return false;
	}
	return true;
}

const struct arch_stub *arch_find_stub(const struct arch *arch, const uint8_t *code, size_t size,
	size_t at, size_t *ret_begin)
{
	if (at >= size)
		return NULL;
	/* The nearest stub start before `at` whose stub is long enough to include `at`. */
	for (size_t back = 0; back <= at && back <= arch->stub_search_back_bytes; back++) {
		for (size_t i = 0; i < arch->stub_count; i++) {
			const struct arch_stub *stub = &arch->stubs[i];
			if (back < stub->size_bytes &&
				begins_with(code + at - back, size - at + back, stub)) {
				*ret_begin = at - back;
				return stub;
			}
		}
	}
	return NULL;
}

bool arch_ends_with_call(const struct arch *arch, const uint8_t *code, size_t size,
	int64_t *ret_offset)
{
	return arch->ends_with_call && arch->ends_with_call(code, size, ret_offset);
}
