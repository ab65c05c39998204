/* The kind of .NET of a process, by its mappings and its program's exported symbols. */
#ifndef SPOOR_DOTNET_KIND_H
#define SPOOR_DOTNET_KIND_H

#include <stddef.h>

enum dotnet_kind {
	DOTNET_NOT,            /* no sign of .NET */
	DOTNET_FRAMEWORK,      /* dotnet App.dll: the shared runtime, started by its host */
	DOTNET_APPHOST,        /* its own executable (apphost), with the shared runtime */
	DOTNET_SELF_CONTAINED, /* ... with the runtime in the program's folder */
	DOTNET_SINGLE_FILE,    /* ... with the runtime inside the executable */
	DOTNET_NATIVEAOT,      /* compiled ahead of time */
	DOTNET_MONO,
	DOTNET_LIBSPOOR, /* no .NET: a native program that has a diagnostics socket by libspoor */
	/* .NET by its socket or arguments, but this user may not read its mappings */
	DOTNET_UNKNOWN,
};

/* From the signs and the paths of program and libcoreclr.so ("": unknown). Not for NativeAOT. */
enum dotnet_kind dotnet_kind_of(unsigned signs, const char *program, const char *coreclr);

/* The kind that an exported symbol proves; DOTNET_NOT for all but two names. */
enum dotnet_kind dotnet_kind_of_export(const char *name);

/* "10.0.12" of ".../Microsoft.NETCore.App/10.0.12/libcoreclr.so", and its length; or NULL. */
const char *dotnet_version_of_path(const char *coreclr, size_t *ret_len);

/* "framework-dependent", "apphost", ...; "-" for DOTNET_NOT. */
const char *dotnet_kind_name(enum dotnet_kind kind);

#endif
