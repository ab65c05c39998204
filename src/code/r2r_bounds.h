/* The IL offsets of one precompiled method, as the debug information of a ReadyToRun image has them. */
#ifndef SPOOR_CODE_R2R_BOUNDS_H
#define SPOOR_CODE_R2R_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

struct il_offset;

/* More of one method are not read. */
#define R2R_BOUNDS_MAX 100000u

/*
 * Reads the debug information at `data`, of an image of this major version (the layout changed with 16):
 * at most `room` offsets, ascending by native offset. Returns their number; -ENOTSUP: a later layout;
 * -EBADMSG: malformed.
 */
int r2r_bounds_read(const uint8_t *data, size_t size, unsigned major, struct il_offset *ret_offsets,
	uint32_t room);

#endif
