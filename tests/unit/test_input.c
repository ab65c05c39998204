/* input.c: files, pipes and memory give the same bytes. */
#include "unit/test.h"

#include <errno.h>
#include <unistd.h>

#include <zstd.h>

#include "base/diag.h"
#include "base/input.h"

static void test_memory(void **state)
{
	struct input in;
	uint8_t *data;
	size_t size;

	(void)state;
	input_from_memory(&in, "hello world", 11);
	assert_int_equal(input_read_all(&in, 100, &data, &size, NULL), 0);
	assert_int_equal(size, 11);
	assert_string_equal((char *)data, "hello world");
	free(data);
	input_close(&in);
	input_from_memory(&in, "hello world", 11);
	assert_int_equal(input_read_all(&in, 10, &data, &size, NULL), -EFBIG);
	input_close(&in);
}

static void test_pipe(void **state)
{
	int ends[2];
	struct input in;
	uint8_t *data;
	size_t size;
	char big[10000];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	memset(big, 'q', sizeof(big));
	assert_int_equal(write(ends[1], big, sizeof(big)), sizeof(big));
	close(ends[1]);
	assert_int_equal(input_from_fd(&in, ends[0], "a pipe"), 0);
	assert_int_equal(in.size_bytes, 0);
	assert_int_equal(input_read_all(&in, 1 << 20, &data, &size, NULL), 0);
	assert_int_equal(size, sizeof(big));
	assert_memory_equal(data, big, size);
	free(data);
	input_close(&in);
}

static void test_errors(void **state)
{
	struct input in;
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(input_open(&in, "/no/such/file", &diag), -ENOENT);
	assert_string_equal(diag.text, "cannot open '/no/such/file': No such file or directory");
	diag = (struct diag){ 0 };
	assert_int_equal(input_open(&in, "/", &diag), -EISDIR);
	assert_string_equal(diag.text, "cannot read '/': Is a directory");
}

/*
 * Unpacks the content in pieces of any size, with reads of any size. Bytes that are not packed are
 * returned unchanged.
 */
static void test_unpack(void **state)
{
	static uint8_t content[300000];
	static uint8_t packed[400000];
	static uint8_t out[sizeof(content) + 1];
	static const size_t pieces[] = { 1, 13, 4096, 200000, sizeof(out) };

	(void)state;
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (uint8_t)(i * i >> 9);
	size_t size = ZSTD_compress(packed, sizeof(packed), content, sizeof(content), 3);
	assert_false(ZSTD_isError(size));
	for (size_t p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
		struct input in;
		size_t len = 0;
		ssize_t got;
		input_from_memory(&in, packed, size);
		assert_int_equal(input_unpack(&in, NULL), 0);
		assert_int_equal(in.size_bytes, 0);
		while ((got = input_read(&in, out + len,
				pieces[p] < sizeof(out) - len ? pieces[p] : sizeof(out) - len,
				NULL)) > 0)
			len += (size_t)got;
		assert_int_equal(got, 0);
		assert_int_equal(len, sizeof(content));
		assert_int_equal(in.offset, len);
		assert_memory_equal(out, content, len);
		input_close(&in);
	}
	for (size_t cut = 0; cut < 6; cut++) {
		struct input in;
		uint8_t *data;
		input_from_memory(&in, content + 5000, cut);
		assert_int_equal(input_unpack(&in, NULL), 0);
		assert_int_equal(input_read_all(&in, 100, &data, &size, NULL), 0);
		assert_int_equal(size, cut);
		assert_memory_equal(data, content + 5000, cut);
		assert_int_equal(in.offset, cut);
		free(data);
		input_close(&in);
	}
}

/* Bytes before the damage are returned; then the read fails with a diagnosis. */
static void test_unpack_damaged(void **state)
{
	static uint8_t content[600000];
	static uint8_t packed[700000];
	static uint8_t out[sizeof(content)];
	struct diag diag = { 0 };
	struct input in;
	uint64_t random = 1;
	size_t len = 0;
	ssize_t got;

	(void)state;
	for (size_t i = 0; i < sizeof(content); i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		content[i] = (uint8_t)(random >> 61);
	}
	size_t size = ZSTD_compress(packed, sizeof(packed), content, sizeof(content), 3);
	assert_false(ZSTD_isError(size));
	memset(packed + size * 3 / 4, 0xff, 64);
	input_from_memory(&in, packed, size);
	assert_int_equal(input_unpack(&in, NULL), 0);
	while ((got = input_read(&in, out + len, sizeof(out) - len, &diag)) > 0)
		len += (size_t)got;
	assert_int_equal(got, -EBADMSG);
	assert_non_null(strstr(diag.text, "cannot unpack 'memory': "));
	assert_true(len >= sizeof(content) / 4);
	assert_memory_equal(out, content, len);
	input_close(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_unpack),
		cmocka_unit_test(test_unpack_damaged),
	};

	return cmocka_run_group_tests_name("input", tests, NULL, NULL);
}
