/* A process maps the jitdump file as executable, and perf records that mapping. */
#include "lib/code/code_dump.h"

#include <sys/mman.h>

#include "lib/platform/platform.h"

void *code_dump_mark(int fd)
{
	/* A file system mounted noexec refuses it: the user then has to name the file to perf. */
	void *mark = mmap(NULL, platform_page_size(), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	return mark == MAP_FAILED ? NULL : mark;
}

void code_dump_unmark(void *mark)
{
	if (mark)
		(void)munmap(mark, platform_page_size());
}
