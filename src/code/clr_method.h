/*
 * The name of a managed method from its MethodDesc, in the memory of a .NET process: spelled as the
 * runtime's own events have it (namespace and type, name, signature).
 *
 * The token leads to a method of the module's metadata and the type to another row of it. Both must
 * agree, or there is no name.
 */
#ifndef SPOOR_CODE_CLR_METHOD_H
#define SPOOR_CODE_CLR_METHOD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct clr_layout;
struct clr_memory;
struct clr_modules;

struct clr_namer {
	struct clr_memory *memory; /* borrowed, as is what follows */
	const struct clr_layout *layout;
	struct clr_modules *modules;
	struct bytes text; /* of the last name */
	bool lasts;        /* the current method is not collectible, so neither are its types */
	uint64_t disagreed_count; /* methods whose token and type did not agree */
};

struct clr_method_text {
	const char *name_space; /* borrowed until the next call, as are the other texts */
	const char *name;
	const char *signature; /* "instance void  (int32)" */
	uint64_t module;       /* 0: none */
	uint64_t native_code;  /* of a dynamic method: what it says of its own code; 0: nothing */
	uint32_t token;
	bool dynamic;
	bool freed; /* its code may be freed: of a DynamicMethod, not of a stub of the runtime */
};

/* `lasts` is false for methods of collectible code. False: no name. */
bool clr_method_read(struct clr_namer *namer, uint64_t method, bool lasts,
	struct clr_method_text *ret_text);

/* The name of a type. False: nothing is added. */
bool clr_method_add_type(struct clr_namer *namer, uint64_t type, struct bytes *out);

void clr_method_done(struct clr_namer *namer);

#endif
