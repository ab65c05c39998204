/*
 * See guard.h.
 *
 * Two processes share one page: the owner counts beats in it, the guard counts rounds. Connections
 * reach the guard over a socket pair, with a message for each change. The owner keeps the same
 * list, so that a guard started later finds all of it in the memory it was forked with.
 *
 * The guard does not compare clocks. It counts ticks without a beat of the owner, and of each wait
 * for the runtimes no more than its timeout. So a pause of the whole machine (a paused guest) or of
 * the guard (stopped, frozen, no CPU) is neither silence of the owner nor time in which a runtime
 * could have ended its sessions.
 *
 * Invariants:
 * - `rounds` grows before the guard takes the first byte from a stream, so an owner that compares
 *   it after each read never takes a stream with a gap for a complete one;
 * - a connection that is doomed (a round has begun for it) belongs to the guard alone: later
 *   messages of the owner about it are ignored;
 * - a session that has ended is never stopped: its id, an address, may belong to another session by
 *   then.
 */
#include "dotnet/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "base/vec.h"
#include "dotnet/guard_message.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "machine/descriptors.h"
#include "machine/rights.h"

#define NS_PER_MS    UINT64_C(1000000)
#define TICK_MS      GUARD_TICK_MS
#define SILENT_TICKS GUARD_SILENT_TICKS
#define BUSY_TICKS   GUARD_BUSY_TICKS
#define LOOK_NS      UINT64_C(250000000) /* between two checks whether the guard runs */
/* for the runtimes to end their sessions; then the connections are shut down */
#define END_NS UINT64_C(2000000000)
/* for the guard to read messages until the next one fits: hundreds may wait */
#define ROOM_MS      250
#define TURN_MS      20  /* between two attempts to send StopTracing */
#define LEAVE_MS     200 /* for the guard to exit */
#define RESTARTS_MAX 5u
/* a tick that took longer includes a pause of the guard itself */
#define LATE_MS    (2 * TICK_MS)
#define READ_SIZE  (64u << 10)
#define READ_MAX   (1u << 20) /* of one stream in one turn */
#define REPLY_SIZE (IPC_HEADER_SIZE + 8u)

struct page {
	uint64_t beats;  /* written by the owner */
	uint32_t rounds; /* this and the fields below are written by the guard */
	uint32_t state;
	uint64_t seen_ns;
};

struct guarded {
	uint32_t key;
	int fd;
	uint64_t session_id; /* 0: not known, or StopTracing must not be sent any more */
	uint64_t start_ticks;
	uint32_t pid;
	uint32_t inner_pid;
	char *tmpdir;
	/* the guard's alone */
	bool doomed;
	bool asked; /* the stop is out */
	uint8_t reply[REPLY_SIZE];
	uint8_t reply_len;
};

struct guard {
	VEC(struct guarded) list;
	struct page *page;
	int channel;
	pid_t pid; /* 0: none */
	uint64_t looked_ns;
	uint32_t last_key;
	uint32_t starts;
	const char *problem;
	/* the guard's alone */
	struct dotnet_target owner;
	struct poll_set set;
	struct guard_message message; /* that is being received */
	size_t message_got;           /* bytes of it so far */
	int message_fd;               /* the descriptor that came with it; -1 none */
};

static struct guarded *find(struct guard *guard, uint32_t key)
{
	for (uint32_t i = guard->list.count; i-- > 0;)
		if (guard->list.items[i].key == key)
			return &guard->list.items[i];
	return NULL;
}

/* Removes it from the list; the descriptor stays open. */
static void drop(struct guard *guard, struct guarded *item)
{
	free(item->tmpdir);
	*item = guard->list.items[--guard->list.count];
}

/*
 * --- the guard's own process
 * -----------------------------------------------------------------------------------
 */

static void let_go(struct guard *guard, struct guarded *item)
{
	(void)close(item->fd); /* a failure of close() has no consequence here */
	drop(guard, item);
}

static void take_add(struct guard *guard, const struct guard_message *message, int fd)
{
	struct guarded *item = find(guard, message->key) ? NULL : vec_push(&guard->list);

	if (!item) {
		(void)close(fd); /* no memory: then it is not guarded */
		return;
	}
	*item = (struct guarded){
		.key = message->key,
		.fd = fd,
		.start_ticks = message->start_ticks,
		.pid = message->pid,
		.inner_pid = message->inner_pid,
		.tmpdir = strdup(message->tmpdir),
	};
	/* without it no StopTracing can be sent, but the connection can be shut down */
	if (!item->tmpdir)
		item->pid = 0;
}

