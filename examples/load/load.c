/*
 * Load for a web server on this machine: each connection repeats requests for one path over
 * HTTP/1.1 keep-alive until the time is over. Depends on libc only.
 *
 *   load [-p MICROSECONDS] [-l FILE] PORT SECONDS PATH[=CONNECTIONS]...      load 5000 8 /cpu=1 /wait=4 /alloc /throw
 *
 * Each connection has one thread and at most one request in flight. It pauses between requests (2
 * ms, or -p), so that the load itself uses little CPU. Prints for each path the number of answers
 * and failures, and the mean time. With -l each answer is a line of FILE: CLOCK_MONOTONIC of its
 * request and the time until the answer, in microseconds. Exit code 1 if a path was never answered.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX  64u
#define PATHS_MAX        16u
#define SECONDS_MAX      3600u
#define HEAD_SIZE_MAX    8192u
#define BODY_SIZE_MAX    (1u << 20)
#define ANSWER_TIMEOUT_S 60
#define PAUSE_NS         2000000L

struct path {
	char text[128];
	uint64_t answered;
	uint64_t failed;
	uint64_t time_ns;
};

struct answer {
	uint64_t begin_ns;
	uint64_t time_ns;
};

struct connection {
	pthread_t thread;
	struct answer *answers; /* with -l */
	size_t answer_count;
	size_t answer_room;
	struct path *path; /* shared by all connections of this path; protected by `lock` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t stopped;
static uint16_t port;
static long pause_ns = PAUSE_NS;
static const char *log_path;
static uint64_t end_ns;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_over(void)
{
	return stopped || now_ns() >= end_ns;
}

static int connect_to_server(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct timeval patience = { .tv_sec = ANSWER_TIMEOUT_S };
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
		connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		(void)close(fd); /* the caller reports the failed connect */
		return -1;
	}
	return fd;
}

/* Reads `size` bytes and discards them. */
static bool skip(int fd, size_t size)
{
	char buffer[4096];

	while (size) {
		ssize_t got = read(fd, buffer, size < sizeof(buffer) ? size : sizeof(buffer));
		if (got <= 0)
			return false;
		size -= (size_t)got;
	}
	return true;
}

/* Reads one header line with its `\r\n`, byte by byte. False: the line is longer than the buffer. */
static bool read_line(int fd, char *line, size_t room)
{
	size_t len = 0;

	while (len + 1 < room) {
		if (read(fd, line + len, 1) != 1)
			return false;
		if (line[len++] != '\n')
			continue;
		while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
			len--;
		line[len] = '\0';
		return true;
	}
	return false;
}

static bool skip_chunks(int fd)
{
	char line[256];

	for (;;) {
		if (!read_line(fd, line, sizeof(line)))
			return false;
		unsigned long size = strtoul(line, NULL, 16);
		if (size > BODY_SIZE_MAX || !skip(fd, size) || !read_line(fd, line, sizeof(line)))
			return false;
		if (!size)
			return true;
	}
}

/* Reads one complete answer. True: its status is 200. */
static bool read_answer(int fd)
{
	char line[1024];
	size_t head_size = 0;
	unsigned long body_size = 0;
	bool chunked = false;
	bool good;

	if (!read_line(fd, line, sizeof(line)))
		return false;
	good = strncmp(line, "HTTP/1.1 200", 12) == 0;
	for (;;) {
		if (!read_line(fd, line, sizeof(line)))
			return false;
		if (!line[0])
			break;
		head_size += strlen(line);
		if (head_size > HEAD_SIZE_MAX)
			return false;
		if (strncasecmp(line, "Content-Length:", 15) == 0)
			body_size = strtoul(line + 15, NULL, 10);
		if (strncasecmp(line, "Transfer-Encoding: chunked", 26) == 0)
			chunked = true;
	}
	if (chunked)
		return skip_chunks(fd) && good;
	return body_size <= BODY_SIZE_MAX && skip(fd, body_size) && good;
}

static bool ask(int fd, const char *path)
{
	char request[256];
	int len = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		path);

	return send(fd, request, (size_t)len, MSG_NOSIGNAL) == len && read_answer(fd);
}

/* An answer for which memory cannot be allocated is not logged. */
static void note_answer(struct connection *c, uint64_t begin_ns, uint64_t time_ns)
{
	if (c->answer_count == c->answer_room) {
		size_t room = c->answer_room ? 2 * c->answer_room : 4096;
		struct answer *answers = realloc(c->answers, room * sizeof(*answers));
		if (!answers)
			return;
		c->answers = answers;
		c->answer_room = room;
	}
	c->answers[c->answer_count++] = (struct answer){ begin_ns, time_ns };
}

