/* See lock_owners.h. */
#include "stacks/lock_owners.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/diag.h"
#include "code/clr_image.h"
#include "code/clr_locks.h"
#include "code/clr_names.h"
#include "dotnet/runtime_memory.h"
#include "machine/proc.h"
#include "machine/target_root.h"
#include "machine/thread_state.h"
#include "stacks/thread_dump.h"

#define STACK_BYTES (16u << 10) /* of a waiting thread: down to the method that waits */

static void find_owner(const struct runtime_memory *memory, struct proc_reader *proc,
	struct thread_dump *dump, uint32_t index, uint64_t *stack)
{
	struct dump_thread *thread = &dump->threads.items[index];
	struct proc_thread_state state;
	uint64_t tid;

	if (thread_state_read(proc, dump->pid, thread->tid, &state) < 0 || !state.sp ||
		state.sp % 8)
		return;
	ssize_t size = target_memory_read(memory->fd, state.sp, stack, STACK_BYTES);
	for (size_t i = 0; size > 0 && i < (size_t)size / 8; i++) {
		if ((i && stack[i] == stack[i - 1]) ||
			!clr_locks_owner(clr_names_layout(memory->names),
				clr_names_memory(memory->names), stack[i], &tid))
			continue;
		const struct dump_thread *owner = thread_dump_find(dump, tid);
		if (!owner || owner == thread)
			continue;
		thread->lock = stack[i];
		thread->lock_owner = owner->tid;
		return;
	}
}

void lock_owners_find(struct thread_dump *dump)
{
	struct clr_images images = { .size_bytes = 0 };
	struct runtime_memory *memory = NULL;
	struct proc_reader proc;
	struct diag diag = { 0 };
	uint32_t first = 0;

	while (first < dump->threads.count && (!dump->threads.items[first].waits_for_lock ||
						      dump->threads.items[first].lock_owner))
		first++;
	if (first == dump->threads.count || dump->values_withheld || proc_open(&proc, &diag) < 0)
		return;
	uint64_t *stack = malloc(STACK_BYTES);
	/* without kept pages: the locks change while they are read */
	if (stack && runtime_memory_open(&proc, dump->pid, &images, NULL, &memory) == 0)
		for (uint32_t i = first; i < dump->threads.count; i++)
			if (dump->threads.items[i].waits_for_lock &&
				!dump->threads.items[i].lock_owner)
				find_owner(memory, &proc, dump, i, stack);
	runtime_memory_close(memory);
	clr_images_done(&images);
	free(stack);
	proc_close(&proc);
}
