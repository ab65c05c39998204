/*
 * See clr_code.h. The map of code ranges has five levels of 256 pointers, indexed by 8 bits of the
 * address each, the first by bits 56 to 49. The last level has a list of fragments for 128 KiB. Bit 0
 * of each pointer marks collectible code.
 *
 * The nibble map has one u32 for 256 bytes of a heap: eight nibbles for 32 bytes each, the most
 * significant first. 0: no method starts there; 1 to 8: one starts at 4 * (nibble - 1). Since .NET 10
 * the lowest nibble may be 9 to 12: all 256 bytes are in the method at base + (u32 & ~15) + 4 * (nibble - 9).
 */
#include "code/clr_code.h"

#include <stdlib.h>

#include "base/cursor.h"
#include "base/partition_point.h"
#include "code/clr_layout.h"
#include "code/clr_memory.h"

#define LEVELS          5u
#define LEVEL_SHIFT     49u /* of the first level */
#define LEVEL_BITS      8u
#define FRAGMENTS_MAX   64u
#define MARK            UINT64_C(1)
#define SECTION_LEAST   16u
#define SECTION_MOST    (UINT64_C(8) << 30)
#define SECTIONS_MAX    1024u
#define HEAP_MOST       (UINT64_C(4) << 30)
#define UNIT_BYTES      256u
#define NIBBLE_BYTES    32u
#define NIBBLES         8u
#define UNITS_BACK_MAX  65536u /* 16 MiB: no method is larger */
#define UNWINDS_MAX     8192u
#define FUNCTIONS_MAX   (4u << 20)
#define PAGE_FUNCTIONS  256u
#define FUNCTION_BYTES  12u
#define PIECE_FUNCTIONS 4096u
#define FUNCLETS_MAX    64u
#define BUCKETS_MAX     (1u << 22)
#define BUCKET_KEYS     4u
#define PROBES_MAX      128u
#define PAGE_MASK       UINT64_C(0xfff)
/* the third word of a function's entry; the runtime's description does not name it */
#define ENTRY_UNWIND   8u
#define ENTRY_INDIRECT 1u
/* headers of an image in memory */
#define PE_MAGIC           0x5a4du
#define PE_OFFSET          0x3cu /* where it says at which offset the next four are */
#define PE_OFFSET_MAX      0x1000u
#define PE_SIGNATURE       0x4550u
#define PE_KIND            24u
#define PE_64_BITS         0x20bu
#define PE_DIRECTORY_COUNT (24u + 108u)
#define PE_DIRECTORIES     (24u + 112u)
#define PE_EXCEPTIONS      3u

enum section_flag { SECTION_COLLECTIBLE = 1, SECTION_HEAP = 2, SECTION_STUBS = 4 };

/* ---- sections ---- */

/* The tables of a precompiled image. */
static void read_image(struct clr_code *code, uint64_t module, struct clr_section *section)
{
	struct clr_memory *memory = code->memory;
	const struct clr_layout *l = code->layout;

	if (l->module_r2r == CLR_NO || l->r2r_composite == CLR_NO || l->r2r_functions == CLR_NO ||
		l->r2r_function_count == CLR_NO || l->r2r_entries == CLR_NO ||
		l->hash_buckets == CLR_NO || l->hash_mask == CLR_NO || l->bucket_keys == CLR_NO ||
		l->bucket_values == CLR_NO || l->bucket_bytes == CLR_NO ||
		l->unwind_bytes != FUNCTION_BYTES)
		return;
	uint64_t info = clr_memory_pointer(memory, module + l->module_r2r);
	info = clr_memory_pointer(memory, info + l->r2r_composite);
	uint64_t functions = clr_memory_pointer(memory, info + l->r2r_functions);
	uint32_t count = clr_memory_u32(memory, info + l->r2r_function_count);
	if (memory->failed || !count || count > FUNCTIONS_MAX)
		return;
	section->functions = functions;
	section->function_count = count;
	section->entries = info + l->r2r_entries;
}

/* The only node of a code heap. */
static void read_heap(struct clr_code *code, uint64_t heap, struct clr_section *section)
{
	struct clr_memory *memory = code->memory;
	const struct clr_layout *l = code->layout;
	uint64_t begin = clr_memory_pointer(memory, heap + l->heap_begin);
	uint64_t end = clr_memory_pointer(memory, heap + l->heap_end);
	uint64_t base = clr_memory_pointer(memory, heap + l->heap_base);
	uint64_t nibbles = clr_memory_pointer(memory, heap + l->heap_nibbles);

	/* A freed node fails here. */
	if (memory->failed || base & PAGE_MASK || base > begin || begin > end ||
		end - base >= HEAP_MOST || begin < section->begin || end > section->end)
		return;
	section->heap_base = base;
	section->heap_nibbles = nibbles;
}

