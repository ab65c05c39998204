/* The kernel may return a file in pieces of a page, so a short read is not the end. */
#include "machine/kernel_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"

ssize_t kernel_file_read(int folder, const char *path, char *buffer, size_t room)
{
	cleanup(closep) int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;

	if (fd < 0)
		return -errno;
	while (len + 1 < room) {
		ssize_t n = read(fd, buffer + len, room - 1 - len);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			break;
		len += (size_t)n;
	}
	buffer[len] = 0;
	return (ssize_t)len;
}

bool kernel_file_number(const char *path, int64_t *ret_value)
{
	char text[64];
	char *end;

	if (kernel_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	errno = 0;
	long long value = strtoll(text, &end, 10);
	if (end == text || errno)
		return false;
	*ret_value = value;
	return true;
}
