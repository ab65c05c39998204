/* See reverse.h. */
#include "dotnet/reverse.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "base/vec.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/path_endpoint.h"
#include "dotnet/peer_state.h"
#include "machine/descriptors.h"
#include "machine/rights.h"

#define BACKLOG   64
#define ANSWER_NS UINT64_C(1000000000)
/* without a connection for so long, a runtime whose process we cannot see counts as ended */
#define ABSENT_NS UINT64_C(5000000000)
/* cookies of runtimes that were resumed because the peer table was full */
#define UNPLACED_MAX 1024u

/* At the limit, how many connections are closed, and how often; their runtimes reconnect. */
#define CLOSE_COUNT 64u
#define CLOSE_NS    UINT64_C(250000000)

#define HELPER_TURN_MS 500
/* between two searches for processes that may connect, while there are some */
#define HELPER_LOOK_NS UINT64_C(5000000000)
/* in succession without a result: during its exec a process has no environment */
#define HELPER_LOOKS    2u
#define ENVIRONMENT_MAX (128u << 10) /* of a process; the variable of a longer one may be missed */

struct reverse_connection {
	int fd;
	uint32_t pid;
	uint32_t peer; /* index plus 1, once its advertisement is complete; 0 before */
	/* its advertisement is complete; the peer table was full, so it was resumed */
	bool unplaced;
	size_t got;
	uint8_t advertise[REVERSE_ADVERTISE_SIZE];
};

struct peer {
	struct reverse *reverse;
	uint32_t index;
	enum peer_state state;
	uint64_t left_ns; /* its last connection was closed or taken */
	struct reverse_peer facts;
};

/* Memory that the recorder and its helper share. */
struct shared_page {
	uint64_t beats; /* written by the recorder */
	/* runtimes that the helper resumed and the recorder does not know */
	uint64_t missed;
	/* written by the recorder: the cookies of its peers */
	uint8_t known[REVERSE_PEERS_MAX][16];
};

struct reverse {
	int fd;
	int error; /* of the last accept4(), when no descriptor was free; 0 none */
	/* of the pipe to the helper, for HELPER_WORK or HELPER_END; -1 no helper */
	int helper_fd;
	pid_t helper;
	struct shared_page *page; /* NULL: no helper */
	bool counts_missed;       /* in the helper: the recorder is stopped or hangs */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	VEC(struct reverse_connection) waiting;
	/* pointers, because each struct dotnet_endpoint has one to its peer */
	VEC(struct peer *) peers;
	uint32_t seen;      /* runtimes so far */
	uint32_t not_given; /* peers in PEER_NEW */
	uint64_t closed_ns; /* when connections were last closed to make room */
	uint64_t unplaced;  /* runtimes that were resumed because the peer table was full */
	uint8_t unplaced_cookies[UNPLACED_MAX][16]; /* of the last of them */
};

/* Removes the file of a socket that accepts no connection: bind() would fail. */
static void remove_stale(const struct sockaddr_un *address)
{
	struct stat st;
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (lstat(address->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) && fd >= 0 &&
		connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 &&
		errno == ECONNREFUSED)
		(void)unlink(address->sun_path); /* a failure shows in the bind() that follows */
}

static int listen_at(const char *path, struct reverse **ret_reverse, struct diag *diag)
{
	struct sockaddr_un address;
	int r = path_endpoint_address(path, &address, diag);

	if (r < 0)
		return r;
	remove_stale(&address);
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct reverse *reverse = fd < 0 ? NULL : calloc(1, sizeof(*reverse));

	if (!reverse)
		return diag_set(diag, fd < 0 ? -errno : -ENOMEM,
			"cannot make a diagnostics port: %m");
	/* With the mask at creation, other users can never connect. */
	mode_t mask = umask(0177);
	r = bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	(void)umask(mask); /* always succeeds */
	if (r == 0 && listen(fd, BACKLOG) < 0)
		r = -errno;
	if (r < 0) {
		free(reverse);
		return diag_set(diag, r, "cannot listen at '%s': %m", path);
	}
	reverse->fd = TAKE_FD(fd);
	reverse->helper_fd = -1;
	memcpy(reverse->path, address.sun_path, sizeof(reverse->path));
	*ret_reverse = reverse;
	return 0;
}

