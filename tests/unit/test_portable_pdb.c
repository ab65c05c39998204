/*
 * portable_pdb.c, embedded_pdb.c: the lines of tests/data/lines/Lines.cs, from a PDB and from inside
 * an assembly; damaged copies give no crash.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bytes.h"
#include "code/portable_pdb.h"
#include "image/embedded_pdb.h"
#include "image/image_file.h"
#include "image/pe.h"

#define CORPUS     TEST_DATA "/../fuzz/corpus/portable_pdb/"
#define ROOM       (64u << 10)
#define TOKEN_SUM  0x06000001u
#define TOKEN_HIDE 0x06000002u

static size_t read_file(const char *path, uint8_t *data)
{
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	ssize_t size = read(fd, data, ROOM);
	assert_true(size > 0 && size < (ssize_t)ROOM);
	close(fd);
	return (size_t)size;
}

static void check_line(const struct portable_pdb *pdb, uint32_t token, uint32_t il, uint32_t line,
	const char *file)
{
	struct bytes path = { 0 };
	uint32_t document = 0;
	uint32_t found = 0;

	assert_true(portable_pdb_find(pdb, token, il, &document, &found));
	assert_int_equal(found, line);
	assert_true(portable_pdb_document(pdb, document, &path));
	const char *text = bytes_z(&path);
	assert_true(strlen(text) >= strlen(file));
	assert_string_equal(text + strlen(text) - strlen(file), file);
	bytes_done(&path);
}

static void check_pdb(const uint8_t *data, size_t size)
{
	struct portable_pdb pdb;
	uint32_t document;
	uint32_t line;
	bool other = false;

	assert_int_equal(portable_pdb_read(&pdb, data, size), 0);
	check_line(&pdb, TOKEN_SUM, 0, 8, "/Lines.cs");
	check_line(&pdb, TOKEN_SUM, 1000, 13, "/Lines.cs");
	/* Every statement of the method is met, in the file. */
	unsigned seen = 0;
	for (uint32_t il = 0; il < 40; il++) {
		assert_true(portable_pdb_find(&pdb, TOKEN_SUM, il, &document, &line));
		assert_in_range(line, 8, 13);
		seen |= 1u << line;
	}
	assert_int_equal(seen & (1u << 8 | 1u << 9 | 1u << 11 | 1u << 13),
		1u << 8 | 1u << 9 | 1u << 11 | 1u << 13);
	/* A second document in one method, by #line. */
	for (uint32_t il = 0; il < 64 && !other; il++)
		other = portable_pdb_find(&pdb, TOKEN_HIDE, il, &document, &line) && line == 500;
	assert_true(other);
	/* Methods that the assembly does not have, and other tokens. */
	assert_false(portable_pdb_find(&pdb, 0x06000100, 0, &document, &line));
	assert_false(portable_pdb_find(&pdb, 0x06000000, 0, &document, &line));
	assert_false(portable_pdb_find(&pdb, 0x0a000001, 0, &document, &line));
}

static void test_beside(void **state)
{
	static uint8_t data[ROOM];

	(void)state;
	check_pdb(data, read_file(CORPUS "lines.pdb", data));
}

static int unpack(const uint8_t *data, size_t size, uint8_t **ret_pdb, size_t *ret_size)
{
	struct image_file file;
	struct pe pe;

	image_file_from_memory(&file, data, size);
	int result = pe_read(&pe, &file, NULL);
	if (result == 0)
		result = embedded_pdb_load(&pe, &file, 1u << 20, ret_pdb, ret_size);
	pe_done(&pe);
	return result;
}

static void test_embedded(void **state)
{
	static uint8_t data[ROOM];
	uint8_t *pdb;
	size_t size;

	(void)state;
	assert_int_equal(unpack(data, read_file(CORPUS "embedded.dll", data), &pdb, &size), 0);
	check_pdb(pdb, size);
	free(pdb);
}

/* The id is that of the assembly: a PDB of another build has another one. */
static void test_identity(void **state)
{
	static uint8_t data[ROOM];
	struct image_file file;
	struct portable_pdb pdb;
	struct pe pe;
	uint8_t *unpacked;
	size_t size;

	(void)state;
	size_t assembly_size = read_file(CORPUS "embedded.dll", data);
	assert_int_equal(unpack(data, assembly_size, &unpacked, &size), 0);
	assert_int_equal(portable_pdb_read(&pdb, unpacked, size), 0);
	image_file_from_memory(&file, data, assembly_size);
	assert_int_equal(pe_read(&pe, &file, NULL), 0);
	assert_true(pe.has_pdb);
	assert_memory_equal(pdb.id, pe.pdb_guid, sizeof(pdb.id));
	pe_done(&pe);
	free(unpacked);
}

static void look_up(const uint8_t *data, size_t size)
{
	struct portable_pdb pdb;
	struct bytes path = { 0 };
	uint32_t document;
	uint32_t line;

	if (portable_pdb_read(&pdb, data, size) < 0)
		return;
	for (uint32_t token = TOKEN_SUM; token < TOKEN_SUM + 8; token++)
		for (uint32_t il = 0; il < 64; il++)
			if (portable_pdb_find(&pdb, token, il, &document, &line))
				(void)portable_pdb_document(&pdb, document, &path);
	bytes_done(&path);
}

static void test_damage(void **state)
{
	static const char *const files[] = { CORPUS "lines.pdb", CORPUS "embedded.dll" };
	static uint8_t data[ROOM];
	static uint8_t copy[ROOM];
	uint32_t random = 7;

	(void)state;
	for (size_t f = 0; f < 2; f++) {
		size_t size = read_file(files[f], data);
		for (size_t len = 0; len < size; len += 61) {
			uint8_t *part = malloc(len + 1); /* so that sanitizers see its end */
			memcpy(part, data, len);
			look_up(part, len);
			free(part);
		}
		for (unsigned round = 0; round < 500; round++) {
			uint8_t *pdb;
			size_t pdb_size;
			memcpy(copy, data, size);
			for (unsigned i = 0; i < 6; i++) {
				random = random * 1664525u + 1013904223u;
				copy[(random >> 8) % size] = (uint8_t)(random >> 3);
			}
			look_up(copy, size);
			if (unpack(copy, size, &pdb, &pdb_size) == 0) {
				look_up(pdb, pdb_size);
				free(pdb);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
