/*
 * HOST:PORT of the command line, as an address.
 *
 *   "9464"  ":9464"  "127.0.0.1:9464"  "[::1]:9464"  "collector.example"  "collector.example:2003"
 *
 * What is left out comes from the caller. Names are resolved by the system, which may take a while: at the start, once. A statically linked program
 * knows numbers and "localhost" only, because the resolver is a plugin of the C library.
 */
#ifndef SPOOR_MACHINE_ENDPOINT_H
#define SPOOR_MACHINE_ENDPOINT_H

#include <stdint.h>
#include <sys/socket.h>

struct diag;

#define ENDPOINT_TEXT_MAX 300u

struct endpoint {
	struct sockaddr_storage address;
	socklen_t size;
	char text[ENDPOINT_TEXT_MAX]; /* "127.0.0.1:9464": the address itself */
};

/* `type` is SOCK_STREAM or SOCK_DGRAM. -EINVAL: no such text. -EHOSTUNREACH: the name is not known. */
int endpoint_parse(const char *text, const char *host, uint16_t port, int type, struct endpoint *ret_endpoint,
	struct diag *diag);

/* Writes endpoint.text from the address: of a socket that was bound to port 0, say. */
void endpoint_describe(struct endpoint *endpoint);

#endif
