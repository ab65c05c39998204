/*
 * See r2r.h. The layout is that of the runtime's docs/design/coreclr/botr/readytorun-format.md:
 *
 *   header     u32 "RTR\0", u16 major, u16 minor, u32 flags, u32 section count, then a section each: u32 type, u32 RVA, u32 size
 *   102        runtime functions: u32 begin, u32 end, u32 unwind (amd64); u32 begin, u32 unwind (others)
 *   103        entry points of MethodDefs: a NativeArray by row, of runtime function numbers
 *   105        debug information: a NativeArray by runtime function number, of the distance back to it (0: it follows)
 *   109        entry points of generic instances: a NativeHashtable of (signature, runtime function number)
 *
 * A method owns the runtime functions up to the next entry: its funclets follow it. If one instance
 * cannot be read, not all entries are known, and each method is reduced to its first function.
 *
 * Invariant: `methods` is sorted by function, no two have the same.
 */
#include "code/r2r.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/partition_point.h"
#include "base/vec.h"
#include "code/metadata.h"
#include "code/r2r_bounds.h"
#include "image/image_file.h"
#include "image/pe.h"

#define SECTIONS_MAX     256u
#define SECTION_SIZE_MAX (256u << 20)
#define FUNCTIONS_MAX    (16u << 20)
#define INSTANCES_MAX    (4u << 20)
#define BUCKET_BITS_MAX  22u

#define MACHINE_AMD64 0x8664u

enum section_type {
	SECTION_FUNCTIONS = 102,
	SECTION_METHODS = 103,
	SECTION_DEBUG = 105,
	SECTION_INSTANCES = 109,
};

enum signature_flag {
	SIGNATURE_INSTANTIATION = 0x04,
	SIGNATURE_SLOT = 0x08,
	SIGNATURE_MEMBER_REF = 0x10,
	SIGNATURE_CONSTRAINED = 0x20,
	SIGNATURE_OWNER = 0x40,
	SIGNATURE_CONTEXT = 0x80, /* another assembly's tokens */
};

struct r2r_method {
	uint32_t function;
	uint32_t token; /* 0: a method of another assembly, which has no name here */
	/* of an instance: offset in `instances`, plus one; 0 for a plain method */
	uint32_t signature;
};

struct r2r_function {
	uint32_t begin;
	uint32_t end;
};

struct r2r_section {
	uint8_t *data;
	size_t size;
};

struct r2r {
	struct image_file file;
	int fd;
	struct pe pe;
	struct r2r_section instances;
	struct r2r_section metadata_bytes;
	struct metadata metadata;
	VEC(struct r2r_function) functions;
	VEC(struct r2r_method) methods;
	bool all_known;
	unsigned major;     /* version of the format */
	uint32_t debug_rva; /* of section 105; 0: none */
	uint32_t debug_size;
	struct r2r_section debug; /* loaded when it is first needed */
	struct bytes name;
};

/* The runtime's packed numbers: the low bits give the number of bytes. */
static uint32_t native_unsigned(struct cursor *c)
{
	uint32_t first = cursor_u8(c);
	uint32_t value;

	if (!(first & 1))
		return first >> 1;
	if (!(first & 2))
		return first >> 2 | (uint32_t)cursor_u8(c) << 6;
	if (!(first & 4)) {
		value = first >> 3 | (uint32_t)cursor_u8(c) << 5;
		return value | (uint32_t)cursor_u8(c) << 13;
	}
	if (!(first & 8)) {
		value = first >> 4 | (uint32_t)cursor_u8(c) << 4;
		value |= (uint32_t)cursor_u8(c) << 12;
		return value | (uint32_t)cursor_u8(c) << 20;
	}
	if (!(first & 16))
		return cursor_u32(c);
	cursor_skip(c, SIZE_MAX);
	return 0;
}

static int32_t native_signed(struct cursor *c)
{
	const uint8_t *at = c->at;
	uint32_t value = native_unsigned(c);
	/* Bits of the value by bytes read: 7, 14, 21, 28, 32. */
	size_t read = (size_t)(c->at - at);
	unsigned bits = read < 5 ? (unsigned)(7 * read) : 32;

	if (c->short_read)
		return 0;
	return bits == 32 ? (int32_t)value : (int32_t)(value << (32 - bits)) >> (32 - bits);
}

/* A cursor at `offset` of a section; failed if the offset is outside. */
static struct cursor section_at(const struct r2r_section *section, uint64_t offset)
{
	struct cursor c = { .short_read = true };

