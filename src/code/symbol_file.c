/*
 * See symbol_file.h.
 *
 * One sorted array of functions, made of up to two tables: the exports (.dynsym), and the best of
 * .symtab, the debug file's .symtab, .gnu_debugdata and .gopclntab. Names are read at a lookup, so a large
 * table costs 24 bytes a function.
 *
 * Invariant: `functions` is sorted by begin; among equal begins the better name comes later, so a
 * search walks backwards.
 */
#include "code/symbol_file.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/partition_point.h"
#include "base/vec.h"
#include "code/debug_file.h"
#include "code/function_bounds.h"
#include "code/go_functions.h"
#include "image/elf.h"
#include "image/image_file.h"

#define FUNCTIONS_MAX   (4u << 20)
#define MINI_PACKED_MAX (32u << 20)
#define MINI_MAX        (64u << 20)
#define LZMA_MEMORY_MAX (128u << 20)
/* Up to this size symbols with equal ranges are compared by name; beyond, the first one wins. */
#define STRINGS_LOAD_MAX (32u << 20)
#define GO_TABLE_MAX     (256u << 20)
#define CHUNK_SYMBOLS    16384u
#define NAME_READ_FIRST  192u
/* Items before an address that a search examines: a symbol may have others nested inside. */
#define WALK_MAX 64u
/* A symbol without a size (hand-written assembly) extends to the next one, at most this far. */
#define UNSIZED_MAX 4096u

enum { STT_NOTYPE = 0, STT_FUNC = 2, STT_IFUNC = 10 };
enum { STB_LOCAL = 0, STB_GLOBAL = 1, STB_WEAK = 2, STB_UNIQUE = 10 };
enum { SHN_UNDEF = 0, SHN_LORESERVE = 0xff00, SHN_XINDEX = 0xffff };

/* Parts of a rank, most significant first. */
#define RANK_SIZED       0x80u
#define RANK_EXPORTED    0x40u
#define RANK_TYPED       0x20u
#define RANK_UNDERSCORES 0x02u /* multiplied by 7 minus the number of leading underscores */
#define RANK_GLOBAL      0x01u

/* How large tables are sorted: digits of the address, from this number of functions on. */
#define DIGIT_BITS        11u
#define DIGIT_MASK        ((UINT64_C(1) << DIGIT_BITS) - 1)
#define DIGIT_COUNT_LEAST 1000u

struct file_function {
	uint64_t begin;
	uint32_t size;
	uint32_t name; /* in the strings of its table */
	uint16_t section;
	uint8_t table;
	uint8_t rank;
};

/* The source of a table's names. */
struct table {
	struct image_file file;
	int fd;          /* owned; -1 */
	uint8_t *memory; /* owned; NULL */
	uint64_t strings_offset;
	uint64_t strings_size;
};

enum { TABLE_EXPORTS, TABLE_FULL, TABLE_COUNT };

struct symbol_file {
	struct image_file file;
	int fd;
	uint8_t *memory;
	struct elf elf;
	char *path;
	const struct symbol_search *search;
	bool loaded;
	enum symbol_origin origin;
	VEC(struct file_function) functions;
	struct table tables[TABLE_COUNT];
	char *name;
	size_t name_room;
};

static struct symbol_file *new_file(void)
{
	struct symbol_file *file = calloc(1, sizeof(*file));

	if (file) {
		file->fd = -1;
		for (unsigned i = 0; i < TABLE_COUNT; i++)
			file->tables[i].fd = -1;
	}
	return file;
}

/* One symbol table into the array */

static uint8_t rank_of(uint8_t type, uint8_t bind, uint64_t size, const char *name)
{
	unsigned underscores = 0;

	while (underscores < 7 && name && name[underscores] == '_')
		underscores++;
	unsigned rank = (7 - underscores) * RANK_UNDERSCORES;
	if (size)
		rank |= RANK_SIZED;
	if (bind != STB_LOCAL)
		rank |= RANK_EXPORTED;
	if (type != STT_NOTYPE)
		rank |= RANK_TYPED;
	if (bind == STB_GLOBAL)
		rank |= RANK_GLOBAL;
	return (uint8_t)rank;
}

