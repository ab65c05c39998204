/*
 * The range, its tables, and which regions of it are in use. collector_alloc.c cuts memory out of
 * regions, collector_sweep.c finds free memory in them.
 */
#include "gc/collector/collector_heap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gc/collector/collector_regions.h"

enum { PAGE = 4096 };

/*
 * Offsets of the tables in the mapping that contains all of them; each part for a group of regions
 * is whole pages.
 */
struct table_layout {
	size_t marks, bricks, cards, regions, bundles, size;
};

static struct table_layout layout_of(size_t groups, size_t range)
{
	struct table_layout l = { 0 };
	size_t regions = groups * GROUP_REGIONS;

	l.bricks = l.marks + regions * REGION_MARK_WORDS * sizeof(uint64_t);
	l.cards = l.bricks + regions * REGION_BRICKS * sizeof(uint16_t);
	l.regions = l.cards + (regions << REGION_SHIFT >> CARD_SHIFT);
	l.bundles = l.regions + groups * PAGE;
	l.size = l.bundles + (((range >> BUNDLE_SHIFT) + PAGE - 1) & ~(size_t)(PAGE - 1));
	return l;
}

static_assert(GROUP_REGIONS * sizeof(struct region) == PAGE, "the regions of a group are a page");
static_assert((REGION_BRICKS * sizeof(uint16_t) << GROUP_SHIFT) % PAGE == 0,
	"bricks of a group are whole pages");
static_assert(((REGION_SIZE >> CARD_SHIFT) << GROUP_SHIFT) % PAGE == 0,
	"cards of a group are whole pages");

