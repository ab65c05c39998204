/* The lines of a Go program: each address has inlined functions with names, then the one that has the code. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "code/go_lines.h"
#include "image/elf.h"
#include "image/image_file.h"

static bool each(void *context, const char *function, const char *file, uint32_t line)
{
	bool *whole = context;

	(void)line;
	if (*whole || !file || (function && !*function))
		__builtin_trap();
	*whole = !function;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image_file file;
	struct go_lines *lines;
	struct elf elf;

	image_file_from_memory(&file, data, size);
	if (elf_read(&elf, &file, NULL) == 0 && go_lines_open(&file, &elf, &lines) == 0) {
		for (uint64_t address = 0x401000; address < 0x401060; address += 8) {
			bool whole = false;
			if (go_lines_find(lines, address, each, &whole) != whole)
				__builtin_trap();
		}
		go_lines_close(lines);
	}
	elf_done(&elf);
	return 0;
}
