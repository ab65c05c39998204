/*
 * The modules of one .NET process as its memory has them: path, name and metadata by the address of
 * the runtime's Module.
 */
#ifndef SPOOR_CODE_CLR_MODULE_H
#define SPOOR_CODE_CLR_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct clr_image;
struct clr_images;
struct clr_layout;
struct clr_memory;

struct clr_module {
	uint64_t address;
	struct clr_image *image; /* NULL: its metadata cannot be read */
	char *path;              /* "" for a module that is no file */
	bool emitted;            /* its metadata may grow */
	bool lasts;              /* false: forgotten at the end of the pass */
};

struct clr_modules {
	struct clr_memory *memory; /* borrowed, as is what follows */
	const struct clr_layout *layout;
	struct clr_images *images;
	VEC(struct clr_module) list;
	struct map index; /* address -> index + 1 */
};

/*
 * NULL: no module is known to be there. Borrowed until the next call. `lasts` is false for a module
 * that may be unloaded.
 */
const struct clr_module *clr_modules_get(struct clr_modules *modules, uint64_t address, bool lasts);

/* Reads the metadata of an emitted module again, as types were added to it. */
const struct clr_module *clr_modules_again(struct clr_modules *modules, uint64_t address);

/* Forgets the modules that may be unloaded. */
void clr_modules_pass(struct clr_modules *modules);

void clr_modules_done(struct clr_modules *modules);

#endif
