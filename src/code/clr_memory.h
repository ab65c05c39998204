/*
 * The memory of a .NET process: reads numbers at addresses, with a sticky failure.
 *
 * The bytes come through a table of functions, so that tests can serve any. Whole pages are read and
 * kept for one pass, because most reads of a pass fall into few pages; clr_pages_pass() drops them.
 * The page cache is shared by the processes of one caller. Not thread-safe.
 */
#ifndef SPOOR_CODE_CLR_MEMORY_H
#define SPOOR_CODE_CLR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLR_PAGE_BYTES  4096u
#define CLR_PAGES       256u
#define CLR_ADDRESS_MIN UINT64_C(0x10000)        /* no object of a process is below */
#define CLR_ADDRESS_MAX UINT64_C(0x7fffffffffff) /* user space of 47 bits; .NET uses no more */

/* Number of bytes read, which may be fewer than `size`; 0 or a negative errno: none. */
typedef int64_t clr_memory_read_fn(void *context, uint64_t address, void *buffer, size_t size);

struct clr_pages {
	uint64_t owner[CLR_PAGES]; /* number of the process; 0: empty */
	uint64_t address[CLR_PAGES];
	uint8_t bytes[CLR_PAGES][CLR_PAGE_BYTES];
	uint64_t last_owner;
};

struct clr_memory {
	clr_memory_read_fn *read;
	void *context;
	struct clr_pages *pages; /* borrowed */
	uint64_t owner;
	bool failed;         /* a read failed since it was last cleared; all later ones return 0 */
	uint64_t read_count; /* calls of `read`, for benchmarks and limits */
};

/* Without `pages` every read is its own call. */
void clr_memory_init(struct clr_memory *memory, clr_memory_read_fn *read, void *context,
	struct clr_pages *pages);

/* Drops all pages. */
void clr_pages_pass(struct clr_pages *pages);

/* The kept pages of this process are dropped: what is read next is as of now. */
void clr_memory_refresh(struct clr_memory *memory);

/* False, and `failed` set, if not all bytes can be read. Small reads use the kept pages. */
bool clr_memory_bytes(struct clr_memory *memory, uint64_t address, void *out, size_t size);

/* The same, but never from a kept page. */
bool clr_memory_bytes_now(struct clr_memory *memory, uint64_t address, void *out, size_t size);

/* 0 after a failure. */
uint8_t clr_memory_u8(struct clr_memory *memory, uint64_t address);
uint16_t clr_memory_u16(struct clr_memory *memory, uint64_t address);
uint32_t clr_memory_u32(struct clr_memory *memory, uint64_t address);
uint64_t clr_memory_u64(struct clr_memory *memory, uint64_t address);

/* A pointer to something in user space: another value is a failure. */
uint64_t clr_memory_pointer(struct clr_memory *memory, uint64_t address);

/*
 * A text with a NUL within `room` bytes. False: longer, not readable, empty, not UTF-8, or it has
 * control characters.
 */
bool clr_memory_text(struct clr_memory *memory, uint64_t address, char *ret_text, size_t room);

#endif
