/*
 * See clr_method.h. MethodDesc, flags: bits 0 to 2 its kind, 0x08 a slot, 0x10 a method implementation
 * and 0x20 the address of its native code follow the fields of the kind, in this order.
 *
 * MethodTable, flags: bit 31 no generic type (array or string), 0x30 generics, 0xc0000 = 0x80000 array, 0x20000 of
 * one dimension. A type handle with bit 1 is a TypeDesc: pointer, reference, variable.
 */
#include "code/clr_method.h"

#include <string.h>

#include "base/cursor.h"
#include "code/clr_image.h"
#include "code/clr_layout.h"
#include "code/clr_memory.h"
#include "code/clr_module.h"
#include "code/metadata.h"

#define KIND_MASK         7u
#define KIND_GENERIC      5u
#define KIND_DYNAMIC      7u
#define METHOD_HAS_SLOT   0x08u
#define METHOD_HAS_IMPL   0x10u
#define METHOD_HAS_NATIVE 0x20u
#define DYNAMIC_MASK      0xc000u /* what kind of dynamic method */
#define DYNAMIC_STUB      0x8000u
#define RANGE_MASK        0x0fffu
#define TYPE_NO_GENERIC   0x80000000u
#define TYPE_GENERIC      0x30u
#define TYPE_DEFINITION   0x30u
#define TYPE_ARRAY_MASK   0xc0000u
#define TYPE_ARRAY        0x80000u
#define TYPE_VECTOR       0x20000u
#define HANDLE_IS_DESC    UINT64_C(2)
#define DESC_POINTER      0x0fu
#define DESC_REFERENCE    0x10u
#define TOKEN_OVERFLOW    0xffffu
#define ARGUMENTS_MAX     64u
#define DICTS_MAX         64u
#define RANK_MAX          32u
#define DEPTH_MAX         8u
#define TEXT_MAX          6000u
#define NAME_MAX_BYTES    1024u
#define SIGNATURE_MAX     512u
#define GENERICS_BYTES    8u /* before the dictionaries */

static bool add_handle(struct clr_namer *namer, uint64_t handle, unsigned depth, struct bytes *out);

static uint32_t type_row(struct clr_namer *namer, uint64_t type)
{
	const struct clr_layout *l = namer->layout;

	if (l->version != CLR_VERSION_8)
		return clr_memory_u32(namer->memory, type + l->type_token) >> 8;
	uint32_t row = clr_memory_u16(namer->memory, type + l->type_token);
	return row == TOKEN_OVERFLOW ? 0 : row;
}

static bool add_arguments(struct clr_namer *namer, uint64_t handles, uint32_t count, unsigned depth,
	struct bytes *out)
{
	if (!count || count > ARGUMENTS_MAX)
		return false;
	bytes_text(out, "[");
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			bytes_text(out, ",");
		if (!add_handle(namer, clr_memory_pointer(namer->memory, handles + 8 * i),
			    depth + 1, out))
			return false;
	}
	bytes_text(out, "]");
	return true;
}

static bool add_array(struct clr_namer *namer, uint64_t type, uint32_t flags, unsigned depth,
	struct bytes *out)
{
	struct clr_memory *memory = namer->memory;
	const struct clr_layout *l = namer->layout;
	uint32_t rank = 1;

	if (!add_handle(namer, clr_memory_pointer(memory, type + l->type_arguments), depth + 1,
		    out))
		return false;
	if (!(flags & TYPE_VECTOR)) {
		if (l->array_rank == CLR_NO)
			return false;
		uint64_t class = clr_memory_pointer(memory, type + l->type_class);
		if (class & 1)
			class = clr_memory_pointer(memory, (class & ~UINT64_C(1)) + l->type_class);
		rank = clr_memory_u8(memory, class + l->array_rank);
		if (!rank || rank > RANK_MAX)
			return false;
	}
	bytes_text(out, "[");
	for (uint32_t i = 1; i < rank; i++)
		bytes_text(out, ",");
	bytes_text(out, rank == 1 && !(flags & TYPE_VECTOR) ? "*]" : "]");
	return true;
}

static bool add_desc(struct clr_namer *namer, uint64_t desc, unsigned depth, struct bytes *out)
{
	struct clr_memory *memory = namer->memory;
	const struct clr_layout *l = namer->layout;
	uint32_t kind = clr_memory_u32(memory, desc + l->desc_kind) & 0xff;

	if (memory->failed || (kind != DESC_POINTER && kind != DESC_REFERENCE) ||
		l->desc_element == CLR_NO ||
		!add_handle(namer, clr_memory_pointer(memory, desc + l->desc_element), depth + 1,
			out))
		return false;
	bytes_text(out, kind == DESC_POINTER ? "*" : "&");
	return true;
}

