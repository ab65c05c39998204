/* Names of what system calls were about: paths, addresses, links of /proc, and when none is certain. */
#include "unit/test.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "perf/io_probe.h"
#include "recording/io_names.h"

static void learn_address(struct io_names *names, uint32_t number, const void *address, size_t size)
{
	io_names_learn(names, number,
		&(struct io_name){ .is_address = true, .text = address, .len = size });
}

static const char *name_of(struct io_names *names, uint32_t number, enum io_thing thing)
{
	const struct io_sum sum = { .name = number, .descriptor = -1 };
	const char *text;

	assert_int_equal(io_names_of(names, NULL, &sum, &text), thing);
	return text;
}

static void test_paths(void **state)
{
	struct io_names names = { 0 };

	(void)state;
	io_names_learn(&names, IO_NAME_FIRST, &(struct io_name){ .text = "/a b", .len = 4 });
	io_names_learn(&names, IO_NAME_FIRST + 1, &(struct io_name){ .text = "", .len = 0 });
	assert_string_equal(name_of(&names, IO_NAME_FIRST, IO_THING_FILE), "/a b");
	assert_string_equal(name_of(&names, IO_NAME_FIRST + 1, IO_THING_FILE), "");
	/* of so many names the latest are kept */
	io_names_learn(&names, IO_NAME_FIRST + IO_NAMES_KEPT,
		&(struct io_name){ .text = "/new", .len = 4 });
	assert_string_equal(name_of(&names, IO_NAME_FIRST, IO_THING_FILE), "");
	assert_string_equal(name_of(&names, IO_NAME_FIRST + IO_NAMES_KEPT, IO_THING_FILE), "/new");
	io_names_done(&names);
}

static void test_addresses(void **state)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(5432) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(80) };
	struct sockaddr_un local = { .sun_family = AF_UNIX, .sun_path = "/run/x.sock" };
	const size_t path_at = offsetof(struct sockaddr_un, sun_path);
	struct io_names names = { 0 };

	(void)state;
	v4.sin_addr.s_addr = htonl(0x0a000001);
	learn_address(&names, 16, &v4, sizeof(v4));
	assert_string_equal(name_of(&names, 16, IO_THING_SOCKET), "10.0.0.1:5432");
	v6.sin6_addr = in6addr_loopback;
	learn_address(&names, 17, &v6, sizeof(v6));
	assert_string_equal(name_of(&names, 17, IO_THING_SOCKET), "[::1]:80");
	assert_int_equal(inet_pton(AF_INET6, "::ffff:10.0.0.2", &v6.sin6_addr), 1);
	learn_address(&names, 18, &v6, sizeof(v6));
	assert_string_equal(name_of(&names, 18, IO_THING_SOCKET), "10.0.0.2:80");
	learn_address(&names, 19, &local, sizeof(local));
	assert_string_equal(name_of(&names, 19, IO_THING_SOCKET), "unix:/run/x.sock");
	memcpy(local.sun_path, "\0name", 5);
	learn_address(&names, 20, &local, path_at + 5);
	assert_string_equal(name_of(&names, 20, IO_THING_SOCKET), "unix:@name");
	/* cut, or of another family: a socket without a name */
	for (size_t size = 0; size < sizeof(v4); size++) {
		learn_address(&names, 21, &v4, size);
		assert_string_equal(name_of(&names, 21, IO_THING_SOCKET), "");
	}
	learn_address(&names, 22, &(struct sockaddr){ .sa_family = 99 }, sizeof(struct sockaddr));
	assert_string_equal(name_of(&names, 22, IO_THING_SOCKET), "");
	io_names_done(&names);
}

static void test_classes(void **state)
{
	const struct io_sum mixed = {
		.name = IO_CLASS_PIPE, .descriptor = 3, .instance = IO_PROBE_MIXED
	};
	struct io_names names = { 0 };
	const char *text;

	(void)state;
	assert_int_equal(io_names_of(&names, NULL, &mixed, &text), IO_THING_PIPE);
	assert_string_equal(text, "(several pipes)");
	assert_string_equal(name_of(&names, IO_CLASS_NONE, IO_THING_UNKNOWN), "");
	assert_int_equal(io_names_thing_of_link("/x"), IO_THING_FILE);
	assert_int_equal(io_names_thing_of_link("socket:[1]"), IO_THING_SOCKET);
	assert_int_equal(io_names_thing_of_link("pipe:[1]"), IO_THING_PIPE);
	assert_int_equal(io_names_thing_of_link("anon_inode:[eventfd]"), IO_THING_OTHER);
	assert_int_equal(io_names_thing_of_link("(several)"), IO_THING_UNKNOWN);
	io_names_done(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
