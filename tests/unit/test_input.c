/* input.c: files, pipes and memory give the same bytes. */
#include "unit/test.h"

#include <errno.h>
#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests_name("input", tests, NULL, NULL);
}
