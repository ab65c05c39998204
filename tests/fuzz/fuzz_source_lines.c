/* DWARF: sections (also compressed ones), units, line programs, inlined calls. */
#include <stddef.h>
#include <stdint.h>

#include "base/strtab.h"
#include "code/source_lines.h"
#include "image/elf.h"
#include "image/image_file.h"

#define QUERIES 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct source_query queries[QUERIES];
	struct strtab strings = { 0 };
	struct source_lines *lines;
	struct image_file file;
	struct elf elf;

	image_file_from_memory(&file, data, size);
	if (elf_read(&elf, &file, NULL) == 0 &&
		source_lines_open(&file, &elf, &strings, &lines) == 0) {
		for (uint32_t i = 0; i < QUERIES; i++)
			queries[i].vaddr = elf.text_vaddr + (uint64_t)i * 7;
		if (source_lines_find(lines, queries, QUERIES) == 0) {
			for (uint32_t i = 0; i < QUERIES; i++)
				for (uint32_t f = 0; f < queries[i].frame_count; f++) {
					const struct source_frame *frame =
						source_lines_frame(lines, queries[i].frame_at + f);
					/* Only the last one is the function itself. */
					if ((f + 1 == queries[i].frame_count) !=
						(frame->function == 0))
						__builtin_trap();
				}
		}
		source_lines_close(lines);
	}
	elf_done(&elf);
	strtab_done(&strings);
	return 0;
}
