/*
 * A program whose system calls for input and output are known: io_target FOLDER [GO]. It prints what a recorder must
 * have counted, one line for each file, socket or pipe and call, with tabs between:
 *
 *   THING NAME CALL count errors again bytes small
 *
 * and for the call that waits "slow NAME", with the times that it took at least and at most, in ns. With GO, a named pipe,
 * it opens FOLDER/early first, and begins when it has read a line from GO. Names of pipes and accepted sockets are
 * those of /proc/self/fd.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS       4
#define THREAD_WRITES 5000
#define SLOW_NS       300000000

static char folder[256];
static char buffer[65536];

static void require(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "io_target: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static const char *link_of(int fd)
{
	static char link[512];
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, link, sizeof(link) - 1);
	require(n > 0, path);
	link[n] = 0;
	return link;
}

static void expect(const char *thing, const char *name, const char *call, unsigned count,
	unsigned errors, unsigned again, unsigned bytes, unsigned small)
{
	printf("%s\t%s\t%s\t%u\t%u\t%u\t%u\t%u\n", thing, name, call, count, errors, again, bytes,
		small);
}

static int make(const char *name)
{
	int fd = open(path_of(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	require(fd >= 0, name);
	return fd;
}

static void put(int fd, size_t size)
{
	require(write(fd, buffer, size) == (ssize_t)size, "write");
}

static void take(int fd, size_t size)
{
	require(read(fd, buffer, size) == (ssize_t)size, "read");
}

/* Many sizes, on both sides of the limit of a small call, and every form of the calls. */
static void one_file(void)
{
	struct iovec parts[2] = { { buffer, 5 }, { buffer, 6 } };
	int fd = make("a");

	for (int i = 0; i < 1000; i++)
		put(fd, 8);
	for (int i = 0; i < 10; i++)
		put(fd, 4096);
	put(fd, 16);
	put(fd, 17);
	for (int i = 0; i < 3; i++)
		require(fsync(fd) == 0, "fsync");
	require(fdatasync(fd) == 0, "fdatasync");
	for (int i = 0; i < 20; i++)
		require(pread(fd, buffer, 100, 0) == 100, "pread");
	require(pread(fd, buffer, 100, 1 << 20) == 0, "pread at the end");
	for (int i = 0; i < 7; i++)
		require(pwrite(fd, buffer, 50, 0) == 50, "pwrite");
	for (int i = 0; i < 9; i++)
		require(writev(fd, parts, 2) == 11, "writev");
	lseek(fd, 0, SEEK_SET);
	for (int i = 0; i < 2; i++)
		require(readv(fd, parts, 2) == 11, "readv");
	close(fd);
	const char *name = path_of("a");
	expect("file", name, "openat", 1, 0, 0, 0, 0);
	expect("file", name, "write", 1012, 0, 0, 8000 + 40960 + 33, 1001);
	expect("file", name, "fsync", 3, 0, 0, 0, 0);
	expect("file", name, "fdatasync", 1, 0, 0, 0, 0);
	expect("file", name, "pread64", 21, 0, 0, 2000, 0);
	expect("file", name, "pwrite64", 7, 0, 0, 350, 0);
	expect("file", name, "writev", 9, 0, 0, 99, 9);
	expect("file", name, "readv", 2, 0, 0, 22, 2);
}

static void many_files(void)
{
	char name[32];

	for (int i = 0; i < 7; i++)
		require(open(path_of("missing"), O_RDONLY) < 0, "a missing file");
	expect("file", path_of("missing"), "openat", 7, 7, 0, 0, 0);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "many-%d", i);
		int fd = make(name);
		put(fd, 100);
		close(fd);
		expect("file", path_of(name), "openat", 1, 0, 0, 0, 0);
		expect("file", path_of(name), "write", 1, 0, 0, 100, 0);
	}
}

