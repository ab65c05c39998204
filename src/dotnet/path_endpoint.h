/*
 * The socket at a path that the user names, at which a runtime listens. It is opened with the user's
 * own rights.
 */
#ifndef SPOOR_DOTNET_PATH_ENDPOINT_H
#define SPOOR_DOTNET_PATH_ENDPOINT_H

#include <stdint.h>

#include "dotnet/exchange.h"

struct diag;
struct sockaddr_un;

/* -ENAMETOOLONG: no socket can have this path. */
int path_endpoint_address(const char *path, struct sockaddr_un *address, struct diag *diag);

/* Connects to the socket at the path, which is borrowed. */
struct dotnet_endpoint path_endpoint(const char *path);

/* The pid of the socket's listener by its credentials; 0: unknown. Sends nothing. */
uint32_t path_owner(const char *path);

#endif
