/* See modules.h. */
#include "lib/start/modules.h"

#include "lib/code/code.h"
#include "lib/counter/counter_session.h"
#include "lib/event/activity.h"
#include "lib/logger/loggers.h"
#include "lib/sampler/sampler.h"
#include "lib/server/server.h"

/*
 * The server starts last: it may suspend the program until a tool resumes it, and all other modules
 * run by then. It stops first, while sessions can still write the names of their addresses.
 */
const struct module *const modules[] = {
	&activity_module,
	&code_module,
	&counter_module,
	&sampler_module,
	&loggers_module,
	&server_module,
	NULL,
};
