/* dump_place.c: the file of a dump, with this process as the target and as its runtime. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/diag.h"
#include "machine/dump_place.h"

static char folder[64];

static int set_up(void **state)
{
	(void)state;
	/* createdump reads %p as a pid */
	snprintf(folder, sizeof(folder), "/tmp/spoor-%%p-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	return nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static bool exists(const char *name)
{
	return access(path_of(name), F_OK) == 0;
}

static unsigned count_files(void)
{
	unsigned count = 0;
	char command[128];
	char line[256];

	snprintf(command, sizeof(command), "ls -A '%s'", folder);
	FILE *list = popen(command, "r");
	assert_non_null(list);
	while (fgets(line, sizeof(line), list))
		count++;
	pclose(list);
	return count;
}

/* As createdump writes: "%%" is a percent sign. */
static void write_as_runtime(const char *place, const char *suffix, const char *text)
{
	char path[DUMP_PATH_ROOM + 32];
	size_t used = 0;

	for (; *place; place++) {
		if (place[0] == '%') {
			assert_int_equal(place[1], '%');
			place++;
		}
		path[used++] = *place;
	}
	snprintf(path + used, sizeof(path) - used, "%s", suffix);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void check_file(const char *name, const char *text)
{
	char found[64] = "";
	int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(read(fd, found, sizeof(found) - 1) >= 0);
	close(fd);
	assert_string_equal(found, text);
}

static struct dump_place open_place(bool crash_report)
{
	const struct dump_place_question question = { .pid = (uint32_t)getpid(),
		.uid = geteuid(),
		.path = path_of("core"),
		.crash_report = crash_report };
	struct dump_place place;
	struct diag diag = { 0 };

	if (dump_place_open(&question, &place, &diag) < 0)
		fail_msg("dump_place_open: %s", diag.text);
	return place;
}

static void test_kept_dump_gets_its_name(void **state)
{
	struct dump_place place = open_place(false);
	struct diag diag = { 0 };
	uint64_t size;

	(void)state;
	assert_int_equal(strncmp(place.path, "/tmp/spoor-%%p-", 15), 0);
	assert_false(dump_place_is_written(&place));
	write_as_runtime(place.path, "", "dump");
	assert_true(dump_place_is_written(&place));
	assert_false(exists("core"));
	assert_int_equal(dump_place_keep(&place, &size, &diag), 0);
	assert_int_equal(size, 4);
	dump_place_close(&place);
	check_file("core", "dump");
	assert_int_equal(count_files(), 1);

	/* The next one keeps the earlier one beside it. */
	place = open_place(false);
	write_as_runtime(place.path, "", "newer");
	assert_int_equal(dump_place_keep(&place, &size, &diag), 0);
	dump_place_close(&place);
	check_file("core", "newer");
	check_file("core.old", "dump");
}

static void test_dump_that_was_not_kept_is_removed(void **state)
{
	struct dump_place place = open_place(true);

	(void)state;
	write_as_runtime(place.path, "", "half");
	write_as_runtime(place.path, ".crashreport.json", "{");
	dump_place_close(&place);
	assert_int_equal(count_files(), 0);
}

static void test_runtime_wrote_nothing(void **state)
{
	struct dump_place place = open_place(false);
	struct diag diag = { 0 };
	uint64_t size;

	(void)state;
	assert_int_equal(dump_place_keep(&place, &size, &diag), -ENOENT);
	assert_string_equal(diag.text, "there is no dump in its folder");
	dump_place_close(&place);
	assert_int_equal(count_files(), 0);
}

/* What the target put at the random name is no dump. */
static void test_link_is_no_dump(void **state)
{
	struct dump_place place = open_place(false);
	struct diag diag = { 0 };
	uint64_t size;

	(void)state;
	assert_int_equal(symlink("/etc/passwd", path_of(place.core.temporary)), 0);
	assert_false(dump_place_is_written(&place));
	assert_int_equal(dump_place_keep(&place, &size, &diag), -ENOENT);
	dump_place_close(&place);
	assert_false(exists("core"));
}

static void test_crash_report(void **state)
{
	struct dump_place place = open_place(true);
	struct diag diag = { 0 };
	uint64_t size;

	(void)state;
	write_as_runtime(place.path, "", "dump");
	write_as_runtime(place.path, ".crashreport.json", "{}");
	assert_int_equal(dump_place_keep(&place, &size, &diag), 0);
	dump_place_close(&place);
	check_file("core", "dump");
	check_file("core.crashreport.json", "{}");
	assert_int_equal(count_files(), 2);

	place = open_place(true);
	write_as_runtime(place.path, "", "newer");
	assert_int_equal(dump_place_keep(&place, &size, &diag), -ENOENT);
	assert_string_equal(diag.text, "the dump is written, but there is no crash report");
	dump_place_close(&place);
	check_file("core", "newer");
	check_file("core.crashreport.json", "{}");
}

static void test_names_that_are_refused(void **state)
{
	static char longest[2 * DUMP_PATH_ROOM];
	struct dump_place_question question = { .pid = (uint32_t)getpid(), .uid = geteuid() };
	struct dump_place place;
	struct diag diag = { 0 };
	char report[128];

	(void)state;
	snprintf(report, sizeof(report), "%s/core.crashreport.json", folder);
	question.path = "core";
	assert_int_equal(dump_place_open(&question, &place, &diag), -ENAMETOOLONG);
	memset(longest, '/', DUMP_PATH_ROOM);
	strcpy(longest + DUMP_PATH_ROOM, "core");
	question.path = longest;
	assert_int_equal(dump_place_open(&question, &place, NULL), -ENAMETOOLONG);
	question.path = path_of("missing/core");
	assert_int_equal(dump_place_open(&question, &place, NULL), -ENOENT);
	assert_int_equal(place.core.folder, -1);
	question.path = path_of("core");
	question.pid = 0x3fffffffu; /* no such process */
	assert_true(dump_place_open(&question, &place, NULL) < 0);
	assert_int_equal(place.core.folder, -1);
	/* A folder at the name of the dump. */
	question.pid = (uint32_t)getpid();
	assert_int_equal(mkdir(path_of("core"), 0700), 0);
	assert_true(dump_place_open(&question, &place, NULL) < 0);
	assert_int_equal(count_files(), 1);
	/* A folder at the name of the report: the dump's folder is closed again. */
	assert_int_equal(rename(path_of("core"), report), 0);
	question.crash_report = true;
	assert_true(dump_place_open(&question, &place, NULL) < 0);
	assert_int_equal(place.core.folder, -1);
	assert_int_equal(count_files(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_kept_dump_gets_its_name),
		TEST(test_dump_that_was_not_kept_is_removed),
		TEST(test_runtime_wrote_nothing),
		TEST(test_link_is_no_dump),
		TEST(test_crash_report),
		TEST(test_names_that_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
