/* See stack_unwinder.h. */
#include "recording/stack_unwinder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/strtab.h"
#include "base/text.h"
#include "code/arch.h"
#include "code/mapping_kind.h"
#include "code/unwind_table.h"
#include "code/unwind_trace.h"
#include "machine/proc.h"
#include "perf/perf_record.h"
#include "recording/code_spaces.h"
#include "recording/managed_frames.h"
#include "recording/unwind_images.h"

#define FRAMES_MAX 2048u
/* how far from the end of the walk a frame is sought that the kernel's chain has as well */
#define JOIN_REACH 16u
/* frames of libc between the start of a thread and the program's first function */
#define OUTER_DEPTH 2u

struct stack_unwinder {
	struct strtab *strings;
	const struct arch *arch;
	struct unwind unwind;
	struct code_spaces spaces;
	struct unwind_images *images;
	struct managed_frames *managed;    /* borrowed; NULL: not known */
	struct managed_frame frame;        /* the last answer of `managed` */
	struct code_space *space;          /* of the current walk */
	stack_unwinder_change_fn *changed; /* NULL: changes are not reported */
	void *changed_user;
	bool hurries;                /* see stack_unwinder_hurry() */
	uint64_t frames[FRAMES_MAX]; /* scratch */
};

/* Code that no table has. */
static void locate_managed(struct stack_unwinder *unwinder, uint64_t address, bool exact,
	struct unwind_place *place)
{
	if (!unwinder->managed)
		return;
	managed_frames_find(unwinder->managed, unwinder->space->pid, address, exact,
		&unwinder->frame);
	place->transient = unwinder->frame.transient;
	place->stub = unwinder->frame.kind == MANAGED_FRAME_STUB;
	if (unwinder->frame.kind == MANAGED_FRAME_RULES)
		place->rules = &unwinder->frame.rules;
}

static bool locate(void *context, uint64_t address, bool exact, struct unwind_place *ret_place)
{
	struct stack_unwinder *unwinder = context;
	struct code_mapping *mapping =
		code_spaces_find(&unwinder->spaces, unwinder->space, address);

	if (!mapping)
		return false;
	*ret_place = (struct unwind_place){ .table = NULL };
	enum mapping_kind kind = mapping_kind_of(strtab_get(unwinder->strings, mapping->path));
	if (kind == MAPPING_JIT || kind == MAPPING_MANAGED_IMAGE)
		locate_managed(unwinder, address, exact, ret_place);
	if (kind != MAPPING_NATIVE && kind != MAPPING_VDSO)
		return true;
	if (!mapping->image)
		mapping->image = unwind_images_number(unwinder->images, mapping);
	if (!mapping->image)
		return true;
	const struct unwind_table *table = unwind_images_table(unwinder->images, mapping->image,
		unwinder->space->pid, mapping);
	ret_place->transient = unwind_images_pending(unwinder->images, mapping->image);
	if (table && unwind_table_vaddr(table, address - mapping->begin + mapping->file_offset,
			     &ret_place->vaddr))
		ret_place->table = table;
	else if (table) /* a file may hold precompiled managed code in no segment */
		locate_managed(unwinder, address, exact, ret_place);
	return true;
}

/* A process whose whole code changes takes another number, so its rows need not be sought. */
static void on_change(void *user, const struct code_space *space, uint64_t begin, uint64_t end)
{
	struct stack_unwinder *unwinder = user;

	if (end != UINT64_MAX)
		unwind_forget_range(&unwinder->unwind, space->number, begin, end);
	if (unwinder->changed)
		unwinder->changed(unwinder->changed_user, space->pid);
}

int stack_unwinder_new(struct strtab *strings, struct proc_reader *proc, const struct arch *arch,
	struct stack_unwinder **ret_unwinder)
{
	if (!arch->unwind)
		return -ENOTSUP;
	struct stack_unwinder *unwinder = calloc(1, sizeof(*unwinder));
	if (!unwinder)
		return -ENOMEM;
	unwinder->strings = strings;
	unwinder->arch = arch;
	unwinder->spaces.proc = proc;
	unwinder->spaces.strings = strings;
	unwinder->spaces.changed = on_change;
	unwinder->spaces.user = unwinder;
	int result = unwind_init(&unwinder->unwind, arch->unwind, locate, unwinder);
	if (result == 0)
		result = unwind_images_new(strings, &unwinder->images);
	if (result < 0) {
		stack_unwinder_free(unwinder);
		return result;
	}
	*ret_unwinder = unwinder;
	return 0;
}

void stack_unwinder_use(struct stack_unwinder *unwinder, struct managed_frames *managed)
{
	unwinder->managed = managed;
}

void stack_unwinder_hurry(struct stack_unwinder *unwinder)
{
	unwinder->hurries = true;
	unwind_images_hurry(unwinder->images);
}

void stack_unwinder_free(struct stack_unwinder *unwinder)
{
	if (!unwinder)
		return;
	unwinder->changed = NULL; /* all spaces end, which is not reported */
	unwind_done(&unwinder->unwind);
	code_spaces_done(&unwinder->spaces);
	unwind_images_free(unwinder->images);
	free(unwinder);
}

