/* symbol_servers.c: where servers come from, and the addresses of a file at each. */
#include "unit/test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "symbols/symbol_servers.h"

#define ID "0123456789abcdef0123456789abcdef01234567"

static char folder[] = "/tmp/spoor-servers-XXXXXX";

static void assert_url(const struct symbol_server *server, const char *image, uint32_t i,
	const char *expected)
{
	struct bytes url = { 0 };

	assert_int_equal(symbol_server_url(server, image, ID, i, &url), expected != NULL);
	if (expected)
		assert_string_equal(bytes_z(&url), expected);
	bytes_done(&url);
}

/* The GUID 097b72f6-390a-04fc-878e-5a2d63b6cc4b, in the order of a file. */
#define PDB_KEY "f6727b090a39fc04878e5a2d63b6cc4b"
#define PDB_ID  "097b72f6390a04fc878e5a2d63b6cc4bFFFFFFFF"

static void assert_pdb_url(const struct symbol_server *server, const char *name, uint32_t i,
	const char *expected)
{
	struct bytes url = { 0 };

	assert_int_equal(symbol_server_url(server, name, PDB_KEY, i, &url), expected != NULL);
	if (expected)
		assert_string_equal(bytes_z(&url), expected);
	bytes_done(&url);
}

static void test_pdb_urls(void **state)
{
	struct symbol_servers servers = { 0 };

	(void)state;
	assert_int_equal(setenv("DEBUGINFOD_URLS", "https://d.example", 1), 0);
	assert_int_equal(symbol_servers_add(&servers, "https://both.example debuginfod", NULL), 0);
	const struct symbol_server *s = servers.list.items;
	assert_pdb_url(&s[0], "My Shop.pdb", 0,
		"https://both.example/my%20shop.pdb/" PDB_ID "/my%20shop.pdb");
	assert_pdb_url(&s[0], "My Shop.pdb", 1,
		"https://both.example/My%20Shop.pdb/" PDB_ID "/My%20Shop.pdb");
	assert_pdb_url(&s[0], "My Shop.pdb", 2, NULL);
	assert_pdb_url(&s[0], "shop.pdb", 0, "https://both.example/shop.pdb/" PDB_ID "/shop.pdb");
	assert_pdb_url(&s[0], "shop.pdb", 1, NULL);
	assert_pdb_url(&s[1], "shop.pdb", 0, NULL); /* debuginfod has none */
	symbol_servers_done(&servers);
}

static void test_urls(void **state)
{
	struct symbol_servers servers = { 0 };

	(void)state;
	assert_int_equal(setenv("DEBUGINFOD_URLS", "https://d.example  http://e.example/x/", 1), 0);
	assert_int_equal(symbol_servers_add(&servers,
				 " microsoft\thttps://both.example/a// debuginfod\n", NULL),
		0);
	assert_int_equal(servers.list.count, 4);
	const struct symbol_server *s = servers.list.items;
	assert_url(&s[0], "libcoreclr.so", 0,
		"https://msdl.microsoft.com/download/symbols/_.debug/elf-buildid-sym-" ID
		"/_.debug");
	assert_url(&s[0], "libcoreclr.so", 1,
		"https://msdl.microsoft.com/download/symbols/libcoreclr.so/elf-buildid-" ID
		"/libcoreclr.so");
	assert_url(&s[0], "libcoreclr.so", 2, NULL);
	assert_url(&s[1], "a", 0, "https://both.example/a/_.debug/elf-buildid-sym-" ID "/_.debug");
	assert_url(&s[1], "a", 1, "https://both.example/a/buildid/" ID "/debuginfo");
	/* A name from a recording cannot leave its place in the address. */
	assert_url(&s[1], "../a b?\n#%", 2,
		"https://both.example/a/..%2Fa%20b%3F%0A%23%25/elf-buildid-" ID
		"/..%2Fa%20b%3F%0A%23%25");
	assert_url(&s[1], "a", 3, "https://both.example/a/buildid/" ID "/executable");
	assert_url(&s[1], "a", 4, NULL);
	assert_url(&s[2], "a", 0, "https://d.example/buildid/" ID "/debuginfo");
	assert_url(&s[3], "a", 1, "http://e.example/x/buildid/" ID "/executable");
	symbol_servers_done(&servers);
}

static void test_refused(void **state)
{
	struct symbol_servers servers = { 0 };
	const char *const wrong[] = { "ftp://a", "file:///etc/passwd", "microsof", "a.example",
		"https:/a" };

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(symbol_servers_add(&servers, wrong[i], NULL), -EINVAL);
	for (unsigned i = 0; i < SYMBOL_SERVERS_MAX; i++)
		assert_int_equal(symbol_servers_add(&servers, "http://a", NULL), 0);
	assert_int_equal(symbol_servers_add(&servers, "http://a", NULL), -EINVAL);
	symbol_servers_done(&servers);
}

static void write_settings(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void test_settings(void **state)
{
	struct symbol_servers servers = { 0 };
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/spoor", folder);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/spoor/symbols.conf", folder);
	write_settings(path, "# ours\n\nhttp://a http://b # near\r\nmicrosoft", 0600);
	assert_int_equal(symbol_servers_read_settings(&servers, NULL), 1);
	assert_int_equal(servers.list.count, 3);
	assert_string_equal(servers.list.items[1].url, "http://b");
	symbol_servers_done(&servers);
	write_settings(path, "http://a\nftp://b\n", 0600);
	assert_int_equal(symbol_servers_read_settings(&servers, NULL), -EINVAL);
	symbol_servers_done(&servers);
	/* One that others may write could send the names of programs anywhere. */
	write_settings(path, "http://a\n", 0622);
	assert_int_equal(symbol_servers_read_settings(&servers, NULL), -EPERM);
	assert_int_equal(servers.list.count, 0);
	/* The environment comes first; empty, it means none. */
	assert_int_equal(setenv("SPOOR_SYMBOLS", "", 1), 0);
	assert_int_equal(symbol_servers_read_settings(&servers, NULL), 1);
	assert_int_equal(servers.list.count, 0);
	assert_int_equal(unsetenv("SPOOR_SYMBOLS"), 0);
	symbol_servers_done(&servers);
}

static int begin(void **state)
{
	(void)state;
	(void)unsetenv("SPOOR_SYMBOLS"); /* the name is valid */
	return mkdtemp(folder) ? setenv("XDG_CONFIG_HOME", folder, 1) : -1;
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
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_pdb_urls),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_settings),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
