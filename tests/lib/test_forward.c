/*
 * The sinks of <spoor/sink.h> with small servers: the bytes that are sent; servers that are slow, hang, refuse
 * or are not there. The program does not wait for them, and offered is sent plus lost.
 * tests/examples/graphite.sh has a real carbon.
 */
#include "lib/read_back.h"

#include <arpa/inet.h>
#include <errno.h>
#include <locale.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <spoor/sink.h>

SPOOR_PROVIDER(forward, "Forward")
SPOOR_EVENT(forward, order, 1, SPOOR_INFO, 0x1, (u32, number), (f64, price), (text, item))

static struct spoor_counter *orders, *level, *latency, *tagged;

/* ---- Servers ---- */

struct server {
	int fd;
	char port[8];
	const char *answers[4]; /* for one request each, the last one for all others; NULL: none */
	pthread_t thread;
	char requests[1 << 20]; /* guarded by server_lock */
	size_t size;
	unsigned count;
};

static pthread_mutex_t server_lock = PTHREAD_MUTEX_INITIALIZER;

static void server_open(struct server *server, int type)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);

	memset(server, 0, sizeof(*server));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server->fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(server->fd, 16), 0);
	assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &size), 0);
	snprintf(server->port, sizeof(server->port), "%u", ntohs(address.sin_port));
}

/* Reads one request, of which each has a Content-Length. False: the sink has closed. */
static bool request_read(struct server *server, int fd)
{
	char request[65536];
	size_t size = 0;

	for (;;) {
		ssize_t n = recv(fd, request + size, sizeof(request) - 1 - size, 0);
		if (n <= 0)
			return false;
		size += (size_t)n;
		request[size] = 0;
		const char *body = strstr(request, "\r\n\r\n");
		const char *length = strstr(request, "Content-Length: ");
		if (body && length && request + size >= body + 4 + atoi(length + 16))
			break;
	}
	pthread_mutex_lock(&server_lock);
	if (server->size + size < sizeof(server->requests)) {
		memcpy(server->requests + server->size, request, size + 1);
		server->size += size;
	}
	pthread_mutex_unlock(&server_lock);
	return true;
}

