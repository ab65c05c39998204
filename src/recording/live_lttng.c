/* See live_lttng.h. */
#include "recording/live_lttng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "formats/ctf_read.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/live_options.h"
#include "recording/process_table.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define LOOK_NS UINT64_C(100000000)
/* LTTng writes a buffer every 100 ms; then it is read within LOOK_NS */
#define LAG_NS      UINT64_C(400000000)
#define WAITING_MAX (64u << 20) /* bytes; then the rest stays on disk */

/* Attached to an item of kind PENDING_LTTNG; the item has pid and tid. */
struct waiting_event {
	uint32_t schema_index;
	uint32_t payload_size;
	int32_t cpu;
	uint8_t payload[];
};

/* Frees the disk space of a packet that was read. */
static void release(const char *path, uint64_t offset, uint64_t size)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	/* Without it the trace only takes more space until the end. */
	(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
	(void)close(fd); /* nothing was written */
}

int live_lttng_start(struct live_lttng *lttng, struct process_table *table, struct diag *diag)
{
	const struct live_options *options = table->options;
	const struct lttng_options wanted = { .events = options->lttng,
		.pids = options->pids,
		.pid_count = options->machine ? 0 : options->pid_count };
	struct stat status;

	if (!options->lttng || !options->lttng[0])
		return 0;
	lttng->own_namespace = stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
	int result = lttng_session_start(&lttng->session, &wanted, diag);
	if (result == 0)
		result = ctf_reader_open(lttng->session.folder, table->trace, CTF_GROWING,
			&lttng->reader, diag);
	if (result < 0)
		return result;
	ctf_reader_on_consumed(lttng->reader, release);
	lttng->table = table;
	return 0;
}

void live_lttng_await(const struct live_lttng *lttng, struct poll_set *set)
{
	if (lttng->table && !lttng->failed)
		poll_set_wake(set, lttng->looked_ns + LOOK_NS);
}

/* The dates of the two clocks differ by as much as the system's date was adjusted meanwhile. */
static void tell_clock(struct live_lttng *lttng)
{
	struct session_writer *writer = lttng->table->writer;
	int64_t offset_ns;

	if (lttng->clock_reported || !ctf_reader_clock(lttng->reader, &offset_ns))
		return;
	uint64_t before_ns = clock_monotonic_ns();
	int64_t utc_ns = (int64_t)clock_utc_ns();
	uint64_t after_ns = clock_monotonic_ns();
	int64_t own_ns = utc_ns - (int64_t)(before_ns + (after_ns - before_ns) / 2);

	lttng->clock_reported = true;
	payload_clock_offset(&writer->payload, &(struct payload_clock_offset){ .source = "lttng",
						       .offset_ns = own_ns - offset_ns,
						       .error_ns = after_ns - before_ns });
	session_writer_emit_about(writer, SPOOR_CLOCK_OFFSET, writer->recorder_process);
}

/* The process of this id in its own namespace, if there is only one. */
static uint32_t inner_process(const struct trace *trace, uint32_t inner_pid)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < trace->processes.count; i++) {
		const struct process *process = &trace->processes.items[i];
		if (process->inner_pid != inner_pid || process->pid == inner_pid || process->ended)
			continue;
		if (found)
			return 0;
		found = i;
	}
	return found;
}

static bool put(struct live_lttng *lttng, const struct ctf_event *event)
{
	struct reorder_window *window = lttng->table->writer->window;
	const struct trace *trace = lttng->table->trace;
	uint32_t pid = event->pid, tid = event->tid ? event->tid : event->pid;

	if (event->pid_namespace && lttng->own_namespace &&
		event->pid_namespace != lttng->own_namespace) {
		uint32_t process = inner_process(trace, pid);
		if (!process) {
			lttng->unplaced++;
			return true;
		}
		/* its threads have other ids here, which are not known */
		pid = tid = trace->processes.items[process].pid;
	}
	size_t size = sizeof(struct waiting_event) + event->event.payload_size;
	struct waiting_event *side = malloc(size);
	struct pending *item = side ? reorder_window_add(window) : NULL;

	if (!item) {
		free(side);
		return false;
	}
	side->schema_index = event->event.schema_index;
	side->payload_size = event->event.payload_size;
	side->cpu = event->event.cpu;
	if (side->payload_size)
		memcpy(side->payload, event->event.payload, side->payload_size);
	item->kind = PENDING_LTTNG;
	item->time_ns = event->event.time_ns;
	item->pid = pid;
	item->tid = tid;
	item->cpu = (int16_t)event->event.cpu;
	item->side = side;
	lttng->last_ns = item->time_ns;
	lttng->waiting_bytes += size;
	return true;
}

