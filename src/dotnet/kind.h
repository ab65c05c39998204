/*
 * Which kind of .NET a process runs, found without sending it anything: by the paths of its
 * mappings and the symbols that its program exports.
 */
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
	/* .NET by its socket or arguments, but this user may not read its mappings */
	DOTNET_UNKNOWN,
};

/*
 * From the signs (enum dotnet_sign) and the paths of program and libcoreclr.so ("" when not known).
 * NativeAOT shows in the program's exports only: dotnet_kind_of_export().
 */
enum dotnet_kind dotnet_kind_of(unsigned signs, const char *program, const char *coreclr);

/*
 * The kind of .NET that an exported symbol of this name proves; DOTNET_NOT for all but two names.
 */
enum dotnet_kind dotnet_kind_of_export(const char *name);

/*
 * "10.0.12" of ".../shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so": where it begins, and its
 * length; NULL when the path does not say.
 */
const char *dotnet_version_of_path(const char *coreclr, size_t *ret_len);

/* "framework-dependent", "apphost", ...; "-" for DOTNET_NOT. */
const char *dotnet_kind_name(enum dotnet_kind kind);

#endif
