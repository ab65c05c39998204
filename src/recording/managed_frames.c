/*
 * See managed_frames.h. Answers about chains are kept in a table of fixed size, by address and number of
 * the process's opened memory: another program in the process has another number.
 */
#include "recording/managed_frames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/map.h"
#include "base/vec.h"
#include "code/arch.h"
#include "code/clr_code.h"
#include "code/clr_frame.h"
#include "code/clr_image.h"
#include "code/clr_memory.h"
#include "code/clr_names.h"
#include "dotnet/runtime_memory.h"
#include "trace/trace.h"

#define PROCESSES_MAX  1024u
#define OPEN_GAP_NS    UINT64_C(20000000) /* doubles with each attempt, */
#define OPEN_TRIES_MAX 9u                 /* 10 s in all */
#define ADDRESS_BITS   48u
#define MARKS          8192u /* a power of two */

struct frames_process {
	uint32_t pid;
	uint16_t number;
	bool refused; /* it has no runtime that can be read */
	uint32_t tries;
	uint64_t open_ns; /* next attempt */
	struct runtime_memory *memory;
};

/* Whether the method at an address has a frame pointer there. */
struct frame_mark {
	uint64_t key; /* address and number of the process; 0: empty */
	bool frameless;
};

struct managed_frames {
	struct proc_reader *proc;
	struct clr_images images;
	struct clr_pages *pages; /* NULL until a process is opened */
	VEC(struct frames_process) list;
	struct map by_pid; /* pid -> index + 1 */
	uint16_t last_number;
	struct frame_mark *marks; /* NULL until the first is kept */
};

int managed_frames_new(struct proc_reader *proc, const struct arch *arch,
	struct managed_frames **ret_frames)
{
	if (!arch->unwind || !arch->unwind->managed_unwind)
		return -ENOTSUP;
	struct managed_frames *frames = calloc(1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	frames->proc = proc;
	*ret_frames = frames;
	return 0;
}

void managed_frames_free(struct managed_frames *frames)
{
	if (!frames)
		return;
	vec_each(process, &frames->list)
		runtime_memory_close(process->memory);
	vec_done(&frames->list);
	map_done(&frames->by_pid);
	clr_images_done(&frames->images);
	free(frames->pages);
	free(frames->marks);
	free(frames);
}

void managed_frames_forget(struct managed_frames *frames, uint32_t pid)
{
	uint32_t at = map_get(&frames->by_pid, pid);

	if (!at)
		return;
	struct frames_process *process = &frames->list.items[at - 1];
	const struct frames_process *last = vec_last(&frames->list);
	runtime_memory_close(process->memory);
	map_remove(&frames->by_pid, pid, at);
	if (last != process) {
		map_remove(&frames->by_pid, last->pid, frames->list.count);
		*process = *last;
		/* there is room: two entries were removed */
		(void)map_add(&frames->by_pid, process->pid, at);
	}
	frames->list.count--;
}

/* NULL without memory. */
static struct frames_process *find_process(struct managed_frames *frames, uint32_t pid)
{
	uint32_t at = map_get(&frames->by_pid, pid);

	if (at)
		return &frames->list.items[at - 1];
	/* All of them are opened again when they are needed. */
	while (frames->list.count >= PROCESSES_MAX)
		managed_frames_forget(frames, frames->list.items[0].pid);
	if (++frames->last_number == 0) {
		if (frames->marks)
			memset(frames->marks, 0, MARKS * sizeof(*frames->marks));
		++frames->last_number;
	}
	const struct frames_process process = { .pid = pid, .number = frames->last_number };
	if (!vec_add(&frames->list, process))
		return NULL;
	if (!map_add(&frames->by_pid, pid, frames->list.count)) {
		frames->list.count--;
		return NULL;
	}
	return vec_last(&frames->list);
}

static bool open_process(struct managed_frames *frames, struct frames_process *process)
{
	if (process->memory || process->refused)
		return process->memory != NULL;
	uint64_t now_ns = clock_monotonic_ns();
	if (now_ns < process->open_ns)
		return false;
	process->open_ns = now_ns + (OPEN_GAP_NS << process->tries);
	if (!frames->pages)
		frames->pages = calloc(1, sizeof(*frames->pages));
	int result = frames->pages ? runtime_memory_open(frames->proc, process->pid,
					     &frames->images, frames->pages, &process->memory)
				   : -ENOMEM;
	/* -ENODATA: the runtime may still be starting */
	if (result < 0)
		process->refused = result != -ENODATA || ++process->tries == OPEN_TRIES_MAX;
	return result == 0;
}

static enum clr_frame find_frame(struct runtime_memory *memory, uint64_t address, bool exact,
	struct managed_frame *frame, bool *ret_lasts)
{
	struct clr_code *code = clr_names_code(memory->names);
	enum clr_frame found = clr_frame_find(code, address, exact, &frame->rules, ret_lasts);

