/*
 * guard.c: an owner that is stopped, hangs, is killed or exits, and a runtime whose sessions the
 * guard must end then. The owner is a child of this process, because it has to be stopped; this
 * process plays the runtime.
 */
#include "unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clocks.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"

#define S  UINT64_C(1000000000)
#define MS UINT64_C(1000000)

#define PATIENCE_MS 60000 /* limit for events that must happen, also on a busy machine */
#define SILENCE_MS  1500  /* an owner that was silent for a shorter time is not touched */

enum { SESSIONS = 3 };

struct stage {
	char folder[32];
	char path[256];
	int listener;
	struct dotnet_target target; /* this process, which simulates the runtime */
	int words[2];                /* [0] the end of the owner, [1] the end of this process */
	uint64_t beat_ns;            /* no later than the owner's last heartbeat */
	pid_t owner;
	int stream[SESSIONS];
};

static void set_up(struct stage *stage)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*stage = (struct stage){ .stream = { -1, -1, -1 } };
	strcpy(stage->folder, "/tmp/spoor-guard-XXXXXX");
	assert_non_null(mkdtemp(stage->folder));
	assert_int_equal(dotnet_target_read((uint32_t)getpid(), &stage->target, NULL), 0);
	strcpy(stage->target.tmpdir, stage->folder);
	snprintf(stage->path, sizeof(stage->path),
		"%s/dotnet-diagnostic-%" PRIu32 "-%" PRIu64 "-socket", stage->folder,
		stage->target.inner_pid, stage->target.start_ticks);
	strcpy(address.sun_path, stage->path);
	stage->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(stage->listener, (const struct sockaddr *)&address, sizeof(address)),
		0);
	assert_int_equal(listen(stage->listener, 16), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, stage->words), 0);
	/*
	 * A guard whose owner was killed becomes a child of this process, which can wait for its
	 * end.
	 */
	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

static void tear_down(struct stage *stage)
{
	for (unsigned i = 0; i < SESSIONS; i++)
		if (stage->stream[i] >= 0)
			close(stage->stream[i]);
	close(stage->listener);
	close(stage->words[0]);
	close(stage->words[1]);
	unlink(stage->path);
	assert_int_equal(rmdir(stage->folder), 0);
}

static int accept_within(const struct stage *stage, int ms)
{
	struct pollfd fd = { .fd = stage->listener, .events = POLLIN };

	if (poll(&fd, 1, ms) <= 0)
		return -1;
	return accept4(stage->listener, NULL, NULL, SOCK_CLOEXEC);
}

/* The owner sends numbers, one in each message. */
static void say(int fd, uint32_t number)
{
	if (write(fd, &number, sizeof(number)) != sizeof(number))
		_exit(9);
}

static uint32_t receive_number(const struct stage *stage)
{
	struct pollfd fd = { .fd = stage->words[1], .events = POLLIN };
	uint32_t number = 0;

	assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
	assert_int_equal(read(fd.fd, &number, sizeof(number)), sizeof(number));
	return number;
}

/* In the owner: sessions 1001, 1002, ... are open and guarded. */
static struct guard *open_sessions(const struct stage *stage, bool with_ids,
	uint32_t keys[SESSIONS])
{
	struct guard *guard;

	if (guard_start(&guard, NULL) < 0)
		_exit(1);
	for (unsigned i = 0; i < SESSIONS; i++) {
		int fd = dotnet_port_connect(&stage->target, NULL);
		if (fd < 0)
			_exit(2);
		keys[i] = guard_add(guard, fd, &stage->target);
		if (!keys[i])
			_exit(3);
		if (with_ids)
			guard_session(guard, keys[i], 1001 + i);
	}
	say(stage->words[0], (uint32_t)(clock_monotonic_ns() / MS));
	guard_beat(guard, clock_monotonic_ns());
	say(stage->words[0], guard_pid(guard));
	return guard;
}

typedef void owner_part(struct stage *stage);

