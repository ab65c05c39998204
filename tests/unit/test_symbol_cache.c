/*
 * symbol_cache.c: a file is found by its own build id only, whole and undamaged; a file in its place (another
 * one, a link, a cut or changed copy) is never used; times of use order the list; downloads are locked.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "symbolize/symbol_cache.h"
#include "unit/elf_builder.h"

/* The build id of elf_builder.h. */
#define BUILD_ID "00112233445566778899aabbccddeeff01234567"
#define OTHER_ID "10112233445566778899aabbccddeeff01234567"
#define STORED   ".build-id/00/112233445566778899aabbccddeeff01234567.debug"

static char folder[32];

static int set_up(void **state)
{
	struct symbol_cache *cache = test_malloc(sizeof(*cache));

	strcpy(folder, "/tmp/spoor-cache-XXXXXX");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(setenv("SPOOR_SYMBOL_CACHE", folder, 1), 0);
	assert_int_equal(symbol_cache_open(cache, true, NULL), 0);
	*state = cache;
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	symbol_cache_close(*state);
	test_free(*state);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command); // NOLINT: a folder of mkdtemp()
}

/* An unlinked file with these bytes. */
static int file_of(const void *data, size_t size)
{
	char path[] = "/tmp/spoor-file-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(fd, data, size), size);
	return fd;
}

static int elf_file(void)
{
	cleanup(bytes_done) struct bytes elf = { 0 };

	elf_build(&elf, true);
	return file_of(elf.data, elf.len);
}

static void add(const struct symbol_cache *cache)
{
	cleanup(closep) int fd = elf_file();
	char build_id[BUILD_ID_TEXT_SIZE];

	assert_int_equal(symbol_cache_add(cache, fd, NULL, build_id, NULL), 0);
	assert_string_equal(build_id, BUILD_ID);
}

static int find(const struct symbol_cache *cache, const char *build_id)
{
	cleanup(closep) int fd = -1;
	int result = symbol_cache_find(cache, build_id, &fd);

	assert_int_equal(fd >= 0, result == 0);
	return result;
}

