/* See machine_changes.h. */
#include "recording/machine_changes.h"

#include "base/clocks.h"
#include "base/text.h"
#include "perf/clock_probe.h"
#include "perf/recorder.h"
#include "pipeline/session_writer.h"
#include "trace/spoor_payload.h"

#define CHECK_NS UINT64_C(1000000000)

/* Time since the session's begin. */
static double elapsed_s(const struct session_writer *writer)
{
	return (double)(clock_monotonic_ns() - writer->begin_ns) / 1e9;
}

/* Earlier samples of the CPU are kept. */
static void on_cpu(void *context, uint32_t cpu, bool online)
{
	struct session_writer *writer = context;

	payload_cpu_state(&writer->payload,
		&(struct payload_cpu_state){ .cpu = cpu, .online = online });
	session_writer_emit_about(writer, SPOOR_CPU_STATE, writer->recorder_process);
	session_writer_notice(writer, 0, NOTICE_CPU, "", "CPU %u %s %s after the begin", cpu,
		online ? "came online" : "went offline", TEXT_DURATION(elapsed_s(writer)));
}

static void measure_perf_clock(struct session_writer *writer)
{
	struct clock_probe probe;

	if (clock_probe_perf(&probe) < 0)
		return; /* without a measurement no event is written */
	payload_clock_offset(&writer->payload, &(struct payload_clock_offset){ .source = "perf",
						       .offset_ns = probe.offset_ns,
						       .error_ns = probe.error_ns });
	session_writer_emit_about(writer, SPOOR_CLOCK_OFFSET, writer->recorder_process);
}

static void check_clocks(struct machine_changes *changes)
{
	struct session_writer *writer = changes->writer;
	int64_t by_ns;
	enum clock_change change = clock_watch_look(&changes->clocks, clock_watch_read(), &by_ns);

	if (change == CLOCK_STEADY)
		return;
	const char *by = TEXT_DURATION((double)(by_ns < 0 ? -by_ns : by_ns) / 1e9);
	const char *at = TEXT_DURATION(elapsed_s(writer));

	if (change == CLOCK_SLEPT)
		session_writer_notice(writer, 0, NOTICE_SUSPEND, "",
			"the machine slept for %s, which no time here counts, %s after the begin",
			by, at);
	else
		session_writer_notice(writer, 0, NOTICE_CLOCK_SET, "",
			"the time of day was set %s by %s %s after the begin; times of day in this recording go by what it was at the begin",
			by_ns < 0 ? "back" : "forward", by, at);
	measure_perf_clock(writer);
}

void machine_changes_begin(struct machine_changes *changes)
{
	changes->checked_ns = changes->writer->begin_ns;
	measure_perf_clock(changes->writer);
	clock_watch_begin(&changes->clocks, clock_watch_read());
}

void machine_changes_check(struct machine_changes *changes, uint64_t now_ns)
{
	if (now_ns < changes->checked_ns + CHECK_NS)
		return;
	changes->checked_ns = now_ns;
	/* a CPU that cannot be opened has no samples */
	(void)recorder_follow_cpus(changes->recorder, on_cpu, changes->writer, NULL);
	check_clocks(changes);
}
