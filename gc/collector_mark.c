/*
 * The loop of marking, and what happens when its stack is full.
 */
#include "gc/collector_mark.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "gc/collector_regions.h"

enum {
	QUEUE = 8,                      /* objects whose memory is on its way */
	STACK_STEP = 1 << 20,           /* bytes made accessible at once */
	STACK_FIRST = 64 << 10,         /* always there: a root never finds the stack full */
};

int marker_open(struct marker *m, struct heap *heap, struct gc_to_clr *ee, uint32_t collectible_flag, size_t stack_limit)
{
	memset(m, 0, sizeof(*m));
	m->heap = heap;
	m->ee = ee;
	m->collectible_flag = collectible_flag;
	/* Every object is pushed once at most. */
	m->stack_reserved = heap->size / CELL_MIN * sizeof(struct gc_object *) + STACK_STEP;
	m->stack_limit = stack_limit && stack_limit < m->stack_reserved ? stack_limit : m->stack_reserved;
	if (m->stack_limit < STACK_FIRST)
		m->stack_limit = STACK_FIRST;
	void *stack = mmap(NULL, m->stack_reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (stack == MAP_FAILED)
		return -ENOMEM;
	if (mprotect(stack, STACK_FIRST, PROT_READ | PROT_WRITE) != 0) {
		munmap(stack, m->stack_reserved);
		return -ENOMEM;
	}
	m->stack = stack;
	m->stack_ready = m->stack + STACK_FIRST / sizeof(*m->stack);
	m->top = m->stack;
	return 0;
}

void marker_close(struct marker *m)
{
	munmap(m->stack, m->stack_reserved);
}

/* More of the stack; false when there is none. */
static bool grow(struct marker *m)
{
	size_t have = (size_t)(m->stack_ready - m->stack) * sizeof(*m->stack);
	size_t step = STACK_STEP;

	if (have + step > m->stack_limit)
		step = m->stack_limit - have;
	if (step < sizeof(*m->stack) || mprotect(m->stack_ready, step, PROT_READ | PROT_WRITE) != 0)
		return false;
	m->stack_ready += step / sizeof(*m->stack);
	return true;
}

/* Marks what a slot refers to, and pushes it if it was not yet. */
static inline __attribute__((always_inline)) void see(struct marker *m, struct gc_object *o)
{
	struct heap *h = m->heap;
	size_t at = heap_offset(h, o);

	if (at >= h->size)
		return;
	size_t bit = (at - CELL_HEADER) >> MARK_SHIFT;
	uint64_t *word = &h->marks[bit >> 6];
	uint64_t mask = (uint64_t)1 << (bit & 63);
	if (*word & mask)
		return;
	if (__builtin_expect(m->top == m->stack_ready, 0) && !grow(m)) {
		m->is_overflowed = true;
		return;
	}
	*word |= mask;
	*m->top++ = o;
}

static bool see_slot(void *context, struct gc_object **slot)
{
	see(context, *slot);
	return true;
}

static void see_loader(struct marker *m, struct gc_object *o)
{
	see(m, m->ee->table->GetLoaderAllocatorObjectForGC(m->ee, o));
}

/* Its last word's bit, its share in the sums, its references. */
static inline __attribute__((always_inline)) void visit(struct marker *m, struct gc_object *o)
{
	struct heap *h = m->heap;
	struct method_table *type = o->type;
	uint32_t flags = type->flags;
	size_t size = object_size_of(o, type);
	size_t at = heap_offset(h, o) - CELL_HEADER;
	size_t last = (at + size - CELL_ALIGN) >> MARK_SHIFT;
	struct region *r = heap_region(h, (uint32_t)(at >> REGION_SHIFT));

	h->marks[last >> 6] |= (uint64_t)1 << (last & 63);
	r->live += (uint32_t)size;
	m->sums.objects++;
	m->sums.bytes += size;
	if (__builtin_expect(r->kind != REGION_SMALL, 0))
		m->sums.bytes_of_kind[r->kind] += size;
	if (flags & TYPE_HAS_REFERENCES)
		object_each_reference(o, type, size, see_slot, m);
	if (__builtin_expect((flags & m->collectible_flag) != 0, 0))
		see_loader(m, o);
}

static void drain_once(struct marker *m)
{
	struct gc_object *queue[QUEUE] = { 0 };
	uint32_t at = 0, waiting = 0;

	for (;;) {
		struct gc_object *o = queue[at % QUEUE];

		if (m->top > m->stack) {
			size_t depth = (size_t)(m->top - m->stack);
			if (m->sums.stack_most < depth)
				m->sums.stack_most = depth;
			struct gc_object *next = *--m->top;
			__builtin_prefetch(next);
			queue[at++ % QUEUE] = next;
			if (!o) {
				waiting++;
				continue;
			}
		} else {
			if (waiting == 0)
				return;
			queue[at++ % QUEUE] = NULL;
			if (!o)
				continue;
			waiting--;
		}
		visit(m, o);
	}
}

/* Looks again at the references of every object that was visited; their cells are the pairs of bits. */
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
				object_each_reference(o, o->type, size, see_slot, m);
			if (o->type->flags & m->collectible_flag)
				see_loader(m, o);
			drain_once(m);
			/* On to its last bit, which the loop steps over. */
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
	see(m, o);
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
	size_t have = (size_t)(m->stack_ready - m->stack) * sizeof(*m->stack);

	m->sums.bytes_of_kind[REGION_SMALL] = m->sums.bytes - m->sums.bytes_of_kind[REGION_MEDIUM] -
		m->sums.bytes_of_kind[REGION_LARGE] - m->sums.bytes_of_kind[REGION_PINNED] -
		m->sums.bytes_of_kind[REGION_HUGE];
	/* A deep graph leaves a large stack behind, which a dump would hold as well. What is not given back only stays. */
	if (have > STACK_STEP) {
		uint8_t *from = (uint8_t *)m->stack + STACK_FIRST;

		(void)madvise(from, have - STACK_FIRST, MADV_DONTNEED);
		if (mprotect(from, have - STACK_FIRST, PROT_NONE) == 0)
			m->stack_ready = m->stack + STACK_FIRST / sizeof(*m->stack);
	}
}
