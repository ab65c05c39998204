/* See thread_groups.h. */
#include "stacks/thread_groups.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "stacks/thread_dump.h"

/* A thread, or (in a list of groups) a group by its first thread. */
struct group_item {
	const struct dump_thread *thread;
	uint32_t index;
	uint32_t count;
};

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* The runtime's own threads are listed after those of the program. */
static bool is_of_runtime(const struct dump_thread *thread)
{
	return thread->idle || thread->serves_session;
}

/* What makes two threads one group: where they stand, what they wait in and for. */
static int compare_place(const struct dump_thread *a, const struct dump_thread *b)
{
	int order = compare_u64(a->stack, b->stack);

	order = order ? order : compare_u64(a->mode, b->mode);
	order = order ? order : compare_u64(a->moved, b->moved);
	order = order ? order : compare_u64(a->idle, b->idle);
	order = order ? order : compare_u64(a->serves_session, b->serves_session);
	order = order ? order : compare_u64(a->syscall, b->syscall);
	order = order ? order : compare_u64(a->function, b->function);
	order = order ? order : compare_u64(a->lock, b->lock);
	order = order ? order : compare_u64(a->lock_owner, b->lock_owner);
	/* Threads without a known stack: only those with the same name are grouped. */
	return order || a->stack ? order : compare_u64(a->name, b->name);
}

static int compare_threads(const void *left, const void *right)
{
	const struct group_item *a = left;
	const struct group_item *b = right;
	int order = compare_place(a->thread, b->thread);

	return order ? order : compare_u64(a->thread->tid, b->thread->tid);
}

static int compare_groups(const void *left, const void *right)
{
	const struct group_item *a = left;
	const struct group_item *b = right;
	int order = compare_u64(is_of_runtime(a->thread), is_of_runtime(b->thread));

	order = order ? order
		      : compare_u64(b->thread->managed_count > 0, a->thread->managed_count > 0);
	order = order ? order : compare_u64(b->count, a->count);
	return order ? order : compare_u64(a->thread->tid, b->thread->tid);
}

int thread_groups_make(struct thread_dump *dump)
{
	uint32_t count = dump->threads.count;
	struct group_item *threads = calloc((size_t)count + 1, sizeof(*threads));
	struct group_item *groups = calloc((size_t)count + 1, sizeof(*groups));
	uint32_t group_count = 0;
	int result = -ENOMEM;

	vec_reset(&dump->members);
	vec_reset(&dump->groups);
	if (!threads || !groups || !vec_reserve(&dump->members, count) ||
		!vec_reserve(&dump->groups, count))
		goto out;
	for (uint32_t i = 0; i < count; i++)
		threads[i] = (struct group_item){ .thread = &dump->threads.items[i], .index = i };
	qsort(threads, count, sizeof(*threads), compare_threads);
	for (uint32_t i = 0; i < count; i++) {
		if (!i || compare_place(threads[i - 1].thread, threads[i].thread))
			groups[group_count++] =
				(struct group_item){ .thread = threads[i].thread, .index = i };
		groups[group_count - 1].count++;
	}
	qsort(groups, group_count, sizeof(*groups), compare_groups);
	for (uint32_t g = 0; g < group_count; g++) {
		dump->groups.items[dump->groups.count++] =
			(struct dump_group){ .first = dump->members.count,
				.count = groups[g].count };
		for (uint32_t i = 0; i < groups[g].count; i++)
			dump->members.items[dump->members.count++] =
				threads[groups[g].index + i].index;
	}
	result = 0;
out:
	free(threads);
	free(groups);
	return result;
}
