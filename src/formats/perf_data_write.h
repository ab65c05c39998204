/*
 * Writes CPU samples as a perf.data file, in the order of the calls: perf sorts by time.
 *
 *   perf_data_begin(&out, fd, period_ns, &diag)
 *   perf_data_sample(&out, &sample), perf_data_comm(...), perf_data_map(...)      any number, in any order
 *   perf_data_end(&out)                                                           0, or the first error
 *
 * All records have the thread, the time and the CPU. The caller frees nothing, and keeps fd.
 */
#ifndef SPOOR_FORMATS_PERF_DATA_WRITE_H
#define SPOOR_FORMATS_PERF_DATA_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct perf_data {
	int fd;
	struct bytes out; /* not yet written */
	uint64_t written; /* bytes of the file */
	int error;
};

/* Whose record it is, and when. */
struct perf_data_place {
	uint32_t pid;
	uint32_t tid;
	uint64_t time_ns;
	int32_t cpu; /* below 0: not known */
};

struct perf_data_map {
	uint64_t begin;
	uint64_t end; /* exclusive */
	uint64_t file_offset;
	const char *path;
};

void perf_data_begin(struct perf_data *data, int fd, uint64_t period_ns);

/* `frames`: leaf first; addresses from `kernel_begin` on are the kernel's. */
void perf_data_sample(struct perf_data *data, const struct perf_data_place *place,
	uint64_t weight_ns, const uint64_t *frames, uint32_t count, uint64_t kernel_begin);

/* The name of a thread. */
void perf_data_comm(struct perf_data *data, const struct perf_data_place *place, const char *name);

/* Executable memory of a process. */
void perf_data_map(struct perf_data *data, const struct perf_data_place *place,
	const struct perf_data_map *map);

/* Writes the rest. 0 or a negative errno. */
int perf_data_end(struct perf_data *data);

#endif
