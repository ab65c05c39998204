/* Names of managed methods, converted to readable ones and split. */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "code/method_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct method_name name;
	struct bytes out = { 0 };

	if (!method_name_parse((const char *)data, size, &name))
		return 0;
	method_name_format(&name, METHOD_NAME_SHORT, &out);
	bytes_reset(&out);
	method_name_format(&name, METHOD_NAME_LONG, &out);
	/* A readable name is not much longer: each word grows by a few letters. */
	if (out.len > 16 * size + 64)
		__builtin_trap();
	method_name_format(&name, METHOD_NAME_RAW, &out);
	bytes_done(&out);
	return 0;
}
