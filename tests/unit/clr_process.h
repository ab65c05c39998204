/*
 * The memory of a small .NET process, for tests of its readers: an image that exports a description, a
 * code heap with an ordinary and a dynamic method, and the assembly tests/data/pe/tiny_r2r.dll. The
 * offsets are those of clr_layout.def. All is in one block; reads outside fail.
 */
#ifndef SPOOR_TESTS_UNIT_CLR_PROCESS_H
#define SPOOR_TESTS_UNIT_CLR_PROCESS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "code/clr_layout.h"
#include "code/clr_names.h"
#include "code/metadata.h"
#include "image/image_file.h"
#include "image/pe.h"

#define CLR_BASE  UINT64_C(0x10000000)
#define CLR_BYTES 0x40000u

/* Offsets in the block. */
enum clr_place {
	CLR_TEXT = 0x1000, /* the executable mapping */
	CLR_DYNAMIC = 0x2000,
	CLR_STRINGS = 0x2200,
	CLR_SYMBOLS = 0x2300,
	CLR_HASHES = 0x2400,
	CLR_DESCRIPTOR = 0x3000,
	CLR_DAC_TABLE = 0x3100,
	CLR_SLOTS = 0x3200,
	CLR_JSON = 0x4000,
	CLR_MAP = 0x8000, /* five levels of 0x800 bytes */
	CLR_FRAGMENT = 0xa800,
	CLR_SECTION = 0xa840,
	CLR_HEAP = 0xa8c0,
	CLR_NIBBLES = 0xa940,
	CLR_HEADER = 0xb000, /* of the method, then of the dynamic one */
	CLR_CHUNK = 0xc000,
	CLR_DYNAMIC_CHUNK = 0xc800,
	CLR_TYPE = 0xd000,
	CLR_MODULE = 0xe000,
	CLR_PATH = 0xe800,
	CLR_NAME = 0xec00, /* of the dynamic method */
	CLR_SIGNATURE = 0xec40,
	CLR_CODE = 0x10000,
	CLR_CODE_END = 0x11000,
	CLR_METHOD_CODE = CLR_CODE + 0x40,
	CLR_METHOD_CODE_END = CLR_CODE + 0x2a0,
	CLR_DYNAMIC_CODE = CLR_CODE + 0x400,
	CLR_DYNAMIC_CODE_END = CLR_CODE + 0x460,
	CLR_PE = 0x20000,
};

struct clr_process {
	uint8_t *block;
	struct clr_layout at; /* the offsets */
	uint64_t read_count;
	/* called before a read, to change the block */
	void (*before_read)(struct clr_process *process);
	const uint8_t *patches;
	size_t patches_left;
};

static int64_t clr_process_read(void *context, uint64_t address, void *buffer, size_t size)
{
	struct clr_process *process = context;

	process->read_count++;
	if (process->before_read)
		process->before_read(process);
	if (address < CLR_BASE || address >= CLR_BASE + CLR_BYTES ||
		size > CLR_BASE + CLR_BYTES - address)
		return -5; /* EIO */
	memcpy(buffer, process->block + (address - CLR_BASE), size);
	return (int64_t)size;
}

static void clr_process_put(struct clr_process *process, uint64_t place, uint64_t value,
	unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		process->block[place + i] = (uint8_t)(value >> (8 * i));
}

static void clr_process_pointer(struct clr_process *process, uint64_t place, uint64_t target)
{
	clr_process_put(process, place, CLR_BASE + target, 8);
}

static uint32_t clr_process_hash(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (uint8_t)*name;
	return hash;
}

