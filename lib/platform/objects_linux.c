/*
 * Objects from dl_iterate_phdr(), their functions from .symtab, or from .dynsym if the file is
 * stripped.
 */
#include "lib/platform/objects.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS_MAX 65536u
/* symbols per read; one call of object_symbols_next() reads at most OBJECT_STEPS times */
#define OBJECT_STEP     256u
#define OBJECT_STEPS    64u
#define OBJECT_NOTE_MAX 4096u

struct object_build {
	struct object *objects;
	size_t count;
	size_t room;
	bool failed;
};

static size_t object_note_size(const ElfW(Phdr) * header)
{
	return header->p_type != PT_NOTE            ? 0
	       : header->p_filesz < OBJECT_NOTE_MAX ? header->p_filesz
						    : OBJECT_NOTE_MAX;
}

/* The loader has mapped notes as part of a PT_LOAD. */
static bool object_notes(const struct dl_phdr_info *info, struct object *object)
{
	size_t size = 0;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		size += object_note_size(&info->dlpi_phdr[i]);
	uint8_t *to = object->notes = malloc(size + 1);
	for (unsigned i = 0; to && i < info->dlpi_phnum; i++) {
		size = object_note_size(&info->dlpi_phdr[i]);
		if (size)
			memcpy(to,
				(const void *)(uintptr_t)(info->dlpi_addr +
							  info->dlpi_phdr[i].p_vaddr),
				size);
		to += size;
	}
	return object->notes != NULL;
}

static int object_add(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct object_build *build = argument;
	struct object object = {
		.base = info->dlpi_addr, .begin = UINT64_MAX, .header_count = info->dlpi_phnum
	};
	const char *path = info->dlpi_name;
	uint64_t first = UINT64_MAX, last = 0;
	char self[4096];

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		if (header->p_type != PT_LOAD)
			continue;
		uint64_t begin = info->dlpi_addr + header->p_vaddr, end = begin + header->p_memsz;
		first = begin < first ? begin : first;
		last = end > last ? end : last;
		if (!(header->p_flags & PF_X))
			continue;
		object.begin = begin < object.begin ? begin : object.begin;
		object.end = end > object.end ? end : object.end;
	}
	if (object.begin >= object.end)
		return 0;
	if (!path || !*path) {
		/* The program itself, which is the first object and has no name here. */
		ssize_t length =
			build->count == 0 ? readlink("/proc/self/exe", self, sizeof(self) - 1) : -1;
		if (length <= 0)
			return 0;
		self[length] = '\0';
		path = self;
	} else if (path[0] != '/') {
		/* The vDSO: no file, but all of it is in memory. */
		object.image = (const void *)(uintptr_t)first;
		object.image_size = (size_t)(last - first);
	}
	if (build->count == build->room) {
		size_t room = build->room ? build->room * 2 : 32;
		struct object *grown =
			room <= OBJECTS_MAX ? realloc(build->objects, room * sizeof(*grown)) : NULL;
		if (!grown) {
			build->failed = true;
			return 1;
		}
		build->objects = grown;
		build->room = room;
	}
	object.path = strdup(path);
	object.headers = malloc(info->dlpi_phnum * sizeof(*info->dlpi_phdr));
	if (!object.path || !object.headers || !object_notes(info, &object)) {
		free(object.path);
		free(object.headers);
		build->failed = true;
		return 1;
	}
	memcpy(object.headers, info->dlpi_phdr, info->dlpi_phnum * sizeof(*info->dlpi_phdr));
	build->objects[build->count++] = object;
	return 0;
}

static int object_compare(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

int objects_list(struct object **ret_objects, size_t *ret_count)
{
	struct object_build build = { 0 };

	(void)dl_iterate_phdr(object_add, &build);
	if (build.failed) {
		objects_free(build.objects, build.count);
		return -ENOMEM;
	}
	if (build.count)
		qsort(build.objects, build.count, sizeof(*build.objects), object_compare);
	*ret_objects = build.objects;
	*ret_count = build.count;
	return 0;
}

void objects_free(struct object *objects, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(objects[i].path);
		free(objects[i].headers);
		free(objects[i].notes);
	}
	free(objects);
}

struct object_symbols {
	const struct object *object;
	int fd;
	const uint8_t *image; /* the file in memory; NULL: read from fd */
	size_t image_size;
	uint64_t base;
	uint64_t at; /* of the next symbol in the file */
	uint64_t end;
	uint64_t names;
	uint64_t names_size;
	ElfW(Sym) chunk[OBJECT_STEP];
	unsigned chunk_count;
	unsigned chunk_next;
	unsigned steps;
};