/* A type that is no array, with its arguments. */
static bool add_class(struct clr_namer *namer, uint64_t type, uint32_t flags, unsigned depth,
	struct bytes *out)
{
	struct clr_memory *memory = namer->memory;
	const struct clr_layout *l = namer->layout;
	uint32_t row = type_row(namer, type);
	uint64_t module_at = clr_memory_pointer(memory, type + l->type_module);

	if (memory->failed || !row)
		return false;
	const struct clr_module *module = clr_modules_get(namer->modules, module_at, namer->lasts);
	if (!module || !module->image ||
		!metadata_add_type(&module->image->metadata,
			(uint32_t)METADATA_TYPE_DEF << 24 | row, out))
		return false;
	memory->failed = false;
	uint32_t generic = flags & TYPE_NO_GENERIC ? 0 : flags & TYPE_GENERIC;
	if (!generic || generic == TYPE_DEFINITION)
		return true;
	uint64_t dicts = clr_memory_pointer(memory, type + l->type_arguments);
	uint32_t dict_count = clr_memory_u16(memory, dicts - GENERICS_BYTES + l->arguments_dicts);
	uint32_t count = clr_memory_u16(memory, dicts - GENERICS_BYTES + l->arguments_count);
	if (memory->failed || !dict_count || dict_count > DICTS_MAX)
		return false;
	uint64_t handles = clr_memory_pointer(memory, dicts + 8 * (uint64_t)(dict_count - 1));
	return !memory->failed && add_arguments(namer, handles, count, depth, out);
}

static bool add_handle(struct clr_namer *namer, uint64_t handle, unsigned depth, struct bytes *out)
{
	struct clr_memory *memory = namer->memory;

	if (memory->failed || depth > DEPTH_MAX || out->len > TEXT_MAX)
		return false;
	if (handle & HANDLE_IS_DESC)
		return add_desc(namer, handle & ~HANDLE_IS_DESC, depth, out);
	uint32_t flags = clr_memory_u32(memory, handle + namer->layout->type_flags);
	if (memory->failed || handle % 8)
		return false;
	if ((flags & TYPE_ARRAY_MASK) == TYPE_ARRAY)
		return add_array(namer, handle, flags, depth, out);
	return add_class(namer, handle, flags, depth, out);
}

bool clr_method_add_type(struct clr_namer *namer, uint64_t type, struct bytes *out)
{
	size_t before = out->len;

	namer->memory->failed = false;
	namer->lasts = false;
	if (add_handle(namer, type, 0, out) && !namer->memory->failed)
		return true;
	out->len = before;
	return false;
}

/* Its types have tokens only while the method is compiled: then the signature is unknown. */
static void add_stored_signature(struct clr_namer *namer, uint64_t method)
{
	struct clr_memory *memory = namer->memory;
	const struct clr_layout *l = namer->layout;
	static const struct metadata none = { .as_events = true };
	uint8_t signature[SIGNATURE_MAX];
	uint64_t at = clr_memory_pointer(memory, method + l->dynamic_signature);
	uint32_t size = clr_memory_u32(memory, method + l->dynamic_signature_size);

	bool read = !memory->failed && size && size <= sizeof(signature) &&
		    clr_memory_bytes(memory, at, signature, size);
	memory->failed = false;
	if (!read || !metadata_add_whole_signature(&none, cursor_of(signature, size), &namer->text))
		bytes_text(&namer->text, "?  (?)");
}

static bool read_dynamic(struct clr_namer *namer, uint64_t method, uint32_t flags,
	struct clr_method_text *text)
{
	struct clr_memory *memory = namer->memory;
	const struct clr_layout *l = namer->layout;
	char name[NAME_MAX_BYTES];
	uint64_t slot = method + l->dynamic_bytes;