/* Returns the guard's process id. */
static pid_t start_owner(struct stage *stage, owner_part *part)
{
	set_up(stage);
	stage->owner = fork();
	if (!stage->owner) {
		close(stage->listener);
		close(stage->words[1]);
		part(stage);
		_exit(0);
	}
	for (unsigned i = 0; i < SESSIONS; i++) {
		stage->stream[i] = accept_within(stage, PATIENCE_MS);
		assert_true(stage->stream[i] >= 0);
	}
	stage->beat_ns = receive_number(stage) * MS;
	pid_t guard = (pid_t)receive_number(stage);
	assert_int_equal(kill(guard, 0), 0);
	for (unsigned i = 0; i < PATIENCE_MS / 10 && getsid(guard) == getsid(0); i++)
		usleep(10000); /* the guard has started when it is the leader of a session */
	return guard;
}

/* Returns the session id of the stop request that arrives within a time; 0: none. */
static uint64_t stop_within(const struct stage *stage, int ms)
{
	int fd = accept_within(stage, ms);
	uint8_t request[64];
	uint64_t id = 0;

	if (fd < 0)
		return 0;
	/* the header of 20 bytes, the id, and the end of the stream */
	assert_int_equal(recv(fd, request, sizeof(request), MSG_WAITALL), 28);
	assert_int_equal(request[16] << 8 | request[17], IPC_STOP_TRACING);
	memcpy(&id, request + 20, 8);
	close(fd);
	return id;
}

/* Fills a stream that is not read until no byte fits. */
static void fill(int fd)
{
	static const char bytes[4096];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	assert_int_equal(errno, EAGAIN);
}

static void wait_for_end(pid_t pid)
{
	uint64_t until = clock_monotonic_ns() + PATIENCE_MS * MS;

	while (waitpid(pid, NULL, WNOHANG) != pid) {
		assert_true(clock_monotonic_ns() < until);
		usleep(10000);
	}
}

/*
 * All three sessions get one stop each, and their streams are read; then this runtime ends them.
 * Returns the time of the first stop.
 */
static uint64_t expect_stops(struct stage *stage)
{
	bool seen[SESSIONS] = { false };
	uint64_t first_ns = 0;

	for (unsigned i = 0; i < SESSIONS; i++) {
		uint64_t id = stop_within(stage, PATIENCE_MS);
		if (!i)
			first_ns = clock_monotonic_ns();
		assert_in_range(id, 1001, 1000 + SESSIONS);
		assert_false(seen[id - 1001]);
		seen[id - 1001] = true;
	}
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct pollfd fd = { .fd = stage->stream[i], .events = POLLOUT };
		assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
		/* there is room again, and the stream was not closed */
		assert_int_equal(fd.revents, POLLOUT);
		close(stage->stream[i]);
		stage->stream[i] = -1;
	}
	assert_int_equal(stop_within(stage, 300), 0);
	return first_ns;
}

static void wait_for_word(const struct stage *stage)
{
	uint32_t word;

	if (read(stage->words[0], &word, sizeof(word)) != sizeof(word))
		_exit(8);
}

static void stop_itself(struct stage *stage)
{
	uint32_t keys[SESSIONS];
	struct guard *guard = open_sessions(stage, true, keys);
	uint64_t seen_ns;
	char state;

	raise(SIGSTOP);
	say(stage->words[0], guard_rounds(guard));
	guard_last_round(guard, &seen_ns, &state);
	say(stage->words[0], (uint32_t)state);
	say(stage->words[0], (uint32_t)((clock_monotonic_ns() - seen_ns) / MS));
	/* The guard also protects sessions that are opened later. */
	for (unsigned i = 0; i < SESSIONS; i++)
		guard_remove(guard, keys[i]);
	uint64_t before = clock_monotonic_ns();
	uint64_t silence = 0;
	guard_beat(guard, before);
	int fd = dotnet_port_connect(&stage->target, NULL);
	uint32_t key = guard_add(guard, fd, &stage->target);
	guard_session(guard, key, 2000);
	for (unsigned i = 0; i < 30; i++) {
		uint64_t beat = clock_monotonic_ns();
		if (beat - before > silence)
			silence = beat - before;
		before = beat;
		guard_beat(guard, beat);
		usleep(100000);
	}
	uint32_t rounds = guard_rounds(guard);
	if (clock_monotonic_ns() - before > silence)
		silence = clock_monotonic_ns() - before;
	say(stage->words[0], rounds);
	say(stage->words[0], (uint32_t)(silence / MS));
	raise(SIGSTOP);
}

