/*
 * dotnet/dotnet_client.c with a real runtime: names of methods from before and after the start of a session, all
 * 64 slots free afterwards, a stopped process and a killed one. The target is a small program that
 * is built here; without an SDK the test is skipped.
 */
#include "unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "code/codemap.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "nettrace/nettrace_read.h"
#include "recording/dotnet_client.h"
#include "trace/clr.h"
#include "trace/event.h"
#include "trace/trace.h"

#define S          UINT64_C(1000000000)
#define SKIP       77
#define PATIENCE_S 60 /* limit for events that must happen, also on a busy machine */

static char folder[] = "/tmp/spoor-dotnet-XXXXXX";
static char dll[4096]; /* the program */

struct watched {
	pid_t pid;
	struct dotnet_target target;
	char go[64];     /* appears: the late method runs */
	char rounds[64]; /* grows while the target runs */
};

struct received {
	struct bytes stream[DOTNET_STREAM_COUNT];
	unsigned ends[DOTNET_STREAM_COUNT];
	bool refuse;
};

static void start(struct watched *w)
{
	static unsigned number;

	number++;
	snprintf(w->go, sizeof(w->go), "%s/go%u", folder, number);
	snprintf(w->rounds, sizeof(w->rounds), "%s/rounds%u", folder, number);
	w->pid = fork();
	if (!w->pid) {
		setenv("TMPDIR", folder, 1);
		int null = open("/dev/null", O_RDWR);
		dup2(null, 1);
		dup2(null, 2);
		execlp("dotnet", "dotnet", dll, w->go, w->rounds, NULL);
		_exit(127);
	}
	assert_true(w->pid > 0);
}

static long rounds(const struct watched *w)
{
	FILE *file = fopen(w->rounds, "r");
	long n = 0;

	if (file) {
		if (fscanf(file, "%ld", &n) != 1)
			n = 0;
		fclose(file);
	}
	return n;
}

/* Waits until the target has run some more rounds. */
static void assert_well(const struct watched *w)
{
	uint64_t until = clock_monotonic_ns() + 120 * S;
	long first = 0;

	while (clock_monotonic_ns() < until) {
		long n = rounds(w);
		if (!first)
			first = n;
		if (first && n > first + 5)
			return;
		assert_int_equal(waitpid(w->pid, NULL, WNOHANG), 0);
		usleep(20000);
	}
	fail_msg("the target no longer runs");
}

static void start_well(struct watched *w)
{
	start(w);
	assert_well(w);
	assert_int_equal(dotnet_target_read((uint32_t)w->pid, &w->target, NULL), 0);
	assert_string_equal(w->target.tmpdir, folder);
}

static void stop_target(const struct watched *w)
{
	assert_int_equal(kill(w->pid, SIGSTOP), 0);
	assert_int_equal(waitpid(w->pid, NULL, WUNTRACED), w->pid);
}

static void end(struct watched *w)
{
	kill(w->pid, SIGKILL);
	waitpid(w->pid, NULL, 0);
}

static int take(void *user, enum dotnet_stream stream, const uint8_t *data, size_t size)
{
	struct received *r = user;

	if (r->refuse)
		return -EBADMSG;
	if (size)
		bytes_add(&r->stream[stream], data, size);
	else
		r->ends[stream]++;
	return 0;
}

static struct dotnet_client *open_client(const struct watched *w, struct received *r)
{
	const struct dotnet_handler handler = { .bytes = take, .user = r };
	struct dotnet_client *client;

	assert_int_equal(dotnet_client_new(&w->target, &handler, clock_monotonic_ns(), &client), 0);
	return client;
}

/* Advances the client until it reaches the state, or for so many seconds. Returns the state. */
static enum dotnet_state turn(struct dotnet_client *client, enum dotnet_state goal, double seconds)
{
	uint64_t until = clock_monotonic_ns() + (uint64_t)(seconds * 1e9);

	struct poll_set set = { 0 };
	enum dotnet_state state;

	while ((state = dotnet_client_advance(client, clock_monotonic_ns())) != goal &&
		state != DOTNET_ENDED && clock_monotonic_ns() < until) {
		poll_set_begin(&set, until);
		dotnet_client_await(client, &set);
		(void)poll_set_wait(&set);
	}
	poll_set_done(&set);
	return state;
}

