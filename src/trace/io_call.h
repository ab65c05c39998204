/* The system calls for input and output (io_calls.def) and what they are about, by their names in events. Constant data. */
#ifndef SPOOR_TRACE_IO_CALL_H
#define SPOOR_TRACE_IO_CALL_H

enum io_call {
	IO_CALL_NONE,
#define IO_CALL(name, kind) IO_CALL_##name,
#include "trace/io_calls.def"
#undef IO_CALL
	IO_CALLS
};

enum io_call_kind {
	IO_CALL_OTHER, /* of a later version of Spoor */
	IO_CALL_READS,
	IO_CALL_WRITES,
	IO_CALL_OPENS,
	IO_CALL_CONNECTS,
	IO_CALL_ACCEPTS,
	IO_CALL_SYNCS,
	IO_CALL_KINDS
};

/* "pread64"; "" for IO_CALL_NONE and a number that does not exist. */
const char *io_call_name(unsigned call);

enum io_call_kind io_call_kind_of(const char *name);

/* The kind of object that a descriptor refers to. */
enum io_thing {
	IO_THING_UNKNOWN,
	IO_THING_FILE,
	IO_THING_SOCKET,
	IO_THING_PIPE,
	IO_THING_OTHER, /* an eventfd, a timer, ... */
	IO_THINGS
};

/* "file"; "unknown" for a number that does not exist. */
const char *io_thing_name(unsigned thing);

/* IO_THING_UNKNOWN: no such name. */
enum io_thing io_thing_of(const char *name);

#endif
