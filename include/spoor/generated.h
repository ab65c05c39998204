/*
 * What the files that `spoor gen` writes use. Not for other code: names and meanings may change with
 * the generator. All functions are inline, so that generated code for other tracers needs no library.
 *
 * A function that writes gets the end of the room and stays within it, as another thread may have
 * changed a text or count since it was measured. Texts are UTF-8; `length` is SPOOR_GENERATED_WHOLE
 * for a text that ends with its zero.
 */
#ifndef SPOOR_GENERATED_H
#define SPOOR_GENERATED_H

#include <spoor/spoor.h>

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#endif

#define SPOOR_GENERATED_WHOLE (~(size_t)0)

/* A count from a program's argument: more than fits into any payload is as much as that. */
static inline size_t spoor_generated_count(size_t count)
{
	return count < 65535 ? count : 65535;
}

static inline size_t spoor_generated_product(size_t a, size_t b)
{
	return spoor_generated_count(a) * spoor_generated_count(b);
}

static inline uint8_t *spoor_generated_put_u16(uint8_t *at, const uint8_t *end, uint16_t value)
{
	return spoor_put_within(at, end, &value, sizeof(value));
}

static inline uint8_t *spoor_generated_put_u32(uint8_t *at, const uint8_t *end, uint32_t value)
{
	return spoor_put_within(at, end, &value, sizeof(value));
}

static inline uint8_t *spoor_generated_put_u64(uint8_t *at, const uint8_t *end, uint64_t value)
{
	return spoor_put_within(at, end, &value, sizeof(value));
}

/* The field that counts elements, an integer of `bytes` bytes: as many as are written. */
static inline uint8_t *spoor_generated_put_amount(uint8_t *at, const uint8_t *end, size_t count,
	size_t bytes)
{
	const uint64_t value = spoor_generated_count(count);

	return spoor_put_within(at, end, &value, bytes);
}

/* Zeros if there are no elements. */
static inline uint8_t *spoor_generated_put_elements(uint8_t *at, const uint8_t *end,
	const void *elements, size_t size)
{
	if (size > (size_t)(end - at))
		return at;
	if (elements)
		memcpy(at, elements, size);
	else
		memset(at, 0, size);
	return at + size;
}

/* After the last field: what a text that became shorter has left. */
static inline void spoor_generated_end(uint8_t *at, const uint8_t *end)
{
	if (at < end)
		memset(at, 0, (size_t)(end - at));
}

/* ---- Security identifiers: 8 bytes and 4 for each of at most 15 parts ---- */

static inline size_t spoor_generated_sid_size(const void *sid)
{
	const uint8_t parts = sid ? ((const uint8_t *)sid)[1] : 0;

	return 8u + 4u * (size_t)(parts < 15 ? parts : 15);
}

static inline uint8_t *spoor_generated_put_sid(uint8_t *at, const uint8_t *end, const void *sid)
{
	return spoor_generated_put_elements(at, end, sid, spoor_generated_sid_size(sid));
}

static inline uint8_t *spoor_generated_put_counted_sid(uint8_t *at, const uint8_t *end,
	const void *sid)
{
	const size_t size = spoor_generated_sid_size(sid);

	if (size + 2 > (size_t)(end - at))
		return at;
	return spoor_generated_put_sid(spoor_generated_put_u16(at, end, (uint16_t)size), end, sid);
}

/* ---- Texts in libspoor's layout ---- */

static inline size_t spoor_generated_text_length(const char *text, size_t length)
{
	return length == SPOOR_GENERATED_WHOLE ? spoor_text_length(text)
					       : spoor_counted_text_length(text, length);
}

static inline size_t spoor_generated_text_size(const char *text, size_t length)
{
	return 3 + spoor_generated_text_length(text, length);
}

static inline uint8_t *spoor_generated_put_text(uint8_t *at, const uint8_t *end, const char *text,
	size_t length)
{
	return spoor_put_counted_text_within(at, end, text,
		spoor_generated_text_length(text, length));
}

