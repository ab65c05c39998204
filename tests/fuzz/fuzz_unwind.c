/* Unwind tables of an ELF image, and walks with them over a stack made of the image's own bytes. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "code/arch.h"
#include "code/unwind.h"
#include "code/unwind_table.h"
#include "image/image_file.h"

#define FRAMES_MAX 64u

static bool locate(void *context, uint64_t address, bool exact, struct unwind_place *ret_place)
{
	(void)exact;
	ret_place->table = context;
	ret_place->vaddr = address;
	return true;
}

static void walk(struct unwind *unwind, const uint8_t *data, size_t size, uint64_t pc)
{
	struct unwind_registers registers = { .pc = pc, .known = UINT32_MAX };
	struct unwind_stack stack = { data, size, 0x7000 };
	uint64_t frames[FRAMES_MAX];
	uint32_t count;

	for (uint32_t i = 0; i < UNWIND_REGISTERS; i++)
		registers.values[i] = stack.begin;
	if (unwind_walk(unwind, 1, &registers, &stack, frames, FRAMES_MAX, &count) >=
			UNWIND_END_COUNT ||
		count > FRAMES_MAX || count == 0)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const machines[] = { "x86_64", "aarch64" };
	struct image_file file;
	struct unwind_table *table;

	image_file_from_memory(&file, data, size);
	if (unwind_table_open(&file, &table) < 0)
		return 0;
	for (size_t i = 0; i < 2; i++) {
		struct unwind unwind;
		if (unwind_init(&unwind, arch_by_name(machines[i])->unwind, locate, table) < 0)
			break;
		for (uint64_t pc = 0x1000; pc < 0x8000; pc += 61)
			walk(&unwind, data, size, pc);
		unwind_done(&unwind);
	}
	unwind_table_free(table);
	return 0;
}
