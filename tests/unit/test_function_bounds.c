/* Function bounds from the unwind table, compared with the symbols of this program. */
#include "code/function_bounds.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "code/symbol_file.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "unit/test.h"

#define STEP 32u

struct program {
	int fd;
	struct image_file file;
	struct elf elf;
};

static void set_up(struct program *program)
{
	program->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(program->fd >= 0);
	assert_int_equal(image_file_from_fd(&program->file, program->fd, NULL), 0);
	assert_int_equal(elf_read(&program->elf, &program->file, NULL), 0);
}

static void tear_down(struct program *program)
{
	elf_done(&program->elf);
	close(program->fd);
}

static const struct elf_segment *text_of(const struct elf *elf)
{
	for (uint32_t i = 0; i < elf->segments.count; i++)
		if (elf->segments.items[i].executable)
			return &elf->segments.items[i];
	fail_msg("no executable segment");
	return NULL;
}

/*
 * If both the symbol table and the unwind table contain a function, it begins at the same address.
 */
static void test_agrees_with_symbols(void **state)
{
	struct program program;
	struct symbol_file *symbols;
	uint32_t both = 0;
	uint32_t equal = 0;

	(void)state;
	set_up(&program);
	assert_int_equal(symbol_file_open(dup(program.fd), NULL, NULL, &symbols, NULL), 0);
	const struct elf_segment *text = text_of(&program.elf);
	for (uint64_t at = text->vaddr; at < text->vaddr + text->file_size; at += STEP) {
		struct symbol_hit symbol;
		uint64_t begin;
		uint64_t end;
		if (!symbol_file_find_vaddr(symbols, at, &symbol) ||
			!function_bounds_find(&program.file, &program.elf, at, &begin, &end))
			continue;
		assert_true(begin <= at && at < end);
		both++;
		equal += begin == symbol.begin_vaddr && end == symbol.end_vaddr;
	}
	assert_true(both > 200);
	/* Aliases inside a function, and parts that the compiler moved, have other bounds. */
	assert_true(equal > both - both / 50);
	symbol_file_close(symbols);
	tear_down(&program);
}

/* A function whose symbol covers its first byte only. */
__asm__(".text\n"
	".globl short_symbol\n"
	".type short_symbol, %function\n"
	"short_symbol:\n"
	".cfi_startproc\n"
	".rept 32\n"
	"nop\n"
	".endr\n"
	".cfi_endproc\n"
	".size short_symbol, 1\n");
extern const char short_symbol[];

/* The rest of the function gets no second name at the place where the first one begins. */
static void test_short_symbol(void **state)
{
	struct program program;
	struct symbol_file *symbols;
	struct symbol_hit hit;
	uint64_t vaddr = 0;
	uint64_t offset;
	uint64_t begin;
	uint64_t end;

	(void)state;
	set_up(&program);
	assert_int_equal(symbol_file_open(dup(program.fd), NULL, NULL, &symbols, NULL), 0);
	const struct elf_segment *text = text_of(&program.elf);
	assert_non_null(short_symbol);
	for (uint64_t at = text->vaddr; at < text->vaddr + text->file_size && !vaddr; at++)
		if (symbol_file_find_vaddr(symbols, at, &hit) &&
			strcmp(hit.name, "short_symbol") == 0)
			vaddr = at;
	assert_true(vaddr);
	assert_true(function_bounds_find(&program.file, &program.elf, vaddr + 8, &begin, &end));
	assert_int_equal(begin, vaddr);
	assert_true(elf_offset_of_vaddr(&program.elf, vaddr + 8, &offset));
	assert_false(symbol_file_find_offset(symbols, offset, &hit));
	assert_false(symbol_file_find_bounds(symbols, offset, &hit));
	symbol_file_close(symbols);
	tear_down(&program);
}

static void test_outside(void **state)
{
	struct program program;
	uint64_t begin;
	uint64_t end;

	(void)state;
	set_up(&program);
	assert_false(function_bounds_find(&program.file, &program.elf, 0, &begin, &end));
	assert_false(function_bounds_find(&program.file, &program.elf, UINT64_MAX, &begin, &end));
	const struct elf_segment *last =
		&program.elf.segments.items[program.elf.segments.count - 1];
	assert_false(function_bounds_find(&program.file, &program.elf,
		last->vaddr + last->memory_size, &begin, &end));
	program.elf.frame_header_size = 0;
	assert_false(function_bounds_find(&program.file, &program.elf, text_of(&program.elf)->vaddr,
		&begin, &end));
	tear_down(&program);
}

/*
 * A table with changed bytes has other functions or none, but returns no bounds that contradict
 * each other.
 */
static void test_corrupt(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	struct program program;
	struct image_file file;
	uint64_t offset;
	uint64_t begin;
	uint64_t end;
	uint32_t refused = 0;

	(void)state;
	set_up(&program);
	uint64_t at = text_of(&program.elf)->vaddr + text_of(&program.elf)->file_size / 2;
	while (!function_bounds_find(&program.file, &program.elf, at, &begin, &end))
		at++;
	assert_true(elf_offset_of_vaddr(&program.elf, program.elf.frame_header_vaddr, &offset));
	cleanup(freep) uint8_t *bytes = NULL;
	assert_int_equal(
		image_file_load(&program.file, 0, program.file.size_bytes, 256u << 20, &bytes), 0);
	image_file_from_memory(&file, bytes, (size_t)program.file.size_bytes);
	for (uint64_t i = 0; i < 16; i++) {
		uint8_t kept = bytes[offset + i];
		for (size_t v = 0; v < sizeof(values); v++) {
			bytes[offset + i] = values[v];
			if (function_bounds_find(&file, &program.elf, at, &begin, &end))
				assert_true(begin <= at && at < end);
			else
				refused++;
		}
		bytes[offset + i] = kept;
	}
	assert_true(refused >= 4 * 4); /* version, and three encodings */
	/* A file that ends inside its table. */
	image_file_from_memory(&file, bytes, (size_t)offset + 16);
	assert_false(function_bounds_find(&file, &program.elf, at, &begin, &end));
	tear_down(&program);
}

static bool is_name(const char *name, uint64_t begin)
{
	return function_bounds_is_name(name, strlen(name), begin);
}

static void test_names(void **state)
{
	char name[FUNCTION_BOUNDS_NAME_SIZE];

	(void)state;
	function_bounds_name(0x46cd10, name);
	assert_string_equal(name, "sub_46cd10");
	assert_true(is_name(name, 0x7f0012345d10));
	assert_false(is_name(name, 0x7f0012345d20)); /* another place in a page */
	function_bounds_name(UINT64_MAX, name);
	assert_string_equal(name, "sub_ffffffffffffffff");
	assert_true(is_name(name, UINT64_MAX));
	assert_false(is_name("sub_", 0));
	assert_false(is_name("sub_0", 0));
	assert_false(is_name("sub_046cd10", 0xd10));
	assert_false(is_name("sub_46cd1g", 0xd10));
	assert_false(is_name("sub_46CD10", 0xd10));
	assert_false(is_name("sub_add", 0x7f0012345d10)); /* another function of the same name */
	assert_false(is_name("subtract", 0));
	assert_false(is_name("sub_11111111111111111", 0x111));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees_with_symbols),
		cmocka_unit_test(test_short_symbol),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_corrupt),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
