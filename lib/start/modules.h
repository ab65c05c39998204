/* The table of all modules (platform/module.h), in the order in which they are started. */
#ifndef SPOOR_LIB_START_MODULES_H
#define SPOOR_LIB_START_MODULES_H

#include "lib/platform/module.h"

/* Ends with NULL. */
extern const struct module *const modules[];

#endif
