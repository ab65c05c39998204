/*
 * The tier of JIT code, in the memory of a .NET process: from the versions that the runtime has of a
 * method's code (NativeCodeVersionNode). .NET 10 describes where they are, except for the tier itself;
 * 9 has them at the same places; 8 has them in a table that is not read.
 *
 * A version gives a tier only if its method and its code are the ones in question. The first code of a
 * method has no version record: it is of tier 0 when the runtime has made a later one
 * because of it. Other code has no tier here: first code that has not been replaced so far, and methods
 * without tiers.
 */
#ifndef SPOOR_CODE_CLR_TIER_H
#define SPOOR_CODE_CLR_TIER_H

#include "code/codemap.h"

struct clr_body;
struct clr_layout;
struct clr_memory;

/* `body` is of JIT code, and of no dynamic method. TIER_UNKNOWN: the tier is not known. */
enum code_tier clr_tier_read(struct clr_memory *memory, const struct clr_layout *layout,
	const struct clr_body *body);

#endif
