/* See io_call.h. */
#include "trace/io_call.h"

#include <string.h>

static const struct {
	const char *name;
	enum io_call_kind kind;
} calls[IO_CALLS] = {
	[IO_CALL_NONE] = { "", IO_CALL_OTHER },
#define IO_CALL(name, kind) [IO_CALL_##name] = { #name, IO_CALL_##kind },
#include "trace/io_calls.def"
#undef IO_CALL
};

const char *io_call_name(unsigned call)
{
	return call < IO_CALLS ? calls[call].name : "";
}

static const char *const things[IO_THINGS] = {
	[IO_THING_UNKNOWN] = "unknown",
	[IO_THING_FILE] = "file",
	[IO_THING_SOCKET] = "socket",
	[IO_THING_PIPE] = "pipe",
	[IO_THING_OTHER] = "other",
};

const char *io_thing_name(unsigned thing)
{
	return things[thing < IO_THINGS ? thing : IO_THING_UNKNOWN];
}

enum io_thing io_thing_of(const char *name)
{
	for (unsigned i = 0; i < IO_THINGS; i++)
		if (strcmp(things[i], name) == 0)
			return (enum io_thing)i;
	return IO_THING_UNKNOWN;
}

enum io_call_kind io_call_kind_of(const char *name)
{
	for (unsigned i = IO_CALL_NONE + 1; i < IO_CALLS; i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].kind;
	return IO_CALL_OTHER;
}
