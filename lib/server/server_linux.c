/*
 * What the diagnostics server needs of Linux: /proc, peer credentials, the list of loaded objects.
 */
#include "lib/server/server.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A command line or an environment can have 6 MB; replies to tools contain at most this much. */
#define PROC_FILE_MAX (4u << 20)

/* Reads a whole file of /proc, whose size is unknown. The caller frees; NULL: it cannot be read. */
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

	/*
	 * After the name in parentheses, which may contain any character, the 20th word is field
	 * 22: the start time in clock ticks since boot.
	 */
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

	/* As in the runtime: a name that is too long is cut. */
	if (length > sizeof(address.sun_path) - 1)
		length = sizeof(address.sun_path) - 1;
	memcpy(address.sun_path, path, length);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/*
	 * The socket gets its file's mode when it is bound, so no other user can connect in
	 * between.
	 */
	if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		error = -errno;
	} else if (listen(fd, 255) < 0) {
		error = -errno;
		(void)unlink(address.sun_path);
	}
	if (error == -EADDRINUSE) {
		/*
		 * The socket of another listener, or left by the program that ran in this process
		 * before exec().
		 */
		int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		bool stale = probe >= 0 &&
			     connect(probe, (struct sockaddr *)&address, sizeof(address)) < 0 &&
			     errno == ECONNREFUSED;
		if (probe >= 0)
			(void)close(probe);
		if (stale && unlink(address.sun_path) == 0 &&
			bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
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

char *server_system_environment(size_t *ret_size)
{
	/* Not `environ`: another thread may change it meanwhile, and no lock guards it. */
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

/*
 * A value of the dynamic section that is an address: some loaders have added the base to it, others
 * have not.
 */
static const void *dynamic_address(const struct dl_phdr_info *info, uint64_t value)
{
	return (const void *)(uintptr_t)(value >= info->dlpi_addr ? value
								  : info->dlpi_addr + value);
}

/*
 * The number of symbols before those that the object defines in its table: the GNU hash table
 * contains only the latter.
 */
static uint32_t dynamic_imports(const struct dl_phdr_info *info, const ElfW(Dyn) * dynamic,
	const ElfW(Sym) * *ret_symbols, const char **ret_names)
{
	const uint32_t *hash = NULL, *gnu_hash = NULL;

	for (; dynamic->d_tag != DT_NULL; dynamic++) {
		switch (dynamic->d_tag) {
		case DT_SYMTAB:
			*ret_symbols = dynamic_address(info, dynamic->d_un.d_ptr);
			break;
		case DT_STRTAB:
			*ret_names = dynamic_address(info, dynamic->d_un.d_ptr);
			break;
		case DT_HASH:
			hash = dynamic_address(info, dynamic->d_un.d_ptr);
			break;
		case DT_GNU_HASH:
			gnu_hash = dynamic_address(info, dynamic->d_un.d_ptr);
			break;
		default:
			break;
		}
	}
	return !*ret_symbols || !*ret_names ? 0 : gnu_hash ? gnu_hash[1] : hash ? hash[1] : 0;
}

static int runtime_look(struct dl_phdr_info *info, size_t size, void *argument)
{
	static const char *const names[] = { "libcoreclr.so", "libhostfxr.so", "libhostpolicy.so",
		"libmonosgen-2.0.so", "libnethost.so" };
	enum server_runtime *found = argument;
	const char *file = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;

	(void)size;
	/* It loads LTTng's library only. */
	if (file && strncmp(file + 1, "libspoor.so", strlen("libspoor.so")) == 0)
		return 0;
	for (size_t i = 0; file && i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(file + 1, names[i]) == 0)
			*found = SERVER_RUNTIME_HERE;
	for (unsigned i = 0; i < info->dlpi_phnum && *found == SERVER_RUNTIME_NEVER; i++) {
		const ElfW(Sym) *symbols = NULL;
		const char *text = NULL;
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		uint32_t count = dynamic_imports(info,
			(const void *)(uintptr_t)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			&symbols, &text);
		for (uint32_t symbol = 1; symbol < count && *found == SERVER_RUNTIME_NEVER;
			symbol++)
			if (symbols[symbol].st_shndx == SHN_UNDEF &&
				(strcmp(text + symbols[symbol].st_name, "dlopen") == 0 ||
					strcmp(text + symbols[symbol].st_name, "dlmopen") == 0))
				*found = SERVER_RUNTIME_MAY_COME;
	}
	return *found == SERVER_RUNTIME_HERE;
}

enum server_runtime server_system_runtime(void)
{
	enum server_runtime found = SERVER_RUNTIME_NEVER;

	/* A single-file program exports this symbol: it contains the runtime. */
	if (dlsym(RTLD_DEFAULT, "DotNetRuntimeInfo"))
		return SERVER_RUNTIME_HERE;
	(void)dl_iterate_phdr(runtime_look, &found);
	return found;
}
