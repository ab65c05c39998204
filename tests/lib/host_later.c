/*
 * A native program with libspoor that starts a .NET runtime later, as plug-in hosts do.
 *
 *   DOTNET_ROOT=... host_later LIBHOSTFXR PROGRAM.DLL ARGUMENT...
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spoor/spoor.h>

int main(int count, const char **arguments)
{
	int (*run)(int, const char **, const char *host, const char *root, const char *program);
	void *host, *found;

	if (count < 3 || spoor_start(NULL) < 0)
		return 2;
	host = dlopen(arguments[1], RTLD_NOW);
	found = host ? dlsym(host, "hostfxr_main_startupinfo") : NULL;
	if (!found) {
		fprintf(stderr, "host_later: %s\n", dlerror());
		return 2;
	}
	memcpy(&run, &found, sizeof(found));
	/* Arguments as for the program's own host: its name, then its arguments. */
	const char *program = arguments[2];
	arguments[2] = arguments[0];
	int result = run(count - 2, arguments + 2, arguments[0], getenv("DOTNET_ROOT"), program);
	spoor_stop();
	return result;
}