/* Reads one message. 1; 0 when there is none; -EPIPE at the end or if it is malformed. */
static int take_message(struct guard *guard)
{
	struct guard_message *message = &guard->message;
	size_t needed;
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;

	/* A stream socket: the size is read first, though a message mostly arrives whole. */
	for (;;) {
		int form = guard_message_needed(message, guard->message_got, &needed);
		if (form < 0)
			return -EPIPE;
		if (!needed)
			break;
		struct iovec part = { .iov_base = (char *)message + guard->message_got,
			.iov_len = needed };
		struct msghdr head = { .msg_iov = &part,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control) };
		ssize_t n = recvmsg(guard->channel, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return -EPIPE;
		const struct cmsghdr *with = CMSG_FIRSTHDR(&head);
		if (with && with->cmsg_level == SOL_SOCKET && with->cmsg_type == SCM_RIGHTS) {
			closep(&guard->message_fd); /* a message brings one descriptor at most */
			memcpy(&guard->message_fd, CMSG_DATA(with), sizeof(guard->message_fd));
		}
		guard->message_got += (size_t)n;
	}
	int fd = TAKE_FD(guard->message_fd);
	struct guarded *item = find(guard, message->key);

	guard->message_got = 0;
	if (message->order == GUARD_ORDER_ADD && fd >= 0) {
		take_add(guard, message, fd);
		return 1;
	}
	closep(&fd);
	if (message->order == GUARD_ORDER_SESSION && item && !item->asked)
		item->session_id = message->session_id;
	else if (message->order == GUARD_ORDER_REMOVE && item && !item->doomed)
		let_go(guard, item);
	return 1;
}

/* The id of a session may still be unread: it is in the first bytes of the reply. */
static void look_for_id(struct guarded *item, const uint8_t *data, size_t size)
{
	if (item->reply_len == REPLY_SIZE)
		return;
	size_t take = REPLY_SIZE - item->reply_len < size ? REPLY_SIZE - item->reply_len : size;

	memcpy(item->reply + item->reply_len, data, take);
	item->reply_len = (uint8_t)(item->reply_len + take);
	if (item->reply_len < REPLY_SIZE || item->session_id || item->asked)
		return;
	size_t payload_size;
	uint64_t id;
	bool ok;

	if (ipc_decode_header(item->reply, &payload_size, &ok, NULL) == 0 && ok &&
		payload_size == 8 &&
		ipc_decode_session(item->reply + IPC_HEADER_SIZE, 8, &id, NULL) == 0)
		item->session_id = id;
}

