/*
 * Programs that try to mislead a recorder, and programs that simulate an older or restricted kernel.
 *
 *   hostile jit MS                    computes in anonymous memory; prints its pid, and start and size of the code in the form of a perf map.
 *                                     Starts to compute after a line on standard input
 *   hostile old-kernel COMMAND...     runs the command as on a kernel before 5.6: without openat2
 *   hostile no-perf ERRNO COMMAND...  runs the command as below a container's seccomp filter: perf_event_open fails with EPERM, EACCES or ENOSYS
 *   hostile no-guard COMMAND...       runs the command with a socketpair() that fails, so that it cannot start a guard
 *   hostile look FILE                 prints the type, mode, user and group of the file in one line
 *   hostile runtime MODE              listens in TMPDIR as the diagnostics server of a .NET runtime does, and prints its pid. It answers the
 *                                     requests that it knows, and ignores StopTracing. MODE is its behaviour:
 *                                       silent   sends no answer
 *                                       idle     opens sessions, and sends no event
 *                                       flood    sends empty event blocks without end
 *                                       close    opens sessions, and closes their streams after the first bytes
 *                                       noise    sends zero bytes without end
 *                                       drip     announces a large block, and sends a byte every 20 ms
 *                                       trickle  announces an answer of 60,000 bytes, and sends a byte every 20 ms
 *                                     It prints a line for each request: its command set and command.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

static int run_jit(uint64_t ms)
{
#ifdef __x86_64__
	/* mov ecx, 2000000; 1: dec ecx; jnz 1b; ret */
	static const uint8_t code[] = { 0xb9, 0x80, 0x84, 0x1e, 0x00, 0xff, 0xc9, 0x75, 0xfc,
		0xc3 };
	char line[16];
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return fail("mmap");
	memcpy(memory, code, sizeof(code));
	printf("%d %lx %zx\n", getpid(), (unsigned long)(uintptr_t)memory, sizeof(code));
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (uint64_t end = now_ms() + ms; now_ms() < end;)
		((void (*)(void))(uintptr_t)memory)();
	return 0;
#else
	(void)ms;
	return 77;
#endif
}

/* Runs the command with one system call failing. */
static int run_without(unsigned call, unsigned error, char **command)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return 77;
	execvp(command[0], command);
	return fail(command[0]);
}

static unsigned error_of(const char *name)
{
	return strcmp(name, "ENOSYS") == 0 ? ENOSYS : strcmp(name, "EACCES") == 0 ? EACCES : EPERM;
}

static int look_at(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return fail(path);
	printf("%o %u %u\n", st.st_mode & 07777, st.st_uid, st.st_gid);
	return 0;
}

/* ---- a diagnostics server ---- */

enum { CLIENTS = 64, REQUEST_MAX = 65536 };

enum mode { SILENT, IDLE, CLOSE, FLOOD, NOISE, DRIP, TRICKLE, MODE_COUNT };

struct client {
	int fd;     /* -1: free */
	size_t got; /* of its request */
	bool answered;
	bool streams;
	bool trickles;
	uint8_t request[REQUEST_MAX];
};

static const char *const mode_names[MODE_COUNT] = { "silent", "idle", "close", "flood", "noise",
	"drip", "trickle" };
static struct client clients[CLIENTS];
static uint8_t flood[65536]; /* its first byte is not sent */
static size_t flood_size;

static size_t put_object(uint8_t *out, size_t at, const char *name, uint32_t version)
{
	uint32_t len = (uint32_t)strlen(name);
	const uint32_t words[] = { version, version, len };

	memcpy(out + at, "\5\5\1", 3);
	memcpy(out + at + 3, words, sizeof(words));
	memcpy(out + at + 15, name, len);
	out[at + 15 + len] = 6;
	return at + 16 + len;
}

