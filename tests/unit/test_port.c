/*
 * port.c: finds the socket of a process, with its full name, with a truncated name, or with none,
 * and refuses the sockets of other users.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/diag.h"
#include "dotnet/port.h"

static char folder[32];

static struct dotnet_target self(void)
{
	struct dotnet_target target;

	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &target, NULL), 0);
	snprintf(target.tmpdir, sizeof(target.tmpdir), "%s", folder);
	return target;
}

/* Binds the socket that a runtime would bind, with the path cut to its maximum length. */
static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	size_t len = strlen(path);
	if (len > sizeof(address.sun_path) - 1)
		len = sizeof(address.sun_path) - 1;
	memcpy(address.sun_path, path, len);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 5), 0);
	return fd;
}

static void socket_path(const struct dotnet_target *target, const char *dir, char path[512])
{
	snprintf(path, 512, "%s/dotnet-diagnostic-%" PRIu32 "-%" PRIu64 "-socket", dir,
		target->inner_pid, target->start_ticks);
}

static void remove_all(const char *dir)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/spoor-port-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	remove_all(folder);
	return 0;
}

static void test_connect(void **state)
{
	struct dotnet_target target = self();
	struct diag diag = { 0 };
	char path[512];

	(void)state;
	assert_int_equal(target.pid, getpid());
	assert_true(target.start_ticks > 0);
	assert_false(dotnet_port_exists(&target));
	assert_int_equal(dotnet_port_connect(&target, &diag), -ENOENT);
	assert_true(diag.text[0]);
	socket_path(&target, folder, path);
	int listener = listen_at(path);
	assert_true(dotnet_port_exists(&target));
	int fd = dotnet_port_connect(&target, NULL);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	close(listener);
	/* A socket that a crashed process left. */
	assert_true(dotnet_port_exists(&target));
	assert_int_equal(dotnet_port_connect(&target, NULL), -ECONNREFUSED);
}

/*
 * A socket with this pid and another start time does not belong to this process; the time in the
 * name must be its start time.
 */
static void test_other_key(void **state)
{
	struct dotnet_target target = self();
	char path[512];

	(void)state;
	target.start_ticks += 12345;
	socket_path(&target, folder, path);
	int listener = listen_at(path);
	target.start_ticks -= 12345;
	assert_int_equal(dotnet_port_connect(&target, NULL), -ENOENT);
	close(listener);
}

/*
 * Becomes the first process of a time namespace whose clock is a thousand seconds ahead, and binds
 * the socket that a runtime would bind there.
 */
static void listen_elsewhere(int ready)
{
	static const char offset[] = "boottime 1000 0";
	struct dotnet_target target;
	char path[512];
	char done = 1;

	int fd = unshare(CLONE_NEWTIME) == 0
			 ? open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC)
			 : -1;
	bool apart =
		fd >= 0 && write(fd, offset, sizeof(offset) - 1) == (ssize_t)sizeof(offset) - 1;
	pid_t inner = apart ? fork() : -1;
	if (inner < 0)
		_exit(77);
	if (inner > 0) {
		int status;
		waitpid(inner, &status, 0);
		_exit(0);
	}
	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &target, NULL), 0);
	socket_path(&target, folder, path);
	listen_at(path);
	pid_t self_pid = getpid();
	if (write(ready, &self_pid, sizeof(self_pid)) == (ssize_t)sizeof(self_pid))
		(void)!read(ready, &done, 1);
	_exit(0);
}

static void test_time_namespace(void **state)
{
	struct dotnet_target target;
	int ends[2];
	pid_t inner;
	int status;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(ends[0]);
		listen_elsewhere(ends[1]);
	}
	close(ends[1]);
	if (read(ends[0], &inner, sizeof(inner)) != (ssize_t)sizeof(inner)) {
		close(ends[0]);
		waitpid(child, &status, 0);
		print_message("no time namespace can be made here: %s\n",
			geteuid() == 0 ? "the kernel has none" : "not root");
		skip();
	}
	assert_int_equal(dotnet_target_read((uint32_t)inner, &target, NULL), 0);
	snprintf(target.tmpdir, sizeof(target.tmpdir), "%s", folder);
	char path[512];
	socket_path(&target, folder, path);
	assert_int_equal(access(path, F_OK), -1); /* another start time there */
	int fd = dotnet_port_connect(&target, NULL);
	assert_true(fd >= 0);
	close(fd);
	close(ends[0]);
	waitpid(child, &status, 0);
	/* No process listens at the socket, and the process has ended. */
	assert_true(dotnet_port_connect(&target, NULL) < 0);
}

