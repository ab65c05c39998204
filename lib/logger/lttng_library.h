/* Functions of LTTng's libraries, which are loaded at run time. For lttng.c and lttng_old.c. */
#ifndef SPOOR_LIB_LOGGER_LTTNG_LIBRARY_H
#define SPOOR_LIB_LOGGER_LTTNG_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Stores a function of the library, or NULL, in a pointer to a function; false: it has none. */
static inline bool lttng_symbol(void *library, const char *name, void *ret_function)
{
	void *found = dlsym(library, name);

	memcpy(ret_function, &found, sizeof(found));
	return found != NULL;
}

/* Has the program loaded this library, which calls LTTng around fork()? */
static inline bool lttng_wraps_fork(const char *name)
{
	void *wrapper = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

	if (wrapper)
		(void)dlclose(wrapper);
	return wrapper != NULL;
}

#endif
