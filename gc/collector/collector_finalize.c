/*
 * The lists of finalizable objects.
 */
#include "gc/collector/collector_finalize.h"

#include <stdlib.h>
#include <string.h>

void finalizers_init(struct finalizers *f)
{
	memset(f, 0, sizeof(*f));
	pthread_mutex_init(&f->lock, NULL);
}

void finalizers_done(struct finalizers *f)
{
	free(f->registered.items);
	free(f->ready.items);
	free(f->ready_critical.items);
	pthread_mutex_destroy(&f->lock);
}

static bool list_reserve(struct object_list *list, size_t capacity)
{
	if (capacity <= list->capacity)
		return true;
	if (capacity < 2 * list->capacity)
		capacity = 2 * list->capacity;
	struct gc_object **items = realloc(list->items, capacity * sizeof(void *));
	if (!items)
		return false;
	list->items = items;
	list->capacity = capacity;
	return true;
}

static void list_push(struct object_list *list, struct gc_object *o)
{
	assert(list->count < list->capacity);
	list->items[list->count++] = o;
}

static struct gc_object *list_take(struct object_list *list)
{
	if (list->taken == list->count)
		return NULL;
	struct gc_object *o = list->items[list->taken++];
	if (list->taken == list->count)
		list->taken = list->count = 0;
	return o;
}

static size_t list_left(const struct object_list *list)
{
	return list->count - list->taken;
}

/* Moves the remaining items to the front, over those that were returned. */
static void list_close_ranks(struct object_list *list)
{
	if (list->taken == 0)
		return;
	memmove(list->items, list->items + list->taken, list_left(list) * sizeof(void *));
	list->count -= list->taken;
	list->taken = 0;
}

bool finalizers_add(struct finalizers *f, struct gc_object *o)
{
	pthread_mutex_lock(&f->lock);
	size_t all = f->registered.count + 1;
	bool has_room = true;

	if (all > f->registered.capacity || all + f->ready.count > f->ready.capacity ||
		all + f->ready_critical.count > f->ready_critical.capacity) {
		list_close_ranks(&f->ready);
		list_close_ranks(&f->ready_critical);
		has_room = list_reserve(&f->registered, all + 64) &&
			   list_reserve(&f->ready, f->registered.capacity + f->ready.count) &&
			   list_reserve(&f->ready_critical,
				   f->registered.capacity + f->ready_critical.count);
	}
	if (has_room)
		list_push(&f->registered, o);
	pthread_mutex_unlock(&f->lock);
	return has_room;
}

struct gc_object *finalizers_next(struct finalizers *f)
{
	pthread_mutex_lock(&f->lock);
	struct gc_object *o = list_take(&f->ready);
	if (!o)
		o = list_take(&f->ready_critical);
	pthread_mutex_unlock(&f->lock);
	return o;
}

size_t finalizers_waiting(struct finalizers *f)
{
	pthread_mutex_lock(&f->lock);
	size_t count = list_left(&f->ready) + list_left(&f->ready_critical);
	pthread_mutex_unlock(&f->lock);
	return count;
}

static void mark_list(struct object_list *list, size_t from, struct marker *m)
{
	for (size_t i = from; i < list->count; i++)
		marker_root(m, list->items[i]);
}

void finalizers_mark_ready(struct finalizers *f, struct marker *m)
{
	mark_list(&f->ready, f->ready.taken, m);
	mark_list(&f->ready_critical, f->ready_critical.taken, m);
}

/* The list for an object that is not reachable; NULL: none. */
static struct object_list *destination(struct finalizers *f, struct marker *m, struct gc_object *o,
	uint32_t critical_flag)
{
	uint32_t *header = object_header(o);

	if (*header & HEADER_FINALIZER_RUN) {
		/* Suppressed. The bit is cleared, so that it can be registered again. */
		__atomic_and_fetch(header, ~HEADER_FINALIZER_RUN, __ATOMIC_RELAXED);
		return NULL;
	}
	if (m->ee->table->EagerFinalized(m->ee, o))
		return NULL;
	uint32_t flags = o->type->flags;
	return (flags & critical_flag) && !(flags & (uint32_t)TYPE_HAS_ELEMENTS)
		       ? &f->ready_critical
		       : &f->ready;
}

void finalizers_find_dead(struct finalizers *f, struct marker *m, uint32_t critical_flag)
{
	struct object_list *registered = &f->registered;
	size_t kept = 0, ready_before, critical_before;
	uint64_t bytes_before = m->sums.bytes;

	/*
	 * All threads that use the lists are suspended. No lock is taken, because EagerFinalized()
	 * calls back. finalizers_add() has reserved room in all lists.
	 */
	ready_before = f->ready.count;
	critical_before = f->ready_critical.count;
	for (size_t i = 0; i < registered->count; i++) {
		struct gc_object *o = registered->items[i];

		if (marker_lives(m, o)) {
			registered->items[kept++] = o;
			continue;
		}
		struct object_list *list = destination(f, m, o, critical_flag);
		if (list)
			list_push(list, o);
	}
	registered->count = kept;
	/*
	 * Marked after all were found: objects that are reachable only from a dead one are dead
	 * too, and their finalizers run in the same round.
	 */
	mark_list(&f->ready, ready_before, m);
	mark_list(&f->ready_critical, critical_before, m);
	f->promoted_count =
		f->ready.count - ready_before + f->ready_critical.count - critical_before;
	f->promoted_bytes = m->sums.bytes - bytes_before;
}