static void note_mapping(struct stack_unwinder *unwinder, const struct perf_record *record)
{
	char text[2 * PERF_BUILD_ID_MAX];
	bool deleted;

	if ((record->type == PERF_TYPE_MMAP2 && !(record->protection & PERF_PROT_EXEC)) ||
		record->misc & PERF_MISC_MMAP_DATA || !record->length)
		return;
	struct code_mapping mapping = {
		.begin = record->address,
		.end = record->address + record->length,
		.file_offset = record->file_offset,
		.path = strtab_add(unwinder->strings, record->text,
			proc_strip_deleted(record->text, record->text_len, &deleted)),
	};
	if (record->build_id_size) {
		mapping.build_id = strtab_add(unwinder->strings, text,
			text_put_hex(text, record->build_id, record->build_id_size));
	} else {
		mapping.device = makedev(record->device_major, record->device_minor);
		mapping.inode = record->inode;
	}
	if (mapping.end > mapping.begin)
		code_spaces_map(&unwinder->spaces, record->pid, &mapping, record->time_ns);
}

void stack_unwinder_note(struct stack_unwinder *unwinder, const struct perf_record *record)
{
	switch (record->type) {
	case PERF_TYPE_MMAP:
	case PERF_TYPE_MMAP2:
		note_mapping(unwinder, record);
		break;
	case PERF_TYPE_COMM:
		if (record->exec)
			code_spaces_exec(&unwinder->spaces, record->pid, record->time_ns);
		break;
	case PERF_TYPE_FORK:
		code_spaces_fork(&unwinder->spaces, record->pid, record->parent_pid,
			record->time_ns);
		break;
	case PERF_TYPE_EXIT:
		if (record->pid == record->tid)
			code_spaces_exit(&unwinder->spaces, record->pid);
		break;
	default:
		break;
	}
}

void stack_unwinder_pass(struct stack_unwinder *unwinder)
{
	code_spaces_pass(&unwinder->spaces);
	if (unwinder->hurries)
		unwind_images_hurry(unwinder->images);
}

bool stack_unwinder_knows(const struct stack_unwinder *unwinder, uint32_t pid)
{
	return map_get(&unwinder->spaces.by_pid, pid) != 0;
}

/* ---- one sample ---- */

