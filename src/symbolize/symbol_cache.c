/*
 * See symbol_cache.h. Files are opened relative to the folder, without following links.
 *
 * A cached file is a copy with 16 more bytes, which ELF readers ignore: SEAL_MAGIC and the CRC-64 of
 * all bytes before them, little-endian. So bytes that the disk has damaged give no wrong names.
 */
#include "symbolize/symbol_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/text.h"
#include "base/write_all.h"
#include "code/portable_pdb.h"
#include "image/image_file.h"
#include "machine/box.h"
#include "pipeline/output_limit.h"

#define SEAL_MAGIC "spoorsum"
#define SEAL_SIZE  16u
#define PIECE_SIZE (256u << 10)

#define MACHINE_STORE "/usr/lib/debug/.build-id"
#define OWN_STORE     ".build-id"
#define SUFFIX        ".debug"
#define PART_SUFFIX   ".part"
/* Downloads that were interrupted so long ago are not resumed. */
#define PART_AGE_S (7 * 24 * 3600)
/* Times of use are exact to a day, so that a search seldom writes. */
#define USE_STEP_S       (24 * 3600)
#define PART_SUFFIX_SIZE 24u
/* Room for "/usr/lib/debug/.build-id/ab/cdef.debug". */
#define STORE_PATH_SIZE (BUILD_ID_TEXT_SIZE + 64u)

bool build_id_is_valid(const char *text)
{
	size_t len = strlen(text);

	return len >= 8 && len <= 2 * ELF_BUILD_ID_MAX && len % 2 == 0 &&
	       strspn(text, "0123456789abcdef") == len;
}

int symbol_cache_open(struct symbol_cache *cache, bool make, struct diag *diag)
{
	const char *chosen = secure_getenv("SPOOR_SYMBOL_CACHE");
	cleanup(closep) int parent = -1;
	size_t len;

	cache->fd = -1;
	cache->path[0] = 0;
	if (chosen && *chosen) {
		if (*chosen != '/' || strlen(chosen) >= sizeof(cache->path))
			return diag_set(diag, -EINVAL,
				"SPOOR_SYMBOL_CACHE must be an absolute path");
		memcpy(cache->path, chosen, strlen(chosen) + 1);
		cache->fd = box_open_own_folder(AT_FDCWD, cache->path, make);
	} else {
		int result =
			box_open_own_cache(make, cache->path, sizeof(cache->path), &parent, diag);
		if (result < 0)
			return result;
		len = strlen(cache->path);
		if (snprintf(cache->path + len, sizeof(cache->path) - len, "/symbols") < 8)
			return diag_set(diag, -ENAMETOOLONG, "no cache: its path is too long");
		cache->fd = box_open_own_folder(parent, "symbols", make);
	}
	if (cache->fd >= 0)
		return 0;
	int error = cache->fd;
	cache->fd = -1;
	return diag_set(diag, error, "the symbol cache '%s' cannot be trusted or made: %m",
		cache->path);
}

void symbol_cache_close(struct symbol_cache *cache)
{
	closep(&cache->fd);
	cache->fd = -1;
}

/* A portable PDB: its GUID is its key. */
static int check_pdb(const struct image_file *file, const char *build_id, char *ret_build_id,
	struct diag *diag)
{
	cleanup(freep) uint8_t *data = NULL;
	struct portable_pdb pdb;
	int result = image_file_load(file, 0, file->size_bytes, PORTABLE_PDB_MAX, &data);

	if (result == 0)
		result = portable_pdb_read(&pdb, data, (size_t)file->size_bytes);
	if (result < 0)
		return diag_set(diag, result, "it is no portable PDB: %m");
	ret_build_id[text_put_hex(ret_build_id, pdb.id, sizeof(pdb.id))] = '\0';
	if (build_id && strcmp(build_id, ret_build_id) != 0)
		return diag_set(diag, -EBADMSG, "it has the GUID %s, not %s", ret_build_id,
			build_id);
	return 0;
}

static bool is_pdb(const struct image_file *file)
{
	char magic[4];

	return image_file_read(file, 0, magic, sizeof(magic)) == 0 &&
	       memcmp(magic, "BSJB", sizeof(magic)) == 0;
}

