/* symbol_names.c: names of this program's own functions, from its file in a temporary symbol cache. */
#include "unit/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "analysis/missing_symbols.h"
#include "base/cleanup.h"
#include "code/symbol_file.h"
#include "image/elf.h"
#include "symbolize/symbol_cache.h"
#include "symbols/symbol_names.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define BASE UINT64_C(0x7f0000000000)

static char folder[] = "/tmp/spoor-symbols-XXXXXX";

struct fixture {
	struct symbol_cache cache;
	struct trace trace;
	struct missing_symbols missing;
	struct symbolmap map;
	struct symbol_names found;
	struct symbol_hit hit; /* of this function's file */
	char build_id[BUILD_ID_TEXT_SIZE];
	uint32_t process;
	uint64_t begin; /* in memory, of the function */
};

/* The first function of the program that has a size. */
static void find_function(struct fixture *f, int fd, uint64_t *ret_vaddr, uint64_t *ret_offset)
{
	struct symbol_file *file;
	bool found = false;

	assert_int_equal(symbol_file_open(dup(fd), NULL, NULL, &file, NULL), 0);
	const struct elf *elf = symbol_file_elf(file);
	elf_build_id_text(elf, f->build_id);
	for (uint64_t at = 0; !found && at < 1 << 20; at += 16)
		found = symbol_file_find_vaddr(file, elf->text_vaddr + at, &f->hit) &&
			f->hit.end_vaddr - f->hit.begin_vaddr > 16;
	assert_true(found);
	*ret_vaddr = elf->text_vaddr;
	*ret_offset = elf->text_offset;
	symbol_file_close(file);
}

static void set_up(struct fixture *f)
{
	cleanup(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char build_id[BUILD_ID_TEXT_SIZE];
	uint64_t text_vaddr;
	uint64_t text_offset;

	memset(f, 0, sizeof(*f));
	assert_true(fd >= 0);
	assert_int_equal(symbol_cache_open(&f->cache, true, NULL), 0);
	assert_int_equal(symbol_cache_add(&f->cache, fd, NULL, build_id, NULL), 0);
	find_function(f, fd, &text_vaddr, &text_offset);
	assert_string_equal(f->build_id, build_id);

	assert_int_equal(trace_init(&f->trace), 0);
	f->trace.recording.architecture = trace_add_text(&f->trace, "x86_64");
	f->process = trace_process(&f->trace, 100);
	struct mapping *m = &f->trace.mappings.items[trace_add_mapping(&f->trace, f->process)];
	m->id = 7;
	m->begin = BASE;
	m->end = BASE + (1 << 24);
	m->file_offset = text_offset;
	m->path = trace_add_text(&f->trace, "/opt/test");
	m->build_id = trace_add_text(&f->trace, build_id);
	m->text_vaddr = text_vaddr;
	m->text_offset = text_offset;
	f->begin = BASE + f->hit.begin_vaddr - text_vaddr;
	f->missing.trace = &f->trace;
}

static void add_stack(struct fixture *f, uint64_t address, uint64_t count)
{
	uint32_t stack = stack_table_intern(&f->trace.stacks, &address, 1);

	assert_true(missing_symbols_add(&f->missing, f->process, stack, count));
}

static void find(struct fixture *f)
{
	assert_int_equal(symbolmap_init(&f->map, &f->trace, METHOD_NAME_RAW), 0);
	assert_int_equal(missing_symbols_find(&f->missing, &f->map), 0);
	assert_int_equal(symbol_names_find(&f->found, &f->trace, &f->missing, &f->cache), 0);
}

static void tear_down(struct fixture *f)
{
	symbol_names_done(&f->found);
	missing_symbols_done(&f->missing);
	symbolmap_done(&f->map);
	trace_done(&f->trace);
	symbol_cache_close(&f->cache);
}

/* Two addresses of one function: one name, for the range of the symbol, in place of the bounds. */
static void test_replaces_bounds(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	char bounds[32];
	snprintf(bounds, sizeof(bounds), "sub_%llx", (unsigned long long)f.hit.begin_vaddr);
	struct symbol *symbol = vec_push(&f.trace.symbols);
	*symbol = (struct symbol){ .begin = f.begin,
		.end = f.begin + 16,
		.mapping_id = 7,
		.name = trace_add_text(&f.trace, bounds) };
	add_stack(&f, f.begin + 1, 3);
	add_stack(&f, f.begin + 9, 2);
	find(&f);
	assert_int_equal(f.missing.images.count, 1);
	assert_int_equal(f.missing.images.items[0].functions, 1);
	assert_int_equal(f.missing.missing_frames, 5);
	assert_int_equal(f.found.frames, 5);
	assert_int_equal(f.found.states.items[0], SYMBOLS_USED);
	assert_int_equal(f.found.names.count, 1);
	assert_int_equal(f.found.names.items[0].replaced, f.trace.symbols.count);
	assert_int_equal(f.found.names.items[0].begin, f.begin);
	assert_int_equal(f.found.names.items[0].end,
		f.begin + (f.hit.end_vaddr - f.hit.begin_vaddr));
	assert_true(symbol_names_use(&f.found, &f.trace));
	symbolmap_done(&f.map);
	assert_int_equal(symbolmap_init(&f.map, &f.trace, METHOD_NAME_RAW), 0);
	uint32_t function = symbolmap_find(&f.map, f.process, f.begin + 1, 0);
	assert_true(f.map.functions.items[function].named);
	tear_down(&f);
}

/* An address without bounds gets a further symbol. */
static void test_adds(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	add_stack(&f, f.begin + 1, 1);
	find(&f);
	assert_int_equal(f.found.names.count, 1);
	assert_int_equal(f.found.names.items[0].replaced, 0);
	assert_int_equal(f.found.names.items[0].mapping_id, 7);
	tear_down(&f);
}

/* The file has the right build id, and its code at another address. */
static void test_unsuitable(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	f.trace.mappings.items[1].text_vaddr += 0x1000;
	add_stack(&f, f.begin + 1, 1);
	find(&f);
	assert_int_equal(f.found.states.items[0], SYMBOLS_UNSUITABLE);
	assert_int_equal(f.found.names.count, 0);
	tear_down(&f);
}

static void test_other_build_id(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f);
	f.build_id[0] = f.build_id[0] == 'a' ? 'b' : 'a';
	f.trace.mappings.items[1].build_id = trace_add_text(&f.trace, f.build_id);
	add_stack(&f, f.begin + 1, 1);
	find(&f);
	assert_int_equal(f.found.states.items[0], SYMBOLS_ABSENT);
	f.trace.mappings.items[1].build_id = trace_add_text(&f.trace, "../../../etc");
	symbol_names_done(&f.found);
	assert_int_equal(symbol_names_find(&f.found, &f.trace, &f.missing, &f.cache), 0);
	assert_int_equal(f.found.names.count, 0);
	tear_down(&f);
}

static int begin(void **state)
{
	(void)state;
	return mkdtemp(folder) ? setenv("SPOOR_SYMBOL_CACHE", folder, 1) : -1;
}

static int end(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replaces_bounds),
		cmocka_unit_test(test_adds),
		cmocka_unit_test(test_unsuitable),
		cmocka_unit_test(test_other_build_id),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
