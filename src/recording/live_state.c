/* See live_state.h. */
#include "recording/live_state.h"

uint32_t live_text(struct live *live, const char *text, size_t len)
{
	return strtab_add(&live->trace.strings, text, len);
}

uint32_t live_main_thread(const struct live *live, uint32_t process)
{
	return live->trace.processes.items[process].main_thread;
}
