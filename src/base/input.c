/* See input.h. */
#include "base/input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"

int input_from_fd(struct input *in, int fd, const char *name)
{
	struct stat status;

	*in = (struct input){ .fd = fd, .name = strdup(name) };
	if (!in->name) {
		closep(&fd);
		in->fd = -1;
		return -ENOMEM;
	}
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
		in->size_bytes = (uint64_t)status.st_size;
	return 0;
}

int input_open(struct input *in, const char *path, struct diag *diag)
{
	if (strcmp(path, "-") == 0) {
		int copy = dup(STDIN_FILENO);
		if (copy < 0)
			return diag_set(diag, -errno, "cannot read standard input: %m");
		return input_from_fd(in, copy, "standard input");
	}
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return diag_set(diag, -errno, "cannot open '%s': %m", path);
	struct stat status;

	if (fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
		closep(&fd);
		return diag_set(diag, -EISDIR, "cannot read '%s': %m", path);
	}
	return input_from_fd(in, fd, path);
}

void input_from_memory(struct input *in, const void *data, size_t size)
{
	*in = (struct input){ .fd = -1, .memory = data, .memory_size = size, .size_bytes = size };
}

ssize_t input_read(struct input *in, void *buffer, size_t size, struct diag *diag)
{
	if (in->fd < 0) {
		size_t left = in->memory_size - (size_t)in->offset;
#ifdef SPOOR_HOSTILE
		size = size ? 1 : 0;
#endif
		if (size > left)
			size = left;
		if (size)
			memcpy(buffer, in->memory + in->offset, size);
		in->offset += size;
		return (ssize_t)size;
	}
	ssize_t got;

	do
		got = read(in->fd, buffer, size);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return diag_set(diag, -errno, "cannot read '%s' at offset %llu: %m", in->name,
			(unsigned long long)in->offset);
	in->offset += (uint64_t)got;
	return got;
}

int input_read_all(struct input *in, size_t limit, uint8_t **ret_data, size_t *ret_size,
	struct diag *diag)
{
	size_t capacity = in->size_bytes && in->size_bytes < limit ? (size_t)in->size_bytes + 1 : 4096;
	cleanup(freep) uint8_t *data = malloc(capacity + 1);
	size_t len = 0;

	if (!data)
		return -ENOMEM;
	for (;;) {
		if (len == capacity) {
			uint8_t *grown = realloc(data, capacity * 2 + 1);
			if (!grown)
				return -ENOMEM;
			data = grown;
			capacity *= 2;
		}
		ssize_t got = input_read(in, data + len, capacity - len, diag);
		if (got < 0)
			return (int)got;
		if (got == 0)
			break;
		len += (size_t)got;
		if (len > limit)
			return diag_set(diag, -EFBIG, "'%s' is larger than %zu bytes",
				in->name ? in->name : "memory", limit);
	}
	data[len] = 0;
	*ret_data = TAKE(data);
	*ret_size = len;
	return 0;
}

void input_close(struct input *in)
{
	closep(&in->fd);
	free(in->name);
	*in = (struct input){ .fd = -1 };
}