/* The user names the path, so it is opened with the user's own rights. */
int reverse_listen(const char *path, struct reverse **ret_reverse, struct diag *diag)
{
	uint64_t before = rights_lower();
	int result = listen_at(path, ret_reverse, diag);

	rights_restore(before);
	return result;
}

/* The process's state in /proc/PID/stat; '?' not known, 0 no such process. */
static char state_of_pid(uint32_t pid)
{
	char path[32];
	char text[512];

	if (!pid)
		return '?';
	text_set(path, "/proc/%u/stat", pid);
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	const char *at = strrchr(text, ')');

	return at && at[1] == ' ' ? at[2] : '?';
}

/* ---- connections that runtimes make ---- */

/* Removes a connection from the list and returns its descriptor, which the caller then owns. */
static int take_connection(struct reverse *reverse, uint32_t i)
{
	struct reverse_connection *connection = &reverse->waiting.items[i];
	int fd = connection->fd;

	if (connection->peer)
		reverse->peers.items[connection->peer - 1]->left_ns = clock_monotonic_ns();
	*connection = *vec_last(&reverse->waiting);
	reverse->waiting.count--;
	return fd;
}

static void drop(struct reverse *reverse, uint32_t i)
{
	close(take_connection(reverse, i));
}

/* Running runtimes keep a connection: at the limit some are closed to accept new ones. */
static void make_room(struct reverse *reverse)
{
	uint64_t now_ns = clock_monotonic_ns();
	uint32_t closed = 0;

	if (reverse->waiting.count < REVERSE_CONNECTIONS_MAX ||
		now_ns < reverse->closed_ns + CLOSE_NS)
		return;
	reverse->closed_ns = now_ns;
	for (uint32_t i = 0; i < reverse->waiting.count && closed < CLOSE_COUNT;) {
		const struct reverse_connection *connection = &reverse->waiting.items[i];
		const struct peer *peer =
			connection->peer ? reverse->peers.items[connection->peer - 1] : NULL;
		if (connection->unplaced || (peer && peer_was_resumed(peer->state))) {
			drop(reverse, i);
			closed++;
		} else {
			i++;
		}
	}
}

