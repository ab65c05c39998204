/* Mangled names. */
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "code/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes out = { 0 };

	if (!demangle((const char *)data, size, &out) && out.len)
		__builtin_trap();
	bytes_done(&out);
	return 0;
}
