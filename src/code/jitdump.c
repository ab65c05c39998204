/*
 * See jitdump.h. The layout is that of the kernel's
 * tools/perf/Documentation/jitdump-specification.txt:
 *
 *   header   u32 magic 0x4a695444 ("DTiJ" in the file), u32 version 1, u32 header size, u32 ELF machine, u32 0, u32 pid, u64 time, u64 flags
 *   record   u32 type, u32 size (with these 16 bytes), u64 time, then by type:
 *   0 load   u32 pid, u32 tid, u64 vma, u64 address, u64 code size, u64 index, name with NUL, code
 *   1 move   u32 pid, u32 tid, u64 vma, u64 old address, u64 new address, u64 code size, u64 index
 *   3 close  nothing
 */
#include "code/jitdump.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/input.h"
#include "code/codemap.h"
#include "code/perf_map.h"

#define HEADER_SIZE_MAX 4096u

/* Reads `size` bytes; fewer only at the end of the input. */
static ssize_t read_full(struct input *in, void *buffer, size_t size, struct diag *diag)
{
	size_t have = 0;

	while (have < size) {
		ssize_t got = input_read(in, (uint8_t *)buffer + have, size - have, diag);
		if (got < 0)
			return got;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* 1: skipped; 0: the input ended before. */
static int skip(struct input *in, size_t size, struct diag *diag)
{
	uint8_t waste[4096];

	while (size) {
		ssize_t got =
			input_read(in, waste, size < sizeof(waste) ? size : sizeof(waste), diag);
		if (got <= 0)
			return (int)got;
		size -= (size_t)got;
	}
	return 1;
}

static int read_header(struct input *in, struct jitdump_header *ret_header, struct diag *diag)
{
	uint8_t bytes[JITDUMP_HEADER_SIZE];
	ssize_t got = read_full(in, bytes, sizeof(bytes), diag);

	if (got < 0)
		return (int)got;
	struct cursor c = cursor_of(bytes, (size_t)got);
	uint32_t magic = cursor_u32(&c);
	if (magic == __builtin_bswap32(JITDUMP_MAGIC))
		return diag_set(diag, -ENOTSUP, "the jitdump is big-endian: not supported");
	if (magic != JITDUMP_MAGIC)
		return diag_set(diag, -EBADMSG, "not a jitdump");
	ret_header->version = cursor_u32(&c);
	uint32_t size = cursor_u32(&c);
	ret_header->elf_machine = cursor_u32(&c);
	cursor_skip(&c, 4);
	ret_header->pid = cursor_u32(&c);
	ret_header->time_ns = cursor_u64(&c);
	ret_header->flags = cursor_u64(&c);
	if (c.short_read || size < JITDUMP_HEADER_SIZE || size > HEADER_SIZE_MAX)
		return diag_set(diag, -EBADMSG,
			"the jitdump's header is cut or of an impossible size");
	if (ret_header->version != 1)
		return diag_set(diag, -ENOTSUP, "jitdump version %u: not supported",
			ret_header->version);
	return skip(in, size - JITDUMP_HEADER_SIZE, diag);
}

/* A moved body keeps its name, so the name is copied before the map is changed. */
static int move(struct codemap *map, struct cursor *c, uint64_t time_ns)
{
	cursor_skip(c, 16);
	uint64_t from = cursor_u64(c);
	uint64_t to = cursor_u64(c);
	uint64_t size = cursor_u64(c);

	if (c->short_read || !size || to + size < to)
		return 0;
	const struct code *old = codemap_find(map, from, time_ns);
	if (!old || old->begin != from)
		return 0;
	struct code moved = *old;
	codemap_remove(map, from, time_ns);
	moved.begin = to;
	moved.end = to + size;
	moved.from_ns = time_ns;
	moved.until_ns = UINT64_MAX;
	return codemap_add(map, &moved);
}

/* Reads the name of a load record. The caller skips the code that follows. */
static int load(struct codemap *map, struct cursor *c, uint64_t time_ns)
{
	cursor_skip(c, 16);
	uint64_t begin = cursor_u64(c);
	uint64_t size = cursor_u64(c);
	cursor_skip(c, 8);
	if (c->short_read)
		return 0;
	const char *name = (const char *)c->at;
	int error = perf_map_add(map, begin, size, name, strnlen(name, cursor_left(c)), time_ns);
	return error == -EINVAL ? 0 : error ? error : 1;
}

int jitdump_read(struct input *in, struct codemap *map, struct jitdump_header *ret_header,
	struct diag *diag)
{
	struct jitdump_header header = { 0 };
	uint8_t head[JITDUMP_RECORD_HEAD];
	cleanup(bytes_done) struct bytes body = { 0 };
	int count = 0;
	int result = read_header(in, &header, diag);

	if (result <= 0)
		return result < 0 ? result
				  : diag_set(diag, -EBADMSG, "the jitdump's header is cut");
	if (ret_header)
		*ret_header = header;
	while (result >= 0) {
		ssize_t got = read_full(in, head, sizeof(head), diag);
		if (got < 0)
			result = (int)got;
		if (got < (ssize_t)sizeof(head))
			break;
		struct cursor c = cursor_of(head, sizeof(head));
		uint32_t type = cursor_u32(&c);
		uint32_t size = cursor_u32(&c);
		uint64_t time_ns = cursor_u64(&c);
		if (type == JITDUMP_CLOSE)
			break;
		if (size < JITDUMP_RECORD_HEAD || size > JITDUMP_RECORD_MAX) {
			result = diag_set(diag, -EBADMSG,
				"jitdump record of %u bytes at offset %llu", size,
				(unsigned long long)in->offset - JITDUMP_RECORD_HEAD);
			break;
		}
		size -= JITDUMP_RECORD_HEAD;
		/* Only the numbers and the name are needed. The code after them may be large. */
		size_t want = type == JITDUMP_LOAD || type == JITDUMP_MOVE ? size : 0;
		if (want > JITDUMP_LOAD_HEAD + JITDUMP_NAME_MAX)
			want = JITDUMP_LOAD_HEAD + JITDUMP_NAME_MAX;
		bytes_reset(&body);
		uint8_t *to = bytes_reserve(&body, want + 1);
		if (!to) {
			result = diag_set(diag, -ENOMEM, "no memory for a jitdump record");
			break;
		}
		got = read_full(in, to, want, diag);
		if (got < 0)
			result = (int)got;
		if (got < (ssize_t)want)
			break;
		c = cursor_of(to, want);
		int taken = type == JITDUMP_LOAD   ? load(map, &c, time_ns)
			    : type == JITDUMP_MOVE ? move(map, &c, time_ns)
						   : 0;
		if (taken < 0) {
			result = diag_set(diag, taken, "cannot keep a name of the jitdump: %m");
			break;
		}
		count += taken;
		result = skip(in, size - want, diag);
		if (result == 0)
			break;
	}
	return result < 0 ? result : count;
}
