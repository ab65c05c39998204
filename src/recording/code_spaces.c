/* See code_spaces.h. */
#include "recording/code_spaces.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/clocks.h"
#include "base/partition_point.h"
#include "base/strtab.h"
#include "code/mapping_kind.h"
#include "machine/proc.h"

#define MAPPINGS_MAX 262144u /* of all processes, 14 MB; beyond, all are read again when needed */
#define SPACES_MAX   32768u  /* likewise */
#define LOOK_GAP_NS  UINT64_C(20000000)

static void take_number(struct code_spaces *spaces, struct code_space *space)
{
	if (++spaces->last_number == 0) {
		spaces->numbers_used_up = true;
		for (uint32_t i = 1; i < spaces->spaces.count; i++) {
			spaces->spaces.items[i].number = ++spaces->last_number;
			spaces->spaces.items[i].shared = false;
		}
		++spaces->last_number;
	}
	space->number = spaces->last_number;
	space->shared = false;
}

static void clear(struct code_spaces *spaces, struct code_space *space)
{
	spaces->mapping_count -= space->mappings.count;
	vec_reset(&space->mappings);
	space->outer_count = 0;
	if (spaces->changed)
		spaces->changed(spaces->user, space, 0, UINT64_MAX);
	take_number(spaces, space);
}

static struct code_space *find_space(const struct code_spaces *spaces, uint32_t pid)
{
	uint32_t index = map_get(&spaces->by_pid, pid);

	return index ? &spaces->spaces.items[index] : NULL;
}

static void drop(struct code_spaces *spaces, uint32_t index)
{
	struct code_space *space = &spaces->spaces.items[index];

	if (spaces->changed)
		spaces->changed(spaces->user, space, 0, UINT64_MAX);
	map_remove(&spaces->by_pid, space->pid, index);
	spaces->mapping_count -= space->mappings.count;
	vec_done(&space->mappings);
	*space = (struct code_space){ .pid = 0 };
	(void)vec_add(&spaces->free, index); /* without memory the slot stays unused */
}

static void drop_all(struct code_spaces *spaces)
{
	for (uint32_t i = 1; i < spaces->spaces.count; i++)
		if (spaces->spaces.items[i].pid)
			drop(spaces, i);
	vec_reset(&spaces->ended);
	spaces->ended_before = 0;
}

/*
 * The index of a new space without mappings. 0: no memory, or a process of another pid namespace:
 * all of them have the number 0.
 */
static uint32_t add_space(struct code_spaces *spaces, uint32_t pid, uint64_t time_ns)
{
	uint32_t index = 0;

	if (!pid)
		return 0;
	if (spaces->free.count)
		index = spaces->free.items[--spaces->free.count];
	else if (spaces->spaces.count < SPACES_MAX &&
		 (spaces->spaces.count || vec_push(&spaces->spaces)) && vec_push(&spaces->spaces))
		index = spaces->spaces.count - 1;
	if (!index || !map_put(&spaces->by_pid, pid, index))
		return 0;
	struct code_space *space = &spaces->spaces.items[index];
	*space = (struct code_space){ .pid = pid, .read_ns = time_ns };
	take_number(spaces, space);
	return index;
}

/* The first mapping that ends after the address. */
static uint32_t first_after(const struct code_space *space, uint64_t address)
{
	return partition_point(space->mappings.count, i, space->mappings.items[i].end <= address);
}

static bool is_same_file(const struct code_mapping *a, const struct code_mapping *b)
{
	if (a->path != b->path || a->build_id != b->build_id)
		return false;
	return a->build_id || (a->device == b->device && a->inode == b->inode);
}

static bool is_same_place(const struct code_mapping *a, const struct code_mapping *b)
{
	return a->begin == b->begin && a->end == b->end && a->file_offset == b->file_offset &&
	       a->path == b->path;
}

/* In a heap of a compiler, only rows of code that is never freed are kept (managed_frames.h). */
static bool is_heap(const struct code_spaces *spaces, const struct code_mapping *mapping)
{
	return mapping_kind_of(strtab_get(spaces->strings, mapping->path)) == MAPPING_JIT;
}

