/* See live_state.h. */
#include "recording/live_state.h"

#include "nettrace/nettrace_write.h"
#include "pipeline/output_limit.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"

#define EVENT_COST  48u
#define FLUSH_LEAST 512u /* fewer bytes are not worth a flush */

uint32_t live_text(struct live *live, const char *text, size_t len)
{
	return strtab_add(&live->trace.strings, text, len);
}

void live_to_sink(struct live *live, const struct event *event)
{
	if (live->sink_error)
		return;
	if (live->output.ceiling_bytes) {
		uint32_t frame_count;
		(void)stack_table_get(&live->trace.stacks, event->stack_index, &frame_count);
		live->unflushed_most +=
			event->payload_size + EVENT_COST + frame_count * sizeof(uint64_t);
	}
	live->sink_error = live->sink_ops->event(live->sink, event, &live->sink_diag);
}

/*
 * Near the limit the sink is flushed first: compressed data is much smaller than its unflushed
 * bytes.
 */
static bool has_reached(struct live *live,
	bool (*reached)(const struct output_limit *limit, uint64_t size_bytes))
{
	if (!live->output.ceiling_bytes ||
		!reached(&live->output,
			nettrace_sink_counts(live->sink)->bytes + live->unflushed_most))
		return false;
	if (live->unflushed_most > FLUSH_LEAST && !live->sink_error) {
		live->unflushed_bytes = live->unflushed_most = 0;
		live->sink_error = live->sink_ops->flush(live->sink, &live->sink_diag);
	}
	return reached(&live->output,
		nettrace_sink_counts(live->sink)->bytes + live->unflushed_most);
}

bool live_is_full(struct live *live)
{
	return has_reached(live, output_limit_is_full);
}

bool live_is_over(struct live *live)
{
	return has_reached(live, output_limit_is_over);
}

/* See live_state.h. */
void live_emit(struct live *live, enum known_event known, uint32_t thread,
	const struct bytes *payload, int32_t cpu, uint32_t lost_before)
{
	struct event event = {
		.time_ns = live->window.watermark_ns,
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len,
		.thread_index = thread,
		.schema_index = trace_known_schema(&live->trace, known),
		.lost_before = lost_before,
		.cpu = cpu,
		.kind = known_events[known].kind,
	};

	if (!payload->failed && event.schema_index)
		live_to_sink(live, &event);
}

uint32_t live_main_thread(const struct live *live, uint32_t process)
{
	return live->trace.processes.items[process].main_thread;
}

void live_notice(struct live *live, uint32_t process, uint64_t severity, const char *code,
	const char *text, const char *remedy)
{
	bytes_reset(&live->payload);
	payload_notice(&live->payload,
		&(struct payload_notice){
			.severity = severity, .code = code, .text = text, .remedy = remedy });
	live_emit(live, SPOOR_NOTICE, live_main_thread(live, process), &live->payload,
		EVENT_CPU_UNKNOWN, 0);
}

void live_loss(struct live *live, const char *source, const char *unit, uint64_t count, int32_t cpu,
	uint64_t first_ns, uint64_t last_ns, bool gap)
{
	bytes_reset(&live->payload);
	payload_loss(&live->payload, &(struct payload_loss){ .source = source,
					     .unit = unit,
					     .count = count,
					     .cpu = cpu,
					     .provider = "",
					     .first_ns = first_ns,
					     .last_ns = last_ns });
	live_emit(live, SPOOR_LOSS, live_main_thread(live, live->recorder_process), &live->payload,
		cpu, gap ? (uint32_t)(count > INT32_MAX ? INT32_MAX : count) : 0);
}
