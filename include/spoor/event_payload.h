/*
 * How one event is written: reserve, fill, publish. Included by <spoor/event_macros.h>, whose macros
 * call these functions; generated code calls them as well.
 *
 * Payloads are laid out as enum spoor_type describes. The functions whose names begin with
 * spoor_put return the address behind what they wrote; those that end with _within write no further
 * than `end`. They lock nothing and allocate nothing, and may be called in signal handlers.
 */
#ifndef SPOOR_EVENT_PAYLOAD_H
#define SPOOR_EVENT_PAYLOAD_H

#include <spoor/spoor.h>

#define SPOOR_TEXT_MAX    32000
#define SPOOR_PAYLOAD_MAX 65000

/* The part of a thread's ring that this header works on. Part of the binary interface. */
struct spoor_ring_front {
	uint64_t published; /* every event before this position is complete */
	uint64_t next;      /* end of the event that is being written */
	uint64_t turn;      /* odd while an event is being written */
};

struct spoor_slot {
	/*
	 * NULL: no session enables the event any more, or there is no room (the event is counted as
	 * lost)
	 */
	uint8_t *at;
	/* the address's lowest bit is SPOOR_SLOT_LOGGED if spoor_fire_logged() ends the event */
	struct spoor_ring_front *front;
};

#define SPOOR_SLOT_LOGGED 1u

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
extern "C" {
#endif

/*
 * Reserves room for a payload of exactly `payload_size` bytes. If `at` is not NULL, the caller must
 * fill it and call spoor_fire_end() without delay: the library's thread waits up to 50 ms for it.
 * Any thread, signal handlers.
 */
SPOOR_API struct spoor_slot spoor_fire_begin(struct spoor_event *event, size_t payload_size);
/* For spoor_fire_end(): loggers get the event, then it ends. */
SPOOR_API void spoor_fire_logged(struct spoor_slot slot);

/*
 * For generated code, after the event `after` was fired: fires `walk`, whose fields are those in
 * `head` (at most 64 bytes), the number of frames (u32) and their addresses, for the sessions that
 * enable both. The stack begins with the caller. Any thread, signal handlers.
 */
SPOOR_API void spoor_fire_stack_walk(struct spoor_event *walk, const struct spoor_event *after,
	const void *head, size_t head_size);

#ifdef __cplusplus
}
#endif

static inline void spoor_fire_end(struct spoor_slot slot)
{
	struct spoor_ring_front *front = slot.front;

	if (__builtin_expect((uintptr_t)front & SPOOR_SLOT_LOGGED, 0)) {
		spoor_fire_logged(slot);
		return;
	}
	__atomic_store_n(&front->published, front->next, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&front->turn, front->turn + 1, __ATOMIC_RELEASE);
}

/*
 * `cut` or a little less, so that a cut after as many bytes leaves whole characters. text[cut] is
 * the first byte that is cut off. Bytes that are not UTF-8 are cut anywhere.
 */
static inline size_t spoor_text_cut(const char *text, size_t cut)
{
	size_t at = cut;

	while (at && cut - at < 3 && ((unsigned char)text[at] & 0xc0) == 0x80)
		at--;
	return ((unsigned char)text[at] & 0xc0) == 0x80 ? cut : at;
}

/* The same with UTF-16 units: a pair of surrogates is one character. */
static inline size_t spoor_text16_cut(const spoor_char16 *text, size_t cut)
{
	return cut && (text[cut - 1] & 0xfc00) == 0xd800 && (text[cut] & 0xfc00) == 0xdc00 ? cut - 1
											   : cut;
}

static inline size_t spoor_text_length(const char *text)
{
	size_t length = text ? strlen(text) : 0;

	return __builtin_expect(length > SPOOR_TEXT_MAX, 0) ? spoor_text_cut(text, SPOOR_TEXT_MAX)
							    : length;
}

static inline size_t spoor_counted_text_length(const char *text, size_t count)
{
	const void *const end = text && count ? memchr(text, 0, count) : NULL;
	const size_t length = end ? (size_t)((const char *)end - text) : text ? count : 0;

	return __builtin_expect(length > SPOOR_TEXT_MAX, 0) ? spoor_text_cut(text, SPOOR_TEXT_MAX)
							    : length;
}

