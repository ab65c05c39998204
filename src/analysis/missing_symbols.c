/* See missing_symbols.h. */
#include "analysis/missing_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code/function_bounds.h"
#include "trace/event.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

/* What find_address() remembers of an address that is not missing. */
#define NOT_MISSING UINT32_MAX

bool missing_symbols_add(struct missing_symbols *missing, uint32_t process, uint32_t stack,
	uint64_t count)
{
	uint64_t key = (uint64_t)process << 32 | stack;
	uint32_t known = map_get(&missing->stack_index, key);

	if (!stack)
		return true;
	if (known) {
		missing->stacks.items[known - 1].count += count;
		return true;
	}
	return vec_add(&missing->stacks,
		       ((struct missing_stack){
			       .process = process, .stack = stack, .count = count })) &&
	       map_add(&missing->stack_index, key, missing->stacks.count);
}

int missing_symbols_event(void *context, const struct event *event)
{
	struct missing_symbols *missing = context;
	const struct trace *trace = missing->trace;

	if (!event->stack_index || event->thread_index >= trace->threads.count)
		return 0;
	return missing_symbols_add(missing, trace->threads.items[event->thread_index].process,
		       event->stack_index, 1)
		       ? 0
		       : -ENOMEM;
}

struct missing_search {
	struct missing_symbols *missing;
	const struct symbolmap *names;
	struct map images;    /* build id, or path -> image + 1 */
	struct map addresses; /* hash of process and address -> address + 1, or NOT_MISSING */
	struct map functions; /* hash of image and begin -> 1 */
};

/* Index plus one; 0: no memory. */
static uint32_t image_of(struct missing_search *search, const struct mapping *mapping)
{
	struct missing_symbols *missing = search->missing;
	/* Of one path there may be several files. */
	uint64_t key = (uint64_t)mapping->build_id << 32 | mapping->path;
	uint32_t known = map_get(&search->images, key);

	if (known)
		return known;
	if (!vec_add(&missing->images, ((struct missing_image){
					       .build_id = mapping->build_id,
					       .path = mapping->path,
					       .text_vaddr = mapping->text_vaddr,
					       .text_offset = mapping->text_offset,
				       })) ||
		!map_add(&search->images, key, missing->images.count))
		return 0;
	return missing->images.count;
}

static bool is_bounds_name(const struct trace *trace, const struct symbol *symbol)
{
	const char *name = trace_text(trace, symbol->name);

	return function_bounds_is_name(name, strlen(name), symbol->begin);
}

/* Counts a function of the image once. False: no memory. */
static bool count_function(struct missing_search *search, uint32_t image, uint64_t offset)
{
	uint64_t key = hash_u64(offset ^ hash_u64(image));

	if (map_get(&search->functions, key))
		return true;
	search->missing->images.items[image].functions++;
	return map_add(&search->functions, key, 1);
}

/* Adds the address if it lacks a symbol: its index plus one, or NOT_MISSING. 0: no memory. */
static uint32_t look_up(struct missing_search *search, uint32_t process, uint64_t address)
{
	struct missing_symbols *missing = search->missing;
	const struct trace *trace = missing->trace;
	uint32_t mapping_index;
	uint32_t symbol;

	if (!symbolmap_native(search->names, process, address, &mapping_index, &symbol) ||
		(symbol && !is_bounds_name(trace, &trace->symbols.items[symbol - 1])))
		return NOT_MISSING;
	const struct mapping *mapping = &trace->mappings.items[mapping_index];
	uint32_t image = image_of(search, mapping);
	uint64_t begin = symbol ? trace->symbols.items[symbol - 1].begin : address;

	if (!image ||
		!count_function(search, image - 1, begin - mapping->begin + mapping->file_offset))
		return 0;
	return vec_add(&missing->addresses, ((struct missing_address){
						    .address = address,
						    .mapping = mapping_index,
						    .symbol = symbol,
						    .image = image - 1,
					    }))
		       ? missing->addresses.count
		       : 0;
}

static bool count_frame(struct missing_search *search, uint32_t process, uint64_t address,
	uint64_t count)
{
	struct missing_symbols *missing = search->missing;
	uint64_t key = hash_u64(address + ((uint64_t)process << 48));
	uint32_t known = map_get(&search->addresses, key);

	if (!known) {
		known = look_up(search, process, address);
		if (!known || !map_add(&search->addresses, key, known))
			return false;
	}
	missing->frames += count;
	if (known == NOT_MISSING)
		return true;
	missing->addresses.items[known - 1].frames += count;
	missing->images.items[missing->addresses.items[known - 1].image].frames += count;
	missing->missing_frames += count;
	return true;
}

struct ordered_image {
	struct missing_image image;
	uint32_t index;
};

static int compare_images(const void *left, const void *right)
{
	const struct ordered_image *a = left;
	const struct ordered_image *b = right;

	if (a->image.frames != b->image.frames)
		return a->image.frames > b->image.frames ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static int compare_addresses(const void *left, const void *right)
{
	const struct missing_address *a = left;
	const struct missing_address *b = right;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->mapping != b->mapping)
		return a->mapping < b->mapping ? -1 : 1;
	return a->address < b->address ? -1 : a->address > b->address;
}

/* Images by frames, and the addresses of each together. */
static int put_in_order(struct missing_symbols *missing)
{
	uint32_t count = missing->images.count;
	struct ordered_image *ordered = calloc((size_t)count + 1, sizeof(*ordered));
	uint32_t *places = calloc((size_t)count + 1, sizeof(*places));

	for (uint32_t i = 0; ordered && i < count; i++)
		ordered[i] = (struct ordered_image){ missing->images.items[i], i };
	if (ordered && places && count) {
		qsort(ordered, count, sizeof(*ordered), compare_images);
		for (uint32_t i = 0; i < count; i++) {
			missing->images.items[i] = ordered[i].image;
			places[ordered[i].index] = i;
		}
		for (uint32_t i = 0; i < missing->addresses.count; i++)
			missing->addresses.items[i].image =
				places[missing->addresses.items[i].image];
		qsort(missing->addresses.items, missing->addresses.count,
			sizeof(missing->addresses.items[0]), compare_addresses);
		for (uint32_t i = missing->addresses.count; i-- > 0;) {
			struct missing_image *image =
				&missing->images.items[missing->addresses.items[i].image];
			image->address_at = i;
			image->address_count++;
		}
	}
	int error = ordered && places ? 0 : -ENOMEM;
	free(ordered);
	free(places);
	return error;
}

int missing_symbols_find(struct missing_symbols *missing, const struct symbolmap *names)
{
	struct missing_search search = { .missing = missing, .names = names };
	bool done = true;

	for (uint32_t i = 0; i < missing->stacks.count && done; i++) {
		const struct missing_stack *stack = &missing->stacks.items[i];
		uint32_t count;
		const uint64_t *frames =
			stack_table_get(&missing->trace->stacks, stack->stack, &count);
		for (uint32_t f = 0; f < count && done; f++)
			done = count_frame(&search, stack->process, frames[f], stack->count);
	}
	map_done(&search.images);
	map_done(&search.addresses);
	map_done(&search.functions);
	return done ? put_in_order(missing) : -ENOMEM;
}

void missing_symbols_done(struct missing_symbols *missing)
{
	vec_done(&missing->stacks);
	map_done(&missing->stack_index);
	vec_done(&missing->images);
	vec_done(&missing->addresses);
	*missing = (struct missing_symbols){ 0 };
}