	return offset < section->size
		       ? cursor_of(section->data + offset, section->size - (size_t)offset)
		       : c;
}

static uint32_t sized_number(struct cursor *c, unsigned size_code)
{
	return size_code == 0 ? cursor_u8(c) : size_code == 1 ? cursor_u16(c) : cursor_u32(c);
}

/* The number of the runtime function at the cursor, after an optional offset to fixups. */
static uint32_t function_number(struct cursor *c)
{
	uint32_t id = native_unsigned(c);

	return id & 1 ? id >> 2 : id >> 1;
}

/*
 * NativeArray: header (count << 2 | size of the index), an index of blocks of 16, each a binary
 * tree whose nodes say which halves exist (bits 0 and 1) and where the right one begins.
 */
static bool array_get(const struct r2r_section *section, uint32_t index, uint32_t count,
	uint32_t base, unsigned size_code, struct cursor *ret_cursor)
{
	struct cursor c = section_at(section, base + (uint64_t)(index / 16) * (1u << size_code));
	uint64_t offset = (uint64_t)sized_number(&c, size_code) + base;

	if (c.short_read || index >= count)
		return false;
	for (unsigned bit = 8; bit; bit >>= 1) {
		c = section_at(section, offset);
		uint32_t node = native_unsigned(&c);
		if (c.short_read)
			return false;
		uint64_t behind = (uint64_t)(c.at - section->data);
		if (index & bit) {
			if (node & 2) {
				offset += node >> 2;
				continue;
			}
		} else if (node & 1) {
			offset = behind;
			continue;
		}
		if ((node & 3) || (node >> 2) != (index & 15))
			return false;
		offset = behind;
		break;
	}
	*ret_cursor = section_at(section, offset);
	return !ret_cursor->short_read;
}

static int add_method(struct r2r *image, uint32_t function, uint32_t token, uint32_t signature)
{
	struct r2r_method method = { function, token, signature };

	if (function >= image->functions.count)
		return 0; /* this entry is invalid; others may be valid */
	return vec_add(&image->methods, method) ? 0 : -ENOMEM;
}

static int read_methods(struct r2r *image, const struct r2r_section *section)
{
	struct cursor c = section_at(section, 0);
	uint32_t header = native_unsigned(&c);
	uint32_t count = header >> 2;
	unsigned size_code = header & 3;

	if (c.short_read || size_code > 2)
		return -EBADMSG;
	uint32_t base = (uint32_t)(c.at - section->data);
	if (count > image->metadata.rows[METADATA_METHOD_DEF])
		count = image->metadata.rows[METADATA_METHOD_DEF];
	for (uint32_t i = 0; i < count; i++) {
		if (!array_get(section, i, count, base, size_code, &c))
			continue;
		uint32_t function = function_number(&c);
		if (c.short_read)
			continue;
		int error = add_method(image, function,
			(uint32_t)METADATA_METHOD_DEF << 24 | (i + 1), 0);
		if (error)
			return error;
	}
	return 0;
}

struct instance {
	uint32_t flags;
	uint32_t token; /* 0: of another assembly */
	uint32_t argument_count;
	struct cursor owner; /* the type's signature; at NULL if there is none */
	struct cursor arguments;
};

/* Skips the signature of one instance. False if it is malformed. */
static bool read_instance(const struct r2r *image, struct cursor *c, struct instance *ret_instance)
{
	struct instance instance = { .flags = metadata_compressed(c) };
	bool foreign = instance.flags & SIGNATURE_CONTEXT;

	if (foreign)
		(void)metadata_compressed(c);
	if (instance.flags & SIGNATURE_OWNER) {
		instance.owner = *c;
		/* An owner named by another assembly's tokens has the method's token there too. */
		if (!metadata_add_signature_type(&image->metadata, c, foreign, NULL))
			return false;
		foreign = foreign || instance.owner.at[0] == 0x3f ||
			  (instance.owner.at[0] == 0x15 && instance.owner.at + 1 < c->at &&
				  instance.owner.at[1] == 0x3f);
	}
	if (instance.flags & SIGNATURE_SLOT)
		return false;
	uint32_t row = metadata_compressed(c);
	if (!foreign && row <= 0xffffff)
		instance.token = row | (instance.flags & SIGNATURE_MEMBER_REF
						       ? (uint32_t)METADATA_MEMBER_REF
						       : (uint32_t)METADATA_METHOD_DEF)
					       << 24;
	if (instance.flags & SIGNATURE_INSTANTIATION) {
		instance.argument_count = metadata_compressed(c);
		instance.arguments = *c;
		for (uint32_t i = 0; i < instance.argument_count; i++) {
			if (!metadata_add_signature_type(&image->metadata, c, false, NULL))
				return false;
		}
	}
	if ((instance.flags & SIGNATURE_CONSTRAINED) &&
		!metadata_add_signature_type(&image->metadata, c, false, NULL))
		return false;
	*ret_instance = instance;
	return !c->short_read;
}

