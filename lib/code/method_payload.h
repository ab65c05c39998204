/*
 * The layout of the events for a method's code in .NET (MethodLoadVerbose and similar ones),
 * version 1. Readers know them by provider and id.
 */
#ifndef SPOOR_LIB_CODE_METHOD_PAYLOAD_H
#define SPOOR_LIB_CODE_METHOD_PAYLOAD_H

#include "lib/event/payload.h"

#define METHOD_FIELDS 10u
#define METHOD_JITTED 0x8u /* the method has code of its own, not that of a precompiled image */

extern const struct spoor_field method_fields[METHOD_FIELDS];

/*
 * Readers show namespace, a dot and the name. The namespace stays empty, and the name is complete.
 */
void method_payload(struct outbuf *out, uint64_t id, uint64_t module, uint64_t begin, uint64_t size,
	const char *name, const char *signature);

#endif