static bool has_name(const struct bytes *stream, const char *name)
{
	struct bytes wide = { 0 };

	bytes_utf16z(&wide, name, strlen(name), SIZE_MAX);
	bool found = stream->len && memmem(stream->data, stream->len, wide.data, wide.len);
	bytes_done(&wide);
	return found;
}

static void received_done(struct received *r)
{
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++)
		bytes_done(&r->stream[i]);
}

static void test_names(void **state)
{
	struct watched w;
	struct received r = { 0 };

	(void)state;
	start_well(&w);
	uint64_t begin = clock_monotonic_ns();
	struct dotnet_client *client = open_client(&w, &r);
	assert_int_equal(turn(client, DOTNET_LIVE, PATIENCE_S), DOTNET_LIVE);
	printf("names known after %.0f ms, rundown %zu bytes\n",
		(double)(clock_monotonic_ns() - begin) / 1e6, r.stream[DOTNET_STREAM_RUNDOWN].len);
	assert_true(dotnet_client_named(client));
	assert_string_equal(dotnet_client_reason(client), "");
	const struct ipc_process_info *info = dotnet_client_info(client);
	assert_non_null(info);
	assert_int_equal(info->pid, w.pid);
	assert_string_equal(info->entry_assembly, "Target");
	assert_non_null(strstr(info->command_line, "Target.dll"));
	assert_true(info->runtime_version[0]);

	const struct bytes *rundown = &r.stream[DOTNET_STREAM_RUNDOWN];
	assert_memory_equal(rundown->data, "Nettrace", 8);
	assert_int_equal(r.ends[DOTNET_STREAM_RUNDOWN], 1);
	assert_int_equal(rundown->data[rundown->len - 1], 1); /* the end tag */
	assert_true(has_name(rundown, "BurnBeforeAsked"));
	assert_true(has_name(rundown, "System.Text.Json.JsonSerializer")); /* precompiled */
	assert_false(has_name(rundown, "MethodOfAfterwards"));

	/* Methods that are compiled later have events of their own. */
	FILE *go = fopen(w.go, "w");
	assert_non_null(go);
	fclose(go);
	for (unsigned i = 0;
		i < 600 && !has_name(&r.stream[DOTNET_STREAM_LIVE], "MethodOfAfterwards"); i++)
		(void)turn(client, DOTNET_ENDED, 0.1);
	assert_true(has_name(&r.stream[DOTNET_STREAM_LIVE], "MethodOfAfterwards"));

	begin = clock_monotonic_ns();
	dotnet_client_stop(client, clock_monotonic_ns());
	assert_int_equal(turn(client, DOTNET_ENDED, PATIENCE_S), DOTNET_ENDED);
	printf("stopped after %.0f ms\n", (double)(clock_monotonic_ns() - begin) / 1e6);
	const struct bytes *live = &r.stream[DOTNET_STREAM_LIVE];
	assert_int_equal(r.ends[DOTNET_STREAM_LIVE], 1);
	assert_int_equal(live->data[live->len - 1], 1);
	dotnet_client_free(client);
	assert_well(&w);
	received_done(&r);
	end(&w);
}

/* All steps: socket, decoder, code map. */
struct mapped {
	struct trace trace[DOTNET_STREAM_COUNT];
	struct nettrace_decoder *decoder[DOTNET_STREAM_COUNT];
	struct codemap map;
	unsigned methods[DOTNET_STREAM_COUNT];
};

static int take_mapped(void *user, enum dotnet_stream stream, const uint8_t *data, size_t size)
{
	struct mapped *m = user;
	struct diag diag = { 0 };
	struct event event;
	int r;

	if (!size)
		return nettrace_decoder_finish(m->decoder[stream], &diag);
	r = nettrace_decoder_push(m->decoder[stream], data, size);
	while (r >= 0 && (r = nettrace_decoder_next(m->decoder[stream], &event, &diag)) > 0) {
		const struct schema *schema = &m->trace[stream].schemas.items[event.schema_index];
		bool rundown = schema->provider_kind == PROVIDER_CLR_RUNDOWN;
		if (!rundown && schema->provider_kind != PROVIDER_CLR)
			continue;
		r = clr_absorb_method(&m->map, rundown, schema->event_id, schema->version,
			event.time_ns, event.payload, event.payload_size);
		m->methods[stream] += r > 0;
	}
	if (r < 0)
		printf("stream %d: %s (%d)\n", (int)stream, diag.text, r);
	return r;
}

