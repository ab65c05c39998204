/*
 * A frame is two words: the caller's frame pointer and the return address (x86-64 and arm64 alike). The chain has to climb, stay aligned and stay in
 * the mapping that the stack stands in, which is looked up once a thread and again where the stack has grown below it or is another one.
 */
#include "lib/event/stack_walk.h"

#include "lib/platform/platform.h"

#define FRAME_ALIGNMENT (sizeof(uintptr_t) - 1)

/* Other people's frames, with the red zones of sanitizers between them. */
__attribute__((no_sanitize("address", "thread", "undefined"))) size_t stack_walk(struct stack_bounds *bounds, uintptr_t frame,
	uint64_t *frames, size_t frames_max)
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
