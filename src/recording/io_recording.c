/* See io_recording.h. */
#include "recording/io_recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "perf/child.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/live_options.h"
#include "recording/process_table.h"
#include "trace/event.h"
#include "trace/io_call.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* A fork leaves the reorder window after 250 ms, and after a second at the latest. */
#define FLUSHES_MAX 3u
#define ROWS_MAX    65536u
#define YOUNG_NS    UINT64_C(1000000000)
/* ERESTARTSYS to ERESTART_RESTARTBLOCK of the kernel */
#define RESTART_FIRST 512u
#define RESTART_LAST  516u

static void refuse(struct io_recording *io, int error)
{
	const struct live_options *options = io->table->options;

	if (options->tid_count || options->cpu_count) {
		diag_set(&io->limit, -EINVAL,
			"input and output are not recorded: they are counted for whole processes, not for threads (-t) or CPUs (-C)");
		diag_remedy(&io->limit, "choose processes: -p, -n");
	} else if (error == -EXDEV) {
		diag_set(&io->limit, error,
			"input and output are not recorded: in a container the kernel's programs cannot tell its processes from others");
		diag_remedy(&io->limit, "record from outside of the container");
	} else if (error == -EPERM || error == -EACCES) {
		diag_set(&io->limit, error,
			"input and output are not recorded: this user may not run programs in the kernel (BPF)");
		diag_remedy(&io->limit, "record with sudo");
	} else {
		diag_set(&io->limit, error,
			"input and output are not recorded: this kernel refuses the programs that count system calls: %m");
		diag_remedy(&io->limit, "Linux 5.12 or newer has what they need");
	}
}

/* The command's pid before its exec; 0: none, or it runs before the recording does. */
static uint32_t waiting_command(const struct live_options *options)
{
	return options->child && options->child->waits && !options->late_start ? options->child->pid
									       : 0;
}

void io_recording_open(struct io_recording *io)
{
	const struct live_options *options = io->table->options;
	int error = options->tid_count || options->cpu_count ? -EINVAL
		    : !options->machine && !io->table->filter_by_pid
			    ? -EPERM
			    : io_probe_open(waiting_command(options), &io->probe);

	if (error < 0)
		refuse(io, error);
	else
		io->table->filter.shared[1] = io_probe_muted(io->probe);
}

void io_recording_start(struct io_recording *io)
{
	int error = io->probe ? io_probe_start(io->probe) : 0;

	io->from_ns = io->table->writer->begin_ns;
	if (error < 0)
		refuse(io, error);
	if (io->limit.error)
		session_writer_notice(io->table->writer, 0, NOTICE_IO, io->limit.remedy, "%s",
			io->limit.text);
}

void io_recording_stop(struct io_recording *io)
{
	if (io->probe)
		io_probe_stop(io->probe);
}

/* ---- taking ---- */

static void take_sum(void *context, const struct io_sum *sum)
{
	struct io_recording *io = context;
	struct io_row row = { .sum = *sum };

	if (pid_filter_has(&io->table->filter, sum->pid))
		return;
	if (io->rows.list.count >= ROWS_MAX || !vec_add(&io->rows.list, row))
		io->cut += sum->count;
}

static void take_name(void *context, uint32_t number, const struct io_name *name)
{
	struct io_recording *io = context;

	io_names_learn(&io->names, number, name);
}

/* Errors are ignored: sums and names that are not read now are read at the next flush. */
static void take(struct io_recording *io)
{
	uint32_t first = io->rows.list.count;

	(void)io_probe_take(io->probe, take_sum, io);
	(void)io_probe_take_names(io->probe, take_name, io);
	for (uint32_t i = first; i < io->rows.list.count; i++) {
		struct io_row *row = &io->rows.list.items[i];
		const char *text;
		row->thing = (uint8_t)io_names_of(&io->names, io->probe, &row->sum, &text);
		row->text = strtab_add_z(&io->texts, text);
	}
}

/* ---- writing ---- */

/* Its exec may still be in the reorder window, so its name is not known for sure. */
static bool is_young(const struct process_table *table, uint32_t index)
{
	const struct process *process = &table->trace->processes.items[index];

	return !process->ended &&
	       process->begin_ns + YOUNG_NS > table->writer->window->watermark_ns;
}

/* Finds row->process; 0: it is not recorded. False: that is not known yet. */
static bool find_process(struct io_recording *io, struct io_row *row, bool last)
{
	struct process_table *table = io->table;
	uint32_t process = process_table_find(table, row->sum.pid);
	bool may_wait = !last && row->flushes < (process ? 1 : FLUSHES_MAX);

	row->process = 0;
	if (pid_filter_has(&table->filter, row->sum.pid) && !process)
		return true;
	if (may_wait && (!process || is_young(table, process))) {
		row->flushes++;
		return false;
	}
	row->process = process_table_owner(table, row->sum.pid);
	return true;
}

