/*
 * Writes payloads field by field, in the layouts of enum spoor_type, for events of the library
 * itself.
 */
#ifndef SPOOR_LIB_EVENT_PAYLOAD_H
#define SPOOR_LIB_EVENT_PAYLOAD_H

#include <string.h>

#include <spoor/spoor.h>

#include "lib/event/outbuf.h"

static inline void payload_u8(struct outbuf *out, uint8_t value)
{
	outbuf_add(out, &value, sizeof(value));
}

static inline void payload_u16(struct outbuf *out, uint16_t value)
{
	outbuf_add(out, &value, sizeof(value));
}

static inline void payload_u32(struct outbuf *out, uint32_t value)
{
	outbuf_add(out, &value, sizeof(value));
}

static inline void payload_u64(struct outbuf *out, uint64_t value)
{
	outbuf_add(out, &value, sizeof(value));
}

static inline void payload_f32(struct outbuf *out, float value)
{
	outbuf_add(out, &value, sizeof(value));
}

static inline void payload_f64(struct outbuf *out, double value)
{
	outbuf_add(out, &value, sizeof(value));
}

/* SPOOR_TYPE_TEXT of `length` bytes of UTF-8, cut after SPOOR_TEXT_MAX, between characters. */
static inline void payload_text_of(struct outbuf *out, const char *text, size_t length)
{
	if (length > SPOOR_TEXT_MAX)
		length = spoor_text_cut(text, SPOOR_TEXT_MAX);
	payload_u16(out, (uint16_t)length);
	outbuf_add(out, text, length);
	payload_u8(out, 0);
}

static inline void payload_text(struct outbuf *out, const char *text)
{
	payload_text_of(out, text, strlen(text));
}

#endif
