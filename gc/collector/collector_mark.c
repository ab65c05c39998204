/* The loop of marking, and the case that its stack is full. */
#include "gc/collector/collector_mark.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "gc/collector/collector_regions.h"

enum {
	QUEUE = 8,              /* objects whose memory is being prefetched */
	STACK_STEP = 1 << 20,   /* bytes that are made accessible at a time */
	STACK_FIRST = 64 << 10, /* always accessible: a root never finds the stack full */
};

int marker_open(struct marker *m, struct heap *heap, struct gc_to_clr *ee,
	uint32_t collectible_flag, size_t stack_limit)
{
	memset(m, 0, sizeof(*m));
	m->heap = heap;
	m->ee = ee;
	m->collectible_flag = collectible_flag;
	/* Every object is pushed at most once. */
	m->stack_reserved = heap->size / CELL_MIN * sizeof(void *) + STACK_STEP;
	m->stack_limit =
		stack_limit && stack_limit < m->stack_reserved ? stack_limit : m->stack_reserved;
	if (m->stack_limit < STACK_FIRST)
		m->stack_limit = STACK_FIRST;
	void *stack = mmap(NULL, m->stack_reserved, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stack == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(stack, STACK_FIRST, PROT_READ | PROT_WRITE) != 0) {
		munmap(stack, m->stack_reserved);
		return -ENOMEM;
	}
	m->stack = stack;
	m->stack_ready = m->stack + STACK_FIRST / sizeof(void *);
	m->top = m->stack;
	return 0;
}

void marker_close(struct marker *m)
{
	munmap(m->stack, m->stack_reserved);
}

/* Makes more of the stack accessible; false: no memory or no space. */
static bool grow(struct marker *m)
{
	size_t have = (size_t)(m->stack_ready - m->stack) * sizeof(void *);
	size_t step = STACK_STEP;

	if (have + step > m->stack_limit)
		step = m->stack_limit - have;
	if (step < sizeof(void *) || mprotect(m->stack_ready, step, PROT_READ | PROT_WRITE) != 0)
		return false;
	m->stack_ready += step / sizeof(void *);
	return true;
}

/*
 * The state of the loop, in a variable that stays in registers: every function that takes it is
 * inlined, and its address is not stored. The marker is outdated while a loop runs.
 */
struct loop {
	uintptr_t base;
	size_t size;
	uint64_t *marks;
	struct region *regions;
	struct gc_object **top;
	struct gc_object **ready;
	struct gc_object **most;
	uint64_t objects;
	uint64_t bytes;
	struct marker *marker;
};

#define INLINE static inline __attribute__((always_inline))

INLINE struct loop loop_begin(struct marker *m)
{
	return (struct loop){
		.base = (uintptr_t)m->heap->base,
		.size = m->heap->size,
		.marks = m->heap->marks,
		.regions = m->heap->regions,
		.top = m->top,
		.ready = m->stack_ready,
		.most = m->top,
		.marker = m,
	};
}

INLINE void loop_end(const struct loop *l)
{
	struct marker *m = l->marker;
	size_t depth = (size_t)(l->most - m->stack);

	m->top = l->top;
	m->sums.objects += l->objects;
	m->sums.bytes += l->bytes;
	if (m->sums.stack_most < depth)
		m->sums.stack_most = depth;
}

/* Marks the object that a slot refers to, and pushes it if it was not marked. */
INLINE void see(struct loop *l, struct gc_object *o)
{
	size_t at = (uintptr_t)o - l->base;

	if (at >= l->size)
		return;
	size_t bit = (at - CELL_HEADER) >> MARK_SHIFT;
	uint64_t *word = &l->marks[bit >> 6];
	uint64_t mask = (uint64_t)1 << (bit & 63);
	if (*word & mask)
		return;
	if (__builtin_expect(l->top == l->ready, 0)) {
		if (!grow(l->marker)) {
			l->marker->is_overflowed = true;
			return;
		}
		l->ready = l->marker->stack_ready;
	}
	*word |= mask;
	*l->top++ = o;
}

INLINE bool see_slot(void *context, struct gc_object **slot)
{
	see(context, *slot);
	return true;
}

/*
 * A type that can be unloaded lives as long as its objects: the object by which the runtime keeps
 * it alive.
 */
static struct gc_object *loader_of(struct marker *m, struct gc_object *o)
{
	return m->ee->table->GetLoaderAllocatorObjectForGC(m->ee, o);
}

static void count_kind(struct marker *m, uint8_t kind, size_t size)
{
	m->sums.bytes_of_kind[kind] += size;
}

