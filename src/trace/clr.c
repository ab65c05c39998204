/*
 * See clr.h. MethodLoadVerbose, MethodUnloadVerbose and their equals in the rundown, little-endian:
 *
 *   offset  size  field
 *   0       8     MethodID
 *   8       8     ModuleID
 *   16      8     MethodStartAddress
 *   24      4     MethodSize       of this body, hot part
 *   28      4     MethodToken
 *   32      4     MethodFlags      1 dynamic, 2 generic, 4 shared generic, 8 jitted; bits 7 to 9 the tier
 *   36            MethodNamespace, MethodName, MethodSignature: UTF-16 with a NUL
 *                 ClrInstanceID u16 (version 1), ReJITID u64 (version 2): the version of the code
 *
 * ModuleLoad and ModuleDCEnd: ModuleID u64, AssemblyID u64, ModuleFlags u32, Reserved u32, then the
 * paths of the IL image and of the native image as UTF-16 with a NUL; from version 1 on
 * ClrInstanceID u16, from version 2 on the GUID of the symbol file; the rest is not needed.
 *
 * MethodILToNativeMap: MethodID u64, ReJITID u64 (as above), MethodExtent u8, count u16, then the
 * IL offsets and the native offsets, u32 each, not sorted. It may precede its method's event.
 */
#include "trace/clr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/text.h"
#include "code/codemap.h"
#include "trace/trace.h"

#define METHOD_FLAG_DYNAMIC 1u
#define METHOD_FLAG_JITTED  8u
#define METHOD_TIER_SHIFT   7
#define METHOD_TIER_MASK    7u

/* UTF-16 units; a payload stays below EVENT_PAYLOAD_MAX: 2 * (2 * 4096 + 20000) + 44 bytes. */
#define UNLOAD_NAME_MAX      4096u
#define UNLOAD_SIGNATURE_MAX 20000u

struct clr_method_row {
	uint64_t method_id;
	uint64_t module_id;
	uint64_t begin;
	uint32_t size;
	uint32_t token;
	uint32_t flags;
	const uint8_t *text[3]; /* namespace, name, signature */
	size_t units[3];
	uint64_t version;
};

static struct clr_method_row read_method(struct cursor *c)
{
	struct clr_method_row method;

	method.method_id = cursor_u64(c);
	method.module_id = cursor_u64(c);
	method.begin = cursor_u64(c);
	method.size = cursor_u32(c);
	method.token = cursor_u32(c);
	method.flags = cursor_u32(c);
	for (unsigned i = 0; i < 3; i++)
		method.text[i] = cursor_utf16z(c, &method.units[i]);
	struct cursor rest = *c;
	cursor_skip(&rest, 2); /* ClrInstanceID */
	method.version = cursor_u64(&rest);
	return method;
}

static uint8_t method_kind(uint32_t flags, unsigned tier)
{
	if (flags & METHOD_FLAG_DYNAMIC)
		return CODE_DYNAMIC;
	if (!(flags & METHOD_FLAG_JITTED))
		return CODE_READYTORUN;
	return tier == TIER_1_OSR ? CODE_OSR : CODE_JIT;
}

/* `from_ns` is 0 where the time of compilation is not known; the code existed at `stood_ns`. */
static int absorb_method(struct codemap *map, uint64_t from_ns, uint64_t until_ns,
	uint64_t stood_ns, struct cursor *c)
{
	struct clr_method_row method = read_method(c);
	uint64_t end;

	if (c->short_read || __builtin_add_overflow(method.begin, method.size, &end))
		return -EBADMSG;
	if (!method.size)
		return 0;

	/* The three texts, each followed by its NUL. */
	struct bytes text = { 0 };
	size_t at[3];
	for (unsigned i = 0; i < 3; i++) {
		at[i] = text.len;
		text_add_utf16(&text, method.text[i], method.units[i]);
		bytes_u8(&text, 0);
	}
	int r = -ENOMEM;
	if (!text.failed) {
		unsigned tier = method.flags >> METHOD_TIER_SHIFT & METHOD_TIER_MASK;
		struct code code = {
			.begin = method.begin,
			.end = end,
			.method_id = method.method_id,
			.module_id = method.module_id,
			.from_ns = from_ns,
			.until_ns = until_ns,
			.stood_ns = stood_ns,
			.name_space = (const char *)text.data + at[0],
			.name = (const char *)text.data + at[1],
			.signature = (const char *)text.data + at[2],
			.kind = method_kind(method.flags, tier),
			.tier = (uint8_t)tier,
			.token = method.token,
			.version = method.version,
		};
		/* Precompiled code was in its image before the event that reports its first use. */
		if (code.kind == CODE_READYTORUN)
			code.from_ns = 0;
		r = codemap_add(map, &code);
	}
	bytes_done(&text);
	return r < 0 ? r : 1;
}