static void test_full_queue(void **state)
{
	struct dotnet_target target = self();
	char path[512];
	int fds[64];
	int n = 0;

	(void)state;
	socket_path(&target, folder, path);
	int listener = listen_at(path);
	assert_int_equal(listen(listener, 1), 0);
	while (n < 64 && (fds[n] = dotnet_port_connect(&target, NULL)) >= 0)
		n++;
	assert_true(n < 64);
	assert_int_equal(fds[n], -EAGAIN);
	while (n--)
		close(fds[n]);
	close(listener);
}

/* The length of the directory determines how much of the name remains. */
static void test_cut_name(void **state)
{
	struct dotnet_target target = self();

	(void)state;
	for (size_t len = 60; len < 120; len++) {
		char dir[512];
		char path[512];
		strcpy(dir, folder);
		strcat(dir, "/");
		memset(dir + strlen(folder) + 1, 'd', len - strlen(folder) - 1);
		dir[len] = '\0';
		assert_int_equal(mkdir(dir, 0700), 0);
		strcpy(target.tmpdir, dir);
		if (len >= 107) {
			/* No room for one letter of the name. */
			int r = dotnet_port_connect(&target, NULL);
			assert_true(r == -ENOENT || r == -ENAMETOOLONG);
			assert_false(dotnet_port_exists(&target));
			continue;
		}
		socket_path(&target, dir, path);
		if (len == 106)
			continue; /* the cut name would be empty */
		int listener = listen_at(path);
		int fd = dotnet_port_connect(&target, NULL);
		assert_true(fd >= 0);
		close(fd);
		close(listener);
		remove_all(dir);
	}
	strcpy(target.tmpdir, "");
	memset(target.tmpdir, '/', DOTNET_DIR_MAX - 1);
	assert_int_equal(dotnet_port_connect(&target, NULL), -ENAMETOOLONG);
}

