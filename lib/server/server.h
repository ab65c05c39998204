/*
 * The diagnostics server: the socket on which dotnet-trace, dotnet-counters and their kin find this program, as if it were a .NET process.
 *
 * It lives on the loop: one small state per connection in a bounded table, everything non-blocking, every wait with its end. A peer that sends half a
 * header, reads slowly or says nothing costs its own place and nothing else. Every byte of a request is read by server_request.c, every byte of a reply made by
 * server_reply.c.
 *
 * The name of the socket. A runtime binds dotnet-diagnostic-PID-KEY-socket, KEY being the start time, and goes without a socket when something is there. So:
 *
 *   no runtime can come (nothing in the process calls dlopen)    dotnet-diagnostic-PID-KEY-socket
 *   one may come                                                 dotnet-diagnostic-PID-0KEY-socket: the same number, written otherwise. Tools find it, and of two
 *                                                                sockets of a process they take the newer one: the runtime's
 *   one is there                                                 spoor-diagnostic-PID-KEY-socket, and DOTNET_DiagnosticPorts is left to the runtime
 *
 * Under AT_SECURE, with SPOOR_START_NO_SERVER, or when DOTNET_EnableDiagnostics(_IPC) is 0, there is no server.
 */
#ifndef SPOOR_LIB_SERVER_SERVER_H
#define SPOOR_LIB_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/platform/module.h"

#define SERVER_CONNECTIONS_MAX 128u
#define SERVER_PORTS_MAX       16u
#define SERVER_REQUEST_NS      5000000000u  /* for a whole request, from the connection on */
#define SERVER_REPLY_NS        10000000000u /* for the peer to take a whole reply */
#define SERVER_STOP_NS         10000000000u /* a session that is ending gets rid of nothing for so long: its peer is cut off */
/* Of what a tool asks for to wait for it: it is taken as needed, but a tool may ask for more than a program should give. */
#define SERVER_BUFFER_MAX      (UINT64_C(1) << 30)
/* What we can do, as a version of the runtime that could; the part behind + says who speaks. */
#define SERVER_VERSION         "9.0.0+libspoor.0.1.0"

/*
 * start() opens the socket and the ports of DOTNET_DiagnosticPorts. When a port (or DOTNET_DefaultDiagnosticPortSuspend) asks for it, it returns only
 * after ResumeRuntime has come on each that asked. Nowhere to listen (no such TMPDIR) is no failure: a program runs without its server.
 */
extern const struct module server_module;

/* ---- The system's part: server_linux.c ---- */

/* The number behind the pid in the socket's name: start time of the process. 0 when it cannot be known. */
uint64_t server_system_key(void);
/* Who is at the other end of a connection. */
int server_system_peer(int fd, uint32_t *ret_uid);
/* A socket that is bound, with mode 0600 from its first moment, and listens. -EADDRINUSE: somebody answers there. */
int server_system_listen(const char *path, int *ret_fd);
/* The environment that the program was started with, NAME=value and NUL each. The caller frees. */
char *server_system_environment(size_t *ret_size);
const char *server_system_name(void); /* "Linux" */
const char *server_system_rid(void);  /* "linux-x64" */
/*
 * Is there a .NET runtime in this process, or what brings one? May one come? Only dlopen() could bring it, so a process in which no object calls that
 * has none for ever.
 */
enum server_runtime {
	SERVER_RUNTIME_NEVER,
	SERVER_RUNTIME_MAY_COME,
	SERVER_RUNTIME_HERE,
};
enum server_runtime server_system_runtime(void);

#endif
