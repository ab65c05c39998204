/* The file, socket or pipe that a descriptor of another process refers to, as /proc/PID/fd shows it. */
#ifndef SPOOR_MACHINE_DESCRIPTOR_LINK_H
#define SPOOR_MACHINE_DESCRIPTOR_LINK_H

#include <stddef.h>
#include <stdint.h>

struct proc_reader;

/*
 * "/var/log/x" without " (deleted)", "pipe:[4711]", "socket:[4712]", "anon_inode:[eventfd]": borrowed from the
 * reader, as its own texts are. -ENOENT: there is no such descriptor, or no such process.
 */
int descriptor_link_read(struct proc_reader *proc, uint32_t pid, int32_t descriptor,
	const char **ret_text, size_t *ret_len);

#endif
