/* See thread_dump.h. */
#include "stacks/thread_dump.h"

#include <errno.h>
#include <stddef.h>

#include "trace/symbolmap.h"

int thread_dump_init(struct thread_dump *dump)
{
	*dump = (struct thread_dump){ 0 };
	return vec_push(&dump->frames) ? 0 : -ENOMEM;
}

void thread_dump_done(struct thread_dump *dump)
{
	strtab_done(&dump->texts);
	vec_done(&dump->frames);
	map_done(&dump->frame_index);
	stack_table_done(&dump->stacks);
	vec_done(&dump->threads);
	vec_done(&dump->members);
	vec_done(&dump->groups);
}

uint32_t thread_dump_frame(struct thread_dump *dump, const struct dump_frame *frame)
{
	uint64_t key = hash_u64(((uint64_t)frame->name << 32 | frame->module) ^
				(uint64_t)frame->kind << 57);

	for (struct map_walk w = map_find(&dump->frame_index, key); w.value; map_next(&w)) {
		const struct dump_frame *known = &dump->frames.items[w.value];
		if (known->name == frame->name && known->module == frame->module &&
			known->kind == frame->kind && known->gap == frame->gap)
			return w.value;
	}
	if (!vec_add(&dump->frames, *frame))
		return 0;
	uint32_t index = dump->frames.count - 1;

	return map_add(&dump->frame_index, key, index) ? index : 0;
}

bool dump_frame_is_managed(const struct dump_frame *frame)
{
	return frame->kind == FUNCTION_JIT || frame->kind == FUNCTION_READYTORUN ||
	       (frame->kind == FUNCTION_UNKNOWN && !frame->gap && !frame->module);
}

struct dump_thread *thread_dump_find(struct thread_dump *dump, uint64_t inner_tid)
{
	for (uint32_t i = 0; i < dump->threads.count; i++)
		if (dump->threads.items[i].inner_tid == inner_tid)
			return &dump->threads.items[i];
	return NULL;
}