/*
 * NativeHashtable: u8 (bits of the bucket count << 2 | size of the index), index of buckets, then
 * in each pairs of a hash byte and a signed distance from its own place to the entry.
 */
static int read_instances(struct r2r *image)
{
	const struct r2r_section *section = &image->instances;
	struct cursor c = section_at(section, 0);
	unsigned header = cursor_u8(&c);
	unsigned size_code = header & 3;
	unsigned bits = header >> 2;
	uint32_t taken = 0;

	if (c.short_read || size_code > 2 || bits > BUCKET_BITS_MAX)
		return -EBADMSG;
	for (uint32_t bucket = 0; bucket < 1u << bits; bucket++) {
		c = section_at(section, 1 + (uint64_t)bucket * (1u << size_code));
		uint64_t at = 1 + (uint64_t)sized_number(&c, size_code);
		uint64_t end = 1 + (uint64_t)sized_number(&c, size_code);
		if (c.short_read)
			return -EBADMSG;
		while (at < end) {
			c = section_at(section, at);
			cursor_skip(&c, 1);
			int64_t place = (int64_t)at + 1;
			int64_t entry = place + native_signed(&c);
			if (c.short_read || entry < 0 || taken++ > INSTANCES_MAX)
				return -EBADMSG;
			at = (uint64_t)(c.at - section->data);
			struct instance instance;
			c = section_at(section, (uint64_t)entry);
			if (!read_instance(image, &c, &instance))
				return -EBADMSG;
			uint32_t function = function_number(&c);
			if (c.short_read)
				return -EBADMSG;
			int error =
				add_method(image, function, instance.token, (uint32_t)entry + 1);
			if (error)
				return error;
		}
	}
	return 0;
}

static int compare_methods(const void *a, const void *b)
{
	const struct r2r_method *x = a;
	const struct r2r_method *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->token != y->token)
		return x->token < y->token ? -1 : 1;
	return x->signature < y->signature ? -1 : x->signature > y->signature;
}

static void sort_methods(struct r2r *image)
{
	struct r2r_method *m = image->methods.items;
	uint32_t kept = 0;

	if (!image->methods.count)
		return;
	qsort(m, image->methods.count, sizeof(*m), compare_methods);
	for (uint32_t i = 0; i < image->methods.count; i++) {
		if (!kept || m[kept - 1].function != m[i].function)
			m[kept++] = m[i];
	}
	image->methods.count = kept;
}

static int load_rva(const struct r2r *image, uint32_t rva, uint32_t size,
	struct r2r_section *ret_section)
{
	uint64_t offset;

	if (!pe_offset_of_rva(&image->pe, rva, &offset))
		return -EBADMSG;
	int error =
		image_file_load(&image->file, offset, size, SECTION_SIZE_MAX, &ret_section->data);
	if (!error)
		ret_section->size = size;
	return error;
}

/* They must be ascending for the search; the list ends with all ones. */
static int read_functions(struct r2r *image, const struct r2r_section *section)
{
	bool has_end =
		image->pe.machine == MACHINE_AMD64 || (image->pe.machine ^ 0x7b79) == MACHINE_AMD64;
	struct cursor c = section_at(section, 0);
	size_t size = has_end ? 12 : 8;

	while (cursor_left(&c) >= size && image->functions.count < FUNCTIONS_MAX) {
		struct r2r_function function = { .begin = cursor_u32(&c) };
		if (has_end)
			function.end = cursor_u32(&c);
		cursor_skip(&c, 4);
		if (function.begin == UINT32_MAX)
			break;
		struct r2r_function *last =
			image->functions.count ? vec_last(&image->functions) : NULL;
		if (last && function.begin <= last->begin)
			return -EBADMSG;
		if (last && (!has_end || last->end > function.begin || last->end < last->begin))
			last->end = function.begin;
		if (!vec_add(&image->functions, function))
			return -ENOMEM;
	}
	return 0;
}

