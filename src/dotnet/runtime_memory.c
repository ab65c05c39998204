/* See runtime_memory.h. */
#include "dotnet/runtime_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "code/clr_names.h"
#include "dotnet/port.h"
#include "machine/proc.h"
#include "machine/target_root.h"

#define PATH_ROOM   4096u
#define SOURCES_MAX 64u

/* The mappings that may be of the runtime: of libcoreclr.so, or else of the program. */
struct source_search {
	char program[PATH_ROOM];
	struct clr_source sources[SOURCES_MAX];
	uint32_t count;
};

static int64_t read_bytes(void *context, uint64_t address, void *buffer, size_t size)
{
	const int *fd = context;

	return target_memory_read(*fd, address, buffer, size);
}

static int take_source(void *user, const struct proc_mapping *mapping)
{
	struct source_search *search = user;
	bool runtime = dotnet_signs_of_path(mapping->path) & DOTNET_SIGN_CORECLR;

	if (runtime)
		search->count = 0;
	/* A single-file program is mapped several times: with the assemblies that it contains. */
	if (!runtime &&
		(strcmp(mapping->path, search->program) != 0 || search->count == SOURCES_MAX))
		return 0;
	search->sources[search->count++] = (struct clr_source){ .mapping_begin = mapping->begin,
		.file_offset = mapping->file_offset };
	return runtime;
}

int runtime_memory_open(struct proc_reader *proc, uint32_t pid, struct clr_images *images,
	struct clr_pages *pages, struct runtime_memory **ret_memory)
{
	struct source_search search = { .count = 0 };
	const char *program;
	size_t len;
	int fd;

	if (proc_read_exe(proc, pid, &program, &len) == 0 && len < sizeof(search.program))
		memcpy(search.program, program, len + 1);
	/* First the memory: what is read after it is not of a later process. */
	int result = target_memory_open(pid, &fd);
	if (result < 0)
		return result;
	struct runtime_memory *memory = calloc(1, sizeof(*memory));
	if (!memory) {
		(void)close(fd); /* it was not used */
		return -ENOMEM;
	}
	memory->fd = fd;
	result = proc_read_maps(proc, pid, take_source, &search);
	if (result >= 0)
		result = -ENODATA;
	for (uint32_t i = 0; i < search.count && result == -ENODATA; i++)
		result = clr_names_open(read_bytes, &memory->fd, &search.sources[i], images, pages,
			&memory->names);
	if (result < 0) {
		runtime_memory_close(memory);
		return result;
	}
	*ret_memory = memory;
	return 0;
}

void runtime_memory_close(struct runtime_memory *memory)
{
	if (!memory)
		return;
	clr_names_close(memory->names);
	(void)close(memory->fd); /* it was only read */
	free(memory);
}
