/*
 * Names that generated C code cannot use: keywords of C and C++, and what headers of the system
 * declare. They are for C and C++ at once.
 */
#ifndef SPOOR_GEN_C_WORDS_H
#define SPOOR_GEN_C_WORDS_H

#include <stdbool.h>

/* A keyword, a macro or a type: no parameter may be called so. */
bool c_word_is_reserved(const char *name);

/* Also the name of a header without ".h", or a function of libc: no provider may be called so. */
bool c_word_is_system(const char *name);

#endif
