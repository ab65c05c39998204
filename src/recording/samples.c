/* See samples.h. */
#include "recording/samples.h"

#include <math.h>

#include "perf/recorder.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/live_options.h"
#include "recording/process_table.h"
#include "symbolize/symbolizer.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

static struct sample_cpu *cpu_of(struct samples *samples, int32_t cpu)
{
	uint32_t index = cpu < 0 ? 0 : (uint32_t)cpu + 1;

	while (samples->cpus.count <= index)
		if (!vec_push(&samples->cpus))
			return NULL;
	return &samples->cpus.items[index];
}

/*
 * A thread that has exited has no id any more (UINT32_MAX), but still runs in the kernel until it leaves its CPU: the last
 * one that exited there. For readers, a sample of another thread would mean that the CPU was switched to that.
 */
static uint32_t thread_id(const struct samples *samples, const struct pending *item)
{
	uint32_t index = item->cpu < 0 ? 0 : (uint32_t)item->cpu + 1;
	const struct sample_cpu *cpu =
		index < samples->cpus.count ? &samples->cpus.items[index] : NULL;

	if (item->tid == UINT32_MAX && cpu && cpu->exited_pid == item->pid)
		return cpu->exited_tid;
	return item->tid ? item->tid : item->pid;
}

/* Writes a sample. `carry_ns` is the remainder of earlier weights; `period_ns` as for payload_cpu(). */
static void write_sample(struct samples *samples, const struct pending *item, uint32_t process,
	struct payload_cpu payload, uint64_t *carry_ns, uint64_t period_ns, uint64_t late_ns)
{
	struct process_table *table = samples->table;
	uint32_t thread = process_table_thread(table, process, item->pid, thread_id(samples, item));
	uint32_t stack = item->stack_index;

	if (stack)
		/* without memory the name is missing, and counted */
		(void)symbolizer_hit(table->symbolizer, process, stack, item->time_ns, &stack);
	if (stack != item->stack_index)
		payload.flags |= SAMPLE_WALK_STOPPED;
	*carry_ns += payload.weight_ns;
	payload.value = *carry_ns / 1000000;
	*carry_ns %= 1000000;
	payload_cpu(&table->writer->payload, &payload, period_ns);
	session_writer_emit(table->writer, EVENTS_CPU,
		(struct event){ .time_ns = item->time_ns,
			.value = payload.weight_ns,
			.thread_index = thread,
			.stack_index = stack,
			.late_ns = late_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)late_ns,
			.cpu = item->cpu });
	samples->count++;
	samples->late += late_ns != 0;
}

void samples_write(struct samples *samples, const struct pending *item, uint64_t late_ns)
{
	struct process_table *table = samples->table;
	uint32_t process = process_table_is_before_exec(table, item)
				   ? 0
				   : process_table_owner(table, item->pid);
	struct sample_cpu *cpu = cpu_of(samples, item->cpu);

	if (!process || !cpu)
		return;
	if (session_writer_is_full(table->writer)) {
		samples->cut++;
		return;
	}
	uint64_t end = item->value >> SAMPLES_END_SHIFT;

	samples->unwound += end != 0;
	if (end)
		samples->unwound_ends[end - 1]++;
	process_table_announce(table, process);
	process_table_adopt_mappings(table, process);
	write_sample(samples, item, process,
		(struct payload_cpu){ .weight_ns = samples->period_ns,
			.count = 1,
			.flags = (uint32_t)item->value },
		&cpu->carry_ns, samples->period_ns, late_ns);
}