static void *reserve(size_t size)
{
	void *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool open_access(void *at, size_t size)
{
	return mprotect(at, size, PROT_READ | PROT_WRITE) == 0;
}

/* Reserves range and tables of this size. 0 or -ENOMEM. */
static int reserve_all(struct heap *h, size_t size)
{
	/* Aligned to the size that a bundle covers, so that no bundle covers other memory. */
	const size_t align = (size_t)1 << BUNDLE_SHIFT;
	size_t groups = (size >> REGION_SHIFT) / GROUP_REGIONS;
	struct table_layout l = layout_of(groups, size);
	uint8_t *range = reserve(size + align);

	if (!range)
		return -ENOMEM;
	uint8_t *base = (uint8_t *)(((uintptr_t)range + align - 1) & ~(uintptr_t)(align - 1));
	if (base > range)
		munmap(range, (size_t)(base - range));
	if (base + size < range + size + align)
		munmap(base + size, (size_t)(range + align - base));
	uint8_t *tables = reserve(l.size);
	if (!tables || !open_access(tables + l.bundles, l.size - l.bundles)) {
		if (tables)
			munmap(tables, l.size);
		munmap(base, size);
		return -ENOMEM;
	}
	h->base = base;
	h->size = size;
	h->region_count = (uint32_t)(groups * GROUP_REGIONS);
	h->tables = tables;
	h->tables_size = l.size;
	h->marks = (uint64_t *)(tables + l.marks);
	h->bricks = (uint16_t *)(tables + l.bricks);
	h->cards = tables + l.cards;
	h->regions = (struct region *)(tables + l.regions);
	h->bundles = tables + l.bundles;
	return 0;
}

int heap_open(struct heap *h, size_t size, uint64_t commit_limit)
{
	const size_t unit = (size_t)GROUP_REGIONS << REGION_SHIFT;

	memset(h, 0, sizeof(*h));
	if (reserve_all(h, (size + unit - 1) / unit * unit) < 0)
		return -ENOMEM;
	h->commit_limit = commit_limit;
	pthread_mutex_init(&h->lock, NULL);
	return 0;
}

void heap_close(struct heap *h)
{
	munmap(h->base, h->size);
	munmap(h->tables, h->tables_size);
	pthread_mutex_destroy(&h->lock);
}

/* Makes the tables of the group that a region belongs to accessible. */
static bool open_tables(struct heap *h, uint32_t region)
{
	while (h->groups_ready <= region >> GROUP_SHIFT) {
		size_t first = (size_t)h->groups_ready << GROUP_SHIFT;
		size_t marks = (size_t)REGION_MARK_WORDS << GROUP_SHIFT,
		       bricks = (size_t)REGION_BRICKS << GROUP_SHIFT;
		size_t cards = (size_t)(REGION_SIZE >> CARD_SHIFT) << GROUP_SHIFT;

		if (!open_access(h->marks + first * REGION_MARK_WORDS, marks * sizeof(uint64_t)) ||
			!open_access(h->bricks + first * REGION_BRICKS,
				bricks * sizeof(uint16_t)) ||
			!open_access(h->cards + (first << REGION_SHIFT >> CARD_SHIFT), cards) ||
			!open_access(heap_region(h, (uint32_t)first), PAGE))
			return false;
		h->groups_ready++;
	}
	return true;
}

static enum heap_shortage commit(struct heap *h, uint32_t first, uint32_t count)
{
	uint64_t missing = 0;

	if (!open_tables(h, first + count - 1))
		return HEAP_NO_MEMORY;
	for (uint32_t i = first; i < first + count; i++)
		missing += heap_region(h, i)->is_committed ? 0 : REGION_SIZE;
	if (h->commit_limit && h->committed + missing > h->commit_limit)
		return HEAP_LIMIT_REACHED;
	for (uint32_t i = first; i < first + count; i++) {
		struct region *r = heap_region(h, i);

		if (r->is_committed)
			continue;
		if (!open_access(heap_region_begin(h, i), REGION_SIZE))
			return HEAP_NO_MEMORY;
		r->is_committed = true;
		r->dirty_end = 0;
		h->committed += REGION_SIZE;
	}
	return HEAP_ENOUGH;
}

static void decommit(struct heap *h, uint32_t index)
{
	struct region *r = heap_region(h, index);
	uint8_t *begin = heap_region_begin(h, index);

	/*
	 * A region that cannot be returned to the system stays allocated; other processes have less
	 * memory.
	 */
	if (madvise(begin, REGION_SIZE, MADV_DONTNEED) != 0)
		return;
	r->dirty_end = 0;
	if (mprotect(begin, REGION_SIZE, PROT_NONE) != 0)
		return;
	r->is_committed = false;
	h->committed -= REGION_SIZE;
}

static bool is_free(struct heap *h, uint32_t index)
{
	return index >= h->region_end || heap_region(h, index)->kind == REGION_FREE;
}

/* Returns enough free regions to the system for `wanted` more bytes under the limit. */
static void make_room_under_limit(struct heap *h, uint64_t wanted)
{
	for (uint32_t i = h->region_end; i-- > 0 && h->committed + wanted > h->commit_limit;) {
		struct region *r = heap_region(h, i);

		if (r->kind == REGION_FREE && r->is_committed)
			decommit(h, i);
	}
}

enum heap_shortage heap_take_regions(struct heap *h, uint32_t count, enum region_kind kind,
	uint32_t *ret_first)
{
	uint32_t first = h->free_hint;
	uint32_t found = 0;
	bool any_before = false;

	/*
	 * The lowest regions that fit: memory that was touched before is reused before new memory.
	 */
	for (uint32_t i = first; found < count; i++) {
		if (i >= h->region_count)
			return HEAP_RANGE_FULL;
		if (!is_free(h, i)) {
			found = 0;
			continue;
		}
		if (!any_before) {
			h->free_hint = i;
			any_before = true;
		}
		if (found++ == 0)
			first = i;
	}
	enum heap_shortage shortage = commit(h, first, count);
	if (shortage == HEAP_LIMIT_REACHED) {
		uint64_t missing = 0;

		for (uint32_t i = first; i < first + count; i++)
			missing += heap_region(h, i)->is_committed ? 0 : REGION_SIZE;
		make_room_under_limit(h, missing);
		shortage = commit(h, first, count);
	}
	if (shortage != HEAP_ENOUGH)
		return shortage;
	if (h->region_end < first + count)
		h->region_end = first + count;
	for (uint32_t i = first; i < first + count; i++) {
		struct region *r = heap_region(h, i);

		r->kind = (uint8_t)kind;
		r->is_swept = true;
		r->idle = 0;
		r->run = REGION_SIZE;
		r->run_largest = 0;
		r->live = 0;
		r->count = 0;
		memset(h->bricks + (size_t)i * REGION_BRICKS, 0, REGION_BRICKS * sizeof(uint16_t));
	}
	*ret_first = first;
	return HEAP_ENOUGH;
}

bool heap_commit_ahead(struct heap *h, uint64_t bytes)
{
	/* A region has room for about its size; the last piece of each may be lost. */
	uint64_t wanted = bytes / (REGION_SIZE - 2 * PIECE_SIZE) + 4;

	pthread_mutex_lock(&h->lock);
	for (uint32_t i = 0; wanted > 0 && i < h->region_count; i++) {
		if (!is_free(h, i))
			continue;
		if (commit(h, i, 1) != HEAP_ENOUGH)
			break;
		if (h->region_end <= i)
			h->region_end = i + 1;
		wanted--;
	}
	pthread_mutex_unlock(&h->lock);
	return wanted == 0;
}

uint64_t heap_release(struct heap *h)
{
	uint64_t free_bytes = 0;

	for (uint32_t i = 0; i < h->region_end; i++) {
		struct region *r = heap_region(h, i);

		switch ((enum region_kind)r->kind) {
		case REGION_FREE:
			if (r->idle < UINT8_MAX)
				r->idle++;
			break;
		case REGION_TAIL:
			break;
		case REGION_HUGE: {
			struct gc_object *o = cell_object(heap_region_begin(h, i));

			/* Both bits are cleared here, because no sweep visits this region. */
			if (heap_is_marked(h, o)) {
				size_t bit = heap_offset(h, object_cell(o)) >> MARK_SHIFT;
				size_t last = (heap_offset(h, object_cell(o)) + object_size(o) -
						      CELL_ALIGN) >>
					      MARK_SHIFT;

				h->marks[bit >> 6] = 0;
				h->marks[last >> 6] = 0;
				break;
			}
			for (uint32_t count = r->count, j = i; j < i + count; j++) {
				heap_region(h, j)->kind = REGION_FREE;
				heap_region(h, j)->idle = 0;
			}
			break;
		}
		default:
			r->is_swept = false;
			if (r->live == 0) {
				r->kind = REGION_FREE;
				r->idle = 0;
			}
			break;
		}
		if (r->kind == REGION_FREE)
			free_bytes += r->is_committed ? REGION_SIZE : 0;
	}
	while (h->region_end > 0 && heap_region(h, h->region_end - 1)->kind == REGION_FREE &&
		!heap_region(h, h->region_end - 1)->is_committed)
		h->region_end--;
	h->free_hint = 0;
	memset(h->cursor, 0, sizeof(h->cursor));
	__atomic_store_n(&h->allocated_before, h->allocated_before + h->allocated,
		__ATOMIC_RELAXED);
	__atomic_store_n(&h->allocated, 0, __ATOMIC_RELAXED);
	return free_bytes;
}

void heap_trim(struct heap *h, uint8_t idle)
{
	for (uint32_t i = 0; i < h->region_end; i++) {
		struct region *r = heap_region(h, i);

		if (r->kind == REGION_FREE && r->is_committed && r->idle >= idle)
			decommit(h, i);
	}
}

struct gc_object *heap_object_at(struct heap *h, const void *address)
{
	/* A pointer to an object is 8 bytes after the begin of its cell. */
	size_t at = heap_offset(h, (const uint8_t *)address - CELL_HEADER);
	uint32_t index = (uint32_t)(at >> REGION_SHIFT);

	if (at >= h->size || index >= h->region_end)
		return NULL;
	struct region *r = heap_region(h, index);
	if (r->kind == REGION_FREE)
		return NULL;
	if (r->kind == REGION_HUGE || r->kind == REGION_TAIL) {
		uint32_t first = r->kind == REGION_HUGE ? index : index - r->count;
		struct gc_object *o = cell_object(heap_region_begin(h, first));

		return o->type && at < ((size_t)first << REGION_SHIFT) + object_size(o) ? o : NULL;
	}
	/*
	 * Walks cells from the nearest one that a brick refers to, or from the begin of the region.
	 */
	size_t region_at = (size_t)index << REGION_SHIFT;
	size_t cell = region_at;
	for (size_t brick = at >> BRICK_SHIFT; brick >= region_at >> BRICK_SHIFT; brick--) {
		if (h->bricks[brick]) {
			size_t known = (brick << BRICK_SHIFT) +
				       ((size_t)h->bricks[brick] - 1) * CELL_ALIGN;

			if (known <= at) {
				cell = known;
				break;
			}
		}
		if (brick == 0)
			break;
	}
	for (;;) {
		struct gc_object *o = cell_object(h->base + cell);
		if (!o->type)
			return NULL;
		size_t size = object_size(o);

		if (at < cell + size)
			return heap_is_free_cell(h, o) ? NULL : o;
		cell += size;
	}
}

bool heap_stretch(struct heap *h, uint32_t *region, enum region_kind *ret_kind, uint8_t **ret_begin,
	uint8_t **ret_end)
{
	uint32_t i = *region;

	while (i < h->region_end && heap_region(h, i)->kind == REGION_FREE)
		i++;
	if (i >= h->region_end)
		return false;
	enum region_kind kind = (enum region_kind)heap_region(h, i)->kind;
	uint32_t first = i;
	if (kind == REGION_HUGE) {
		i += heap_region(h, i)->count;
		kind = REGION_LARGE;
	} else {
		while (i < h->region_end && heap_region(h, i)->kind == (uint8_t)kind)
			i++;
	}
	*ret_kind = kind;
	*ret_begin = heap_region_begin(h, first);
	*ret_end = heap_region_begin(h, i);
	*region = i;
	return true;
}
