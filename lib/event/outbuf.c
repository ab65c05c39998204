/* See outbuf.h. */
#include "lib/event/outbuf.h"

#include <stdlib.h>
#include <string.h>

uint8_t *outbuf_reserve(struct outbuf *out, size_t size)
{
	if (out->failed)
		return NULL;
	if (out->room - out->size < size) {
		size_t room = out->room ? out->room : 4096;
		while (room - out->size < size)
			room *= 2;
		uint8_t *data = realloc(out->data, room);
		if (!data) {
			out->failed = true;
			return NULL;
		}
		out->data = data;
		out->room = room;
	}
	return out->data + out->size;
}

void outbuf_add(struct outbuf *out, const void *data, size_t size)
{
	uint8_t *at = size ? outbuf_reserve(out, size) : NULL;

	if (!at)
		return;
	memcpy(at, data, size);
	out->size += size;
}

void outbuf_reset(struct outbuf *out)
{
	out->size = 0;
	out->failed = false;
}

void outbuf_done(struct outbuf *out)
{
	free(out->data);
	*out = (struct outbuf){ 0 };
}
