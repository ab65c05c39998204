/* The table of parts that start and stop with the library. */
#include "lib/pipe/modules.h"

#include "lib/code/code.h"
#include "lib/counter/counter_session.h"
#include "lib/event/activity.h"
#include "lib/sampler/sampler.h"
#include "lib/server/server.h"

/* The server last: a program that is suspended at its start has all the others by then; and first to end, while sessions still get their names. */
const struct module *const modules[] = {
	&activity_module,
	&code_module,
	&counter_module,
	&sampler_module,
	&server_module,
	NULL,
};
