/*
 * Input: /proc/PID/cgroup up to a NUL, then /proc/self/mountinfo; container runtimes choose names
 * in both. Then a file of the cgroup.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "machine/cgroup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cgroup group = { .root = "" };
	char *text = malloc(size + 1);
	uint64_t value;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	size_t path_len = strlen(text);
	char *rest = path_len < size ? text + path_len + 1 : NULL;
	(void)cgroup_parse_key(text, "inactive_file", &value); /* any result is accepted */
	if (cgroup_parse_path(text, "memory", &group) == 0 &&
		cgroup_parse_mount(rest, "memory", &group) == 0) {
		if (group.hidden > strlen(group.path) || strstr(group.path, "/../"))
			abort();
		while (cgroup_up(&group))
			if (strlen(group.path) < group.hidden)
				abort();
	}
	free(text);
	return 0;
}
