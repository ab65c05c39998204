/*
 * perf-PID.map and jit-PID.dump. Each record is written by one write(), so a reader sees whole
 * records unless the disk is full. A write that fails or is short closes the file.
 */
#include "lib/code/code_dump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/event/payload.h"
#include "lib/platform/platform.h"

#define JITDUMP_MAGIC 0x4a695444u
#define JITDUMP_LOAD  0u
#define JITDUMP_MOVE  1u
#define JITDUMP_LINES 2u
#define JITDUMP_CLOSE 3u
#if defined(__x86_64__)
#define JITDUMP_MACHINE 62u
#elif defined(__aarch64__)
#define JITDUMP_MACHINE 183u
#else
#define JITDUMP_MACHINE 0u
#endif

static int map_fd = -1;
static int dump_fd = -1;
static void *dump_marker; /* the executable mapping by which perf notices the file */
static struct outbuf record;

uint32_t code_dump_files(void)
{
	return (map_fd >= 0 ? SPOOR_CODE_PERF_MAP : 0u) | (dump_fd >= 0 ? SPOOR_CODE_JITDUMP : 0u);
}

static void dump_end(int *fd)
{
	if (fd == &dump_fd) {
		code_dump_unmark(dump_marker);
		dump_marker = NULL;
	}
	platform_close(*fd);
	*fd = -1;
}

/* Writes the content of `record`. */
static void dump_write(int *fd)
{
	if (*fd >= 0 &&
		(record.failed || write(*fd, record.data, record.size) != (ssize_t)record.size))
		dump_end(fd);
	if (record.failed)
		outbuf_done(&record);
	record.failed = false;
	outbuf_reset(&record);
}

/* Begins a record: kind, size with this prefix (set by dump_record_end()), time. */
static void dump_record(uint32_t kind)
{
	outbuf_reset(&record);
	payload_u32(&record, kind);
	payload_u32(&record, 0);
	payload_u64(&record, platform_now_ns());
}

static void dump_record_end(void)
{
	uint32_t size = (uint32_t)record.size;

	if (!record.failed)
		memcpy(record.data + 4, &size, sizeof(size));
	dump_write(&dump_fd);
}

static int dump_create(const char *folder, const char *before, const char *behind, int *ret_fd)
{
	char path[4096];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s%llu%s", folder, before,
		    (unsigned long long)platform_process_id(), behind) >= sizeof(path))
		return -ENAMETOOLONG;
	/*
	 * left by a process with the same id; a file of another user stays, and the open below
	 * fails
	 */
	(void)unlink(path);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/*
 *   offset  size  header of a jitdump
 *   0       4     magic
 *   4       4     version 1
 *   8       4     size of this header, 40
 *   12      4     machine, as ELF numbers it
 *   16      4     0
 *   20      4     process
 *   24      8     time
 *   32      8     flags 0: times are CLOCK_MONOTONIC
 */
static int dump_begin(const char *folder)
{
	int error = dump_create(folder, "jit-", ".dump", &dump_fd);

	if (error < 0)
		return error;
	outbuf_reset(&record);
	payload_u32(&record, JITDUMP_MAGIC);
	payload_u32(&record, 1);
	payload_u32(&record, 40);
	payload_u32(&record, JITDUMP_MACHINE);
	payload_u32(&record, 0);
	payload_u32(&record, (uint32_t)platform_process_id());
	payload_u64(&record, platform_now_ns());
	payload_u64(&record, 0);
	dump_write(&dump_fd);
	if (dump_fd < 0)
		return -ENOSPC;
	dump_marker = code_dump_mark(dump_fd);
	return 0;
}

int code_dump_open(uint32_t files, const char *folder)
{
	int error = 0, later = 0;

	if (files & SPOOR_CODE_PERF_MAP)
		error = dump_create(folder, "perf-", ".map", &map_fd);
	if (files & SPOOR_CODE_JITDUMP)
		later = dump_begin(folder);
	return error ? error : later;
}

void code_dump_close(uint32_t files)
{
	if ((files & SPOOR_CODE_PERF_MAP) && map_fd >= 0)
		dump_end(&map_fd);
	if ((files & SPOOR_CODE_JITDUMP) && dump_fd >= 0) {
		dump_record(JITDUMP_CLOSE);
		dump_record_end();
		if (dump_fd >= 0)
			dump_end(&dump_fd);
	}
	if (map_fd < 0 && dump_fd < 0)
		outbuf_done(&record);
}

/* Writes a line of the map. Line ends in a name are replaced. */
static void dump_map_line(const struct announced_code *range)
{
	char head[64];
	int length = snprintf(head, sizeof(head), "%llx %llx ", (unsigned long long)range->begin,
		(unsigned long long)range->size);

	outbuf_reset(&record);
	outbuf_add(&record, head, (size_t)length);
	for (const char *c = range->name; *c; c++)
		payload_u8(&record, *c == '\n' || *c == '\r' ? ' ' : (uint8_t)*c);
	payload_u8(&record, '\n');
	dump_write(&map_fd);
}

void code_dump_add(const struct announced_code *range, uint32_t files)
{
	if ((files & SPOOR_CODE_PERF_MAP) && map_fd >= 0)
		dump_map_line(range);
	if (!(files & SPOOR_CODE_JITDUMP) || dump_fd < 0)
		return;
	if (range->lines) {
		/* Precedes the record of its code. */
		dump_record(JITDUMP_LINES);
		payload_u64(&record, range->begin);
		payload_u64(&record, range->lines->count);
		for (uint32_t i = 0; i < range->lines->count; i++) {
			const struct spoor_code_line *line = &range->lines->line[i];
			payload_u64(&record, range->begin + line->offset);
			payload_u32(&record, line->line);
			payload_u32(&record, 0);
			outbuf_add(&record, line->file, strlen(line->file) + 1);
		}
		dump_record_end();
	}
	/* The size of a record has 32 bits. */
	if (dump_fd < 0 || range->size > UINT32_MAX / 2)
		return;
	dump_record(JITDUMP_LOAD);
	payload_u32(&record, (uint32_t)platform_process_id());
	payload_u32(&record, (uint32_t)platform_thread_id());
	payload_u64(&record, range->begin);
	payload_u64(&record, range->begin);
	payload_u64(&record, range->size);
	payload_u64(&record, range->id);
	outbuf_add(&record, range->name, strlen(range->name) + 1);
	outbuf_add(&record, (const void *)(uintptr_t)range->begin, (size_t)range->size);
	dump_record_end();
}

void code_dump_move(const struct announced_code *range, uint64_t from)
{
	if (map_fd >= 0)
		dump_map_line(range);
	if (dump_fd < 0)
		return;
	dump_record(JITDUMP_MOVE);
	payload_u32(&record, (uint32_t)platform_process_id());
	payload_u32(&record, (uint32_t)platform_thread_id());
	payload_u64(&record, range->begin);
	payload_u64(&record, from);
	payload_u64(&record, range->begin);
	payload_u64(&record, range->size);
	payload_u64(&record, range->id);
	dump_record_end();
}

void code_dump_forget(void)
{
	if (map_fd >= 0)
		dump_end(&map_fd);
	if (dump_fd >= 0)
		dump_end(&dump_fd);
}
