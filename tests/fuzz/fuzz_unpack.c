/*
 * Packed input. Read in large and in small pieces, it gives the same content and the same error,
 * whatever the bytes are.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

#include "base/input.h"
#include "base/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CONTENT_MAX (1u << 20) /* few bytes can unpack to very many */

static uint64_t run(const uint8_t *data, size_t size, size_t piece, ssize_t *ret_end)
{
	static uint8_t content[CONTENT_MAX];
	struct input in;
	size_t len = 0;

	input_from_memory(&in, data, size);
	if (input_unpack(&in, NULL) < 0)
		abort();
	do {
		size_t room = sizeof(content) - len;
		*ret_end = input_read(&in, content + len, room < piece ? room : piece, NULL);
		if (*ret_end > 0)
			len += (size_t)*ret_end;
	} while (*ret_end > 0);
	if (in.offset != len)
		abort();
	input_close(&in);
	if (len == sizeof(content))
		*ret_end = 0; /* more data may follow, valid or broken */
	return hash_bytes(content, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	ssize_t end;
	ssize_t small_end;
	uint64_t whole = run(data, size, CONTENT_MAX, &end);

	if (run(data, size, 1021, &small_end) != whole || small_end != end)
		abort();
	return 0;
}
