/* See descriptors.h. */
#include "machine/descriptors.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define FREE_MAX     8u
#define LIMIT_ENOUGH 1024u

bool descriptors_are_free(unsigned count)
{
	int fds[FREE_MAX];
	unsigned got = 0;

	if (count > FREE_MAX)
		count = FREE_MAX;
	while (got < count && (fds[got] = open("/", O_PATH | O_CLOEXEC)) >= 0)
		got++;
	for (unsigned i = 0; i < got; i++)
		(void)close(fds[i]); /* nothing was written to it */
	return got == count;
}

void descriptors_explain(char *out, size_t room)
{
	struct rlimit limit;
	unsigned long long now =
		getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (unsigned long long)limit.rlim_cur : 0;

	(void)snprintf(out, room,
		"the limit of open files of spoor, %llu, is reached: ulimit -n %llu raises it", now,
		/* truncated if there is little room */
		now < LIMIT_ENOUGH ? LIMIT_ENOUGH : 4 * now);
}
