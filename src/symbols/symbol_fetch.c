/* See symbol_fetch.h. */
#include "symbols/symbol_fetch.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"
#include "symbolize/symbol_cache.h"
#include "symbols/http_download.h"
#include "symbols/symbol_servers.h"

/* Once more from the begin, if a resumed download fails. */
#define TRIES 2

static int download(const struct symbol_fetch *fetch, const char *url, int fd, uint64_t from,
	struct diag *diag)
{
	if (from == 0 && ftruncate(fd, 0) < 0)
		return diag_set(diag, -errno, "cannot write into the symbol cache: %m");
	return http_download(fetch->client,
		&(struct http_request){ .url = url,
			.fd = fd,
			.from = from,
			.size_max = fetch->size_max,
			.timeout_ns = fetch->timeout_ns,
			.progress = fetch->progress,
			.context = fetch->context },
		diag);
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/* Downloads one address, and puts the file into the cache. */
static int fetch_url(const struct symbol_fetch *fetch, const char *url, const char *build_id,
	uint64_t *ret_size_bytes, struct diag *diag)
{
	char found[BUILD_ID_TEXT_SIZE];
	cleanup(closep) int fd = -1;
	int result = symbol_cache_open_download(fetch->cache, build_id, url, &fd, diag);

	if (result < 0)
		return result;
	uint64_t from = size_of(fd);
	for (int i = 0; i < TRIES; i++) {
		struct diag attempt = { 0 };
		result = download(fetch, url, fd, from, &attempt);
		/* A server answers so as well if nothing is left to be sent. */
		if (result == 0 || (result == -ERANGE && from))
			result = symbol_cache_add(fetch->cache, fd, build_id, found, &attempt);
		bool again = result < 0 && from && result != -ETIMEDOUT && result != -EIO;
		if (result < 0 && !again) {
			*diag = attempt;
			break;
		}
		if (result == 0)
			break;
		from = 0;
	}
	*ret_size_bytes = size_of(fd);
	/* An incomplete file is of use for the next attempt, no other one is. */
	if ((result != -EIO && result != -ETIMEDOUT) || !*ret_size_bytes)
		symbol_cache_end_download(fetch->cache, build_id, url);
	return result;
}

/* Asks one server. -ENOENT: it does not have the file. */
static int fetch_from(const struct symbol_fetch *fetch, struct symbol_server *server,
	const char *image, const char *build_id, struct bytes *ret_url, uint64_t *ret_size_bytes,
	struct diag *diag)
{
	int failure = -ENOENT;

	for (uint32_t i = 0; symbol_server_url(server, image, build_id, i, ret_url); i++) {
		struct diag attempt = { 0 };
		int result = fetch_url(fetch, bytes_z(ret_url), build_id, ret_size_bytes, &attempt);
		if (result == -EBADMSG) {
			cleanup(bytes_done) struct bytes shown = { 0 };
			text_add_url(&shown, bytes_z(ret_url), ret_url->len);
			diag_context(&attempt, "'%s' is not used", bytes_z(&shown));
		}
		bool failed = result == -EIO || result == -ETIMEDOUT;
		server->failures = failed ? server->failures + 1 : 0;
		if (result == 0)
			return 0;
		if (failure == -ENOENT && result != -ENOENT) {
			failure = result;
			*diag = attempt;
		}
		/* Its other addresses would fail the same way, and as slowly. */
		if (result != -ENOENT && result != -EBADMSG)
			break;
	}
	return failure;
}

int symbol_fetch(const struct symbol_fetch *fetch, const char *image, const char *build_id,
	struct bytes *ret_url, uint64_t *ret_size_bytes, struct diag *diag)
{
	int failure = -EHOSTDOWN;

	for (uint32_t s = 0; s < fetch->servers->list.count; s++) {
		struct symbol_server *server = &fetch->servers->list.items[s];
		struct diag attempt = { 0 };
		if (server->failures >= SYMBOL_SERVER_FAILURES_MAX)
			continue;
		int result = fetch_from(fetch, server, image, build_id, ret_url, ret_size_bytes,
			&attempt);
		if (result == 0)
			return 0;
		if (failure == -EHOSTDOWN || failure == -ENOENT) {
			failure = result;
			*diag = attempt;
		}
	}
	return ret_url->failed ? -ENOMEM : failure;
}
