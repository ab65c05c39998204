/* A range of code that the program generated at run time and announced by spoor_code_add(). */
#ifndef SPOOR_LIB_CODE_CODE_RANGE_H
#define SPOOR_LIB_CODE_CODE_RANGE_H

#include <spoor/code.h>

#define CODE_MAX       (1u << 20)
#define CODE_NAME_MAX  4096u
#define CODE_LINES_MAX 65536u

struct code_lines {
	uint32_t count;
	struct spoor_code_line line[]; /* `file` is never NULL; the texts follow the array */
};

struct announced_code {
	uint64_t begin;
	uint64_t size;
	uint64_t id; /* unique in the process; not used again */
	char *name;
	char *module;
	char *signature;
	struct code_lines *lines;
	/* removed by the program; still resolves addresses until another range replaces it */
	bool removed;
};

#endif
