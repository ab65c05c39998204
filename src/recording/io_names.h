/*
 * The names of files, sockets and pipes that system calls were about (perf/io_probe.h).
 *
 *   io_names_learn(&names, number, name)       each name that the probe passes
 *   io_names_of(&names, probe, &sum, &text, &len)
 *   io_names_done(&names)
 *
 * A name that the process passed itself is certain. Of other descriptors /proc/PID/fd is read, now: it counts if the
 * probe says that the descriptor is still the same. Bounded: of numbers and of links the latest are kept.
 * All zero is empty.
 */
#ifndef SPOOR_RECORDING_IO_NAMES_H
#define SPOOR_RECORDING_IO_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/map.h"
#include "base/vec.h"
#include "trace/io_call.h"

struct io_name;
struct io_probe;
struct io_sum;
struct proc_reader;

#define IO_NAMES_KEPT 16384u
#define IO_LINKS_KEPT 4096u

struct io_known_name {
	uint32_t number; /* 0: none */
	bool is_address;
	char *text;
};

/* The file of a descriptor that was open before the recording, as /proc had it when it was last read. */
struct io_known_link {
	uint64_t key; /* pid, descriptor */
	char *text;
};

struct io_names {
	struct proc_reader *proc;      /* borrowed, set by the session */
	struct io_known_name *numbers; /* IO_NAMES_KEPT of them, by number */
	VEC(struct io_known_link) links;
	struct map link_index;
	struct bytes text; /* the last result of io_names_of() */
};

/* Without memory the name stays unknown. */
void io_names_learn(struct io_names *names, uint32_t number, const struct io_name *name);

/* *ret_text is borrowed until the next call; "": not known. */
enum io_thing io_names_of(struct io_names *names, const struct io_probe *probe,
	const struct io_sum *sum, const char **ret_text);

/* What a link of /proc/PID/fd is to. */
enum io_thing io_names_thing_of_link(const char *link);

size_t io_names_size_bytes(const struct io_names *names);
void io_names_done(struct io_names *names);

#endif
