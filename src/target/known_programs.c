/* See known_programs.h. */
#include "target/known_programs.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "image/elf.h"
#include "image/image_file.h"

#define EXPORTS_MAX (4u << 20)

/*
 * The kind of .NET that a name in an ELF file's string table proves; each name ends with a NUL.
 * DOTNET_NOT: no name does.
 */
static enum dotnet_kind kind_of_names(const char *names, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t len = strnlen(names + at, size - at);
		enum dotnet_kind kind =
			at + len < size ? dotnet_kind_of_export(names + at) : DOTNET_NOT;
		if (kind != DOTNET_NOT)
			return kind;
		at += len + 1;
	}
	return DOTNET_NOT;
}

static void read_program(int fd, struct known_program *program)
{
	struct image_file file;
	struct elf elf = { 0 };
	cleanup(freep) uint8_t *names = NULL;

	if (image_file_from_fd(&file, fd, NULL) < 0 || elf_read(&elf, &file, NULL) < 0) {
		elf_done(&elf);
		return;
	}
	program->machine = elf.machine;
	const struct elf_section *section = elf_find_section(&elf, ".dynstr");

	if (section &&
		image_file_load(&file, section->offset, section->size, EXPORTS_MAX, &names) == 0)
		program->kind = kind_of_names((const char *)names, (size_t)section->size);
	elf_done(&elf);
}

const struct known_program *known_program_find(struct known_programs *programs, uint32_t pid)
{
	char path[64];
	struct stat st;

	text_set(path, "/proc/%u/exe", pid);
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, &st) < 0)
		return NULL;
	for (uint32_t i = 0; i < programs->list.count; i++)
		if (programs->list.items[i].device == st.st_dev &&
			programs->list.items[i].inode == st.st_ino)
			return &programs->list.items[i];
	struct known_program *program = vec_push(&programs->list);

	if (!program)
		return NULL;
	program->device = st.st_dev;
	program->inode = st.st_ino;
	read_program(fd, program);
	return program;
}

void known_programs_done(struct known_programs *programs)
{
	vec_done(&programs->list);
}