static int compare_rows(const void *a, const void *b)
{
	const struct io_row *x = a;
	const struct io_row *y = b;
	const uint32_t members[][2] = { { x->process, y->process }, { x->sum.call, y->sum.call },
		{ x->thing, y->thing }, { x->text, y->text },
		{ (uint32_t)x->sum.descriptor, (uint32_t)y->sum.descriptor } };

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (members[i][0] != members[i][1])
			return members[i][0] < members[i][1] ? -1 : 1;
	return 0;
}

/* Of one name, or of one descriptor without a name. */
static bool is_same(const struct io_row *a, const struct io_row *b)
{
	return a->process == b->process && a->sum.call == b->sum.call && a->thing == b->thing &&
	       a->text == b->text && (a->text || a->sum.descriptor == b->sum.descriptor);
}

static void add(struct io_sum *sum, const struct io_sum *other)
{
	sum->count += other->count;
	sum->errors += other->errors;
	sum->again += other->again;
	sum->bytes += other->bytes;
	sum->small += other->small;
	sum->time_ns += other->time_ns;
	if (other->longest_ns > sum->longest_ns)
		sum->longest_ns = other->longest_ns;
	if (other->last_error)
		sum->last_error = other->last_error;
	if (sum->descriptor != other->descriptor)
		sum->descriptor = -1;
}

/* The kernel's own numbers for a call that a signal interrupted are not for programs. */
static uint64_t error_of(const struct io_sum *sum)
{
	return sum->last_error >= RESTART_FIRST && sum->last_error <= RESTART_LAST
		       ? EINTR
		       : sum->last_error;
}

static void write_row(struct io_recording *io, const struct io_row *row)
{
	struct session_writer *writer = io->table->writer;
	const struct io_sum *sum = &row->sum;

	if (session_writer_is_full(writer)) {
		io->cut += sum->count;
		return;
	}
	process_table_announce(io->table, row->process);
	payload_io_calls(&writer->payload,
		&(struct payload_io_calls){ .call = io_call_name(sum->call),
			.thing = io_thing_name(row->thing),
			.name = strtab_get(&io->texts, row->text),
			.descriptor = sum->descriptor,
			.count = sum->count,
			.errors = sum->errors,
			.again = sum->again,
			.last_error = error_of(sum),
			.bytes = sum->bytes,
			.small = sum->small,
			.time_ns = sum->time_ns,
			.longest_ns = sum->longest_ns,
			.from_ns = io->from_ns });
	session_writer_emit_about(writer, SPOOR_IO_CALLS, row->process);
	io->count += sum->count;
}

/* Rows of one process, call and name as one. */
static void write_rows(struct io_recording *io, struct io_rows *rows)
{
	if (rows->list.count > 1)
		qsort(rows->list.items, rows->list.count, sizeof(rows->list.items[0]),
			compare_rows);
	for (uint32_t i = 0; i < rows->list.count;) {
		struct io_row sum = rows->list.items[i];
		while (++i < rows->list.count && is_same(&sum, &rows->list.items[i]))
			add(&sum.sum, &rows->list.items[i].sum);
		write_row(io, &sum);
	}
}

static void tell_lost(struct io_recording *io)
{
	uint64_t lost = io_probe_lost(io->probe) + io->cut;

	if (lost > io->lost)
		session_writer_loss_at_all(io->table->writer, LOSS_IO, LOSS_SYSTEM_CALLS,
			lost - io->lost, io->table->writer->window->watermark_ns);
	io->lost = lost;
}

void io_recording_flush(struct io_recording *io, bool last)
{
	struct io_rows ready = { 0 };
	struct io_rows waiting = { 0 };
	struct strtab waiting_texts = { 0 };

	if (!io->probe || io->limit.error)
		return;
	take(io);
	vec_each(row, &io->rows.list) {
		bool known = find_process(io, row, last);
		if (known && !row->process)
			continue;
		if (!known)
			row->text = strtab_add_z(&waiting_texts, strtab_get(&io->texts, row->text));
		if (!vec_add(known ? &ready.list : &waiting.list, *row))
			io->cut += row->sum.count;
	}
	write_rows(io, &ready);
	io->from_ns = io->table->writer->window->watermark_ns;
	vec_done(&ready.list);
	vec_done(&io->rows.list);
	strtab_done(&io->texts);
	io->rows = waiting;
	io->texts = waiting_texts;
	tell_lost(io);
}

size_t io_recording_size_bytes(const struct io_recording *io)
{
	return io_names_size_bytes(&io->names) + strtab_size_bytes(&io->texts) +
	       io->rows.list.capacity * sizeof(struct io_row);
}

void io_recording_done(struct io_recording *io)
{
	io_probe_close(io->probe);
	io_names_done(&io->names);
	vec_done(&io->rows.list);
	strtab_done(&io->texts);
}