static bool in_code(const struct elf *elf, uint64_t vaddr)
{
	vec_each(s, &elf->segments)
		if (s->executable && vaddr >= s->vaddr && vaddr - s->vaddr < s->memory_size)
			return true;
	return false;
}

/* "$x", "$d.12": ARM's marks of code and data, which do not name functions. Swift's names are "$s...". */
static bool is_mark(const char *name)
{
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) && (!name[2] || name[2] == '.');
}

/* `from` is the file that holds the table; the code is in file->elf. */
struct table_reader {
	struct symbol_file *file;
	const struct elf *from;
	const uint8_t *strings; /* NULL if they stay in the file */
	uint64_t strings_size;
	uint8_t table;
	bool take_unsized;
};

/*
 * Elf64_Sym: u32 name, u8 info (bind << 4 | type), u8 other, u16 section, u64 value, u64 size.
 * Elf32_Sym: u32 name, u32 value, u32 size, u8 info, u8 other, u16 section.
 */
static int take_symbol(struct table_reader *r, struct cursor *c)
{
	uint32_t name = cursor_u32(c);
	uint64_t value = 0;
	uint64_t size = 0;

	if (!r->from->is_64) {
		value = cursor_u32(c);
		size = cursor_u32(c);
	}
	uint8_t info = cursor_u8(c);
	cursor_skip(c, 1);
	uint16_t section = cursor_u16(c);
	if (r->from->is_64) {
		value = cursor_u64(c);
		size = cursor_u64(c);
	}
	uint8_t type = info & 15;
	uint8_t bind = info >> 4;
	if ((type != STT_FUNC && type != STT_IFUNC && type != STT_NOTYPE) || section == SHN_UNDEF ||
		(section >= SHN_LORESERVE && section != SHN_XINDEX) || !value || !name ||
		name >= r->strings_size)
		return 0;
	if (!size && (!r->take_unsized || (type == STT_NOTYPE && bind == STB_LOCAL)))
		return 0;
	if (section < r->from->sections.count &&
		!(r->from->sections.items[section].flags & ELF_SECTION_EXECUTABLE))
		return 0;
	if (!in_code(&r->file->elf, value))
		return 0;
	const char *text = r->strings ? (const char *)r->strings + name : NULL;
	if (text && (!*text || is_mark(text)))
		return 0;
	struct file_function function = {
		.begin = value,
		.size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size,
		.name = name,
		.section = section,
		.table = r->table,
		.rank = rank_of(type, bind, size, text),
	};
	return vec_add(&r->file->functions, function) ? 0 : -ENOMEM;
}

static const struct elf_section *section_of_type(const struct elf *elf, uint32_t type)
{
	for (uint32_t i = 0; i < elf->sections.count; i++) {
		if (elf->sections.items[i].type == type)
			return &elf->sections.items[i];
	}
	return NULL;
}

/* Of one table's names for a range (items from `first` on) the best remains, or the first. */
static void settle_equals(struct symbol_file *file, uint32_t first, const uint8_t *strings)
{
	struct file_function *f = file->functions.items;
	uint32_t kept = first;

	for (uint32_t i = first; i < file->functions.count; i++) {
		struct file_function *last = kept > first ? &f[kept - 1] : NULL;
		if (!last || last->begin != f[i].begin || last->size != f[i].size) {
			f[kept++] = f[i];
		} else if (f[i].rank > last->rank ||
			   (f[i].rank == last->rank && strings &&
				   strcmp((const char *)strings + f[i].name,
					   (const char *)strings + last->name) < 0)) {
			*last = f[i];
		}
	}
	file->functions.count = kept;
}

static int compare_functions(const void *a, const void *b)
{
	const struct file_function *x = a;
	const struct file_function *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	return x->name < y->name ? 1 : x->name > y->name ? -1 : 0;
}

/* The search order: among equal begins the better rank comes later. */
static int compare_for_search(const void *a, const void *b)
{
	const struct file_function *x = a;
	const struct file_function *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return compare_functions(a, b);
}

