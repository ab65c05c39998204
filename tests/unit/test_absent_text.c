/* absent_text.c: a text of this process, a number that is no address, and one of a process that has ended. */
#include "unit/test.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording/absent_text.h"

#define SECOND UINT64_C(1000000000)

static void test_texts(void **state)
{
	struct absent_texts texts = { .fd = -1 };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const uint32_t pid = (uint32_t)getpid();
	char text[ABSENT_TEXT_MAX + 1];

	(void)state;
	char *pages =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	const uint64_t address = (uintptr_t)pages;

	strcpy(pages + 5, "tea");
	if (absent_text_read(&texts, pid, address + 5, 1, text) == ABSENT_TEXT_UNREADABLE)
		skip(); /* without the right to read its own memory */
	assert_string_equal(text, "tea");
	/* Over the end of a page. */
	strcpy(pages + page - 3, "coffee");
	assert_int_equal(absent_text_read(&texts, pid, address + page - 3, 1, text),
		ABSENT_TEXT_READ);
	assert_string_equal(text, "coffee");
	memset(pages + page, 'x', page);
	assert_int_equal(absent_text_read(&texts, pid, address + page - 3, 1, text),
		ABSENT_TEXT_READ);
	assert_int_equal(strlen(text), ABSENT_TEXT_MAX);
	/* Memory that ends before the text does. */
	assert_int_equal(munmap(pages + 2 * page, page), 0);
	assert_int_equal(absent_text_read(&texts, pid, address + 2 * page - 4, 1, text),
		ABSENT_TEXT_READ);
	assert_string_equal(text, "xxxx");

	/* No memory there; a second later it is looked at again. */
	assert_int_equal(absent_text_read(&texts, pid, address + 2 * page, 1, text),
		ABSENT_TEXT_NONE);
	assert_ptr_equal(mmap(pages + 2 * page, page, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		pages + 2 * page);
	assert_int_equal(absent_text_read(&texts, pid, address + 2 * page, 1, text),
		ABSENT_TEXT_NONE);
	assert_int_equal(absent_text_read(&texts, pid, address + 2 * page, 2 * SECOND, text),
		ABSENT_TEXT_READ);
	assert_string_equal(text, "");
	assert_int_equal(absent_text_read(&texts, pid, 4711, 1, text), ABSENT_TEXT_NONE);
	assert_int_equal(absent_text_read(&texts, pid, UINT64_MAX - 1, 1, text), ABSENT_TEXT_NONE);
	assert_int_equal(munmap(pages, 3 * page), 0);
	absent_texts_done(&texts);
}

static void test_ended(void **state)
{
	struct absent_texts texts = { .fd = -1 };
	char text[ABSENT_TEXT_MAX + 1];
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(absent_text_read(&texts, (uint32_t)pid, 0x7f0012345678, 1, text),
		ABSENT_TEXT_UNREADABLE);
	assert_int_equal(absent_text_read(&texts, (uint32_t)pid, 12345678901, 1, text),
		ABSENT_TEXT_NONE);
	absent_texts_done(&texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
