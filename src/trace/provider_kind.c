/* See provider_kind.h. */
#include "trace/provider_kind.h"

#include <stddef.h>
#include <string.h>

struct provider {
	const char *name;
	bool has_guid;
	uint8_t guid[16]; /* mixed-endian, as in a file */
};

#define NO_GUID   \
	false,    \
	{         \
		0 \
	}
#define GUID(...)           \
	true,               \
	{                   \
		__VA_ARGS__ \
	}

static const struct provider providers[PROVIDER_KIND_COUNT] = {
#define PROVIDER(kind, name, ...) [kind] = { name, __VA_ARGS__ },
#include "trace/providers.def"
#undef PROVIDER
};

const char *provider_name(enum provider_kind kind)
{
	return kind < PROVIDER_KIND_COUNT ? providers[kind].name : NULL;
}

enum provider_kind provider_kind_of(const char *name)
{
	for (unsigned kind = PROVIDER_OTHER + 1; kind < PROVIDER_KIND_COUNT; kind++)
		if (strcmp(providers[kind].name, name) == 0)
			return (enum provider_kind)kind;
	return PROVIDER_OTHER;
}

const uint8_t *provider_guid(enum provider_kind kind)
{
	return kind < PROVIDER_KIND_COUNT && providers[kind].has_guid ? providers[kind].guid : NULL;
}
