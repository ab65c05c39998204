/* Sections of .eh_frame and .debug_frame with one CIE and one FDE, for the tests of their readers. */
#ifndef SPOOR_TESTS_UNIT_FRAME_BUILDER_H
#define SPOOR_TESTS_UNIT_FRAME_BUILDER_H

#include <stdbool.h>

#include "base/bytes.h"
#include "code/frame_entry.h"

#define FRAME_BUILD_VADDR 0x10000u
#define FRAME_BUILD_BEGIN 0x4000u
#define FRAME_BUILD_SIZE  0x100u

/* CFA = rsp + 8, return address at CFA - 8: what x86-64 compilers write into each CIE. */
#define FRAME_BUILD_USUAL 0x0c, 7, 8, 0x90, 1

static inline void frame_build_entry(struct bytes *out, uint32_t id, const struct bytes *body)
{
	bytes_u32(out, (uint32_t)body->len + 4);
	bytes_u32(out, id);
	bytes_add(out, body->data, body->len);
}

/* "zR" with pc-relative addresses of 32 bits, or no augmentation in .debug_frame. */
static inline struct frame_section frame_build(struct bytes *out, bool debug,
	const char *augmentation, const uint8_t *code, size_t size)
{
	static const uint8_t usual[] = { FRAME_BUILD_USUAL };
	struct bytes body = { 0 };

	bytes_u8(&body, 1);
	bytes_add(&body, augmentation, strlen(augmentation) + 1);
	bytes_u8(&body, 1);    /* code alignment */
	bytes_u8(&body, 0x78); /* data alignment: -8 */
	bytes_u8(&body, 16);
	if (*augmentation == 'z') {
		bytes_u8(&body, 1);
		bytes_u8(&body, 0x1b);
	}
	bytes_add(&body, usual, sizeof(usual));
	frame_build_entry(out, debug ? UINT32_MAX : 0, &body);
	uint32_t at = (uint32_t)out->len;
	bytes_reset(&body);
	if (debug)
		bytes_u64(&body, FRAME_BUILD_BEGIN);
	else
		bytes_u32(&body, FRAME_BUILD_BEGIN - (FRAME_BUILD_VADDR + at + 8));
	if (debug)
		bytes_u64(&body, FRAME_BUILD_SIZE);
	else
		bytes_u32(&body, FRAME_BUILD_SIZE);
	if (*augmentation == 'z')
		bytes_u8(&body, 0);
	bytes_add(&body, code, size);
	frame_build_entry(out, debug ? 0 : at + 4, &body);
	bytes_done(&body);
	return (struct frame_section){ .data = out->data,
		.size = out->len,
		.vaddr = debug ? 0 : FRAME_BUILD_VADDR,
		.debug = debug };
}

#endif