static void test_stopped(void **state)
{
	struct stage stage;
	pid_t guard = start_owner(&stage, stop_itself);

	(void)state;
	for (unsigned i = 0; i < SESSIONS; i++)
		fill(stage.stream[i]);
	/* Not before the time limit. */
	assert_true(expect_stops(&stage) >= stage.beat_ns + SILENCE_MS * MS);
	int status;
	assert_int_equal(waitpid(stage.owner, &status, WUNTRACED), stage.owner);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(kill(stage.owner, SIGCONT), 0);
	assert_int_equal(receive_number(&stage), 1);
	assert_int_equal(receive_number(&stage), 'T');
	assert_in_range(receive_number(&stage), SILENCE_MS, UINT32_MAX);
	/*
	 * Three seconds of heartbeats: the guard does not touch the new session, unless the owner
	 * got no CPU for as long as its time limit. Then the owner stops again.
	 */
	int fd = accept_within(&stage, PATIENCE_MS);
	assert_true(fd >= 0);
	uint32_t rounds = receive_number(&stage);
	if (receive_number(&stage) < SILENCE_MS) {
		assert_int_equal(rounds, 1);
		assert_int_equal(stop_within(&stage, 0), 0);
	}
	assert_int_equal(stop_within(&stage, PATIENCE_MS), 2000);
	/* The guard shuts down the stream of a session that the runtime does not end. */
	char byte;
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), -1);
	assert_int_equal(errno, EPIPE);
	close(fd);
	assert_int_equal(kill(stage.owner, SIGKILL), 0);
	wait_for_end(stage.owner);
	wait_for_end(guard);
	tear_down(&stage);
}

/* Returns whether the guard closes a stream within a time. */
static bool is_shut_within(int fd, int ms)
{
	struct pollfd stream = { .fd = fd, .events = POLLRDHUP };

	return poll(&stream, 1, ms) > 0;
}

static void stops_itself(struct stage *stage)
{
	uint32_t keys[SESSIONS];

	(void)open_sessions(stage, true, keys);
	raise(SIGSTOP);
}

/*
 * The guard itself is stopped during a round, for longer than the time limit of the runtimes.
 * Afterwards they still have the rest of their time. If this process got no CPU and stopped the
 * guard too late, the test tries again.
 */
static void test_pause_of_the_guard(void **state)
{
	bool shut = true;

	(void)state;
	for (unsigned attempt = 0; shut && attempt < 5; attempt++) {
		struct stage stage;
		pid_t guard = start_owner(&stage, stops_itself);
		assert_true(stop_within(&stage, 60000) > 1000);
		assert_int_equal(kill(guard, SIGSTOP), 0);
		usleep(2500000);
		assert_int_equal(kill(guard, SIGCONT), 0);
		shut = is_shut_within(stage.stream[0], 300);
		for (unsigned i = 0; i < SESSIONS; i++)
			assert_true(is_shut_within(stage.stream[i], 60000));
		assert_int_equal(kill(stage.owner, SIGKILL), 0);
		wait_for_end(stage.owner);
		wait_for_end(guard);
		tear_down(&stage);
	}
	assert_false(shut);
}

static void hangs(struct stage *stage)
{
	uint32_t keys[SESSIONS];

	(void)open_sessions(stage, true, keys);
	wait_for_word(stage);
}

/*
 * The guard of a killed owner acts without waiting for the silence limit. One success in several
 * tries is enough, because the machine may be busy.
 */
static void test_killed(void **state)
{
	bool quick = false;

	(void)state;
	for (unsigned tries = 0; tries < 20 && !quick; tries++) {
		struct stage stage;
		pid_t guard = start_owner(&stage, hangs);
		for (unsigned i = 0; i < SESSIONS; i++)
			fill(stage.stream[i]);
		assert_int_equal(kill(stage.owner, SIGKILL), 0);
		quick = expect_stops(&stage) < stage.beat_ns + SILENCE_MS * MS;
		wait_for_end(stage.owner);
		wait_for_end(guard);
		tear_down(&stage);
	}
	assert_true(quick);
}

