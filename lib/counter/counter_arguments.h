/* What tools write into a provider's filter arguments, and numbers as they want to read them: both without regard to the program's locale. */
#ifndef SPOOR_LIB_COUNTER_COUNTER_ARGUMENTS_H
#define SPOOR_LIB_COUNTER_COUNTER_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The value of `key` in "key=value;key="a;b=c";...", the quotation marks taken off. NULL when it is not there or memory ran out; the caller frees. Keys are
 * compared exactly.
 */
char *argument_find(const char *arguments, const char *key);

/* A decimal number with a point; false when the text is none. */
bool argument_number(const char *text, double *ret_value);

/* The shortest of 15, 16 or 17 digits that reads back as the same number, with a point. */
#define ARGUMENT_NUMBER_MAX 40
void argument_print(double value, char text[ARGUMENT_NUMBER_MAX]);

#endif