static int absorb_module(struct codemap *map, uint64_t from_ns, struct cursor *c)
{
	uint64_t module_id = cursor_u64(c);
	size_t units;

	cursor_skip(c, 8 + 4 + 4); /* AssemblyID, flags, reserved */
	const uint8_t *path = cursor_utf16z(c, &units);
	if (c->short_read)
		return -EBADMSG;
	cleanup(bytes_done) struct bytes text = { 0 };
	text_add_utf16(&text, path, units);
	int r = codemap_add_module(map, module_id, bytes_z(&text), from_ns);
	if (text.failed)
		r = -ENOMEM;
	(void)cursor_utf16z(c, &units); /* native image */
	cursor_skip(c, 2);
	const uint8_t *pdb_id = cursor_take(c, 16);
	if (r == 0 && pdb_id)
		codemap_set_pdb(map, module_id, pdb_id);
	return r < 0 ? r : 1;
}

static int absorb_il(struct codemap *map, struct cursor *c)
{
	uint64_t method_id = cursor_u64(c);
	uint64_t version = cursor_u64(c);

	cursor_skip(c, 1);
	uint32_t count = cursor_u16(c);
	struct cursor il = cursor_sub(c, (size_t)count * 4);
	struct cursor native = cursor_sub(c, (size_t)count * 4);
	if (c->short_read)
		return -EBADMSG;
	cleanup(freep) struct il_offset *offsets = calloc((size_t)count + 1, sizeof(*offsets));
	if (!offsets)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		offsets[i].il = cursor_u32(&il);
		offsets[i].native = cursor_u32(&native);
	}
	return codemap_add_il(map, method_id, version, offsets, count);
}

int clr_absorb_method(struct codemap *map, int rundown, uint32_t event_id, uint32_t version,
	uint64_t time_ns, const uint8_t *payload, size_t size)
{
	struct cursor c = cursor_of(payload, size);

	(void)version; /* versions 1 and 2 differ only in fields that are not read */
	if (rundown) {
		if (event_id == CLR_ID_MethodDCEndVerbose)
			return absorb_method(map, 0, UINT64_MAX, time_ns, &c);
		if (event_id == CLR_ID_MethodDCEndILToNativeMap)
			return absorb_il(map, &c);
		return event_id == CLR_ID_ModuleDCEnd ? absorb_module(map, 0, &c) : 0;
	}
	switch (event_id) {
	case CLR_ID_MethodLoadVerbose:
		return absorb_method(map, time_ns, UINT64_MAX, 0, &c);
	case CLR_ID_MethodUnloadVerbose:
		/* The only event that names a body from before the session, freed by now. */
		return absorb_method(map, 0, time_ns, time_ns, &c);
	case CLR_ID_MethodILToNativeMap:
		return absorb_il(map, &c);
	case CLR_ID_ModuleLoad:
		return absorb_module(map, time_ns, &c);
	default:
		return 0;
	}
}

/* AssemblyLoad and AssemblyDCEnd: AssemblyID, AppDomainID, BindingID (u64), then the flags. */
bool clr_is_collectible(int rundown, uint32_t event_id, const uint8_t *payload, size_t size)
{
	enum { ASSEMBLY_COLLECTIBLE = 8 };
	struct cursor c = cursor_of(payload, size);

	if (event_id != (rundown ? (uint32_t)CLR_ID_AssemblyDCEnd : (uint32_t)CLR_ID_AssemblyLoad))
		return false;
	cursor_skip(&c, 8 + 8 + 8);
	uint32_t flags = cursor_u32(&c);

	return !c.short_read && flags & ASSEMBLY_COLLECTIBLE;
}

void clr_method_unload_payload(const struct code *code, struct bytes *out)
{
	uint32_t flags = (uint32_t)code->tier << METHOD_TIER_SHIFT;

	if (code->kind == CODE_DYNAMIC)
		flags |= METHOD_FLAG_DYNAMIC;
	if (code->kind != CODE_READYTORUN)
		flags |= METHOD_FLAG_JITTED;
	bytes_u64(out, code->method_id);
	bytes_u64(out, code->module_id);
	bytes_u64(out, code->begin);
	bytes_u32(out, (uint32_t)(code->end - code->begin));
	bytes_u32(out, 0); /* MethodToken: not kept */
	bytes_u32(out, flags);
	bytes_utf16z(out, code->name_space, strlen(code->name_space), UNLOAD_NAME_MAX);
	bytes_utf16z(out, code->name, strlen(code->name), UNLOAD_NAME_MAX);
	bytes_utf16z(out, code->signature, strlen(code->signature), UNLOAD_SIGNATURE_MAX);
	bytes_u16(out, 0); /* ClrInstanceID */
}
