/*
 * Measures the time of a tool from its exec to its request for a session: opening COMMAND
 * [ARGUMENT]..., in which the word PID becomes the id of the process to trace, which is this one.
 * This process listens on a diagnostics socket like a runtime, answers ProcessInfo, and prints the
 * milliseconds from the exec to the request for a session. Then it ends the tool.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX 64

static void die(const char *what)
{
	fprintf(stderr, "opening: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Field 22 of /proc/PID/stat, the start time, is part of the socket's name. */
static uint64_t start_ticks(void)
{
	char text[1024];
	FILE *file = fopen("/proc/self/stat", "re");

	if (!file || !fgets(text, sizeof(text), file))
		die("/proc/self/stat");
	fclose(file);
	char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static int listen_as_runtime(char path[108])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *folder = getenv("TMPDIR");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path),
		"%s/dotnet-diagnostic-%d-%" PRIu64 "-socket", folder && *folder ? folder : "/tmp",
		getpid(), start_ticks());
	memcpy(path, address.sun_path, sizeof(address.sun_path));
	unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, 16) < 0)
		die(path);
	return fd;
}

static size_t put_text(uint8_t *at, const char *text)
{
	uint32_t units = (uint32_t)strlen(text) + 1;

	memcpy(at, &units, 4);
	for (uint32_t i = 0; i < units; i++) {
		at[4 + 2 * i] = (uint8_t)text[i];
		at[5 + 2 * i] = 0;
	}
	return 4 + 2 * (size_t)units;
}

static void answer_info(int fd, unsigned id)
{
	uint8_t reply[512] = "DOTNET_IPC_V1";
	uint64_t pid = (uint64_t)getpid();
	size_t size = 20;

	reply[16] = 0xff;
	if (id == 8) {
		reply[size] = 1;
		size += 4;
	}
	memcpy(reply + size, &pid, 8);
	size += 24; /* and a cookie of zeros */
	size += put_text(reply + size, "opening");
	size += put_text(reply + size, "Linux");
	size += put_text(reply + size, "x64");
	if (id != 0) {
		size += put_text(reply + size, "opening");
		size += put_text(reply + size, "10.0.0");
	}
	if (id == 8)
		size += put_text(reply + size, "linux-x64");
	reply[14] = (uint8_t)size;
	reply[15] = (uint8_t)(size >> 8);
	/* a peer that has disconnected needs no answer */
	(void)send(fd, reply, size, MSG_NOSIGNAL);
}

/* True: the request was for a session. */
static bool serve(int listener)
{
	uint8_t request[65536];
	size_t got = 0;
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		die("accept");
	while (got < 20 || got < (size_t)(request[14] | request[15] << 8)) {
		ssize_t n = recv(fd, request + got, sizeof(request) - got, 0);
		if (n <= 0) {
			close(fd);
			return false;
		}
		got += (size_t)n;
	}
	bool collect = request[16] == 2 && request[17] != 1;

	if (request[16] == 4)
		answer_info(fd, request[17]);
	close(fd);
	return collect;
}

int main(int argc, char **argv)
{
	char path[108];
	char pid_text[TEXT_MAX];

	if (argc < 2)
		die("opening COMMAND [ARGUMENT]...");
	/* Tools recognize a .NET process by this mapping. */
	int memory = memfd_create("doublemapper", MFD_CLOEXEC);
	if (memory < 0 || ftruncate(memory, 4096) < 0 ||
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0) == MAP_FAILED)
		die("memory");
	int listener = listen_as_runtime(path);

	snprintf(pid_text, sizeof(pid_text), "%d", getpid());
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "PID") == 0)
			argv[i] = pid_text;
	uint64_t begin_ns = now_ns();
	pid_t pid = fork();

	if (pid == 0) {
		int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
		dup2(nowhere, STDIN_FILENO);
		dup2(nowhere, STDOUT_FILENO);
		dup2(nowhere, STDERR_FILENO);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	alarm(30);
	while (!serve(listener))
		;
	printf("%.3f\n", (double)(now_ns() - begin_ns) / 1e6);
	unlink(path);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return 0;
}