static void say_incomplete(struct live_lttng *lttng, const struct diag *diag)
{
	lttng->incomplete = true;
	session_writer_notice(lttng->table->writer, 0, NOTICE_LTTNG, diag->remedy,
		"events of LTTng are incomplete: %s", diag->text);
}

/* Bounded: events that do not fit the window's memory stay on disk until the next call. */
static void read_new(struct live_lttng *lttng)
{
	struct ctf_event event;
	struct diag diag = { 0 };
	int result = ctf_reader_look(lttng->reader, &diag);

	while (result >= 0 && lttng->waiting_bytes < WAITING_MAX) {
		result = ctf_reader_next(lttng->reader, &event, &diag);
		if (result <= 0)
			break;
		if (!put(lttng, &event))
			result = diag_set(&diag, -ENOMEM, "cannot keep events: %m");
	}
	lttng->failed = result < 0;
	if (lttng->failed)
		say_incomplete(lttng, &diag);
	else
		tell_clock(lttng);
}

void live_lttng_look(struct live_lttng *lttng, uint64_t now_ns)
{
	if (!lttng->table || lttng->failed || now_ns < lttng->looked_ns + LOOK_NS)
		return;
	lttng->looked_ns = now_ns;
	read_new(lttng);
}

uint64_t live_lttng_limit_ns(const struct live_lttng *lttng, uint64_t now_ns)
{
	return lttng->table && !lttng->failed ? now_ns - LAG_NS : UINT64_MAX;
}

void live_lttng_write(struct live_lttng *lttng, const struct pending *item, uint64_t late_ns)
{
	const struct waiting_event *side = item->side;
	struct process_table *table = lttng->table;

	lttng->waiting_bytes -= sizeof(*side) + side->payload_size;
	/* fired while the session was being stopped */
	if (table->writer->end_ns && item->time_ns - late_ns > table->writer->end_ns)
		return;
	uint32_t process = table->options->machine ? process_table_process(table, item->pid)
						   : process_table_find(table, item->pid);
	if (!process)
		return; /* of another process than the recorded ones */
	if (session_writer_is_full(table->writer)) {
		table->rows.items[process].events_cut++;
		return;
	}
	process_table_announce(table, process);
	session_writer_event(table->writer,
		&(struct event){ .time_ns = item->time_ns,
			.payload = side->payload,
			.payload_size = side->payload_size,
			.thread_index = process_table_thread(table, process, item->pid, item->tid),
			.schema_index = side->schema_index,
			.late_ns = late_ns < UINT32_MAX ? (uint32_t)late_ns : UINT32_MAX,
			.cpu = side->cpu });
	lttng->count++;
	lttng->late += late_ns != 0;
	session_writer_relieve(table->writer);
}

void live_lttng_stop(struct live_lttng *lttng)
{
	struct diag diag = { 0 };

	if (!lttng->table || lttng->failed)
		return;
	/* The events on disk are still read. */
	if (lttng_session_stop(&lttng->session, &diag) < 0)
		say_incomplete(lttng, &diag);
}

bool live_lttng_finish(struct live_lttng *lttng)
{
	if (!lttng->table || lttng->failed)
		return false;
	read_new(lttng);
	return lttng->waiting_bytes >= WAITING_MAX;
}

uint64_t live_lttng_lost(const struct live_lttng *lttng)
{
	return (lttng->reader ? ctf_reader_lost(lttng->reader) : 0) + lttng->unplaced;
}

void live_lttng_done(struct live_lttng *lttng)
{
	ctf_reader_close(lttng->reader);
	lttng_session_done(&lttng->session);
}
