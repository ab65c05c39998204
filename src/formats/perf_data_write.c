/*
 * See perf_data_write.h. The layout is that of the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt and of perf_event_open(2):
 *
 *   header   "PERFILE2", u64 size 104, u64 size of an attribute, three sections (attributes, data, event types), 256 flag bits
 *   section  u64 offset, u64 size
 *   attr     struct perf_event_attr of 112 bytes, section of its ids (none)
 *   record   u32 type, u16 misc, u16 size (with these 8 bytes), then by type; sample_id: u32 pid, u32 tid, u64 time, u32 cpu, u32 0
 *   1 mmap   u32 pid, u32 tid, u64 begin, u64 size, u64 file offset, path with NUL to 8 bytes, sample_id
 *   3 comm   u32 pid, u32 tid, name with NUL to 8 bytes, sample_id
 *   9 sample u64 ip, u32 pid, u32 tid, u64 time, u32 cpu, u32 0, u64 period, u64 count, addresses
 */
#include "formats/perf_data_write.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define HEADER_SIZE    104u
#define ATTR_SIZE      112u
#define SECTION_SIZE   16u
#define DATA_AT        (HEADER_SIZE + ATTR_SIZE + SECTION_SIZE)
#define BUFFER_BYTES   (256u << 10)
#define FRAMES_MAX     4096u
#define PATH_BYTES_MAX 4096u
#define ALIGNMENT      8u

enum { RECORD_MMAP = 1, RECORD_COMM = 3, RECORD_SAMPLE = 9 };
enum { MISC_KERNEL = 1, MISC_USER = 2 };

/* Marks in a call chain: what follows is the kernel's, or the process's. */
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER   ((uint64_t)-512)

/* Of perf_event_attr. */
#define TYPE_SOFTWARE    1u
#define CONFIG_CPU_CLOCK 0u
#define SAMPLE_TYPE                                        \
	(1u << 0 | 1u << 1 | 1u << 2 | 1u << 5 | 1u << 7 | \
		1u << 8) /* IP TID TIME CALLCHAIN CPU PERIOD */
#define FLAG_MMAP          (UINT64_C(1) << 8)
#define FLAG_COMM          (UINT64_C(1) << 9)
#define FLAG_ID_ALL        (UINT64_C(1) << 18)
#define FLAG_CLOCK         (UINT64_C(1) << 25)
#define CLOCK_MONOTONIC_ID 1u

