/*
 * gc_version LIBRARY MAJOR: calls a collector's library as a runtime of that major version does,
 * and prints the result.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "gc/interface.h"

int main(int argc, char **argv)
{
	void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!library) {
		fprintf(stderr, "cannot load the library: %s\n",
			argc == 3 ? dlerror() : "gc_version LIBRARY MAJOR");
		return 1;
	}
	void (*ask)(struct gc_version_info *) =
		(void (*)(struct gc_version_info *))(uintptr_t)dlsym(library, "GC_VersionInfo");
	if (!ask)
		return 1;
	struct gc_version_info version = { .major = (uint32_t)strtoul(argv[2], NULL, 10) };
	ask(&version);
	printf("answers %u.%u %s\n", version.major, version.minor,
		version.name ? version.name : "-");
	return 0;
}