static inline size_t spoor_generated_texts_size(const char *const *texts, size_t count,
	size_t length)
{
	size_t size = 2;

	count = spoor_count_of(texts, count);
	for (size_t i = 0; i < count; i++)
		size += spoor_generated_text_size(texts[i], length);
	return size;
}

static inline uint8_t *spoor_generated_put_texts(uint8_t *at, const uint8_t *end,
	const char *const *texts, size_t count, size_t length)
{
	count = spoor_count_of(texts, count);
	at = spoor_generated_put_u16(at, end, (uint16_t)count);
	for (size_t i = 0; i < count; i++)
		at = spoor_generated_put_text(at, end, texts[i], length);
	return at;
}

/* ---- EventHeader's layout: as libspoor's, apart from texts and GUIDs ---- */

/* A text is its length (u16) and UTF-8. */
static inline size_t spoor_generated_counted_text_size(const char *text, size_t length)
{
	return 2 + spoor_generated_text_length(text, length);
}

static inline uint8_t *spoor_generated_put_counted_text(uint8_t *at, const uint8_t *end,
	const char *text, size_t length)
{
	size_t size = spoor_generated_text_length(text, length);

	if ((size_t)(end - at) < 2)
		return at;
	if (size > (size_t)(end - at) - 2)
		size = (size_t)(end - at) - 2;
	at = spoor_generated_put_u16(at, end, (uint16_t)size);
	return size ? spoor_put(at, text, size) : at;
}

static inline size_t spoor_generated_counted_texts_size(const char *const *texts, size_t count,
	size_t length)
{
	size_t size = 2;

	count = spoor_count_of(texts, count);
	for (size_t i = 0; i < count; i++)
		size += spoor_generated_counted_text_size(texts[i], length);
	return size;
}

static inline uint8_t *spoor_generated_put_counted_texts(uint8_t *at, const uint8_t *end,
	const char *const *texts, size_t count, size_t length)
{
	count = spoor_count_of(texts, count);
	at = spoor_generated_put_u16(at, end, (uint16_t)count);
	for (size_t i = 0; i < count; i++)
		at = spoor_generated_put_counted_text(at, end, texts[i], length);
	return at;
}

/* A GUID is big-endian. */
static inline uint8_t *spoor_generated_put_uuid(uint8_t *at, const uint8_t *end,
	const struct spoor_guid *guid)
{
	static const uint8_t order[] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };

	if ((size_t)(end - at) < sizeof(order))
		return at;
	for (size_t i = 0; i < sizeof(order); i++)
		*at++ = guid ? guid->bytes[order[i]] : 0;
	return at;
}

static inline uint8_t *spoor_generated_put_uuids(uint8_t *at, const uint8_t *end,
	const struct spoor_guid *guids, size_t count)
{
	count = spoor_count_of(guids, count);
	at = spoor_generated_put_u16(at, end, (uint16_t)count);
	for (size_t i = 0; i < count; i++)
		at = spoor_generated_put_uuid(at, end, &guids[i]);
	return at;
}

/* ---- Texts in ETW's layout ---- */

/*
 * The next character of UTF-8, which ends at `text_end`, or before it with a zero; NULL: with a zero. What
 * is none is U+FFFD for each byte. The text is not at its end.
 */
static inline uint32_t spoor_generated_character(const char **at, const char *text_end)
{
	const unsigned char *end = (const unsigned char *)text_end;
	const unsigned char *text = (const unsigned char *)*at;
	const uint32_t first = text[0];
	const unsigned more = first < 0x80                     ? 0u
			      : first >= 0xc2 && first <= 0xdf ? 1u
			      : first >= 0xe0 && first <= 0xef ? 2u
			      : first >= 0xf0 && first <= 0xf4 ? 3u
							       : 4u;
	uint32_t c = more ? first & (0x3fu >> more) : first;

	*at += 1;
	if (more == 0)
		return first;
	if (more == 4)
		return 0xfffd;
	for (unsigned i = 1; i <= more; i++) {
		if ((end && text + i == end) || (text[i] & 0xc0) != 0x80)
			return 0xfffd;
		c = c << 6 | (text[i] & 0x3f);
	}
	if ((more == 2 && c < 0x800) || (more == 3 && (c < 0x10000 || c > 0x10ffff)) ||
		(c & 0xfffff800) == 0xd800)
		return 0xfffd;
	*at += more;
	return c;
}