static inline size_t spoor_text16_length(const spoor_char16 *text)
{
	size_t length = 0;
	spoor_char16 before = 0;
	spoor_char16 unit = text ? text[0] : 0;

	/*
	 * Without an index that is a constant: GCC would warn that short literals have no such
	 * element.
	 */
	while (unit && length < SPOOR_TEXT_MAX) {
		before = unit;
		unit = text[++length];
	}
	return (before & 0xfc00) == 0xd800 && (unit & 0xfc00) == 0xdc00 ? length - 1 : length;
}

/* The number of elements that are written: an array at NULL is empty. */
static inline size_t spoor_count_of(const void *elements, size_t count)
{
	return !elements ? 0 : count < 65535 ? count : 65535;
}

static inline uint8_t *spoor_put(uint8_t *at, const void *bytes, size_t size)
{
	if (size)
		memcpy(at, bytes, size);
	return at + size;
}

static inline uint8_t *spoor_put_guid(uint8_t *at, const struct spoor_guid *guid)
{
	if (guid)
		memcpy(at, guid->bytes, 16);
	else
		memset(at, 0, 16);
	return at + 16;
}

/*
 * Another thread may change the text at the same time: exactly the measured number of bytes is
 * written.
 */
static inline uint8_t *spoor_put_text(uint8_t *at, const char *text, size_t length)
{
	uint16_t prefix = (uint16_t)length;

	memcpy(at, &prefix, sizeof(prefix));
	at += sizeof(prefix);
	if (length)
		memcpy(at, text, length);
	at[length] = 0;
	return at + length + 1;
}

static inline uint8_t *spoor_put_text16(uint8_t *at, const spoor_char16 *text, size_t length)
{
	if (length)
		memcpy(at, text, length * 2);
	at += length * 2;
	at[0] = at[1] = 0;
	return at + 2;
}

static inline uint8_t *spoor_put_array(uint8_t *at, const void *elements, size_t element_size,
	size_t count)
{
	uint16_t prefix = (uint16_t)count;

	memcpy(at, &prefix, sizeof(prefix));
	return spoor_put(at + sizeof(prefix), elements, element_size * count);
}

static inline size_t spoor_text_array_size(const char *const *texts, size_t count)
{
	size_t size = 2;

	for (size_t i = 0; i < count; i++)
		size += 3 + spoor_text_length(texts[i]);
	return size;
}

/*
 * As spoor_put_text(), inside structs and arrays, whose texts are measured twice: another thread
 * may have made a text longer in between.
 */
static inline uint8_t *spoor_put_within(uint8_t *at, const uint8_t *end, const void *bytes,
	size_t size)
{
	return size > (size_t)(end - at) ? at : spoor_put(at, bytes, size);
}

static inline uint8_t *spoor_put_counted_text_within(uint8_t *at, const uint8_t *end,
	const char *text, size_t length)
{
	size_t room = (size_t)(end - at);

	if (room < 3)
		return at;
	return spoor_put_text(at, text,
		length <= room - 3 ? length : spoor_text_cut(text, room - 3));
}

static inline uint8_t *spoor_put_text_within(uint8_t *at, const uint8_t *end, const char *text)
{
	return spoor_put_counted_text_within(at, end, text, spoor_text_length(text));
}

static inline uint8_t *spoor_put_text16_within(uint8_t *at, const uint8_t *end,
	const spoor_char16 *text)
{
	size_t length = spoor_text16_length(text);
	size_t room = (size_t)(end - at);

	if (room < 2)
		return at;
	return spoor_put_text16(at, text,
		length <= room / 2 - 1 ? length : spoor_text16_cut(text, room / 2 - 1));
}

static inline uint8_t *spoor_put_array_within(uint8_t *at, const uint8_t *end, const void *elements,
	size_t element_size, size_t count)
{
	return 2 + element_size * count > (size_t)(end - at)
		       ? at
		       : spoor_put_array(at, elements, element_size, count);
}

static inline uint8_t *spoor_put_text_array(uint8_t *at, const uint8_t *end,
	const char *const *texts, size_t count)
{
	uint16_t prefix = (uint16_t)count;

	at = spoor_put_within(at, end, &prefix, sizeof(prefix));
	for (size_t i = 0; i < count; i++)
		at = spoor_put_text_within(at, end, texts[i]);
	return at;
}

static inline uint64_t spoor_time_of(int64_t unix_ns)
{
	return (uint64_t)(unix_ns / 100 + 116444736000000000);
}

#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

#endif