int symbol_cache_check(int fd, const char *build_id, char *ret_build_id, struct diag *diag)
{
	struct image_file file;
	struct elf elf;
	int result = image_file_from_fd(&file, fd, diag);

	if (result < 0)
		return result;
	if (is_pdb(&file))
		return check_pdb(&file, build_id, ret_build_id, diag);
	result = elf_read(&elf, &file, diag);
	if (result == 0) {
		const struct elf_section *symbols = elf_find_section(&elf, ".symtab");
		elf_build_id_text(&elf, ret_build_id);
		if (!*ret_build_id)
			result = diag_set(diag, -EBADMSG, "it has no build id");
		else if (build_id && strcmp(build_id, ret_build_id) != 0)
			result = diag_set(diag, -EBADMSG, "it has the build id %s, not %s",
				ret_build_id, build_id);
		else if (!build_id_is_valid(ret_build_id))
			result = diag_set(diag, -EBADMSG, "its build id %s is too short",
				ret_build_id);
		else if (!symbols || !symbols->size || symbols->type != ELF_SECTION_SYMTAB)
			result = diag_set(diag, -EBADMSG, "it has no symbol table");
	}
	elf_done(&elf);
	return result;
}

static void store_path(char path[STORE_PATH_SIZE], const char *store, const char *build_id,
	const char *suffix)
{
	(void)snprintf(path, STORE_PATH_SIZE, "%s/%.2s/%s%s", store, build_id, build_id + 2,
		suffix); /* fits */
}

static void note_use(int fd)
{
	const struct timespec now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	struct stat st;

	/* Without the right to change it, the file looks older than it is. */
	if (fstat(fd, &st) == 0 && st.st_mtime + USE_STEP_S < time(NULL))
		(void)futimens(fd, now);
}

/* The CRC-64 of the first `size` bytes. */
static int sum_file(const struct image_file *file, uint64_t size, uint64_t *ret_sum)
{
	cleanup(freep) uint8_t *buffer = malloc(PIECE_SIZE);
	uint64_t sum = 0;

	if (!buffer)
		return -ENOMEM;
	for (uint64_t at = 0; at < size;) {
		size_t piece = size - at < PIECE_SIZE ? (size_t)(size - at) : PIECE_SIZE;
		int result = image_file_read(file, at, buffer, piece);
		if (result < 0)
			return result;
		sum = lzma_crc64(buffer, piece, sum);
		at += piece;
	}
	*ret_sum = sum;
	return 0;
}

/* 0: the file is as symbol_cache_add() wrote it. */
static int check_seal(int fd)
{
	struct image_file file;
	uint8_t seal[SEAL_SIZE];
	uint64_t sum = 0;
	int result = image_file_from_fd(&file, fd, NULL);

	if (result == 0 && file.size_bytes < SEAL_SIZE)
		result = -EBADMSG;
	if (result == 0)
		result = image_file_read(&file, file.size_bytes - SEAL_SIZE, seal, SEAL_SIZE);
	if (result == 0 && memcmp(seal, SEAL_MAGIC, 8) != 0)
		result = -EBADMSG;
	if (result == 0)
		result = sum_file(&file, file.size_bytes - SEAL_SIZE, &sum);
	struct cursor c = cursor_of(seal + 8, 8);
	return result == 0 && cursor_u64(&c) != sum ? -EBADMSG : result;
}