/*
 * Whether the code where `mapping` covers `old` is unwound as before: an mmap record is also written when a
 * mapping grows, is split, or changes its protection, as heaps of compilers do often.
 */
static bool unwinds_alike(const struct code_spaces *spaces, const struct code_mapping *old,
	const struct code_mapping *mapping)
{
	if (is_same_file(old, mapping) &&
		old->begin - old->file_offset == mapping->begin - mapping->file_offset)
		return true;
	return is_heap(spaces, old) && is_heap(spaces, mapping);
}

/* Announces what `mapping` replaces of the mappings from `at` to `end`. */
static void announce(struct code_spaces *spaces, struct code_space *space, uint32_t at,
	uint32_t end, const struct code_mapping *mapping)
{
	for (; at < end; at++) {
		const struct code_mapping *old = &space->mappings.items[at];
		if (spaces->changed && !unwinds_alike(spaces, old, mapping))
			spaces->changed(spaces->user, space,
				old->begin > mapping->begin ? old->begin : mapping->begin,
				old->end < mapping->end ? old->end : mapping->end);
	}
}

/* Inserts a mapping; what it covers of others is gone. */
static void insert(struct code_spaces *spaces, struct code_space *space,
	const struct code_mapping *mapping)
{
	uint32_t at = first_after(space, mapping->begin);
	uint32_t end = at;
	struct code_mapping kept[3];
	uint32_t kept_count = 0;

	while (end < space->mappings.count && space->mappings.items[end].begin < mapping->end)
		end++;
	if (end == at + 1 && is_same_place(&space->mappings.items[at], mapping) &&
		is_same_file(&space->mappings.items[at], mapping))
		return;
	if (space->shared)
		take_number(spaces, space); /* the others keep their code */
	announce(spaces, space, at, end, mapping);
	if (end != at && space->mappings.items[at].begin < mapping->begin) {
		kept[kept_count] = space->mappings.items[at];
		kept[kept_count++].end = mapping->begin;
	}
	kept[kept_count++] = *mapping;
	if (end != at && space->mappings.items[end - 1].end > mapping->end) {
		struct code_mapping *rest = &kept[kept_count++];
		*rest = space->mappings.items[end - 1];
		rest->file_offset += mapping->end - rest->begin;
		rest->begin = mapping->end;
	}
	if (!vec_reserve(&space->mappings, kept_count))
		return;
	struct code_mapping *items = space->mappings.items;
	memmove(items + at + kept_count, items + end,
		(space->mappings.count - end) * sizeof(*items));
	memcpy(items + at, kept, kept_count * sizeof(*items));
	space->mappings.count = space->mappings.count - (end - at) + kept_count;
	spaces->mapping_count = spaces->mapping_count - (end - at) + kept_count;
}

void code_spaces_map(struct code_spaces *spaces, uint32_t pid, const struct code_mapping *mapping,
	uint64_t time_ns)
{
	struct code_space *space = find_space(spaces, pid);

	/* An unknown process is read from /proc at its first sample. */
	if (space && time_ns >= space->read_ns)
		insert(spaces, space, mapping);
}

void code_spaces_fork(struct code_spaces *spaces, uint32_t pid, uint32_t parent, uint64_t time_ns)
{
	uint32_t old = map_get(&spaces->by_pid, pid);

	if (pid == parent || (old && time_ns < spaces->spaces.items[old].read_ns))
		return; /* a thread, or a process that was read later */
	if (old)
		drop(spaces, old);
	if (!find_space(spaces, parent))
		return;
	uint32_t index = add_space(spaces, pid, time_ns);
	struct code_space *from = find_space(spaces, parent);
	if (!index || !from)
		return;
	struct code_space *to = &spaces->spaces.items[index];
	if (!vec_reserve(&to->mappings, from->mappings.count)) {
		drop(spaces, index);
		return;
	}
	if (from->mappings.count)
		memcpy(to->mappings.items, from->mappings.items,
			from->mappings.count * sizeof(*from->mappings.items));
	to->mappings.count = from->mappings.count;
	spaces->mapping_count += to->mappings.count;
	memcpy(to->outer, from->outer, sizeof(to->outer));
	to->outer_count = from->outer_count;
	to->number = from->number;
	to->shared = from->shared = true;
}

