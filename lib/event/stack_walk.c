/*
 * A frame is two words: the caller's frame pointer and the return address, on x86-64 and arm64.
 * Each frame must be at a higher address than the one before, aligned, and in the mapping of the
 * stack. The mapping is looked up once per thread, and again when a frame is outside of it.
 */
#include "lib/event/stack_walk.h"

#include "lib/platform/platform.h"

#define FRAME_ALIGNMENT (sizeof(uintptr_t) - 1)

/* Reads frames of other functions, and the red zones that sanitizers put between them. */
__attribute__((no_sanitize("address", "thread", "undefined"))) size_t
stack_walk(struct stack_bounds *bounds, uintptr_t frame, uint64_t *frames, size_t frames_max)
{
	size_t count = 0;

	if (frame < bounds->low || frame >= bounds->high) {
		if (!platform_memory_around(frame, &bounds->low, &bounds->high)) {
			bounds->low = bounds->high = 0;
			return 0;
		}
	}
	uintptr_t end = bounds->high - 2 * sizeof(uintptr_t);
	while (count < frames_max && frame && !(frame & FRAME_ALIGNMENT) && frame <= end) {
		uintptr_t caller = ((const uintptr_t *)frame)[0];
		uintptr_t address = ((const uintptr_t *)frame)[1];
		if (address < 4096)
			break;
		frames[count++] = address;
		if (caller <= frame)
			break;
		frame = caller;
	}
	return count;
}