static bool read_section(struct clr_code *code, uint64_t at, uint64_t address,
	struct clr_section *ret_section)
{
	struct clr_memory *memory = code->memory;
	const struct clr_layout *l = code->layout;
	struct clr_section section = {
		.begin = clr_memory_pointer(memory, at + l->section_begin),
		.end = clr_memory_pointer(memory, at + l->section_end),
		.flags = clr_memory_u32(memory, at + l->section_flags),
	};
	uint64_t module = clr_memory_u64(memory, at + l->section_module);
	uint64_t heap = clr_memory_u64(memory, at + l->section_heap);

	if (memory->failed || address < section.begin || address >= section.end ||
		section.end - section.begin < SECTION_LEAST ||
		section.end - section.begin > SECTION_MOST)
		return false;
	section.precompiled = module != 0;
	if (module)
		read_image(code, module, &section);
	else if (section.flags & SECTION_HEAP && heap)
		read_heap(code, heap, &section);
	*ret_section = section;
	return !memory->failed;
}

static bool walk_map(struct clr_code *code, uint64_t address, struct clr_section *ret_section)
{
	struct clr_memory *memory = code->memory;
	const struct clr_layout *l = code->layout;
	uint64_t at = l->code_map + l->map_top;

	for (unsigned level = 0; level < LEVELS; level++) {
		unsigned shift = LEVEL_SHIFT - level * LEVEL_BITS;
		at = clr_memory_u64(memory, at + (address >> shift & 0xff) * 8) & ~MARK;
		if (memory->failed || !at)
			return false;
	}
	for (unsigned i = 0; at && i < FRAGMENTS_MAX; i++) {
		uint64_t begin = clr_memory_u64(memory, at + l->fragment_begin);
		uint64_t end = clr_memory_u64(memory, at + l->fragment_end);
		uint64_t section = clr_memory_u64(memory, at + l->fragment_section) & ~MARK;
		if (memory->failed)
			return false;
		if (address >= begin && address < end)
			return read_section(code, section, address, ret_section);
		at = clr_memory_u64(memory, at + l->fragment_next) & ~MARK;
	}
	return false;
}

/* `spare` holds a section that is not remembered. */
static struct clr_section *find_section(struct clr_code *code, uint64_t address,
	struct clr_section *spare)
{
	vec_each(section, &code->sections)
		if (address >= section->begin && address < section->end)
			return section;
	if (!walk_map(code, address, spare))
		return NULL;
	bool lasts = !(spare->flags & SECTION_COLLECTIBLE) &&
		     (spare->heap_nibbles || spare->precompiled);
	if (lasts && code->sections.count < SECTIONS_MAX && vec_add(&code->sections, *spare))
		return vec_last(&code->sections);
	return spare;
}

/* ---- JIT code ---- */

/* The last start in the unit's nibbles `most` to 0. False: none. */
static bool start_in_unit(uint32_t unit, unsigned most, uint32_t slots_most, uint64_t *ret_offset)
{
	for (unsigned i = most + 1; i-- > 0;) {
		uint32_t nibble = unit >> (28 - 4 * i) & 15;
		if (nibble && nibble <= NIBBLES && (i < most || nibble - 1 <= slots_most)) {
			*ret_offset = i * (uint64_t)NIBBLE_BYTES + 4 * (uint64_t)(nibble - 1);
			return true;
		}
	}
	return false;
}

static bool points(const struct clr_code *code, uint32_t unit)
{
	uint32_t low = unit & 15;

	return code->layout->version == CLR_VERSION_10 && low >= 9 && low <= 12;
}

static uint64_t pointed(const struct clr_section *section, uint32_t unit)
{
	return section->heap_base + (unit & ~15u) + 4 * (uint64_t)((unit & 15) - 9);
}

