/* name_tables.c: names of this program's own code, missing files, and dropped entries. */
#include "unit/test.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "code/codemap.h"
#include "machine/box.h"
#include "symbolize/name_tables.h"

void name_tables_sampled(void);
void name_tables_sampled(void)
{
	__asm__ volatile("");
}

/* The mapping that holds an address of this process. */
static void fill_mapping(struct name_question *question, uint64_t address)
{
	char line[600], path[512];
	uint64_t begin, end, offset, inode;
	FILE *maps = fopen("/proc/self/maps", "r");

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %" SCNu64 " %511s",
			    &begin, &end, &offset, &inode, path) != 5 ||
			address < begin || address >= end)
			continue;
		question->begin = begin;
		question->end = end;
		question->inode = inode;
		question->place = address - begin + offset;
		question->path = strdup(path);
	}
	fclose(maps);
	assert_non_null(question->path);
}

static struct name_tables *open_tables(void)
{
	struct box box;

	box_read(&box);
	struct name_tables *tables = name_tables_new(&box, NULL);

	assert_non_null(tables);
	return tables;
}

static void test_own_symbol(void **state)
{
	struct name_tables *tables = open_tables();
	struct name_question question = { .kind = ASK_SYMBOL,
		.image = 1,
		.pid = (uint32_t)getpid(),
		.inner_pid = (uint32_t)getpid(),
		.wants_facts = true,
		.build_id = "" };

	(void)state;
	fill_mapping(&question, (uint64_t)(uintptr_t)name_tables_sampled);
	for (int round = 0; round < 2; round++) {
		struct name_answer answer = { 0 };
		name_tables_answer(tables, &question, &answer);
		assert_int_equal(answer.error, 0);
		assert_true(answer.found);
		assert_string_equal(answer.name, "name_tables_sampled");
		assert_true(question.place >= answer.begin &&
			    question.place < answer.begin + answer.size_bytes);
		assert_true(name_tables_size_bytes(tables) > 0);
		free(answer.name);
		free(answer.facts);
		/* The tables are read again after they were dropped. */
		name_tables_make_room(tables);
	}
	name_tables_free(tables);
	free(question.path);
}

static void test_missing_file(void **state)
{
	struct name_tables *tables = open_tables();
	struct name_answer answer = { 0 };
	struct name_question question = { .kind = ASK_SYMBOL,
		.image = 1,
		.pid = (uint32_t)getpid(),
		.inner_pid = (uint32_t)getpid(),
		.path = "/tmp/spoor-is-not-there.so",
		.build_id = "" };

	(void)state;
	name_tables_answer(tables, &question, &answer);
	assert_true(answer.error < 0);
	assert_false(answer.found);
	name_tables_free(tables);
}

static void test_perf_map(void **state)
{
	struct name_tables *tables = open_tables();
	struct name_answer answer = { 0 };
	struct name_question question = {
		.kind = ASK_MAPS, .pid = (uint32_t)getpid(), .inner_pid = (uint32_t)getpid()
	};
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs("7f0000001000 40 Shop.Cart.Add\n", file);
	fclose(file);
	name_tables_answer(tables, &question, &answer);
	unlink(path);
	assert_non_null(answer.codemap);
	codemap_settle(answer.codemap);
	assert_int_equal(answer.codemap->codes.count, 1);
	assert_string_equal(answer.codemap->codes.items[0].name, "Shop.Cart.Add");
	codemap_done(answer.codemap);
	free(answer.codemap);
	name_tables_free(tables);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_symbol),
		cmocka_unit_test(test_missing_file),
		cmocka_unit_test(test_perf_map),
	};

	return cmocka_run_group_tests_name("name_tables", tests, NULL, NULL);
}
