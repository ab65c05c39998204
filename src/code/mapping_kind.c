/* See mapping_kind.h. */
#include "code/mapping_kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

static const struct {
	const char *prefix;
	enum mapping_kind kind;
} prefixes[] = {
	{ "[kernel", MAPPING_KERNEL }, { "[vdso]", MAPPING_VDSO }, { "[stack", MAPPING_STACK },
	{ "[heap", MAPPING_JIT }, { "[anon", MAPPING_JIT },
	{ "//anon", MAPPING_JIT }, /* anonymous memory in an mmap record */
	{ "/dev/zero", MAPPING_JIT }, { "/memfd:", MAPPING_JIT },
	{ "memfd:", MAPPING_JIT }, /* the spelling of other writers of recordings */
};

enum mapping_kind mapping_kind_of(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(path, prefixes[i].prefix, strlen(prefixes[i].prefix)) == 0)
			return prefixes[i].kind;
	if (strcmp(path, "vmlinux") == 0)
		return MAPPING_KERNEL;
	if (text_ends_with_any_case(path, len, deleted))
		len -= sizeof(deleted) - 1;
	if (!len || path[len - 1] == '/')
		return MAPPING_JIT;
	return text_ends_with_any_case(path, len, ".dll") ||
			       text_ends_with_any_case(path, len, ".exe")
		       ? MAPPING_MANAGED_IMAGE
		       : MAPPING_NATIVE;
}