static int read_all(struct r2r *image, struct diag *diag)
{
	struct r2r_section header = { 0 };
	struct r2r_section functions = { 0 };
	struct r2r_section methods = { 0 };
	struct r2r_section table = { 0 };
	int error = pe_read(&image->pe, &image->file, diag);

	if (error)
		return error;
	if (!image->pe.r2r_rva)
		return diag_set(diag, -ENODATA, "the assembly holds no precompiled code");
	error = load_rva(image, image->pe.r2r_rva, 16, &header);
	if (error)
		return diag_set(diag, error, "cannot read the ReadyToRun header: %m");
	struct cursor c = section_at(&header, 4);
	image->major = cursor_u16(&c);
	cursor_skip(&c, 6);
	uint32_t count = cursor_u32(&c);
	free(header.data);
	if (count > SECTIONS_MAX)
		return diag_set(diag, -EBADMSG, "%u ReadyToRun sections: not possible", count);
	error = load_rva(image, image->pe.r2r_rva + 16, count * 12, &table);
	if (error)
		return diag_set(diag, error, "cannot read %u ReadyToRun sections: %m", count);
	c = section_at(&table, 0);
	for (uint32_t i = 0; i < count && !error; i++) {
		uint32_t type = cursor_u32(&c);
		uint32_t rva = cursor_u32(&c);
		uint32_t size = cursor_u32(&c);
		struct r2r_section *section = type == SECTION_FUNCTIONS   ? &functions
					      : type == SECTION_METHODS   ? &methods
					      : type == SECTION_INSTANCES ? &image->instances
									  : NULL;
		if (type == SECTION_DEBUG) {
			image->debug_rva = rva;
			image->debug_size = size;
		}
		if (section && !section->data && size)
			error = load_rva(image, rva, size, section);
	}
	if (!error)
		error = load_rva(image, image->pe.metadata_rva, image->pe.metadata_size,
			&image->metadata_bytes);
	if (!error)
		error = metadata_read(&image->metadata, image->metadata_bytes.data,
			image->metadata_bytes.size);
	if (!error && (!functions.size || !methods.size))
		error = -ENODATA; /* a part of a composite image: its code is elsewhere */
	if (!error)
		error = read_functions(image, &functions);
	if (!error)
		error = read_methods(image, &methods);
	if (!error) {
		error = image->instances.size ? read_instances(image) : 0;
		image->all_known = !error;
		if (error == -EBADMSG)
			error = 0;
	}
	sort_methods(image);
	free(table.data);
	free(functions.data);
	free(methods.data);
	return error ? diag_set(diag, error, "cannot read the tables of precompiled code: %m") : 0;
}

static int open_image(struct r2r *image, struct r2r **ret_image, struct diag *diag)
{
	int error = image->file.size_bytes > R2R_FILE_MAX
			    ? diag_set(diag, -EFBIG, "the assembly is larger than %u MiB",
				      R2R_FILE_MAX >> 20)
			    : read_all(image, diag);

	if (error) {
		r2r_close(image);
		return error;
	}
	*ret_image = image;
	return 0;
}

int r2r_open(int fd, struct r2r **ret_image, struct diag *diag)
{
	cleanup(closep) int own = fd;
	struct r2r *image = calloc(1, sizeof(*image));

	if (!image)
		return diag_set(diag, -ENOMEM, "no memory for an assembly");
	int error = image_file_from_fd(&image->file, fd, diag);
	if (error) {
		free(image);
		return error;
	}
	image->fd = TAKE_FD(own);
	return open_image(image, ret_image, diag);
}

int r2r_open_memory(const void *data, size_t size, struct r2r **ret_image, struct diag *diag)
{
	struct r2r *image = calloc(1, sizeof(*image));

	if (!image)
		return diag_set(diag, -ENOMEM, "no memory for an assembly");
	image->fd = -1;
	image_file_from_memory(&image->file, data, size);
	return open_image(image, ret_image, diag);
}