static void clr_process_image(struct clr_process *process, bool described)
{
	static const char *const names[] = { "DotNetRuntimeContractDescriptor", "g_dacTable" };
	uint32_t first = described ? 0 : 1;
	uint64_t name_at = 1;

	memcpy(process->block,
		"\x7f"
		"ELF\x02\x01\x01",
		7);
	clr_process_put(process, 32, 64, 8);
	clr_process_put(process, 54, 56, 2);
	clr_process_put(process, 56, 2, 2);
	clr_process_put(process, 64, 1, 4); /* PT_LOAD, executable */
	clr_process_put(process, 68, 5, 4);
	clr_process_put(process, 72, CLR_TEXT, 8);
	clr_process_put(process, 80, CLR_TEXT, 8);
	clr_process_put(process, 120, 2, 4); /* PT_DYNAMIC */
	clr_process_put(process, 136, CLR_DYNAMIC, 8);
	clr_process_put(process, 160, 64, 8);
	clr_process_put(process, CLR_DYNAMIC, 5, 8);
	clr_process_pointer(process, CLR_DYNAMIC + 8, CLR_STRINGS); /* as glibc has relocated it */
	clr_process_put(process, CLR_DYNAMIC + 16, 6, 8);
	clr_process_put(process, CLR_DYNAMIC + 24, CLR_SYMBOLS, 8); /* as it was linked */
	clr_process_put(process, CLR_DYNAMIC + 32, 0x6ffffef5, 8);
	clr_process_put(process, CLR_DYNAMIC + 40, CLR_HASHES, 8);
	clr_process_put(process, CLR_HASHES, 1,
		4); /* one bucket, from symbol 1 on, one word of filter */
	clr_process_put(process, CLR_HASHES + 4, 1, 4);
	clr_process_put(process, CLR_HASHES + 8, 1, 4);
	clr_process_put(process, CLR_HASHES + 24, 1, 4);
	for (uint32_t i = first; i < 2; i++) {
		uint64_t symbol = i - first + 1;
		strcpy((char *)process->block + CLR_STRINGS + name_at, names[i]);
		clr_process_put(process, CLR_SYMBOLS + 24 * symbol, name_at, 4);
		clr_process_put(process, CLR_SYMBOLS + 24 * symbol + 8,
			i ? CLR_DAC_TABLE : CLR_DESCRIPTOR, 8);
		clr_process_put(process, CLR_HASHES + 28 + 4 * (symbol - 1),
			(clr_process_hash(names[i]) & ~1u) | (i == 1), 4);
		name_at += strlen(names[i]) + 1;
	}
}

static void clr_process_describe(struct clr_process *process, enum clr_version version)
{
	struct bytes json = { 0 };
	const char *separator = "";

	bytes_text(&json, "{\"version\":0,\"baseline\":\"empty\",\"types\":{");
	/* Repeated names are allowed; each has one field here. */
#define CLR_FIELD(member, path, nine, eight)                                               \
	if (version == CLR_VERSION_10 && (uint64_t)(nine) != CLR_NO &&                     \
		!strncmp(path, "types.", 6)) {                                             \
		const char *field = strchr((path) + 6, '.');                               \
		bytes_printf(&json, "%s\"%.*s\":{\"%s\":[%u,\"x\"]}", separator,           \
			(int)(field - (path)-6), (path) + 6, field + 1, (unsigned)(nine)); \
		separator = ",";                                                           \
	}
#define CLR_OPTIONAL CLR_FIELD
#include "code/clr_layout.def"
#undef CLR_FIELD
	bytes_text(&json,
		"},\"globals\":{\"ExecutionManagerCodeRangeMapAddress\":[[1],\"pointer\"]");
#define CLR_FIELD(member, path, nine, eight)                           \
	if (version == CLR_VERSION_10 && (uint64_t)(nine) != CLR_NO && \
		!strncmp(path, "globals.", 8))                         \
		bytes_printf(&json, ",\"%s\":[\"0x%x\",\"uint32\"]", (path) + 8, (unsigned)(nine));
#include "code/clr_layout.def"
#undef CLR_FIELD
#undef CLR_OPTIONAL
	bytes_printf(&json, "},\"contracts\":{\"Object\":1%s}}",
		version == CLR_VERSION_10 ? ",\"ExecutionManager\":2" : "");
	clr_process_put(process, CLR_DESCRIPTOR, UINT64_C(0x0043414443434e44), 8);
	clr_process_put(process, CLR_DESCRIPTOR + 8, 1, 4);
	clr_process_put(process, CLR_DESCRIPTOR + 12, json.len, 4);
	clr_process_pointer(process, CLR_DESCRIPTOR + 16, CLR_JSON);
	clr_process_put(process, CLR_DESCRIPTOR + 24, 2, 4);
	clr_process_pointer(process, CLR_DESCRIPTOR + 32, CLR_SLOTS);
	clr_process_pointer(process, CLR_SLOTS + 8, CLR_MAP);
	memcpy(process->block + CLR_JSON, json.data, json.len);
	bytes_done(&json);
}

