/* See record_profiles.h. */
#include "dotnet/record_profiles.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/diag.h"
#include "dotnet/providers.h"

static const struct record_profile {
	const char *name;
	const char *providers; /* "": none */
	unsigned stack_kinds;
} profiles[] = {
#define RECORD_PROFILE(name, text, providers, stacks) { name, providers, stacks },
#include "dotnet/record_profiles.def"
};

static const char profile_names[] =
#define RECORD_PROFILE(name, text, providers, stacks) name ", "
#include "dotnet/record_profiles.def"
	"all";

/* "all" is of the runtime's events. */
static bool is_named(const struct record_profile *profile, const char *name, size_t len)
{
	static const char all[] = "all";

	return (len == sizeof(all) - 1 && strncasecmp(name, all, len) == 0 &&
		       !(profile->stack_kinds & STACKS_OF_SWITCHES)) ||
	       (strlen(profile->name) == len && strncasecmp(profile->name, name, len) == 0);
}

static int add_one(struct provider_list *list, const char *name, size_t len, unsigned *stack_kinds,
	struct diag *diag)
{
	bool found = false;

	for (unsigned i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		const struct record_profile *profile = &profiles[i];
		if (!is_named(profile, name, len))
			continue;
		found = true;
		*stack_kinds |= profile->stack_kinds;
		int result = !*profile->providers ? 0
						  : provider_list_add_text(list, profile->providers,
							    "--profile", diag);
		if (result < 0)
			return result;
	}
	if (!found)
		diag_set(diag, -EINVAL, "--profile takes %s, not '%.*s'", profile_names, (int)len,
			name);
	return found ? 0 : -EINVAL;
}

int record_profiles_add(struct provider_list *list, const char *names, unsigned *stack_kinds,
	struct diag *diag)
{
	for (const char *at = names;;) {
		size_t len = strcspn(at, ",");
		int result = add_one(list, at, len, stack_kinds, diag);
		if (result < 0 || !at[len])
			return result;
		at += len + 1;
	}
}
