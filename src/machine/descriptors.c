/* See descriptors.h. */
#include "machine/descriptors.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FREE_MAX     8u
#define LIMIT_ENOUGH 1024u
/* closed one by one where the kernel has no close_range */
#define DESCRIPTORS_MAX 65536u

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

static void close_between(unsigned first, unsigned last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	for (unsigned fd = first; fd <= last && fd < DESCRIPTORS_MAX; fd++)
		(void)close((int)fd); /* most are not open */
}

static int compare_ints(const void *a, const void *b)
{
	int x = *(const int *)a;
	int y = *(const int *)b;

	return x < y ? -1 : x > y;
}

void descriptors_close_but(int *kept, size_t count)
{
	unsigned next = 0;

	qsort(kept, count, sizeof(*kept), compare_ints);
	for (size_t i = 0; i < count; i++) {
		if (kept[i] < 0)
			continue;
		if (kept[i])
			close_between(next, (unsigned)kept[i] - 1);
		next = (unsigned)kept[i] + 1;
	}
	close_between(next, UINT_MAX);
}