static void accept_all(struct reverse *reverse)
{
	make_room(reverse);
	while (reverse->waiting.count < REVERSE_CONNECTIONS_MAX) {
		struct ucred credentials = { 0 };
		socklen_t size = sizeof(credentials);
		int fd = accept4(reverse->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		reverse->error = fd < 0 && (errno == EMFILE || errno == ENFILE) ? -errno : 0;
		if (fd < 0)
			return;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
			credentials.pid = 0;
		struct reverse_connection *connection = vec_push(&reverse->waiting);
		if (!connection) {
			close(fd); /* the runtime connects again */
			return;
		}
		connection->fd = fd;
		connection->pid = credentials.pid > 0 ? (uint32_t)credentials.pid : 0;
	}
}

static uint32_t find_peer(const struct reverse *reverse, const uint8_t cookie[16])
{
	for (uint32_t i = 0; i < reverse->peers.count; i++)
		if (memcmp(reverse->peers.items[i]->facts.cookie, cookie, 16) == 0)
			return i + 1;
	return 0;
}

static bool is_connected(const struct reverse *reverse, const struct peer *peer)
{
	for (uint32_t i = 0; i < reverse->waiting.count; i++)
		if (reverse->waiting.items[i].peer == peer->index + 1)
			return true;
	return false;
}

/* A process that we cannot see has ended if its runtime does not reconnect. */
static bool has_gone(const struct reverse *reverse, const struct peer *peer)
{
	if (peer->facts.pid)
		return !state_of_pid(peer->facts.pid);
	return clock_monotonic_ns() >= peer->left_ns + ABSENT_NS && !is_connected(reverse, peer);
}

/* The place of a runtime whose process has ended; NULL: none is free. */
static struct peer *spare_peer(struct reverse *reverse)
{
	for (uint32_t i = 0; i < reverse->peers.count; i++) {
		struct peer *peer = reverse->peers.items[i];
		if (peer_was_forgotten(peer->state) && has_gone(reverse, peer))
			return peer;
	}
	return NULL;
}

static struct peer *new_peer(struct reverse *reverse)
{
	struct peer *peer = reverse->peers.count < REVERSE_PEERS_MAX ? calloc(1, sizeof(*peer))
								     : spare_peer(reverse);

	if (!peer || reverse->peers.count == REVERSE_PEERS_MAX)
		return peer;
	peer->index = reverse->peers.count;
	if (vec_add(&reverse->peers, peer))
		return peer;
	free(peer);
	return NULL;
}

/*
 * An advertisement, little-endian.
 *
 *   0   8   "ADVR_V1" and a NUL
 *   8   16  cookie
 *   24  8   pid, as it sees itself
 *   32  2   0
 */
bool reverse_parse_advertise(const uint8_t *data, size_t size, struct reverse_peer *ret_peer)
{
	struct cursor c = cursor_of(data, size);
	const uint8_t *magic = cursor_take(&c, 8);
	const uint8_t *cookie = cursor_take(&c, 16);
	uint64_t inner_pid = cursor_u64(&c);

	cursor_skip(&c, 2);
	if (c.short_read || memcmp(magic, "ADVR_V1", 8) != 0)
		return false;
	*ret_peer = (struct reverse_peer){ .inner_pid = inner_pid };
	memcpy(ret_peer->cookie, cookie, 16);
	return true;
}

/* Resumes a runtime without a place in the table. False: the connection takes no request. */
static bool resume_unplaced(struct reverse *reverse, struct reverse_connection *connection,
	const uint8_t cookie[16])
{
	const struct ipc_request request = { .command = IPC_RESUME_RUNTIME };
	cleanup(bytes_done) struct bytes message = { 0 };

	connection->unplaced = true;
	for (uint32_t i = 0; i < UNPLACED_MAX && i < reverse->unplaced; i++)
		if (memcmp(reverse->unplaced_cookies[i], cookie, 16) == 0)
			return true; /* the runtime has connected again */
	/* a few bytes into an empty socket buffer: sent in one piece */
	if (ipc_encode(&request, &message, NULL) < 0 ||
		send(connection->fd, message.data, message.len, MSG_NOSIGNAL | MSG_DONTWAIT) !=
			(ssize_t)message.len)
		return false;
	memcpy(reverse->unplaced_cookies[reverse->unplaced++ % UNPLACED_MAX], cookie, 16);
	return true;
}

/* False: the peer is no runtime, or the connection cannot be used. */
static bool take_advertise(struct reverse *reverse, struct reverse_connection *connection)
{
	struct reverse_peer facts;

	if (!reverse_parse_advertise(connection->advertise, REVERSE_ADVERTISE_SIZE, &facts))
		return false;
	facts.pid = connection->pid;
	connection->peer = find_peer(reverse, facts.cookie);
	if (connection->peer)
		return true;
	struct peer *peer = new_peer(reverse);

	if (!peer)
		return resume_unplaced(reverse, connection, facts.cookie);
	*peer = (struct peer){ .reverse = reverse, .index = peer->index, .facts = facts };
	connection->peer = peer->index + 1;
	if (reverse->helper_fd >= 0)
		memcpy(reverse->page->known[peer->index], facts.cookie, sizeof(facts.cookie));
	reverse->not_given++;
	reverse->seen++;
	return true;
}

void reverse_advance(struct reverse *reverse)
{
	if (reverse->helper_fd >= 0)
		__atomic_add_fetch(&reverse->page->beats, 1, __ATOMIC_SEQ_CST);
	accept_all(reverse);
	for (uint32_t i = 0; i < reverse->waiting.count;) {
		struct reverse_connection *connection = &reverse->waiting.items[i];
		uint8_t byte;
		/* A runtime that has advertised itself sends nothing more: this is the end. */
		bool known = connection->peer != 0 || connection->unplaced;
		ssize_t n = known ? recv(connection->fd, &byte, 1, MSG_PEEK)
				  : recv(connection->fd, connection->advertise + connection->got,
					    REVERSE_ADVERTISE_SIZE - connection->got, 0);
		if (n == 0 || (known && n > 0) || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			drop(reverse, i);
			continue;
		}
		if (!known && n > 0) {
			connection->got += (size_t)n;
			if (connection->got == REVERSE_ADVERTISE_SIZE &&
				!take_advertise(reverse, connection)) {
				drop(reverse, i);
				continue;
			}
		}
		i++;
	}
}

/* Not polled while accept() fails, which would end each wait; the next turn tries again. */
void reverse_await(const struct reverse *reverse, struct poll_set *set)
{
	if (!reverse->error && reverse->waiting.count < REVERSE_CONNECTIONS_MAX)
		(void)poll_set_add(set, reverse->fd, POLLIN);
	for (uint32_t i = 0; i < reverse->waiting.count; i++)
		(void)poll_set_add(set, reverse->waiting.items[i].fd, POLLIN);
}

/* The one place where the state of a peer changes. A place that is used again begins anew. */
static void take_event(struct peer *peer, enum peer_event event)
{
	peer->reverse->not_given -= peer->state == PEER_NEW;
	peer->state = peer_state_after(peer->state, event);
}

bool reverse_next(struct reverse *reverse, uint32_t *ret_peer)
{
	for (uint32_t i = 0; reverse->not_given && i < reverse->peers.count; i++) {
		struct peer *peer = reverse->peers.items[i];
		if (peer->state != PEER_NEW)
			continue;
		take_event(peer, PEER_EVENT_RETURN);
		*ret_peer = i;
		return true;
	}
	return false;
}

const struct reverse_peer *reverse_peer(const struct reverse *reverse, uint32_t peer)
{
	return &reverse->peers.items[peer]->facts;
}

int reverse_error(const struct reverse *reverse)
{
	return reverse->error;
}

uint64_t reverse_missed(const struct reverse *reverse)
{
	return reverse->page ? __atomic_load_n(&reverse->page->missed, __ATOMIC_SEQ_CST) : 0;
}

uint64_t reverse_unplaced(const struct reverse *reverse)
{
	return reverse->unplaced;
}

/* ---- the endpoint of one runtime ---- */

static char peer_state(void *context)
{
	const struct peer *peer = context;

	return state_of_pid(peer->facts.pid);
}

static int peer_connect(void *context, struct diag *diag)
{
	struct peer *peer = context;
	struct reverse *reverse = peer->reverse;

	reverse_advance(reverse);
	for (uint32_t i = 0; i < reverse->waiting.count; i++) {
		const struct reverse_connection *connection = &reverse->waiting.items[i];
		if (connection->peer != peer->index + 1)
			continue;
		return take_connection(reverse, i);
	}
	if (peer->facts.pid && !peer_state(peer))
		return diag_set(diag, -ESRCH, "the process has ended");
	return -EAGAIN; /* the runtime connects again once it has replied to the previous request */
}

struct dotnet_endpoint reverse_endpoint(struct reverse *reverse, uint32_t peer)
{
	return (struct dotnet_endpoint){
		.connect = peer_connect,
		.state = peer_state,
		.context = reverse->peers.items[peer],
	};
}

/* ---- the end ---- */

void reverse_resumed(struct reverse *reverse, uint32_t peer)
{
	take_event(reverse->peers.items[peer], PEER_EVENT_RESUME);
}

void reverse_forget(struct reverse *reverse, uint32_t peer)
{
	take_event(reverse->peers.items[peer], PEER_EVENT_FORGET);
}

/* A connection of a runtime that has not been resumed; -1 none. */
static int find_held(const struct reverse *reverse)
{
	for (uint32_t i = 0; i < reverse->waiting.count; i++) {
		uint32_t peer = reverse->waiting.items[i].peer;
		if (peer && !peer_was_resumed(reverse->peers.items[peer - 1]->state))
			return (int)peer - 1;
	}
	return -1;
}

static void count_missed(const struct reverse *reverse, const uint8_t cookie[16])
{
	if (!reverse->counts_missed)
		return;
	for (uint32_t i = 0; i < REVERSE_PEERS_MAX; i++)
		if (memcmp(reverse->page->known[i], cookie, 16) == 0)
			return;
	__atomic_add_fetch(&reverse->page->missed, 1, __ATOMIC_SEQ_CST);
}

static void release_held(struct reverse *reverse)
{
	const struct ipc_request request = { .command = IPC_RESUME_RUNTIME };

	reverse_advance(reverse);
	for (int peer = find_held(reverse); peer >= 0; peer = find_held(reverse)) {
		struct exchange exchange = { 0 };
		struct dotnet_endpoint endpoint = reverse_endpoint(reverse, (uint32_t)peer);
		uint64_t now_ns = clock_monotonic_ns();
		reverse_resumed(reverse, (uint32_t)peer);
		reverse_forget(reverse, (uint32_t)peer);
		count_missed(reverse, reverse->peers.items[peer]->facts.cookie);
		if (exchange_begin(&exchange, &endpoint, &request, now_ns, 0, NULL) == 0)
			(void)exchange_run(&exchange, 1, now_ns + ANSWER_NS,
				NULL); /* it is resumed, or its process has exited */
		exchange_done(&exchange);
		reverse_advance(reverse);
	}
}

void reverse_release(struct reverse *reverse, uint64_t until_ns, uint64_t quiet_ns)
{
	uint64_t last_ns = clock_monotonic_ns();
	uint32_t seen = reverse->seen;

	release_held(reverse);
	for (uint64_t now_ns = clock_monotonic_ns();
		now_ns < until_ns && now_ns < last_ns + quiet_ns; now_ns = clock_monotonic_ns()) {
		(void)poll_one(reverse->fd, POLLIN, 20);
		release_held(reverse);
		if (reverse->seen != seen)
			last_ns = clock_monotonic_ns();
		seen = reverse->seen;
	}
}

/* The process has the port in its environment, as far as this user may read it. */
static bool is_inherited(const struct reverse *reverse)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;
	bool found = false;

	while (!found && processes && (entry = readdir(processes))) {
		char path[sizeof("/proc//environ") + sizeof(entry->d_name)];
		char text[ENVIRONMENT_MAX];
		size_t len = 0;
		ssize_t n = 1;
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		text_set(path, "/proc/%s/environ", entry->d_name);
		cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
		while (fd >= 0 && n > 0 && len < sizeof(text)) {
			n = read(fd, text + len, sizeof(text) - len);
			len += n > 0 ? (size_t)n : 0;
		}
		found = len && memmem(text, len, reverse->path, strlen(reverse->path));
	}
	if (processes)
		closedir(processes);
	return found;
}

