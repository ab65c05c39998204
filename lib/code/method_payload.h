/* The events by which .NET tells of a method's code, MethodLoadVerbose and its kin, version 1: readers know them by provider and id. */
#ifndef SPOOR_LIB_CODE_METHOD_PAYLOAD_H
#define SPOOR_LIB_CODE_METHOD_PAYLOAD_H

#include "lib/event/payload.h"

#define METHOD_FIELDS 10u
#define METHOD_JITTED 0x8u /* code at an address of its own */

extern const struct spoor_field method_fields[METHOD_FIELDS];

/* Readers add namespace, a dot and the name: the namespace stays empty, the name is whole. */
void method_payload(struct outbuf *out, uint64_t id, uint64_t module, uint64_t begin, uint64_t size, const char *name, const char *signature);

#endif
