/*
 * The page that Prometheus fetches: a server of one page, as small as it can be.
 *
 *   counting_http_open("127.0.0.1:9464", &http, &diag);
 *   each turn:  counting_http_await(http, &set); poll_set_wait(&set);
 *               counting_http_advance(http, now_ns, page, context);
 *   counting_http_free(http);
 *
 * GET and HEAD of /metrics; everything else is refused. Never blocks: at most COUNTING_HTTP_PEERS
 * connections at a time; a request may have COUNTING_HTTP_REQUEST bytes, and each connection is
 * closed after COUNTING_HTTP_NS. The page is made when it is requested.
 */
#ifndef SPOOR_COUNTERS_COUNTING_HTTP_H
#define SPOOR_COUNTERS_COUNTING_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct counting_http;
struct diag;
struct poll_set;

#define COUNTING_HTTP_PEERS   16u
#define COUNTING_HTTP_REQUEST 8192u
#define COUNTING_HTTP_NS      UINT64_C(5000000000)

/* HOST and PORT have defaults: loopback, 9464. -EADDRINUSE, -EACCES. */
int counting_http_open(const char *address, struct counting_http **ret_http, struct diag *diag);

/* "127.0.0.1:9464": where it listens. */
const char *counting_http_address(const struct counting_http *http);

void counting_http_await(const struct counting_http *http, struct poll_set *set);
void counting_http_advance(struct counting_http *http, uint64_t now_ns,
	void (*page)(void *context, struct bytes *out), void *context);

/*
 * The answer to the bytes of a request, appended. False: the request has not ended, and there is
 * room for more of it. `size` is less than COUNTING_HTTP_REQUEST.
 */
bool counting_http_answer(const char *request, size_t size,
	void (*page)(void *context, struct bytes *out), void *context, struct bytes *out);

void counting_http_free(struct counting_http *http);

#endif
