/* See descriptor_link.h. */
#include "machine/descriptor_link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "machine/proc.h"

int descriptor_link_read(struct proc_reader *proc, uint32_t pid, int32_t descriptor,
	const char **ret_text, size_t *ret_len)
{
	char path[48];
	bool deleted;

	/* of two numbers: it fits */
	(void)snprintf(path, sizeof(path), "%" PRIu32 "/fd/%" PRId32, pid, descriptor);
	ssize_t n = readlinkat(proc->fd, path, (char *)proc->buffer, proc->capacity - 1);
	if (n < 0)
		return -errno;
	*ret_len = proc_strip_deleted((const char *)proc->buffer, (size_t)n, &deleted);
	proc->buffer[*ret_len] = 0;
	*ret_text = (const char *)proc->buffer;
	return 0;
}
