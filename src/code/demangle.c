/*
 * See demangle.h. libiberty does the work, but for Swift (swift_name.h); its limit on recursion and a limit on the length keep
 * names that were crafted to be expensive cheap.
 */
#include "code/demangle.h"

#include <string.h>

#include <libiberty/demangle.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "code/swift_name.h"

/* Where "17h0123456789abcdef" of "crate::function::h0123456789abcdef" begins; `len`: nowhere */
static size_t rust_hash(const char *name, size_t len)
{
	if (len < 20 || memcmp(name + len - 19, "::h", 3) != 0)
		return len;
	for (size_t i = len - 16; i < len; i++) {
		char c = name[i];
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return len;
	}
	return len - 19;
}

/* "_D3std5stdio...": a length follows. "_Dmain" is the program's entry. */
static bool is_d(const char *name)
{
	return name[1] == 'D' &&
	       ((name[2] >= '1' && name[2] <= '9') || strcmp(name, "_Dmain") == 0);
}

bool demangle(const char *name, size_t len, struct bytes *out)
{
	char buffer[DEMANGLE_INPUT_MAX + 1];

	if (len <= DEMANGLE_INPUT_MAX && len > 3 && name[name[0] == '_'] == '$')
		return swift_name(name, len, out);
	/* "_Z", "_R", "_D" and the prefixed forms of macOS: the demangler would accept others. */
	if (len < 3 || len > DEMANGLE_INPUT_MAX || name[0] != '_' ||
		(name[1] != 'Z' && name[1] != 'R' && name[1] != 'D' && memcmp(name, "__Z", 3) != 0))
		return false;
	if (memchr(name, 0, len))
		return false;
	memcpy(buffer, name, len);
	buffer[len] = 0;
	const char *mangled = buffer[1] == '_' ? buffer + 1 : buffer;
	if (mangled[1] == 'D' && !is_d(mangled))
		return false;
	cleanup(freep) char *readable =
		mangled[1] == 'D' ? dlang_demangle(mangled, DMGL_PARAMS)
				  : cplus_demangle(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	if (!readable || !*readable)
		return false;
	size_t size = rust_hash(readable, strlen(readable));
	if (size > DEMANGLE_OUTPUT_MAX) {
		bytes_add(out, readable, DEMANGLE_OUTPUT_MAX);
		bytes_text(out, "...");
	} else {
		bytes_add(out, readable, size);
	}
	return true;
}
