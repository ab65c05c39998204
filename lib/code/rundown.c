/*
 * A rundown is made in steps, because the loop also has to drain rings: begin; then each object
 * (read some of its symbols; when all were read, write the functions found); then generated code;
 * then the end. An event for which there is no room is written again by the next step.
 */
#include "lib/code/rundown.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/code/code.h"
#include "lib/code/method_payload.h"
#include "lib/event/field_size.h"
#include "lib/pipe/pipe_session.h"
#include "lib/pipe/session_emit.h"
#include "lib/platform/objects.h"
#include "lib/platform/platform.h"
#include "lib/sink/code_hits.h"

#define RUNDOWN_EVENTS_A_STEP 256u

enum rundown_phase {
	RUNDOWN_BEGIN,
	RUNDOWN_OBJECTS, /* find the next object with a sampled address */
	RUNDOWN_SYMBOLS, /* read its symbols */
	RUNDOWN_WRITE,   /* write the functions that were found */
	RUNDOWN_GENERATED,
	RUNDOWN_END,
	RUNDOWN_DONE,
};

/* The best symbol so far for a sampled address. */
struct rundown_find {
	uint64_t begin;
	uint64_t size; /* 0: none */
	uint32_t name;
	uint32_t rank;
};

struct rundown {
	uint64_t keywords;
	enum rundown_phase phase;
	uint64_t *hits;
	size_t hit_count;
	struct rundown_find *finds; /* one for each sampled address */
	struct object *objects;
	size_t object_count;
	size_t object; /* index of the current object */
	size_t first;  /* index of its first sampled address */
	size_t last;
	size_t next; /* index of the next address to write */
	bool module_written;
	struct object_symbols *symbols;
	uint64_t code_address;
	uint32_t code_module; /* number of modules of generated code that were written */
	struct outbuf payload;
	/* the event for which there was no room; `payload` is its payload; NULL: none */
	struct spoor_event *pending;
};

static struct spoor_provider rundown_provider = { .size = sizeof(rundown_provider),
	.name = "Microsoft-Windows-DotNETRuntimeRundown" };

static const struct spoor_field fields_mark[] = { FIELD("ClrInstanceID", U16) };
static const struct spoor_field fields_runtime[] = { FIELD("ClrInstanceID", U16), FIELD("Sku", U16),
	FIELD("BclMajorVersion", U16), FIELD("BclMinorVersion", U16), FIELD("BclBuildNumber", U16),
	FIELD("BclQfeNumber", U16), FIELD("VMMajorVersion", U16), FIELD("VMMinorVersion", U16),
	FIELD("VMBuildNumber", U16), FIELD("VMQfeNumber", U16), FIELD("StartupFlags", U32),
	FIELD("StartupMode", U8), FIELD("CommandLine", TEXT), FIELD("ComObjectGuid", GUID),
	FIELD("RuntimeDllPath", TEXT) };
static const struct spoor_field fields_module[] = { FIELD("ModuleID", U64),
	FIELD("AssemblyID", U64), FIELD("ModuleFlags", U32), FIELD("Reserved1", U32),
	FIELD("ModuleILPath", TEXT), FIELD("ModuleNativePath", TEXT), FIELD("ClrInstanceID", U16),
	FIELD("ManagedPdbSignature", GUID), FIELD("ManagedPdbAge", U32),
	FIELD("ManagedPdbBuildPath", TEXT), FIELD("NativePdbSignature", GUID),
	FIELD("NativePdbAge", U32), FIELD("NativePdbBuildPath", TEXT) };
#define RUNDOWN_EVENT(variable, id_, version_, text, keywords_, list)              \
	static struct spoor_event variable = { .size = sizeof(struct spoor_event), \
		.provider = &rundown_provider,                                     \
		.name = text,                                                      \
		.keywords = keywords_,                                             \
		.fields = list,                                                    \
		.field_count = sizeof(list) / sizeof((list)[0]),                   \
		.id = id_,                                                         \
		.version = version_,                                               \
		.level = SPOOR_INFO,                                               \
		.flags = SPOOR_EVENT_WELL_KNOWN }

RUNDOWN_EVENT(rundown_event_runtime, 187, 0, "RuntimeInformationDCStart", 0, fields_runtime);
RUNDOWN_EVENT(rundown_event_begin, 148, 1, "DCEndInit", RUNDOWN_METHODS, fields_mark);
RUNDOWN_EVENT(rundown_event_method, 144, 1, "MethodDCEndVerbose", RUNDOWN_METHODS, method_fields);
RUNDOWN_EVENT(rundown_event_module, 154, 2, "ModuleDCEnd", RUNDOWN_LOADER, fields_module);
RUNDOWN_EVENT(rundown_event_end, 146, 1, "DCEndComplete", RUNDOWN_METHODS, fields_mark);