/* Sorts by begin alone, in passes over the digits that differ. False: there is no memory for a copy. */
static bool sort_by_begin(struct file_function *items, uint32_t count)
{
	cleanup(freep) struct file_function *copy = malloc((size_t)count * sizeof(*copy));
	struct file_function *from = items;
	struct file_function *to = copy;
	uint64_t differing = 0;

	if (!copy)
		return false;
	for (uint32_t i = 1; i < count; i++)
		differing |= items[i].begin ^ items[0].begin;
	for (unsigned shift = 0; shift < 64 && differing >> shift; shift += DIGIT_BITS) {
		uint32_t places[1u << DIGIT_BITS] = { 0 };
		uint32_t place = 0;
		if (!(differing >> shift & DIGIT_MASK))
			continue;
		for (uint32_t i = 0; i < count; i++)
			places[from[i].begin >> shift & DIGIT_MASK]++;
		for (uint32_t digit = 0; digit <= DIGIT_MASK; digit++) {
			uint32_t of = places[digit];
			places[digit] = place;
			place += of;
		}
		for (uint32_t i = 0; i < count; i++)
			to[places[from[i].begin >> shift & DIGIT_MASK]++] = from[i];
		struct file_function *done = from;
		from = to;
		to = done;
	}
	if (from != items)
		memcpy(items, from, (size_t)count * sizeof(*items));
	return true;
}

/* `compare` orders by begin first. A large table is the main cost of its image. */
static void sort(struct file_function *items, uint32_t count,
	int (*compare)(const void *, const void *))
{
	uint32_t at = 1;

	while (at < count && compare(&items[at - 1], &items[at]) <= 0)
		at++;
	if (at >= count)
		return;
	if (count < DIGIT_COUNT_LEAST || !sort_by_begin(items, count)) {
		qsort(items, count, sizeof(*items), compare);
		return;
	}
	for (uint32_t i = 0; i < count; i = at) {
		for (at = i + 1; at < count && items[at].begin == items[i].begin;)
			at++;
		if (at - i > 1)
			qsort(items + i, at - i, sizeof(*items), compare);
	}
}

/* Reads the table of `type` from `table->file`. False if it does not exist or cannot be read. */
static bool take_table(struct symbol_file *file, uint8_t number, const struct elf *from,
	uint32_t type)
{
	struct table *table = &file->tables[number];
	const struct elf_section *symbols = section_of_type(from, type);
	size_t size = from->is_64 ? 24 : 16;
	uint32_t first = file->functions.count;
	cleanup(freep) uint8_t *strings = NULL;
	cleanup(freep) uint8_t *chunk = NULL;

	if (!symbols || symbols->link >= from->sections.count || symbols->size < size)
		return false;
	const struct elf_section *names = &from->sections.items[symbols->link];
	if (names->type != ELF_SECTION_STRTAB || !names->size)
		return false;
	table->strings_offset = names->offset;
	table->strings_size = names->size;
	int error = image_file_load(&table->file, names->offset, names->size, STRINGS_LOAD_MAX,
		&strings);
	if (error && error != -EFBIG)
		return false;

	struct table_reader reader = {
		.file = file,
		.from = from,
		.strings = strings,
		.strings_size = names->size,
		.table = number,
		.take_unsized = type == ELF_SECTION_SYMTAB,
	};
	uint64_t left = symbols->size / size;
	uint64_t at = symbols->offset;
	uint32_t room = left < CHUNK_SYMBOLS ? (uint32_t)left : CHUNK_SYMBOLS;
	chunk = malloc(room * size);
	if (!chunk)
		return false;
	while (left && file->functions.count < FUNCTIONS_MAX) {
		uint32_t count = left < room ? (uint32_t)left : room;
		if (image_file_read(&table->file, at, chunk, count * size) < 0)
			break; /* the symbols before it remain valid */
		struct cursor c = cursor_of(chunk, count * size);
		for (uint32_t i = 0; i < count; i++) {
			if (take_symbol(&reader, &c) < 0)
				return false;
		}
		left -= count;
		at += (uint64_t)count * size;
	}
	if (file->functions.count == first)
		return false;
	sort(file->functions.items + first, file->functions.count - first, compare_functions);
	settle_equals(file, first, strings);
	return true;
}