/* The beginning of a nettrace stream: magic, and the Trace object of this process. */
static size_t put_head(uint8_t *out)
{
	static const uint16_t date[8] = { 2026, 1, 1, 1, 0, 0, 0, 0 };
	struct timespec now;
	size_t at = 8 + 4 + 20;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	memcpy(out, "Nettrace\x14\0\0\0!FastSerialization.1", at);
	at = put_object(out, at, "Trace", 4);
	const uint64_t clock[2] = { (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
		1000000000u };
	const uint32_t rest[4] = { 8, (uint32_t)getpid(), 1, 1000000 };

	memcpy(out + at, date, 16);
	memcpy(out + at + 16, clock, 16);
	memcpy(out + at + 32, rest, 16);
	out[at + 48] = 6;
	return at + 49;
}

/*
 * A block header; its body of `size` bytes and the tag 6 follow, aligned to 4 from the stream's
 * beginning.
 */
static size_t put_block(uint8_t *out, size_t at, uint32_t size)
{
	at = put_object(out, at, "EventBlock", 2);
	memcpy(out + at, &size, 4);
	at += 4;
	while (at % 4)
		out[at++] = 0;
	return at;
}

/*
 * A block that holds its header only. It is 21 bytes from an aligned place, so the next one begins
 * one byte behind an aligned place.
 */
static size_t put_empty_block(uint8_t *out, size_t at)
{
	const uint16_t header[2] = { 20, 0 };

	at = put_block(out, at, 20);
	memcpy(out + at, header, sizeof(header));
	out[at + 20] = 6;
	return at + 21;
}

static void send_all(int fd, const void *data, size_t size)
{
	for (const uint8_t *at = data; size;) {
		ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			(void)poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, 1000);
			continue;
		}
		if (n <= 0)
			return;
		at += n;
		size -= (size_t)n;
	}
}

static void reply(int fd, bool ok, const void *payload, size_t size, size_t announced)
{
	uint8_t message[512] = "DOTNET_IPC_V1";

	message[14] = (uint8_t)(20 + announced);
	message[15] = (uint8_t)((20 + announced) >> 8);
	message[16] = 0xff;
	message[17] = ok ? 0 : 0xff;
	memcpy(message + 20, payload, size);
	send_all(fd, message, 20 + size);
}

static size_t put_text(uint8_t *out, size_t at, const char *text)
{
	uint32_t len = (uint32_t)strlen(text) + 1;

	memcpy(out + at, &len, 4);
	at += 4;
	for (uint32_t i = 0; i < len; i++, at += 2)
		out[at] = (uint8_t)text[i];
	return at;
}

static void answer(struct client *client, enum mode mode)
{
	static const uint32_t unknown = 0x80131385;
	static const uint64_t session = 0x55aa;
	uint8_t payload[400] = { 0 };
	unsigned set = client->request[16];
	unsigned command = client->request[17];

	printf("%02x%02x\n", set, command);
	fflush(stdout);
	client->answered = true;
	if (mode == SILENT || (set == 2 && command == 1))
		return;
	if (mode == TRICKLE) {
		client->trickles = true;
		reply(client->fd, true, payload, 8, 60000);
	} else if (set == 4 && command == 8) {
		const uint32_t version = 1;
		const uint64_t pid = (uint64_t)getpid();
		memcpy(payload, &version, 4);
		memcpy(payload + 4, &pid, 8);
		memcpy(payload + 12, "0123456789abcdef", 16);
		size_t at = put_text(payload, 28, "dotnet shop.dll");
		at = put_text(payload, at, "Linux");
		at = put_text(payload, at, "x64");
		at = put_text(payload, at, "shop");
		at = put_text(payload, at, "10.0.12");
		reply(client->fd, true, payload, at, at);
	} else if (set == 2) {
		uint8_t head[512] = { 0 };
		size_t size = put_head(head);
		reply(client->fd, true, &session, 8, 8);
		send_all(client->fd, head, mode == CLOSE ? 8 : size); /* the magic number */
		client->streams = mode != CLOSE;
		if (mode == CLOSE)
			(void)shutdown(client->fd, SHUT_RDWR); /* receive() closes it */
		if (mode == DRIP) {
			size_t end = put_block(head, size, 1000000);
			send_all(client->fd, head + size, end - size);
		}
		if (mode == FLOOD) {
			size_t end = put_empty_block(head, size);
			send_all(client->fd, head + size, end - size);
			for (flood_size = 1; flood_size < sizeof(flood) - 128;)
				flood_size = put_empty_block(flood, flood_size);
		}
	} else {
		reply(client->fd, false, &unknown, 4, 4);
	}
}

