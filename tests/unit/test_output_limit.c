/*
 * output_limit.c: when a recording ends because of its size; tests/feature/recording/output.sh covers the
 * space on the disk.
 */
#include "unit/test.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/diag.h"
#include "pipeline/output_limit.h"

static void test_no_limit(void **state)
{
	struct output_limit limit;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(output_limit_init(&limit, ends[1], "x", 0, true, NULL), 0);
	assert_false(limit.on_disk);
	assert_int_equal(output_limit_check(&limit, UINT64_C(1) << 50), OUTPUT_NO_LIMIT);
	assert_false(output_limit_is_full(&limit, UINT64_C(1) << 50));
	close(ends[0]);
	close(ends[1]);
}

/*
 * The recording ends while two more flushes as large as the largest still fit; the first flush,
 * with the file's header, does not count.
 */
static void test_size(void **state)
{
	struct output_limit limit;
	int ends[2];
	uint64_t size = 90000;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(output_limit_init(&limit, ends[1], "x", 1000000, false, NULL), 0);
	assert_int_equal(output_limit_check(&limit, size), OUTPUT_NO_LIMIT);
	while (output_limit_check(&limit, size + 10000) == OUTPUT_NO_LIMIT)
		size += 10000;
	size += 10000;
	assert_int_equal(size, 880000);
	assert_string_equal(limit.reason, "the recording has reached its greatest size, 1.00 MB");
	assert_int_equal(output_limit_check(&limit, 1), OUTPUT_SIZE_LIMIT);
	/* An eighth of a small file is reserved for the final events. */
	assert_false(output_limit_is_full(&limit, 874999));
	assert_true(output_limit_is_full(&limit, 875000));
	close(ends[0]);
	close(ends[1]);
}

/*
 * However large the flushes are, at least half of the size is used. Samples and names of later
 * flushes stop at the limit.
 */
static void test_large_flushes(void **state)
{
	static const uint64_t flushes[] = { 1000, 20000, 45000, 90000, 130000, 200000, 300000,
		600000 };
	struct output_limit limit;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	for (size_t i = 0; i < sizeof(flushes) / sizeof(flushes[0]); i++) {
		uint64_t size = 5000;
		assert_int_equal(output_limit_init(&limit, ends[1], "x", 300000, false, NULL), 0);
		while (output_limit_check(&limit, size) == OUTPUT_NO_LIMIT)
			for (uint64_t n = 0; n < flushes[i] && !output_limit_is_full(&limit, size);
				n += 100)
				size += 100; /* a sample */
		assert_in_range(size, 150000, 300000);
		/* The data that waits at that time, and its names. */
		for (unsigned n = 0; n < 10000 && !output_limit_is_full(&limit, size); n++)
			size += 100;
		assert_in_range(size, 150000, 270000);
		for (unsigned n = 0; n < 10000 && !output_limit_is_over(&limit, size); n++)
			size += 100;
		assert_in_range(size, 300000, 300100);
	}
	close(ends[0]);
	close(ends[1]);
}

/* These are hints to the kernel; the content of the file does not change. */
static void test_give_back(void **state)
{
	struct output_limit limit;
	static uint8_t piece[700000];
	char path[] = "/tmp/test_output_limit.XXXXXX";
	int fd = mkstemp(path);
	uint64_t size = 0;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(output_limit_init(&limit, fd, path, 0, true, NULL), 0);
	for (unsigned i = 0; i < 8; i++) {
		memset(piece, (int)i + 1, sizeof(piece));
		assert_int_equal(write(fd, piece, sizeof(piece)), sizeof(piece));
		size += sizeof(piece);
		(void)output_limit_check(&limit, size);
	}
	assert_true(limit.given_bytes > 0 && limit.given_bytes < limit.started_bytes);
	assert_true(limit.started_bytes <= size);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(pread(fd, piece, sizeof(piece), (off_t)(i * sizeof(piece))),
			sizeof(piece));
		for (size_t b = 0; b < sizeof(piece); b += 997)
			assert_int_equal(piece[b], i + 1);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_limit),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_large_flushes),
		cmocka_unit_test(test_give_back),
	};

	return cmocka_run_group_tests_name("output_limit", tests, NULL, NULL);
}
