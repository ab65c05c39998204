/* See twins.h. */
#include "perf/twins.h"

#include <linux/perf_event.h>
#include <string.h>

#include "perf/kernel_event.h"

static uint64_t key_of(uint32_t tid, int32_t cpu)
{
	return (uint64_t)tid << 32 | (uint32_t)cpu;
}

bool twins_add(struct twins *twins, uint32_t tid, int32_t cpu, uint64_t own_id, int fd)
{
	struct twin *twin = vec_push(&twins->items);

	if (!twin)
		return false;
	*twin = (struct twin){ .own_id = own_id, .fd = fd, .cpu = cpu, .tid = tid };
	return map_put(&twins->index, key_of(tid, cpu), twins->items.count);
}

bool twins_drop(struct twins *twins, int32_t cpu, const uint8_t *record, uint32_t size)
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
	uint32_t found = map_get(&twins->index, key_of(tid, cpu));
	if (!found)
		return false;
	struct twin *twin = &twins->items.items[found - 1];
	if (id == twin->own_id)
		return twin->inherited;
	if (!twin->inherited) {
		twin->inherited = true;
		/* otherwise its samples would be dropped one by one */
		(void)event_disable(twin->fd);
	}
	return false;
}

void twins_done(struct twins *twins)
{
	vec_done(&twins->items);
	map_done(&twins->index);
}
