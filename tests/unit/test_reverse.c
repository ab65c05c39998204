/* reverse.c: a port of ours, and runtimes that are this test. */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/diag.h"
#include "dotnet/ipc.h"
#include "dotnet/reverse.h"

static char folder[] = "/tmp/spoor-reverse-XXXXXX";
static char path[64];

static int runtime_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void advertise(int fd, char cookie, uint64_t pid, bool in_pieces)
{
	uint8_t message[34] = "ADVR_V1";

	memset(message + 8, cookie, 16);
	memcpy(message + 24, &pid, 8);
	for (size_t i = 0; i < sizeof(message); i += in_pieces ? 1 : sizeof(message))
		assert_true(send(fd, message + i, in_pieces ? 1 : sizeof(message), MSG_NOSIGNAL) > 0);
}

static struct reverse *begin(void)
{
	struct reverse *reverse;
	struct diag diag = { 0 };

	assert_int_equal(reverse_listen(path, &reverse, &diag), 0);
	return reverse;
}

static void test_comes_again(void **state)
{
	struct reverse *reverse = begin();
	struct stat st;
	uint32_t peer = 99;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	int fd = runtime_connect();
	reverse_advance(reverse);
	assert_false(reverse_next(reverse, &peer)); /* it has not said who it is */
	advertise(fd, 'a', 42, true);
	reverse_advance(reverse);
	assert_true(reverse_next(reverse, &peer));
	assert_false(reverse_next(reverse, &peer));
	assert_int_equal(reverse_peer(reverse, peer)->inner_pid, 42);
	assert_int_equal(reverse_peer(reverse, peer)->pid, getpid());

	/* Its connection is given out once; then it must come again, as itself. */
	struct dotnet_door door = reverse_door(reverse, peer);
	int ours = door.connect(door.context, NULL);

	assert_true(ours >= 0);
	assert_int_equal(door.connect(door.context, NULL), -EAGAIN);
	assert_true(door.state(door.context) != 0);
	close(ours);
	close(fd);
	fd = runtime_connect();
	advertise(fd, 'a', 42, false);
	reverse_advance(reverse);
	assert_false(reverse_next(reverse, &peer));
	ours = door.connect(door.context, NULL);
	assert_true(ours >= 0);
	close(ours);
	close(fd);
	reverse_close(reverse);
	assert_int_equal(stat(path, &st), -1);
}

static void test_strangers(void **state)
{
	struct reverse *reverse = begin();
	struct reverse *second;
	struct pollfd fds[8];
	uint32_t peer;

	(void)state;
	/* Not a runtime; one that goes at once; one that goes after it has said who it is. */
	int liar = runtime_connect();
	assert_int_equal(send(liar, "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n", 35, MSG_NOSIGNAL), 35);
	close(runtime_connect());
	int gone = runtime_connect();
	advertise(gone, 'g', 7, false);
	reverse_advance(reverse);
	close(gone);
	reverse_advance(reverse);
	assert_int_equal(reverse_fds(reverse, fds, 8), 1);
	assert_true(reverse_next(reverse, &peer)); /* it may come again */
	assert_false(reverse_next(reverse, &peer));
	uint8_t byte;

	ssize_t n = recv(liar, &byte, 1, 0);
	assert_true(n == 0 || (n < 0 && errno == ECONNRESET)); /* hung up on */
	close(liar);

	/* The place is taken while we listen, and free when nobody does. */
	struct diag diag = { 0 };
	assert_int_equal(reverse_listen(path, &second, &diag), -EADDRINUSE);
	assert_non_null(strstr(diag.text, path));
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int stale = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	reverse_close(reverse);
	strcpy(address.sun_path, path);
	assert_int_equal(bind(stale, (const struct sockaddr *)&address, sizeof(address)), 0);
	close(stale); /* its file stays, as after a crash */
	reverse_close(begin());
	/* A file that is no socket is not touched. */
	int file = open(path, O_CREAT | O_WRONLY, 0600);
	close(file);
	assert_int_equal(reverse_listen(path, &second, NULL), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
}

static void test_path_too_long(void **state)
{
	char name[200];
	struct reverse *reverse;
	struct dotnet_door door;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(reverse_listen(name, &reverse, NULL), -ENAMETOOLONG);
	assert_int_equal(reverse_listen("", &reverse, NULL), -ENAMETOOLONG);
	door = path_door(name);
	assert_int_equal(door.connect(door.context, NULL), -ENAMETOOLONG);
	door = path_door(path);
	assert_int_equal(door.connect(door.context, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comes_again),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_path_too_long),
	};

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/port", folder);
	int failed = cmocka_run_group_tests_name("reverse", tests, NULL, NULL);

	rmdir(folder);
	return failed;
}
