/*
 * packed_file.c: if the program is killed during a write, the file is complete after each page for
 * our reader and for `zstd -d`. The second half is skipped if zstd is not installed.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/diag.h"
#include "base/input.h"
#include "nettrace/nettrace_read.h"
#include "nettrace/packed_file.h"
#include "trace/absorb.h"
#include "unit/nettrace_demo.h"

#define CONTENT_MAX (4u << 20)

/* A simulated disk in memory. */
static struct {
	uint8_t data[CONTENT_MAX];
	size_t size;
	unsigned states;
	unsigned stock_every; /* `zstd -d` checks each n-th state */
	unsigned stock_asked;
	size_t fail_at;    /* nothing is written after this offset; 0: no limit */
	unsigned fail_nth; /* the write of this page fails; 0: none */
	void (*check)(const uint8_t *content, size_t size);
} disk;

static bool have_zstd;
static char folder[64];

static uint8_t *unpack(const uint8_t *data, size_t size, size_t *ret_size)
{
	struct input in;
	struct diag diag = { 0 };
	uint8_t *content;

	input_from_memory(&in, data, size);
	assert_int_equal(input_unpack(&in, &diag), 0);
	if (input_read_all(&in, 8 * CONTENT_MAX, &content, ret_size, &diag) < 0)
		fail_msg("state %u, %zu bytes: %s", disk.states, size, diag.text);
	input_close(&in);
	return content;
}

/* Runs `zstd -d FILE`. It leaves no output if the file is not complete. */
static void ask_stock(const uint8_t *data, size_t size, const uint8_t *content, size_t content_size)
{
	char packed[96];
	char plain[96];
	struct stat status;

	snprintf(packed, sizeof(packed), "%s/state.zst", folder);
	snprintf(plain, sizeof(plain), "%s/state", folder);
	int fd = open(packed, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, size), size);
	close(fd);
	pid_t child = fork();
	if (child == 0) {
		execlp("zstd", "zstd", "-q", "-d", "-f", packed, (char *)NULL);
		_exit(127);
	}
	int code;
	assert_int_equal(waitpid(child, &code, 0), child);
	if (code)
		fail_msg("state %u, %zu bytes: zstd -d ends with %d", disk.states, size, code);
	fd = open(plain, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	assert_int_equal(status.st_size, content_size);
	uint8_t *read_back = malloc(content_size + 1);
	assert_int_equal(read(fd, read_back, content_size), content_size);
	assert_memory_equal(read_back, content, content_size);
	free(read_back);
	close(fd);
	unlink(plain);
	unlink(packed);
	disk.stock_asked++;
}

static void check_disk(void)
{
	size_t size;
	uint8_t *content = unpack(disk.data, disk.size, &size);

	disk.check(content, size);
	if (have_zstd && disk.states % disk.stock_every == 0)
		ask_stock(disk.data, disk.size, content, size);
	disk.states++;
	free(content);
}

static ssize_t write_pages(int fd, const void *data, size_t size, off_t offset)
{
	const uint8_t *from = data;
	size_t at = (size_t)offset;
	size_t end = at + size;

	(void)fd;
	assert_true(end <= sizeof(disk.data));
	while (at < end) {
		size_t page_end = (at | 4095) + 1;
		size_t n = (page_end < end ? page_end : end) - at;
		if ((disk.fail_at && at + n > disk.fail_at) ||
			(disk.fail_nth && --disk.fail_nth == 0)) {
			errno = ENOSPC;
			return at > (size_t)offset ? (ssize_t)(at - (size_t)offset) : -1;
		}
		if (disk.size < at)
			memset(disk.data + disk.size, 0, at - disk.size);
		memcpy(disk.data + at, from, n);
		at += n;
		from += n;
		if (disk.size < at)
			disk.size = at;
		check_disk();
	}
	return (ssize_t)size;
}

/* ---- a recording ---- */

static uint32_t last_events;

static void check_recording(const uint8_t *content, size_t size)
{
	struct diag diag = { 0 };
	struct trace trace;
	struct input in;
	struct source *source;
	struct event event;
	uint32_t events = 0;
	int r;

	assert_int_equal(trace_init(&trace), 0);
	input_from_memory(&in, content, size);
	assert_int_equal(nettrace_source.open(&in, &trace, true, &source, &diag), 0);
	while ((r = nettrace_source.next(source, &event, &diag)) > 0) {
		assert_true(absorb_event(&trace, &event, &diag) >= 0);
		events++;
	}
	if (r < 0)
		fail_msg("state %u: %s", disk.states, diag.text);
	assert_true(events >= last_events);
	last_events = events;
	nettrace_source.close(source);
	trace_done(&trace);
}

