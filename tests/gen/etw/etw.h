/* What a test does with the sessions of etw.c. */
#ifndef TESTS_GEN_ETW_ETW_H
#define TESTS_GEN_ETW_ETW_H

#include <stdint.h>

void etw_session(int on, unsigned level, uint64_t keywords);

#endif
