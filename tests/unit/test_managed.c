/*
 * managed.c against a runtime that this process simulates: its diagnostics socket, its sessions and
 * the nettrace bytes of their streams. The process executes itself again with a separate TMPDIR,
 * because managed.c searches the socket in the TMPDIR of the process's environment.
 */
#include "unit/fake_runtime.h"

#include <errno.h>
#include <time.h>

#include "base/bytes.h"
#include "base/clocks.h"
#include "base/poll_set.h"
#include "code/codemap.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "machine/box.h"
#include "recording/managed.h"
#include "symbolize/symbolizer.h"
#include "trace/clr.h"
#include "trace/trace.h"

#define S UINT64_C(1000000000)

#define LIMIT_NS  (120 * S) /* limit of each wait, reached only if the test fails */
#define JIT_BEGIN UINT64_C(0x7f0000100000)
#define JIT_END   UINT64_C(0x7f0000200000)
#define FOLDER    "/tmp/spoor-managed-"

enum {
	CONNECTIONS = 16,
	SESSIONS = 32,
	METADATA_LOAD = 1,
	METADATA_UNLOAD = 2,
	METADATA_ASSEMBLY = 3
};

struct session {
	int fd; /* -1: the session has ended */
	bool rundown;
	unsigned stops;
};

/* Session ids are 1000 and above, in the order of opening. */
struct peer {
	char path[DOTNET_DIR_MAX + 64];
	int listener;
	struct fake_asking asking[CONNECTIONS];
	struct session sessions[SESSIONS];
	unsigned opened;
	unsigned stops;
};

struct fixture {
	struct peer peer;
	struct trace trace;
	struct symbolizer symbolizer;
	struct box box;
	struct managed *managed;
	uint32_t process;
	uint32_t sequence;
	unsigned named; /* reports that the names of a process are known */
	/* the next report does not return before the guard has ended a session */
	bool stalls;
	char codes[4096]; /* names of the managed code that was written, one a line */
	char notices[4096];
};

/* ---- the runtime ---- */

static void stop_session(struct peer *peer, uint64_t id)
{
	unsigned which = (unsigned)(id - 1000);

	assert_in_range(which, 0, peer->opened - 1);
	struct session *session = &peer->sessions[which];

	peer->stops++;
	session->stops++;
	if (session->fd >= 0)
		close(session->fd);
	session->fd = -1;
}

static void open_session(struct peer *peer, int fd, const uint8_t *request)
{
	uint64_t id = 1000 + peer->opened;
	uint64_t rundown_keywords;

	assert_true(peer->opened < SESSIONS);
	memcpy(&rundown_keywords, request + 20 + 4 + 4, 8); /* after buffer size and format */
	fake_reply(fd, true, &id, 8);
	peer->sessions[peer->opened++] =
		(struct session){ .fd = fd, .rundown = rundown_keywords != 0 };
}

static void answer(struct peer *peer, int fd, const uint8_t *request)
{
	enum ipc_command command = fake_command(request);
	uint64_t id;

	if (command == IPC_PROCESS_INFO_3) {
		fake_info(fd, command);
	} else if (command == IPC_STOP_TRACING) {
		memcpy(&id, request + 20, 8);
		stop_session(peer, id);
		fake_reply(fd, true, &id, 8);
	} else {
		assert_int_equal(command, IPC_COLLECT_TRACING_4);
		open_session(peer, fd, request);
		return;
	}
	close(fd);
}

static void serve(struct peer *peer)
{
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		fake_accept(&peer->asking[i], peer->listener);
		if (!fake_receive(&peer->asking[i]))
			continue;
		answer(peer, peer->asking[i].fd, peer->asking[i].data);
		peer->asking[i].fd = -1;
	}
}

static void open_peer(struct peer *peer)
{
	struct dotnet_target target;

	for (unsigned i = 0; i < CONNECTIONS; i++)
		peer->asking[i].fd = -1;
	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &target, NULL), 0);
	assert_memory_equal(target.tmpdir, FOLDER, strlen(FOLDER));
	fake_path(&target, peer->path, sizeof(peer->path));
	peer->listener = fake_listen(peer->path);
}

static void close_peer(struct peer *peer)
{
	fake_hang_up(peer->asking, CONNECTIONS);
	for (unsigned i = 0; i < peer->opened; i++)
		if (peer->sessions[i].fd >= 0)
			close(peer->sessions[i].fd);
	close(peer->listener);
	unlink(peer->path);
}

/* ---- nettrace, version 6: one nanosecond a tick ---- */

