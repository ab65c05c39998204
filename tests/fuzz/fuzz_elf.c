/* ELF images, their symbol tables, and the compressed symbol table inside. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "code/symbol_file.h"
#include "image/elf.h"
#include "image/image_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_file *file;
	struct symbol_hit hit;

	if (symbol_file_open_memory(data, size, &file, NULL) < 0)
		return 0;
	const struct elf *elf = symbol_file_elf(file);
	struct image_file image;
	char needed[32];

	image_file_from_memory(&image, data, size);
	if (elf_find_needed(elf, &image, "lib", needed, sizeof(needed)) &&
		(strncmp(needed, "lib", 3) != 0 || strlen(needed) >= sizeof(needed)))
		__builtin_trap();
	for (uint64_t at = 0; at < 0x4000; at += 61) {
		(void)symbol_file_find_offset(file, at, &hit);
		if (symbol_file_find_bounds(file, at, &hit) && hit.begin_vaddr >= hit.end_vaddr)
			__builtin_trap();
		if (symbol_file_find_vaddr(file, elf->text_vaddr + at, &hit) &&
			(hit.begin_vaddr > elf->text_vaddr + at ||
				hit.end_vaddr <= elf->text_vaddr + at))
			__builtin_trap();
	}
	symbol_file_close(file);
	return 0;
}