/* From the recorder to its helper. The pipe's end: the recorder was killed, or left. */
enum helper_word {
	HELPER_END,  /* no process needs the port any more */
	HELPER_WORK, /* the helper resumes runtimes from now on */
};

static bool write_word(const struct reverse *reverse, enum helper_word word)
{
	const char byte = (char)word;
	ssize_t n;

	do
		n = write(reverse->helper_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	return n == 1;
}

/* Whether the process has ended; `pidfd` -1: it had ended before. */
static bool has_ended(int pidfd)
{
	return pidfd < 0 || poll_one(pidfd, POLLIN, 0);
}

/* Lets go of the recorder's standard streams, whose readers wait, and of its folder. */
static void detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd); /* cannot fail for these */
	(void)!chdir("/");            /* as above */
}

/* Waits for runtimes and for the recorder. True when its pipe is ready. */
static bool wait_for_peers(const struct reverse *reverse, struct poll_set *set, int pipe_fd,
	uint64_t wait_ms)
{
	poll_set_begin(set, clock_monotonic_ns() + wait_ms * UINT64_C(1000000));
	uint32_t pipe = poll_set_add(set, pipe_fd, POLLIN);

	reverse_await(reverse, set);
	(void)poll_set_wait(set);
	return poll_set_revents(set, pipe);
}

