/* See throttling.h. */
#include "recording/throttling.h"

#include <string.h>

#include "pipeline/session_writer.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

static void tell(struct session_writer *writer, const struct throttled_group *group,
	const struct cpu_limit *now)
{
	payload_cpu_limit(&writer->payload,
		&(struct payload_cpu_limit){
			.path = group->first.path,
			.container = trace_text(writer->trace, group->container),
			.quota_ns = now->quota_ns,
			.period_ns = now->period_ns,
			.periods = now->periods - group->first.periods,
			.throttled_periods =
				now->throttled_periods - group->first.throttled_periods,
			.throttled_ns = now->throttled_ns - group->first.throttled_ns,
		});
	session_writer_emit_about(writer, SPOOR_CPU_LIMIT, writer->recorder_process);
}

void throttling_look(struct throttling *t, uint32_t process, uint64_t groups_hash)
{
	const struct process *row = &t->writer->trace->processes.items[process];
	struct throttled_group group = { .pid = row->pid, .container = row->container };

	if (map_get(&t->known, groups_hash) || !map_put(&t->known, groups_hash, 1) ||
		t->groups.count == THROTTLING_LIMITS_MAX ||
		cpu_limit_read("", row->pid, &group.first) < 0)
		return;
	/* Different control groups may share the limit of one ancestor. */
	for (uint32_t i = 0; i < t->groups.count; i++)
		if (strcmp(t->groups.items[i].first.path, group.first.path) == 0)
			return;
	if (vec_add(&t->groups, group))
		tell(t->writer, &group, &group.first);
}

void throttling_tell(struct throttling *t, uint64_t now_ns)
{
	if (now_ns < t->reported_ns + THROTTLING_EVERY_NS)
		return;
	t->reported_ns = now_ns;
	vec_each(group, &t->groups) {
		struct cpu_limit now;
		/*
		 * The process may have ended with its group, or moved to another group: then the
		 * last event remains the latest.
		 */
		if (cpu_limit_read("", group->pid, &now) == 0 &&
			strcmp(now.path, group->first.path) == 0 &&
			now.periods >= group->first.periods)
			tell(t->writer, group, &now);
	}
}

void throttling_done(struct throttling *t)
{
	vec_done(&t->groups);
	map_done(&t->known);
}