static void put_block(struct bytes *out, unsigned kind, struct bytes *body)
{
	bytes_u32(out, (uint32_t)body->len | kind << 24);
	bytes_add(out, body->data, body->len);
	bytes_reset(body);
}

static void put_metadata(struct bytes *body, uint8_t id, uint8_t event_id)
{
	static const char provider[] = "Microsoft-Windows-DotNETRuntime";
	struct bytes row = { 0 };

	bytes_u8(&row, id);
	bytes_u8(&row, sizeof(provider) - 1);
	bytes_add(&row, provider, sizeof(provider) - 1);
	bytes_varuint(&row, event_id);
	bytes_u8(&row, 1);
	bytes_u8(&row, 'E');
	bytes_u16(&row, 0);
	bytes_u16(&row, 0);
	bytes_u16(body, (uint16_t)row.len);
	bytes_add(body, row.data, row.len);
	bytes_done(&row);
}

static void send_stream(int fd, struct bytes *out)
{
	assert_false(out->failed);
	assert_int_equal(send(fd, out->data, out->len, MSG_NOSIGNAL), out->len);
	bytes_done(out);
}

static void send_head(int fd)
{
	struct bytes out = { 0 };
	struct bytes body = { 0 };

	bytes_add(&out, "Nettrace", 8);
	bytes_u32(&out, 0);
	bytes_u32(&out, 6);
	bytes_u32(&out, 0);
	for (int i = 0; i < 4; i++)
		bytes_u32(&body, i == 0 ? 2026 | 11 << 16 : i == 1 ? 21 << 16 : 0);
	bytes_u64(&body, clock_monotonic_ns());
	bytes_u64(&body, S);
	bytes_u32(&body, 8);
	bytes_u32(&body, 0);
	put_block(&out, 1, &body);
	bytes_u16(&body, 0);
	put_metadata(&body, METADATA_LOAD, CLR_ID_MethodLoadVerbose);
	put_metadata(&body, METADATA_UNLOAD, CLR_ID_MethodUnloadVerbose);
	put_metadata(&body, METADATA_ASSEMBLY, CLR_ID_AssemblyLoad);
	put_block(&out, 3, &body);
	bytes_u16(&body, 5);
	bytes_u8(&body, 1);
	bytes_u8(&body, 2);
	bytes_u8(&body, 7);
	bytes_u8(&body, 3);
	bytes_u8(&body, 7);
	put_block(&out, 6, &body);
	bytes_done(&body);
	send_stream(fd, &out);
}

static void send_event(struct fixture *f, int fd, uint32_t metadata, uint64_t time_ns,
	struct bytes *payload)
{
	struct bytes out = { 0 };
	struct bytes body = { 0 };

	bytes_u16(&body, 24);
	bytes_u16(&body, 0);
	for (int i = 0; i < 5; i++)
		bytes_u32(&body, 0);
	bytes_u32(&body, 48 + (uint32_t)payload->len);
	bytes_u32(&body, metadata); /* bit 31 clear: sorted */
	bytes_u32(&body, ++f->sequence);
	bytes_u64(&body, 1);
	bytes_u64(&body, 1);
	bytes_u32(&body, 0);
	bytes_u32(&body, 0);
	bytes_u64(&body, time_ns);
	bytes_u32(&body, 0);
	bytes_u32(&body, (uint32_t)payload->len);
	bytes_add(&body, payload->data, payload->len);
	put_block(&out, 2, &body);
	bytes_done(&body);
	bytes_done(payload);
	send_stream(fd, &out);
}

enum method_flag { METHOD_DYNAMIC = 1, METHOD_JITTED = 8 };

static void send_method(struct fixture *f, int fd, uint32_t metadata, const char *name,
	uint64_t begin, uint32_t flags, uint64_t time_ns)
{
	struct bytes payload = { 0 };

	bytes_u64(&payload, hash_u64((uint64_t)name[0]) ^ begin); /* the method's id */
	bytes_u64(&payload, 0);
	bytes_u64(&payload, begin);
	bytes_u32(&payload, 0x100);
	bytes_u32(&payload, 0);
	bytes_u32(&payload, flags);
	bytes_utf16z(&payload, "Shop", 4, SIZE_MAX);
	bytes_utf16z(&payload, name, strlen(name), SIZE_MAX);
	bytes_utf16z(&payload, "void  ()", 8, SIZE_MAX);
	send_event(f, fd, metadata, time_ns, &payload);
}

