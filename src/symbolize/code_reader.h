/*
 * Writes the machine code of sampled managed code to the file (CodeBytes), read from the memory of its
 * process: what disassembly and a jitdump need, and no file has. Part of the symbolizer.
 *
 * A body is read when it is written, up to a second after its first sample. Code that the runtime can
 * free is not read, because other code may be in its place by then. The descriptor of a process's
 * memory is opened once: after an exec it reads nothing, so no bytes of another program are taken.
 */
#ifndef SPOOR_SYMBOLIZE_CODE_READER_H
#define SPOOR_SYMBOLIZE_CODE_READER_H

#include <stdint.h>

struct code;
struct symbolizer;
struct symbolizer_process;

/* 0, or a negative errno of the file; a body that cannot be read is counted. */
int code_reader_write(struct symbolizer *symbolizer, uint32_t process, const struct code *code,
	uint64_t mapping_id);

/* Closes the memory of a process. */
void code_reader_forget(struct symbolizer *symbolizer, struct symbolizer_process *process);

#endif
