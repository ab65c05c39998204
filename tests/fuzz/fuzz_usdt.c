/*
 * The notes of USDT probes and their arguments. Input: an ELF image; or, if the first byte is 'A', a machine (x: x86-64, a:
 * arm64) and a text of arguments.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/usdt_arguments.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "image/usdt_notes.h"

static void check_arguments(uint16_t machine, const char *text)
{
	struct usdt_argument arguments[USDT_ARGUMENTS_MAX];
	unsigned count = usdt_arguments_parse(machine, text, arguments);

	if (count > USDT_ARGUMENTS_MAX)
		__builtin_trap();
	for (unsigned i = 0; i < count; i++) {
		const struct usdt_argument *each = &arguments[i];
		if ((each->size != 1 && each->size != 2 && each->size != 4 && each->size != 8) ||
			each->scale > 4 ||
			(each->base != USDT_NO_REGISTER && (each->base > 256 || each->base % 8)) ||
			(each->index != USDT_NO_REGISTER &&
				(each->index > 256 || each->index % 8)) ||
			(each->place == USDT_REGISTER && each->base == USDT_NO_REGISTER) ||
			(each->place == USDT_SYMBOL && !each->symbol_len))
			__builtin_trap();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image_file file;
	struct elf elf;
	struct usdt_notes notes;
	uint64_t vaddr;

	if (size >= 2 && data[0] == 'A') {
		char *text = malloc(size - 1);
		if (!text)
			return 0;
		memcpy(text, data + 2, size - 2);
		text[size - 2] = '\0';
		check_arguments(data[1] == 'a' ? USDT_ARM64 : USDT_X86_64, text);
		free(text);
		return 0;
	}
	image_file_from_memory(&file, data, size);
	if (elf_read(&elf, &file, NULL) < 0)
		return 0;
	if (usdt_notes_read(&elf, &file, &notes) == 0) {
		for (uint32_t i = 0; i < notes.items.count; i++) {
			const struct usdt_note *note = &notes.items.items[i];
			if (!note->provider[0] || !note->name[0] || note->offset >= size)
				__builtin_trap();
			check_arguments(elf.machine, note->arguments);
		}
		usdt_notes_done(&notes);
	}
	(void)usdt_symbol_find(&elf, &file, "counter", 7, &vaddr);
	elf_done(&elf);
	return 0;
}
