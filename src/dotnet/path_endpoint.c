/* See path_endpoint.h. */
#include "dotnet/path_endpoint.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "machine/rights.h"

int path_endpoint_address(const char *path, struct sockaddr_un *address, struct diag *diag)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!*path || strlen(path) >= sizeof(address->sun_path))
		return diag_set(diag, -ENAMETOOLONG,
			"the path of a socket has 1 to %zu characters, not '%s'",
			sizeof(address->sun_path) - 1, path);
	memcpy(address->sun_path, path, strlen(path) + 1);
	return 0;
}

static int path_connect(void *context, struct diag *diag)
{
	const char *path = context;
	struct sockaddr_un address;
	int r = path_endpoint_address(path, &address, diag);

	if (r < 0)
		return r;
	cleanup(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return diag_set(diag, -errno, "cannot make a socket: %m");
	uint64_t before = rights_lower(); /* the user names the path */
	r = connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	rights_restore(before);
	return r < 0 ? diag_set(diag, r, "cannot connect to '%s': %m", path) : TAKE_FD(fd);
}

static char unknown_state(void *context)
{
	(void)context;
	return '?';
}

struct dotnet_endpoint path_endpoint(const char *path)
{
	return (struct dotnet_endpoint){
		.connect = path_connect,
		.state = unknown_state,
		.context = (void *)(uintptr_t)path, /* only read */
	};
}

uint32_t path_owner(const char *path)
{
	struct ucred credentials = { 0 };
	socklen_t size = sizeof(credentials);
	cleanup(closep) int fd = path_connect((void *)(uintptr_t)path, NULL); /* only read */

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0)
		return 0;
	return credentials.pid > 0 ? (uint32_t)credentials.pid : 0;
}