static void clr_process_start(struct clr_process *process, uint64_t code)
{
	uint64_t offset = code - CLR_CODE;
	uint64_t place = CLR_NIBBLES + offset / 256 * 4;
	unsigned shift = 28 - 4 * (unsigned)(offset % 256 / 32);
	uint32_t unit;

	memcpy(&unit, process->block + place, 4);
	clr_process_put(process, place, unit | (uint32_t)(offset % 32 / 4 + 1) << shift, 4);
}

static void clr_process_block(struct clr_process *process, uint64_t header, uint64_t begin,
	uint64_t end, uint64_t method)
{
	clr_process_start(process, begin);
	clr_process_pointer(process, begin - 8, header);
	clr_process_pointer(process, header + process->at.header_method, method);
	clr_process_put(process, header + process->at.header_unwind_count, 2, 4);
	uint64_t unwinds = header + process->at.header_unwinds;
	clr_process_put(process, unwinds, begin - CLR_CODE, 4);
	clr_process_put(process, unwinds + 4, begin - CLR_CODE + 16, 4);
	clr_process_put(process, unwinds + 12, begin - CLR_CODE + 16, 4);
	clr_process_put(process, unwinds + 16, end - CLR_CODE, 4);
}

/* The method "Add" of the assembly, and its type. */
static void clr_process_find(const uint8_t *pe_bytes, size_t size, uint32_t *ret_method,
	uint32_t *ret_type, uint64_t *ret_name)
{
	struct image_file file;
	struct pe pe = { 0 };
	struct metadata metadata;
	struct bytes name = { 0 };
	uint64_t offset = 0;

	image_file_from_memory(&file, pe_bytes, size);
	if (pe_read(&pe, &file, NULL) < 0 || !pe_offset_of_rva(&pe, pe.metadata_rva, &offset) ||
		metadata_read(&metadata, pe_bytes + offset, pe.metadata_size) < 0)
		abort();
	*ret_method = 0;
	for (uint32_t row = 1; row <= metadata.rows[METADATA_METHOD_DEF] && !*ret_method; row++) {
		bytes_reset(&name);
		if (metadata_add_method(&metadata, 0x06000000 + row, &name) &&
			!strcmp(bytes_z(&name), "Add"))
			*ret_method = row;
	}
	*ret_type = metadata_owner(&metadata, 0x06000000 + *ret_method) & 0xffffff;
	/* any text among the names */
	*ret_name = (uint64_t)(metadata.strings.data - pe_bytes) + 1;
	bytes_done(&name);
	pe_done(&pe);
}

static void clr_process_methods(struct clr_process *process, enum clr_version version,
	uint32_t method, uint32_t type)
{
	const struct clr_layout *at = &process->at;
	uint64_t ordinary = CLR_CHUNK + at->chunk_bytes + at->method_align;
	uint64_t dynamic = CLR_DYNAMIC_CHUNK + at->chunk_bytes;
	static const uint8_t signature[] = { 0, 1, 0x08, 0x0e }; /* int32 (string) */

	clr_process_block(process, CLR_HEADER, CLR_METHOD_CODE, CLR_METHOD_CODE_END, ordinary);
	clr_process_block(process, CLR_HEADER + 0x100, CLR_DYNAMIC_CODE, CLR_DYNAMIC_CODE_END,
		dynamic);
	if (version == CLR_VERSION_10)
		/* the second 256 bytes are all of the first method */
		clr_process_put(process, CLR_NIBBLES + 4, (CLR_METHOD_CODE - CLR_CODE) | 9, 4);
	clr_process_pointer(process, CLR_CHUNK + at->chunk_type, CLR_TYPE);
	clr_process_put(process, CLR_CHUNK + at->chunk_size, 3, 1);
	clr_process_put(process, CLR_CHUNK + at->chunk_range, method >> 12, 2);
	clr_process_put(process, ordinary + at->method_token, method & 0xfff, 2);
	clr_process_put(process, ordinary + at->method_chunk, 1, 1);
	clr_process_put(process, CLR_DYNAMIC_CHUNK + at->chunk_size, 5, 1);
	clr_process_put(process, dynamic + at->method_flags, 7 | 0x08 | 0x20, 2);
	clr_process_pointer(process, dynamic + at->dynamic_name, CLR_NAME);
	clr_process_pointer(process, dynamic + at->dynamic_signature, CLR_SIGNATURE);
	clr_process_put(process, dynamic + at->dynamic_signature_size, sizeof(signature), 4);
	clr_process_pointer(process, dynamic + at->dynamic_bytes + at->slot_bytes,
		CLR_DYNAMIC_CODE);
	memcpy(process->block + CLR_SIGNATURE, signature, sizeof(signature));
	strcpy((char *)process->block + CLR_NAME, "Made_1");
	if (version == CLR_VERSION_8)
		clr_process_put(process, CLR_TYPE + at->type_token, type, 2);
	else
		clr_process_put(process, CLR_TYPE + at->type_token, (uint64_t)type << 8, 4);
	clr_process_pointer(process, CLR_TYPE + at->type_module, CLR_MODULE);
}

