/*
 * Parts of C that several outputs write: parameters, structs, and the two layouts of a payload.
 *
 * A template becomes one list of parameters, in the order of its fields; all outputs have the same
 * one. The count of an array is a separate parameter, as in the manifest. Texts are UTF-8.
 */
#ifndef SPOOR_GEN_C_CODE_H
#define SPOOR_GEN_C_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/strtab.h"
#include "gen/manifest.h"

enum c_layout {
	/* every field says how long it is, so that any reader can read the payload by its description */
	C_LAYOUT_SPOOR,
	/* EventHeader's: as libspoor's, but a text has no zero, and a GUID is big-endian */
	C_LAYOUT_EVENT_HEADER,
	/* as ETW and EventPipe have it: a reader must know the manifest */
	C_LAYOUT_ETW,
};

/* Names that are taken, in one file. */
struct c_names {
	struct strtab taken;
};

/*
 * Writes `name` with each character that is none of an identifier as '_', in upper case; with a
 * number after it if the file has that name already.
 */
void c_add_constant(struct bytes *out, struct c_names *names, const char *name);

/* A literal with its quotes. */
void c_add_literal(struct bytes *out, const char *text);

/* The text of a comment: without an end of comment, on one line. */
void c_add_comment_text(struct bytes *out, const char *text);

/* The name in `struct NAME` for a field that is a struct. */
void c_add_struct_name(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field);

/*
 * "uint32_t Count, const char *Name"; nothing without fields. `before` comes in front if there is one.
 */
void c_add_parameters(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const char *before);

/* "Count, Name" */
void c_add_arguments(struct bytes *out, const struct man_template *tmpl, const char *before);

/*
 * The head of the function that fires this event for an output: "void PREFIX_OUTPUT_SYMBOLending(...)".
 */
void c_add_function(struct bytes *out, const struct man_provider *p, const struct man_event *event,
	const char *output, const char *ending);

/* That function with its body: if PREFIX_OUTPUT_SYMBOL_enabled(), PREFIX_OUTPUT_SYMBOL_write_(...). */
void c_add_fire(struct bytes *out, const struct man_provider *p, const struct man_event *event,
	const char *output);

/* The declarations of the structs of all templates; the same in each header, once in a program. */
void c_add_structs(struct bytes *out, const struct man_provider *p);

/* Static functions that measure and write the structs of this template. */
void c_add_struct_writers(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, enum c_layout layout);

/* "sizeof(Count) + ...": the expression of the payload's size. */
void c_add_size(struct bytes *out, const struct man_provider *p, const struct man_template *tmpl,
	enum c_layout layout);

/* Statements that write the payload at `spoor_at_`, no further than `spoor_end_`. */
void c_add_puts(struct bytes *out, const struct man_provider *p, const struct man_template *tmpl,
	enum c_layout layout);

/*
 * Statements that write the payload into `spoor_bytes_`, of `spoor_size_` bytes. `declarations`
 * follow those of these. Statements that pass the payload on come between the two calls.
 */
void c_add_payload_begin(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, enum c_layout layout, const char *declarations);
void c_add_payload_end(struct bytes *out);

/* Macros and enums for keywords, tasks, opcodes and maps. */
void c_add_constants(struct bytes *out, const struct man_provider *p, struct c_names *names);

/* A template that LTTng's tracepoints get as one blob: the rule of the .NET runtime. */
bool c_is_packed(const struct man_template *tmpl);

#endif
