/* The table of parts that start and stop with the library. */
#include "lib/modules.h"

const struct module *const modules[] = {
	NULL,
};
