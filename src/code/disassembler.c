/*
 * See disassembler.h. The numbers and the layout of cs_insn are capstone's stable binary interface, from
 * capstone/capstone.h of versions 4 and 5:
 *
 *   u32 id, 4 bytes, u64 address, u16 size, u8 bytes[16 in version 4, 24 in version 5], char mnemonic[32], char operands[160]
 */
#include "code/disassembler.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/diag.h"

#define SIZE_AT        16u
#define BYTES_AT       18u
#define BYTES_VERSION4 16u
#define BYTES_VERSION5 24u
#define MNEMONIC_SIZE  32u
#define OPERANDS_SIZE  160u

enum { ARCH_ARM64 = 1, ARCH_X86 = 3 };
enum { MODE_LITTLE_ENDIAN = 0, MODE_64 = 1 << 3 };

struct disassembler {
	void *library;
	size_t handle;
	void *scratch; /* a cs_insn */
	size_t mnemonic_at;
	uint32_t step; /* of bytes that are no instruction */
	int (*open)(int arch, int mode, size_t *handle);
	int (*close)(size_t *handle);
	void *(*allocate)(size_t handle);
	void (*release)(void *instructions, size_t count);
	bool (*iterate)(size_t handle, const uint8_t **code, size_t *size, uint64_t *address,
		void *instruction);
};

#ifdef SPOOR_STATIC
#define WHY_NOT "this spoor is linked statically, without capstone"

static void open_library(struct disassembler *d)
{
	(void)d; /* a static program cannot load libraries */
}
#else
#define WHY_NOT "libcapstone.so.4 is not installed"

static void open_library(struct disassembler *d)
{
	d->mnemonic_at = BYTES_AT + BYTES_VERSION4;
	d->library = dlopen("libcapstone.so.4", RTLD_NOW | RTLD_LOCAL);
	if (d->library)
		return;
	d->mnemonic_at = BYTES_AT + BYTES_VERSION5;
	d->library = dlopen("libcapstone.so.5", RTLD_NOW | RTLD_LOCAL);
}
#endif

static bool find_function(struct disassembler *d, const char *name, void *ret_function)
{
	void *found = dlsym(d->library, name);

	memcpy(ret_function, &found, sizeof(found));
	return found != NULL;
}

static bool load(struct disassembler *d)
{
	open_library(d);
	return d->library && find_function(d, "cs_open", &d->open) &&
	       find_function(d, "cs_close", &d->close) &&
	       find_function(d, "cs_malloc", &d->allocate) &&
	       find_function(d, "cs_free", &d->release) &&
	       find_function(d, "cs_disasm_iter", &d->iterate);
}

static bool open_machine(struct disassembler *d, const char *machine)
{
	bool is_arm64 = strcmp(machine, "aarch64") == 0;

	d->step = is_arm64 ? 4 : 1;
	if (!is_arm64 && strcmp(machine, "x86_64") != 0)
		return false;
	if (d->open(is_arm64 ? ARCH_ARM64 : ARCH_X86, is_arm64 ? MODE_LITTLE_ENDIAN : MODE_64,
		    &d->handle) != 0) {
		d->handle = 0;
		return false;
	}
	d->scratch = d->allocate(d->handle);
	return d->scratch != NULL;
}

int disassembler_open(const char *machine, struct disassembler **ret_disassembler,
	struct diag *diag)
{
	struct disassembler *d = calloc(1, sizeof(*d));
	int result = 0;

	if (!d)
		return diag_set(diag, -ENOMEM, "cannot disassemble: %m");
	if (!load(d)) {
		result = diag_set(diag, -ENOSYS, "cannot disassemble: %s", WHY_NOT);
		diag_remedy(diag, "apt-get install libcapstone4 adds it, for annotate --asm");
	} else if (!open_machine(d, machine)) {
		result = diag_set(diag, -ENOSYS, "cannot disassemble code of the processor '%s'",
			machine);
	} else {
		*ret_disassembler = TAKE(d);
	}
	disassembler_close(d);
	return result;
}

static const char *member(const struct disassembler *d, size_t at)
{
	return (const char *)d->scratch + at;
}

/* Direct calls and jumps have their target as the last operand, a plain number. */
static void find_target(struct instruction *instruction, const char *operands)
{
	const char *last = strrchr(operands, ' ');
	const char *number = last ? last + 1 : operands;
	bool jumps = instruction->operation[0] == 'j' ||
		     strncmp(instruction->operation, "call", 4) == 0 ||
		     (instruction->operation[0] == 'b' && *number == '#') ||
		     strncmp(instruction->operation, "cb", 2) == 0 ||
		     strncmp(instruction->operation, "tb", 2) == 0;
	char *end;

	if (*number == '#')
		number++;
	if (!jumps || *number < '0' || *number > '9') /* below 10 it is decimal */
		return;
	errno = 0;
	uint64_t target = strtoull(number, &end, 0);
	instruction->has_target = *end == '\0' && errno == 0;
	instruction->target = (int64_t)target;
}

bool disassembler_next(struct disassembler *d, const uint8_t *code, uint32_t size, uint32_t at,
	struct instruction *ret_instruction)
{
	const uint8_t *next = code + at;
	size_t left = size - at;
	uint64_t address = at;
	uint16_t length;

	if (at >= size)
		return false;
	*ret_instruction = (struct instruction){ 0 };
	if (d->iterate(d->handle, &next, &left, &address, d->scratch)) {
		memcpy(&length, member(d, SIZE_AT), sizeof(length));
		const char *operands = member(d, d->mnemonic_at + MNEMONIC_SIZE);
		ret_instruction->size_bytes = length ? length : 1;
		ret_instruction->decoded = true;
		(void)snprintf(ret_instruction->operation, sizeof(ret_instruction->operation),
			"%.*s", (int)MNEMONIC_SIZE - 1, member(d, d->mnemonic_at));
		if (*operands)
			(void)snprintf(ret_instruction->text, sizeof(ret_instruction->text),
				"%-7s %.*s", ret_instruction->operation, (int)OPERANDS_SIZE - 1,
				operands);
		else
			memcpy(ret_instruction->text, ret_instruction->operation, MNEMONIC_SIZE);
		find_target(ret_instruction, operands);
		return true;
	}
	ret_instruction->size_bytes = size - at < d->step ? size - at : d->step;
	(void)snprintf(ret_instruction->text, sizeof(ret_instruction->text), "(bad)   0x%02x",
		code[at]);
	return true;
}

void disassembler_close(struct disassembler *d)
{
	if (!d)
		return;
	if (d->scratch)
		d->release(d->scratch, 1);
	if (d->handle)
		(void)d->close(&d->handle); /* nothing is left to be done about it */
	if (d->library)
		(void)dlclose(d->library);
	free(d);
}

bool disassembler_is_available(const char **ret_why)
{
	struct disassembler d = { 0 };
	bool loaded = load(&d);

	if (d.library)
		(void)dlclose(d.library);
	*ret_why = WHY_NOT;
	return loaded;
}