/* Until no process may connect. *pipe_fd: -1 once the recorder ended. False: HELPER_END. */
static bool resume_all(struct reverse *reverse, int *pipe_fd, int pidfd)
{
	struct poll_set set = { 0 }; /* the helper's exit frees it */
	uint64_t look_ns = 0;
	uint32_t seen = reverse->seen;
	unsigned checks = 0;

	for (;;) {
		char word;
		bool written = wait_for_peers(reverse, &set, *pipe_fd, HELPER_TURN_MS);
		release_held(reverse);
		if (written) {
			ssize_t n = read(*pipe_fd, &word, 1);
			if (n == 1 && word == HELPER_END)
				return false;
			if (n == 0) {
				*pipe_fd = -1;
				detach();
			}
		}
		bool needed = *pipe_fd >= 0 || !has_ended(pidfd) || reverse->seen != seen;
		seen = reverse->seen;
		if (needed)
			checks = 0;
		if (needed || clock_monotonic_ns() < look_ns)
			continue;
		checks = is_inherited(reverse) ? 0 : checks + 1;
		if (checks == HELPER_LOOKS)
			return true;
		/* Looks are apart: during its exec a process has no environment. */
		look_ns = clock_monotonic_ns() +
			  (checks ? HELPER_TURN_MS * UINT64_C(1000000) : HELPER_LOOK_NS);
	}
}