static void send_collectible_assembly(struct fixture *f, int fd, uint64_t time_ns)
{
	struct bytes payload = { 0 };

	for (int i = 0; i < 3; i++)
		bytes_u64(&payload, 0);
	bytes_u32(&payload, 8);
	bytes_utf16z(&payload, "Plugin", 6, SIZE_MAX);
	send_event(f, fd, METADATA_ASSEMBLY, time_ns, &payload);
}

/* ---- the recording ---- */

static int on_event(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload)
{
	struct fixture *f = context;
	size_t used = strlen(f->codes);

	(void)process;
	if (known != SYSTEM_PROCESS_SYMBOL)
		return 0;
	/* The text is the last member. Its length before it is below 128, so it is one byte. */
	size_t size = 0;
	while (size + 1 < payload->len && payload->data[payload->len - size - 1] >= ' ')
		size++;
	snprintf(f->codes + used, sizeof(f->codes) - used, "%.*s\n", (int)size,
		(const char *)payload->data + payload->len - size);
	return 0;
}

static void on_notice(void *context, enum notice_code code, const char *text)
{
	struct fixture *f = context;
	size_t used = strlen(f->notices);

	snprintf(f->notices + used, sizeof(f->notices) - used, "%s: %s\n", notice_code_word(code),
		text);
}

/*
 * Waits until the guard, which detects that this process does not run, has requested the end of a
 * session.
 */
static void stall(struct fixture *f)
{
	uint64_t until_ns = clock_monotonic_ns() + LIMIT_NS;
	unsigned stops = f->peer.stops;

	while (f->peer.stops == stops && clock_monotonic_ns() < until_ns) {
		struct pollfd fd = { .fd = f->peer.listener, .events = POLLIN };
		(void)poll(&fd, 1, 1000);
		serve(&f->peer);
	}
	assert_true(f->peer.stops > stops);
}

static void on_report(void *context, const struct managed_outcome *outcome)
{
	struct fixture *f = context;

	f->named += outcome->reachable;
	if (!f->stalls)
		return;
	f->stalls = false;
	stall(f);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	open_peer(&f->peer);
	box_read(&f->box);
	assert_int_equal(trace_init(&f->trace), 0);
	struct symbolizer_options options = {
		.trace = &f->trace, .box = &f->box, .emit = on_event, .context = f
	};
	assert_int_equal(symbolizer_init(&f->symbolizer, &options), 0);
	assert_int_equal(
		managed_new(&f->trace, &f->symbolizer, on_report, on_notice, f, &f->managed), 0);
	f->process = trace_process(&f->trace, (uint32_t)getpid());
	uint32_t index = trace_add_mapping(&f->trace, f->process);
	struct mapping *mapping = &f->trace.mappings.items[index];

	mapping->begin = JIT_BEGIN;
	mapping->end = JIT_END;
	mapping->path = trace_add_text(&f->trace, "/memfd:doublemapper");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	managed_free(f->managed);
	symbolizer_done(&f->symbolizer);
	trace_done(&f->trace);
	close_peer(&f->peer);
	free(f);
	return 0;
}

static void turn(struct fixture *f)
{
	struct poll_set set = { 0 };

	managed_advance(f->managed, clock_monotonic_ns());
	serve(&f->peer);
	poll_set_begin(&set, clock_monotonic_ns() + UINT64_C(10000000));
	managed_await(f->managed, &set);
	(void)poll_set_add(&set, f->peer.listener, POLLIN);
	(void)poll_set_wait(&set);
	poll_set_done(&set);
}

/* Limits the waiting time, not the number of steps. */
#define turns_until(f, condition)                                       \
	do {                                                            \
		uint64_t until_ns = clock_monotonic_ns() + LIMIT_NS;    \
		while (!(condition) && clock_monotonic_ns() < until_ns) \
			turn(f);                                        \
		assert_true(condition);                                 \
	} while (0)

/*
 * Opens the sessions of the process, up to the time when its names are known. Its live session is
 * the first one.
 */
static int begin_stream(struct fixture *f)
{
	managed_watch(f->managed, f->process, 0);
	turns_until(f, f->named == 1);
	assert_int_equal(f->peer.opened, 2);
	assert_false(f->peer.sessions[0].rundown);
	assert_true(f->peer.sessions[1].rundown);
	assert_int_equal(f->peer.sessions[1].stops, 1);
	send_head(f->peer.sessions[0].fd);
	return f->peer.sessions[0].fd;
}

static struct codemap *codemap_of(struct fixture *f)
{
	return &symbolizer_process(&f->symbolizer, f->process)->codemap;
}

