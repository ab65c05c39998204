/*
 * The entries of .eh_frame and .debug_frame: a CIE has what many functions share, an FDE the range of
 * one function and the instructions that describe its frame at each address.
 *
 * The bytes are untrusted. Formats: Linux Standard Base Core Specification, "Exception Frames";
 * DWARF 5, section 6.4. Entries in 64-bit DWARF are refused.
 */
#ifndef SPOOR_CODE_FRAME_ENTRY_H
#define SPOOR_CODE_FRAME_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cursor.h"

#define FRAME_POINTER_OMIT     0xffu
#define FRAME_POINTER_INDIRECT 0x80u

/* The number of an encoded pointer without its base (DW_EH_PE_*). *ok: the format is known. */
uint64_t frame_pointer_read(struct cursor *c, uint8_t encoding, bool is_64, bool *ok);

/* As frame_pointer_read(), for a pointer whose own address is `vaddr`: absolute or relative to it. */
uint64_t frame_pointer_read_at(struct cursor *c, uint8_t encoding, bool is_64, uint64_t vaddr,
	bool *ok);

struct frame_cie {
	struct cursor code; /* the instructions of all its functions */
	uint64_t code_align;
	int64_t data_align;
	uint32_t return_register;
	uint8_t encoding; /* of the addresses in its FDEs */
	bool augmented;   /* its FDEs have augmentation data */
	bool signal;      /* frame of a signal handler's caller: its address is no return address */
};

/* Reads a CIE behind its id. False: malformed, or of an unknown kind. */
bool frame_cie_read(struct cursor *c, bool is_64, struct frame_cie *ret_cie);

/* The range of an FDE, read behind its CIE pointer, at `vaddr`; the end is exclusive. */
bool frame_range_read(struct cursor *c, const struct frame_cie *cie, bool is_64, uint64_t vaddr,
	uint64_t *ret_begin, uint64_t *ret_end);

/* A whole section in memory. */
struct frame_section {
	const uint8_t *data; /* borrowed */
	size_t size;
	uint64_t vaddr; /* of data[0]; 0 for .debug_frame, which is not loaded */
	bool debug;     /* .debug_frame: other ids and distances */
};

struct frame_entry {
	struct frame_cie cie;
	uint64_t begin;
	uint64_t end;
	struct cursor code;
	uint64_t code_vaddr; /* of the first byte of `code`, for DW_CFA_set_loc */
};

enum frame_entry_kind { FRAME_ENTRY_END, FRAME_ENTRY_OTHER, FRAME_ENTRY_FDE };

/*
 * Reads the entry of a 64-bit image at offset *at of the section, and moves *at to the next. Only for
 * FRAME_ENTRY_FDE *ret_entry is set; FRAME_ENTRY_OTHER is a CIE or an FDE that cannot be used.
 */
enum frame_entry_kind frame_entry_read(const struct frame_section *section, size_t *at,
	struct frame_entry *ret_entry);

#endif
