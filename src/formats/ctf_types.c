/* See ctf_types.h. */
#include "formats/ctf_types.h"

static uint64_t key_of(uint64_t stream_id, uint64_t event_id)
{
	return hash_u64(hash_u64(stream_id) ^ event_id);
}

const struct ctf_stream_class *ctf_metadata_stream(const struct ctf_metadata *metadata, uint64_t id)
{
	vec_each(stream, &metadata->streams)
		if (stream->id == id)
			return stream;
	return NULL;
}

const struct ctf_event_class *ctf_metadata_event(const struct ctf_metadata *metadata,
	uint64_t stream_id, uint64_t event_id)
{
	uint64_t key = key_of(stream_id, event_id);

	for (struct map_walk w = map_find(&metadata->event_index, key); w.value; map_next(&w)) {
		const struct ctf_event_class *event = &metadata->events.items[w.value];
		if (event->id == event_id && event->stream_id == stream_id)
			return event;
	}
	return NULL;
}

bool ctf_metadata_add_event(struct ctf_metadata *metadata, const struct ctf_event_class *event)
{
	return vec_add(&metadata->events, *event) &&
	       map_add(&metadata->event_index, key_of(event->stream_id, event->id),
		       metadata->events.count - 1);
}