static void sample(struct fixture *f, uint64_t address, uint64_t time_ns)
{
	uint32_t stack = stack_table_intern(&f->trace.stacks, &address, 1);

	assert_int_equal(symbolizer_hit(&f->symbolizer, f->process, stack, time_ns, &stack), 0);
}

static void end_code(void *context, uint32_t process, uint32_t code, const struct code *body)
{
	struct fixture *f = context;

	/* other tests check whether its name was written */
	(void)symbolizer_end_code(&f->symbolizer, process, code, body->begin);
}

static void flush_names(struct fixture *f, uint64_t now_ns)
{
	symbolizer_removed_codes(&f->symbolizer, end_code, f);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, now_ns), 0);
}

/*
 * The runtime sends its events seconds late. A sample of new code must not get the name of the code
 * that was at that address before: it waits for the runtime's reports.
 */
static void test_late_stream(void **state)
{
	struct fixture *f = *state;
	int fd = begin_stream(f);
	uint64_t from_ns = clock_monotonic_ns();

	send_method(f, fd, METADATA_LOAD, "Old", JIT_BEGIN, METHOD_DYNAMIC, from_ns);
	turns_until(f, codemap_of(f)->codes.count == 1);
	/*
	 * Old is removed after 1 s, New is loaded after 2 s and sampled after 3 s; the runtime
	 * reports none of this before 5 s.
	 */
	sample(f, JIT_BEGIN + 0x40, from_ns + 3 * S);
	flush_names(f, from_ns + 4 * S);
	assert_string_equal(f->codes, "");
	send_method(f, fd, METADATA_UNLOAD, "Old", JIT_BEGIN, METHOD_DYNAMIC, from_ns + S);
	send_method(f, fd, METADATA_LOAD, "New", JIT_BEGIN, METHOD_DYNAMIC, from_ns + 2 * S);
	turns_until(f, codemap_of(f)->codes.count == 2);
	send_method(f, fd, METADATA_LOAD, "Else", JIT_BEGIN + 0x1000, METHOD_DYNAMIC,
		from_ns + 4 * S);
	turns_until(f, codemap_of(f)->codes.count == 3);
	flush_names(f, from_ns + 5 * S);
	assert_non_null(strstr(f->codes, "Shop::New()"));
	assert_null(strstr(f->codes, "Old"));
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_null(strstr(f->codes, "Old"));
	for (int i = 0; i < UNNAMED_CAUSE_COUNT; i++)
		assert_int_equal(f->symbolizer.frames_unnamed[i], 0);
}

/*
 * The same with a collectible assembly: its methods are removed without an event; the next methods
 * at their addresses end them.
 */
static void test_late_stream_collectible(void **state)
{
	struct fixture *f = *state;
	int fd = begin_stream(f);
	uint64_t from_ns = clock_monotonic_ns();

	send_collectible_assembly(f, fd, from_ns);
	send_method(f, fd, METADATA_LOAD, "Old", JIT_BEGIN, METHOD_JITTED, from_ns + 1);
	turns_until(f, codemap_of(f)->codes.count == 1);
	sample(f, JIT_BEGIN + 0x40, from_ns + 3 * S);
	flush_names(f, from_ns + 4 * S);
	assert_string_equal(f->codes, "");
	send_method(f, fd, METADATA_LOAD, "New", JIT_BEGIN, METHOD_JITTED, from_ns + 2 * S);
	turns_until(f, codemap_of(f)->codes.count == 2);
	/* The runtime reports nothing newer: after REMOVAL_WAIT_NS the code is named anyway. */
	flush_names(f, from_ns + 5 * S);
	assert_null(strstr(f->codes, "Old"));
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_non_null(strstr(f->codes, "Shop::New()"));
	assert_null(strstr(f->codes, "Old"));
}

/*
 * Code that cannot be removed, and code that the runtime has reported up to a time after the
 * sample, is named without waiting.
 */