static bool find_start(struct clr_code *code, const struct clr_section *section, uint64_t address,
	uint64_t *ret_start)
{
	struct clr_memory *memory = code->memory;
	uint64_t offset = address - section->heap_base;
	uint64_t index = offset / UNIT_BYTES;
	unsigned nibble = (unsigned)(offset % UNIT_BYTES / NIBBLE_BYTES);
	uint32_t slot = (uint32_t)(offset % NIBBLE_BYTES / 4);
	/* .NET 10 looks into one unit before: a method that covers more has units that point to it */
	uint32_t back = code->layout->version == CLR_VERSION_10 ? 1 : UNITS_BACK_MAX;

	if (address < section->heap_base)
		return false;
	for (uint32_t i = 0; i <= back && i <= index; i++) {
		uint32_t unit = clr_memory_u32(memory, section->heap_nibbles + (index - i) * 4);
		uint64_t at;
		if (memory->failed)
			return false;
		if (points(code, unit)) {
			*ret_start = pointed(section, unit);
			return true;
		}
		if (start_in_unit(unit, i ? NIBBLES - 1 : nibble, i ? NIBBLES : slot, &at)) {
			*ret_start = section->heap_base + (index - i) * UNIT_BYTES + at;
			return true;
		}
	}
	return false;
}

/* The entries of a block's functions. False: it is a stub, or was freed. */
static bool read_header(struct clr_code *code, uint64_t start, uint64_t *ret_header,
	uint64_t *ret_unwinds, uint32_t *ret_count)
{
	struct clr_memory *memory = code->memory;
	uint64_t header = clr_memory_u64(memory, start - 8);

	if (memory->failed || header <= code->layout->stub_last)
		return false;
	uint32_t count = clr_memory_u32(memory, header + code->layout->header_unwind_count);
	*ret_header = header;
	*ret_unwinds = header + code->layout->header_unwinds;
	*ret_count = count;
	return !memory->failed && count && count <= UNWINDS_MAX;
}

static bool read_block(struct clr_code *code, const struct clr_section *section, uint64_t start,
	struct clr_body *body)
{
	struct clr_memory *memory = code->memory;
	const struct clr_layout *l = code->layout;
	uint64_t header;
	uint64_t unwinds;
	uint32_t count;

	if (!read_header(code, start, &header, &unwinds, &count))
		return false;
	uint64_t method = clr_memory_pointer(memory, header + l->header_method);
	if (memory->failed || method % l->method_align)
		return false;
	uint64_t last = unwinds + (count - 1) * l->unwind_bytes;
	uint64_t begin = section->begin + clr_memory_u32(memory, unwinds + l->unwind_begin);
	uint64_t end = section->begin + clr_memory_u32(memory, last + l->unwind_end);
	if (memory->failed || begin != start || end <= begin || end > section->end)
		return false;
	*body = (struct clr_body){ .begin = begin,
		.end = end,
		.method = method,
		.header = header,
		.collectible = section->flags & SECTION_COLLECTIBLE };
	return true;
}

bool clr_code_stands(struct clr_code *code, const struct clr_body *body, bool lasts)
{
	struct clr_memory *memory = code->memory;
	uint64_t header = 0;
	uint64_t method = 0;

	memory->failed = false;
	return !body->header ||
	       (clr_memory_bytes_now(memory, body->begin - 8, &header, sizeof(header)) &&
		       header == body->header &&
		       (lasts || (clr_memory_bytes_now(memory, header + code->layout->header_method,
					  &method, sizeof(method)) &&
					 method == body->method)));
}

/* ---- precompiled code ---- */

/* Reads the whole table one time, so that a search reads only one page of it. */
static bool read_firsts(struct clr_code *code, struct clr_section *section)
{
	uint32_t count = (section->function_count + PAGE_FUNCTIONS - 1) / PAGE_FUNCTIONS;
	uint32_t *firsts = malloc(count * sizeof(*firsts));
	uint8_t *piece = malloc(PIECE_FUNCTIONS * FUNCTION_BYTES);
	bool read = firsts && piece;

	for (uint32_t i = 0; read && i < section->function_count; i += PIECE_FUNCTIONS) {
		uint32_t left = section->function_count - i;
		uint32_t part = left < PIECE_FUNCTIONS ? left : PIECE_FUNCTIONS;
		read = clr_memory_bytes_now(code->memory,
			section->functions + i * (uint64_t)FUNCTION_BYTES, piece,
			part * (size_t)FUNCTION_BYTES);
		for (uint32_t n = 0; read && n < part; n += PAGE_FUNCTIONS) {
			struct cursor c = cursor_of(piece + n * FUNCTION_BYTES, 4);
			firsts[(i + n) / PAGE_FUNCTIONS] = cursor_u32(&c);
		}
	}
	free(piece);
	if (!read) {
		free(firsts);
		return false;
	}
	section->firsts = firsts;
	return true;
}