/* Reads all bytes that are available. True when the stream has ended. */
static bool drain(struct guarded *item)
{
	static uint8_t buffer[READ_SIZE];

	for (size_t total = 0; total < READ_MAX;) {
		ssize_t n = recv(item->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
		if (n < 0)
			return errno != EAGAIN && errno != EINTR;
		if (n == 0)
			return true;
		look_for_id(item, buffer, (size_t)n);
		total += (size_t)n;
	}
	return false;
}

/* Sends StopTracing, its 28 bytes whole or not. Without a connection a later turn tries. */
static void ask_to_stop(struct guarded *item)
{
	static struct dotnet_target target;
	const struct ipc_request request = { .command = IPC_STOP_TRACING,
		.session_id = item->session_id };
	cleanup(bytes_done) struct bytes out = { 0 };

	target.pid = item->pid;
	target.inner_pid = item->inner_pid;
	target.start_ticks = item->start_ticks;
	/* was as long before */
	text_set(target.tmpdir, "%s", item->tmpdir);
	int fd = dotnet_port_connect(&target, NULL);

	if (fd == -EAGAIN)
		return;
	if (fd >= 0 && ipc_encode(&request, &out, NULL) == 0)
		/* after a failure the connection is shut down at the end of the round */
		(void)send(fd, out.data, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	item->asked = true;
	closep(&fd);
}

/* Waits until bytes arrive on a doomed stream or from the owner. */
static void wait_for_streams(struct guard *guard, bool owner_lives, int wait_ms)
{
	poll_set_begin(&guard->set, clock_monotonic_ns() + (uint64_t)wait_ms * NS_PER_MS);
	if (owner_lives)
		(void)poll_set_add(&guard->set, guard->channel, POLLIN);
	for (uint32_t i = 0; i < guard->list.count; i++)
		if (guard->list.items[i].doomed)
			(void)poll_set_add(&guard->set, guard->list.items[i].fd, POLLIN);
	(void)poll_set_wait(&guard->set);
	for (uint32_t i = 0; i < guard->set.fds.count; i++)
		if (poll_set_revents(&guard->set, i) & POLLNVAL)
			/* waits, lest an invalid descriptor use a whole CPU */
			(void)poll_one(-1, 0, TURN_MS);
}

/* The part of a turn that counts: time beyond the timeout may be a pause of the guard. */
static uint64_t counted_ns(uint64_t took_ns, int wait_ms)
{
	uint64_t timeout_ns = (uint64_t)wait_ms * NS_PER_MS;

	return took_ns < timeout_ns ? took_ns : timeout_ns;
}

/* Ends all listed sessions by StopTracing, then shuts down their connections. */
static void end_sessions(struct guard *guard, bool owner_lives)
{
	uint64_t waited_ns = 0;
	bool left = false;

	__atomic_store_n(&guard->page->state, (uint32_t)dotnet_target_state(&guard->owner),
		__ATOMIC_SEQ_CST);
	__atomic_add_fetch(&guard->page->rounds, 1, __ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < guard->list.count; i++)
		left = guard->list.items[i].doomed = true;
	while (left && waited_ns < END_NS) {
		uint64_t begin_ns = clock_monotonic_ns();
		int wait_ms = 5 * TURN_MS;
		left = false;
		while (owner_lives && take_message(guard) > 0)
			;
		for (uint32_t i = guard->list.count; i-- > 0;) {
			struct guarded *item = &guard->list.items[i];
			if (!item->doomed)
				continue;
			if (drain(item)) {
				let_go(guard, item);
				continue;
			}
			if (item->session_id && item->pid && !item->asked)
				ask_to_stop(item);
			if (item->session_id && !item->asked)
				wait_ms = TURN_MS;
			left = true;
		}
		if (left)
			wait_for_streams(guard, owner_lives, wait_ms);
		waited_ns += counted_ns(clock_monotonic_ns() - begin_ns, wait_ms);
	}
	for (uint32_t i = guard->list.count; i-- > 0;) {
		struct guarded *item = &guard->list.items[i];
		if (!item->doomed)
			continue;
		/* unlike close(), ends it for the owner and the runtime too */
		(void)shutdown(item->fd, SHUT_RDWR);
		let_go(guard, item);
	}
}

/* All but the channel, the owner's pidfd and the guarded connections. */
static void close_others(struct guard *guard, int owner_fd)
{
	VEC(int) kept = { 0 };
	bool all = vec_add(&kept, guard->channel);

	if (owner_fd >= 0)
		all &= vec_add(&kept, owner_fd);
	for (uint32_t i = 0; i < guard->list.count; i++)
		all &= vec_add(&kept, guard->list.items[i].fd);
	if (!all)
		/* without this list it would hold foreign descriptors: better no guard */
		_exit(1);
	descriptors_close_but(kept.items, kept.count);
	vec_done(&kept);
}

static void be_by_itself(void)
{
	static const int ignored[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU,
		SIGPIPE, SIGUSR1, SIGUSR2 };
	sigset_t none;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		(void)signal(ignored[i], SIG_IGN); /* valid arguments: cannot fail */
	(void)signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL); /* as above */
	/* a forked child leads no group: cannot fail */
	(void)setsid();
	(void)prctl(PR_SET_NAME, "spoor-guard"); /* the name that ps and top show */
	/* shutting a connection down needs no rights */
	(void)rights_reduce(0);
	if (chdir("/") < 0)
		/* then a folder is held a little longer */
		return;
}

uint64_t guard_cpu_ns(uint32_t pid)
{
	char path[64];
	char text[128];

	text_set(path, "/proc/%u/schedstat", pid);
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);
}

