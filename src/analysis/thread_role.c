/* See thread_role.h. */
#include "analysis/thread_role.h"

#include <stddef.h>
#include <string.h>

enum thread_role thread_role_of(const char *name)
{
	static const struct {
		const char *begin;
		enum thread_role role;
	} names[] = {
		{ "Server GC", THREAD_COLLECTOR },
		{ "BGC", THREAD_COLLECTOR },
		{ "BG Server GC", THREAD_COLLECTOR },
		{ "Background GC", THREAD_COLLECTOR },
		{ "GC", THREAD_COLLECTOR },
		{ "Tiered Com", THREAD_TIERED_COMPILATION },
		{ "Finalizer", THREAD_FINALIZER },
		{ "EventPipe", THREAD_EVENT_PIPE },
	};
	static const char prefix[] = ".NET ";

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return THREAD_OTHER;
	name += sizeof(prefix) - 1;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i].begin, strlen(names[i].begin)) == 0)
			return names[i].role;
	return THREAD_OTHER;
}

bool thread_role_is_own(const char *name)
{
	static const char worker[] = ".NET TP Worker";

	return strncmp(name, ".NET ", 5) == 0 && strncmp(name, worker, sizeof(worker) - 1) != 0;
}

const char *thread_role_label(enum thread_role role)
{
	static const char *const labels[] = {
		[THREAD_OTHER] = "",
		[THREAD_COLLECTOR] = "[garbage collector]",
		[THREAD_TIERED_COMPILATION] = "[tiered compilation]",
		[THREAD_FINALIZER] = "[finalizer]",
		[THREAD_SERVICE] = "",
		[THREAD_EVENT_PIPE] = "[EventPipe]",
	};

	return labels[role];
}