static void test_recording_at_every_instant(void **state)
{
	struct diag diag = { 0 };
	int fd = memfd_create("empty", MFD_CLOEXEC);

	(void)state;
	memset(&disk, 0, sizeof(disk));
	disk.stock_every = 1;
	disk.check = check_recording;
	last_events = 0;
	assert_int_equal(demo_write(&(struct nettrace_sink_options){ .fd = fd,
					    .name = "disk",
					    .packed = true,
					    .write_at = write_pages },
				 &diag),
		0);
	assert_true(disk.states > 20);
	assert_true(last_events > DEMO_SAMPLES);
	if (have_zstd)
		assert_int_equal(disk.stock_asked, disk.states);
	close(fd);
}

/* ---- bytes of all kinds and sizes ---- */

static uint8_t expected[CONTENT_MAX];
static size_t expected_size; /* hash of the written bytes */
static size_t before_size;   /* hash of the bytes written before */

static void check_bytes(const uint8_t *content, size_t size)
{
	static const uint8_t zero[4];

	assert_true(size >= 4);
	assert_true(size - 4 == expected_size || size - 4 == before_size);
	assert_memory_equal(content, expected, size - 4);
	assert_memory_equal(content + size - 4, zero, 4);
}

static size_t add_some(struct packed_file *file, uint64_t *random, unsigned round)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	size_t size = (size_t)(*random >> 40) % (round % 5 == 0          ? 20000
							: round % 3 == 0 ? 3
									 : 700) +
		      1;

	for (size_t i = 0; i < size; i++) {
		*random = *random * 6364136223846793005u + 1442695040888963407u;
		/* every second piece cannot be compressed */
		expected[expected_size + i] =
			round % 2 ? (uint8_t)(*random >> 50) : (uint8_t)(i / 7);
	}
	assert_int_equal(packed_file_add(file, expected + expected_size, size), 0);
	return size;
}

static void test_bytes_at_every_instant(void **state)
{
	struct packed_file *file;
	uint64_t random = 42;

	(void)state;
	memset(&disk, 0, sizeof(disk));
	disk.stock_every = 17;
	disk.check = check_bytes;
	expected_size = before_size = 0;
	assert_int_equal(packed_file_new(&file), 0);
	for (unsigned round = 1; round < 200; round++) {
		before_size = expected_size;
		size_t size = add_some(file, &random, round);
		expected_size += size;
		assert_int_equal(packed_file_put(file, -1, write_pages), 0);
		before_size = expected_size;
		check_disk();
	}
	assert_true(disk.states > 600);
	disk.size = (size_t)packed_file_size(file);
	check_disk();
	packed_file_free(file);
}

/*
 * No room at each possible offset: the earlier bytes stay complete, and writing continues when
 * there is room.
 */
static void test_no_room(void **state)
{
	unsigned failures = 0;

	(void)state;
	for (unsigned way = 0; way < 16; way++) {
		struct packed_file *file;
		uint64_t random = way;
		memset(&disk, 0, sizeof(disk));
		disk.stock_every = 13;
		disk.check = check_bytes;
		expected_size = before_size = 0;
		assert_int_equal(packed_file_new(&file), 0);
		for (unsigned round = 1; round < 60; round++) {
			expected_size += add_some(file, &random, round);
			if (way < 8)
				disk.fail_at = disk.size + way * 2048 + 1;
			else
				disk.fail_nth = way - 7;
			int result = packed_file_put(file, -1, write_pages);
			disk.fail_at = disk.fail_nth = 0;
			if (result < 0) {
				size_t all = expected_size;
				assert_int_equal(result, -ENOSPC);
				failures++;
				expected_size = before_size; /* the content of the file */
				if (disk.size)
					check_disk();
				expected_size = all;
				if (round % 4 == 0) /* the rest is written with the next bytes */
					continue;
				assert_int_equal(packed_file_put(file, -1, write_pages), 0);
			}
			before_size = expected_size;
			check_disk();
		}
		assert_int_equal(packed_file_put(file, -1, write_pages), 0);
		before_size = expected_size;
		check_disk();
		packed_file_free(file);
	}
	assert_true(failures > 150);
}

/* A real file: shortened when the disk is full, and without reserved room at the end. */
static size_t full_at;

static ssize_t write_stingy(int fd, const void *data, size_t size, off_t offset)
{
	if (full_at && (size_t)offset + size > full_at) {
		if ((size_t)offset >= full_at) {
			errno = ENOSPC;
			return -1;
		}
		size = full_at - (size_t)offset;
	}
	return pwrite(fd, data, size > 777 ? 777 : size, offset);
}

