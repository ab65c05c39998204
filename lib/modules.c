/* The table of parts that start and stop with the library. */
#include "lib/modules.h"

#include "lib/activity.h"
#include "lib/code.h"
#include "lib/counter_session.h"
#include "lib/sampler.h"
#include "lib/server.h"

/* The server last: a program that is suspended at its start has all the others by then; and first to end, while sessions still get their names. */
const struct module *const modules[] = {
	&activity_module,
	&code_module,
	&counter_module,
	&sampler_module,
	&server_module,
	NULL,
};
