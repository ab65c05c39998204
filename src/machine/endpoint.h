/*
 * HOST:PORT of the command line, as an address.
 *
 *   "9464"  ":9464"  "127.0.0.1:9464"  "[::1]:9464"  "collector.example"  "collector.example:2003"
 *
 * Resolving a name may take seconds, so it is done once, at the start. A statically linked program
 * resolves only numbers and "localhost": the resolver is a plugin of the C library.
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
	char text[ENDPOINT_TEXT_MAX]; /* the address in numbers: "127.0.0.1:9464" */
};

/* Missing parts become `host`, `port`. -EINVAL: malformed. -EHOSTUNREACH: cannot be resolved. */
int endpoint_parse(const char *text, const char *host, uint16_t port, int type,
	struct endpoint *ret_endpoint, struct diag *diag);

/* Writes endpoint.text from the address, for example of a socket that was bound to port 0. */
void endpoint_describe(struct endpoint *endpoint);

#endif
