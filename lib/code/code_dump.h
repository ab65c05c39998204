/*
 * The files by which perf learns of generated code. Under the lock of code.c.
 */
#ifndef SPOOR_LIB_CODE_CODE_DUMP_H
#define SPOOR_LIB_CODE_CODE_DUMP_H

#include "lib/code/code_range.h"

int code_dump_open(uint32_t files, const char *folder);
void code_dump_close(uint32_t files);
uint32_t code_dump_files(void); /* that are being written */

void code_dump_add(const struct code_range *range, uint32_t files);
void code_dump_move(const struct code_range *range, uint64_t from);

/* code_dump_linux.c: makes perf aware of the file. NULL when the system does not let us. */
void *code_dump_mark(int fd);
void code_dump_unmark(void *mark);

/* In the child of a fork: the files are the parent's. */
void code_dump_forget(void);

#endif