/* `size` bytes at `offset` of the file; false when they are not all there. */
static bool object_read(const struct object_symbols *symbols, uint64_t offset, void *to,
	size_t size)
{
	if (symbols->image) {
		if (offset > symbols->image_size || size > symbols->image_size - offset)
			return false;
		memcpy(to, symbols->image + offset, size);
		return true;
	}
	for (size_t got = 0; got < size;) {
		ssize_t count = offset + got <= INT64_MAX
					? pread(symbols->fd, (char *)to + got, size - got,
						  (off_t)(offset + got))
					: -1;
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return false;
		got += (size_t)count;
	}
	return true;
}

/* Is the file the one that was loaded? It has the same program headers and the same notes. */
static bool object_is_file(const struct object_symbols *symbols, const struct object *object,
	const ElfW(Ehdr) * head)
{
	const ElfW(Phdr) *loaded = object->headers;
	const uint8_t *loaded_note = object->notes;
	uint8_t note[OBJECT_NOTE_MAX];

	if (head->e_phnum != object->header_count || head->e_phentsize != sizeof(ElfW(Phdr)))
		return false;
	for (unsigned i = 0; i < object->header_count; i++) {
		ElfW(Phdr) there;
		if (!object_read(symbols, head->e_phoff + i * sizeof(there), &there,
			    sizeof(there)) ||
			memcmp(&there, &loaded[i], sizeof(there)) != 0)
			return false;
		size_t size = object_note_size(&there);
		if (size == 0)
			continue;
		if (!object_read(symbols, there.p_offset, note, size) ||
			memcmp(note, loaded_note, size) != 0)
			return false;
		loaded_note += size;
	}
	return true;
}

/* The symbol section: .symtab has all symbols, .dynsym those for other objects. */
static bool object_find_symbols(struct object_symbols *symbols, const ElfW(Ehdr) * head)
{
	ElfW(Shdr) best = { 0 }, section, names;

	if (head->e_shentsize != sizeof(section))
		return false;
	for (unsigned i = 0; i < head->e_shnum; i++) {
		if (!object_read(symbols, head->e_shoff + (uint64_t)i * sizeof(section), &section,
			    sizeof(section)))
			return false;
		if (section.sh_type == SHT_SYMTAB ||
			(section.sh_type == SHT_DYNSYM && best.sh_type != SHT_SYMTAB))
			best = section;
	}
	if (!best.sh_type || best.sh_link >= head->e_shnum ||
		best.sh_entsize != sizeof(ElfW(Sym)) ||
		!object_read(symbols, head->e_shoff + (uint64_t)best.sh_link * sizeof(names),
			&names, sizeof(names)) ||
		best.sh_offset > UINT64_MAX - best.sh_size)
		return false;
	symbols->at = best.sh_offset;
	symbols->end = best.sh_offset + best.sh_size / sizeof(ElfW(Sym)) * sizeof(ElfW(Sym));
	symbols->names = names.sh_offset;
	symbols->names_size = names.sh_size;
	return true;
}

struct object_symbols *object_symbols_open(const struct object *object)
{
	struct object_symbols *symbols = calloc(1, sizeof(*symbols));
	ElfW(Ehdr) head;

	if (!symbols)
		return NULL;
	symbols->object = object;
	symbols->base = object->base;
	symbols->image = object->image;
	symbols->image_size = object->image_size;
	symbols->fd = object->image
			      ? -1
			      : open(object->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if ((symbols->fd >= 0 || symbols->image) && object_read(symbols, 0, &head, sizeof(head)) &&
		memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
		object_is_file(symbols, object, &head)) {
		if (!object_find_symbols(symbols, &head))
			symbols->at = symbols->end = 0;
		return symbols;
	}
	object_symbols_close(symbols);
	return NULL;
}

int object_symbols_next(struct object_symbols *symbols, struct object_symbol *ret_symbol)
{
	for (;;) {
		if (symbols->chunk_next == symbols->chunk_count) {
			uint64_t left = (symbols->end - symbols->at) / sizeof(symbols->chunk[0]);
			unsigned count = left < OBJECT_STEP ? (unsigned)left : OBJECT_STEP;
			if (count == 0 || !object_read(symbols, symbols->at, symbols->chunk,
						  count * sizeof(symbols->chunk[0])))
				return 0;
			symbols->at += count * sizeof(symbols->chunk[0]);
			symbols->chunk_count = count;
			symbols->chunk_next = 0;
			if (++symbols->steps == OBJECT_STEPS) {
				symbols->steps = 0;
				return -EAGAIN;
			}
		}
		const ElfW(Sym) *symbol = &symbols->chunk[symbols->chunk_next++];
		unsigned type = symbol->st_info & 0xf, binding = symbol->st_info >> 4;
		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
			!symbol->st_size)
			continue;
		*ret_symbol = (struct object_symbol){
			.begin = symbols->base + symbol->st_value,
			.size = symbol->st_size,
			.name = symbol->st_name,
			.rank = binding == STB_GLOBAL ? 0
				: binding == STB_WEAK ? 1
						      : 2,
		};
		return 1;
	}
}

