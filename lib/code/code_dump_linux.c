/* How perf comes to know of a jitdump: the process maps the file executable, and perf sees that. */
#include "lib/code/code_dump.h"

#include <sys/mman.h>

#include "lib/platform/platform.h"

void *code_dump_mark(int fd)
{
	/* A file system mounted noexec refuses it: perf then has to be told of the file by hand. */
	void *mark = mmap(NULL, platform_page_size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	return mark == MAP_FAILED ? NULL : mark;
}

void code_dump_unmark(void *mark)
{
	if (mark)
		(void)munmap(mark, platform_page_size());
}
