/*
 * Reads filter arguments of a provider, and converts numbers. Both are independent of the program's
 * locale.
 */
#ifndef SPOOR_LIB_COUNTER_COUNTER_ARGUMENTS_H
#define SPOOR_LIB_COUNTER_COUNTER_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The value of `key` in "key=value;key="a;b=c";...", without quotation marks; keys are compared
 * exactly. NULL: no such key, or no memory. The caller frees.
 */
char *argument_find(const char *arguments, const char *key);

/* Reads a decimal number with a point; false: the text is not a number. */
bool argument_number(const char *text, double *ret_value);

/*
 * Writes the shortest of 15, 16 or 17 digits that reads back as the same number, with a decimal
 * point.
 */
#define ARGUMENT_NUMBER_MAX 40
void argument_print(double value, char text[ARGUMENT_NUMBER_MAX]);

#endif