bool object_symbol_name(struct object_symbols *symbols, uint32_t name, char text[OBJECT_NAME_MAX])
{
	if (name >= symbols->names_size)
		return false;
	uint64_t left = symbols->names_size - name;
	size_t size = left < OBJECT_NAME_MAX - 1 ? (size_t)left : OBJECT_NAME_MAX - 1;
	if (!object_read(symbols, symbols->names + name, text, size))
		return false;
	text[size] = '\0';
	/* A version follows the name after an @; the name without it is what users know. */
	char *version = strchr(text, '@');
	if (version)
		*version = '\0';
	return *text != '\0';
}

/* ---- Functions without a symbol ---- */

#define EH_DATAREL_SDATA4 0x3b /* the one encoding of the table that linkers write */
#define EH_PCREL_SDATA4 \
	0x1b           /* of addresses in FDEs; others are not used for position-independent code */
#define EH_HEAD    12u /* version, three encodings, address of .eh_frame, count */
#define EH_ENTRY   8u
#define EH_CIE_MAX 64u

/* Reads memory of the object, by an address in its file. */
static bool object_read_vaddr(const struct object_symbols *symbols, uint64_t vaddr, void *to,
	size_t size)
{
	const ElfW(Phdr) *headers = symbols->object->headers;

	for (unsigned i = 0; i < symbols->object->header_count; i++)
		if (headers[i].p_type == PT_LOAD && vaddr >= headers[i].p_vaddr &&
			vaddr - headers[i].p_vaddr < headers[i].p_filesz &&
			size <= headers[i].p_filesz - (vaddr - headers[i].p_vaddr))
			return object_read(symbols,
				headers[i].p_offset + (vaddr - headers[i].p_vaddr), to, size);
	return false;
}

/* The size of the function of an FDE; 0: not readable. */
static uint32_t object_fde_size(const struct object_symbols *symbols, uint64_t fde, uint64_t begin)
{
	struct {
		uint32_t size, distance;
		int32_t begin;
		uint32_t range;
	} head;
	uint8_t cie[EH_CIE_MAX];

	if (!object_read_vaddr(symbols, fde, &head, sizeof(head)) || !head.distance ||
		head.distance > fde + 4 || fde + 8 + (uint64_t)(int64_t)head.begin != begin ||
		!object_read_vaddr(symbols, fde + 4 - head.distance, cie, sizeof(cie)))
		return 0;
	/* size, 0, version, "zR" or "zPLR", ...: the letter R states that addresses have an encoding */
	return cie[9] == 'z' && memchr(cie + 9, 'R', 6) ? head.range : 0;
}

bool object_function_bounds(struct object_symbols *symbols, uint64_t address, uint64_t *ret_begin,
	uint64_t *ret_end)
{
	const ElfW(Phdr) *headers = symbols->object->headers;
	uint64_t vaddr = address - symbols->base, table = 0;
	uint8_t head[EH_HEAD];
	int32_t entry[2];
	uint32_t low = 0, high;

	for (unsigned i = 0; i < symbols->object->header_count; i++)
		if (headers[i].p_type == PT_GNU_EH_FRAME)
			table = headers[i].p_vaddr;
	if (!table || !object_read_vaddr(symbols, table, head, sizeof(head)) || head[0] != 1 ||
		head[1] != EH_PCREL_SDATA4 || head[2] != 3 || head[3] != EH_DATAREL_SDATA4)
		return false;
	memcpy(&high, head + 8, sizeof(high));
	/* The last entry that begins at or before the address. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (!object_read_vaddr(symbols, table + EH_HEAD + (uint64_t)middle * EH_ENTRY,
			    entry, sizeof(entry)))
			return false;
		if (table + (uint64_t)(int64_t)entry[0] <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || !object_read_vaddr(symbols, table + EH_HEAD + (uint64_t)(low - 1) * EH_ENTRY,
			    entry, sizeof(entry)))
		return false;
	uint64_t begin = table + (uint64_t)(int64_t)entry[0];
	uint32_t size = object_fde_size(symbols, table + (uint64_t)(int64_t)entry[1], begin);
	if (!size || vaddr - begin >= size)
		return false;
	*ret_begin = symbols->base + begin;
	*ret_end = *ret_begin + size;
	return true;
}

void object_symbols_close(struct object_symbols *symbols)
{
	if (!symbols)
		return;
	if (symbols->fd >= 0)
		(void)close(symbols->fd);
	free(symbols);
}

char *object_demangle(const char *name)
{
	typedef char *demangle_function(const char *, char *, size_t *, int *);
	demangle_function *demangle;
	void *found =
		name[0] == '_' && name[1] == 'Z' ? dlsym(RTLD_DEFAULT, "__cxa_demangle") : NULL;
	int status = 0;

	if (!found)
		return NULL;
	memcpy(&demangle, &found, sizeof(demangle));
	return demangle(name, NULL, NULL, &status);
}
