/* See kernel_symbol.h. */
#include "machine/kernel_symbol.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/bpf.h"

/* the sum of a name (at most 512), the offsets, and a module (at most 56) with its build id */
#define TEXT_BYTES   1024u
#define FORMAT_BYTES 8u

/* The program reads and writes one element of a map, which is mapped here. */
struct kernel_question {
	uint64_t address;
	char text[TEXT_BYTES];
};

struct kernel_symbols {
	int question_fd;
	int format_fd;
	int program_fd;
	struct kernel_question *question; /* mapped */
};

/* The format must be in memory that is frozen: the verifier requires it. */
static int make_format(void)
{
	static const char format[FORMAT_BYTES] = "%pS";
	uint32_t key = 0;
	union bpf_attr attr;
	int fd = bpf_map_new(BPF_MAP_TYPE_ARRAY, FORMAT_BYTES, 1, BPF_F_RDONLY_PROG);

	if (fd < 0)
		return fd;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)fd;
	attr.key = (uint64_t)(uintptr_t)&key;
	attr.value = (uint64_t)(uintptr_t)format;
	int result = bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
	if (result == 0) {
		memset(&attr, 0, sizeof(attr));
		attr.map_fd = (uint32_t)fd;
		result = bpf_call(BPF_MAP_FREEZE, &attr);
	}
	if (result < 0) {
		closep(&fd);
		return result;
	}
	return fd;
}

/* bpf_snprintf(question->text, TEXT_BYTES, "%pS", &question->address on the stack, 8) */
static int make_program(int question_fd, int format_fd)
{
	const unsigned load_64 = BPF_LD | BPF_DW | BPF_IMM;
	const struct bpf_insn program[] = {
		/* r6 = the question */
		bpf_insn(load_64, BPF_REG_6, BPF_PSEUDO_MAP_VALUE, 0, question_fd),
		bpf_insn(0, 0, 0, 0, 0),
		/* the address is copied to the stack, because the printed value must not change */
		bpf_insn(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_6, 0, 0),
		bpf_insn(BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_1, -8, 0),
		bpf_insn(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0),
		bpf_insn(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0,
			(int)offsetof(struct kernel_question, text)),
		bpf_insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, (int)TEXT_BYTES),
		bpf_insn(load_64, BPF_REG_3, BPF_PSEUDO_MAP_VALUE, 0, format_fd),
		bpf_insn(0, 0, 0, 0, 0),
		bpf_insn(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_4, BPF_REG_10, 0, 0),
		bpf_insn(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, -8),
		bpf_insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_5, 0, 0, 8),
		bpf_insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_snprintf),
		bpf_insn(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		bpf_insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	/* this program type must be sleepable */
	return bpf_load(BPF_PROG_TYPE_SYSCALL, BPF_F_SLEEPABLE, program,
		sizeof(program) / sizeof(program[0]));
}

int kernel_symbols_open(struct kernel_symbols **ret_symbols)
{
	struct kernel_symbols *symbols = calloc(1, sizeof(*symbols));
	int result;

	if (!symbols)
		return -ENOMEM;
	symbols->format_fd = symbols->program_fd = -1;
	symbols->question = bpf_map_shared(sizeof(struct kernel_question), &symbols->question_fd);
	result = symbols->question_fd;
	if (result >= 0)
		result = symbols->format_fd = make_format();
	if (result >= 0)
		result = symbols->program_fd =
			make_program(symbols->question_fd, symbols->format_fd);
	if (result < 0) {
		kernel_symbols_close(symbols);
		return result;
	}
	*ret_symbols = symbols;
	return 0;
}

/* "0x1a" after `mark`; `mark` must be at *at. */
static bool take_number(char **at, char mark, uint64_t *ret_value)
{
	char *end;

	if (**at != mark || strncmp(*at + 1, "0x", 2) != 0)
		return false;
	*ret_value = strtoull(*at + 1, &end, 16);
	*at = end;
	return true;
}

int kernel_symbol_parse(char *text, uint64_t address, struct kernel_symbol *ret_symbol)
{
	char *plus = strchr(text, '+');
	char *at = plus;
	uint64_t offset;
	uint64_t size;

	if (!plus || plus == text || !take_number(&at, '+', &offset) ||
		!take_number(&at, '/', &size) || offset >= size || offset > address)
		return 0;
	*plus = '\0';
	ret_symbol->name = text;
	ret_symbol->module = "";
	ret_symbol->begin = address - offset;
	ret_symbol->end = ret_symbol->begin + size;
	if (at[0] == ' ' && at[1] == '[') {
		at[2 + strcspn(at + 2, " ]")] = '\0'; /* a build id may follow the name */
		ret_symbol->module = at + 2;
	}
	return 1;
}

int kernel_symbols_find(struct kernel_symbols *symbols, uint64_t address,
	struct kernel_symbol *ret_symbol)
{
	union bpf_attr attr;

	symbols->question->address = address;
	symbols->question->text[0] = '\0';
	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)symbols->program_fd;
	int result = bpf_call(BPF_PROG_TEST_RUN, &attr);

	if (result < 0)
		return result;
	symbols->question->text[TEXT_BYTES - 1] = '\0';
	return kernel_symbol_parse(symbols->question->text, address, ret_symbol);
}

void kernel_symbols_close(struct kernel_symbols *symbols)
{
	if (!symbols)
		return;
	bpf_map_unshare(symbols->question, sizeof(struct kernel_question));
	closep(&symbols->program_fd);
	closep(&symbols->format_fd);
	closep(&symbols->question_fd);
	free(symbols);
}