	if (!clr_memory_text(memory, clr_memory_pointer(memory, method + l->dynamic_name), name,
		    sizeof(name)))
		return false;
	slot += flags & METHOD_HAS_SLOT ? l->slot_bytes : 0;
	slot += flags & METHOD_HAS_IMPL ? l->impl_bytes : 0;
	if (flags & METHOD_HAS_NATIVE)
		text->native_code = clr_memory_u64(memory, slot);
	bytes_reset(&namer->text);
	bytes_text(&namer->text, name);
	bytes_u8(&namer->text, 0);
	size_t signature_at = namer->text.len;
	add_stored_signature(namer, method);
	bytes_u8(&namer->text, 0);
	if (namer->text.failed)
		return false;
	text->name_space = "dynamicClass";
	text->name = (const char *)namer->text.data;
	text->signature = (const char *)namer->text.data + signature_at;
	text->dynamic = true;
	uint32_t kind = l->dynamic_flags == CLR_NO
				? 0
				: clr_memory_u32(memory, method + l->dynamic_flags) & DYNAMIC_MASK;
	text->freed = memory->failed || kind != DYNAMIC_STUB;
	return true;
}

/* Appends the three texts, each with a NUL. */
static bool add_texts(struct clr_namer *namer, const struct clr_module *module, uint64_t type,
	struct clr_method_text *text)
{
	struct bytes *out = &namer->text;
	const struct metadata *metadata = &module->image->metadata;
	size_t name_at;
	size_t signature_at;

	bytes_reset(out);
	if (!metadata_add_method(metadata, text->token, out))
		return false;
	bytes_u8(out, 0);
	signature_at = out->len;
	if (!metadata_add_signature(metadata, text->token, out))
		return false;
	bytes_u8(out, 0);
	name_at = out->len;
	/* Last, as this may forget `module`. */
	if (!add_handle(namer, type, 0, out) || namer->memory->failed)
		return false;
	bytes_u8(out, 0);
	if (out->failed)
		return false;
	text->name = (const char *)out->data;
	text->signature = (const char *)out->data + signature_at;
	text->name_space = (const char *)out->data + name_at;
	return true;
}

static bool agrees(const struct clr_module *module, uint32_t token, uint32_t row)
{
	return module && module->image &&
	       metadata_owner(&module->image->metadata, token) ==
		       ((uint32_t)METADATA_TYPE_DEF << 24 | row);
}

bool clr_method_read(struct clr_namer *namer, uint64_t method, bool lasts,
	struct clr_method_text *ret_text)
{
	struct clr_memory *memory = namer->memory;
	const struct clr_layout *l = namer->layout;
	struct clr_method_text text = { .module = 0 };

	memory->failed = false;
	namer->lasts = lasts;
	uint32_t index = clr_memory_u8(memory, method + l->method_chunk);
	uint32_t flags = clr_memory_u16(memory, method + l->method_flags);
	uint64_t chunk = method - l->chunk_bytes - index * l->method_align;
	uint32_t size = clr_memory_u8(memory, chunk + l->chunk_size);
	if (memory->failed || index >= size + 1)
		return false;
	if ((flags & KIND_MASK) == KIND_DYNAMIC) {
		if (!read_dynamic(namer, method, flags, &text))
			return false;
		uint64_t owner = clr_memory_u64(memory, chunk + l->chunk_type);
		text.module = owner ? clr_memory_u64(memory, owner + l->type_module) : 0;
		if (memory->failed ||
			(text.module && !clr_modules_get(namer->modules, text.module, lasts)))
			text.module = 0;
		memory->failed = false;
		*ret_text = text;
		return true;
	}
	uint32_t range = clr_memory_u16(memory, chunk + l->chunk_range) & RANGE_MASK;
	uint32_t rest =
		clr_memory_u16(memory, method + l->method_token) & ((1u << l->token_bits) - 1);
	uint64_t type = clr_memory_pointer(memory, chunk + l->chunk_type);
	uint32_t row = type_row(namer, type);
	text.module = clr_memory_pointer(memory, type + l->type_module);
	text.token = (uint32_t)METADATA_METHOD_DEF << 24 | (range << l->token_bits | rest);
	if (memory->failed)
		return false;
	const struct clr_module *module = clr_modules_get(namer->modules, text.module, lasts);
	if (!agrees(module, text.token, row)) {
		/* Metadata that cannot grow, and a method that cannot be freed. */
		namer->disagreed_count += lasts && module && module->image && !module->emitted;
		module = clr_modules_again(namer->modules, text.module);
		if (!agrees(module, text.token, row))
			return false;
	}
	memory->failed = false;
	if (!add_texts(namer, module, type, &text))
		return false;
	*ret_text = text;
	return true;
}

void clr_method_done(struct clr_namer *namer)
{
	bytes_done(&namer->text);
}
