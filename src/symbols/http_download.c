/* See http_download.h. libcurl's numbers are its stable binary interface, from curl/curl.h. */
#include "symbols/http_download.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/text.h"

#define SLOWEST_BYTES_PER_S 1024L
#define SLOW_S              20L
#define CONNECT_S           15L
#define REDIRECTIONS_MAX    5L
#define HEADERS_MAX         (64u << 10) /* of one answer, with trailers */
#define ERROR_TEXT_SIZE     256u        /* CURL_ERROR_SIZE */
#define GLOBAL_DEFAULT      3L

enum curl_option {
	CURL_WRITEDATA = 10001,
	CURL_URL = 10002,
	CURL_ERRORBUFFER = 10010,
	CURL_TIMEOUT = 13,
	CURL_USERAGENT = 10018,
	CURL_LOW_SPEED_LIMIT = 19,
	CURL_LOW_SPEED_TIME = 20,
	CURL_HEADERDATA = 10029,
	CURL_NOPROGRESS = 43,
	CURL_FAILONERROR = 45,
	CURL_FOLLOWLOCATION = 52,
	CURL_XFERINFODATA = 10057,
	CURL_MAXREDIRS = 68,
	CURL_CONNECTTIMEOUT = 78,
	CURL_NOSIGNAL = 99,
	CURL_PROTOCOLS = 181,
	CURL_REDIR_PROTOCOLS = 182,
	CURL_WRITEFUNCTION = 20011,
	CURL_HEADERFUNCTION = 20079,
	CURL_XFERINFOFUNCTION = 20219,
	CURL_RESUME_FROM_LARGE = 30116,
	CURL_MAXFILESIZE_LARGE = 30117,
};

#define CURL_HTTP_AND_HTTPS 3L
#define CURL_RESPONSE_CODE  0x200002

enum curl_result {
	CURL_OK = 0,
	CURL_HTTP_ERROR = 22,
	CURL_WRITE_ERROR = 23,
	CURL_TIMED_OUT = 28,
	CURL_RANGE_ERROR = 33,
	CURL_TOO_LARGE = 63,
};

struct http_client {
	void *library;
	void *easy;
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	void (*easy_cleanup)(void *easy);
	void (*easy_reset)(void *easy);
	int (*easy_setopt)(void *easy, int option, ...);
	int (*easy_getinfo)(void *easy, int info, ...);
	int (*easy_perform)(void *easy);
	const char *(*easy_strerror)(int code);
};

/* One download, for libcurl's callbacks. */
struct transfer {
	const struct http_request *request;
	uint64_t done; /* bytes of the file so far */
	size_t headers;
	int error; /* why a callback ended the download */
};

#ifdef SPOOR_STATIC
#define WHY_NOT "this spoor is linked statically, without libcurl"

static void open_library(struct http_client *client)
{
	(void)client; /* a static program cannot load libraries */
}
#else
#define WHY_NOT "libcurl.so.4 is not installed"

static void open_library(struct http_client *client)
{
	client->library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!client->library)
		client->library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
}
#endif

static bool find_function(struct http_client *client, const char *name, void *ret_function)
{
	void *found = dlsym(client->library, name);

	memcpy(ret_function, &found, sizeof(found));
	return found != NULL;
}

static bool load(struct http_client *client)
{
	open_library(client);
	return client->library && find_function(client, "curl_global_init", &client->global_init) &&
	       find_function(client, "curl_easy_init", &client->easy_init) &&
	       find_function(client, "curl_easy_cleanup", &client->easy_cleanup) &&
	       find_function(client, "curl_easy_reset", &client->easy_reset) &&
	       find_function(client, "curl_easy_setopt", &client->easy_setopt) &&
	       find_function(client, "curl_easy_getinfo", &client->easy_getinfo) &&
	       find_function(client, "curl_easy_perform", &client->easy_perform) &&
	       find_function(client, "curl_easy_strerror", &client->easy_strerror) &&
	       client->global_init(GLOBAL_DEFAULT) == CURL_OK &&
	       (client->easy = client->easy_init()) != NULL;
}

int http_client_open(struct http_client **ret_client, struct diag *diag)
{
	struct http_client *client = calloc(1, sizeof(*client));

	if (!client)
		return diag_set(diag, -ENOMEM, "cannot download: %m");
	if (load(client)) {
		*ret_client = client;
		return 0;
	}
	http_client_close(client);
	diag_set(diag, -ENOSYS, "cannot download: " WHY_NOT);
	diag_remedy(diag,
		"fetch the files that 'spoor symbols fetch --urls FILE' lists by other means, then run 'spoor symbols import FILE...'");
	return -ENOSYS;
}

void http_client_close(struct http_client *client)
{
	if (!client)
		return;
	if (client->easy)
		client->easy_cleanup(client->easy);
	/* The library stays loaded: it may have started threads. */
	free(client);
}