/* Sets the bit of its last word, adds it to the sums, visits its references. */
INLINE void visit(struct loop *l, struct gc_object *o)
{
	struct method_table *type = o->type;
	uint32_t flags = type->flags;
	size_t size = object_size_of(o, type);
	size_t at = (uintptr_t)o - l->base - CELL_HEADER;
	size_t last = (at + size - CELL_ALIGN) >> MARK_SHIFT;
	struct region *r = &l->regions[at >> REGION_SHIFT];

	l->marks[last >> 6] |= (uint64_t)1 << (last & 63);
	r->live += (uint32_t)size;
	l->objects++;
	l->bytes += size;
	if (__builtin_expect(r->kind != REGION_SMALL, 0))
		count_kind(l->marker, r->kind, size);
	if (flags & TYPE_HAS_REFERENCES)
		object_each_reference(o, type, size, see_slot, l);
	if (__builtin_expect((flags & l->marker->collectible_flag) != 0, 0))
		see(l, loader_of(l->marker, o));
}

/* Visits the objects on the stack and all that are reachable from them. */
static void drain_once(struct marker *m)
{
	struct loop l = loop_begin(m);
	struct gc_object *queue[QUEUE];
	uint32_t first = 0, waiting = 0;

	for (;;) {
		/*
		 * The queue is filled, so that each visited object was prefetched QUEUE objects
		 * earlier.
		 */
		if (l.most < l.top)
			l.most = l.top;
		while (waiting < QUEUE && l.top > m->stack) {
			struct gc_object *next = *--l.top;

			__builtin_prefetch(next);
			queue[(first + waiting++) % QUEUE] = next;
		}
		if (waiting == 0)
			break;
		struct gc_object *o = queue[first++ % QUEUE];
		waiting--;
		visit(&l, o);
	}
	loop_end(&l);
}

static void see_one(struct marker *m, struct gc_object *o)
{
	struct loop l = loop_begin(m);

	see(&l, o);
	loop_end(&l);
}

static bool see_again(void *context, struct gc_object **slot)
{
	see_one(context, *slot);
	return true;
}

/* Visits the references of every visited object again; the pairs of bits are their cells. */
static void visit_marked_again(struct marker *m)
{
	struct heap *h = m->heap;

	for (uint32_t i = 0; i < h->region_end; i++) {
		struct region *r = heap_region(h, i);

		if (r->kind == REGION_FREE)
			continue;
		size_t first = (size_t)i * REGION_MARK_WORDS * 64;
		for (size_t bit = first; bit < first + (size_t)REGION_MARK_WORDS * 64; bit++) {
			if (!(h->marks[bit >> 6] >> (bit & 63))) {
				bit |= 63;
				continue;
			}
			if (!(h->marks[bit >> 6] >> (bit & 63) & 1))
				continue;
			if (r->kind == REGION_TAIL)
				continue;
			struct gc_object *o = cell_object(h->base + (bit << MARK_SHIFT));
			size_t size = object_size(o);

			if (o->type->flags & TYPE_HAS_REFERENCES)
				object_each_reference(o, o->type, size, see_again, m);
			if (o->type->flags & m->collectible_flag)
				see_one(m, loader_of(m, o));
			drain_once(m);
			/* Continues at its last bit, which the loop steps over. */
			bit += (size - CELL_ALIGN) >> MARK_SHIFT;
		}
	}
}

static void drain(struct marker *m)
{
	drain_once(m);
	while (__builtin_expect(m->is_overflowed, 0)) {
		m->is_overflowed = false;
		m->sums.overflows++;
		visit_marked_again(m);
	}
}

void marker_begin(struct marker *m)
{
	memset(&m->sums, 0, sizeof(m->sums));
	m->is_overflowed = false;
	m->top = m->stack;
	for (uint32_t i = 0; i < m->heap->region_end; i++)
		heap_region(m->heap, i)->live = 0;
}

void marker_root(struct marker *m, struct gc_object *o)
{
	see_one(m, o);
	if (m->top > m->stack)
		drain(m);
}

void marker_pointer(struct marker *m, void *address)
{
	struct gc_object *o = heap_object_at(m->heap, address);

	if (o)
		marker_root(m, o);
}

void marker_end(struct marker *m)
{
	size_t have = (size_t)(m->stack_ready - m->stack) * sizeof(void *);

	m->sums.bytes_of_kind[REGION_SMALL] = m->sums.bytes - m->sums.bytes_of_kind[REGION_MEDIUM] -
					      m->sums.bytes_of_kind[REGION_LARGE] -
					      m->sums.bytes_of_kind[REGION_PINNED] -
					      m->sums.bytes_of_kind[REGION_HUGE];
	/*
	 * A deep graph leaves a large stack, which would be part of a core dump. If it cannot be
	 * returned to the system, it stays.
	 */
	if (have > STACK_STEP) {
		uint8_t *from = (uint8_t *)m->stack + STACK_FIRST;

		(void)madvise(from, have - STACK_FIRST, MADV_DONTNEED);
		if (mprotect(from, have - STACK_FIRST, PROT_NONE) == 0)
			m->stack_ready = m->stack + STACK_FIRST / sizeof(void *);
	}
}
