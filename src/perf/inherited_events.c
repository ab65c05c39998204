/* See inherited_events.h. */
#include "perf/inherited_events.h"

#include <linux/perf_event.h>
#include <string.h>

#include "perf/kernel_event.h"

static uint64_t key_of(uint32_t tid, int32_t cpu)
{
	return (uint64_t)tid << 32 | (uint32_t)cpu;
}

bool inherited_events_add(struct inherited_events *inherited_events, uint32_t tid, int32_t cpu,
	uint64_t own_id, int fd)
{
	struct twin *twin = vec_push(&inherited_events->items);

	if (!twin)
		return false;
	*twin = (struct twin){ .own_id = own_id, .fd = fd, .cpu = cpu, .tid = tid };
	return map_put(&inherited_events->index, key_of(tid, cpu), inherited_events->items.count);
}

bool inherited_events_drop(struct inherited_events *inherited_events, int32_t cpu,
	const uint8_t *record, uint32_t size)
{
	struct perf_event_header header;
	uint64_t id;
	uint32_t tid;

	if (size < 24)
		return false;
	memcpy(&header, record, sizeof(header));
	if (header.type != PERF_RECORD_SAMPLE)
		return false;
	memcpy(&id, record + 8, sizeof(id));
	memcpy(&tid, record + 20, sizeof(tid));
	uint32_t found = map_get(&inherited_events->index, key_of(tid, cpu));
	if (!found)
		return false;
	struct twin *twin = &inherited_events->items.items[found - 1];
	if (id == twin->own_id)
		return twin->inherited;
	if (!twin->inherited) {
		twin->inherited = true;
		/* otherwise its samples would be dropped one by one */
		(void)event_disable(twin->fd);
	}
	return false;
}

void inherited_events_done(struct inherited_events *inherited_events)
{
	vec_done(&inherited_events->items);
	map_done(&inherited_events->index);
}