void samples_write_share(struct samples *samples, const struct pending *item, uint64_t late_ns)
{
	struct process_table *table = samples->table;
	uint32_t process = process_table_process(table, item->pid);
	uint64_t count = item->value >> SAMPLES_SHARE_COUNT_SHIFT;

	count += !count;
	if (!process)
		return;
	if (session_writer_is_full(table->writer)) {
		samples->cut += count;
		return;
	}
	process_table_announce(table, process);
	/* Shares have no period, and their delay is that of the clocks, not of the sample. */
	write_sample(samples, item, process,
		(struct payload_cpu){ .weight_ns = item->value & SAMPLES_SHARE_NS_MAX,
			.count = count,
			.flags = SAMPLE_USER_ONLY },
		&samples->carry_ns, 0, 0);
	samples->late += late_ns != 0;
}

static void write_loss(struct samples *samples, const struct pending *item, enum loss_source source,
	uint64_t count, uint64_t first_ns)
{
	struct session_writer *writer = samples->table->writer;

	samples->lost += count;
	session_writer_loss(writer, writer->recorder_process, source, LOSS_SAMPLES,
		&(struct payload_loss){ .count = count,
			.cpu = item->cpu,
			.first_ns = first_ns,
			.last_ns = item->time_ns },
		true);
}

void samples_write_lost(struct samples *samples, const struct pending *item)
{
	const struct sample_cpu *cpu = cpu_of(samples, item->cpu);

	write_loss(samples, item, LOSS_RING, item->value,
		cpu && cpu->last_ns ? cpu->last_ns : samples->table->writer->begin_ns);
}

void samples_throttle(struct samples *samples, const struct pending *item)
{
	struct sample_cpu *cpu = cpu_of(samples, item->cpu);

	if (!cpu)
		return;
	if (item->kind == PENDING_THROTTLE) {
		cpu->throttle_ns = item->time_ns;
		return;
	}
	/*
	 * The kernel does not report the number of suppressed samples; it is estimated from the
	 * duration.
	 */
	uint64_t count = cpu->throttle_ns && samples->period_ns
				 ? (item->time_ns - cpu->throttle_ns) / samples->period_ns
				 : 0;

	if (count)
		write_loss(samples, item, LOSS_THROTTLE, count, cpu->throttle_ns);
	cpu->throttle_ns = 0;
}

void samples_note(struct samples *samples, const struct pending *item)
{
	struct sample_cpu *cpu = cpu_of(samples, item->cpu);

	if (!cpu)
		return;
	cpu->last_ns = item->time_ns;
	if (item->kind == PENDING_EXIT) {
		cpu->exited_pid = item->pid;
		cpu->exited_tid = item->tid;
	}
}

void samples_tell_cut(struct samples *samples)
{
	struct session_writer *writer = samples->table->writer;

	if (!samples->cut)
		return;
	samples->lost += samples->cut;
	session_writer_loss_at_all(writer, LOSS_LIMIT, LOSS_SAMPLES, samples->cut,
		writer->window->watermark_ns);
	samples->cut = 0;
}

uint64_t samples_tell_unsampled(struct samples *samples, const struct live_options *options,
	const struct recorder_info *info, uint64_t command_ns)
{
	uint64_t seen_ns = (samples->count + samples->lost) * info->period_ns;
	bool task_events = info->clock != RECORD_CLOCK_NONE && !info->filter_by_pid &&
			   !options->machine && !options->pid_count;

	if (!task_events || options->cpu_count || options->late_start || command_ns <= seen_ns)
		return 0;
	uint64_t missing_ns = command_ns - seen_ns;
	double expected = (double)command_ns / (double)info->period_ns;

	/* Three standard deviations of a count, and a tenth for the kernel's rounding. */
	if ((double)missing_ns <=
		3 * sqrt(expected) * (double)info->period_ns + (double)command_ns / 10)
		return 0;
	session_writer_notice(samples->table->writer, 0, NOTICE_SHORT_LIVED,
		"record with sudo, or more often (-F)",
		"%.2f of the command's %.2f CPU s have no sample: without the right to sample whole CPUs there is none of threads that lived for less than a sampling period",
		(double)missing_ns / 1e9, (double)command_ns / 1e9);
	return missing_ns;
}

void samples_done(struct samples *samples)
{
	vec_done(&samples->cpus);
}
