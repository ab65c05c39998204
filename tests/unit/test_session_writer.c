/*
 * session_writer.c: the facts that a session writes are read from its file again, losses are gaps,
 * stacks that still wait survive the trimming of the table, and an error ends the writing.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "dotnet/ipc.h"
#include "machine/proc.h"
#include "pipeline/reorder_window.h"
#include "pipeline/saved.h"
#include "pipeline/session_writer.h"
#include "trace/event.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

static char path[] = "/tmp/spoor-test-XXXXXX";

struct session {
	struct trace trace;
	struct reorder_window window;
	struct session_writer writer;
	int fd;
};

static void open_session(struct session *s, const char *name)
{
	struct diag diag = { 0 };

	*s = (struct session){ .fd = open(name, O_RDWR | O_TRUNC) };
	assert_true(s->fd >= 0);
	assert_int_equal(trace_init(&s->trace), 0);
	assert_int_equal(session_writer_init(&s->writer, &s->trace, &s->window), 0);
	assert_int_equal(
		session_writer_open(&s->writer,
			&(struct session_file){ .fd = s->fd, .name = name, .version = "1" }, &diag),
		0);
}

static void close_session(struct session *s)
{
	session_writer_done(&s->writer);
	reorder_window_done(&s->window);
	trace_done(&s->trace);
	close(s->fd);
}

struct seen {
	struct trace trace;
	unsigned events;
	uint32_t lost;
};

static int see(void *context, const struct event *event)
{
	struct seen *seen = context;

	seen->events++;
	seen->lost += event->lost_before;
	return 0;
}

static struct seen read_back(void)
{
	struct seen seen = { 0 };
	struct diag diag = { 0 };

	assert_int_equal(trace_init(&seen.trace), 0);
	int r = saved_read(path, &seen.trace, see, &seen, &diag);
	if (r < 0)
		fail_msg("%s", diag.text);
	return seen;
}

static const char *text_of(const struct seen *seen, uint32_t index)
{
	return trace_text(&seen->trace, index);
}

static void test_facts(void **state)
{
	struct session s;
	struct proc_reader proc;
	struct ipc_process_info info = { .runtime_version = (char[]){ "10.0.12+abc" },
		.cookie = { 7 } };
	const struct session_count counts[] = { { SESSION_COUNT_SAMPLES, 3 } };

	(void)state;
	open_session(&s, path);
	session_writer_head(&s.writer, &(struct payload_session){ .tool_version = "1",
					       .command_line = "spoor record",
					       .options = "{}",
					       .period_ns = 250000 });
	assert_int_equal(proc_open(&proc, NULL), 0);
	assert_true(session_writer_process(&s.writer, &proc, s.writer.recorder_process, 0) ||
		    access("/proc/self/cgroup", R_OK) < 0);
	proc_close(&proc);
	/* A process that has ended: only its row is known. */
	uint32_t ended = trace_process(&s.trace, 4194305);

	s.trace.processes.items[ended].name = trace_add_text(&s.trace, "ended");
	assert_int_equal(session_writer_process(&s.writer, NULL, ended, SESSION_PROCESS_CREATED),
		0);
	session_writer_runtime(&s.writer, ended, &info,
		&(struct payload_runtime){ .reachable = true, .reason = "", .sessions = "live" });
	session_writer_notice(&s.writer, ended, NOTICE_RIGHTS, "a remedy", "a %s", "limit");
	session_writer_paused(&s.writer, UINT64_C(1500000000), "nothing was read");
	session_writer_unreachable(&s.writer, ended, REASON_KIND_NO_SOCKET, "", "not %s", "read");
	session_writer_end(&s.writer, "asked to", counts, 1);
	assert_int_equal(session_writer_error(&s.writer, NULL), 0);
	/* The file ends with a word that opens the next block. */
	assert_in_range(session_writer_bytes(&s.writer), 1, lseek(s.fd, 0, SEEK_END));
	close_session(&s);

	struct seen seen = read_back();
	const struct trace *trace = &seen.trace;
	const struct process *self =
		&trace->processes.items[trace_find_process(trace, (uint32_t)getpid())];
	const struct process *other = &trace->processes.items[trace_find_process(trace, 4194305)];

	assert_string_equal(text_of(&seen, trace->recording.command_line), "spoor record");
	assert_int_equal(trace->recording.period_ns, 250000);
	assert_string_equal(text_of(&seen, trace->recording.end_reason), "asked to");
	assert_int_equal(trace->recording.counts[SESSION_COUNT_SAMPLES], 3);
	assert_int_equal(trace->recording.recorder_process, self - trace->processes.items);
	assert_int_equal(self->uid, getuid());
	assert_int_equal(self->parent_pid, getppid());
	assert_true(strstr(text_of(&seen, self->executable), "test_session_writer") != NULL);
	assert_true(strstr(text_of(&seen, self->command), "test_session_writer") != NULL);
	assert_true(self->existed);
	assert_string_equal(text_of(&seen, other->name), "ended");
	assert_false(other->existed);
	assert_string_equal(text_of(&seen, other->runtime_version), "10.0.12");
	assert_string_equal(text_of(&seen, other->runtime_sessions), "live");
	assert_int_equal(trace->notices.count, 1 + 3); /* row 0 is none */
	assert_string_equal(text_of(&seen, trace->notices.items[1].code), "rights");
	assert_string_equal(text_of(&seen, trace->notices.items[1].text), "a limit");
	assert_string_equal(text_of(&seen, trace->notices.items[2].text),
		"spoor was stopped for 1.50 s (Ctrl-Z, SIGTSTP): nothing was read");
	assert_string_equal(text_of(&seen, trace->notices.items[3].code), "no-socket");
	assert_string_equal(text_of(&seen, trace->notices.items[3].text), "not read");
	trace_done(&seen.trace);
}

