/*
 * The metadata of the assemblies that .NET processes have loaded, read from their memory: no file is
 * opened. Processes that load the same assembly share one copy; copies are compared by content.
 */
#ifndef SPOOR_CODE_CLR_IMAGE_H
#define SPOOR_CODE_CLR_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "code/metadata.h"

struct clr_memory;

#define CLR_IMAGE_BYTES_MAX  (32u << 20) /* of one metadata */
#define CLR_IMAGES_BYTES_MAX (24u << 20) /* of all; then assemblies are refused */

struct clr_image {
	uint8_t *data;
	size_t size_bytes;
	struct metadata metadata;
	uint32_t users;
};

struct clr_images {
	VEC(struct clr_image *) list;
	size_t size_bytes;
};

/*
 * Each returns the metadata, with one more user, or NULL: there is none, it is malformed, or there is
 * no memory for it.
 *
 * Of a PE image in memory, mapped by its sections or as the flat file.
 */
struct clr_image *clr_images_of_pe(struct clr_images *images, struct clr_memory *memory,
	uint64_t base);

/* Of this many bytes. */
struct clr_image *clr_images_of_block(struct clr_images *images, struct clr_memory *memory,
	uint64_t address, uint64_t size);

/* That has a text at `text` among its names. */
struct clr_image *clr_images_around(struct clr_images *images, struct clr_memory *memory,
	uint64_t text);

/* One user less. `image` may be NULL. Metadata without a user stays, until room is needed. */
void clr_images_release(struct clr_images *images, struct clr_image *image);

void clr_images_done(struct clr_images *images);

#endif
