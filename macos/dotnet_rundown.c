/*
 * dotnet-rundown PID FILE: the methods of a process that runs .NET (5 or later), as a nettrace file.
 * Only POSIX, for macOS; spoor record does more on Linux.
 *
 * It opens an EventPipe session with one provider that is off, and ends it: the runtime then lists
 * its methods. The session is always ended, because a session without a reader blocks the process.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define HEAD          20u /* of a message: magic, size, command set, command, two zero bytes */
#define REPLY_MAX     256u
#define COMMAND_TRACE 2u
#define STOP_TRACING  1u
#define COLLECT_2     3u
#define BUFFER_MB     64u
/* A process that answers nothing for so long is given up. */
#define WAIT_MS 30000

static const char provider[] = "Microsoft-Windows-DotNETRuntime";

static int fail(const char *what)
{
	fprintf(stderr, "dotnet-rundown: %s: %s\n", what, strerror(errno));
	return 1;
}

/* ---- The socket ---- */

/* The newest socket of the process, as a pid may have been another process's before. */
static int socket_path(const char *pid, char *path, size_t room)
{
	const char *folder = getenv("TMPDIR");
	char begin[64];
	time_t newest = 0;
	int found = 0;

	if (!folder || !*folder)
		folder = "/tmp";
	DIR *d = opendir(folder);
	if (!d)
		return -1;
	(void)snprintf(begin, sizeof(begin), "dotnet-diagnostic-%s-", pid);
	for (struct dirent *entry; (entry = readdir(d));) {
		char one[sizeof(((struct sockaddr_un *)0)->sun_path)];
		struct stat status;
		if (strncmp(entry->d_name, begin, strlen(begin)) != 0)
			continue;
		int size = snprintf(one, sizeof(one), "%s%s%s", folder,
			folder[strlen(folder) - 1] == '/' ? "" : "/", entry->d_name);
		if (size < 0 || (size_t)size >= sizeof(one) || (size_t)size >= room ||
			stat(one, &status) || !S_ISSOCK(status.st_mode))
			continue;
		if (found && status.st_mtime <= newest)
			continue;
		newest = status.st_mtime;
		found = 1;
		memcpy(path, one, (size_t)size + 1);
	}
	(void)closedir(d);
	errno = ENOENT;
	return found ? 0 : -1;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memset(&address, 0, sizeof(address));
	address.sun_family = AF_UNIX;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static int write_all(int fd, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = write(fd, at, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/* The number of bytes; 0: the end; -1: an error, or nothing came for WAIT_MS. */
static ssize_t read_some(int fd, void *bytes, size_t size)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	for (;;) {
		int r = poll(&wait, 1, WAIT_MS);
		if (r == 0)
			errno = ETIMEDOUT;
		if (r == 0 || (r < 0 && errno != EINTR))
			return -1;
		ssize_t n = r < 0 ? -1 : read(fd, bytes, size);
		if (n >= 0 || errno != EINTR)
			return n;
	}
}

static int read_all(int fd, void *bytes, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = read_some(fd, (char *)bytes + at, size - at);
		if (n <= 0) {
			errno = n < 0 ? errno : ECONNRESET;
			return -1;
		}
		at += (size_t)n;
	}
	return 0;
}

/* ---- Messages ---- */

struct message {
	uint8_t bytes[512];
	size_t size;
};

static void put(struct message *to, uint64_t value, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		to->bytes[to->size++] = (uint8_t)(value >> 8 * i);
}

static void begin(struct message *to, unsigned command)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->bytes, "DOTNET_IPC_V1", 14);
	to->bytes[16] = COMMAND_TRACE;
	to->bytes[17] = (uint8_t)command;
	to->size = HEAD;
}

static int send_to(int fd, struct message *message)
{
	message->bytes[14] = (uint8_t)message->size;
	message->bytes[15] = (uint8_t)(message->size >> 8);
	return write_all(fd, message->bytes, message->size);
}

/* The reply's first 8 bytes, a session's id. */
static int reply_read(int fd, uint64_t *ret_id)
{
	uint8_t head[HEAD], body[REPLY_MAX];

	if (read_all(fd, head, sizeof(head)))
		return -1;
	size_t size = head[14] | (size_t)head[15] << 8;
	if (memcmp(head, "DOTNET_IPC_V1", 14) != 0 || size < HEAD + 4 ||
		size - HEAD > sizeof(body)) {
		errno = EPROTO;
		return -1;
	}
	if (read_all(fd, body, size - HEAD))
		return -1;
	if (head[17] != 0 || size < HEAD + 8) { /* 0xff: an error of the runtime */
		errno = EPROTO;
		return -1;
	}
	*ret_id = 0;
	for (unsigned i = 0; i < 8; i++)
		*ret_id |= (uint64_t)body[i] << 8 * i;
	return 0;
}

/* ---- The session ---- */

static int session_begin(int fd, uint64_t *ret_id)
{
	struct message message;

	begin(&message, COLLECT_2);
	put(&message, BUFFER_MB, 4);
	put(&message, 1, 4); /* nettrace */
	put(&message, 1, 1); /* with the rundown */
	put(&message, 1, 4); /* providers */
	put(&message, 0, 8); /* keywords */
	put(&message, 1, 4); /* level: critical */
	put(&message, sizeof(provider), 4);
	for (size_t i = 0; i < sizeof(provider); i++)
		put(&message, (uint8_t)provider[i], 2);
	put(&message, 0, 4); /* no arguments */
	return send_to(fd, &message) || reply_read(fd, ret_id) ? -1 : 0;
}

static int stop_send(int fd, uint64_t id)
{
	struct message message;

	begin(&message, STOP_TRACING);
	put(&message, id, 8);
	return send_to(fd, &message);
}

static int copy(int from, FILE *to)
{
	static char bytes[65536];
	ssize_t n;

	while ((n = read_some(from, bytes, sizeof(bytes))) > 0)
		if (fwrite(bytes, 1, (size_t)n, to) != (size_t)n)
			return -1;
	return n < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	uint64_t id, stopped;

	if (argc != 3) {
		fprintf(stderr, "dotnet-rundown PID FILE\n");
		return 2;
	}
	if (socket_path(argv[1], path, sizeof(path)))
		return fail("the process has no diagnostics socket in TMPDIR");
	FILE *file = fopen(argv[2], "wb");
	if (!file)
		return fail(argv[2]);
	int stream = connect_to(path);
	int control = stream < 0 || session_begin(stream, &id) ? -1 : connect_to(path);
	int failed = control < 0 || stop_send(control, id);
	if (failed)
		(void)fail(path);
	/* The runtime answers when the stream has been read. */
	if (!failed && (copy(stream, file) || reply_read(control, &stopped)))
		failed = fail(path);
	if (fclose(file))
		failed = fail(argv[2]);
	if (failed)
		(void)unlink(argv[2]);
	return failed ? 1 : 0;
}