static void test_hanging(void **state)
{
	struct stage stage;
	pid_t guard = start_owner(&stage, hangs);

	(void)state;
	/* The signals of a terminal and SIGTERM do not end the guard. */
	for (const int *signal = (const int[]){ SIGINT, SIGHUP, SIGTSTP, SIGTERM, SIGQUIT, 0 };
		*signal; signal++)
		assert_int_equal(kill(guard, *signal), 0);
	assert_int_not_equal(getsid(guard), getsid(0));
	assert_true(expect_stops(&stage) >= stage.beat_ns + SILENCE_MS * MS);
	say(stage.words[1], 0);
	wait_for_end(stage.owner);
	wait_for_end(guard);
	tear_down(&stage);
}

static void has_no_ids(struct stage *stage)
{
	uint32_t keys[SESSIONS];

	(void)open_sessions(stage, false, keys);
	wait_for_word(stage);
}

/*
 * The owner is killed between request and answer: the guard takes the id from the answer that the
 * owner has not read.
 */
static void test_unread_answer(void **state)
{
	uint8_t reply[28] = "DOTNET_IPC_V1";
	uint64_t id = 1002;
	struct stage stage;
	pid_t guard = start_owner(&stage, has_no_ids);

	(void)state;
	reply[14] = 28;
	reply[16] = 0xff;
	memcpy(reply + 20, &id, 8);
	assert_int_equal(send(stage.stream[1], reply, 20, 0), 20);
	assert_int_equal(send(stage.stream[2], "Nettrace and so on: no answer at all", 36, 0), 36);
	assert_int_equal(kill(stage.owner, SIGKILL), 0);
	usleep(100000);
	assert_int_equal(send(stage.stream[1], reply + 20, 8, 0), 8);
	assert_int_equal(stop_within(&stage, PATIENCE_MS), 1002);
	/*
	 * The guard knows no id of the others, so it shuts down their streams after its time limit.
	 */
	for (unsigned i = 0; i < SESSIONS; i++) {
		struct pollfd fd = { .fd = stage.stream[i], .events = POLLIN };
		assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
		assert_true(fd.revents & POLLHUP);
	}
	assert_int_equal(stop_within(&stage, 100), 0);
	wait_for_end(stage.owner);
	wait_for_end(guard);
	tear_down(&stage);
}

