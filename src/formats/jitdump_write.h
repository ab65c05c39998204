/*
 * Writes jitdumps (jit-PID.dump), from which `perf inject --jit` makes an image with symbols and source
 * lines for each body of code (code/jitdump.h reads them):
 *
 *   jitdump_write_head(&out, "x86_64", pid, time_ns)
 *   jitdump_write_body(&out, &body, &owner)      each body
 */
#ifndef SPOOR_FORMATS_JITDUMP_WRITE_H
#define SPOOR_FORMATS_JITDUMP_WRITE_H

#include <stdint.h>

struct bytes;

/* From this offset on, the code is from this line. */
struct jitdump_line {
	uint32_t offset;
	uint32_t line;
	const char *file;
};

struct jitdump_body {
	uint64_t begin;
	const uint8_t *code;
	uint32_t size;
	const char *name;
	const struct jitdump_line *lines; /* by offset */
	uint32_t line_count;              /* 0: its lines are not known */
	uint64_t number;                  /* unique in the file */
};

struct jitdump_owner {
	uint32_t pid;
	uint64_t time_ns; /* the code exists from then on; CLOCK_MONOTONIC */
};

/* `machine` as uname(2) has it. */
void jitdump_write_head(struct bytes *out, const char *machine, const struct jitdump_owner *owner);

/* Names are cut at JITDUMP_NAME_MAX. */
void jitdump_write_body(struct bytes *out, const struct jitdump_body *body,
	const struct jitdump_owner *owner);

#endif