static void flush(struct perf_data *data)
{
	size_t done = 0;

	if (data->out.failed && !data->error)
		data->error = -ENOMEM;
	while (done < data->out.len && !data->error) {
		ssize_t n = write(data->fd, data->out.data + done, data->out.len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			data->error = -errno;
		else
			done += (size_t)n;
	}
	data->written += done;
	bytes_reset(&data->out);
}

static void add_header(struct bytes *out, uint64_t data_size)
{
	bytes_add(out, "PERFILE2", 8);
	bytes_u64(out, HEADER_SIZE);
	bytes_u64(out, ATTR_SIZE + SECTION_SIZE);
	bytes_u64(out, HEADER_SIZE); /* attributes */
	bytes_u64(out, ATTR_SIZE + SECTION_SIZE);
	bytes_u64(out, DATA_AT);
	bytes_u64(out, data_size);
	for (unsigned i = 0; i < 6; i++) /* no event types, no features */
		bytes_u64(out, 0);
}

static void add_attr(struct bytes *out, uint64_t period_ns)
{
	size_t begin = out->len;

	bytes_u32(out, TYPE_SOFTWARE);
	bytes_u32(out, ATTR_SIZE);
	bytes_u64(out, CONFIG_CPU_CLOCK);
	bytes_u64(out, period_ns);
	bytes_u64(out, SAMPLE_TYPE);
	bytes_u64(out, 0); /* read format */
	bytes_u64(out, FLAG_MMAP | FLAG_COMM | FLAG_ID_ALL | FLAG_CLOCK);
	for (unsigned i = 0; i < 5; i++) /* wakeup, breakpoint, branches, user registers */
		bytes_u64(out, 0);
	bytes_u32(out, 0); /* user stack */
	bytes_u32(out, CLOCK_MONOTONIC_ID);
	while (out->len - begin < ATTR_SIZE && !out->failed)
		bytes_u64(out, 0);
	bytes_u64(out, 0); /* ids */
	bytes_u64(out, 0);
}

void perf_data_begin(struct perf_data *data, int fd, uint64_t period_ns)
{
	*data = (struct perf_data){ .fd = fd };
	add_header(&data->out, 0);
	add_attr(&data->out, period_ns);
	flush(data);
}

/* Returns where its size is, for end_record(). */
static size_t begin_record(struct perf_data *data, uint32_t type, uint16_t misc)
{
	bytes_u32(&data->out, type);
	bytes_u16(&data->out, misc);
	bytes_u16(&data->out, 0);
	return data->out.len - 2;
}

static void end_record(struct perf_data *data, size_t size_at)
{
	if (!data->out.failed)
		bytes_set_u16(&data->out, size_at, (uint16_t)(data->out.len - (size_at - 6)));
	if (data->out.len > BUFFER_BYTES || data->out.failed)
		flush(data);
}

static void add_text(struct bytes *out, const char *text)
{
	size_t len = strnlen(text, PATH_BYTES_MAX - 1);

	bytes_add(out, text, len);
	do
		bytes_u8(out, 0);
	while (++len % ALIGNMENT && !out->failed);
}

static void add_place(struct bytes *out, const struct perf_data_place *place)
{
	bytes_u32(out, place->pid);
	bytes_u32(out, place->tid);
	bytes_u64(out, place->time_ns);
	bytes_u32(out, place->cpu < 0 ? 0 : (uint32_t)place->cpu);
	bytes_u32(out, 0);
}

void perf_data_sample(struct perf_data *data, const struct perf_data_place *place,
	uint64_t weight_ns, const uint64_t *frames, uint32_t count, uint64_t kernel_begin)
{
	bool in_kernel = count && frames[0] >= kernel_begin;
	uint32_t kernel_count = 0;

	if (!count)
		return;
	if (count > FRAMES_MAX)
		count = FRAMES_MAX;
	while (kernel_count < count && frames[kernel_count] >= kernel_begin)
		kernel_count++;
	size_t size_at = begin_record(data, RECORD_SAMPLE, in_kernel ? MISC_KERNEL : MISC_USER);
	bytes_u64(&data->out, frames[0]);
	add_place(&data->out, place);
	bytes_u64(&data->out, weight_ns);
	bytes_u64(&data->out, (uint64_t)count + (kernel_count != 0) + (kernel_count < count));
	for (uint32_t i = 0; i < count; i++) {
		if (i == 0 && kernel_count)
			bytes_u64(&data->out, CONTEXT_KERNEL);
		if (i == kernel_count)
			bytes_u64(&data->out, CONTEXT_USER);
		bytes_u64(&data->out, frames[i]);
	}
	end_record(data, size_at);
}

void perf_data_comm(struct perf_data *data, const struct perf_data_place *place, const char *name)
{
	size_t size_at = begin_record(data, RECORD_COMM, 0);

	bytes_u32(&data->out, place->pid);
	bytes_u32(&data->out, place->tid);
	add_text(&data->out, name);
	add_place(&data->out, place);
	end_record(data, size_at);
}

void perf_data_map(struct perf_data *data, const struct perf_data_place *place,
	const struct perf_data_map *map)
{
	size_t size_at = begin_record(data, RECORD_MMAP, MISC_USER);

	bytes_u32(&data->out, place->pid);
	bytes_u32(&data->out, place->tid);
	bytes_u64(&data->out, map->begin);
	bytes_u64(&data->out, map->end - map->begin);
	bytes_u64(&data->out, map->file_offset);
	add_text(&data->out, map->path);
	add_place(&data->out, place);
	end_record(data, size_at);
}

int perf_data_end(struct perf_data *data)
{
	flush(data);
	add_header(&data->out, data->written - DATA_AT);
	if (!data->error && lseek(data->fd, 0, SEEK_SET) < 0)
		data->error = -errno;
	flush(data);
	bytes_done(&data->out);
	return data->error;
}
