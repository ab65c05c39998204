/*
 * Demangles names of Swift functions ("$s...", the form since Swift 5) into the path of the function,
 * without types:
 *
 *   $s4shop7PricingC4burnyS2iF          shop.Pricing.burn
 *   $s4shop7PricingC5totalSivg          shop.Pricing.total.getter
 *   $s4main3fooyySiFyyXEfU_             closure #1 in main.foo
 *
 * The whole name is parsed, so that no part of another kind of symbol is taken for a path. What is
 * rare (specializations, thunks, extensions with constraints, names in Punycode) is not demangled.
 */
#ifndef SPOOR_CODE_SWIFT_NAME_H
#define SPOOR_CODE_SWIFT_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct bytes;

/* Appends the path; false, and nothing appended: it is no name of a Swift function, or a rare one. */
bool swift_name(const char *name, size_t len, struct bytes *out);

#endif
