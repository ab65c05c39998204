/*
 * See clr_export.h. From the System V ABI, little-endian, 64 bits:
 *
 *   header          32 u64 offset of the program headers, 54 u16 size of one, 56 u16 their number
 *   program header  0 u32 type, 4 u32 flags, 8 u64 offset, 16 u64 vaddr, 32 u64 size in the file, 40 in memory
 *   dynamic entry   0 u64 tag, 8 u64 value
 *   symbol          0 u32 name, 4 u8 info, 6 u16 section, 8 u64 value, 16 u64 size
 *   .gnu.hash       u32 buckets, u32 first symbol, u32 words of the filter, u32 shift, filter, buckets, hashes
 */
#include "code/clr_export.h"

#include <string.h>

#include "base/cursor.h"
#include "code/clr_memory.h"

#define HEADER_BYTES       64u
#define PROGRAM_BYTES      56u
#define PROGRAMS_MAX       64u
#define DYNAMICS_MAX       256u
#define CHAIN_MAX          4096u
#define BUCKETS_MAX        (1u << 20)
#define NAME_MAX_BYTES     64u
#define SYMBOL_BYTES       24u
#define PAGE_MASK          UINT64_C(0xfff)
#define SEGMENT_SHIFTS_MAX 64u /* pages by which a linker shifts a segment: 4 segments of 64 KiB */
#define PROGRAM_LOAD       1u
#define PROGRAM_DYNAMIC    2u
#define PROGRAM_EXECUTABLE 1u
#define DYNAMIC_NAMES      5u
#define DYNAMIC_SYMBOLS    6u
#define DYNAMIC_GNU_HASH   0x6ffffef5u
#define HASH_SEED          5381u
#define HASH_HEAD_BYTES    16u
#define FILTER_WORD_BYTES  8u

struct program {
	uint32_t type;
	uint32_t flags;
	uint64_t offset;
	uint64_t vaddr;
	uint64_t memory_size;
};

/* Number of program headers of the image at `base`, and their address; 0: no image is there. */
static uint32_t programs_of(struct clr_memory *memory, uint64_t base, uint64_t *ret_address)
{
	uint8_t header[HEADER_BYTES];

	if (!clr_memory_bytes(memory, base, header, sizeof(header)) || memcmp(header,
									       "\x7f"
									       "ELF\x02\x01",
									       6) != 0)
		return 0;
	struct cursor c = cursor_of(header + 32, 8);
	uint64_t offset = cursor_u64(&c);
	c = cursor_of(header + 54, 4);
	uint16_t size = cursor_u16(&c);
	uint16_t count = cursor_u16(&c);
	if (size != PROGRAM_BYTES || count > PROGRAMS_MAX || offset > CLR_PAGE_BYTES)
		return 0;
	*ret_address = base + offset;
	return count;
}

static bool read_program(struct clr_memory *memory, uint64_t address, struct program *program)
{
	uint8_t bytes[PROGRAM_BYTES];

	if (!clr_memory_bytes(memory, address, bytes, sizeof(bytes)))
		return false;
	struct cursor c = cursor_of(bytes, sizeof(bytes));
	program->type = cursor_u32(&c);
	program->flags = cursor_u32(&c);
	program->offset = cursor_u64(&c);
	program->vaddr = cursor_u64(&c);
	cursor_skip(&c, 16); /* physical address, size in the file */
	program->memory_size = cursor_u64(&c);
	return true;
}

/* Whether the image at `base` has this executable mapping. */
static bool has_mapping(struct clr_memory *memory, uint64_t base, uint64_t begin,
	uint64_t file_offset)
{
	struct program program;
	uint64_t at;
	uint32_t count = programs_of(memory, base, &at);

	for (uint32_t i = 0; i < count; i++) {
		if (!read_program(memory, at + i * (uint64_t)PROGRAM_BYTES, &program))
			return false;
		if (program.type == PROGRAM_LOAD && program.flags & PROGRAM_EXECUTABLE &&
			(program.offset & ~PAGE_MASK) == file_offset &&
			base + (program.vaddr & ~PAGE_MASK) == begin)
			return true;
	}
	return false;
}

