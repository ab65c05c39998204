/*
 * The unwind table of one ELF image of 64 bits: .eh_frame, and .debug_frame for what that lacks.
 *
 * The sections are held in memory, since a lookup of each new address reads some of them. A section
 * that is compressed, in a separate file, or larger than the limit is not used. The bytes are
 * untrusted: they can only lead to wrong rules.
 */
#ifndef SPOOR_CODE_UNWIND_TABLE_H
#define SPOOR_CODE_UNWIND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image_file;
struct unwind_rules;
struct unwind_table;

#define UNWIND_TABLE_BYTES_MAX (24u << 20)

/*
 * -ENODATA: the image has no unwind table. -EFBIG: a larger one than UNWIND_TABLE_BYTES_MAX. -EBADMSG: no
 * ELF image of 64 bits. The caller frees it.
 */
int unwind_table_open(const struct image_file *file, struct unwind_table **ret_table);
void unwind_table_free(struct unwind_table *table);

/* The address in the file's own numbering of a file offset; false if no segment holds it. */
bool unwind_table_vaddr(const struct unwind_table *table, uint64_t offset, uint64_t *ret_vaddr);

/* The rules at `vaddr`. -ENOENT: no function covers it. -EBADMSG: its entry is malformed. */
int unwind_table_find(const struct unwind_table *table, uint64_t vaddr,
	struct unwind_rules *ret_rules);

/* Lower-case hexadecimal; "" if it has none. */
const char *unwind_table_build_id(const struct unwind_table *table);

size_t unwind_table_size_bytes(const struct unwind_table *table);

#endif
