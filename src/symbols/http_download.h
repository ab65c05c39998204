/*
 * Downloads over HTTP by libcurl, which is loaded at run time: Spoor works without it.
 *
 *   http_client_open(&client, &diag)          -ENOSYS: no libcurl here, or this build is static
 *   http_download(client, &request, &diag)    any number of times
 *   http_client_close(client)
 *
 * Only http and https are spoken, also after redirections. Not thread-safe.
 */
#ifndef SPOOR_SYMBOLS_HTTP_DOWNLOAD_H
#define SPOOR_SYMBOLS_HTTP_DOWNLOAD_H

#include <stdint.h>

struct diag;
struct http_client;

struct http_request {
	const char *url;
	int fd;              /* gets the bytes from `from` on */
	uint64_t from;       /* bytes that it has already; not 0: a download is resumed */
	uint64_t size_max;   /* of the whole file */
	uint64_t timeout_ns; /* of the whole download */
	/* `total` 0: unknown; may be NULL */
	void (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

int http_client_open(struct http_client **ret_client, struct diag *diag);
void http_client_close(struct http_client *client);

/*
 * 0: the file is whole. -ENOENT: the server has no such file. -ERANGE: it cannot be resumed, nothing
 * was written. -EFBIG: larger than size_max. Others: the server failed, could not be reached, or
 * sent less than 1 kB/s for 20 s; the received bytes stay in `fd`.
 */
int http_download(struct http_client *client, const struct http_request *request,
	struct diag *diag);

#endif