static unsigned count_descriptors(pid_t pid)
{
	char path[64];
	unsigned count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	DIR *dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static void wait_for_descriptors(pid_t pid, unsigned count)
{
	for (unsigned i = 0; i < PATIENCE_MS / 10 && count_descriptors(pid) != count; i++)
		usleep(10000);
	assert_int_equal(count_descriptors(pid), count);
}

static void loses_its_guard(struct stage *stage)
{
	uint32_t keys[SESSIONS];
	struct guard *guard = open_sessions(stage, true, keys);

	for (unsigned i = 0; i < 20; i++) {
		pid_t old = (pid_t)guard_pid(guard);
		wait_for_word(stage);
		for (unsigned wait = 0; (pid_t)guard_pid(guard) == old && wait < PATIENCE_MS / 20;
			wait++) {
			guard_beat(guard, clock_monotonic_ns());
			usleep(20000);
		}
		say(stage->words[0], guard_pid(guard));
		say(stage->words[0], guard_problem(guard) != NULL);
		if (guard_problem(guard))
			break;
	}
	wait_for_word(stage);
}

/*
 * A guard that is killed is replaced, with all open sessions. After five replacements it is not
 * replaced again, and guard_problem() reports it.
 */
static void test_guard_killed(void **state)
{
	struct stage stage;
	pid_t guard = start_owner(&stage, loses_its_guard);
	unsigned replaced = 0;

	(void)state;
	/*
	 * The guard has the channel, the owner and the sessions, and no other descriptor of the
	 * owner.
	 */
	wait_for_descriptors(guard, SESSIONS + 2);
	for (;;) {
		assert_int_equal(kill(guard, SIGKILL), 0);
		usleep(50000);
		say(stage.words[1], 0);
		pid_t next = (pid_t)receive_number(&stage);
		bool problem = receive_number(&stage);
		if (problem) {
			assert_int_equal(next, 0);
			break;
		}
		assert_int_not_equal(next, guard);
		assert_int_equal(kill(guard, 0), -1); /* never two guards at a time */
		guard = next;
		if (++replaced == 2) {
			wait_for_descriptors(guard, SESSIONS + 2);
		}
	}
	assert_int_equal(replaced, 5);
	assert_int_equal(kill(stage.owner, SIGKILL), 0);
	wait_for_end(stage.owner);
	tear_down(&stage);

	/* The second guard knows the sessions of the first. */
	guard = start_owner(&stage, loses_its_guard);
	assert_int_equal(kill(guard, SIGKILL), 0);
	usleep(50000);
	say(stage.words[1], 0);
	guard = (pid_t)receive_number(&stage);
	assert_int_equal(receive_number(&stage), 0);
	assert_int_equal(kill(stage.owner, SIGKILL), 0);
	(void)expect_stops(&stage);
	wait_for_end(stage.owner);
	wait_for_end(guard);
	tear_down(&stage);
}

static void ends_well(struct stage *stage)
{
	uint32_t keys[SESSIONS];
	struct guard *guard = open_sessions(stage, true, keys);

	guard_remove(guard, keys[1]);
	guard_session(guard, keys[0], 0); /* it has been asked to stop already */
	guard_remove(guard, 0);
	guard_session(guard, 0, 5);
	wait_for_word(stage);
	guard_free(guard);
}

static void test_left_open(void **state)
{
	struct stage stage;
	pid_t guard = start_owner(&stage, ends_well);

	(void)state;
	wait_for_descriptors(guard, SESSIONS - 1 + 2);
	say(stage.words[1], 0);
	assert_int_equal(stop_within(&stage, PATIENCE_MS), 1003);
	assert_int_equal(stop_within(&stage, 200), 0);
	wait_for_end(stage.owner);
	for (unsigned i = 0; i < SESSIONS; i++) {
		close(stage.stream[i]);
		stage.stream[i] = -1;
	}
	wait_for_end(guard);
	tear_down(&stage);
}

static void test_no_sessions(void **state)
{
	struct dotnet_target target = { .pid = 1 };

	(void)state;
	guard_beat(NULL, clock_monotonic_ns());
	assert_int_equal(guard_add(NULL, 0, &target), 0);
	guard_session(NULL, 0, 1);
	guard_remove(NULL, 0);
	assert_int_equal(guard_rounds(NULL), 0);
	guard_free(NULL);
	/*
	 * A guard without sessions ends without a time limit. One try of several is enough, because
	 * the machine may be busy.
	 */
	bool quick = false;
	for (unsigned tries = 0; tries < 50 && !quick; tries++) {
		struct guard *guard;
		assert_int_equal(guard_start(&guard, NULL), 0);
		pid_t pid = (pid_t)guard_pid(guard);
		uint64_t begin = clock_monotonic_ns();
		guard_free(guard);
		quick = clock_monotonic_ns() - begin < 150 * MS;
		assert_int_equal(kill(pid, 0), -1);
	}
	assert_true(quick);
}

/*
 * Sessions that are opened while the guard gets no CPU are guarded later. A guard that was stopped
 * is continued.
 */
static void test_burst(void **state)
{
	enum { MANY = 100 };
	struct dotnet_target target = { .pid = (uint32_t)getpid() };
	struct guard *guard;
	uint32_t keys[MANY];
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(guard_start(&guard, NULL), 0);
	pid_t pid = (pid_t)guard_pid(guard);
	usleep(100000);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	for (unsigned i = 0; i < MANY; i++) {
		keys[i] = guard_add(guard, pair[0], &target);
		assert_int_not_equal(keys[i], 0);
	}
	for (unsigned i = 0;
		i < PATIENCE_MS / 100 && (i < 10 || count_descriptors(pid) != MANY + 2); i++) {
		guard_beat(guard, clock_monotonic_ns());
		usleep(100000);
		assert_int_equal(guard_pid(guard), pid);
	}
	assert_int_equal(count_descriptors(pid), MANY + 2);
	for (unsigned i = 0; i < MANY; i++)
		guard_remove(guard, keys[i]);
	wait_for_descriptors(pid, 2);
	guard_free(guard);
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_sessions),
		cmocka_unit_test(test_pause_of_the_guard),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_hanging),
		cmocka_unit_test(test_unread_answer),
		cmocka_unit_test(test_guard_killed),
		cmocka_unit_test(test_left_open),
		cmocka_unit_test(test_burst),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
