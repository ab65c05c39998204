/* See source_text.h. A path comes from debug information, so only regular files are read. */
#include "report/source_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"

static int read_file(struct source_text *text, const char *path)
{
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SOURCE_SIZE_MAX)
		return -ENOENT;
	cleanup(freep) uint8_t *data = malloc((size_t)st.st_size + 1);
	size_t size = 0;
	if (!data)
		return -ENOMEM;
	while (size < (size_t)st.st_size) {
		ssize_t got = read(fd, data + size, (size_t)st.st_size - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break; /* it has become shorter */
		size += (size_t)got;
	}
	text->changed_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	text->data = TAKE(data);
	text->size = size;
	return 0;
}

static int find_below(struct source_text *text, const char *folder, const char *path)
{
	int result = -ENOENT;

	for (const char *rest = path; rest && result == -ENOENT;) {
		cleanup(bytes_done) struct bytes full = { 0 };
		bytes_printf(&full, "%s/%s", folder, rest);
		result = full.failed ? -ENOMEM : read_file(text, bytes_z(&full));
		const char *slash = strchr(rest, '/');
		rest = slash ? slash + 1 : NULL;
	}
	return result;
}

int source_text_read(struct source_text *text, const char *path, const char *const *folders,
	uint32_t folder_count)
{
	int result = -ENOENT;

	*text = (struct source_text){ 0 };
	for (uint32_t i = 0; i < folder_count && result == -ENOENT; i++)
		result = find_below(text, folders[i], path);
	if (result == -ENOENT && *path == '/')
		result = read_file(text, path);
	if (result < 0)
		return result;
	if (!vec_add(&text->begins, 0))
		return -ENOMEM;
	for (size_t at = 0; at < text->size; at++)
		if (text->data[at] == '\n' && at + 1 < text->size &&
			!vec_add(&text->begins, (uint32_t)at + 1))
			return -ENOMEM;
	return 0;
}

const char *source_text_line(const struct source_text *text, uint32_t line, size_t *ret_len)
{
	if (!text->data || !line || line > text->begins.count)
		return NULL;
	size_t begin = text->begins.items[line - 1];
	size_t end = line < text->begins.count ? text->begins.items[line] : text->size;
	while (end > begin && (text->data[end - 1] == '\n' || text->data[end - 1] == '\r'))
		end--;
	*ret_len = end - begin;
	return (const char *)text->data + begin;
}

void source_text_done(struct source_text *text)
{
	free(text->data);
	vec_done(&text->begins);
	*text = (struct source_text){ 0 };
}