/* The table packed inside */

static bool take_mini(struct symbol_file *file)
{
	const struct elf_section *section = elf_find_section(&file->elf, ".gnu_debugdata");
	struct table *table = &file->tables[TABLE_FULL];
	cleanup(freep) uint8_t *packed = NULL;
	cleanup(freep) uint8_t *plain = NULL;
	lzma_stream stream = LZMA_STREAM_INIT;
	size_t room = 1u << 20;
	struct elf elf;

	if (!section || image_file_load(&file->file, section->offset, section->size,
				MINI_PACKED_MAX, &packed) < 0)
		return false;
	if (lzma_stream_decoder(&stream, LZMA_MEMORY_MAX, 0) != LZMA_OK)
		return false;
	stream.next_in = packed;
	stream.avail_in = (size_t)section->size;
	lzma_ret result = LZMA_OK;
	while (result == LZMA_OK && stream.total_out < MINI_MAX) {
		if (stream.total_out == room || !plain) {
			if (plain)
				room *= 2;
			uint8_t *grown = realloc(plain, room);
			if (!grown)
				break;
			plain = grown;
		}
		stream.next_out = plain + stream.total_out;
		stream.avail_out = room - (size_t)stream.total_out;
		result = lzma_code(&stream, LZMA_FINISH);
	}
	size_t size = (size_t)stream.total_out;
	lzma_end(&stream);
	if (result != LZMA_STREAM_END)
		return false;
	table->memory = TAKE(plain);
	image_file_from_memory(&table->file, table->memory, size);
	if (elf_read(&elf, &table->file, NULL) < 0)
		return false;
	bool taken = take_table(file, TABLE_FULL, &elf, ELF_SECTION_SYMTAB);
	elf_done(&elf);
	return taken;
}

/* The table of the Go runtime */

struct go_reader {
	struct symbol_file *file;
	uint16_t section;
};

static bool take_go_function(void *context, uint64_t begin, uint64_t end, uint32_t name)
{
	struct go_reader *reader = context;
	const struct file_function function = { .begin = begin,
		.size = end - begin > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - begin),
		.name = name,
		.section = reader->section,
		.table = TABLE_FULL,
		.rank = RANK_SIZED | RANK_TYPED };

	if (!in_code(&reader->file->elf, begin))
		return true;
	return reader->file->functions.count < FUNCTIONS_MAX &&
	       vec_add(&reader->file->functions, function);
}

static bool take_go(struct symbol_file *file)
{
	const struct elf_section *section = elf_find_section(&file->elf, ".gopclntab");
	struct go_reader reader = { .file = file, .section = SHN_LORESERVE };
	struct table *table = &file->tables[TABLE_FULL];
	cleanup(freep) uint8_t *data = NULL;
	uint32_t first = file->functions.count;
	uint64_t names;

	if (!section)
		section = elf_find_section(&file->elf, ".data.rel.ro.gopclntab");
	if (!section || image_file_load(&file->file, section->offset, section->size, GO_TABLE_MAX,
				&data) < 0)
		return false;
	if (go_functions_read(data, (size_t)section->size, &names, take_go_function, &reader) < 0) {
		file->functions.count = first; /* a damaged table names nothing */
		return false;
	}
	table->strings_offset = section->offset + names;
	table->strings_size = section->size - names;
	return file->functions.count > first;
}

/* The separate debug file */

/* Takes ownership of fd. */
static bool take_debug_file(void *context, int opened, const struct elf *elf)
{
	cleanup(closep) int fd = opened;
	struct symbol_file *file = context;
	struct table *table = &file->tables[TABLE_FULL];

	if (image_file_from_fd(&table->file, fd, NULL) < 0 ||
		!take_table(file, TABLE_FULL, elf, ELF_SECTION_SYMTAB))
		return false;
	table->fd = TAKE_FD(fd);
	return true;
}