static void test_arguments_left_out(void **state)
{
	struct session s;
	struct proc_reader proc;

	(void)state;
	open_session(&s, path);
	assert_int_equal(proc_open(&proc, NULL), 0);
	session_writer_process(&s.writer, &proc, s.writer.recorder_process,
		SESSION_PROCESS_NO_ARGUMENTS);
	proc_close(&proc);
	session_writer_end(&s.writer, "", NULL, 0);
	close_session(&s);

	struct seen seen = read_back();
	const struct process *self =
		&seen.trace.processes.items[trace_find_process(&seen.trace, (uint32_t)getpid())];

	/* The name takes the place of the command line. */
	assert_string_equal(text_of(&seen, self->command), text_of(&seen, self->name));
	trace_done(&seen.trace);
}

static void test_loss(void **state)
{
	struct session s;
	const struct payload_loss loss = { .count = 5, .cpu = EVENT_CPU_UNKNOWN };

	(void)state;
	open_session(&s, path);
	session_writer_loss(&s.writer, s.writer.recorder_process, LOSS_RING, LOSS_SAMPLES, &loss,
		true);
	session_writer_loss(&s.writer, s.writer.recorder_process, LOSS_RING, LOSS_SAMPLES, &loss,
		false);
	session_writer_end(&s.writer, "", NULL, 0);
	close_session(&s);

	struct seen seen = read_back();

	assert_int_equal(seen.trace.losses.count, 1 + 2);
	assert_string_equal(text_of(&seen, seen.trace.losses.items[1].source), "ring");
	assert_string_equal(text_of(&seen, seen.trace.losses.items[1].unit), "samples");
	assert_int_equal(seen.lost, 5);
	trace_done(&seen.trace);
}

