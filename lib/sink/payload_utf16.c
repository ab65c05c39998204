/* See payload_utf16.h. */
#include "lib/sink/payload_utf16.h"

#include <errno.h>
#include <string.h>

#include "lib/event/utf16.h"

#define DEPTH_MAX 8u

struct utf16_conversion {
	const uint8_t *at, *end;
	uint8_t *out, *out_end;
	/* a longer text is cut after so many bytes of UTF-8 or units of UTF-16, between characters */
	uint32_t text_max;
};

/* Converts a TEXT at `c->at` to UTF-16. */
static bool convert_text(struct utf16_conversion *c)
{
	uint16_t length;

	if (c->end - c->at < 3)
		return false;
	memcpy(&length, c->at, 2);
	/* At most one unit for each byte, and eight bytes are converted at a time. */
	if (c->end - c->at < length + 3)
		return false;
	size_t kept = length;
	if (kept > c->text_max)
		kept = spoor_text_cut((const char *)c->at + 2, c->text_max);
	if ((size_t)(c->out_end - c->out) < 2 * kept + 2 + 16)
		return false;
	c->out = utf16z_put(c->out, c->at + 2, kept);
	c->at += length + 3;
	return true;
}

static bool convert_text16(struct utf16_conversion *c)
{
	const uint8_t *from = c->at;

	while (c->end - c->at >= 2) {
		bool last = !c->at[0] && !c->at[1];
		c->at += 2;
		if (!last)
			continue;
		size_t kept = (size_t)(c->at - from) / 2 - 1;
		if (kept > c->text_max) {
			/* the last unit that is kept, and the first that is not */
			uint16_t border[2] = { 0, 0 };
			if (c->text_max)
				memcpy(border, from + 2 * c->text_max - 2, sizeof(border));
			kept = c->text_max - !spoor_text16_cut(border, 1);
		}
		if ((size_t)(c->out_end - c->out) < 2 * kept + 2)
			return false;
		memcpy(c->out, from, 2 * kept);
		memset(c->out + 2 * kept, 0, 2);
		c->out += 2 * kept + 2;
		return true;
	}
	return false;
}

static bool convert_bytes(struct utf16_conversion *c, size_t size)
{
	if ((size_t)(c->end - c->at) < size || (size_t)(c->out_end - c->out) < size)
		return false;
	memcpy(c->out, c->at, size);
	c->at += size;
	c->out += size;
	return true;
}

static bool convert(struct utf16_conversion *c, const struct plan_step *plan, uint32_t count,
	unsigned depth)
{
	uint16_t elements;

	for (uint32_t i = 0; i < count; i++) {
		switch (plan[i].op) {
		case PLAN_FIXED:
			if (!convert_bytes(c, plan[i].size))
				return false;
			break;
		case PLAN_TEXT:
			if (!convert_text(c))
				return false;
			break;
		case PLAN_TEXT16:
			if (!convert_text16(c))
				return false;
			break;
		default:
			if (c->end - c->at < 2 || depth >= DEPTH_MAX)
				return false;
			memcpy(&elements, c->at, 2);
			if (!convert_bytes(c, 2))
				return false;
			if (plan[i].op == PLAN_ARRAY &&
				!convert_bytes(c, (size_t)elements * plan[i].size))
				return false;
			for (uint16_t e = 0; plan[i].op == PLAN_TEXTS && e < elements; e++)
				if (!convert_text(c))
					return false;
			for (uint16_t e = 0; plan[i].op == PLAN_TEXT16S && e < elements; e++)
				if (!convert_text16(c))
					return false;
			if (plan[i].op == PLAN_STRUCTS) {
				for (uint16_t e = 0; e < elements; e++)
					if (!convert(c, plan + i + 1, plan[i].size, depth + 1))
						return false;
				i += plan[i].size;
			}
			break;
		}
	}
	return true;
}

int payload_utf16(const struct event_entry *entry, const uint8_t *payload, uint32_t size,
	uint32_t text_max, uint8_t *out, size_t room)
{
	struct utf16_conversion c = { payload, payload + size, out, out + room, text_max };

	return convert(&c, entry->plan, entry->plan_count, 0) ? (int)(c.out - out) : -EMSGSIZE;
}