struct rundown *rundown_new(uint64_t keywords)
{
	struct rundown *rundown =
		keywords & (RUNDOWN_METHODS | RUNDOWN_LOADER) ? calloc(1, sizeof(*rundown)) : NULL;

	if (!rundown)
		return NULL;
	rundown->keywords = keywords;
	code_hits_hold();
	return rundown;
}

void rundown_free(struct rundown *rundown)
{
	if (!rundown)
		return;
	code_hits_release();
	object_symbols_close(rundown->symbols);
	objects_free(rundown->objects, rundown->object_count);
	outbuf_done(&rundown->payload);
	free(rundown->hits);
	free(rundown->finds);
	free(rundown);
}

/* Writes the payload; keeps it if there is no room. */
static int rundown_emit(struct rundown *rundown, struct session *session, struct spoor_event *event)
{
	const struct event_entry *entry;
	int error = event->index ? 0 : registry_describe(event);

	if (error < 0)
		return error;
	if (rundown->payload.failed)
		return -ENOMEM;
	entry = registry_entry(event->index);
	error = entry ? session_emit(session, entry, platform_now_ns(), platform_thread_id(),
				rundown->payload.data, (uint32_t)rundown->payload.size)
		      : -ENOMEM;
	if (error == -ENOBUFS) {
		rundown->pending = event;
		return error;
	}
	rundown->pending = NULL;
	outbuf_reset(&rundown->payload);
	return error;
}

static void rundown_zeroes(struct outbuf *out, size_t size)
{
	static const uint8_t zeroes[16];

	outbuf_add(out, zeroes, size);
}

static int rundown_begin(struct rundown *rundown, struct session *session)
{
	struct outbuf *out = &rundown->payload;
	char command_line[4096];

	rundown->hits = code_hits_sorted(&rundown->hit_count);
	if (rundown->hit_count) {
		rundown->finds = calloc(rundown->hit_count, sizeof(*rundown->finds));
		if (!rundown->hits || !rundown->finds ||
			objects_list(&rundown->objects, &rundown->object_count) < 0)
			rundown->hit_count = 0;
	}
	platform_command_line(command_line, sizeof(command_line));
	payload_u16(out, 0);
	payload_u16(out, 2); /* Sku: CoreCLR, which every reader accepts */
	for (int i = 0; i < 8; i++)
		payload_u16(out, 0);
	payload_u32(out, 0);
	payload_u8(out, 0);
	payload_text(out, command_line);
	rundown_zeroes(out, 16);
	payload_text(out, "");
	rundown->phase = RUNDOWN_OBJECTS;
	int error = rundown_emit(rundown, session, &rundown_event_runtime);
	if (error < 0 && error != -ENOBUFS)
		return error;
	return 0;
}

static int rundown_module(struct rundown *rundown, struct session *session, uint64_t id,
	const char *path)
{
	struct outbuf *out = &rundown->payload;

	payload_u64(out, id);
	payload_u64(out, id);
	payload_u32(out, 0);
	payload_u32(out, 0);
	payload_text(out, path);
	payload_text(out, "");
	payload_u16(out, 0);
	for (int i = 0; i < 2; i++) {
		rundown_zeroes(out, 16);
		payload_u32(out, 0);
		payload_text(out, "");
	}
	return rundown_emit(rundown, session, &rundown_event_module);
}

