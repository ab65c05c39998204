/*
 * Text of /proc about a thread: the kernel writes it, but modules and programs can choose names in
 * it. The first byte selects the parser.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "machine/thread_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proc_thread_state state = { 0 };
	char out[64];

	if (!size)
		return 0;
	char *text = malloc(size); /* of the exact size */
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	if (data[0] % 4 == 2) {
		(void)thread_state_parse_switches(text, size - 1); /* any number */
	} else if (data[0] % 2 == 0) {
		if (thread_state_parse_syscall(text, size - 1, &state) && state.syscall < -1)
			abort();
	} else {
		thread_state_parse_stack(text, size - 1, out, sizeof(out));
		if (strlen(out) && out[strlen(out) - 1] != '\n')
			abort();
	}
	free(text);
	return 0;
}
