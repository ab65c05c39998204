/* See kind.h. */
#include "dotnet/kind.h"

#include <string.h>

#include "base/text.h"
#include "dotnet/port.h"

enum dotnet_kind dotnet_kind_of(unsigned signs, const char *program, const char *coreclr)
{
	size_t folder = (size_t)(text_base_name(program) - program);

	if (signs & DOTNET_SIGN_CORECLR) {
		if (!strcmp(text_base_name(program), "dotnet"))
			return DOTNET_FRAMEWORK;
		if (folder && (size_t)(text_base_name(coreclr) - coreclr) == folder &&
			!memcmp(program, coreclr, folder))
			return DOTNET_SELF_CONTAINED;
		return DOTNET_APPHOST;
	}
	if (signs & DOTNET_SIGN_MONO)
		return DOTNET_MONO;
	if (signs & DOTNET_SIGN_JIT_MEMORY)
		return DOTNET_SINGLE_FILE;
	return DOTNET_NOT;
}

enum dotnet_kind dotnet_kind_of_export(const char *name)
{
	if (!strcmp(name, "DotNetRuntimeInfo"))
		return DOTNET_SINGLE_FILE;
	if (!strcmp(name, "DotNetRuntimeDebugHeader"))
		return DOTNET_NATIVEAOT;
	return DOTNET_NOT;
}

const char *dotnet_version_of_path(const char *coreclr, size_t *ret_len)
{
	static const char framework[] = "/Microsoft.NETCore.App/";
	const char *at = strstr(coreclr, framework);

	if (!at)
		return NULL;
	at += sizeof(framework) - 1;
	size_t len = strcspn(at, "/");

	if (!len || at[len] != '/' || *at < '0' || *at > '9')
		return NULL;
	*ret_len = len;
	return at;
}

const char *dotnet_kind_name(enum dotnet_kind kind)
{
	static const char *const names[] = {
		[DOTNET_NOT] = "-",
		[DOTNET_FRAMEWORK] = "framework-dependent",
		[DOTNET_APPHOST] = "apphost",
		[DOTNET_SELF_CONTAINED] = "self-contained",
		[DOTNET_SINGLE_FILE] = "single-file",
		[DOTNET_NATIVEAOT] = "NativeAOT",
		[DOTNET_MONO] = "Mono",
		[DOTNET_LIBSPOOR] = "libspoor",
		[DOTNET_UNKNOWN] = "?",
	};

	return names[kind];
}