/* UTF-16 units of a whole text, at most SPOOR_TEXT_MAX. */
static inline size_t spoor_generated_units(const char *text)
{
	size_t units = 0;

	while (text && *text && units < SPOOR_TEXT_MAX)
		units += spoor_generated_character(&text, NULL) > 0xffff ? 2u : 1u;
	return units;
}

static inline size_t spoor_generated_etw_text16_size(const char *text, size_t length)
{
	return length == SPOOR_GENERATED_WHOLE ? 2 * spoor_generated_units(text) + 2
					       : 2 * spoor_generated_count(length);
}

/*
 * A whole text and its zero; with a length exactly so many units, zeros at the end. The length counts
 * the bytes of the text, which has at most as many units.
 */
static inline uint8_t *spoor_generated_put_etw_text16(uint8_t *at, const uint8_t *end,
	const char *text, size_t length)
{
	const bool whole = length == SPOOR_GENERATED_WHOLE;
	size_t room = (size_t)(end - at) / 2;
	const size_t limit = whole ? SPOOR_TEXT_MAX + 1 : spoor_generated_count(length);
	const char *text_end = whole || !text ? NULL : text + limit;

	if (whole && room)
		room--;
	if (room > limit)
		room = limit;
	while (text && room && text != text_end && *text) {
		uint32_t c = spoor_generated_character(&text, text_end);
		if (c > 0xffff && room < 2)
			break;
		if (c > 0xffff) {
			at = spoor_generated_put_u16(at, end, (uint16_t)(0xd7c0 + (c >> 10)));
			c = 0xdc00 | (c & 0x3ff);
			room--;
		}
		at = spoor_generated_put_u16(at, end, (uint16_t)c);
		room--;
	}
	if (whole)
		return spoor_generated_put_u16(at, end, 0);
	return spoor_generated_put_elements(at, end, NULL, 2 * room);
}

static inline size_t spoor_generated_etw_text8_size(const char *text, size_t length)
{
	return length == SPOOR_GENERATED_WHOLE ? spoor_text_length(text) + 1
					       : spoor_generated_count(length);
}

static inline uint8_t *spoor_generated_put_etw_text8(uint8_t *at, const uint8_t *end,
	const char *text, size_t length)
{
	const bool whole = length == SPOOR_GENERATED_WHOLE;
	const size_t room = (size_t)(end - at);
	size_t size = spoor_generated_etw_text8_size(text, length);
	size_t used = whole ? size - 1 : spoor_counted_text_length(text, size);

	if (size > room)
		size = room;
	if (!size)
		return at;
	if (used > size - (whole ? 1 : 0))
		used = size - (whole ? 1 : 0);
	at = spoor_put(at, text, used);
	return spoor_generated_put_elements(at, end, NULL, size - used);
}

/* Arrays: texts one after another, as many as the count says. */
#define SPOOR_GENERATED_TEXTS_(form)                                                               \
	static inline size_t spoor_generated_##form##s_size(const char *const *texts,              \
		size_t count, size_t length)                                                       \
	{                                                                                          \
		size_t size = 0;                                                                   \
		count = spoor_generated_count(count);                                              \
		for (size_t i = 0; i < count; i++)                                                 \
			size += spoor_generated_##form##_size(texts ? texts[i] : NULL, length);    \
		return size;                                                                       \
	}                                                                                          \
	static inline uint8_t *spoor_generated_put_##form##s(uint8_t *at, const uint8_t *end,      \
		const char *const *texts, size_t count, size_t length)                             \
	{                                                                                          \
		count = spoor_generated_count(count);                                              \
		for (size_t i = 0; i < count; i++)                                                 \
			at = spoor_generated_put_##form(at, end, texts ? texts[i] : NULL, length); \
		return at;                                                                         \
	}
SPOOR_GENERATED_TEXTS_(etw_text16)
SPOOR_GENERATED_TEXTS_(etw_text8)

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