static const struct code *code_named(const struct codemap *map, const char *name,
	enum code_kind kind)
{
	for (uint32_t i = 0; i < map->codes.count; i++) {
		const struct code *code = &map->codes.items[i];
		if (code->kind == kind && !strncmp(code->name, name, strlen(name)))
			return code;
	}
	return NULL;
}

static void test_mapped(void **state)
{
	static struct mapped m;
	const struct dotnet_handler handler = { .bytes = take_mapped, .user = &m };
	struct dotnet_client *client;
	struct watched w;
	unsigned precompiled = 0;

	(void)state;
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		assert_int_equal(trace_init(&m.trace[i]), 0);
		m.decoder[i] = nettrace_decoder_new(&m.trace[i], "target", NETTRACE_NAMES_ONLY);
	}
	start_well(&w);
	uint64_t begin_ns = clock_monotonic_ns();
	assert_int_equal(dotnet_client_new(&w.target, &handler, clock_monotonic_ns(), &client), 0);
	assert_int_equal(turn(client, DOTNET_LIVE, PATIENCE_S), DOTNET_LIVE);
	assert_true(dotnet_client_named(client));
	const struct code *burn = code_named(&m.map, "BurnBeforeAsked", CODE_JIT);
	assert_non_null(burn);
	assert_int_equal(burn->from_ns, 0);
	assert_ptr_equal(codemap_find(&m.map, burn->end - 1, clock_monotonic_ns()), burn);
	struct bytes text = { 0 };
	codemap_symbol_text(&m.map, burn, false, &text);
	printf("%s\n", bytes_z(&text));
	const char expected[] = "int64 [Target] Work::BurnBeforeAsked(int32)[";
	assert_memory_equal(text.data, expected, sizeof(expected) - 1);
	bytes_done(&text);
	for (uint32_t i = 0; i < m.map.codes.count; i++)
		precompiled += m.map.codes.items[i].kind == CODE_READYTORUN;
	printf("%u methods, %u precompiled, %zu bytes\n", m.map.codes.count, precompiled,
		codemap_size_bytes(&m.map));
	assert_true(precompiled > 100);
	assert_non_null(code_named(&m.map, "Serialize", CODE_READYTORUN));

	FILE *go = fopen(w.go, "w");
	assert_non_null(go);
	fclose(go);
	for (unsigned i = 0;
		i < 600 && !(code_named(&m.map, "MethodOfAfterwards", CODE_JIT) &&
				   code_named(&m.map, "made_at_run_time_", CODE_DYNAMIC));
		i++)
		(void)turn(client, DOTNET_ENDED, 0.1);
	const struct code *late = code_named(&m.map, "MethodOfAfterwards", CODE_JIT);
	assert_non_null(late);
	assert_true(late->from_ns > begin_ns && late->from_ns < clock_monotonic_ns());
	assert_non_null(code_named(&m.map, "made_at_run_time_", CODE_DYNAMIC));
	dotnet_client_stop(client, clock_monotonic_ns());
	assert_int_equal(turn(client, DOTNET_ENDED, PATIENCE_S), DOTNET_ENDED);
	assert_string_equal(dotnet_client_reason(client), "");
	dotnet_client_free(client);
	assert_well(&w);
	end(&w);
	for (unsigned i = 0; i < DOTNET_STREAM_COUNT; i++) {
		/* no other stream was requested */
		assert_int_equal(nettrace_decoder_ended(m.decoder[i]),
			i == DOTNET_STREAM_LIVE || i == DOTNET_STREAM_RUNDOWN);
		assert_int_equal(nettrace_decoder_lost(m.decoder[i]), 0);
		nettrace_decoder_free(m.decoder[i]);
		trace_done(&m.trace[i]);
	}
	codemap_done(&m.map);
}

/*
 * As many clients as there are slots for their live sessions: 64, minus the one that each needs for
 * its rundown.
 */
