/*
 * The machine code of sampled bodies of managed code, as the recorder read it from memory (CodeBytes
 * events). Kept only where `wanted` is set before the file is read. All zero is empty.
 */
#ifndef SPOOR_TRACE_CODE_BYTES_H
#define SPOOR_TRACE_CODE_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

/* A longer body is not recorded, and a file has no more than this of all bodies. */
#define CODE_BODY_MAX  (1u << 20)
#define CODE_TOTAL_MAX (64u << 20)

struct code_copy {
	uint64_t mapping_id; /* these three are CodeAdded's */
	uint64_t begin;
	uint64_t method_id;
	uint32_t process; /* index in trace.processes */
	uint32_t at;      /* in code_bytes.bytes */
	uint32_t size;
};

struct code_bytes {
	bool wanted;
	VEC(uint8_t) bytes;
	VEC(struct code_copy) copies; /* in file order */
	struct map index;
};

/*
 * Adds the bytes at `offset` of a body: they begin it, or continue the body that was added last. Others
 * are ignored, and so is what exceeds the limits. False: no memory.
 */
bool code_bytes_add(struct code_bytes *code, const struct code_copy *body, uint32_t offset,
	const uint8_t *data, uint32_t size);

/* The code of a body, or NULL; *ret_size is what the file has of it. */
const uint8_t *code_bytes_find(const struct code_bytes *code, uint32_t process, uint64_t mapping_id,
	uint64_t begin, uint64_t method_id, uint32_t *ret_size);

void code_bytes_done(struct code_bytes *code);

#endif
