/*
 * The file of the rings (SPOOR_START_RECOVERABLE): all that another process needs to read the last
 * events of this process when it crashed or hangs. Written by the library, read by recover.c, which
 * uses nothing else of this process.
 *
 *   offset            content
 *   0                 struct recover_head
 *   RECOVER_METADATA  metadata log: records of struct recover_event, metadata (nettrace 4), plan;
 *   the first `metadata_used` bytes are complete
 *   RECOVER_RINGS     struct recover_ring, `ring_count` of them
 *   RECOVER_FRONTS    struct ring_front, one for each ring
 *   after these       the rings' bytes, page-aligned
 */
#ifndef SPOOR_LIB_RECOVER_RECOVER_FILE_H
#define SPOOR_LIB_RECOVER_RECOVER_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/platform/clock.h"

#define RECOVER_MAGIC          "spoor rings 1\n\0" /* 15 bytes and a NUL */
#define RECOVER_RINGS_MAX      8192u
#define RECOVER_METADATA       UINT64_C(4096)
#define RECOVER_METADATA_BYTES UINT64_C(0x2000000) /* 32 MiB, sparse */
#define RECOVER_RINGS          (RECOVER_METADATA + RECOVER_METADATA_BYTES)
#define RECOVER_FRONTS         (RECOVER_RINGS + RECOVER_RINGS_MAX * 32u)
#define RECOVER_BYTES          (RECOVER_FRONTS + RECOVER_RINGS_MAX * 64u)

struct recover_head {
	char magic[16];
	uint32_t head_bytes; /* sizeof(struct recover_head) */
	uint32_t pointer_bytes;
	uint64_t process_id;
	uint64_t metadata_offset; /* offsets of the parts: RECOVER_METADATA, ... */
	uint64_t rings_offset;
	uint64_t fronts_offset;
	uint64_t counter;           /* 1: stamps are of the processor's counter */
	uint64_t utc_ns;            /* at pairs[0] */
	struct clock_pair pairs[2]; /* the first pair of this process, and the newest */
	uint64_t metadata_used;     /* atomic */
	uint64_t ring_count;        /* atomic: allocated; a ring whose size is 0 is not ready */
	uint64_t bytes_used;        /* atomic: of the file, including rings */
	char command_line[1024];
};

struct recover_ring {
	uint64_t offset;
	uint64_t size; /* a power of two; atomic, set last */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct recover_ring) == 32, "as drawn");

/* The description of a kind of event in the log, padded to 8 bytes. */
struct recover_event {
	uint32_t bytes; /* of this record, including the data that follows */
	uint32_t index;
	uint32_t flags;
	uint32_t metadata_size; /* follows this structure */
	uint32_t plan_count;    /* follows the metadata, at a multiple of 8 */
	uint32_t reserved;
};

struct ring_front;
struct event_entry;

/*
 * Makes the file (path NULL: a memfd) and maps the part before the rings. 0 or a negative errno. It
 * stays open until the process ends.
 */
int recover_file_make(const char *path);

/* In the child of fork(): closes the file and forgets it. */
void recover_file_done(void);

/*
 * ring_settings.map_in_file: a ring of `size` bytes in the file, mapped twice, and its front.
 * Lock-free, safe in signal handlers. NULL: no room.
 */
uint8_t *recover_file_ring(size_t size, uint64_t thread_id, struct ring_front **ret_front);

/*
 * For registry_record_entries(): appends the entry to the metadata log. The registry's lock is
 * held.
 */
void recover_file_entry(const struct event_entry *entry);

/* For pipe_set_up(): notes the newest pair of counter and clock. Loop thread, at each pass. */
void recover_file_clock(const struct clock_line *line, struct clock_pair newest);

#endif
