/*
 * A growable buffer of bytes. All zero is empty. Out of memory is sticky: `failed` stays true and
 * further writes do nothing, until outbuf_reset(). Belongs to one thread at a time.
 */
#ifndef SPOOR_LIB_EVENT_OUTBUF_H
#define SPOOR_LIB_EVENT_OUTBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outbuf {
	uint8_t *data;
	size_t size;
	size_t room;
	bool failed;
};

/*
 * Returns where at least `size` more bytes can be written; the caller adds what it wrote to `size`.
 * NULL: no memory.
 */
uint8_t *outbuf_reserve(struct outbuf *out, size_t size);
void outbuf_add(struct outbuf *out, const void *data, size_t size);
void outbuf_reset(struct outbuf *out); /* empty; keeps its memory */
/* frees the memory; the buffer is empty and can be used again */
void outbuf_done(struct outbuf *out);

#endif
