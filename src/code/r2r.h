/*
 * Names of precompiled (ReadyToRun) managed code, read from the assembly file: for processes whose
 * runtime cannot be queried.
 *
 *   r2r_open(fd, &image, diag)        takes fd over, also when it fails; -ENODATA when the assembly holds no precompiled code
 *   r2r_find_rva(image, rva, &hit)    rva = address - where the image is mapped
 *
 * A method reaches from its entry to the next one's, so handlers are inside. Generic instances are
 * named without their type arguments.
 */
#ifndef SPOOR_CODE_R2R_H
#define SPOOR_CODE_R2R_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct il_offset;
struct pe;
struct r2r;

#define R2R_FILE_MAX (512u << 20)

struct r2r_hit {
	uint32_t begin_rva;
	uint32_t end_rva;      /* exclusive */
	uint64_t begin_offset; /* of the same byte in the file */
	uint32_t token;        /* MethodDef token */
	/* "Namespace.Type+Nested::Method(int32, string)"; valid until the next call */
	const char *name;
	size_t name_len;
};

int r2r_open(int fd, struct r2r **ret_image, struct diag *diag);
/* borrowed */
int r2r_open_memory(const void *data, size_t size, struct r2r **ret_image, struct diag *diag);

/* True if a method covers the address. */
bool r2r_find_rva(struct r2r *image, uint32_t rva, struct r2r_hit *ret_hit);
bool r2r_find_offset(struct r2r *image, uint64_t offset, struct r2r_hit *ret_hit);

/*
 * The IL offsets of the method that begins at an RVA (r2r_hit.begin_rva), ascending by native offset, at
 * most `room`. Returns their number; -ENODATA: the image has none for it; -ENOTSUP, -EBADMSG:
 * as r2r_bounds_read().
 */
int r2r_il_offsets(struct r2r *image, uint32_t begin_rva, struct il_offset *ret_offsets,
	uint32_t room);

const struct pe *r2r_pe(const struct r2r *image);
uint32_t r2r_method_count(const struct r2r *image);
size_t r2r_size_bytes(const struct r2r *image);

/* NULL is harmless. */
void r2r_close(struct r2r *image);

#endif
