/*
 * The function names of one ELF image: of the file, of the table packed inside it, and of its debug
 * file. Not thread-safe.
 *
 *   struct symbol_file *file;
 *   symbol_file_open(fd, "/usr/lib/x86_64-linux-gnu/libc.so.6", &search, &file, diag);    takes fd over, also when it fails
 *   if (symbol_file_find_offset(file, address - mapping_begin + mapping_file_offset, &hit)) ...
 *   hit.name ... symbol_file_close(file);
 *
 * Opening reads the headers only; the tables are read at the first lookup. The symbol must cover
 * the address; the nearest one is not enough. Of several, the choice is deterministic: with a size,
 * exported before local, fewer leading underscores, global before weak, then by name. A version
 * ("@@GLIBC_2.2.5") is dropped. Names are mangled as in the file (code/demangle.h).
 */
#ifndef SPOOR_CODE_SYMBOL_FILE_H
#define SPOOR_CODE_SYMBOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct elf;
struct symbol_file;
struct symbol_search;

#define SYMBOL_NAME_MAX 8192u /* longer names are truncated */

/* vaddr: addresses in the file's own numbering; offset: the position of that byte in the file. */
struct symbol_hit {
	uint64_t begin_vaddr;
	uint64_t end_vaddr; /* exclusive */
	/* offset + (end - begin) is the end; 0: by address, in a debug file without the code */
	uint64_t begin_offset;
	/* NUL-terminated; valid until the next call on this symbol_file */
	const char *name;
	size_t name_len;
};

enum symbol_origin {
	SYMBOL_ORIGIN_NONE,   /* no table, or none read yet */
	SYMBOL_ORIGIN_DYNSYM, /* exports only: most functions have no name */
	SYMBOL_ORIGIN_MINI,   /* .gnu_debugdata */
	SYMBOL_ORIGIN_GO,     /* .gopclntab */
	SYMBOL_ORIGIN_SYMTAB,
	SYMBOL_ORIGIN_DEBUG_FILE,
};

/* `path` as the target sees it: a debug file is searched beside it. NULL if it is unknown. */
int symbol_file_open(int fd, const char *path, const struct symbol_search *search,
	struct symbol_file **ret_file, struct diag *diag);

/* Opens a copy of memory: the vdso. */
int symbol_file_open_memory(const void *data, size_t size, struct symbol_file **ret_file,
	struct diag *diag);

/* True and *ret_hit if a function covers the address. Tables that cannot be read count as empty. */
bool symbol_file_find_offset(struct symbol_file *file, uint64_t offset, struct symbol_hit *ret_hit);
bool symbol_file_find_vaddr(struct symbol_file *file, uint64_t vaddr, struct symbol_hit *ret_hit);

/*
 * For an address that no symbol covers: the bounds of its function, from the unwind table, under
 * the name that code/function_bounds.h makes. False if the image does not list them, or if a symbol
 * that is too short begins there: one begin has one name.
 */
bool symbol_file_find_bounds(struct symbol_file *file, uint64_t offset, struct symbol_hit *ret_hit);

/* Build id, debug link, first executable segment. */
const struct elf *symbol_file_elf(const struct symbol_file *file);

/* The best table that was used, after the first lookup. */
enum symbol_origin symbol_file_origin(const struct symbol_file *file);

/* The memory that the file owns. */
size_t symbol_file_size_bytes(const struct symbol_file *file);

/* NULL is harmless. */
void symbol_file_close(struct symbol_file *file);

#endif
