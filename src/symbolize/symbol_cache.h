/*
 * The user's cache of symbol files, by build id, and the machine's own store of them. Portable PDBs are
 * in it too: the hexadecimal digits of their GUID, in the order of the file, are the build id.
 *
 *   struct symbol_cache cache;
 *   symbol_cache_open(&cache, true, &diag);
 *   symbol_cache_find(&cache, "0a1b...", &fd)        a file of exactly that build id
 *   symbol_cache_add(&cache, fd, NULL, text, &diag)   copies a checked file into the cache
 *   symbol_cache_close(&cache);
 *
 * The folder is SPOOR_SYMBOL_CACHE, else `symbols` in box_open_own_cache(). Inside, a file is
 * .build-id/ab/cdef....debug, as in /usr/lib/debug, so that debuggers can use it too. Every file is
 * checked by the build id in it, each time it is opened: a wrong name is worse than none. A file
 * appears whole or not at all. Its modification time is its last use. Not thread-safe.
 */
#ifndef SPOOR_SYMBOLIZE_SYMBOL_CACHE_H
#define SPOOR_SYMBOLIZE_SYMBOL_CACHE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "image/elf.h"

struct diag;

/* Room for a build id as text. */
#define BUILD_ID_TEXT_SIZE (2 * ELF_BUILD_ID_MAX + 1)

/* A larger file is not plausible as a symbol file. */
#define SYMBOL_FILE_SIZE_MAX (UINT64_C(4) << 30)

struct symbol_cache {
	int fd; /* -1: no folder, so that only the machine's store is searched */
	char path[PATH_MAX];
};

struct symbol_cache_entry {
	char build_id[BUILD_ID_TEXT_SIZE];
	uint64_t size_bytes;
	int64_t used_s; /* UTC */
};

struct symbol_cache_list {
	VEC(struct symbol_cache_entry) entries; /* least recently used first */
	uint64_t size_bytes;
};

/* Lower-case hexadecimal digits in pairs, 4 to ELF_BUILD_ID_MAX bytes: safe in a path and a URL. */
bool build_id_is_valid(const char *text);

/*
 * `make`: makes the folder if there is none. On failure the cache has no folder, and can still be
 * searched and closed.
 */
int symbol_cache_open(struct symbol_cache *cache, bool make, struct diag *diag);
void symbol_cache_close(struct symbol_cache *cache);

/*
 * Opens the symbol file of a build id, in the cache or in /usr/lib/debug/.build-id. The caller
 * closes *ret_fd. -ENOENT: there is none. -EBADMSG: there is one with another content.
 */
int symbol_cache_find(const struct symbol_cache *cache, const char *build_id, int *ret_fd);

/* Whether symbol_cache_find() has a file to check. */
bool symbol_cache_has(const struct symbol_cache *cache, const char *build_id);

/*
 * Copies an ELF file with a symbol table, or a portable PDB, into the cache. `build_id` NULL: whichever it has;
 * ret_build_id has BUILD_ID_TEXT_SIZE bytes. -EBADMSG: it is no such file, or has another build id.
 */
int symbol_cache_add(const struct symbol_cache *cache, int fd, const char *build_id,
	char *ret_build_id, struct diag *diag);

/* Whether the file can be used for the build id (NULL: any). 0, or as symbol_cache_add(). */
int symbol_cache_check(int fd, const char *build_id, char *ret_build_id, struct diag *diag);

int symbol_cache_read(const struct symbol_cache *cache, struct symbol_cache_list *ret_list,
	struct diag *diag);
int symbol_cache_remove(const struct symbol_cache *cache, const char *build_id);

/*
 * A file for a download of this build id from an address, which stays until
 * symbol_cache_end_download(), so that the next attempt resumes it. Locked: -EBUSY if another
 * process downloads it.
 */
int symbol_cache_open_download(const struct symbol_cache *cache, const char *build_id,
	const char *url, int *ret_fd, struct diag *diag);
void symbol_cache_end_download(const struct symbol_cache *cache, const char *build_id,
	const char *url);

#endif