/* `sealed`: only a file that symbol_cache_add() wrote. */
static int open_checked(int folder, const char *path, bool sealed, const char *build_id,
	int *ret_fd)
{
	char found[BUILD_ID_TEXT_SIZE];
	cleanup(closep) int fd = openat(folder, path,
		O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (sealed ? O_NOFOLLOW : 0));

	if (fd < 0)
		return -ENOENT;
	if (symbol_cache_check(fd, build_id, found, NULL) < 0 || (sealed && check_seal(fd) < 0))
		return -EBADMSG;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int symbol_cache_find(const struct symbol_cache *cache, const char *build_id, int *ret_fd)
{
	char path[STORE_PATH_SIZE];
	int own = -ENOENT;

	if (!build_id_is_valid(build_id))
		return -ENOENT;
	if (cache->fd >= 0) {
		store_path(path, OWN_STORE, build_id, SUFFIX);
		own = open_checked(cache->fd, path, true, build_id, ret_fd);
		if (own == 0) {
			note_use(*ret_fd);
			return 0;
		}
	}
	store_path(path, MACHINE_STORE, build_id, SUFFIX);
	int machine = open_checked(AT_FDCWD, path, false, build_id, ret_fd);
	return machine == -ENOENT ? own : machine;
}

bool symbol_cache_has(const struct symbol_cache *cache, const char *build_id)
{
	char path[STORE_PATH_SIZE];

	if (!build_id_is_valid(build_id))
		return false;
	store_path(path, OWN_STORE, build_id, SUFFIX);
	if (cache->fd >= 0 && faccessat(cache->fd, path, R_OK, 0) == 0)
		return true;
	store_path(path, MACHINE_STORE, build_id, SUFFIX);
	return access(path, R_OK) == 0;
}

/* Makes the folder of a build id; a descriptor, or a negative errno. */
static int open_folder(const struct symbol_cache *cache, const char *build_id)
{
	char pair[3] = { build_id[0], build_id[1] };

	if (cache->fd < 0)
		return -ENOENT;
	cleanup(closep) int store = box_open_own_folder(cache->fd, OWN_STORE, true);
	return store < 0 ? store : box_open_own_folder(store, pair, true);
}

static bool is_zero(const uint8_t *data, size_t size)
{
	return !size || (!data[0] && memcmp(data, data + 1, size - 1) == 0);
}

/* The bytes of the file on its disk: fewer than its size if it has holes. */
static uint64_t real_bytes(const struct stat *st)
{
	uint64_t on_disk = (uint64_t)st->st_blocks * 512;

	return on_disk < (uint64_t)st->st_size ? on_disk : (uint64_t)st->st_size;
}

/* Copies the whole file, which may be sealed already, and seals it. Holes stay holes. */
static int copy_file(int from, int to)
{
	cleanup(freep) uint8_t *buffer = malloc(PIECE_SIZE);
	struct image_file file;
	uint64_t sum = 0;
	int result = buffer ? image_file_from_fd(&file, from, NULL) : -ENOMEM;

	if (result == 0 && file.size_bytes > SYMBOL_FILE_SIZE_MAX)
		result = -EFBIG;
	for (uint64_t at = 0; result == 0 && at < file.size_bytes;) {
		uint64_t left = file.size_bytes - at;
		size_t piece = left < PIECE_SIZE ? (size_t)left : PIECE_SIZE;
		result = image_file_read(&file, at, buffer, piece);
		if (result == 0 && !is_zero(buffer, piece))
			result = write_all(to, buffer, piece);
		else if (result == 0 && lseek(to, (off_t)piece, SEEK_CUR) < 0)
			result = -errno;
		if (result == 0)
			sum = lzma_crc64(buffer, piece, sum);
		at += piece;
	}
	if (result < 0)
		return result;
	struct bytes seal = { .data = buffer, .capacity = PIECE_SIZE };
	bytes_text(&seal, SEAL_MAGIC);
	bytes_u64(&seal, sum);
	return write_all(to, buffer, SEAL_SIZE);
}

/* Whether the folder's disk has room for a copy of the file. */
static int check_room(int folder, int fd, struct diag *diag)
{
	uint64_t left;
	uint64_t reserve;
	struct stat st;

	if (fstat(fd, &st) < 0 || !output_limit_read_disk(folder, &left, &reserve) ||
		left >= reserve + real_bytes(&st))
		return 0;
	return diag_set(diag, -ENOSPC,
		"the disk of the symbol cache has no room for %s: of %s that are left, %s stay free",
		TEXT_SIZE(real_bytes(&st)), TEXT_SIZE(left), TEXT_SIZE(reserve));
}

static int put_copy(int folder, int fd, const char *build_id, char *ret_build_id, struct diag *diag)
{
	char part[64];
	char name[STORE_PATH_SIZE];

	text_set(part, "copy.%ld" PART_SUFFIX, (long)getpid());
	text_set(name, "%s%s", build_id + 2, SUFFIX);
	(void)unlinkat(folder, part, 0); /* of an ended process with our id */
	cleanup(closep) int copy =
		openat(folder, part, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (copy < 0)
		return diag_set(diag, -errno, "cannot write into the symbol cache: %m");
	int result = copy_file(fd, copy);
	/* The original may change while it is copied. */
	if (result == 0)
		result = symbol_cache_check(copy, build_id, ret_build_id, diag);
	if (result == 0 && renameat(folder, part, folder, name) < 0)
		result = -errno;
	if (result < 0) {
		(void)unlinkat(folder, part, 0); /* on failure it remains and is never used */
		diag_set(diag, result, "cannot write into the symbol cache: %m");
	}
	return result;
}

int symbol_cache_add(const struct symbol_cache *cache, int fd, const char *build_id,
	char *ret_build_id, struct diag *diag)
{
	char found[BUILD_ID_TEXT_SIZE];
	int result = symbol_cache_check(fd, build_id, found, diag);

	if (result < 0)
		return result;
	cleanup(closep) int folder = open_folder(cache, found);
	if (folder < 0)
		return diag_set(diag, folder, "cannot write into the symbol cache '%s': %m",
			cache->path);
	result = check_room(folder, fd, diag);
	return result < 0 ? result : put_copy(folder, fd, found, ret_build_id, diag);
}

/* Downloads from two addresses are two files: the begin of one is no begin of the other. */
static void part_suffix(const char *url, char ret_suffix[PART_SUFFIX_SIZE])
{
	(void)snprintf(ret_suffix, PART_SUFFIX_SIZE, ".%08x" PART_SUFFIX,
		(unsigned)lzma_crc32((const uint8_t *)url, strlen(url), 0)); /* fits */
}

int symbol_cache_open_download(const struct symbol_cache *cache, const char *build_id,
	const char *url, int *ret_fd, struct diag *diag)
{
	char suffix[PART_SUFFIX_SIZE];
	char name[STORE_PATH_SIZE];

	if (!build_id_is_valid(build_id))
		return diag_set(diag, -EINVAL, "'%s' is no build id", build_id);
	cleanup(closep) int folder = open_folder(cache, build_id);
	if (folder < 0)
		return diag_set(diag, folder, "cannot write into the symbol cache '%s': %m",
			cache->path);
	part_suffix(url, suffix);
	text_set(name, "%s%s", build_id + 2, suffix);
	cleanup(closep) int fd =
		openat(folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return diag_set(diag, -errno, "cannot write into the symbol cache '%s': %m",
			cache->path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return diag_set(diag, -EBUSY, "another process is downloading it");
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void symbol_cache_end_download(const struct symbol_cache *cache, const char *build_id,
	const char *url)
{
	char suffix[PART_SUFFIX_SIZE];
	char path[STORE_PATH_SIZE];

	part_suffix(url, suffix);
	store_path(path, OWN_STORE, build_id, suffix);
	(void)unlinkat(cache->fd, path, 0); /* on failure a later download resumes it */
}

static int compare_entries(const void *left, const void *right)
{
	const struct symbol_cache_entry *a = left;
	const struct symbol_cache_entry *b = right;

	if (a->used_s != b->used_s)
		return a->used_s < b->used_s ? -1 : 1;
	return strcmp(a->build_id, b->build_id);
}

static int read_folder(int store, const char *pair, struct symbol_cache_list *list)
{
	int fd = openat(store, pair, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *files = fd < 0 ? NULL : fdopendir(fd);
	int result = 0;

	if (!files) {
		closep(&fd);
		return 0;
	}
	for (const struct dirent *file; result == 0 && (file = readdir(files));) {
		struct symbol_cache_entry entry = { 0 };
		struct stat st;
		size_t len = strlen(file->d_name);
		size_t suffix = strlen(SUFFIX);
		if (text_ends_with(file->d_name, PART_SUFFIX) &&
			fstatat(dirfd(files), file->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			st.st_mtime + PART_AGE_S < time(NULL))
			(void)unlinkat(dirfd(files), file->d_name,
				0); /* the next call tries again */
		if (!text_ends_with(file->d_name, SUFFIX) ||
			len - suffix + 2 >= sizeof(entry.build_id) ||
			fstatat(dirfd(files), file->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		text_set(entry.build_id, "%.2s%.*s", pair, (int)(len - suffix), file->d_name);
		if (!build_id_is_valid(entry.build_id))
			continue;
		entry.size_bytes = real_bytes(&st);
		entry.used_s = st.st_mtime;
		list->size_bytes += entry.size_bytes;
		result = vec_add(&list->entries, entry) ? 0 : -ENOMEM;
	}
	(void)closedir(files); /* read only */
	return result;
}

int symbol_cache_read(const struct symbol_cache *cache, struct symbol_cache_list *ret_list,
	struct diag *diag)
{
	int fd = openat(cache->fd, OWN_STORE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *store = fd < 0 ? NULL : fdopendir(fd);
	int result = 0;

	*ret_list = (struct symbol_cache_list){ 0 };
	if (!store) {
		int error = errno;
		closep(&fd);
		return error == ENOENT
			       ? 0
			       : diag_set(diag, -error, "cannot read the symbol cache '%s': %m",
					 cache->path);
	}
	for (const struct dirent *pair; result == 0 && (pair = readdir(store));)
		if (strlen(pair->d_name) == 2 && pair->d_name[0] != '.')
			result = read_folder(dirfd(store), pair->d_name, ret_list);
	(void)closedir(store); /* read only */
	if (ret_list->entries.count)
		qsort(ret_list->entries.items, ret_list->entries.count,
			sizeof(ret_list->entries.items[0]), compare_entries);
	return result < 0 ? diag_set(diag, result, "cannot read the symbol cache: %m") : 0;
}

int symbol_cache_remove(const struct symbol_cache *cache, const char *build_id)
{
	char path[STORE_PATH_SIZE];

	store_path(path, OWN_STORE, build_id, SUFFIX);
	return unlinkat(cache->fd, path, 0) < 0 ? -errno : 0;
}