static size_t on_bytes(char *data, size_t size, size_t count, void *context)
{
	struct transfer *t = context;
	size_t len = size * count;

	if (len > t->request->size_max - t->done) {
		t->error = -EFBIG;
		return 0;
	}
	for (size_t at = 0; at < len;) {
		ssize_t put = pwrite(t->request->fd, data + at, len - at, (off_t)(t->done + at));
		if (put < 0 && errno != EINTR) {
			t->error = -errno;
			return 0;
		}
		at += put > 0 ? (size_t)put : 0;
	}
	t->done += len;
	return len;
}

static size_t on_header(char *data, size_t size, size_t count, void *context)
{
	struct transfer *t = context;

	(void)data;
	t->headers += size * count;
	if (t->headers <= HEADERS_MAX)
		return size * count;
	t->error = -EMSGSIZE;
	return 0;
}

static int on_progress(void *context, int64_t total, int64_t done, int64_t upload_total,
	int64_t upload_done)
{
	const struct transfer *t = context;

	(void)upload_total;
	(void)upload_done;
	if (t->request->progress && done > 0)
		t->request->progress(t->request->context, t->done,
			total > 0 ? (uint64_t)total + t->request->from : 0);
	return 0;
}

static void set_options(struct http_client *c, struct transfer *t, char *error_text)
{
	const struct http_request *request = t->request;
	long timeout_s = (long)(request->timeout_ns / 1000000000u) + 1;
	int64_t size_max = request->size_max > INT64_MAX ? INT64_MAX : (int64_t)request->size_max;

	c->easy_reset(c->easy);
	c->easy_setopt(c->easy, CURL_URL, request->url);
	c->easy_setopt(c->easy, CURL_USERAGENT, "spoor/" SPOOR_VERSION);
	c->easy_setopt(c->easy, CURL_ERRORBUFFER, error_text);
	c->easy_setopt(c->easy, CURL_NOSIGNAL, 1L);
	c->easy_setopt(c->easy, CURL_FAILONERROR, 1L);
	c->easy_setopt(c->easy, CURL_FOLLOWLOCATION, 1L);
	c->easy_setopt(c->easy, CURL_MAXREDIRS, REDIRECTIONS_MAX);
	c->easy_setopt(c->easy, CURL_PROTOCOLS, CURL_HTTP_AND_HTTPS);
	c->easy_setopt(c->easy, CURL_REDIR_PROTOCOLS, CURL_HTTP_AND_HTTPS);
	c->easy_setopt(c->easy, CURL_CONNECTTIMEOUT, CONNECT_S);
	c->easy_setopt(c->easy, CURL_TIMEOUT, timeout_s);
	c->easy_setopt(c->easy, CURL_LOW_SPEED_LIMIT, SLOWEST_BYTES_PER_S);
	c->easy_setopt(c->easy, CURL_LOW_SPEED_TIME, SLOW_S);
	c->easy_setopt(c->easy, CURL_MAXFILESIZE_LARGE, size_max);
	c->easy_setopt(c->easy, CURL_RESUME_FROM_LARGE, (int64_t)request->from);
	c->easy_setopt(c->easy, CURL_WRITEFUNCTION, on_bytes);
	c->easy_setopt(c->easy, CURL_WRITEDATA, t);
	c->easy_setopt(c->easy, CURL_HEADERFUNCTION, on_header);
	c->easy_setopt(c->easy, CURL_HEADERDATA, t);
	c->easy_setopt(c->easy, CURL_XFERINFOFUNCTION, on_progress);
	c->easy_setopt(c->easy, CURL_XFERINFODATA, t);
	c->easy_setopt(c->easy, CURL_NOPROGRESS, 0L);
}

static int explain(struct http_client *c, const struct transfer *t, int code,
	const char *error_text, struct diag *diag)
{
	cleanup(bytes_done) struct bytes shown = { 0 };
	long status = 0;

	text_add_url(&shown, t->request->url, strlen(t->request->url));
	const char *url = bytes_z(&shown);

	(void)c->easy_getinfo(c->easy, CURL_RESPONSE_CODE, &status); /* stays 0 */
	if (code == CURL_HTTP_ERROR && (status == 404 || status == 410))
		return -ENOENT;
	if (code == CURL_RANGE_ERROR || status == 416)
		return diag_set(diag, -ERANGE,
			"the server does not have the requested part of '%s'", url);
	if (code == CURL_TOO_LARGE || t->error == -EFBIG)
		return diag_set(diag, -EFBIG, "'%s' has more than %llu bytes", url,
			(unsigned long long)t->request->size_max);
	if (t->error == -EMSGSIZE)
		return diag_set(diag, -EPROTO, "the server of '%s' sends headers without end", url);
	if (code == CURL_WRITE_ERROR && t->error)
		return diag_set(diag, t->error, "cannot store '%s': %m", url);
	return diag_set(diag, code == CURL_TIMED_OUT ? -ETIMEDOUT : -EIO,
		"cannot download '%s': %s", url, *error_text ? error_text : c->easy_strerror(code));
}

int http_download(struct http_client *client, const struct http_request *request, struct diag *diag)
{
	struct transfer transfer = { .request = request, .done = request->from };
	char error_text[ERROR_TEXT_SIZE] = "";

	set_options(client, &transfer, error_text);
	int code = client->easy_perform(client->easy);
	return code == CURL_OK ? 0 : explain(client, &transfer, code, error_text, diag);
}