static void test_named_without_waiting(void **state)
{
	struct fixture *f = *state;
	int fd = begin_stream(f);
	uint64_t from_ns = clock_monotonic_ns();

	send_method(f, fd, METADATA_LOAD, "Stays", JIT_BEGIN, METHOD_JITTED, from_ns);
	send_method(f, fd, METADATA_LOAD, "Dynamic", JIT_BEGIN + 0x1000, METHOD_DYNAMIC, from_ns);
	turns_until(f, codemap_of(f)->codes.count == 2);
	sample(f, JIT_BEGIN + 0x40, from_ns + S);
	sample(f, JIT_BEGIN + 0x1040, from_ns + S);
	flush_names(f, from_ns + 2 * S);
	assert_non_null(strstr(f->codes, "Shop::Stays()"));
	assert_null(strstr(f->codes, "Shop::Dynamic()"));
	send_method(f, fd, METADATA_LOAD, "Later", JIT_BEGIN + 0x2000, METHOD_DYNAMIC,
		from_ns + 2 * S);
	turns_until(f, codemap_of(f)->codes.count == 3);
	flush_names(f, from_ns + 3 * S);
	assert_non_null(strstr(f->codes, "Shop::Dynamic()"));
	/*
	 * The wait for a runtime without events has a limit, so that a recording that is killed
	 * later contains the name.
	 */
	sample(f, JIT_BEGIN + 0x2040, from_ns + 4 * S);
	flush_names(f, from_ns + 5 * S);
	assert_null(strstr(f->codes, "Shop::Later()"));
	flush_names(f, from_ns + 100 * S);
	assert_non_null(strstr(f->codes, "Shop::Later()"));
}

/* No stream is open, so no further report can come. */
static void test_named_after_the_end_of_the_stream(void **state)
{
	struct fixture *f = *state;
	int fd = begin_stream(f);
	uint64_t from_ns = clock_monotonic_ns();

	send_method(f, fd, METADATA_LOAD, "Dynamic", JIT_BEGIN, METHOD_DYNAMIC, from_ns);
	turns_until(f, codemap_of(f)->codes.count == 1);
	sample(f, JIT_BEGIN + 0x40, from_ns + S);
	flush_names(f, from_ns + 2 * S);
	assert_string_equal(f->codes, "");
	close(fd);
	f->peer.sessions[0].fd = -1;
	turns_until(f, !managed_is_streaming(f->managed));
	flush_names(f, from_ns + 2 * S);
	assert_non_null(strstr(f->codes, "Shop::Dynamic()"));
}

/*
 * The guard ends the sessions in the middle of a step: during the report about one process, after
 * the step has checked the guard and before it handles the other process.
 */
static void test_guard_in_mid_turn(void **state)
{
	struct fixture *f = *state;
	uint64_t far_ns = clock_monotonic_ns() + 3600 * S;
	uint32_t second = trace_process(&f->trace, (uint32_t)getpid() + 1);

	/* Both rows are this process. */
	f->trace.processes.items[second].pid = (uint32_t)getpid();
	managed_watch(f->managed, second, far_ns);
	(void)begin_stream(f);
	/*
	 * The process that is handled first in each step is connected now. Its names become known
	 * while the other process's session is open.
	 */
	f->stalls = true;
	uint64_t until_ns = clock_monotonic_ns() + LIMIT_NS;
	while (f->stalls && clock_monotonic_ns() < until_ns) {
		struct pollfd fd = { .fd = f->peer.listener, .events = POLLIN };
		managed_advance(f->managed, far_ns + clock_monotonic_ns());
		serve(&f->peer);
		(void)poll(&fd, 1, 10);
	}
	assert_false(f->stalls);
	unsigned opened = f->peer.opened;
	/* Two sessions each: live and rundown. */
	until_ns = clock_monotonic_ns() + LIMIT_NS;
	while (f->peer.opened < opened + 4 && clock_monotonic_ns() < until_ns) {
		struct pollfd fd = { .fd = f->peer.listener, .events = POLLIN };
		managed_advance(f->managed, far_ns + clock_monotonic_ns());
		serve(&f->peer);
		(void)poll(&fd, 1, 10);
	}
	assert_int_equal(f->peer.opened, opened + 4);
	assert_non_null(strstr(f->notices, "guard: "));
	assert_non_null(strstr(f->notices, "in 2 .NET processes were ended"));
}

/* /proc shows the environment that the process was executed with. */
static void start_again(char **arguments)
{
	char folder[] = FOLDER "XXXXXX";

	if (!mkdtemp(folder) || setenv("TMPDIR", folder, 1) < 0)
		exit(99);
	(void)execv("/proc/self/exe", arguments); /* returns only on failure */
	exit(99);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_late_stream, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_stream_collectible, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_named_without_waiting, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_named_after_the_end_of_the_stream, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(test_guard_in_mid_turn, set_up, tear_down),
	};
	const char *folder = getenv("TMPDIR");

	(void)count;
	if (!folder || strncmp(folder, FOLDER, strlen(FOLDER)) != 0)
		start_again(arguments);
	int result = cmocka_run_group_tests_name("managed", tests, NULL, NULL);

	(void)rmdir(folder); /* empty if the test passed */
	return result;
}
