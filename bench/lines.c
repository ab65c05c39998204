/*
 * lines FILE: reads addresses in hexadecimal, one a line, and prints for each the lines that the
 * DWARF of FILE has, innermost function first, as `addr2line -i` does:
 *
 *   0x1a2b
 *   inlined function
 *   /src/a.c:12
 *   ??                   the function that has the code
 *   /src/a.c:40
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/strtab.h"
#include "base/vec.h"
#include "code/source_lines.h"
#include "image/elf.h"
#include "image/image_file.h"

static void print(const struct source_lines *lines, const struct strtab *strings,
	const struct source_query *query)
{
	printf("0x%" PRIx64 "\n", query->vaddr);
	if (!query->frame_count)
		printf("??\n??:0\n");
	for (uint32_t i = 0; i < query->frame_count; i++) {
		const struct source_frame *frame = source_lines_frame(lines, query->frame_at + i);
		printf("%s\n%s:%u\n", frame->function ? strtab_get(strings, frame->function) : "??",
			frame->file ? strtab_get(strings, frame->file) : "??", frame->line);
	}
}

int main(int argc, char **argv)
{
	VEC(struct source_query) queries = { 0 };
	struct strtab strings = { 0 };
	struct source_lines *lines;
	struct image_file file;
	struct elf elf;
	char text[64];
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || image_file_from_fd(&file, fd, NULL) < 0 || elf_read(&elf, &file, NULL) < 0) {
		fprintf(stderr, "usage: lines FILE <ADDRESSES\n");
		return 2;
	}
	while (fgets(text, sizeof(text), stdin))
		if (!vec_add(&queries,
			    ((struct source_query){ .vaddr = strtoull(text, NULL, 16) })))
			return 1;
	int error = source_lines_open(&file, &elf, &strings, &lines);
	if (error == 0)
		error = source_lines_find(lines, queries.items, queries.count);
	if (error < 0) {
		fprintf(stderr, "lines: no lines in '%s' (error %d)\n", argv[1], -error);
		return 1;
	}
	vec_each(query, &queries)
		print(lines, &strings, query);
	source_lines_close(lines);
	elf_done(&elf);
	strtab_done(&strings);
	vec_done(&queries);
	(void)close(fd);
	return 0;
}