static uint64_t word(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

void stack_unwinder_registers(const struct arch_unwind *arch, const uint8_t *words,
	struct unwind_registers *ret)
{
	ret->known = 0;
	ret->pc = 0;
	for (uint32_t i = 0; i < arch->kernel_count; i++) {
		uint8_t number = arch->kernel_order[i];
		uint64_t value = word(words + (size_t)i * 8);
		if (number == arch->pc_register)
			ret->pc = value;
		if (number == ARCH_NO_REGISTER)
			continue;
		ret->values[number] = value;
		ret->known |= 1u << number;
	}
}

/*
 * The kernel's chain after the outermost frame that the walk found too: *ret_own is the number of
 * frames of the walk up to that one, the result the index in the chain; 0: they have none in common.
 * Of several places (recursion) it is the one nearest to the same depth.
 */
static uint32_t find_join(const uint64_t *own, uint32_t own_count, const uint64_t *kernel,
	uint32_t kernel_count, uint32_t *ret_own)
{
	for (uint32_t i = own_count; i > 0 && own_count - i < JOIN_REACH; i--) {
		uint32_t found = 0;
		/* Each chain has the leaf, so the leaf proves nothing about its callers. */
		if (i == 1 && own_count > 1)
			break;
		for (uint32_t k = 0; k < kernel_count; k++) {
			if (kernel[k] != own[i - 1])
				continue;
			if (!found || k + 1 <= i)
				found = k + 1;
		}
		if (found) {
			*ret_own = i;
			return found;
		}
	}
	return 0;
}

/* Appends the kernel's frames to those of the walk. True: callers are missing among them. */
static bool join(struct stack_unwinder *unwinder, const uint64_t *kernel, uint32_t kernel_count,
	uint32_t *count)
{
	uint32_t own = *count;
	uint32_t at = find_join(unwinder->frames, *count, kernel, kernel_count, &own);
	uint32_t added = at ? kernel_count - at : 0;

	if (!added || own + added > FRAMES_MAX || own + added <= *count)
		return false;
	memcpy(unwinder->frames + own, kernel + at, added * sizeof(*kernel));
	*count = own + added;
	if (!unwinder->managed)
		return false;
	*count = own - 1 +
		 managed_frames_mark(unwinder->managed, unwinder->space->pid,
			 unwinder->frames + own - 1, added + 1, FRAMES_MAX - (own - 1), own == 1);
	return *count > own + added;
}

static bool has_outer(const struct code_space *space, const uint64_t *frame)
{
	for (uint32_t i = 0; i < space->outer_count; i++)
		if (space->outer[i].address == frame[0])
			return true;
	return false;
}

static uint32_t image_at(struct stack_unwinder *unwinder, uint64_t address)
{
	const struct code_mapping *mapping =
		code_spaces_find(&unwinder->spaces, unwinder->space, address);

	return mapping ? mapping->path : 0;
}

/*
 * Learns from a chain to the start of its thread which frames of libc come last: a chain of frame
 * pointers ends at the first of them, as libc has none. Frames of the program before them are not
 * learned, since those may have other callers as well.
 */
static void learn_outer(struct stack_unwinder *unwinder, const uint64_t *frames, uint32_t count)
{
	struct code_space *space = unwinder->space;

	if (count < 2 || has_outer(space, &frames[count - 2]))
		return;
	uint32_t image = image_at(unwinder, frames[count - 2]);
	for (uint32_t i = count - 1; i-- > 0 && count - i <= 1 + OUTER_DEPTH;) {
		if (image_at(unwinder, frames[i]) != image ||
			space->outer_count == CODE_SPACE_OUTER_MAX)
			break;
		if (!has_outer(space, &frames[i]))
			space->outer[space->outer_count++] =
				(struct outer_frame){ frames[i], frames[i + 1] };
	}
}

/* Appends learned frames. True: the chain now reaches the start of its thread. */
static bool complete(struct stack_unwinder *unwinder, uint32_t *count)
{
	const struct code_space *space = unwinder->space;

	for (uint32_t added = 0; *count && added <= OUTER_DEPTH && *count < FRAMES_MAX; added++) {
		uint64_t last = unwinder->frames[*count - 1];
		uint32_t i = 0;
		while (i < space->outer_count && space->outer[i].address != last)
			i++;
		if (i == space->outer_count)
			break;
		unwinder->frames[(*count)++] = space->outer[i].caller;
	}
	return *count &&
	       unwind_is_start(&unwinder->unwind, space->number, unwinder->frames[*count - 1]);
}

bool stack_unwinder_replace(struct stack_unwinder *unwinder, const struct perf_record *record,
	uint64_t *frames, uint32_t kernel_count, uint32_t *count, uint32_t room,
	enum unwind_end *ret_end, uint64_t *ret_stack_end)
{
	const struct arch_unwind *arch = unwinder->arch->unwind;
	struct unwind_registers registers;
	uint32_t found = 0;

	*ret_stack_end = 0;
	if (!record->user_registers)
		return false; /* a thread of the kernel */
	if (!record->user_is_64) {
		*ret_end = UNWIND_NO_REGISTERS;
		return true;
	}
	unwinder->space = code_spaces_get(&unwinder->spaces, record->pid);
	if (!unwinder->space)
		return false;
	if (unwinder->spaces.numbers_used_up) {
		unwind_forget(&unwinder->unwind);
		unwinder->spaces.numbers_used_up = false;
	}
	stack_unwinder_registers(arch, record->user_registers, &registers);
	struct unwind_stack stack = { record->user_stack, record->user_stack_size,
		registers.values[arch->stack_register] };
	enum unwind_end end = unwind_walk(&unwinder->unwind, unwinder->space->number, &registers,
		&stack, unwinder->frames, FRAMES_MAX, &found);
	if (end == UNWIND_START) {
		*ret_stack_end = registers.values[arch->stack_register];
		learn_outer(unwinder, unwinder->frames, found);
	} else {
		bool misses = join(unwinder, frames + kernel_count, *count - kernel_count, &found);
		end = complete(unwinder, &found) && !misses ? UNWIND_START : end;
	}
	if (found > room - kernel_count) {
		found = room - kernel_count;
		end = UNWIND_FRAMES;
	}
	/* Where the walk found nothing, the kernel's frames stay. */
	if (found) {
		memcpy(frames + kernel_count, unwinder->frames, found * sizeof(*frames));
		*count = kernel_count + found;
	}
	*ret_end = end;
	return true;
}

bool stack_unwinder_trace(struct stack_unwinder *unwinder, const struct perf_record *record,
	struct unwind_registers *ret_registers, struct unwind_trace *ret_trace,
	const uint64_t **ret_frames, uint32_t *ret_count)
{
	const struct arch_unwind *arch = unwinder->arch->unwind;
	struct unwind_registers registers;

	unwinder->space = code_spaces_get(&unwinder->spaces, record->pid);
	if (!unwinder->space || unwinder->space->ended || unwinder->spaces.numbers_used_up ||
		!record->user_registers || !record->user_is_64)
		return false;
	stack_unwinder_registers(arch, record->user_registers, &registers);
	*ret_registers = registers;
	struct unwind_stack stack = { record->user_stack, record->user_stack_size,
		registers.values[arch->stack_register] };
	*ret_frames = unwinder->frames;
	return unwind_walk_traced(&unwinder->unwind, unwinder->space->number, &registers, &stack,
		       unwinder->frames, FRAMES_MAX, ret_count, ret_trace) == UNWIND_START &&
	       !ret_trace->failed;
}

void stack_unwinder_on_change(struct stack_unwinder *unwinder, stack_unwinder_change_fn *changed,
	void *user)
{
	unwinder->changed = changed;
	unwinder->changed_user = user;
}

uint64_t stack_unwinder_rows_made(const struct stack_unwinder *unwinder)
{
	return unwinder->unwind.rows_made;
}