/* Resumes runtimes while the recorder is stopped or hangs. `cpu_ns`: UINT64_MAX: it ran. */
static void resume_meanwhile(struct reverse *reverse, int pipe_fd, uint32_t recorder,
	uint64_t beats, uint64_t cpu_ns)
{
	struct poll_set set = { 0 };
	bool written = false;

	reverse->counts_missed = true;
	/* A recorder that has continued accepts the connections itself. */
	while (__atomic_load_n(&reverse->page->beats, __ATOMIC_SEQ_CST) == beats && !written &&
		(cpu_ns == UINT64_MAX || guard_cpu_ns(recorder) == cpu_ns)) {
		release_held(reverse);
		written = wait_for_peers(reverse, &set, pipe_fd, GUARD_TICK_MS);
	}
	poll_set_done(&set);
	reverse->counts_missed = false;
	reverse_hang_up(reverse);
}

/* Waits until the recorder writes a word, or ends. Returns the result of read(). */
static ssize_t wait_for_word(struct reverse *reverse, int pipe_fd, uint32_t recorder,
	char *ret_word)
{
	uint64_t beats = 0;
	uint64_t cpu_ns = 0;
	unsigned silent = 0; /* ticks without a beat */
	unsigned still = 0;  /* ticks without a beat and without CPU time */

	while (!poll_one(pipe_fd, POLLIN, GUARD_TICK_MS)) {
		uint64_t beats_before = beats;
		uint64_t before_ns = cpu_ns;
		beats = __atomic_load_n(&reverse->page->beats, __ATOMIC_SEQ_CST);
		cpu_ns = guard_cpu_ns(recorder);
		silent = beats == beats_before ? silent + 1 : 0;
		still = silent && cpu_ns == before_ns ? still + 1 : 0;
		if (still < GUARD_SILENT_TICKS && silent < GUARD_BUSY_TICKS)
			continue;
		resume_meanwhile(reverse, pipe_fd, recorder, beats,
			still < GUARD_SILENT_TICKS ? UINT64_MAX : cpu_ns);
		silent = still = 0;
	}
	ssize_t n;

	do
		n = read(pipe_fd, ret_word, 1);
	while (n < 0 && errno == EINTR);
	return n;
}