static void test_stacks_that_wait_survive(void **state)
{
	struct session s;
	uint64_t frame = 0;
	uint32_t count;

	(void)state;
	open_session(&s, path);
	for (frame = 1; s.trace.stacks.stacks.count <= 65536; frame++)
		assert_true(stack_table_intern(&s.trace.stacks, &frame, 1));
	struct pending *sample = reorder_window_add(&s.window);
	sample->kind = PENDING_SAMPLE;
	sample->stack_index = 1000;
	uint64_t waits = *stack_table_get(&s.trace.stacks, 1000, &count);
	struct pending *code = reorder_window_add(&s.window);
	code->kind = PENDING_CODE_REMOVED;
	code->stack_index = 77; /* of another table */
	session_writer_flush(&s.writer);
	session_writer_trim_stacks(&s.writer, NULL, NULL, NULL);
	assert_int_equal(s.writer.error, 0);
	assert_int_equal(s.window.items.items[1].stack_index, 77);
	assert_true(s.trace.stacks.stacks.count <= 2);
	assert_int_equal(*stack_table_get(&s.trace.stacks, s.window.items.items[0].stack_index,
				 &count),
		waits);
	assert_int_equal(count, 1);
	close_session(&s);
}

/* Unwritten bytes are written first, because the file may be smaller than their estimate. */
static void test_full(void **state)
{
	struct session s;

	(void)state;
	open_session(&s, path);
	assert_false(session_writer_is_full(&s.writer)); /* no limit */
	s.writer.limit.ceiling_bytes = session_writer_bytes(&s.writer) + 4096;
	for (unsigned i = 0; i < 1000 && !session_writer_is_full(&s.writer); i++)
		session_writer_notice(&s.writer, 0, NOTICE_MEMORY, "", "text");
	assert_true(session_writer_is_full(&s.writer));
	assert_true(session_writer_bytes(&s.writer) + s.writer.unflushed_most >=
		    s.writer.limit.ceiling_bytes);
	assert_true(s.writer.unflushed_most <= 512);
	assert_false(session_writer_is_over(&s.writer)); /* that is another limit */
	close_session(&s);
}

static void test_error(void **state)
{
	struct session s;
	struct diag diag = { 0 };

	(void)state;
	open_session(&s, path);
	session_writer_notice(&s.writer, 0, NOTICE_MEMORY, "", "written");
	session_writer_flush(&s.writer);
	uint64_t size_bytes = session_writer_bytes(&s.writer);

	/* The disk is full: every write fails. */
	int full = open("/dev/full", O_WRONLY);
	assert_true(full >= 0 && dup2(full, s.fd) == s.fd);
	close(full);
	session_writer_notice(&s.writer, 0, NOTICE_MEMORY, "", "not written");
	session_writer_flush(&s.writer);
	assert_true(s.writer.error < 0);
	int error = s.writer.error;

	session_writer_notice(&s.writer, 0, NOTICE_MEMORY, "", "not written");
	session_writer_end(&s.writer, "", NULL, 0);
	assert_int_equal(session_writer_error(&s.writer, &diag), error);
	assert_true(*diag.text);
	assert_int_equal(session_writer_bytes(&s.writer), size_bytes);
	assert_int_equal(s.writer.payload.len, 0);
	close_session(&s);

	struct seen seen = read_back();

	assert_int_equal(seen.trace.notices.count, 1 + 1);
	trace_done(&seen.trace);
}

/* A writer without a file: traces of raw bytes. */
static void test_no_file(void **state)
{
	struct trace trace;
	struct reorder_window window = { 0 };
	struct session_writer writer;

	(void)state;
	assert_int_equal(trace_init(&trace), 0);
	assert_int_equal(session_writer_init(&writer, &trace, &window), 0);
	session_writer_notice(&writer, 0, NOTICE_MEMORY, "", "text");
	session_writer_flush(&writer);
	session_writer_end(&writer, "", NULL, 0);
	assert_int_equal(session_writer_error(&writer, NULL), 0);
	assert_int_equal(session_writer_bytes(&writer), 0);
	session_writer_done(&writer);
	trace_done(&trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_arguments_left_out),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_stacks_that_wait_survive),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_no_file),
	};
	int fd = mkstemp(path);

	if (fd < 0)
		return 1;
	close(fd);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return failed;
}
