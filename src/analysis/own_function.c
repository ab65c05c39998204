/* See own_function.h. */
#include "analysis/own_function.h"

#include <stddef.h>
#include <string.h>

#include "trace/symbolmap.h"
#include "trace/trace.h"

static bool begins_with_any(const char *text, const char *const *starts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(text, starts[i], strlen(starts[i])) == 0)
			return true;
	return false;
}

bool own_method(const char *name, const char *module)
{
	static const char *const framework[] = { "System.", "Microsoft.", "netstandard", "mscorlib",
		"WindowsBase", "JIT" };
	static const char *const generated[] = { "dynamicClass." };

	return *module &&
	       !begins_with_any(module, framework, sizeof(framework) / sizeof(framework[0])) &&
	       strcmp(module, "System") != 0 &&
	       !begins_with_any(name, generated, sizeof(generated) / sizeof(generated[0]));
}

bool own_function(const struct symbolmap *names, uint32_t function)
{
	const struct function *f = &names->functions.items[function];

	return f->named && (f->kind == FUNCTION_JIT || f->kind == FUNCTION_READYTORUN) &&
	       own_method(trace_text(names->trace, f->full_name),
		       trace_text(names->trace, f->module));
}

bool own_function_is_missed(const struct symbolmap *names, uint32_t function)
{
	const struct function *f = &names->functions.items[function];

	return f->kind == FUNCTION_UNKNOWN && f->named;
}
