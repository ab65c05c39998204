/* See line_events.h. An event stays below EVENT_PAYLOAD_MAX by the limits here. */
#include "symbols/line_events.h"

#include <string.h>

#include "base/bytes.h"
#include "base/map.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define OFFSETS_MAX 1000u
#define FRAMES_MAX  2000u
#define TEXTS_MAX   1000u
/* Bytes of all texts; each is at most one UTF-16 unit. */
#define TEXT_SIZE_MAX 12000u

struct line_building {
	const struct trace *trace;
	struct map numbers; /* strtab index -> number in texts */
	size_t text_size;
	const char *texts[TEXTS_MAX];
	uint32_t offsets[OFFSETS_MAX];
	uint32_t frame_counts[OFFSETS_MAX];
	uint32_t functions[FRAMES_MAX];
	uint32_t files[FRAMES_MAX];
	uint32_t lines[FRAMES_MAX];
	struct payload_source_lines payload;
};

/* The number of a text, which may be new. False: there is no room for it. */
static bool number_text(struct line_building *b, uint32_t text, uint32_t *ret_number)
{
	uint32_t known = text ? map_get(&b->numbers, text) : 0;
	size_t len = strtab_len(&b->trace->strings, text);

	*ret_number = known;
	if (known || !text)
		return true;
	if (b->payload.text_count == TEXTS_MAX || b->text_size + len > TEXT_SIZE_MAX)
		return false;
	b->text_size += len;
	b->texts[b->payload.text_count++] = trace_text(b->trace, text);
	*ret_number = (uint32_t)b->payload.text_count;
	return map_add(&b->numbers, text, *ret_number);
}

/* False: the event has no room for the entry, and stays as it was. */
static bool add_entry(struct line_building *b, const struct line_entry *entry)
{
	size_t frames = b->payload.frame_count;

	if (b->payload.offset_count == OFFSETS_MAX || frames + entry->frame_count > FRAMES_MAX)
		return false;
	for (uint32_t i = 0; i < entry->frame_count; i++) {
		const struct line_frame *frame = &b->trace->lines.frames.items[entry->frame_at + i];
		if (!number_text(b, frame->function, &b->functions[frames + i]) ||
			!number_text(b, frame->file, &b->files[frames + i]))
			return false;
		b->lines[frames + i] = frame->line;
	}
	b->offsets[b->payload.offset_count] = (uint32_t)entry->place.offset;
	b->frame_counts[b->payload.offset_count++] = entry->frame_count;
	b->payload.frame_count += entry->frame_count;
	return true;
}

bool line_events_next(struct line_events *events, struct bytes *payload)
{
	const struct line_table *table = &events->trace->lines;
	struct line_building b = { .trace = events->trace };

	while (events->at < table->entries.count) {
		const struct line_entry *entry = &table->entries.items[events->at];
		const struct line_place *place = &entry->place;
		if (place->offset > UINT32_MAX) {
			events->at++; /* no image is so large */
			continue;
		}
		if (!b.payload.offset_count) {
			b.payload.mapping_id = place->mapping_id;
			b.payload.begin = place->begin;
			b.payload.method_id = place->method_id;
		}
		if (b.payload.mapping_id != place->mapping_id || b.payload.begin != place->begin ||
			b.payload.method_id != place->method_id)
			break;
		if (!add_entry(&b, entry)) {
			if (b.payload.offset_count)
				break;
			events->at++; /* one address with more texts than fit */
			b.payload.text_count = 0;
			b.text_size = 0;
			map_reset(&b.numbers);
			continue;
		}
		events->at++;
	}
	b.payload.texts = b.texts;
	b.payload.offsets = b.offsets;
	b.payload.frame_counts = b.frame_counts;
	b.payload.functions = b.functions;
	b.payload.files = b.files;
	b.payload.lines = b.lines;
	if (b.payload.offset_count)
		(void)payload_source_lines(payload, &b.payload); /* texts fit: none is cut */
	map_done(&b.numbers);
	return b.payload.offset_count > 0;
}