/* Exports are in the full table too: of equal ranges the later, better one remains. */
static void drop_doubles(struct symbol_file *file)
{
	struct file_function *f = file->functions.items;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < file->functions.count; i++) {
		if (kept && f[kept - 1].begin == f[i].begin && f[kept - 1].size == f[i].size)
			f[kept - 1] = f[i];
		else
			f[kept++] = f[i];
	}
	file->functions.count = kept;
}

/* All tables together */

/* Symbols without a size extend to the next symbol of their section. */
static void close_unsized(struct symbol_file *file)
{
	struct file_function *f = file->functions.items;

	for (uint32_t i = 0; i < file->functions.count; i++) {
		if (f[i].size)
			continue;
		uint32_t next = i + 1;
		while (next < file->functions.count && f[next].begin == f[i].begin)
			next++;
		/* The last symbol of a section has no successor, so its end is unknown. */
		if (next == file->functions.count || f[next].section != f[i].section)
			continue;
		uint64_t size = f[next].begin - f[i].begin;
		f[i].size = size < UNSIZED_MAX ? (uint32_t)size : UNSIZED_MAX;
	}
}

static void load(struct symbol_file *file)
{
	struct table *exports = &file->tables[TABLE_EXPORTS];
	struct table *full = &file->tables[TABLE_FULL];

	file->loaded = true;
	exports->file = full->file = file->file;
	if (take_table(file, TABLE_FULL, &file->elf, ELF_SECTION_SYMTAB))
		file->origin = SYMBOL_ORIGIN_SYMTAB;
	else if (file->search &&
		 debug_file_find(&file->elf, file->path, file->search, take_debug_file, file))
		file->origin = SYMBOL_ORIGIN_DEBUG_FILE;
	else if (take_mini(file))
		file->origin = SYMBOL_ORIGIN_MINI;
	else if (take_go(file))
		file->origin = SYMBOL_ORIGIN_GO;
	if (take_table(file, TABLE_EXPORTS, &file->elf, ELF_SECTION_DYNSYM) &&
		file->origin == SYMBOL_ORIGIN_NONE)
		file->origin = SYMBOL_ORIGIN_DYNSYM;
	if (file->functions.count)
		sort(file->functions.items, file->functions.count, compare_for_search);
	drop_doubles(file);
	close_unsized(file);
}

static int set_name(struct symbol_file *file, size_t room)
{
	if (file->name_room >= room)
		return 0;
	char *grown = realloc(file->name, room);
	if (!grown)
		return -ENOMEM;
	file->name = grown;
	file->name_room = room;
	return 0;
}

/* Reads the name of the found function into file->name. */
static int read_name(struct symbol_file *file, const struct file_function *function,
	size_t *ret_len)
{
	const struct table *table = &file->tables[function->table];
	uint64_t left = table->strings_size - function->name;

	for (size_t size = NAME_READ_FIRST;; size = SYMBOL_NAME_MAX) {
		size_t take = left < size ? (size_t)left : size;
		if (set_name(file, take + 1) < 0)
			return -ENOMEM;
		int error = image_file_read(&table->file, table->strings_offset + function->name,
			file->name, take);
		if (error)
			return error;
		size_t len = strnlen(file->name, take);
		if (len < take || take == left || size == SYMBOL_NAME_MAX) {
			const char *version = memchr(file->name, '@', len);
			if (version && version > file->name)
				len = (size_t)(version - file->name);
			file->name[len] = 0;
			*ret_len = len;
			return len ? 0 : -ENODATA;
		}
	}
}

bool symbol_file_find_vaddr(struct symbol_file *file, uint64_t vaddr, struct symbol_hit *ret_hit)
{
	if (!file->loaded)
		load(file);
	uint32_t low =
		partition_point(file->functions.count, i, file->functions.items[i].begin <= vaddr);
	for (uint32_t walked = 0; low > 0 && walked < WALK_MAX; walked++) {
		const struct file_function *function = &file->functions.items[--low];
		struct symbol_hit hit = { .begin_vaddr = function->begin };
		if (vaddr - function->begin >= function->size)
			continue;
		if (read_name(file, function, &hit.name_len) < 0)
			return false;
		hit.name = file->name;
		hit.end_vaddr = function->begin + function->size;
		/* A debug file has the address and not the code, so no offset. */
		(void)elf_offset_of_vaddr(&file->elf, function->begin, &hit.begin_offset);
		*ret_hit = hit;
		return true;
	}
	return false;
}