void code_spaces_exec(struct code_spaces *spaces, uint32_t pid, uint64_t time_ns)
{
	struct code_space *space = find_space(spaces, pid);

	if (space && time_ns >= space->read_ns) {
		clear(spaces, space);
		space->read_ns = time_ns;
	} else if (!space) {
		(void)add_space(spaces, pid, time_ns); /* without memory /proc is read later */
	}
}

void code_spaces_exit(struct code_spaces *spaces, uint32_t pid)
{
	uint32_t index = map_get(&spaces->by_pid, pid);

	/* Samples before the exit may be in a ring that is read later in this pass. */
	if (index && !spaces->spaces.items[index].ended)
		spaces->spaces.items[index].ended = vec_add(&spaces->ended, index);
}

void code_spaces_pass(struct code_spaces *spaces)
{
	for (uint32_t i = 0; i < spaces->ended_before; i++)
		if (spaces->spaces.items[spaces->ended.items[i]].ended)
			drop(spaces, spaces->ended.items[i]);
	uint32_t left = spaces->ended.count - spaces->ended_before;
	if (left && spaces->ended_before)
		memmove(spaces->ended.items, spaces->ended.items + spaces->ended_before,
			left * sizeof(uint32_t));
	spaces->ended.count = spaces->ended_before = left;
	if (spaces->mapping_count > MAPPINGS_MAX || spaces->by_pid.count + 1 >= SPACES_MAX)
		drop_all(spaces);
}

struct space_read {
	struct code_spaces *spaces;
	struct code_space *space;
};

static int on_mapping(void *user, const struct proc_mapping *mapping)
{
	struct space_read *look = user;
	const struct code_mapping now = {
		.begin = mapping->begin,
		.end = mapping->end,
		.file_offset = mapping->file_offset,
		.device = makedev(mapping->device_major, mapping->device_minor),
		.inode = mapping->inode,
		.path = strtab_add(look->spaces->strings, mapping->path, mapping->path_len),
	};
	uint32_t at = first_after(look->space, now.begin);

	/* A record already announced this mapping, with its build id, which /proc does not have. */
	if (at < look->space->mappings.count &&
		is_same_place(&look->space->mappings.items[at], &now))
		return 0;
	insert(look->spaces, look->space, &now);
	return 0;
}

/* Reads the process's mappings; if it has ended, those of its records stay. */
static void look_at(struct code_spaces *spaces, struct code_space *space)
{
	struct space_read look = { spaces, space };

	space->read_ns = clock_monotonic_ns();
	/* a process that has ended keeps what its records said */
	(void)proc_read_maps(spaces->proc, space->pid, on_mapping, &look);
}

struct code_space *code_spaces_get(struct code_spaces *spaces, uint32_t pid)
{
	struct code_space *space = find_space(spaces, pid);

	if (space)
		return space;
	uint32_t index = add_space(spaces, pid, 0);
	if (!index)
		return NULL;
	space = &spaces->spaces.items[index];
	look_at(spaces, space);
	return space;
}

struct code_mapping *code_spaces_find(struct code_spaces *spaces, struct code_space *space,
	uint64_t address)
{
	for (int tries = 0; tries < 2; tries++) {
		uint32_t at = first_after(space, address);
		if (at < space->mappings.count && space->mappings.items[at].begin <= address)
			return &space->mappings.items[at];
		if (space->ended || clock_monotonic_ns() - space->read_ns < LOOK_GAP_NS)
			return NULL;
		look_at(spaces, space);
	}
	return NULL;
}

void code_spaces_done(struct code_spaces *spaces)
{
	drop_all(spaces);
	vec_done(&spaces->spaces);
	vec_done(&spaces->free);
	vec_done(&spaces->ended);
	map_done(&spaces->by_pid);
}
