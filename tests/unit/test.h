/* The common start of every unit test: cmocka, and the headers that it requires. */
#ifndef SPOOR_TESTS_UNIT_TEST_H
#define SPOOR_TESTS_UNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