static void assert_slots_free(const struct watched *w)
{
	enum { N = 63 };
	struct received r[N] = { 0 };
	struct dotnet_client *clients[N];

	for (unsigned i = 0; i < N; i++) {
		clients[i] = open_client(w, &r[i]);
		enum dotnet_state state = turn(clients[i], DOTNET_LIVE, PATIENCE_S);
		if (state != DOTNET_LIVE || !dotnet_client_named(clients[i]))
			fail_msg("session %u: %s", i, dotnet_client_reason(clients[i]));
	}
	/*
	 * The 64th gets its live session but no place for the rundown, the 65th neither. Both say
	 * so.
	 */
	for (unsigned i = 0; i < 2; i++) {
		struct received more = { 0 };
		struct dotnet_client *client = open_client(w, &more);
		enum dotnet_state state = turn(client, DOTNET_LIVE, PATIENCE_S);
		assert_false(dotnet_client_named(client));
		assert_string_equal(reason_word(dotnet_client_reason_kind(client)), "slots");
		if (i == 0)
			assert_int_equal(state, DOTNET_LIVE);
		if (state == DOTNET_LIVE) {
			dotnet_client_stop(client, clock_monotonic_ns());
			assert_int_equal(turn(client, DOTNET_ENDED, PATIENCE_S), DOTNET_ENDED);
		}
		dotnet_client_free(client);
		received_done(&more);
	}
	for (unsigned i = 0; i < N; i++)
		dotnet_client_stop(clients[i], clock_monotonic_ns());
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(turn(clients[i], DOTNET_ENDED, PATIENCE_S), DOTNET_ENDED);
		dotnet_client_free(clients[i]);
		received_done(&r[i]);
	}
}

static void test_slots(void **state)
{
	struct watched w;

	(void)state;
	start_well(&w);
	/* Freed at each step of its life: 100 clients, which would use 100 slots. */
	for (unsigned i = 0; i < 100; i++) {
		struct received r = { 0 };
		struct dotnet_client *client = open_client(&w, &r);
		struct poll_set set = { 0 };
		for (unsigned step = 0; step < i % 20; step++) {
			(void)dotnet_client_advance(client, clock_monotonic_ns());
			poll_set_begin(&set,
				clock_monotonic_ns() + (1 + i % 7) * UINT64_C(1000000));
			dotnet_client_await(client, &set);
			(void)poll_set_wait(&set);
		}
		poll_set_done(&set);
		dotnet_client_free(client);
		received_done(&r);
	}
	/* Stopped with and without waiting for the end. */
	for (unsigned i = 0; i < 30; i++) {
		struct received r = { 0 };
		struct dotnet_client *client = open_client(&w, &r);
		if (i % 3 == 2)
			r.refuse = true;
		(void)turn(client, DOTNET_LIVE, i % 3 ? PATIENCE_S : 0.001 * i);
		dotnet_client_stop(client, clock_monotonic_ns());
		assert_int_equal(turn(client, DOTNET_ENDED, PATIENCE_S), DOTNET_ENDED);
		dotnet_client_free(client);
		received_done(&r);
	}
	assert_slots_free(&w);
	assert_well(&w);
	end(&w);
}

static void test_stopped(void **state)
{
	struct watched w;
	struct received r = { 0 };

	(void)state;
	start_well(&w);
	stop_target(&w);
	struct dotnet_client *client = open_client(&w, &r);
	assert_int_equal(turn(client, DOTNET_HUNG, PATIENCE_S), DOTNET_HUNG);
	assert_string_equal(reason_word(dotnet_client_reason_kind(client)), "stopped");
	kill(w.pid, SIGCONT);
	/* It continues, and so does the client. */
	assert_int_equal(turn(client, DOTNET_LIVE, PATIENCE_S), DOTNET_LIVE);
	assert_true(dotnet_client_named(client));
	assert_string_equal(dotnet_client_reason(client), "");
	/*
	 * Stopped while recording: the end has a time limit, and the session ends when the target
	 * continues.
	 */
	stop_target(&w);
	uint64_t begin = clock_monotonic_ns();
	dotnet_client_stop(client, clock_monotonic_ns());
	assert_int_equal(turn(client, DOTNET_ENDED, PATIENCE_S), DOTNET_ENDED);
	assert_true(clock_monotonic_ns() - begin < 60 * S);
	dotnet_client_free(client);
	kill(w.pid, SIGCONT);
	assert_well(&w);
	sleep(3); /* the runtime reads the stop request */
	assert_slots_free(&w);
	received_done(&r);
	end(&w);
}