/* The same descriptor for files in turn, then for a pipe, and under a second number. */
static void reused(void)
{
	int pipes[2];

	for (int i = 0; i < 20; i++) {
		int fd = make("x");
		put(fd, 10);
		close(fd);
		fd = make("y");
		put(fd, 20);
		int other = dup(fd);
		require(dup2(fd, 100) == 100, "dup2");
		int third = fcntl(fd, F_DUPFD_CLOEXEC, 200);
		close(fd);
		put(other, 1);
		put(100, 2);
		put(third, 3);
		close(other);
		close(third);
	}
	expect("file", path_of("x"), "openat", 20, 0, 0, 0, 0);
	expect("file", path_of("x"), "write", 20, 0, 0, 200, 20);
	expect("file", path_of("y"), "openat", 20, 0, 0, 0, 0);
	expect("file", path_of("y"), "write", 80, 0, 0, 20 * 26, 60);
	require(dup2(1, 100) == 100, "dup2");
	close(100);
	require(pipe2(pipes, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
	for (int i = 0; i < 5; i++)
		put(pipes[1], 100);
	for (int i = 0; i < 5; i++)
		take(pipes[0], 100);
	for (int i = 0; i < 6; i++)
		require(read(pipes[0], buffer, 1) < 0 && errno == EAGAIN, "an empty pipe");
	expect("pipe", link_of(pipes[1]), "write", 5, 0, 0, 500, 0);
	expect("pipe", link_of(pipes[0]), "read", 11, 6, 6, 500, 0);
	/* stays open, so that its name can be read */
}

static void bad_descriptors(void)
{
	for (int i = 0; i < 4; i++)
		require(read(999, buffer, 1) < 0 && errno == EBADF,
			"a descriptor that is not open");
}

static void *write_bytes(void *fd)
{
	for (int i = 0; i < THREAD_WRITES; i++)
		put(*(int *)fd, 1);
	return NULL;
}

/* On several CPUs at the same time. */
static void threads(void)
{
	pthread_t writers[THREADS];
	int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	require(fd >= 0, "/dev/full");
	for (int i = 0; i < 10; i++)
		require(write(fd, buffer, 1) < 0 && errno == ENOSPC, "a full device");
	expect("file", "/dev/full", "write", 10, 10, 0, 0, 0);
	close(fd);
	fd = make("threads");
	for (int i = 0; i < THREADS; i++)
		require(pthread_create(&writers[i], NULL, write_bytes, &fd) == 0, "a thread");
	for (int i = 0; i < THREADS; i++)
		pthread_join(writers[i], NULL);
	close(fd);
	expect("file", path_of("threads"), "write", THREADS * THREAD_WRITES, 0, 0,
		THREADS * THREAD_WRITES, THREADS * THREAD_WRITES);
}

static void network(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct sockaddr_in6 address6 = { .sin6_family = AF_INET6 };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(address);
	char name[64];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	require(bind(listener, (struct sockaddr *)&address, size) == 0, "bind");
	require(listen(listener, 8) == 0, "listen");
	require(getsockname(listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
	snprintf(name, sizeof(name), "127.0.0.1:%u", ntohs(address.sin_port));
	for (int i = 0; i < 3; i++) {
		int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		require(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0,
			"connect");
		int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		require(server >= 0, "accept4");
		for (int k = 0; k < 10; k++)
			require(send(client, buffer, 64, 0) == 64, "send");
		shutdown(client, SHUT_WR);
		while (recv(server, buffer, 64, MSG_WAITALL) > 0)
			;
		put(server, 3);
		take(client, 3);
		close(client);
		close(server);
	}
	expect("socket", name, "connect", 4, 1, 0, 0, 0); /* with the one below */
	expect("socket", name, "sendto", 30, 0, 0, 30 * 64, 0);
	expect("socket", name, "read", 3, 0, 0, 9, 3);
	close(listener);
	int refused = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(connect(refused, (struct sockaddr *)&address, sizeof(address)) < 0,
		"a closed port");
	close(refused);

	address6.sin6_addr = in6addr_loopback;
	address6.sin6_port = htons(1);
	refused = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (refused >= 0 && connect(refused, (struct sockaddr *)&address6, sizeof(address6)) < 0)
		expect("socket", "[::1]:1", "connect", 1, 1, 0, 0, 0);
	require(strlen(path_of("nobody")) < sizeof(local.sun_path), "a long path");
	memcpy(local.sun_path, path_of("nobody"), strlen(path_of("nobody")));
	refused = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(connect(refused, (struct sockaddr *)&local, sizeof(local)) < 0, "no such socket");
	snprintf(buffer, sizeof(buffer), "unix:%s", path_of("nobody"));
	expect("socket", buffer, "connect", 1, 1, 0, 0, 0);
}

/* A read that waits for a child. */
static void slow_read(void)
{
	struct timespec wait = { .tv_nsec = SLOW_NS };
	int pipes[2];

	require(pipe2(pipes, O_CLOEXEC) == 0, "pipe2");
	uint64_t before_ns = now_ns();
	pid_t child = fork();
	if (!child) {
		nanosleep(&wait, NULL);
		put(pipes[1], 2);
		_exit(0);
	}
	uint64_t begin_ns = now_ns();
	take(pipes[0], 2);
	uint64_t end_ns = now_ns();
	waitpid(child, NULL, 0);
	expect("pipe", link_of(pipes[0]), "read", 1, 0, 0, 2, 1);
	printf("slow\t%s\t%llu\t%llu\n", link_of(pipes[0]),
		(unsigned long long)(SLOW_NS - (begin_ns - before_ns)),
		(unsigned long long)(end_ns - begin_ns));
}

int main(int argc, char **argv)
{
	char line[16];
	int early = -1;
	int go = -1;

	require(argc == 2 || argc == 3, "usage: io_target FOLDER [GO]");
	snprintf(folder, sizeof(folder), "%s", argv[1]);
	if (argc == 3) {
		early = make("early");
		go = open(argv[2], O_RDWR | O_CLOEXEC); /* for writing too: it has no end */
		require(go >= 0 && read(go, line, sizeof(line)) > 0, argv[2]);
	}
	if (early >= 0) {
		for (int i = 0; i < 12; i++)
			put(early, 30);
		expect("file", path_of("early"), "write", 12, 0, 0, 360, 0);
	}
	one_file();
	many_files();
	reused();
	bad_descriptors();
	threads();
	network();
	slow_read();
	fflush(stdout);
	/* the recorder reads the names of the descriptors that are open now */
	if (argc == 3) {
		require(read(go, line, sizeof(line)) > 0, argv[2]);
	} else {
		require(setvbuf(stdout, NULL, _IONBF, 0) == 0, "setvbuf");
		sleep(2);
	}
	return 0;
}
