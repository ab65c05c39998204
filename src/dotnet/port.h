/*
 * Where a .NET process listens: its diagnostics socket, found from outside and connected to.
 *
 * The runtime binds DIR/dotnet-diagnostic-PID-KEY-socket, in its own terms: DIR is its TMPDIR or
 * /tmp/, PID what it sees as its pid, KEY its start time. Everything is looked up through
 * /proc/PID/root, so that a container's socket is found where the container sees it. A name that
 * does not fit 107 bytes is cut by the runtime; here the cut name is tried too.
 *
 * The kernel decides at the connection which requests a caller may make. A connection is made with
 * the caller's own rights: the capabilities of spoor's own file do not count. So a spoor with file
 * capabilities makes no other user's process act, and gets none of its payloads. Only a target
 * whose `borrows` is set is reached with these capabilities too; that is for names and stacks
 * alone.
 */
#ifndef SPOOR_DOTNET_PORT_H
#define SPOOR_DOTNET_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct proc_reader;

#define DOTNET_DIR_MAX 4096u

/* A process, as the search for its socket needs it. */
struct dotnet_target {
	uint32_t pid;                /* as we see it */
	uint32_t inner_pid;          /* as it sees itself: the last number of NSpid */
	uint64_t start_ticks;        /* field 22 of /proc/PID/stat */
	char tmpdir[DOTNET_DIR_MAX]; /* its TMPDIR; "" when it has none */
	/* file capabilities of spoor count: for names and stacks only */
	bool borrows;
};

/*
 * Reads the above from /proc; `borrows` is false. -ESRCH when there is no such process. TMPDIR
 * stays "" when the environment cannot be read: the search then goes by /tmp/.
 */
int dotnet_target_read(uint32_t pid, struct dotnet_target *ret_target, struct diag *diag);

/*
 * The parsers of that, apart from the files. Texts end with a NUL, an environment with its size.
 * The inner pid is `pid` where the text has none; a TMPDIR that does not fit is "".
 */
int dotnet_parse_stat(const char *text, char *ret_state, uint64_t *ret_start_ticks);
uint32_t dotnet_parse_inner_pid(const char *text, uint32_t pid);
void dotnet_parse_tmpdir(const char *environment, size_t size, char tmpdir[DOTNET_DIR_MAX]);

/* 'R', 'S', 'T' (stopped), 't' (traced), 'Z', ...; 0: exited, or the pid was reused. */
char dotnet_target_state(const struct dotnet_target *target);

/* How long ago it was started. */
uint64_t dotnet_target_age_ns(const struct dotnet_target *target);

/* Facts that speak for .NET in a process. */
enum dotnet_sign {
	DOTNET_SIGN_SOCKET = 1 << 0,  /* it has a diagnostics socket: sure, set by the caller */
	DOTNET_SIGN_CORECLR = 1 << 1, /* libcoreclr.so is mapped: sure */
	/* /memfd:doublemapper is mapped: sure (single-file programs have only this) */
	DOTNET_SIGN_JIT_MEMORY = 1 << 2,
	/* a Mono runtime: Spoor cannot get a rundown from it */
	DOTNET_SIGN_MONO = 1 << 3,
};

/* The signs in the path of one mapping; 0 for most. A " (deleted)" at its end does no harm. */
unsigned dotnet_signs_of_path(const char *path);

/* Whether these signs make a process worth asking. */
bool dotnet_signs_worth_asking(unsigned signs);

/*
 * The variable in the process's initial environment that switches its diagnostics off, so that it never has a socket;
 * NULL: there is none, or the environment cannot be read.
 */
const char *dotnet_switched_off_by(struct proc_reader *proc, uint32_t pid);

/* The same, without the name. A process has no environment during its exec: false. */
bool dotnet_is_switched_off(uint32_t pid);

/* Whether the process has a socket. Nothing is sent to it. */
bool dotnet_port_exists(const struct dotnet_target *target);

/*
 * A new connection, non-blocking, close-on-exec: its descriptor. -ENOENT no socket, -ECONNREFUSED
 * no process listens at it any more, -EACCES the process is another user's (also where its socket
 * cannot be looked for), -EAGAIN its queue is full (try again later), -EPERM the peer is not the
 * target, -ENAMETOOLONG TMPDIR is so long that there can be no socket. Never blocks.
 */
int dotnet_port_connect(const struct dotnet_target *target, struct diag *diag);

/* The same; `made` is called with the socket before it connects, if it gets so far. */
typedef void dotnet_socket_fn(void *context, int fd);
int dotnet_port_connect_announced(const struct dotnet_target *target, dotnet_socket_fn *made,
	void *context, struct diag *diag);

#endif