/* `pe_path` is of tiny_r2r.dll. Freed with clr_process_done(). */
__attribute__((unused)) static void clr_process_init(struct clr_process *process,
	enum clr_version version, const char *pe_path)
{
	uint32_t method;
	uint32_t type;
	uint64_t name;
	int fd = open(pe_path, O_RDONLY | O_CLOEXEC);

	*process = (struct clr_process){ .block = calloc(1, CLR_BYTES) };
	if (fd < 0 || !process->block)
		abort();
	ssize_t size = read(fd, process->block + CLR_PE, CLR_BYTES - CLR_PE);
	if (size <= 0 || close(fd) < 0)
		abort();
	process->at.version = version;
#define CLR_FIELD(member, path, nine, eight) \
	process->at.member = version == CLR_VERSION_8 ? (uint64_t)(eight) : (uint64_t)(nine);
#define CLR_OPTIONAL CLR_FIELD
#include "code/clr_layout.def"
#undef CLR_FIELD
#undef CLR_OPTIONAL
	const struct clr_layout *at = &process->at;
	clr_process_find(process->block + CLR_PE, (size_t)size, &method, &type, &name);
	clr_process_image(process, version != CLR_VERSION_8);
	if (version != CLR_VERSION_8)
		clr_process_describe(process, version);
	clr_process_pointer(process, CLR_DAC_TABLE, CLR_MAP);
	for (unsigned level = 0; level < 5; level++) {
		uint64_t index = (CLR_BASE + CLR_CODE) >> (49 - 8 * level) & 0xff;
		clr_process_pointer(process, CLR_MAP + 0x800 * level + 8 * index,
			level < 4 ? CLR_MAP + 0x800 * (level + 1) : CLR_FRAGMENT);
	}
	clr_process_pointer(process, CLR_FRAGMENT + at->fragment_begin, CLR_CODE);
	clr_process_pointer(process, CLR_FRAGMENT + at->fragment_end, CLR_CODE_END);
	clr_process_pointer(process, CLR_FRAGMENT + at->fragment_section, CLR_SECTION);
	clr_process_pointer(process, CLR_SECTION + at->section_begin, CLR_CODE);
	clr_process_pointer(process, CLR_SECTION + at->section_end, CLR_CODE_END);
	clr_process_put(process, CLR_SECTION + at->section_flags, 2, 4);
	clr_process_pointer(process, CLR_SECTION + at->section_heap, CLR_HEAP);
	clr_process_pointer(process, CLR_HEAP + at->heap_begin, CLR_CODE);
	clr_process_pointer(process, CLR_HEAP + at->heap_end, CLR_CODE_END);
	clr_process_pointer(process, CLR_HEAP + at->heap_base, CLR_CODE);
	clr_process_pointer(process, CLR_HEAP + at->heap_nibbles, CLR_NIBBLES);
	clr_process_methods(process, version, method, type);
	if (version == CLR_VERSION_8) {
		clr_process_pointer(process, CLR_MODULE + at->module_name, CLR_PE + name);
	} else {
		static const char path[] = "/app/tiny.dll";
		clr_process_pointer(process, CLR_MODULE + at->module_base, CLR_PE);
		clr_process_pointer(process, CLR_MODULE + at->module_path, CLR_PATH);
		for (size_t i = 0; i < sizeof(path); i++)
			process->block[CLR_PATH + 2 * i] = (uint8_t)path[i];
	}
}

__attribute__((unused)) static int clr_process_open(struct clr_process *process,
	struct clr_images *images, struct clr_names **ret_names)
{
	const struct clr_source source = { .mapping_begin = CLR_BASE + CLR_TEXT,
		.file_offset = CLR_TEXT };

	return clr_names_open(clr_process_read, process, &source, images, NULL, ret_names);
}

static void clr_process_done(struct clr_process *process)
{
	free(process->block);
}

#endif
