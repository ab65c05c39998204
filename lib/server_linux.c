/* What the diagnostics server needs of Linux: /proc, peer credentials, the list of loaded objects. */
#include "lib/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A command line or an environment can be 6 MB; nobody reads more than what fits a reply of a tool. */
#define PROC_FILE_MAX (4u << 20)

/* A whole file of /proc, which has no size beforehand. The caller frees; NULL when it cannot be read. */
static char *server_proc_read(const char *path, size_t *ret_size)
{
	size_t size = 0, room = 4096;
	char *text = malloc(room);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	while (text && fd >= 0) {
		ssize_t got = read(fd, text + size, room - size - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		size += (size_t)got;
		if (size + 1 < room)
			continue;
		if (room >= PROC_FILE_MAX)
			break;
		char *grown = realloc(text, room * 2);
		if (!grown)
			break;
		text = grown;
		room *= 2;
	}
	if (fd >= 0)
		(void)close(fd);
	if (!text || fd < 0) {
		free(text);
		return NULL;
	}
	text[size] = '\0';
	*ret_size = size;
	return text;
}

uint64_t server_system_key(void)
{
	size_t size;
	char *text = server_proc_read("/proc/self/stat", &size);
	char *at = text ? strrchr(text, ')') : NULL;
	uint64_t key = 0;

	/* Behind the name in parentheses, which may hold anything: the 20th word is field 22, the start time in clock ticks since boot. */
	for (int i = 0; at && i < 20; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (at)
		key = strtoull(at, NULL, 10);
	free(text);
	return key;
}

int server_system_peer(int fd, uint32_t *ret_uid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	*ret_uid = peer.uid;
	return 0;
}

int server_system_listen(const char *path, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(path);
	int error = 0;

	/* Like the runtime: a name that does not fit is cut. */
	if (length > sizeof(address.sun_path) - 1)
		length = sizeof(address.sun_path) - 1;
	memcpy(address.sun_path, path, length);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* The mode of the file is that of the socket when it is bound: no moment in which others could connect. */
	if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		error = -errno;
	} else if (listen(fd, 255) < 0) {
		error = -errno;
		(void)unlink(address.sun_path);
	}
	if (error == -EADDRINUSE) {
		/* Somebody's who still listens, or left behind by what this process was before exec(). */
		int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		bool stale = probe >= 0 && connect(probe, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED;
		if (probe >= 0)
			(void)close(probe);
		if (stale && unlink(address.sun_path) == 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
			listen(fd, 255) == 0)
			error = 0;
	}
	if (error) {
		(void)close(fd);
		return error;
	}
	*ret_fd = fd;
	return 0;
}

void server_system_random(uint8_t *bytes, size_t size)
{
	if (getrandom(bytes, size, GRND_NONBLOCK) == (ssize_t)size)
		return;
	/* At boot, before there is any: it only has to differ between processes. */
	uint64_t seed = (uint64_t)getpid() << 32 ^ (uint64_t)clock() ^ server_system_key();
	for (size_t i = 0; i < size; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		bytes[i] = (uint8_t)(seed >> 56);
	}
}

char *server_system_environment(size_t *ret_size)
{
	/* Not `environ`: another thread may be changing it, and nothing could keep the two apart. */
	return server_proc_read("/proc/self/environ", ret_size);
}

const char *server_system_name(void)
{
	return "Linux";
}

const char *server_system_rid(void)
{
#if defined(__GLIBC__) && defined(__x86_64__)
	return "linux-x64";
#elif defined(__GLIBC__) && defined(__aarch64__)
	return "linux-arm64";
#elif defined(__x86_64__)
	return "linux-musl-x64";
#elif defined(__aarch64__)
	return "linux-musl-arm64";
#else
	return "linux";
#endif
}

struct runtime_search {
	uint64_t added;
	uint64_t last;
	bool changed;
	bool found;
};

static int runtime_look(struct dl_phdr_info *info, size_t size, void *argument)
{
	static const char *const names[] = { "libcoreclr.so", "libhostfxr.so", "libhostpolicy.so", "libmonosgen-2.0.so", "libnethost.so" };
	struct runtime_search *search = argument;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) && !search->changed) {
		search->added = info->dlpi_adds;
		if (search->added == search->last)
			return 1; /* nothing new since the last look */
	}
	search->changed = true;
	const char *file = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
	for (size_t i = 0; file && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(file + 1, names[i]) == 0)
			search->found = true;
	return search->found;
}

bool server_system_runtime(uint64_t *state)
{
	struct runtime_search search = { .last = *state };

	/* A single-file program has the runtime inside itself, and says so. */
	if (*state == 0 && dlsym(RTLD_DEFAULT, "DotNetRuntimeInfo"))
		return true;
	(void)dl_iterate_phdr(runtime_look, &search);
	*state = search.added;
	return search.found;
}
