/* See label_lists.h. */
#include "nettrace/label_lists.h"

#include <string.h>

#include "base/bytes.h"
#include "nettrace/nettrace_block.h"
#include "trace/event_label.h"

/* One label of a list; the last one is marked. */
static void put_label(struct bytes *out, unsigned kind, bool last)
{
	bytes_u8(out, (uint8_t)(kind | (last ? LABEL_LAST : 0)));
}

static void put_list(struct bytes *out, const struct label_list *label)
{
	static const uint8_t none[16];
	const uint8_t *related = label->activity + 16;
	bool has_related = label->has_activity && memcmp(related, none, sizeof(none)) != 0;
	bool has_own = label->has_activity &&
		       (!has_related || memcmp(label->activity, none, sizeof(none)) != 0);

	if (has_own) {
		put_label(out, LABEL_ACTIVITY, !has_related && !label->late_ns);
		bytes_add(out, label->activity, 16);
	}
	if (has_related) {
		put_label(out, LABEL_RELATED_ACTIVITY, !label->late_ns);
		bytes_add(out, related, 16);
	}
	if (label->late_ns) {
		put_label(out, LABEL_NUMBER, true);
		block_z(out, LABEL_LATE_KEY);
		bytes_varint(out, label->late_ns);
	}
}

void label_lists_put(const struct label_lists *lists, struct bytes *out)
{
	for (uint32_t i = 0; i < lists->lists.count;) {
		size_t block = block_begin(out);
		size_t count_at;
		uint32_t first = i;
		bytes_u32(out, lists->written + i + 1);
		count_at = out->len;
		bytes_u32(out, 0);
		while (i < lists->lists.count && out->len - block < BLOCK_SIZE_AIM)
			put_list(out, &lists->lists.items[i++]);
		if (out->failed)
			return;
		bytes_set_u32(out, count_at, i - first);
		(void)block_end(out, block, BLOCK_LABELS);
	}
}

bool label_lists_keep(struct label_lists *lists, const struct event *event, uint32_t *ret_label)
{
	uint32_t *recent = NULL;

	*ret_label = 0;
	if (!event->late_ns && !event->activity)
		return true;
	if (event->activity && !event->late_ns) {
		uint64_t hash;
		memcpy(&hash, event->activity, sizeof(hash));
		hash ^= hash >> 32;
		recent = &lists->recent[(hash ^ hash >> 8 ^ hash >> 16) % LABELS_RECENT];
		const struct label_list *same = *recent ? &lists->lists.items[*recent - 1] : NULL;
		if (same && memcmp(same->activity, event->activity, EVENT_ACTIVITY_SIZE) == 0) {
			*ret_label = *recent;
			return true;
		}
	}
	struct label_list *label = vec_push(&lists->lists);

	if (!label)
		return false;
	label->late_ns = event->late_ns;
	if (event->activity) {
		label->has_activity = true;
		memcpy(label->activity, event->activity, EVENT_ACTIVITY_SIZE);
	}
	*ret_label = lists->lists.count;
	if (recent)
		*recent = lists->lists.count;
	return true;
}

void label_lists_flushed(struct label_lists *lists)
{
	lists->written += lists->lists.count;
	vec_reset(&lists->lists);
	memset(lists->recent, 0, sizeof(lists->recent));
}

void label_lists_done(struct label_lists *lists)
{
	vec_done(&lists->lists);
}
