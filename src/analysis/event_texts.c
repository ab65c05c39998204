/* See event_texts.h. */
#include "analysis/event_texts.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/text.h"

/* Of UTF-16, longer texts are cut. */
#define UNITS_MAX (STRTAB_TEXT_MAX / 2)

static int convert(struct event_texts *texts, const uint8_t *units, size_t unit_count)
{
	struct bytes text = { 0 };

	text_add_utf16(&text, units, unit_count);
	bytes_u8(&text, '\0');
	const char *copy = text.failed ? NULL : arena_copy(&texts->arena, text.data, text.len);
	bytes_done(&text);
	return copy && vec_add(&texts->texts, copy) ? 0 : -ENOMEM;
}

/* Texts of one program often begin alike ("System."), and differ in their size or their end. */
static uint32_t slot_of(const uint8_t *units, size_t count)
{
	const uint8_t *end = units + count * 2;

	return (uint32_t)(count * 7 + end[-2] + (count > 1 ? 3u * end[-4] : 0u)) %
	       EVENT_TEXTS_RECENT;
}

/* By the last four units, which differ where texts end with a number. */
static uint32_t mark_of(const uint8_t *units, size_t count)
{
	uint64_t end = count;

	memcpy(&end, units + (count < 4 ? 0 : count * 2 - 8), count < 4 ? count * 2 : 8);
	return (uint32_t)(hash_u64(end + count) % EVENT_TEXTS_MARKS);
}

int event_texts_add(struct event_texts *texts, const uint8_t *units, size_t unit_count,
	uint32_t *ret_index)
{
	size_t count = unit_count < UNITS_MAX ? unit_count : UNITS_MAX;

	*ret_index = 0;
	if (!count)
		return 0;
	uint32_t *recent = &texts->recent[slot_of(units, count)];
	if (*recent && strtab_len(&texts->raw, *recent) == count * 2 &&
		memcmp(strtab_get(&texts->raw, *recent), units, count * 2) == 0) {
		*ret_index = *recent;
		return 0;
	}
	uint32_t mark = mark_of(units, count);
	texts->raw.full = texts->most && texts->texts.count >= texts->most;
	if (texts->raw.full && !(texts->marks[mark / 64] >> mark % 64 & 1)) {
		texts->overflows = true;
		return 0;
	}
	texts->marks[mark / 64] |= UINT64_C(1) << mark % 64;
	*ret_index = strtab_add(&texts->raw, (const char *)units, count * 2);
	if (!*ret_index && texts->raw.full)
		texts->overflows = true;
	else if (!*ret_index)
		return -ENOMEM;
	*recent = *ret_index;
	return *ret_index > texts->texts.count ? convert(texts, units, count) : 0;
}

const char *event_texts_get(const struct event_texts *texts, uint32_t index)
{
	return index && index <= texts->texts.count ? texts->texts.items[index - 1] : "";
}

void event_texts_done(struct event_texts *texts)
{
	strtab_done(&texts->raw);
	arena_done(&texts->arena);
	vec_done(&texts->texts);
	*texts = (struct event_texts){ 0 };
}