/* Answers requests until its socket is shut down. */
static void *server_main(void *context)
{
	struct server *server = context;
	int fd;

	while ((fd = accept(server->fd, NULL, NULL)) >= 0) {
		const char *answer = NULL;
		if (request_read(server, fd)) {
			pthread_mutex_lock(&server_lock);
			answer = server->answers[server->count < 3 ? server->count : 3];
			server->count++;
			pthread_mutex_unlock(&server_lock);
		}
		if (answer)
			(void)!send(fd, answer, strlen(answer), MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

static void server_close(struct server *server)
{
	(void)shutdown(server->fd, SHUT_RDWR);
	if (server->thread)
		pthread_join(server->thread, NULL);
	close(server->fd);
}

static unsigned server_count(struct server *server)
{
	pthread_mutex_lock(&server_lock);
	unsigned count = server->count;
	pthread_mutex_unlock(&server_lock);
	return count;
}

/* ---- Sinks ---- */

static struct spoor_sink_options options_for(const struct server *server)
{
	return (struct spoor_sink_options){ .size = sizeof(struct spoor_sink_options),
		.host = "127.0.0.1",
		.port = server->port,
		.prefix = "shop",
		.meters = "Forward.Test",
		.interval_ms = 20,
		.close_ms = 60000 };
}

static void values_add(void)
{
	spoor_counter_add(orders, 5);
	spoor_counter_add(tagged, 2);
	spoor_gauge_set(level, -1.5);
	for (int i = 1; i <= 100; i++)
		spoor_histogram_record(latency, i);
}

/* Adds values until the sink has sent so many points. */
static void until_sent(const struct spoor_sink *sink, uint64_t sent)
{
	struct spoor_sink_counts counts = { .size = sizeof(counts) };

	for (int i = 0; counts.sent < sent; i++) {
		assert_true(i < 60000);
		values_add();
		usleep(1000);
		spoor_sink_count(sink, &counts);
	}
}

static struct spoor_sink_counts close_sink(struct spoor_sink *sink)
{
	struct spoor_sink_counts counts = { .size = sizeof(counts) };

	spoor_sink_close(sink, &counts);
	assert_int_equal(counts.sent + counts.lost, counts.offered);
	return counts;
}

static void statsd_sends_datagrams(void **state)
{
	struct server server;
	struct spoor_sink *sink;
	char text[1 << 16] = "", datagram[2048];
	const struct spoor_tag tag = { "env", "te|st" };

	(void)state;
	server_open(&server, SOCK_DGRAM);
	struct spoor_sink_options options = options_for(&server);
	options.tags = &tag;
	options.tag_count = 1;
	assert_int_equal(spoor_sink_statsd(&options, &sink), 0);
	until_sent(sink, 30);
	struct spoor_sink_counts counts = close_sink(sink);
	assert_int_equal(counts.lost, 0);
	for (ssize_t n; (n = recv(server.fd, datagram, sizeof(datagram) - 1, MSG_DONTWAIT)) > 0;) {
		assert_true(n <= 1432);
		datagram[n] = 0;
		if (strlen(text) + (size_t)n < sizeof(text))
			strcat(text, datagram);
	}
	/* Changes are multiples of 5 and 2, a negative gauge follows a zero. */
	assert_non_null(strstr(text, "shop.Forward.Test.level:0|g|#env:te_st\n"
				     "shop.Forward.Test.level:-1.5|g|#env:te_st\n"));
	assert_non_null(strstr(text, "|c|#env:te_st,channel:web\n"));
	assert_non_null(strstr(text, "shop.Forward.Test.latency.count:"));
	assert_non_null(strstr(text, "shop.Forward.Test.latency.p99:"));
	uint64_t sum = 0;
	for (const char *at = text; (at = strstr(at, ".orders:")); at++)
		if (!strstr(at, "channel") || strstr(at, "channel") > strchr(at, '\n'))
			sum += strtoull(at + 8, NULL, 10);
	assert_true(sum > 0 && sum % 5 == 0);
	server_close(&server);
}

#define OK      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
#define LATER   "HTTP/1.1 503 Not now\r\nContent-Length: 0\r\n\r\n"
#define REFUSED "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"
#define PARTLY                                                  \
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" \
	"35\r\n{\"partialSuccess\":{\"rejectedDataPoints\":\"2\"}}     \r\n0\r\n\r\n"

static void otlp_posts_json(void **state)
{
	static struct server server;
	struct spoor_sink *sink;
	const struct spoor_tag tag = { "service.name", "shop \"1\" \xff" };
	char command[400];

	(void)state;
	server_open(&server, SOCK_STREAM);
	/* The first is sent again, of the second two are lost, the third is lost. */
	server.answers[0] = LATER;
	server.answers[1] = PARTLY;
	server.answers[2] = REFUSED;
	server.answers[3] = OK;
	assert_int_equal(pthread_create(&server.thread, NULL, server_main, &server), 0);
	struct spoor_sink_options options = options_for(&server);
	options.tags = &tag;
	options.tag_count = 1;
	options.headers = "Authorization: Bearer abc\r\n";
	assert_int_equal(spoor_sink_otlp(&options, &sink), 0);
	for (int i = 0; server_count(&server) < 5; i++) {
		assert_true(i < 60000);
		values_add();
		usleep(1000);
	}
	struct spoor_sink_counts counts = close_sink(sink);
	server_close(&server);
	assert_true(counts.sent > 0);
	assert_true(counts.lost > 2 && counts.lost <= 2 + 4);
	assert_int_equal(counts.failures, 2);
	assert_non_null(strstr(server.requests, "POST /v1/metrics HTTP/1.1\r\nHost: 127.0.0.1:"));
	assert_non_null(strstr(server.requests, "\r\nAuthorization: Bearer abc\r\n"));
	assert_non_null(strstr(server.requests,
		"{\"key\":\"service.name\",\"value\":{\"stringValue\":\"shop \\u00221\\u0022 "
		"\\ufffd\"}}"));
	assert_non_null(strstr(server.requests, "\"scope\":{\"name\":\"Forward.Test\""));
	assert_non_null(strstr(server.requests,
		"\"aggregationTemporality\":2,\"isMonotonic\":true"));
	assert_non_null(strstr(server.requests, "\"stringValue\":\"web\""));
	assert_non_null(strstr(server.requests, "\"asDouble\":-1.5"));
	assert_non_null(strstr(server.requests, "{\"quantile\":0.98999999999999999,\"value\":"));
	/* The last body is valid JSON, if this machine can tell. */
	const char *body = server.requests;
	for (const char *at = body; (at = strstr(at, "\r\n\r\n")); at += 4)
		body = at + 4;
	const char *path = test_path("body.json");
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(body, file);
	fclose(file);
	snprintf(command, sizeof(command),
		"! command -v python3 >/dev/null || python3 -m json.tool <%s >/dev/null", path);
	assert_int_equal(system(command), 0);
}

/* The server accepts connections, and never reads or answers. */
static void a_server_that_hangs(void **state)
{
	static int (*const opens[])(const struct spoor_sink_options *,
		struct spoor_sink **) = { spoor_sink_graphite, spoor_sink_otlp };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct server server;
		struct spoor_sink *sink;

		server_open(&server, SOCK_STREAM);
		struct spoor_sink_options options = options_for(&server);
		struct spoor_want want = { .size = sizeof(want),
			.name = "Forward",
			.keywords = UINT64_MAX,
			.level = SPOOR_VERBOSE };
		options.close_ms = 100;
		options.buffer_bytes = 1 << 20;
		options.wants = i ? NULL : &want;
		options.want_count = i ? 0 : 1;
		assert_int_equal(opens[i](&options, &sink), 0);
		for (uint32_t k = 0; k < 50000; k++)
			forward_order(k, k, "tea");
		for (int k = 0; k < 50; k++) {
			values_add();
			usleep(1000);
		}
		struct spoor_sink_counts counts = close_sink(sink);
		assert_true(counts.lost > 0);
		if (i == 0) {
			assert_int_equal(counts.events + counts.events_lost, 50000);
			assert_true(counts.events_lost > 0);
		} else {
			assert_int_equal(counts.sent, 0);
		}
		server_close(&server);
	}
}

/* No such host, nothing at the port: everything is lost, and counted. */
static void no_server(void **state)
{
	static int (*const opens[])(const struct spoor_sink_options *,
		struct spoor_sink **) = { spoor_sink_graphite, spoor_sink_statsd, spoor_sink_otlp };
	struct server server;

	(void)state;
	server_open(&server, SOCK_STREAM);
	server_close(&server); /* its port is free now */
	for (int i = 0; i < 6; i++) {
		struct spoor_sink_options options = options_for(&server);
		struct spoor_sink_counts counts = { .size = sizeof(counts) };
		struct spoor_sink *sink;

		options.close_ms = 50;
		if (i >= 3)
			options.host = "nowhere.invalid";
		assert_int_equal(opens[i % 3](&options, &sink), 0);
		for (int k = 0; k < 60000 && !counts.failures; k++) {
			values_add();
			usleep(1000);
			spoor_sink_count(sink, &counts);
		}
		assert_true(counts.failures > 0);
		counts = close_sink(sink);
		if (i != 1) /* UDP: the first datagram is taken by the kernel */
			assert_int_equal(counts.sent, 0);
	}
}

static void graphite_is_independent_of_the_locale(void **state)
{
	struct server server;
	struct spoor_sink *sink;
	char text[65536];
	size_t size = 0;

	(void)state;
	if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
		print_message("no locale with a comma here: tested with that of C\n");
	server_open(&server, SOCK_STREAM);
	struct spoor_sink_options options = options_for(&server);
	assert_int_equal(spoor_sink_graphite(&options, &sink), 0);
	until_sent(sink, 8);
	(void)close_sink(sink);
	setlocale(LC_NUMERIC, "C");
	int fd = accept(server.fd, NULL, NULL);
	for (ssize_t n; (n = recv(fd, text + size, sizeof(text) - 1 - size, 0)) > 0;)
		size += (size_t)n;
	text[size] = 0;
	assert_non_null(strstr(text, "shop.Forward.Test.level -1.5 "));
	assert_non_null(strstr(text, "shop.Forward.Test.orders;channel=web "));
	close(fd);
	server_close(&server);
}

static void mistakes_are_refused(void **state)
{
	struct spoor_want want = { .size = sizeof(want), .name = "Forward" };
	struct spoor_sink_options options = { .size = sizeof(options) };
	struct spoor_sink *sink;

	(void)state;
	assert_int_equal(spoor_sink_otlp(NULL, &sink), -EINVAL);
	assert_int_equal(spoor_sink_otlp(&options, NULL), -EINVAL);
	options.path = "v1/metrics";
	assert_int_equal(spoor_sink_otlp(&options, &sink), -EINVAL);
	options.path = "/v1 /metrics";
	assert_int_equal(spoor_sink_otlp(&options, &sink), -EINVAL);
	options.path = NULL;
	options.headers = "A: b";
	assert_int_equal(spoor_sink_otlp(&options, &sink), -EINVAL);
	options.headers = "A: b\r\n\r\nbody\r\n";
	assert_int_equal(spoor_sink_otlp(&options, &sink), -EINVAL);
	options.headers = NULL;
	options.wants = &want;
	options.want_count = 1;
	assert_int_equal(spoor_sink_statsd(&options, &sink), -EINVAL);
	options.wants = NULL;
	options.want_count = 0;
	options.tag_count = 1;
	assert_int_equal(spoor_sink_statsd(&options, &sink), -EINVAL);
	spoor_sink_close(NULL, NULL);
}

static void a_child_does_not_send(void **state)
{
	static struct server server;
	struct spoor_sink *sink;
	int status;

	(void)state;
	server_open(&server, SOCK_DGRAM);
	struct spoor_sink_options options = options_for(&server);
	assert_int_equal(spoor_sink_statsd(&options, &sink), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		spoor_sink_close(sink, NULL);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	until_sent(sink, 5);
	(void)close_sink(sink);
	server_close(&server);
}

static int set_up(void **state)
{
	struct spoor_meter *meter;
	const struct spoor_tag tag = { "channel", "web" };

	(void)state;
	if (spoor_start(NULL) || spoor_provider_register(&forward))
		return 1;
	meter = spoor_meter_open("Forward.Test", "1.0");
	orders = spoor_counter_open(meter, SPOOR_COUNTER, "orders", NULL);
	tagged = spoor_counter_tagged(orders, &tag, 1);
	level = spoor_counter_open(meter, SPOOR_GAUGE, "level", NULL);
	latency = spoor_counter_open(meter, SPOOR_HISTOGRAM, "latency", NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	spoor_stop();
	test_paths_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statsd_sends_datagrams),
		cmocka_unit_test(otlp_posts_json),
		cmocka_unit_test(a_server_that_hangs),
		cmocka_unit_test(no_server),
		cmocka_unit_test(graphite_is_independent_of_the_locale),
		cmocka_unit_test(mistakes_are_refused),
		cmocka_unit_test(a_child_does_not_send),
	};

	return cmocka_run_group_tests_name("forward", tests, set_up, tear_down);
}