/* Any user may put a socket with any pid in its name into a common directory. */
static void test_spoofed(void **state)
{
	struct dotnet_target target = self();
	struct diag diag = { 0 };
	char path[512];
	int ready[2];

	(void)state;
	socket_path(&target, folder, path);
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (!child) {
		(void)listen_at(path);
		(void)!write(ready[1], "x", 1);
		pause();
		_exit(0);
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(dotnet_port_connect(&target, &diag), -EPERM);
	assert_non_null(strstr(diag.text, "another process"));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

/* A file or a link with that name is not followed. */
/* The kernel uses the id again for the target; the socket belongs to another user. */
static void test_other_user(void **state)
{
	struct dotnet_target target = self();
	struct diag diag = { 0 };
	char path[512];

	(void)state;
	if (geteuid() != 0)
		skip(); /* only root can become another user and back */
	assert_int_equal(chmod(folder, 0777), 0);
	socket_path(&target, folder, path);
	assert_int_equal(seteuid(65534), 0);
	int listener = listen_at(path);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(dotnet_port_connect(&target, &diag), -EPERM);
	assert_string_equal(diag.text, "another user (65534) listens at its socket");
	/* The kernel stored the user at listen(2), which is now the target's. */
	assert_int_equal(listen(listener, 5), 0);
	int fd = dotnet_port_connect(&target, NULL);
	assert_true(fd >= 0);
	close(fd);
	close(listener);
	unlink(path);
	/* A process that started to listen as root and then dropped its rights is accepted. */
	int ready[2], go[2];
	char byte = 0;
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0) {
		target = self();
		socket_path(&target, folder, path);
		(void)listen_at(path);
		_exit(setresuid(65534, 65534, 65534) < 0 || write(ready[1], "r", 1) != 1 ||
			read(go[0], &byte, 1) != 1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(dotnet_target_read((uint32_t)pid, &target, NULL), 0);
	snprintf(target.tmpdir, sizeof(target.tmpdir), "%s", folder);
	fd = dotnet_port_connect(&target, NULL);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(write(go[1], "g", 1), 1);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
}

/*
 * A link of that name is not accepted as a socket, wherever it leads. The target's own folder may
 * be reached by a link.
 */
static void test_links(void **state)
{
	struct dotnet_target target = self();
	char name[512], path[600], other[600];

	(void)state;
	socket_path(&target, folder, name);
	snprintf(other, sizeof(other), "%s/real", folder);
	assert_int_equal(mkdir(other, 0700), 0);
	snprintf(other, sizeof(other), "%s/real/s", folder);
	int listener = listen_at(other);
	assert_int_equal(symlink(other, name), 0);
	assert_int_equal(dotnet_port_connect(&target, NULL), -ENOENT);
	assert_int_equal(unlink(name), 0);
	close(listener);

	snprintf(path, sizeof(path), "%s/real%s", folder, name + strlen(folder));
	listener = listen_at(path);
	snprintf(path, sizeof(path), "%s/link", folder);
	snprintf(other, sizeof(other), "%s/real", folder);
	assert_int_equal(symlink(other, path), 0);
	snprintf(target.tmpdir, sizeof(target.tmpdir), "%s/link", folder);
	int fd = dotnet_port_connect(&target, NULL);
	assert_true(fd >= 0);
	close(fd);
	close(listener);
}

static void test_not_a_socket(void **state)
{
	struct dotnet_target target = self();
	char path[512];

	(void)state;
	socket_path(&target, folder, path);
	int fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_false(dotnet_port_exists(&target));
	assert_int_equal(unlink(path), 0);
	char elsewhere[64];
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", folder);
	int listener = listen_at(elsewhere);
	assert_int_equal(symlink(elsewhere, path), 0);
	assert_false(dotnet_port_exists(&target));
	close(listener);
}

static void test_target_read(void **state)
{
	struct dotnet_target target;
	struct diag diag = { 0 };
	int ready[2];

	(void)state;
	assert_int_equal(dotnet_target_read(0x3fffffff, &target, &diag), -ESRCH);
	assert_true(diag.text[0]);
	/* A name with the characters that separate fields, and a TMPDIR. */
	assert_int_equal(pipe(ready), 0);
	pid_t child = fork();
	if (!child) {
		char *const argv[] = { "sleep", "100", NULL };
		char *const envp[] = { "XTMPDIR=/no", "TMPDIR=/var/tmp/a b\n", "A=", NULL };
		dup2(ready[1], 1);
		execve("/bin/sleep", argv, envp);
		_exit(1);
	}
	close(ready[1]);
	for (unsigned i = 0; i < 6000; i++) {
		assert_int_equal(dotnet_target_read((uint32_t)child, &target, NULL), 0);
		if (!strcmp(target.tmpdir, "/var/tmp/a b\n"))
			break;
		usleep(10000);
	}
	assert_string_equal(target.tmpdir, "/var/tmp/a b\n");
	assert_int_equal(target.inner_pid, child);
	assert_true(memchr("SRD", dotnet_target_state(&target), 3) != NULL);
	kill(child, SIGSTOP);
	waitpid(child, NULL, WUNTRACED);
	assert_int_equal(dotnet_target_state(&target), 'T');
	target.start_ticks++;
	assert_int_equal(dotnet_target_state(&target), 0);
	target.start_ticks--;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(dotnet_target_state(&target), 0);
	close(ready[0]);
}

static void test_signs(void **state)
{
	(void)state;
	assert_int_equal(dotnet_signs_of_path("/usr/share/dotnet/shared/x/libcoreclr.so"),
		DOTNET_SIGN_CORECLR);
	assert_int_equal(dotnet_signs_of_path("/x/libcoreclr.so (deleted)"), DOTNET_SIGN_CORECLR);
	assert_int_equal(dotnet_signs_of_path("/x/libcoreclr.so.bak"), 0);
	assert_int_equal(dotnet_signs_of_path("/x/libcoreclrtraceptprovider.so"), 0);
	assert_int_equal(dotnet_signs_of_path("/memfd:doublemapper (deleted)"),
		DOTNET_SIGN_JIT_MEMORY);
	assert_int_equal(dotnet_signs_of_path("/memfd:other (deleted)"), 0);
	assert_int_equal(dotnet_signs_of_path("/x/libmonosgen-2.0.so.1.0.0"), DOTNET_SIGN_MONO);
	assert_int_equal(dotnet_signs_of_path(""), 0);
	assert_int_equal(dotnet_signs_of_path(" (deleted)"), 0);
	assert_false(dotnet_signs_worth_asking(0));
	assert_false(dotnet_signs_worth_asking(DOTNET_SIGN_MONO));
	assert_true(dotnet_signs_worth_asking(DOTNET_SIGN_MONO | DOTNET_SIGN_SOCKET));
	assert_true(dotnet_signs_worth_asking(DOTNET_SIGN_JIT_MEMORY));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_connect, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time_namespace, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_queue, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cut_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_spoofed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_user, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_a_socket, set_up, tear_down),
		cmocka_unit_test(test_target_read),
		cmocka_unit_test(test_signs),
	};

	return cmocka_run_group_tests_name("port", tests, NULL, NULL);
}