/* `owner_fd` becomes readable when the owner exits; -1 where the kernel has no pidfd. */
static _Noreturn void stand_guard(struct guard *guard, int owner_fd)
{
	pid_t owner = (pid_t)guard->owner.pid;
	uint64_t beats = 0;
	uint64_t cpu_ns = 0;
	unsigned silent = 0; /* ticks without a beat */
	unsigned still = 0;  /* ticks without a beat and without CPU time */

	be_by_itself();
	close_others(guard, owner_fd);
	guard->message_fd = -1;
	for (;;) {
		uint64_t begin_ns = clock_monotonic_ns();
		poll_set_begin(&guard->set,
			guard->list.count ? begin_ns + TICK_MS * NS_PER_MS : UINT64_MAX);
		(void)poll_set_add(&guard->set, guard->channel, POLLIN);
		uint32_t owner_exit = poll_set_add(&guard->set, owner_fd, POLLIN);
		bool late = poll_set_wait(&guard->set) - begin_ns > LATE_MS * NS_PER_MS;
		int result = 0;

		while ((result = take_message(guard)) > 0)
			silent = still = 0;
		if (result < 0 || poll_set_revents(&guard->set, owner_exit) || getppid() != owner) {
			end_sessions(guard, false);
			_exit(0);
		}
		uint64_t seen = __atomic_load_n(&guard->page->beats, __ATOMIC_SEQ_CST);

		if (seen != beats) {
			beats = seen;
			silent = still = 0;
			__atomic_store_n(&guard->page->seen_ns, clock_monotonic_ns(),
				__ATOMIC_SEQ_CST);
		} else if (!guard->set.ready && !late) {
			uint64_t before_ns = cpu_ns;
			cpu_ns = guard_cpu_ns(guard->owner.pid);
			silent++;
			still = cpu_ns == before_ns ? still + 1 : 0;
		}
		if ((still >= SILENT_TICKS || silent >= BUSY_TICKS) && guard->list.count) {
			end_sessions(guard, true);
			silent = still = 0;
		}
	}
}

/*
 * --- the owner's side
 * ------------------------------------------------------------------------------------------
 */

static int spawn(struct guard *guard, struct diag *diag)
{
	int pair[2];
	pid_t parent = getpid();

	/* A stream, because the kernel lets only ten packets wait (net.unix.max_dgram_qlen). */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return diag_set(diag, -errno, "cannot guard .NET sessions: %m");
	int owner_fd = (int)syscall(SYS_pidfd_open, parent, 0);

	guard->pid = fork();
	if (guard->pid == 0) {
		guard->channel = pair[1]; /* ours is closed with the others */
		stand_guard(guard, owner_fd);
	}
	int error = -errno;

	closep(&owner_fd);
	closep(&pair[1]);
	if (guard->pid < 0) {
		guard->pid = 0;
		closep(&pair[0]);
		return diag_set(diag, error, "cannot guard .NET sessions: %m");
	}
	guard->channel = pair[0];
	guard->starts++;
	return 0;
}

int guard_start(struct guard **ret_guard, struct diag *diag)
{
	struct guard *guard = calloc(1, sizeof(*guard));

	if (!guard)
		return diag_set(diag, -ENOMEM, "cannot guard .NET sessions: %m");
	guard->channel = -1;
	guard->page = mmap(NULL, sizeof(*guard->page), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (guard->page == MAP_FAILED) {
		int error = -errno;
		free(guard);
		return diag_set(diag, error, "cannot guard .NET sessions: %m");
	}
	guard->page->seen_ns = clock_monotonic_ns();
	int result = dotnet_target_read((uint32_t)getpid(), &guard->owner, diag);

	if (result == 0)
		result = spawn(guard, diag);
	if (result < 0) {
		guard_free(guard);
		return result;
	}
	*ret_guard = guard;
	return 0;
}

/* The guard has ended, or does not read its messages: forks another one, with the present list. */
static void replace(struct guard *guard)
{
	closep(&guard->channel);
	guard->channel = -1;
	guard->pid = 0;
	if (guard->starts > RESTARTS_MAX)
		guard->problem = "its guard was ended time and again";
	else if (spawn(guard, NULL) < 0)
		guard->problem = "its guard was ended and cannot be started again";
}

static void kill_guard(struct guard *guard)
{
	/* our child, not waited for yet, so its pid was not reused */
	(void)kill(guard->pid, SIGKILL);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void guard_beat(struct guard *guard, uint64_t now)
{
	int status;

	if (!guard)
		return;
	__atomic_add_fetch(&guard->page->beats, 1, __ATOMIC_SEQ_CST);
	if (!guard->pid || now < guard->looked_ns + LOOK_NS)
		return;
	guard->looked_ns = now;
	pid_t result = waitpid(guard->pid, &status, WNOHANG | WUNTRACED);

	if (result == 0)
		return;
	if (result > 0 && WIFSTOPPED(status))
		/* this process runs, so the guard must not stay stopped */
		(void)kill(guard->pid, SIGCONT);
	else
		replace(guard);
}

static void send_message(struct guard *guard, struct guard_message *message, size_t size, int fd)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec part = { .iov_base = message, .iov_len = size };
	struct msghdr head = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (guard->channel < 0)
		return;
	message->size = (uint32_t)size;
	if (fd >= 0) {
		head.msg_control = &control;
		head.msg_controllen = sizeof(control);
		struct cmsghdr *with = CMSG_FIRSTHDR(&head);
		with->cmsg_level = SOL_SOCKET;
		with->cmsg_type = SCM_RIGHTS;
		with->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(with), &fd, sizeof(fd));
	}
	for (unsigned tries = 0;
		(n = sendmsg(guard->channel, &head, MSG_DONTWAIT | MSG_NOSIGNAL)) < 0 && tries < 2;
		tries++) {
		if (errno == EAGAIN)
			(void)poll_one(guard->channel, POLLOUT, ROOM_MS);
	}
	if (n == (ssize_t)size)
		return;
	/* The guard exited or is too slow to protect: forks another with the present list. */
	kill_guard(guard);
	replace(guard);
}

