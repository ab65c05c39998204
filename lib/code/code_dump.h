/* The files that tell perf about generated code. Called with the lock of code.c held. */
#ifndef SPOOR_LIB_CODE_CODE_DUMP_H
#define SPOOR_LIB_CODE_CODE_DUMP_H

#include "lib/code/code_range.h"

int code_dump_open(uint32_t files, const char *folder);
void code_dump_close(uint32_t files);
uint32_t code_dump_files(void); /* the files that are open */

void code_dump_add(const struct announced_code *range, uint32_t files);
void code_dump_move(const struct announced_code *range, uint64_t from);

/* code_dump_linux.c: makes perf notice the file. NULL: the system does not permit it. */
void *code_dump_mark(int fd);
void code_dump_unmark(void *mark);

/* In the child of fork(): closes the parent's files. */
void code_dump_forget(void);

#endif