/* Index of the first sampled address at or above `address`. */
static size_t rundown_hit(const struct rundown *rundown, uint64_t address)
{
	size_t low = 0, high = rundown->hit_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (rundown->hits[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void rundown_next_object(struct rundown *rundown)
{
	object_symbols_close(rundown->symbols);
	rundown->symbols = NULL;
	for (; rundown->object < rundown->object_count; rundown->object++) {
		const struct object *object = &rundown->objects[rundown->object];
		rundown->first = rundown_hit(rundown, object->begin);
		rundown->last = rundown_hit(rundown, object->end);
		if (rundown->first == rundown->last)
			continue;
		rundown->next = rundown->first;
		rundown->module_written = false;
		rundown->symbols = object_symbols_open(object);
		rundown->phase = rundown->symbols ? RUNDOWN_SYMBOLS : RUNDOWN_WRITE;
		return;
	}
	rundown->phase = RUNDOWN_GENERATED;
}

/* Of two names for a place: a global one, then the shorter range, then the first one. */
static void rundown_symbols(struct rundown *rundown)
{
	struct object_symbol symbol;
	int got;

	while ((got = object_symbols_next(rundown->symbols, &symbol)) == 1) {
		for (size_t i = rundown_hit(rundown, symbol.begin);
			i < rundown->last && rundown->hits[i] - symbol.begin < symbol.size; i++) {
			struct rundown_find *find = &rundown->finds[i];
			if (!find->size || symbol.begin > find->begin ||
				(symbol.begin == find->begin && symbol.rank < find->rank))
				*find = (struct rundown_find){ .begin = symbol.begin,
					.size = symbol.size,
					.name = symbol.name,
					.rank = symbol.rank };
		}
	}
	if (got == 0)
		rundown->phase = RUNDOWN_WRITE;
}

/* Writes the function of the next sampled address. */
static int rundown_function(struct rundown *rundown, struct session *session)
{
	const struct object *object = &rundown->objects[rundown->object];
	const struct rundown_find *find = &rundown->finds[rundown->next];
	uint64_t hit = rundown->hits[rundown->next], begin, end;
	char name[OBJECT_NAME_MAX];

	if (!rundown->module_written) {
		rundown->module_written = true;
		return rundown_module(rundown, session, object->begin, object->path);
	}
	rundown->next++;
	if (find->size && rundown->symbols &&
		object_symbol_name(rundown->symbols, find->name, name)) {
		uint64_t size = find->size;
		begin = find->begin;
		char *readable = object_demangle(name);
		while (rundown->next < rundown->last &&
			rundown->hits[rundown->next] - begin < size &&
			rundown->finds[rundown->next].begin == begin)
			rundown->next++;
		method_payload(&rundown->payload, begin, object->begin, begin, size,
			readable ? readable : name, "");
		free(readable);
	} else if (rundown->symbols &&
		   object_function_bounds(rundown->symbols, hit, &begin, &end)) {
		/* One name for the function, which a symbol does not cover. */
		while (rundown->next < rundown->last && rundown->hits[rundown->next] < end &&
			!rundown->finds[rundown->next].size)
			rundown->next++;
		(void)snprintf(name, sizeof(name), "sub_%llx",
			(unsigned long long)(begin - object->base));
		method_payload(&rundown->payload, begin, object->begin, begin, end - begin, name,
			"");
	} else {
		(void)snprintf(name, sizeof(name), "+0x%llx",
			(unsigned long long)(hit - object->base));
		method_payload(&rundown->payload, hit, object->begin, hit, 1, name, "");
	}
	return rundown_emit(rundown, session, &rundown_event_method);
}

/*
 * Writes the next piece of generated code. All of it is written, sampled or not, because programs
 * announce few pieces.
 */
static int rundown_generated(struct rundown *rundown, struct session *session)
{
	struct announced_code range;
	int found = code_after(rundown->code_address, &range);

	if (found <= 0) {
		rundown->phase = RUNDOWN_END;
		return found;
	}
	/*
	 * Module ids below all objects, whose ids are addresses. The module event precedes its
	 * first method.
	 */
	uint64_t module = 1;
	for (const char *c = range.module; *c; c++)
		module = (module ^ (uint8_t)*c) * 1099511628211u;
	module |= 1;
	if (rundown->code_module != (uint32_t)module) {
		rundown->code_module = (uint32_t)module;
		found = rundown_module(rundown, session, module, range.module);
	} else {
		rundown->code_address = range.begin + range.size;
		method_payload(&rundown->payload, range.id, module, range.begin, range.size,
			range.name, range.signature);
		found = rundown_emit(rundown, session, &rundown_event_method);
	}
	code_range_done(&range);
	return found;
}

static int rundown_end(struct rundown *rundown, struct session *session)
{
	rundown->phase = RUNDOWN_DONE;
	payload_u16(&rundown->payload, 0);
	return rundown_emit(rundown, session, &rundown_event_end);
}

int rundown_step(struct rundown *rundown, struct session *session)
{
	int error = 0;

	if (rundown->pending) {
		error = rundown_emit(rundown, session, rundown->pending);
		if (error == -ENOBUFS)
			return 1;
	}
	for (unsigned i = 0; i < RUNDOWN_EVENTS_A_STEP && error >= 0; i++) {
		switch (rundown->phase) {
		case RUNDOWN_BEGIN:
			error = rundown_begin(rundown, session);
			if (!error && !rundown->pending) {
				payload_u16(&rundown->payload, 0);
				error = rundown_emit(rundown, session, &rundown_event_begin);
			}
			break;
		case RUNDOWN_OBJECTS:
			rundown_next_object(rundown);
			break;
		case RUNDOWN_SYMBOLS:
			/* One part of a file in each step. */
			rundown_symbols(rundown);
			if (rundown->phase == RUNDOWN_SYMBOLS)
				return 1;
			break;
		case RUNDOWN_WRITE:
			error = rundown_function(rundown, session);
			if (rundown->next == rundown->last) {
				rundown->object++;
				rundown->phase = RUNDOWN_OBJECTS;
			}
			break;
		case RUNDOWN_GENERATED:
			error = rundown_generated(rundown, session);
			break;
		case RUNDOWN_END:
			error = rundown_end(rundown, session);
			break;
		case RUNDOWN_DONE:
			return 0;
		}
	}
	return error == -ENOBUFS || error >= 0 ? 1 : error;
}
