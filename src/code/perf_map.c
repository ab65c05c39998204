/* See perf_map.h. */
#include "code/perf_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/map.h"
#include "code/codemap.h"
#include "code/method_name.h"

#define RANGE_SIZE_MAX (UINT64_C(1) << 32)

/* The tiers as runtimes spell them in perf maps, and as their events spell them. */
static const struct {
	const char *tag;
	enum code_tier tier;
	enum code_kind kind;
} tags[] = {
	{ "MinOptJitted", TIER_MIN_OPT, CODE_JIT },
	{ "QuickJitted", TIER_0, CODE_JIT },
	{ "Optimized", TIER_OPTIMIZED, CODE_JIT },
	{ "OptimizedTier1", TIER_1, CODE_JIT },
	{ "OptimizedTier1OSR", TIER_1_OSR, CODE_OSR },
	{ "InstrumentedTier", TIER_0_INSTRUMENTED, CODE_JIT },
	{ "InstrumentedTierOptimized", TIER_1_INSTRUMENTED, CODE_JIT },
	{ "PreJIT", TIER_UNKNOWN, CODE_READYTORUN },
};

/* Copies a part of the line to *at, and appends a NUL. */
static void end_text(const char *text, size_t len, char **at, const char **ret_text)
{
	if (len)
		memcpy(*at, text, len);
	(*at)[len] = 0;
	*ret_text = *at;
	*at += len + 1;
}

/* Derived from the assembly's name; the top bit distinguishes it from real ids (addresses). */
static uint64_t module_of(struct codemap *map, const char *assembly)
{
	uint64_t id = hash_bytes(assembly, strlen(assembly)) | UINT64_C(1) << 63;

	return codemap_add_module(map, id, assembly, 0) < 0 ? 0 : id;
}

/* Splits "RETURN [Assembly] Type::Method(arguments)[Tier]" as the runtime's events do. */
static int add_managed(struct codemap *map, struct code *code, const struct method_name *m)
{
	size_t room = m->type_len + m->method_len + m->arguments_len + m->return_type_len +
		      m->assembly_len + 16;
	cleanup(freep) char *buffer = malloc(room);
	char *at = buffer;
	const char *assembly;

	if (!buffer)
		return -ENOMEM;
	end_text(m->type, m->type_len, &at, &code->name_space);
	end_text(m->method, m->method_len, &at, &code->name);
	end_text(m->assembly, m->assembly_len, &at, &assembly);
	code->signature = at;
	if (m->return_type_len)
		memcpy(at, m->return_type, m->return_type_len);
	at += m->return_type_len;
	*at++ = ' ';
	*at++ = '(';
	memcpy(at, m->arguments, m->arguments_len);
	at += m->arguments_len;
	*at++ = ')';
	*at = 0;
	if (*assembly)
		code->module_id = module_of(map, assembly);
	code->kind = CODE_JIT;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (strlen(tags[i].tag) == m->tier_len &&
			!memcmp(tags[i].tag, m->tier, m->tier_len)) {
			code->tier = (uint8_t)tags[i].tier;
			code->kind = (uint8_t)tags[i].kind;
		}
	}
	return codemap_add(map, code);
}

int perf_map_add(struct codemap *map, uint64_t begin, uint64_t size, const char *name,
	size_t name_len, uint64_t from_ns)
{
	struct code code = {
		.begin = begin,
		.end = begin + size,
		.from_ns = from_ns,
		.until_ns = UINT64_MAX,
		.name_space = "",
		.signature = "",
	};
	struct method_name parts;

	if (!size || size > RANGE_SIZE_MAX || begin + size < begin || !name_len)
		return -EINVAL;
	/* Only .NET names have an assembly; names of other runtimes are kept unchanged. */
	if (!memchr(name, 0, name_len) && method_name_parse(name, name_len, &parts) &&
		parts.assembly_len)
		return add_managed(map, &code, &parts);
	cleanup(freep) char *whole = strndup(name, name_len);
	if (!whole)
		return -ENOMEM;
	code.name = whole;
	code.kind = !strncmp(whole, "stub ", 5) ? CODE_STUB : CODE_UNKNOWN;
	return codemap_add(map, &code);
}

static bool take_number(const char **at, const char *end, uint64_t *ret_value)
{
	const char *p = *at;
	const char *begin;
	uint64_t value = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (begin = p; p < end; p++) {
		unsigned char c = (unsigned char)*p;
		unsigned digit = c >= '0' && c <= '9' ? c - '0' + 0u : (c | 32u) - 'a' + 10u;
		if (digit > 15 || (digit >= 10 && (c | 32) < 'a'))
			break;
		value = value << 4 | digit;
	}
	if (p == begin || p - begin > 16 || p == end || *p != ' ')
		return false;
	while (p < end && *p == ' ')
		p++;
	*at = p;
	*ret_value = value;
	return true;
}

/* 1: added; 0: not a line of a map; or a negative errno. */
static int take_line(struct codemap *map, const char *line, size_t len)
{
	const char *end = line + len;
	const char *at = line;
	uint64_t begin;
	uint64_t size;

	if (!take_number(&at, end, &begin) || !take_number(&at, end, &size))
		return 0;
	if (end > at && end[-1] == '\r')
		end--;
	int error = perf_map_add(map, begin, size, at, (size_t)(end - at), 0);
	return error == -EINVAL ? 0 : error ? error : 1;
}

int perf_map_read(struct input *in, struct codemap *map, struct diag *diag)
{
	size_t room = 2 * PERF_MAP_LINE_MAX;
	cleanup(freep) char *window = malloc(room);
	uint64_t total = 0;
	size_t have = 0;
	int count = 0;
	bool skipping = false; /* the rest of a line whose beginning was taken already */

	if (!window)
		return diag_set(diag, -ENOMEM, "no memory for a perf map");
	for (bool more = true; more;) {
		ssize_t got = input_read(in, window + have, room - have, diag);
		if (got < 0)
			return (int)got;
		more = got > 0;
		total += (uint64_t)got;
		if (total > PERF_MAP_SIZE_MAX)
			return diag_set(diag, -EMSGSIZE, "the perf map is larger than %llu MiB",
				(unsigned long long)(PERF_MAP_SIZE_MAX >> 20));
		const char *at = window;
		const char *end = window + have + got;
		while (at < end) {
			const char *newline = memchr(at, '\n', (size_t)(end - at));
			const char *line_end = newline ? newline : end;
			/* Without a newline it is still being written, unless too long. */
			if (!newline && more && end - at < (ptrdiff_t)PERF_MAP_LINE_MAX)
				break;
			int taken = skipping ? 0 : take_line(map, at, (size_t)(line_end - at));
			if (taken < 0)
				return diag_set(diag, taken,
					"cannot keep a name of the perf map: %m");
			count += taken;
			skipping = !newline;
			at = newline ? newline + 1 : end;
		}
		have = (size_t)(end - at);
		if (have)
			memmove(window, at, have);
	}
	return count;
}
