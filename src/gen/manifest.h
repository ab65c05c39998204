/*
 * The model of an ETW manifest (.man): what the event manifests of Windows, of the .NET runtime and
 * of EventSource.GenerateManifest() declare, resolved and checked.
 *
 *   manifest_read(data, size, name, &manifest, &diag);    0, or a sentence with the line
 *   ... writers ...
 *   manifest_done(&manifest);
 *
 * All names are resolved: an event has its mask of keywords, not their names. Everything that two
 * outputs have to agree on is decided here: which events are equal, in which order they come (by
 * id and version), what counts what. All texts live in the arena, and end with a NUL.
 */
#ifndef SPOOR_GEN_MANIFEST_H
#define SPOOR_GEN_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/vec.h"

struct diag;

/* Limits: a manifest that exceeds one is refused. */
#define MANIFEST_BYTES_MAX     (32u << 20)
#define MANIFEST_DEPTH_MAX     24u
#define MANIFEST_NAME_MAX      255u
#define MANIFEST_TEXT_MAX      (64u << 10)
#define MANIFEST_PROVIDERS_MAX 64u
#define MANIFEST_ITEMS_MAX     65536u /* of one kind in a provider */
#define MANIFEST_FIELDS_MAX    128u   /* of a template, with those of its structs */

/* None of a list that is referred to by index. */
#define MANIFEST_NONE UINT32_MAX

enum in_type {
	IN_NONE = 0, /* a struct */
#define IN_TYPE(identifier, name, size, type, element, kind) IN_##identifier,
#include "gen/in_types.def"
	IN_TYPE_COUNT,
};

enum in_kind {
	KIND_STRUCT = 0,
	KIND_INTEGER,
	KIND_FLOATING,
	KIND_BOOLEAN, /* 32 bits, 0 or 1 */
	KIND_POINTER, /* 64 bits */
	KIND_GUID,
	KIND_TIME,       /* 100 ns steps since 1601 */
	KIND_SYSTEMTIME, /* eight 16-bit numbers */
	KIND_SID,        /* 8 bytes and 4 for each part, whose number is in the second byte */
	KIND_TEXT16,     /* UTF-16 in the payload */
	KIND_TEXT8,
	KIND_BINARY,
};

struct in_type_facts {
	const char *name; /* "UInt32" */
	uint32_t size;    /* in ETW's layout; 0: the value says */
	const char *type; /* of libspoor: "U32" */
	const char *element;
	enum in_kind kind;
};

/* Of enum in_type; IN_NONE: a struct. */
extern const struct in_type_facts in_types[IN_TYPE_COUNT];

/* How many there are of something: the attributes `count` and `length`. */
enum amount_kind {
	AMOUNT_ABSENT = 0, /* one value; a text up to its NUL */
	AMOUNT_FIXED,
	AMOUNT_FIELD, /* as many as the integer in an earlier field says */
};

struct amount {
	enum amount_kind kind;
	uint32_t value; /* the number, or the index of the field in its template */
	const char *name;
};

struct man_field {
	const char *name;
	const char *c_name; /* the same as an identifier of C and C++ */
	enum in_type type;
	const char *out_type; /* "win:HexInt32", or NULL */
	const char *map_name; /* or NULL */
	uint32_t map;         /* index, or MANIFEST_NONE */
	struct amount count;
	struct amount length;
	/* of a struct: its fields are the next ones of the template */
	uint32_t member_count;
	uint32_t parent; /* the struct that it is in, or MANIFEST_NONE */
	uint32_t line;
};

struct man_template {
	const char *tid;
	const char *c_name; /* the same as an identifier */
	VEC(struct man_field) fields;
	bool is_used; /* by an event; set with the events */
	uint32_t line;
};

struct man_keyword {
	const char *name;
	const char *symbol; /* or NULL */
	const char *message;
	uint64_t mask;
	uint32_t line;
};

struct man_level {
	const char *name;
	uint8_t value;
	uint32_t line;
};

struct man_task {
	const char *name;
	const char *symbol;
	const char *message;
	uint16_t value;
	uint32_t line;
};

struct man_opcode {
	const char *name;
	const char *symbol;
	const char *message;
	uint8_t value;
	uint32_t task; /* index of the task it belongs to, or MANIFEST_NONE */
	uint32_t line;
};

struct man_map_entry {
	uint32_t value;
	const char *message;
	const char *symbol;
	uint32_t line;
};

struct man_map {
	const char *name;
	const char *c_name; /* the same as an identifier */
	bool bits;
	VEC(struct man_map_entry) entries;
	uint32_t line;
};

struct man_event {
	const char *symbol;
	const char *message; /* or NULL */
	uint64_t keywords;
	uint32_t tmpl; /* index, or MANIFEST_NONE: no payload */
	uint32_t task; /* index, or MANIFEST_NONE */
	uint16_t id;
	uint8_t version;
	uint8_t level;
	uint8_t opcode;
	const char *opcode_name; /* "win:Start", or NULL */
	/* as written, until they are resolved */
	const char *template_name;
	const char *keyword_names;
	const char *level_name;
	const char *task_name;
	bool no_stack; /* wants no stack walk (stack_walks.h) */
	uint32_t line;
};

struct man_provider {
	const char *name;
	const char *symbol; /* or NULL */
	uint8_t guid[16];   /* as .NET writes it: u32, u16, u16 little-endian, 8 bytes */
	/* "Microsoft-Windows-DotNETRuntime" is DotNETRuntime: an identifier */
	const char *short_name;
	/* the same in lower case without '_': of files, and before names in C */
	const char *prefix;
	/* TraceEvent and others know these events by number, and expect ETW's layout */
	bool well_known;
	VEC(struct man_keyword) keywords;
	VEC(struct man_level) levels;
	VEC(struct man_task) tasks;
	VEC(struct man_opcode) opcodes;
	VEC(struct man_map) maps;
	VEC(struct man_template) templates;
	VEC(struct man_event) events; /* by id and version */
	bool has_bare_events;         /* an event without a template */
	uint32_t stack_walk; /* index of the event that stack_walk_of() returns, or MANIFEST_NONE */
	uint32_t line;
};

struct man_string {
	const char *id;
	const char *value;
	uint32_t line;
};

struct manifest {
	const char *name; /* of the file, without folders */
	struct arena arena;
	VEC(struct man_provider) providers;
	VEC(struct man_string) strings;
};

/* `name` is for messages. On failure *ret_manifest is empty. */
int manifest_read(const void *data, size_t size, const char *name, struct manifest *ret_manifest,
	struct diag *diag);

void manifest_done(struct manifest *manifest);

/* Second half of manifest_read(): resolves names and checks what the parts say of each other. */
int manifest_resolve(struct manifest *manifest, const char *name, struct diag *diag);

/* The template of the event, or NULL. */
const struct man_template *manifest_template(const struct man_provider *provider,
	const struct man_event *event);

/* Does an event have this template? NULL: is there an event without one? */
bool manifest_template_is_used(const struct man_provider *provider,
	const struct man_template *tmpl);

/* "GarbageCollection", or "" */
const char *manifest_task_name(const struct man_provider *provider, const struct man_event *event);

/*
 * A C identifier made from any text: other characters become '_', a digit at the front gets one.
 * Copied into the arena; NULL: no memory.
 */
const char *manifest_identifier(struct arena *arena, const char *text);

#endif