/* Changes one byte of the cached copy, or cuts it to `at` bytes. */
static void damage(const struct symbol_cache *cache, off_t at, bool cut)
{
	cleanup(closep) int fd = openat(cache->fd, STORED, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_true(fd >= 0);
	if (cut) {
		assert_int_equal(ftruncate(fd, at), 0);
		return;
	}
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
}

static off_t stored_size(const struct symbol_cache *cache)
{
	struct stat st;

	assert_int_equal(fstatat(cache->fd, STORED, &st, 0), 0);
	return st.st_size;
}

static void test_a_file_is_found_by_its_build_id(void **state)
{
	const struct symbol_cache *cache = *state;

	assert_int_equal(find(cache, BUILD_ID), -ENOENT);
	assert_false(symbol_cache_has(cache, BUILD_ID));
	add(cache);
	assert_int_equal(find(cache, BUILD_ID), 0);
	assert_true(symbol_cache_has(cache, BUILD_ID));
	assert_int_equal(find(cache, OTHER_ID), -ENOENT);
	add(cache); /* once more: replaced, as a whole */
	assert_int_equal(find(cache, BUILD_ID), 0);
	assert_int_equal(symbol_cache_remove(cache, BUILD_ID), 0);
	assert_int_equal(find(cache, BUILD_ID), -ENOENT);
	assert_int_equal(symbol_cache_remove(cache, BUILD_ID), -ENOENT);
}

static void test_texts_that_are_no_build_id(void **state)
{
	static const char *const texts[] = { "", "00", "0011223", "001122334", "0011223G",
		"../../etc", "00112233/5566", "0011AABB" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_false(build_id_is_valid(texts[i]));
		assert_int_equal(find(*state, texts[i]), -ENOENT);
		assert_false(symbol_cache_has(*state, texts[i]));
	}
	assert_true(build_id_is_valid("00112233"));
}

static void test_a_file_with_another_build_id_is_refused(void **state)
{
	cleanup(closep) int fd = elf_file();
	char build_id[BUILD_ID_TEXT_SIZE];
	struct diag diag = { 0 };

	assert_int_equal(symbol_cache_add(*state, fd, OTHER_ID, build_id, &diag), -EBADMSG);
	assert_non_null(strstr(diag.text, OTHER_ID));
	assert_int_equal(find(*state, OTHER_ID), -ENOENT);
	assert_int_equal(find(*state, BUILD_ID), -ENOENT);
}

static void test_files_without_symbols_are_refused(void **state)
{
	cleanup(bytes_done) struct bytes elf = { 0 };
	char build_id[BUILD_ID_TEXT_SIZE];

	elf_build(&elf, true);
	for (size_t size = 0; size < elf.len; size += 97) {
		cleanup(closep) int cut = file_of(elf.data, size);
		assert_true(symbol_cache_add(*state, cut, NULL, build_id, NULL) < 0);
	}
	cleanup(closep) int text = file_of("no ELF file", 11);
	assert_true(symbol_cache_add(*state, text, NULL, build_id, NULL) < 0);
	assert_int_equal(find(*state, BUILD_ID), -ENOENT);
}

static void test_a_damaged_copy_is_not_used(void **state)
{
	const struct symbol_cache *cache = *state;
	off_t size;

	add(cache);
	size = stored_size(cache);
	/* Bytes of code, of names, of the seal. */
	for (off_t at = 0; at < size; at += at < size - 16 ? 61 : 1) {
		damage(cache, at, false);
		assert_int_equal(find(cache, BUILD_ID), -EBADMSG);
		damage(cache, at, false);
	}
	assert_int_equal(find(cache, BUILD_ID), 0);
	damage(cache, size - 1, true);
	assert_int_equal(find(cache, BUILD_ID), -EBADMSG);
	damage(cache, 0, true);
	assert_int_equal(find(cache, BUILD_ID), -EBADMSG);
	add(cache);
	assert_int_equal(find(cache, BUILD_ID), 0);
}

static void test_a_link_in_the_cache_is_not_followed(void **state)
{
	const struct symbol_cache *cache = *state;
	char target[64];

	add(cache);
	(void)snprintf(target, sizeof(target), "%s/elsewhere", folder);
	assert_int_equal(renameat(cache->fd, STORED, AT_FDCWD, target), 0);
	assert_int_equal(symlinkat(target, cache->fd, STORED), 0);
	assert_true(find(cache, BUILD_ID) < 0);
	add(cache); /* replaces the link, not its target */
	assert_int_equal(find(cache, BUILD_ID), 0);
	assert_int_equal(access(target, F_OK), 0);
}

static void test_the_list_has_the_least_recently_used_first(void **state)
{
	const struct symbol_cache *cache = *state;
	const struct timespec old[2] = { { .tv_sec = 1000000 }, { .tv_sec = 1000000 } };
	struct symbol_cache_list list;

	assert_int_equal(symbol_cache_read(cache, &list, NULL), 0);
	assert_int_equal(list.entries.count, 0);
	add(cache);
	/* A file that was put there by hand, and one that is no symbol file. */
	cleanup(closep) int other = openat(cache->fd, ".build-id/00/00112233.debug",
		O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cleanup(closep) int strange = openat(cache->fd, ".build-id/00/strange.debug",
		O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(other >= 0 && strange >= 0);
	assert_int_equal(utimensat(cache->fd, STORED, old, 0), 0);
	assert_int_equal(symbol_cache_read(cache, &list, NULL), 0);
	assert_int_equal(list.entries.count, 2);
	assert_string_equal(list.entries.items[0].build_id, BUILD_ID);
	assert_int_equal(list.entries.items[0].used_s, 1000000);
	assert_string_equal(list.entries.items[1].build_id, "0000112233");
	assert_int_equal(list.size_bytes,
		list.entries.items[0].size_bytes + list.entries.items[1].size_bytes);
	vec_done(&list.entries);
	/* Its use is noted. */
	assert_int_equal(find(cache, BUILD_ID), 0);
	assert_int_equal(symbol_cache_read(cache, &list, NULL), 0);
	assert_int_equal(list.entries.count, 2);
	for (uint32_t i = 0; i < list.entries.count; i++)
		assert_true(list.entries.items[i].used_s > 1000000);
	vec_done(&list.entries);
}

static void test_a_download_is_resumed_and_locked(void **state)
{
	const struct symbol_cache *cache = *state;
	struct stat st;
	int first;
	int second;

	assert_int_equal(symbol_cache_open_download(cache, BUILD_ID, "http://a", &first, NULL), 0);
	assert_int_equal(write(first, "begin", 5), 5);
	assert_int_equal(symbol_cache_open_download(cache, BUILD_ID, "http://a", &second, NULL),
		-EBUSY);
	/* The begin of a file of another server is not the begin of this one. */
	assert_int_equal(symbol_cache_open_download(cache, BUILD_ID, "http://b", &second, NULL), 0);
	assert_int_equal(fstat(second, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(close(second), 0);
	assert_int_equal(close(first), 0);
	assert_int_equal(symbol_cache_open_download(cache, BUILD_ID, "http://a", &first, NULL), 0);
	assert_int_equal(fstat(first, &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(close(first), 0);
	/* It is no symbol file yet. */
	assert_int_equal(find(cache, BUILD_ID), -ENOENT);
	symbol_cache_end_download(cache, BUILD_ID, "http://a");
	assert_int_equal(symbol_cache_open_download(cache, BUILD_ID, "http://a", &first, NULL), 0);
	assert_int_equal(fstat(first, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_int_equal(close(first), 0);
}

static void test_a_relative_folder_is_refused(void **state)
{
	struct symbol_cache other;
	struct diag diag = { 0 };

	(void)state;
	assert_int_equal(setenv("SPOOR_SYMBOL_CACHE", "relative", 1), 0);
	assert_int_equal(symbol_cache_open(&other, true, &diag), -EINVAL);
	assert_non_null(strstr(diag.text, "absolute"));
	/* It can be searched and closed all the same. */
	assert_int_equal(find(&other, OTHER_ID), -ENOENT);
	symbol_cache_close(&other);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_a_file_is_found_by_its_build_id),
		CASE(test_texts_that_are_no_build_id),
		CASE(test_a_file_with_another_build_id_is_refused),
		CASE(test_files_without_symbols_are_refused),
		CASE(test_a_damaged_copy_is_not_used),
		CASE(test_a_link_in_the_cache_is_not_followed),
		CASE(test_the_list_has_the_least_recently_used_first),
		CASE(test_a_download_is_resumed_and_locked),
		CASE(test_a_relative_folder_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
