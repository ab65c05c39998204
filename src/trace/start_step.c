/* See start_step.h. */
#include "trace/start_step.h"

#include <string.h>

static const struct {
	const char *name;
	const char *image; /* NULL: the step is no mapping */
} steps[START_STEPS] = {
	[START_STEP_EXEC] = { "exec", NULL },
	[START_STEP_HOSTFXR] = { "hostfxr", "libhostfxr.so" },
	[START_STEP_HOSTPOLICY] = { "hostpolicy", "libhostpolicy.so" },
	[START_STEP_CORECLR] = { "coreclr", "libcoreclr.so" },
};

const char *start_step_name(enum start_step step)
{
	return step > START_STEP_NONE && step < START_STEPS ? steps[step].name : "";
}

enum start_step start_step_of_name(const char *name)
{
	for (unsigned i = START_STEP_EXEC; i < START_STEPS; i++)
		if (strcmp(steps[i].name, name) == 0)
			return (enum start_step)i;
	return START_STEP_NONE;
}

enum start_step start_step_of_image(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *file = slash ? slash + 1 : path;

	for (unsigned i = START_STEP_EXEC; i < START_STEPS; i++)
		if (steps[i].image && strcmp(steps[i].image, file) == 0)
			return (enum start_step)i;
	return START_STEP_NONE;
}
