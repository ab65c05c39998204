/*
 * The diagnostics server: the socket on which dotnet-trace, dotnet-counters and similar tools find
 * this program, as if it were a .NET process.
 *
 * It runs on the loop thread: a small state for each connection in a bounded table, non-blocking
 * I/O, and a time limit for each wait. A peer that sends half a header, reads slowly or sends
 * nothing uses its own entry of the table and nothing else. server_request.c reads every byte of a
 * request, server_reply.c makes every byte of a reply.
 *
 * The name of the socket. A runtime binds dotnet-diagnostic-PID-KEY-socket (KEY is the start time
 * of the process), and has no socket if that file exists. So the name depends on whether this
 * process can have a runtime:
 *
 *   never (nothing in the process calls dlopen)    dotnet-diagnostic-PID-KEY-socket
 *   possibly later                                 dotnet-diagnostic-PID-0KEY-socket: the same number in another spelling. Tools find it, and of two sockets of a process
 *                                                  they use the newer one: the runtime's
 *   loaded already                                 spoor-diagnostic-PID-KEY-socket, and DOTNET_DiagnosticPorts is left to the runtime
 *
 * There is no server under AT_SECURE, with SPOOR_START_NO_SERVER, or when
 * DOTNET_EnableDiagnostics(_IPC) is 0.
 */
#ifndef SPOOR_LIB_SERVER_SERVER_H
#define SPOOR_LIB_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/platform/module.h"

#define SERVER_CONNECTIONS_MAX 128u
#define SERVER_PORTS_MAX       16u
/* from the connection to the last byte of the request */
#define SERVER_REQUEST_NS 5000000000u
#define SERVER_REPLY_NS   10000000000u /* for the peer to read a whole reply */
/*
 * The version of the runtime whose features the server has; the part after + identifies the
 * library.
 */
#define SERVER_VERSION "9.0.0+libspoor.0.1.0"

/*
 * start() opens the socket and connects to the ports of DOTNET_DiagnosticPorts. If a port (or
 * DOTNET_DefaultDiagnosticPortSuspend) requires a suspended start, it returns after ResumeRuntime
 * was received on each of these. If no socket can be opened (no such TMPDIR), that is no failure:
 * the program runs without a server.
 */
extern const struct module server_module;

/* ---- The system's part: server_linux.c ---- */

/* The number after the pid in the socket's name: the start time of the process. 0: unknown. */
uint64_t server_system_key(void);
/* The user of the process at the other end of a connection. 0 or a negative errno. */
int server_system_peer(int fd, uint32_t *ret_uid);
/*
 * Makes a socket that is bound and listens; its file has mode 0600 when it becomes visible. 0 or a
 * negative errno; -EADDRINUSE: another socket answers there.
 */
int server_system_listen(const char *path, int *ret_fd);
/*
 * The environment with which the program was started: NAME=value and NUL for each. The caller
 * frees.
 */
char *server_system_environment(size_t *ret_size);
const char *server_system_name(void); /* "Linux" */
const char *server_system_rid(void);  /* "linux-x64" */
/*
 * Does this process have a .NET runtime, or an object that loads one? Only dlopen() can load a
 * runtime later, so a process in which no object calls dlopen() never gets one.
 */
enum server_runtime {
	SERVER_RUNTIME_NEVER,
	SERVER_RUNTIME_MAY_COME,
	SERVER_RUNTIME_HERE,
};
enum server_runtime server_system_runtime(void);

#endif