uint32_t guard_add(struct guard *guard, int fd, const struct dotnet_target *target)
{
	struct guarded *item = guard ? vec_push(&guard->list) : NULL;
	struct guard_message message = { .order = GUARD_ORDER_ADD };
	size_t length = strlen(target->tmpdir);

	if (!item)
		return 0;
	do
		guard->last_key++;
	while (!guard->last_key);
	*item = (struct guarded){
		.key = guard->last_key,
		.fd = fd,
		.start_ticks = target->start_ticks,
		.pid = target->pid,
		.inner_pid = target->inner_pid,
		.tmpdir = strdup(target->tmpdir),
	};
	if (!item->tmpdir) {
		guard->list.count--;
		return 0;
	}
	message.key = item->key;
	message.pid = item->pid;
	message.inner_pid = item->inner_pid;
	message.start_ticks = item->start_ticks;
	memcpy(message.tmpdir, target->tmpdir, length + 1);
	uint32_t key = item->key;

	send_message(guard, &message, GUARD_MESSAGE_MIN + length + 1, fd);
	return key;
}

void guard_session(struct guard *guard, uint32_t key, uint64_t session_id)
{
	struct guarded *item = guard && key ? find(guard, key) : NULL;
	struct guard_message message = {
		.order = GUARD_ORDER_SESSION, .key = key, .session_id = session_id
	};

	if (!item)
		return;
	item->session_id = session_id;
	item->asked = !session_id;
	send_message(guard, &message, GUARD_MESSAGE_MIN, -1);
}

void guard_remove(struct guard *guard, uint32_t key)
{
	struct guarded *item = guard && key ? find(guard, key) : NULL;
	struct guard_message message = { .order = GUARD_ORDER_REMOVE, .key = key };

	if (!item)
		return;
	drop(guard, item);
	send_message(guard, &message, GUARD_MESSAGE_MIN, -1);
}

uint32_t guard_rounds(const struct guard *guard)
{
	return guard ? __atomic_load_n(&guard->page->rounds, __ATOMIC_SEQ_CST) : 0;
}

void guard_last_round(const struct guard *guard, uint64_t *ret_seen_ns, char *ret_state)
{
	*ret_seen_ns = __atomic_load_n(&guard->page->seen_ns, __ATOMIC_SEQ_CST);
	*ret_state = (char)__atomic_load_n(&guard->page->state, __ATOMIC_SEQ_CST);
}

const char *guard_problem(const struct guard *guard)
{
	return guard->problem;
}

uint32_t guard_pid(const struct guard *guard)
{
	return (uint32_t)guard->pid;
}

void guard_free(struct guard *guard)
{
	if (!guard)
		return;
	if (guard->pid) {
		/* The guard exits when the channel closes, later if sessions were left open. */
		(void)shutdown(guard->channel, SHUT_WR);
		/* A guard that closed its end exits soon; if not, init reaps it. */
		bool leaves = !guard->list.count && poll_one(guard->channel, POLLIN, LEAVE_MS);
		(void)waitpid(guard->pid, NULL, leaves ? 0 : WNOHANG);
	}
	closep(&guard->channel);
	for (uint32_t i = 0; i < guard->list.count; i++)
		free(guard->list.items[i].tmpdir);
	vec_done(&guard->list);
	poll_set_done(&guard->set);
	(void)munmap(guard->page, sizeof(*guard->page)); /* mapped by us: cannot fail */
	free(guard);
}