	if (found != CLR_FRAME_NONE)
		return found;
	/* Pages that were read before the code was written: once more, as of now. */
	clr_memory_refresh(clr_names_memory(memory->names));
	return clr_frame_find(code, address, exact, &frame->rules, ret_lasts);
}

static void find_of(struct managed_frames *frames, struct frames_process *process, uint64_t address,
	bool exact, struct managed_frame *ret_frame)
{
	bool lasts = true;

	ret_frame->kind = MANAGED_FRAME_UNKNOWN;
	ret_frame->transient = false;
	if (!process || !open_process(frames, process)) {
		ret_frame->transient = process && !process->refused;
		return;
	}
	switch (find_frame(process->memory, address, exact, ret_frame, &lasts)) {
	case CLR_FRAME_NONE:
		ret_frame->kind = MANAGED_FRAME_STUB;
		break;
	case CLR_FRAME_UNKNOWN:
		break;
	case CLR_FRAME_RULES:
		ret_frame->kind = MANAGED_FRAME_RULES;
		break;
	}
	ret_frame->transient = !lasts;
}

void managed_frames_find(struct managed_frames *frames, uint32_t pid, uint64_t address, bool exact,
	struct managed_frame *ret_frame)
{
	find_of(frames, find_process(frames, pid), address, exact, ret_frame);
}

/* Whether a walk by frame pointers misses the caller of the method at this address. */
static bool is_frameless(struct managed_frames *frames, struct frames_process *process,
	uint64_t address, bool exact)
{
	uint64_t key = address | (uint64_t)process->number << ADDRESS_BITS;
	uint64_t slot = key * UINT64_C(0x9e3779b97f4a7c15) >> 40 & (MARKS - 1);
	bool lasts;

	if (frames->marks && frames->marks[slot].key == key)
		return frames->marks[slot].frameless;
	if (!open_process(frames, process))
		return false;
	bool frameless = clr_frame_misses_caller(clr_names_code(process->memory->names), address,
		exact, &lasts);
	if (!frames->marks)
		frames->marks = calloc(MARKS, sizeof(*frames->marks));
	if (frames->marks && lasts)
		frames->marks[slot] = (struct frame_mark){ key, frameless };
	return frameless;
}

uint32_t managed_frames_mark(struct managed_frames *frames, uint32_t pid, uint64_t *chain,
	uint32_t count, uint32_t room, bool leaf)
{
	struct frames_process *process = count ? find_process(frames, pid) : NULL;

	if (!process || process->refused)
		return count;
	/* The last frame has no caller that could be missing. */
	for (uint32_t i = 0; i + 1 < count && count < room; i++) {
		bool exact = leaf && i == 0;
		uint64_t address = exact ? chain[i] : chain[i] - 1;
		if (address >> ADDRESS_BITS || !is_frameless(frames, process, address, exact))
			continue;
		memmove(chain + i + 2, chain + i + 1, (count - i - 1) * sizeof(*chain));
		chain[++i] = STACK_LOST_CALLER;
		count++;
	}
	return count;
}

void managed_frames_pass(struct managed_frames *frames)
{
	if (frames->pages)
		clr_pages_pass(frames->pages);
}

uint64_t managed_frames_size_bytes(const struct managed_frames *frames)
{
	if (!frames)
		return 0;
	return sizeof(*frames) + frames->images.size_bytes +
	       (frames->pages ? sizeof(*frames->pages) : 0) +
	       (frames->marks ? MARKS * sizeof(*frames->marks) : 0) +
	       frames->list.capacity * sizeof(struct frames_process) +
	       map_size_bytes(&frames->by_pid);
}
