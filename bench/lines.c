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
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/strtab.h"
#include "base/vec.h"
#include "code/source_lines.h"
#include "image/elf.h"
#include "image/image_file.h"

static void print_number(uint64_t number, unsigned base)
{
	char digits[24];
	char *at = &digits[sizeof(digits) - 1];

	*at = '\0';
	do
		*--at = "0123456789abcdef"[number % base];
	while (number /= base);
	fputs_unlocked(at, stdout);
}

/* Without printf(), which would be a tenth of the time. */
static void print(const struct source_lines *lines, const struct strtab *strings,
	const struct source_query *query)
{
	fputs_unlocked("0x", stdout);
	print_number(query->vaddr, 16);
	fputs_unlocked(query->frame_count ? "\n" : "\n??\n??:0\n", stdout);
	for (uint32_t i = 0; i < query->frame_count; i++) {
		const struct source_frame *frame = source_lines_frame(lines, query->frame_at + i);
		fputs_unlocked(frame->function ? strtab_get(strings, frame->function) : "??",
			stdout);
		putc_unlocked('\n', stdout);
		fputs_unlocked(frame->file ? strtab_get(strings, frame->file) : "??", stdout);
		putc_unlocked(':', stdout);
		print_number(frame->line, 10);
		putc_unlocked('\n', stdout);
	}
}

int main(int argc, char **argv)
{
	VEC(struct source_query) queries = { 0 };
	struct strtab strings = { 0 };
	struct source_lines *lines;
	struct image_file file;
	struct elf elf;
	static char buffer[64 << 10];
	char text[64];
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || image_file_from_fd(&file, fd, NULL) < 0 || elf_read(&elf, &file, NULL) < 0) {
		fprintf(stderr, "usage: lines FILE <ADDRESSES\n");
		return 2;
	}
	(void)setvbuf(stdout, buffer, _IOFBF, sizeof(buffer)); /* only slower without */
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