/* The name of a plain method or an instance into image->name. */
static bool make_name(struct r2r *image, const struct r2r_method *method)
{
	const struct metadata *m = &image->metadata;
	struct bytes *out = &image->name;
	struct instance instance = { 0 };
	struct cursor c;

	bytes_reset(out);
	if (!method->token)
		return false;
	if (method->signature) {
		c = section_at(&image->instances, method->signature - 1);
		if (!read_instance(image, &c, &instance))
			return false;
	}
	if (instance.owner.at) {
		if (!metadata_add_signature_type(m, &instance.owner, false, out))
			return false;
	} else if (!metadata_add_type(m, metadata_owner(m, method->token), out)) {
		return false;
	}
	bytes_text(out, "::");
	if (!metadata_add_method(m, method->token, out))
		return false;
	for (uint32_t i = 0; i < instance.argument_count; i++) {
		bytes_text(out, i ? "," : "[");
		if (!metadata_add_signature_type(m, &instance.arguments, false, out))
			return false;
	}
	if (instance.argument_count)
		bytes_text(out, "]");
	bytes_text(out, "(");
	/* on failure the name has no arguments */
	(void)metadata_add_arguments(m, method->token, out);
	bytes_text(out, ")");
	return !out->failed;
}

/* The index plus one of the last method that begins at or before an address; 0: none. */
static uint32_t find_method(const struct r2r *image, uint32_t rva)
{
	return partition_point(image->methods.count, i,
		image->functions.items[image->methods.items[i].function].begin <= rva);
}

bool r2r_find_rva(struct r2r *image, uint32_t rva, struct r2r_hit *ret_hit)
{
	uint32_t low = find_method(image, rva);

	if (!low)
		return false;
	const struct r2r_method *method = &image->methods.items[low - 1];
	uint32_t last = image->functions.count;
	if (low < image->methods.count)
		last = image->methods.items[low].function;
	if (!image->all_known)
		last = method->function + 1;
	struct r2r_hit hit = {
		.begin_rva = image->functions.items[method->function].begin,
		.end_rva = image->functions.items[last - 1].end,
		.token = method->token,
	};
	if (rva >= hit.end_rva || !pe_offset_of_rva(&image->pe, hit.begin_rva, &hit.begin_offset) ||
		!make_name(image, method))
		return false;
	hit.name = bytes_z(&image->name);
	hit.name_len = image->name.len;
	*ret_hit = hit;
	return true;
}

bool r2r_find_offset(struct r2r *image, uint64_t offset, struct r2r_hit *ret_hit)
{
	uint32_t rva;

	return pe_rva_of_offset(&image->pe, offset, &rva) && r2r_find_rva(image, rva, ret_hit);
}

int r2r_il_offsets(struct r2r *image, uint32_t begin_rva, struct il_offset *ret_offsets,
	uint32_t room)
{
	uint32_t low = find_method(image, begin_rva);
	struct cursor c;

	if (!low || !image->debug_size)
		return -ENODATA;
	uint32_t function = image->methods.items[low - 1].function;
	if (image->functions.items[function].begin != begin_rva)
		return -ENODATA;
	if (!image->debug.data) {
		int error = load_rva(image, image->debug_rva, image->debug_size, &image->debug);
		if (error)
			return error;
	}
	c = section_at(&image->debug, 0);
	uint32_t header = native_unsigned(&c);
	if (c.short_read || (header & 3) > 2)
		return -EBADMSG;
	uint32_t base = (uint32_t)(c.at - image->debug.data);
	if (!array_get(&image->debug, function, header >> 2, base, header & 3, &c))
		return -ENODATA;
	uint64_t at = (uint64_t)(c.at - image->debug.data);
	uint32_t back = native_unsigned(&c);
	if (c.short_read || back > at)
		return -EBADMSG;
	if (back)
		c = section_at(&image->debug, at - back);
	return c.short_read
		       ? -EBADMSG
		       : r2r_bounds_read(c.at, cursor_left(&c), image->major, ret_offsets, room);
}

const struct pe *r2r_pe(const struct r2r *image)
{
	return &image->pe;
}

uint32_t r2r_method_count(const struct r2r *image)
{
	return image->methods.count;
}

size_t r2r_size_bytes(const struct r2r *image)
{
	return sizeof(*image) + image->instances.size + image->metadata_bytes.size +
	       image->debug.size + image->functions.capacity * sizeof(struct r2r_function) +
	       image->methods.capacity * sizeof(struct r2r_method) + image->name.capacity;
}

void r2r_close(struct r2r *image)
{
	if (!image)
		return;
	closep(&image->fd);
	pe_done(&image->pe);
	free(image->instances.data);
	free(image->debug.data);
	free(image->metadata_bytes.data);
	vec_done(&image->functions);
	vec_done(&image->methods);
	bytes_done(&image->name);
	free(image);
}
