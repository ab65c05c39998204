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
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strtab.h"
#include "base/vec.h"
#include "code/source_lines.h"
#include "image/elf.h"
#include "image/image_file.h"

/* Output, written in large pieces: printf() would be a tenth of the time. */
static char output[64 << 10];
static size_t output_len;

static void flush(void)
{
	if (write(STDOUT_FILENO, output, output_len) != (ssize_t)output_len)
		exit(1);
	output_len = 0;
}

static void put(const char *text, size_t len)
{
	if (len > sizeof(output) - output_len)
		flush();
	if (len > sizeof(output))
		len = sizeof(output); /* no path and no name is as long */
	memcpy(output + output_len, text, len);
	output_len += len;
}

/* "0x1a2b" and a line's end. */
static void put_address(uint64_t address)
{
	char digits[24];
	char *at = &digits[sizeof(digits)];

	*--at = '\n';
	do
		*--at = "0123456789abcdef"[address & 15];
	while (address >>= 4);
	*--at = 'x';
	*--at = '0';
	put(at, (size_t)(&digits[sizeof(digits)] - at));
}

/* ":12" and a line's end. */
static void put_line(uint32_t line)
{
	char digits[24];
	char *at = &digits[sizeof(digits)];

	*--at = '\n';
	do
		*--at = (char)('0' + line % 10);
	while (line /= 10);
	*--at = ':';
	put(at, (size_t)(&digits[sizeof(digits)] - at));
}

static void put_text(const struct strtab *strings, uint32_t text)
{
	if (text)
		put(strtab_get(strings, text), strtab_len(strings, text));
	else
		put("??", 2);
}

static void print(const struct source_lines *lines, const struct strtab *strings,
	const struct source_query *query)
{
	put_address(query->vaddr);
	if (!query->frame_count)
		put("??\n??:0\n", 8);
	for (uint32_t i = 0; i < query->frame_count; i++) {
		const struct source_frame *frame = source_lines_frame(lines, query->frame_at + i);
		put_text(strings, frame->function);
		put("\n", 1);
		put_text(strings, frame->file);
		put_line(frame->line);
	}
}

/* The next address, in hexadecimal with or without "0x". False: there is none. */
static bool read_address(const char **at, uint64_t *ret_address)
{
	uint64_t address = 0;
	unsigned digits = 0;

	for (; **at; ++*at) {
		unsigned c = (unsigned char)**at | 0x20u;
		unsigned digit = c - '0' < 10 ? c - '0' : c - 'a' < 6 ? c - 'a' + 10 : 16;
		if (c == 'x')
			continue;
		if (digit < 16) {
			address = address << 4 | digit;
			digits++;
		} else if (digits) {
			break;
		}
	}
	*ret_address = address;
	return digits != 0;
}

int main(int argc, char **argv)
{
	VEC(struct source_query) queries = { 0 };
	struct strtab strings = { 0 };
	struct source_lines *lines;
	struct image_file file;
	struct elf elf;
	static char input[1 << 20];
	const char *at = input;
	uint64_t address;
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || image_file_from_fd(&file, fd, NULL) < 0 || elf_read(&elf, &file, NULL) < 0) {
		fprintf(stderr, "usage: lines FILE <ADDRESSES\n");
		return 2;
	}
	for (size_t len = 0; len < sizeof(input) - 1;) {
		ssize_t got = read(STDIN_FILENO, input + len, sizeof(input) - 1 - len);
		if (got <= 0)
			break;
		len += (size_t)got;
	}
	while (read_address(&at, &address))
		if (!vec_add(&queries, ((struct source_query){ .vaddr = address })))
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
	flush();
	source_lines_close(lines);
	elf_done(&elf);
	strtab_done(&strings);
	vec_done(&queries);
	(void)close(fd);
	return 0;
}
