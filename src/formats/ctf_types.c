/* See ctf_types.h. */
#include "formats/ctf_types.h"

#define NS_PER_S UINT64_C(1000000000)

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

static uint64_t hz_of(const struct ctf_metadata *metadata)
{
	return metadata->clock_hz ? metadata->clock_hz : NS_PER_S;
}

uint64_t ctf_metadata_ns(const struct ctf_metadata *metadata, uint64_t ticks)
{
	uint64_t hz = hz_of(metadata);

	if (hz == NS_PER_S)
		return ticks;
	return ticks / hz * NS_PER_S + (uint64_t)((unsigned __int128)(ticks % hz) * NS_PER_S / hz);
}

int64_t ctf_metadata_offset_ns(const struct ctf_metadata *metadata)
{
	__int128 ns = (__int128)metadata->clock_offset * (int64_t)NS_PER_S / hz_of(metadata) +
		      (__int128)metadata->clock_offset_s * (int64_t)NS_PER_S;

	return ns > INT64_MAX ? INT64_MAX : ns < INT64_MIN ? INT64_MIN : (int64_t)ns;
}