bool symbol_file_find_offset(struct symbol_file *file, uint64_t offset, struct symbol_hit *ret_hit)
{
	struct symbol_hit hit;
	uint64_t vaddr;

	if (!elf_vaddr_of_offset(&file->elf, offset, &vaddr) ||
		!symbol_file_find_vaddr(file, vaddr, &hit) ||
		!elf_offset_of_vaddr(&file->elf, hit.begin_vaddr, &hit.begin_offset))
		return false;
	*ret_hit = hit;
	return true;
}

bool symbol_file_find_bounds(struct symbol_file *file, uint64_t offset, struct symbol_hit *ret_hit)
{
	struct symbol_hit hit = { 0 };
	struct symbol_hit named;
	uint64_t vaddr;

	if (!elf_vaddr_of_offset(&file->elf, offset, &vaddr) ||
		!function_bounds_find(&file->file, &file->elf, vaddr, &hit.begin_vaddr,
			&hit.end_vaddr) ||
		!elf_offset_of_vaddr(&file->elf, hit.begin_vaddr, &hit.begin_offset) ||
		(symbol_file_find_vaddr(file, hit.begin_vaddr, &named) &&
			named.begin_vaddr == hit.begin_vaddr) ||
		set_name(file, FUNCTION_BOUNDS_NAME_SIZE) < 0)
		return false;
	function_bounds_name(hit.begin_vaddr, file->name);
	hit.name = file->name;
	hit.name_len = strlen(file->name);
	*ret_hit = hit;
	return true;
}

int symbol_file_open(int fd, const char *path, const struct symbol_search *search,
	struct symbol_file **ret_file, struct diag *diag)
{
	cleanup(closep) int own = fd;
	struct symbol_file *file = new_file();
	int error = -ENOMEM;

	if (!file)
		return diag_set(diag, -ENOMEM, "no memory for symbols");
	error = image_file_from_fd(&file->file, fd, diag);
	if (!error)
		error = elf_read(&file->elf, &file->file, diag);
	if (!error && path && !(file->path = strdup(path)))
		error = -ENOMEM;
	if (error) {
		symbol_file_close(file);
		return error;
	}
	file->fd = TAKE_FD(own);
	file->search = search;
	*ret_file = file;
	return 0;
}

int symbol_file_open_memory(const void *data, size_t size, struct symbol_file **ret_file,
	struct diag *diag)
{
	struct symbol_file *file = new_file();

	if (!file || !(file->memory = malloc(size ? size : 1))) {
		symbol_file_close(file);
		return diag_set(diag, -ENOMEM, "no memory for symbols");
	}
	if (size)
		memcpy(file->memory, data, size);
	image_file_from_memory(&file->file, file->memory, size);
	int error = elf_read(&file->elf, &file->file, diag);
	if (error) {
		symbol_file_close(file);
		return error;
	}
	*ret_file = file;
	return 0;
}

const struct elf *symbol_file_elf(const struct symbol_file *file)
{
	return &file->elf;
}

enum symbol_origin symbol_file_origin(const struct symbol_file *file)
{
	return file->origin;
}

size_t symbol_file_size_bytes(const struct symbol_file *file)
{
	size_t size = sizeof(*file) + file->functions.capacity * sizeof(struct file_function) +
		      file->name_room;

	if (file->memory)
		size += (size_t)file->file.size_bytes;
	if (file->tables[TABLE_FULL].memory)
		size += (size_t)file->tables[TABLE_FULL].file.size_bytes;
	return size;
}

void symbol_file_close(struct symbol_file *file)
{
	if (!file)
		return;
	for (unsigned i = 0; i < TABLE_COUNT; i++) {
		closep(&file->tables[i].fd);
		free(file->tables[i].memory);
	}
	vec_done(&file->functions);
	elf_done(&file->elf);
	closep(&file->fd);
	free(file->memory);
	free(file->path);
	free(file->name);
	free(file);
}