static size_t file_size(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return (size_t)status.st_size;
}

static void read_file(int fd)
{
	disk.size = file_size(fd);
	assert_int_equal(pread(fd, disk.data, disk.size, 0), disk.size);
	check_disk();
}

static void test_full_disk(void **state)
{
	struct diag diag = { 0 };
	struct demo demo;
	int fd = memfd_create("full", MFD_CLOEXEC);

	(void)state;
	memset(&disk, 0, sizeof(disk));
	disk.stock_every = 1;
	disk.check = check_recording;
	last_events = 0;
	full_at = 0;
	assert_int_equal(demo_begin(&demo,
				 &(struct nettrace_sink_options){ .fd = fd,
					 .name = "full",
					 .packed = true,
					 .write_at = write_stingy },
				 &diag),
		0);
	assert_int_equal(file_size(fd), 4096);
	assert_int_equal(demo_opening(&demo, &diag), 0);
	assert_int_equal(nettrace_sink.flush(demo.sink, &diag), 0);
	read_file(fd);
	uint32_t events = last_events;
	uint64_t bytes = nettrace_sink_counts(demo.sink)->bytes;
	size_t size = file_size(fd);
	assert_true(bytes > 0 && bytes < size);
	full_at = size + 100;
	assert_int_equal(demo_samples(&demo, &diag), -ENOSPC);
	assert_string_equal(diag.text, "cannot write 'full': No space left on device");
	assert_int_equal(file_size(fd), size);
	assert_int_equal(nettrace_sink_counts(demo.sink)->bytes, bytes);
	read_file(fd);
	assert_int_equal(last_events, events);
	full_at = 0;
	assert_int_equal(nettrace_sink.flush(demo.sink, NULL), 0);
	assert_int_equal(demo_closing(&demo, NULL), 0);
	assert_int_equal(file_size(fd), nettrace_sink_counts(demo.sink)->bytes);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), file_size(fd));
	read_file(fd);
	assert_true(last_events > DEMO_FLUSH_EVERY);
	demo_done(&demo);
	close(fd);
}

/* ---- where nothing can be rewritten ---- */

static void test_pipe(void **state)
{
	static uint8_t data[1 << 20];
	int ends[2];
	size_t size = 0;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		_exit(demo_write(&(struct nettrace_sink_options){ .fd = ends[1],
					 .name = "pipe",
					 .packed = true },
			      NULL) != 0);
	}
	close(ends[1]);
	for (ssize_t n; (n = read(ends[0], data + size, sizeof(data) - size)) > 0;)
		size += (size_t)n;
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ends[0]);
	memset(&disk, 0, sizeof(disk));
	disk.stock_every = 1;
	disk.check = check_recording;
	last_events = 0;
	memcpy(disk.data, data, size);
	disk.size = size;
	check_disk();
	uint32_t all = last_events;
	/*
	 * Truncated anywhere: the bytes before the cut can be read, and never fewer than with a
	 * shorter file.
	 */
	uint32_t most = 0;
	for (size_t cut = 5; cut < size; cut += 61) {
		struct diag diag = { 0 };
		struct trace trace;
		struct input in;
		struct source *source;
		struct event event;
		uint32_t events = 0;
		int r;
		assert_int_equal(trace_init(&trace), 0);
		uint8_t *exact = malloc(cut);
		memcpy(exact, data, cut);
		input_from_memory(&in, exact, cut);
		assert_int_equal(input_unpack(&in, &diag), 0);
		assert_int_equal(nettrace_source.open(&in, &trace, true, &source, &diag), 0);
		while ((r = nettrace_source.next(source, &event, &diag)) > 0)
			events++;
		/* A file that lacks only the end of its frame is complete. */
		assert_true(r == -EBADMSG || (r == 0 && events == all));
		assert_true(events >= most);
		most = events;
		nettrace_source.close(source);
		trace_done(&trace);
		free(exact);
	}
	assert_true(most > DEMO_SAMPLES);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_packed_file.XXXXXX");
	have_zstd = system("command -v zstd >/dev/null") == 0;
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	rmdir(folder);
	if (!have_zstd)
		printf("skipped: stock zstd is not installed; what it says of the files is not known\n");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recording_at_every_instant),
		cmocka_unit_test(test_bytes_at_every_instant),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_pipe),
	};

	return cmocka_run_group_tests_name("packed_file", tests, set_up, tear_down);
}
