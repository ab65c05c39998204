/*
 * The unwind tables of the files that recorded processes map, within a limit of memory.
 *
 * A separate thread opens and reads each file, and the caller waits for it for at most
 * UNWIND_IMAGE_WAIT_NS: the file may be on a file system that never answers. Then the image has no table
 * until the thread has finished. If it never does, it is abandoned with what it holds.
 */
#ifndef SPOOR_RECORDING_UNWIND_IMAGES_H
#define SPOOR_RECORDING_UNWIND_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

struct code_mapping;
struct strtab;
struct unwind_images;
struct unwind_table;

#define UNWIND_IMAGE_WAIT_NS UINT64_C(200000000)
/* for all files of one pass over the rings, if those fill so fast that samples would be lost meanwhile */
#define UNWIND_IMAGE_HURRY_NS UINT64_C(20000000)

int unwind_images_new(const struct strtab *strings, struct unwind_images **ret_images);
/* Until the next call the caller waits for files for UNWIND_IMAGE_HURRY_NS in all. */
void unwind_images_hurry(struct unwind_images *images);
void unwind_images_free(struct unwind_images *images);

/* The number of the mapping's file, which equal files share; 0 without memory. */
uint32_t unwind_images_number(struct unwind_images *images, const struct code_mapping *mapping);

/*
 * Its table, borrowed until the next call; NULL: it has none, or not yet. `pid` is a process that maps
 * it.
 */
const struct unwind_table *unwind_images_table(struct unwind_images *images, uint32_t number,
	uint32_t pid, const struct code_mapping *mapping);

/* Whether its table may still come: an answer without it is not to be kept. */
bool unwind_images_pending(const struct unwind_images *images, uint32_t number);

#endif
