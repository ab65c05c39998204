/*
 * Where the bytes of a nettrace file go: a regular file that is valid after every write, or a pipe;
 * as they are, or packed (nettrace_write.h has the promises).
 *
 *   struct nettrace_file file = { .fd = fd, .name = "x.nettrace", .write_at = pwrite };
 *   nettrace_file_begin(&file, packed, &head, &diag);
 *   nettrace_file_put(&file, &blocks, &diag);           whole blocks; after a failure again, the same and more
 *   nettrace_file_end(&file, &none, &diag);
 *   nettrace_file_done(&file);                          always; the descriptor stays the caller's
 *
 * Written bytes are removed from those that are passed; their size is a multiple of 4.
 */
#ifndef SPOOR_NETTRACE_NETTRACE_FILE_H
#define SPOOR_NETTRACE_NETTRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "nettrace/packed_file.h"

struct bytes;
struct diag;

struct nettrace_file {
	int fd;           /* borrowed */
	const char *name; /* for messages; borrowed */
	packed_file_write *write_at;
	/* a regular file that was empty: its end is rewritten at each flush */
	bool in_place;
	bool regular;
	int dead;                   /* the error that ended the file permanently, or 0 */
	uint64_t offset;            /* of the next block: the zero word is at this place now */
	uint64_t append_start;      /* of a regular file that had something before us */
	struct packed_file *packed; /* NULL: written as it is */
};

int nettrace_file_begin(struct nettrace_file *f, bool packed, struct bytes *head,
	struct diag *diag);
int nettrace_file_put(struct nettrace_file *f, struct bytes *out, struct diag *diag);
int nettrace_file_end(struct nettrace_file *f, struct bytes *out, struct diag *diag);

/* Describes an error of writing, and returns it. */
int nettrace_file_error(const struct nettrace_file *f, int error, struct diag *diag);

void nettrace_file_done(struct nettrace_file *f);

#endif