static void receive(struct client *client, enum mode mode)
{
	ssize_t n = recv(client->fd, client->request + client->got, REQUEST_MAX - client->got,
		MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		close(client->fd);
		client->fd = -1;
		return;
	}
	client->got += n > 0 ? (size_t)n : 0;
	if (!client->answered && client->got >= 20 &&
		client->got >= (size_t)(client->request[14] | client->request[15] << 8))
		answer(client, mode);
}

static void annoy(struct client *client, enum mode mode)
{
	static const uint8_t zeros[65536];

	if (client->trickles || (client->streams && mode == DRIP))
		(void)send(client->fd, zeros, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (client->streams && mode == FLOOD)
		send_all(client->fd, flood + 1, flood_size - 1);
	else if (client->streams && mode == NOISE)
		(void)send(client->fd, zeros, sizeof(zeros), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static unsigned long long start_ticks(void)
{
	char text[1024] = "";
	unsigned long long ticks = 0;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	if (read(fd, text, sizeof(text) - 1) <= 0 || !strrchr(text, ')'))
		return 0;
	close(fd);
	(void)sscanf(strrchr(text, ')') + 2,
		"%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		&ticks);
	return ticks;
}

static int run_runtime(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct pollfd fds[CLIENTS + 1];
	const char *folder = getenv("TMPDIR");
	unsigned mode = 0;

	while (mode < MODE_COUNT && strcmp(mode_names[mode], name) != 0)
		mode++;
	if (mode == MODE_COUNT)
		return 2;
	(void)snprintf(address.sun_path, sizeof(address.sun_path),
		"%s/dotnet-diagnostic-%d-%llu-socket", folder ? folder : "/tmp", getpid(),
		start_ticks());
	fds[CLIENTS] = (struct pollfd){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
		.events = POLLIN };
	if (bind(fds[CLIENTS].fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fds[CLIENTS].fd, CLIENTS) < 0)
		return fail(address.sun_path);
	for (int i = 0; i < CLIENTS; i++)
		clients[i].fd = -1;
	printf("%d\n", getpid());
	fflush(stdout);
	for (;;) {
		bool busy = false;
		for (int i = 0; i < CLIENTS; i++) {
			fds[i] = (struct pollfd){ .fd = clients[i].fd, .events = POLLIN };
			busy |= clients[i].fd >= 0 && clients[i].streams &&
				(mode == FLOOD || mode == NOISE);
		}
		(void)poll(fds, CLIENTS + 1, busy ? 0 : 20);
		for (int i = 0; i < CLIENTS; i++) {
			if (clients[i].fd < 0 && fds[CLIENTS].revents) {
				fds[CLIENTS].revents = 0;
				clients[i] = (struct client){ .fd = accept(fds[CLIENTS].fd, NULL,
								      NULL) };
			}
			if (clients[i].fd >= 0)
				receive(&clients[i], mode);
			if (clients[i].fd >= 0)
				annoy(&clients[i], mode);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "jit") == 0)
		return run_jit(strtoull(argv[2], NULL, 10));
	if (argc > 2 && strcmp(argv[1], "old-kernel") == 0)
		return run_without(SYS_openat2, ENOSYS, argv + 2);
	if (argc > 3 && strcmp(argv[1], "no-perf") == 0)
		return run_without(SYS_perf_event_open, error_of(argv[2]), argv + 3);
	if (argc > 2 && strcmp(argv[1], "no-guard") == 0)
		return run_without(SYS_socketpair, EMFILE, argv + 2);
	if (argc == 3 && strcmp(argv[1], "look") == 0)
		return look_at(argv[2]);
	if (argc == 3 && strcmp(argv[1], "runtime") == 0)
		return run_runtime(argv[2]);
	fprintf(stderr, "hostile jit|old-kernel|no-perf|look|runtime ...\n");
	return 2;
}