bool clr_export_image(struct clr_memory *memory, uint64_t mapping_begin, uint64_t file_offset,
	uint64_t *ret_base)
{
	for (uint64_t i = 0; i <= SEGMENT_SHIFTS_MAX; i++) {
		uint64_t base = mapping_begin - file_offset - i * (PAGE_MASK + 1);
		memory->failed = false; /* the pages between two segments may not be mapped */
		if (has_mapping(memory, base, mapping_begin, file_offset)) {
			*ret_base = base;
			return true;
		}
	}
	return false;
}

static uint32_t hash_of(const char *name)
{
	uint32_t hash = HASH_SEED;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

struct export_tables {
	uint64_t names;
	uint64_t symbols;
	uint64_t hashes;
};

/* glibc has relocated these addresses in place, musl has not. */
static uint64_t relocated(uint64_t base, uint64_t value)
{
	return value < base ? base + value : value;
}

static bool read_tables(struct clr_memory *memory, uint64_t base, struct export_tables *tables)
{
	struct program program = { 0 };
	uint64_t at;
	uint32_t count = programs_of(memory, base, &at);
	uint32_t i = 0;

	while (i < count && read_program(memory, at + i * (uint64_t)PROGRAM_BYTES, &program) &&
		program.type != PROGRAM_DYNAMIC)
		i++;
	if (i == count || memory->failed)
		return false;
	uint64_t entry_count = program.memory_size / 16;
	for (uint64_t n = 0; n < entry_count && n < DYNAMICS_MAX; n++) {
		uint64_t tag = clr_memory_u64(memory, base + program.vaddr + n * 16);
		uint64_t value = clr_memory_u64(memory, base + program.vaddr + n * 16 + 8);
		if (!tag)
			break;
		if (tag == DYNAMIC_NAMES)
			tables->names = relocated(base, value);
		else if (tag == DYNAMIC_SYMBOLS)
			tables->symbols = relocated(base, value);
		else if (tag == DYNAMIC_GNU_HASH)
			tables->hashes = relocated(base, value);
	}
	return !memory->failed && tables->names && tables->symbols && tables->hashes;
}

bool clr_export_find(struct clr_memory *memory, uint64_t base, const char *name,
	uint64_t *ret_address)
{
	struct export_tables tables = { 0 };
	char found[NAME_MAX_BYTES];
	size_t size = strlen(name) + 1;

	memory->failed = false;
	if (size > sizeof(found) || !read_tables(memory, base, &tables))
		return false;
	uint32_t bucket_count = clr_memory_u32(memory, tables.hashes);
	uint32_t first = clr_memory_u32(memory, tables.hashes + 4);
	uint32_t filter_count = clr_memory_u32(memory, tables.hashes + 8);
	if (memory->failed || !bucket_count || bucket_count > BUCKETS_MAX ||
		filter_count > BUCKETS_MAX)
		return false;
	uint32_t hash = hash_of(name);
	uint64_t buckets =
		tables.hashes + HASH_HEAD_BYTES + filter_count * (uint64_t)FILTER_WORD_BYTES;
	uint32_t symbol = clr_memory_u32(memory, buckets + hash % bucket_count * UINT64_C(4));
	uint64_t chain = buckets + bucket_count * UINT64_C(4);
	for (uint32_t i = 0; symbol >= first && symbol && i < CHAIN_MAX; i++, symbol++) {
		uint32_t other = clr_memory_u32(memory, chain + (symbol - first) * UINT64_C(4));
		uint64_t at = tables.symbols + symbol * (uint64_t)SYMBOL_BYTES;
		if ((other | 1) == (hash | 1) &&
			clr_memory_bytes(memory, tables.names + clr_memory_u32(memory, at), found,
				size) &&
			!memcmp(found, name, size)) {
			*ret_address = base + clr_memory_u64(memory, at + 8);
			return !memory->failed;
		}
		if (memory->failed || other & 1)
			break;
	}
	return false;
}
