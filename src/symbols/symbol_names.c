/* See symbol_names.h. */
#include "symbols/symbol_names.h"

#include <errno.h>

#include "analysis/missing_symbols.h"
#include "base/bytes.h"
#include "base/map.h"
#include "code/demangle.h"
#include "code/symbol_file.h"
#include "image/elf.h"
#include "symbolize/symbol_cache.h"
#include "trace/trace.h"

struct symbol_name_search {
	struct symbol_names *found;
	struct trace *trace;
	struct bytes text;
	struct map known;    /* hash of mapping and begin -> 1: has its name */
	struct map replaced; /* symbol with bounds only -> 1: has been replaced */
};

static uint32_t name_text(struct symbol_name_search *search, const struct symbol_hit *hit)
{
	bytes_reset(&search->text);
	if (!demangle(hit->name, hit->name_len, &search->text))
		bytes_add(&search->text, hit->name, hit->name_len);
	return search->text.failed ? 0
				   : strtab_add(&search->trace->strings,
					     (const char *)search->text.data, search->text.len);
}

/* Adds the name of one address. 1: named; 0: the file has no symbol there; -ENOMEM. */
static int name_address(struct symbol_name_search *search, struct symbol_file *file,
	const struct missing_address *missing)
{
	const struct mapping *mapping = &search->trace->mappings.items[missing->mapping];
	uint64_t vaddr = missing->address - mapping->begin + mapping->file_offset -
			 mapping->text_offset + mapping->text_vaddr;
	struct symbol_hit hit;

	if (!symbol_file_find_vaddr(file, vaddr, &hit))
		return 0;
	struct symbol_name name = {
		.mapping_id = mapping->id,
		.begin = missing->address - (vaddr - hit.begin_vaddr),
		.end = missing->address + (hit.end_vaddr - vaddr),
	};
	uint64_t key = hash_u64(name.begin ^ hash_u64(mapping->id));
	if (map_get(&search->known, key))
		return 1;
	name.name = name_text(search, &hit);
	if (missing->symbol && !map_get(&search->replaced, missing->symbol)) {
		name.replaced = missing->symbol;
		if (!map_add(&search->replaced, missing->symbol, 1))
			return -ENOMEM;
	}
	return name.name && map_add(&search->known, key, 1) && vec_add(&search->found->names, name)
		       ? 1
		       : -ENOMEM;
}

static int name_addresses(struct symbol_name_search *search, struct symbol_file *file,
	const struct missing_symbols *missing, uint32_t image)
{
	const struct missing_image *of = &missing->images.items[image];

	for (uint32_t i = 0; i < of->address_count; i++) {
		const struct missing_address *address =
			&missing->addresses.items[of->address_at + i];
		int result = name_address(search, file, address);
		if (result < 0)
			return result;
		if (result)
			search->found->by_image.items[image] += address->frames;
	}
	search->found->frames += search->found->by_image.items[image];
	return 0;
}

static int name_image(struct symbol_name_search *search, const struct missing_symbols *missing,
	uint32_t image, const struct symbol_cache *cache)
{
	const struct missing_image *of = &missing->images.items[image];
	uint8_t *state = &search->found->states.items[image];
	struct symbol_file *file;
	int fd;

	if (!of->build_id) {
		*state = SYMBOLS_NO_ID;
		return 0;
	}
	int result = symbol_cache_find(cache, trace_text(search->trace, of->build_id), &fd);
	if (result == 0)
		result = symbol_file_open(fd, NULL, NULL, &file, NULL);
	if (result == -ENOMEM)
		return result;
	if (result < 0) {
		*state = result == -ENOENT ? SYMBOLS_ABSENT : SYMBOLS_WRONG;
		return 0;
	}
	/* Recorders that do not know where the code begins write 0, which is also valid. */
	if (symbol_file_elf(file)->text_vaddr == of->text_vaddr) {
		*state = SYMBOLS_USED;
		result = name_addresses(search, file, missing, image);
	} else {
		*state = SYMBOLS_UNSUITABLE;
	}
	symbol_file_close(file);
	return result;
}

bool symbol_names_possible(const struct trace *trace, const struct symbol_cache *cache)
{
	struct map asked = { 0 };
	bool possible = false;

	for (uint32_t i = 0; i < trace->identities.count && !possible; i++) {
		uint32_t build_id = trace->identities.items[i].build_id;
		if (map_get(&asked, build_id))
			continue;
		possible = symbol_cache_has(cache, trace_text(trace, build_id));
		(void)map_add(&asked, build_id, 1); /* only slower without */
	}
	map_done(&asked);
	return possible;
}

int symbol_names_find(struct symbol_names *found, struct trace *trace,
	const struct missing_symbols *missing, const struct symbol_cache *cache)
{
	struct symbol_name_search search = { .found = found, .trace = trace };
	int result = 0;

	*found = (struct symbol_names){ 0 };
	for (uint32_t i = 0; i < missing->images.count && result == 0; i++) {
		if (!vec_push(&found->states) || !vec_push(&found->by_image))
			result = -ENOMEM;
		else
			result = name_image(&search, missing, i, cache);
	}
	bytes_done(&search.text);
	map_done(&search.known);
	map_done(&search.replaced);
	return result;
}

bool symbol_names_use(const struct symbol_names *found, struct trace *trace)
{
	for (uint32_t i = 0; i < found->names.count; i++) {
		const struct symbol_name *name = &found->names.items[i];
		struct symbol *symbol = name->replaced ? &trace->symbols.items[name->replaced - 1]
						       : vec_push(&trace->symbols);
		if (!symbol)
			return false;
		*symbol = (struct symbol){
			.begin = name->begin,
			.end = name->end,
			.mapping_id = name->mapping_id,
			.name = name->name,
		};
	}
	return true;
}

void symbol_names_done(struct symbol_names *found)
{
	vec_done(&found->names);
	vec_done(&found->states);
	vec_done(&found->by_image);
	*found = (struct symbol_names){ 0 };
}
