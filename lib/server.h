/*
 * The diagnostics server: the socket on which dotnet-trace, dotnet-counters and their kin find this program, as if it were a .NET process.
 *
 * One thread, one poll loop, one small state per connection: a peer that sends half a header, reads slowly or says nothing costs its own place in a
 * bounded table and nothing else. What may take long (ending a session: its rundown, its last bytes to a slow reader) is done by a thread of its own
 * for that time. Every byte of a request is read by server_request.c.
 *
 * Order of calls: server_start() once, from spoor_start(); server_stop() from spoor_stop(). Both under spoor_start()'s own lock. Under AT_SECURE, or when
 * DOTNET_EnableDiagnostics(_IPC) is 0, server_start() does nothing and returns 0.
 */
#ifndef SPOOR_LIB_SERVER_H
#define SPOOR_LIB_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVER_CONNECTIONS_MAX 128u
#define SERVER_PORTS_MAX       16u
#define SERVER_REQUEST_MS      5000u  /* for a whole request, from the connection on */
#define SERVER_REPLY_MS        10000u /* for the peer to take a whole reply */
#define SERVER_VERSION         "9.0.0+libspoor.0.1.0"

/*
 * Opens the socket and the ports of DOTNET_DiagnosticPorts, and starts the thread. When a port (or DOTNET_DefaultDiagnosticPortSuspend) asks
 * for it, returns only after ResumeRuntime has come on each that asked. 0 also when there is nowhere to listen (no TMPDIR, a runtime that has the name):
 * a program runs without its server.
 */
int server_start(void);

/* Ends the sessions that came through it, with their rundown, then the thread; removes the socket. */
void server_stop(void);

/* In the child of a fork: closes what is the parent's. */
void server_fork_child(void);

/* Where it listens; "" when nowhere. For tests and for spoor_server_path(). */
const char *server_path(void);

/* ---- The system's part: server_linux.c ---- */

/* True when the program has more rights than who started it: nothing of the environment may be heeded. */
bool server_system_secure(void);
/* The number behind the pid in the socket's name. 0 when it cannot be known. */
uint64_t server_system_key(void);
/* Who is at the other end of a connection. */
int server_system_peer(int fd, uint32_t *ret_uid);
/* A socket that is bound, with mode 0600 from its first moment, and listens. */
int server_system_listen(const char *path, int *ret_fd);
void server_system_random(uint8_t *bytes, size_t size);
/* The command line with spaces for NULs; the environment as the program was started with it, NAME=value and NUL each. The caller frees. */
char *server_system_command_line(void);
char *server_system_environment(size_t *ret_size);
const char *server_system_name(void);         /* "Linux" */
const char *server_system_architecture(void); /* "x64" */
const char *server_system_rid(void);          /* "linux-x64" */
/*
 * Whether a .NET runtime, or what brings one, is loaded into this process. `state` begins as 0 and makes the answer cheap while no object was loaded
 * since the last one.
 */
bool server_system_runtime(uint64_t *state);
int server_system_wake_pipe(int fds[2]);
void server_system_thread_name(const char *name);

#endif
