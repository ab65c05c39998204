/*
 * Finds the separate debug file of an ELF image: by build id, debug link and name, in a store, in
 * given folders and in the places where distributions put it.
 *
 * Each file is checked before it is offered: by its build id, or else by the checksum of the debug
 * link. The first one that is taken ends the search.
 */
#ifndef SPOOR_CODE_DEBUG_FILE_H
#define SPOOR_CODE_DEBUG_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct elf;

/* A root folder in which debug files are searched: the target's, or our own. */
struct symbol_root {
	/* Opens a regular file for reading: a descriptor, or a negative errno. */
	int (*open_file)(void *context, const char *path);
	void *context;
};

/* All zero: only the file itself is read. It and its pointers must outlive its users. */
struct symbol_search {
	const struct symbol_root *roots; /* searched in this order for each path */
	size_t root_count;
	const char *const *dirs; /* --symbol-path: searched before the roots */
	size_t dir_count;
	struct symbol_root dir_root; /* opens files in `dirs` */
	/* searched first: opens a debug file by its build id; open_file NULL: there is no store */
	struct symbol_root store;
};

/* Takes ownership of fd. True: the file is used, and the search ends. */
typedef bool debug_file_taker(void *context, int fd, const struct elf *elf);

/* `path`: the image's, as the target sees it; NULL if it is unknown. True: one was taken. */
bool debug_file_find(const struct elf *image, const char *path, const struct symbol_search *search,
	debug_file_taker *take, void *context);

#endif