static uint32_t function_begin(struct clr_code *code, const struct clr_section *section,
	uint32_t index)
{
	return clr_memory_u32(code->memory,
		section->functions + index * (uint64_t)FUNCTION_BYTES + code->layout->unwind_begin);
}

static uint32_t function_end(struct clr_code *code, const struct clr_section *section,
	uint32_t index)
{
	return clr_memory_u32(code->memory,
		section->functions + index * (uint64_t)FUNCTION_BYTES + code->layout->unwind_end);
}

/* The function that covers the place. */
static bool find_function(struct clr_code *code, struct clr_section *section, uint32_t place,
	uint32_t *ret_index)
{
	uint32_t low;
	uint32_t high = (section->function_count + PAGE_FUNCTIONS - 1) / PAGE_FUNCTIONS;

	if (!section->firsts && !read_firsts(code, section))
		return false;
	low = partition_point(high, page, section->firsts[page] <= place);
	if (!low)
		return false;
	high = low * PAGE_FUNCTIONS < section->function_count ? low * PAGE_FUNCTIONS
							      : section->function_count;
	low = partition_point_from((low - 1) * PAGE_FUNCTIONS, high, i,
		function_begin(code, section, i) <= place);
	if (!low || code->memory->failed || place >= function_end(code, section, low - 1))
		return false;
	*ret_index = low - 1;
	return !code->memory->failed;
}

/* The method that begins at this address; 0: none is known to. */
static uint64_t method_at(struct clr_code *code, uint64_t buckets, uint64_t bucket_count,
	uint64_t key)
{
	struct clr_memory *memory = code->memory;
	const struct clr_layout *l = code->layout;
	uint32_t seed = (uint32_t)(key >> 2);
	uint32_t step = 1 + ((uint32_t)(key >> 5) + 1) % (uint32_t)(bucket_count - 1);

	for (unsigned probe = 0; probe < PROBES_MAX; probe++) {
		uint64_t bucket = buckets + (1 + seed % bucket_count) * l->bucket_bytes;
		for (unsigned i = 0; i < BUCKET_KEYS; i++) {
			if (clr_memory_u64(memory, bucket + l->bucket_keys + 8 * i) != key)
				continue;
			uint64_t value = clr_memory_u64(memory, bucket + l->bucket_values + 8 * i);
			return memory->failed ? 0 : (value & l->hash_mask) << 1;
		}
		uint64_t first = clr_memory_u64(memory, bucket + l->bucket_values);
		if (memory->failed || !(first >> 63))
			return 0;
		seed += step;
	}
	return 0;
}

static bool find_precompiled(struct clr_code *code, struct clr_section *section, uint64_t address,
	struct clr_body *body)
{
	struct clr_memory *memory = code->memory;
	uint32_t index;

	if (!find_function(code, section, (uint32_t)(address - section->begin), &index))
		return false;
	uint64_t buckets =
		clr_memory_pointer(memory, section->entries + code->layout->hash_buckets);
	uint64_t bucket_count = clr_memory_u64(memory, buckets);
	if (memory->failed || bucket_count < 2 || bucket_count > BUCKETS_MAX)
		return false;
	uint64_t method = 0;
	uint32_t entry = index;
	for (unsigned i = 0; i < FUNCLETS_MAX; i++, entry--) {
		uint64_t begin = section->begin + function_begin(code, section, entry);
		method = method_at(code, buckets, bucket_count, begin);
		if (method || memory->failed || !entry)
			break;
	}
	if (memory->failed || !method || method % code->layout->method_align)
		return false;
	/* The method's funclets follow it. The next entry may be of a method that has not run. */
	*body = (struct clr_body){ .begin = section->begin + function_begin(code, section, entry),
		.end = section->begin + function_end(code, section, index),
		.method = method,
		.collectible = section->flags & SECTION_COLLECTIBLE,
		.precompiled = true };
	return !memory->failed && body->begin < body->end && body->end <= section->end;
}

