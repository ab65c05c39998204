/*
 * The stack of a target. The first byte is the number of managed frames that follow, each as the
 * index of a word of the stack. Then the stack. A word is a return address if bit 0 of its low byte
 * is set, and a start of a thread if bit 1 is set.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "code/frame_chain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FRAMES_MAX  64u
#define MANAGED_MAX 8u
#define STACK_AT    UINT64_C(0x100)

static bool is_return(void *context, uint64_t address, uint64_t *ret_target)
{
	(void)context;
	*ret_target = address & 4 ? address & ~UINT64_C(0xff) : 0;
	return address & 1;
}

static bool is_start(void *context, uint64_t address)
{
	(void)context;
	return address & 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t managed[MANAGED_MAX] = { 0 };
	uint64_t frames[FRAMES_MAX];
	uint32_t skipped;

	if (!size || size < 1u + data[0] % MANAGED_MAX)
		return 0;
	uint32_t managed_count = data[0] % MANAGED_MAX;
	const uint8_t *which = data + 1;
	size_t count = (size - 1 - managed_count) / 8;
	uint64_t *words = malloc((count + !count) * 8);

	if (!words)
		return 0;
	memcpy(words, which + managed_count, count * 8);
	for (uint32_t i = 0; i < managed_count; i++)
		managed[i] = count ? words[which[i] % count] : which[i];
	const struct frame_chain chain = { .words = words,
		.count = count,
		.sp = STACK_AT,
		.is_return = is_return,
		.is_start = is_start };
	uint32_t found =
		frame_chain_find(&chain, managed, managed_count, frames, FRAMES_MAX, &skipped);
	if (found > FRAMES_MAX || (managed_count && skipped >= managed_count))
		abort();
	for (uint32_t i = 0; i < found; i++) {
		bool there = false;
		for (size_t j = 0; j < count && !there; j++)
			there = words[j] == frames[i];
		if (!there)
			abort();
	}
	free(words);
	return 0;
}
