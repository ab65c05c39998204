/*
 * Opens the memory of a .NET process for reading (code/clr_names.h): finds the image of its runtime,
 * libcoreclr.so or a single-file program.
 *
 * The descriptor stays with this process: when it ends or executes another program, reads fail, and
 * no other process with the same id is ever read. Needs the rights of ptrace.
 */
#ifndef SPOOR_DOTNET_RUNTIME_MEMORY_H
#define SPOOR_DOTNET_RUNTIME_MEMORY_H

#include <stdint.h>

struct clr_images;
struct clr_names;
struct clr_pages;
struct proc_reader;

struct runtime_memory {
	int fd;
	struct clr_names *names;
};

/*
 * `images` and `pages` are borrowed until runtime_memory_close(). -ESRCH: the process has ended.
 * -EACCES, -EPERM: it may not be traced. -ENODATA: no supported runtime runs in it, or not yet.
 */
int runtime_memory_open(struct proc_reader *proc, uint32_t pid, struct clr_images *images,
	struct clr_pages *pages, struct runtime_memory **ret_memory);

/* NULL is harmless. */
void runtime_memory_close(struct runtime_memory *memory);

#endif