bool clr_code_find(struct clr_code *code, uint64_t address, struct clr_body *ret_body)
{
	struct clr_section spare = { .begin = 0 };
	uint64_t start;

	code->memory->failed = false;
	struct clr_section *section = find_section(code, address, &spare);

	if (!section)
		return false;
	bool found;
	if (section->functions)
		found = find_precompiled(code, section, address, ret_body);
	else
		found = section->heap_nibbles && find_start(code, section, address, &start) &&
			start >= section->begin + 8 && start <= address &&
			read_block(code, section, start, ret_body) && address < ret_body->end;
	if (section == &spare)
		free(spare.firsts);
	return found;
}

bool clr_code_in_heap(struct clr_code *code, uint64_t address)
{
	struct clr_section spare = { .begin = 0 };

	code->memory->failed = false;
	const struct clr_section *section = find_section(code, address, &spare);

	/* If the map could not be read, nothing is known. */
	return section ? section->heap_nibbles || section->flags & SECTION_COLLECTIBLE ||
				 section->flags & SECTION_HEAP
		       : code->memory->failed;
}

/* ---- functions with their unwind information ---- */

/* Of a table that is sorted by begin, the entry that covers the address. Offsets are from the section's begin. */
static bool find_entry(struct clr_code *code, const struct clr_section *section, uint64_t table,
	uint32_t count, uint64_t address, struct clr_function *ret_function)
{
	struct clr_memory *memory = code->memory;
	const struct clr_layout *l = code->layout;
	uint64_t place = address - section->begin;
	uint32_t low = 0;
	uint32_t high = count;

	while (low < high && !memory->failed) {
		uint32_t middle = low + (high - low) / 2;
		if (clr_memory_u32(memory, table + middle * l->unwind_bytes + l->unwind_begin) <=
			place)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	uint64_t entry = table + (low - 1) * l->unwind_bytes;
	uint64_t begin = clr_memory_u32(memory, entry + l->unwind_begin);
	uint64_t end = clr_memory_u32(memory, entry + l->unwind_end);
	uint64_t unwind = clr_memory_u32(memory, entry + ENTRY_UNWIND);
	if (memory->failed || begin > place || place >= end || unwind & ENTRY_INDIRECT)
		return false;
	*ret_function = (struct clr_function){ .begin = section->begin + begin,
		.end = section->begin + end,
		.unwind = section->begin + unwind,
		.collectible = section->flags & SECTION_COLLECTIBLE };
	return true;
}

/* The exception directory of the image at the begin of the section. */
static void read_table(struct clr_code *code, struct clr_section *section)
{
	struct clr_memory *memory = code->memory;
	uint64_t base = section->begin;
	uint64_t pe = clr_memory_u32(memory, base + PE_OFFSET);

	if (clr_memory_u16(memory, base) != PE_MAGIC || pe > PE_OFFSET_MAX ||
		clr_memory_u32(memory, base + pe) != PE_SIGNATURE ||
		clr_memory_u16(memory, base + pe + PE_KIND) != PE_64_BITS ||
		clr_memory_u32(memory, base + pe + PE_DIRECTORY_COUNT) <= PE_EXCEPTIONS)
		return;
	uint64_t directory = base + pe + PE_DIRECTORIES + PE_EXCEPTIONS * 8;
	uint64_t table = clr_memory_u32(memory, directory);
	uint64_t count = clr_memory_u32(memory, directory + 4) / FUNCTION_BYTES;
	if (memory->failed || !table || count > FUNCTIONS_MAX)
		return;
	section->table = base + table;
	section->table_count = (uint32_t)count;
}

bool clr_code_function(struct clr_code *code, uint64_t address, struct clr_function *ret_function)
{
	struct clr_section spare = { .begin = 0 };
	uint64_t start;
	uint64_t header;
	uint64_t table;
	uint32_t count;

	code->memory->failed = false;
	struct clr_section *section = find_section(code, address, &spare);

	if (!section || code->layout->unwind_bytes != FUNCTION_BYTES)
		return false;
	if (section->precompiled) {
		if (!section->table)
			read_table(code, section);
		table = section->table;
		count = section->table_count;
	} else if (!section->heap_nibbles || !find_start(code, section, address, &start) ||
		   start < section->begin + 8 || start > address ||
		   !read_header(code, start, &header, &table, &count)) {
		return false;
	}
	return find_entry(code, section, table, count, address, ret_function);
}

void clr_code_done(struct clr_code *code)
{
	vec_each(section, &code->sections)
		free(section->firsts);
	vec_done(&code->sections);
}
