/* See debug_file.h. */
#include "code/debug_file.h"

#include <lzma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/elf.h"
#include "image/image_file.h"

/* the checksum covers the whole file, which may be sparse */
#define CRC_FILE_MAX (UINT64_C(256) << 20)
#define PATH_LEN_MAX 4096u

struct debug_file_search {
	const struct elf *image;
	const char *path; /* of the image; NULL unknown */
	const struct symbol_search *search;
	debug_file_taker *take;
	void *context;
};

/* The checksum of the whole debug file, as in .gnu_debuglink. */
static bool has_crc(const struct image_file *file, uint32_t crc)
{
	if (file->size_bytes > CRC_FILE_MAX)
		return false;

	static const size_t piece = 256u << 10;
	cleanup(freep) uint8_t *buffer = malloc(piece);
	uint32_t sum = 0;

	for (uint64_t at = 0; buffer && at < file->size_bytes;) {
		uint64_t left = file->size_bytes - at;
		size_t size = left < piece ? (size_t)left : piece;
		if (image_file_read(file, at, buffer, size) < 0)
			return false;
		sum = lzma_crc32(buffer, size, sum);
		at += size;
	}
	return buffer && sum == crc;
}

static bool is_debug_file_of(const struct elf *image, const struct elf *debug,
	const struct image_file *bytes)
{
	if (debug->machine != image->machine || debug->is_64 != image->is_64)
		return false;
	if (image->build_id_len && debug->build_id_len)
		return image->build_id_len == debug->build_id_len &&
		       !memcmp(image->build_id, debug->build_id, debug->build_id_len);
	return *image->debug_link && has_crc(bytes, image->debug_link_crc);
}

/* Takes ownership of fd. */
static bool offer(const struct debug_file_search *finding, int opened)
{
	cleanup(closep) int fd = opened;
	struct image_file file;
	struct elf elf;

	if (image_file_from_fd(&file, fd, NULL) < 0 || elf_read(&elf, &file, NULL) < 0)
		return false;
	bool taken = is_debug_file_of(finding->image, &elf, &file) &&
		     finding->take(finding->context, TAKE_FD(fd), &elf);
	elf_done(&elf);
	return taken;
}

static bool try_path(const struct debug_file_search *finding, const char *path)
{
	for (size_t i = 0; i < finding->search->root_count; i++) {
		const struct symbol_root *root = &finding->search->roots[i];
		int fd = root->open_file(root->context, path);
		if (fd >= 0 && offer(finding, fd))
			return true;
	}
	return false;
}

/* Formats a path; false if it does not fit. */
static bool make_path(char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool make_path(char *path, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	int len = vsnprintf(path, PATH_LEN_MAX, format, args);
	va_end(args);
	return len >= 0 && (size_t)len < PATH_LEN_MAX;
}

static bool try_here(const struct debug_file_search *finding, const char *path)
{
	const struct symbol_root *root = &finding->search->dir_root;
	int fd = root->open_file(root->context, path);

	return fd >= 0 && offer(finding, fd);
}

static bool try_dirs(const struct debug_file_search *finding, const char *build_id)
{
	char path[PATH_LEN_MAX];
	const char *slash = finding->path ? strrchr(finding->path, '/') : NULL;
	const char *base = slash ? slash + 1 : finding->path;

	for (size_t i = 0; i < finding->search->dir_count; i++) {
		const char *dir = finding->search->dirs[i];
		if (strlen(build_id) > 2 &&
			((make_path(path, "%s/.build-id/%.2s/%s.debug", dir, build_id,
				  build_id + 2) &&
				 try_here(finding, path)) ||
				(make_path(path, "%s/%.2s/%s.debug", dir, build_id, build_id + 2) &&
					try_here(finding, path))))
			return true;
		/* A debug link with a slash would leave the searched folders. */
		if (*finding->image->debug_link && !strchr(finding->image->debug_link, '/') &&
			make_path(path, "%s/%s", dir, finding->image->debug_link) &&
			try_here(finding, path))
			return true;
		if (base && *base &&
			((make_path(path, "%s/%s.debug", dir, base) && try_here(finding, path)) ||
				(make_path(path, "%s/%s", dir, base) && try_here(finding, path))))
			return true;
	}
	return false;
}

bool debug_file_find(const struct elf *image, const char *path_of_image,
	const struct symbol_search *search, debug_file_taker *take, void *context)
{
	const struct debug_file_search finding_of = { image, path_of_image, search, take, context };
	const struct debug_file_search *finding = &finding_of;
	char build_id[2 * ELF_BUILD_ID_MAX + 1];
	char path[PATH_LEN_MAX];

	elf_build_id_text(finding->image, build_id);
	const struct symbol_root *store = &finding->search->store;
	int fd = store->open_file && *build_id ? store->open_file(store->context, build_id) : -1;
	if (fd >= 0 && offer(finding, fd))
		return true;
	if (try_dirs(finding, build_id))
		return true;
	if (strlen(build_id) > 2 &&
		make_path(path, "/usr/lib/debug/.build-id/%.2s/%s.debug", build_id, build_id + 2) &&
		try_path(finding, path))
		return true;
	const char *slash = finding->path ? strrchr(finding->path, '/') : NULL;
	if (!*finding->image->debug_link || strchr(finding->image->debug_link, '/') || !slash)
		return false;
	const char *link = finding->image->debug_link;
	int folder_len = (int)(slash - finding->path);
	return (make_path(path, "%.*s/%s", folder_len, finding->path, link) &&
		       try_path(finding, path)) ||
	       (make_path(path, "%.*s/.debug/%s", folder_len, finding->path, link) &&
		       try_path(finding, path)) ||
	       (make_path(path, "/usr/lib/debug%.*s/%s", folder_len, finding->path, link) &&
		       try_path(finding, path));
}
