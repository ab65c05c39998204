/*
 * Downloads the symbol file of one image into the symbol cache.
 *
 * Each address of each server is tried until one gives a file with the image's build id and a
 * symbol table. Whatever a server sends, it is not used before it was checked. A download that was
 * interrupted is resumed by the next attempt.
 */
#ifndef SPOOR_SYMBOLS_SYMBOL_FETCH_H
#define SPOOR_SYMBOLS_SYMBOL_FETCH_H

#include <stdint.h>

struct bytes;
struct diag;
struct http_client;
struct symbol_cache;
struct symbol_servers;

struct symbol_fetch {
	struct http_client *client;
	const struct symbol_cache *cache;
	struct symbol_servers *servers; /* their failures are counted */
	uint64_t size_max;              /* of a file */
	uint64_t timeout_ns;            /* of a download */
	/* `total` 0: unknown; may be NULL */
	void (*progress)(void *context, uint64_t done, uint64_t total);
	void *context;
};

/*
 * 0: it is in the cache; *ret_url has its address and *ret_size_bytes its size. -ENOENT: all servers
 * that were asked answered, and none has it. -EHOSTDOWN: no server is asked any more. Another code: `diag` has the first failure.
 */
int symbol_fetch(const struct symbol_fetch *fetch, const char *image, const char *build_id,
	struct bytes *ret_url, uint64_t *ret_size_bytes, struct diag *diag);

#endif
