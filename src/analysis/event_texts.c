/* See event_texts.h. */
#include "analysis/event_texts.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
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

int event_texts_add(struct event_texts *texts, const uint8_t *units, size_t unit_count,
	uint32_t *ret_index)
{
	size_t count = unit_count < UNITS_MAX ? unit_count : UNITS_MAX;

	*ret_index = 0;
	if (!count)
		return 0;
	if (texts->last && strtab_len(&texts->raw, texts->last) == count * 2 &&
		memcmp(strtab_get(&texts->raw, texts->last), units, count * 2) == 0) {
		*ret_index = texts->last;
		return 0;
	}
	texts->raw.full = texts->most && texts->texts.count >= texts->most;
	*ret_index = strtab_add(&texts->raw, (const char *)units, count * 2);
	if (!*ret_index && texts->raw.full)
		texts->overflows = true;
	else if (!*ret_index)
		return -ENOMEM;
	texts->last = *ret_index;
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