static void test_killed(void **state)
{
	struct watched w;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct received r = { 0 };
		start_well(&w);
		struct dotnet_client *client = open_client(&w, &r);
		if (i < 5)
			(void)turn(client, DOTNET_LIVE, 0.003 * i);
		else
			assert_int_equal(turn(client, DOTNET_LIVE, PATIENCE_S), DOTNET_LIVE);
		end(&w);
		assert_int_equal(turn(client, DOTNET_ENDED, PATIENCE_S), DOTNET_ENDED);
		if (dotnet_client_named(client))
			assert_string_equal(dotnet_client_reason(client), "");
		else
			assert_string_equal(reason_word(dotnet_client_reason_kind(client)),
				"ended");
		dotnet_client_free(client);
		received_done(&r);
	}
}

/* Waits until the process runs another program than this one. */
static void wait_for_exec(pid_t pid)
{
	char path[64];
	char ours[4096];
	char its[4096];
	ssize_t our_len = readlink("/proc/self/exe", ours, sizeof(ours));

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	for (unsigned i = 0; i < 60000; i++) {
		ssize_t len = readlink(path, its, sizeof(its));
		if (len > 0 && (len != our_len || memcmp(its, ours, (size_t)len) != 0))
			return;
		usleep(1000);
	}
}

/* Asked before the process has a socket. */
static void test_starting(void **state)
{
	struct watched w;
	struct received r = { 0 };

	(void)state;
	start(&w);
	wait_for_exec(w.pid); /* so that /proc shows the target's environment */
	assert_int_equal(dotnet_target_read((uint32_t)w.pid, &w.target, NULL), 0);
	struct dotnet_client *client = open_client(&w, &r);
	if (turn(client, DOTNET_LIVE, PATIENCE_S) != DOTNET_LIVE)
		fail_msg("%s", dotnet_client_reason(client));
	assert_true(dotnet_client_named(client));
	for (unsigned i = 0; i < 600 && !has_name(&r.stream[DOTNET_STREAM_LIVE], "BurnBeforeAsked");
		i++)
		(void)turn(client, DOTNET_ENDED, 0.1);
	assert_true(has_name(&r.stream[DOTNET_STREAM_LIVE], "BurnBeforeAsked") ||
		    has_name(&r.stream[DOTNET_STREAM_RUNDOWN], "BurnBeforeAsked"));
	dotnet_client_stop(client, clock_monotonic_ns());
	assert_int_equal(turn(client, DOTNET_ENDED, PATIENCE_S), DOTNET_ENDED);
	dotnet_client_free(client);
	assert_well(&w);
	received_done(&r);
	end(&w);
}

static void test_switched_off(void **state)
{
	struct watched w;
	struct received r = { 0 };

	(void)state;
	setenv("DOTNET_EnableDiagnostics", "0", 1);
	start_well(&w);
	unsetenv("DOTNET_EnableDiagnostics");
	struct dotnet_client *client = open_client(&w, &r);
	assert_int_equal(turn(client, DOTNET_LIVE, PATIENCE_S), DOTNET_ENDED);
	assert_string_equal(reason_word(dotnet_client_reason_kind(client)), "no-socket");
	dotnet_client_free(client);
	end(&w);
}

static int find_program(void)
{
	FILE *pipe = popen(TEST_PROGRAMS " session", "r");

	if (!pipe)
		return 1;
	if (!fgets(dll, sizeof(dll), pipe))
		dll[0] = '\0';
	dll[strcspn(dll, "\n")] = '\0';
	int status = pclose(pipe);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIP) {
		printf("skipped: %s\n", dll);
		return SKIP;
	}
	return status == 0 && mkdtemp(folder) ? 0 : 1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_mapped),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_starting),
		cmocka_unit_test(test_switched_off),
	};
	char command[64];
	int r = find_program();

	if (r == 0)
		r = cmocka_run_group_tests_name("dotnet session", tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (folder[strlen(folder) - 1] != 'X' && system(command) != 0)
		return 1;
	return r;
}
