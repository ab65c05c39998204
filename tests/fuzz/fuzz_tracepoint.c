/* The format file of a tracepoint; the first bytes of the input are raw data of a sample. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "perf/tracepoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tracepoint_field fields[] = { { .name = "pid" }, { .name = "prev_state" } };
	struct tracepoint tracepoint;
	char *text = malloc(size + 1); /* of the exact size */

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (tracepoint_parse(text, fields, 2, &tracepoint) == 0)
		for (size_t i = 0; i < 2; i++)
			(void)tracepoint_value(&fields[i], data, size); /* any number */
	free(text);
	return 0;
}