static void *connection_run(void *argument)
{
	struct connection *c = argument;
	struct timespec pause = { .tv_nsec = pause_ns };
	int fd = -1;

	while (!is_over()) {
		uint64_t started_ns = now_ns();
		bool good;

		if (fd < 0)
			fd = connect_to_server();
		good = fd >= 0 && ask(fd, c->path->text);
		if (!good && fd >= 0) {
			(void)close(fd); /* the next request opens a new connection */
			fd = -1;
		}
		uint64_t time_ns = now_ns() - started_ns;
		if (good && log_path)
			note_answer(c, started_ns, time_ns);
		pthread_mutex_lock(&lock);
		c->path->answered += good;
		c->path->failed += !good;
		c->path->time_ns += good ? time_ns : 0;
		pthread_mutex_unlock(&lock);
		if (!good)
			pause.tv_nsec = 50 * PAUSE_NS; /* do not flood a server that is down */
		if (pause.tv_nsec)
			(void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
		pause.tv_nsec = pause_ns;
	}
	if (fd >= 0)
		(void)close(fd);
	return NULL;
}

static struct path paths[PATHS_MAX];
static struct connection connections[CONNECTIONS_MAX];
static size_t path_count;
static size_t connection_count;

/* Parses "/cpu=2": two connections that request /cpu. */
static bool add_path(const char *text)
{
	size_t len = strcspn(text, "=");
	unsigned long count = text[len] ? strtoul(text + len + 1, NULL, 10) : 1;
	struct path *path = &paths[path_count];

	if (text[0] != '/' || len >= sizeof(path->text) || path_count == PATHS_MAX || count < 1 ||
		count > CONNECTIONS_MAX - connection_count)
		return false;
	memcpy(path->text, text, len);
	path_count++;
	for (unsigned long i = 0; i < count; i++)
		connections[connection_count++].path = path;
	return true;
}

static bool print_result(void)
{
	bool good = true;

	for (size_t i = 0; i < path_count; i++) {
		const struct path *p = &paths[i];
		double mean_ms = p->answered ? (double)p->time_ns / (double)p->answered / 1e6 : 0.0;
		printf("%-10s %6llu answered  %3llu failed  %8.1f ms each\n", p->text,
			(unsigned long long)p->answered, (unsigned long long)p->failed, mean_ms);
		good = good && p->answered;
	}
	return good;
}

static bool write_log(void)
{
	FILE *file = fopen(log_path, "we");
	bool good = file;

	for (size_t i = 0; good && i < connection_count; i++)
		for (size_t a = 0; a < connections[i].answer_count; a++)
			good = fprintf(file, "%.0f %.1f\n",
				       (double)connections[i].answers[a].begin_ns / 1e3,
				       (double)connections[i].answers[a].time_ns / 1e3) > 0;
	good = file && fclose(file) == 0 && good;
	if (!good)
		fprintf(stderr, "cannot write '%s': %s.\n", log_path, strerror(errno));
	return good;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	bool known = true;

	for (; argc > 2 && argv[1][0] == '-' && known; argc -= 2, argv += 2) {
		known = strcmp(argv[1], "-p") == 0 || strcmp(argv[1], "-l") == 0;
		if (argv[1][1] == 'p')
			pause_ns = (long)(strtoul(argv[2], NULL, 10) % 1000000 * 1000);
		else
			log_path = argv[2];
	}
	unsigned long wanted_port = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long seconds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	bool good = known && wanted_port >= 1 && wanted_port <= 65535 && seconds >= 1 &&
		    seconds <= SECONDS_MAX && argc > 3;
	size_t started = 0;

	for (int i = 3; good && i < argc; i++)
		good = add_path(argv[i]);
	if (!good) {
		fprintf(stderr,
			"load [-p MICROSECONDS] [-l FILE] PORT SECONDS PATH[=CONNECTIONS]...\n");
		return 2;
	}
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	port = (uint16_t)wanted_port;
	end_ns = now_ns() + seconds * 1000000000u;
	for (; started < connection_count; started++) {
		struct connection *c = &connections[started];
		int error = pthread_create(&c->thread, NULL, connection_run, c);
		if (error) {
			fprintf(stderr, "cannot start a thread: %s.\n", strerror(error));
			stopped = 1;
			break;
		}
	}
	for (size_t i = 0; i < started; i++)
		pthread_join(connections[i].thread, NULL);
	if (log_path && !write_log())
		return 1;
	return print_result() && started == connection_count ? 0 : 1;
}