/* The helper process keeps only the port, the pipe and the pidfd. */
static void stand_in(struct reverse *reverse, int pipe_fd, int pidfd, uint32_t recorder)
{
	int kept[] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, reverse->fd, pipe_fd, pidfd };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	char word = HELPER_WORK;

	(void)setsid(); /* so Ctrl-C and the hangup of the terminal do not reach the helper */
	for (int signal = 1; signal < SIGRTMIN; signal++)
		(void)sigaction(signal, &ignore, NULL); /* those that cannot be ignored are not */
	descriptors_close_but(kept, sizeof(kept) / sizeof(kept[0]));
	ssize_t n = wait_for_word(reverse, pipe_fd, recorder, &word);

	if (n < 0 || word == HELPER_END)
		return;
	if (n == 0) {
		pipe_fd = -1;
		detach();
	}
	if (!resume_all(reverse, &pipe_fd, pidfd))
		return;
	(void)rights_lower(); /* as in reverse_close(), but not restored: the helper exits next */
	(void)unlink(reverse->path); /* it is ours, or removed already */
}

int reverse_stand_in(struct reverse *reverse, uint32_t pid, struct diag *diag)
{
	const uint32_t recorder = (uint32_t)getpid();
	int fds[2];

	void *page = mmap(NULL, sizeof(*reverse->page), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return diag_set(diag, -errno, "cannot watch over the command: %m");
	reverse->page = page;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return diag_set(diag, -errno, "cannot watch over the command: %m");
	cleanup(closep) int read_end = fds[0];
	cleanup(closep) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	reverse->helper = fork();
	if (reverse->helper < 0) {
		int error = -errno;
		close(fds[1]);
		return diag_set(diag, error, "cannot watch over the command: %m");
	}
	if (reverse->helper == 0) {
		close(fds[1]);
		stand_in(reverse, read_end, pidfd, recorder);
		_exit(0);
	}
	reverse->helper_fd = fds[1];
	return 0;
}

void reverse_hang_up(struct reverse *reverse)
{
	while (reverse->waiting.count)
		drop(reverse, 0);
}

void reverse_leave(struct reverse *reverse)
{
	if (reverse->fd < 0 || reverse->helper_fd < 0 || !write_word(reverse, HELPER_WORK))
		return;
	reverse_hang_up(reverse);
	closep(&reverse->fd);
	reverse->fd = -1;
}

/* True when the helper stays, and the port with it. */
static bool end_helper(struct reverse *reverse)
{
	if (reverse->helper_fd < 0)
		return false;
	bool stays = is_inherited(reverse);

	if (!stays)
		/* else the helper takes the recorder for killed, and waits in vain */
		(void)write_word(reverse, HELPER_END);
	closep(&reverse->helper_fd);
	if (stays)
		return true;
	while (waitpid(reverse->helper, NULL, 0) < 0 && errno == EINTR)
		;
	return false;
}

void reverse_close(struct reverse *reverse)
{
	if (!reverse)
		return;
	bool stays = end_helper(reverse);

	reverse_hang_up(reverse);
	for (uint32_t i = 0; i < reverse->peers.count; i++)
		free(reverse->peers.items[i]);
	vec_done(&reverse->waiting);
	vec_done(&reverse->peers);
	closep(&reverse->fd);
	if (!stays) {
		uint64_t before = rights_lower();
		(void)unlink(reverse->path); /* it is ours, or removed already */
		rights_restore(before);
	}
	if (reverse->page)
		(void)munmap(reverse->page, sizeof(*reverse->page)); /* ours: cannot fail */
	free(reverse);
}
