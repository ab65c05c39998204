/*
 * Tracepoints of LTTng-UST for each provider: a header with the tracepoints, a header with functions
 * that fire them, and a source file that makes the program the tracepoints' provider. Names are those
 * of the .NET runtime's tracepoints, so what reads its traces reads these: SHORT-NAME:SYMBOL.
 *
 * LTTng takes ten arguments and no arrays of structs or texts. Such a template is packed: the
 * tracepoint has one blob in ETW's layout, and its length. The macros are those of LTTng-UST 2.12,
 * which 2.13 has too.
 */
#include "gen/gen.h"

#include <ctype.h>
#include <string.h>

#include "gen/c_code.h"

/* A blob of up to this many bytes is made on the stack. */

/* What `lttng enable-event --loglevel` compares: events that always pass are the most severe. */
static const char *log_level(uint8_t level)
{
	static const char *const names[] = { "TRACE_EMERG", "TRACE_CRIT", "TRACE_ERR",
		"TRACE_WARNING", "TRACE_INFO", "TRACE_DEBUG" };

	return names[level < 5 ? level : 5];
}

static bool is_hex(const struct man_field *field)
{
	return field->type == IN_HEX_INT32 || field->type == IN_HEX_INT64 ||
	       (field->out_type && strncmp(field->out_type, "win:HexInt", 10) == 0);
}

/* ---- The tracepoints ---- */

/* The type and the name of an argument, separated by a comma. */
static void add_tracepoint_argument(struct bytes *out, const struct man_field *field)
{
	const struct in_type_facts *type = &in_types[field->type];
	bool array = field->count.kind != AMOUNT_ABSENT;
	const char *c_type = "const void *";

	if (type->kind == KIND_TEXT16 || type->kind == KIND_TEXT8)
		c_type = "const char *";
	else if (type->kind == KIND_TIME && !array)
		c_type = "uint64_t";
	else if (type->kind == KIND_BOOLEAN && !array)
		c_type = "int32_t";
	else if ((type->kind == KIND_INTEGER || type->kind == KIND_FLOATING) && !array)
		c_type = type->element;
	bytes_printf(out, "%s, %s", c_type, field->c_name);
}

static void add_tracepoint_arguments(struct bytes *out, const struct man_template *tmpl)
{
	const char *comma = "";

	if (!tmpl) {
		bytes_text(out, "TP_ARGS()");
		return;
	}
	if (c_is_packed(tmpl)) {
		bytes_text(out, "TP_ARGS(uint32_t, length, const char *, __data__)");
		return;
	}
	bytes_text(out, "TP_ARGS(");
	vec_each(field, &tmpl->fields) {
		bytes_text(out, comma);
		add_tracepoint_argument(out, field);
		comma = ", ";
	}
	bytes_text(out, ")");
}

static void add_tracepoint_field(struct bytes *out, const struct man_field *field)
{
	const struct in_type_facts *type = &in_types[field->type];
	const char *name = field->c_name;

	bytes_text(out, "\t\t");
	if (field->count.kind) {
		/* A fixed number, as others are packed. */
		bytes_printf(out, "ctf_sequence(%s, %s, (const %s *)%s, uint32_t, %uu)\n",
			type->element, name, type->element, name, field->count.value);
		return;
	}
	switch (type->kind) {
	case KIND_TEXT16:
	case KIND_TEXT8:
		bytes_printf(out, "ctf_string(%s, %s)\n", name, name);
		break;
	case KIND_FLOATING:
		bytes_printf(out, "ctf_float(%s, %s, %s)\n", type->element, name, name);
		break;
	case KIND_BOOLEAN:
		bytes_printf(out, "ctf_integer(int32_t, %s, %s)\n", name, name);
		break;
	case KIND_POINTER:
		bytes_printf(out, "ctf_integer_hex(size_t, %s, (size_t)%s)\n", name, name);
		break;
	case KIND_TIME:
		bytes_printf(out, "ctf_integer(uint64_t, %s, %s)\n", name, name);
		break;
	case KIND_GUID:
		bytes_printf(out, "ctf_array(uint8_t, %s, (const uint8_t *)%s, 16)\n", name, name);
		break;
	case KIND_SYSTEMTIME:
		bytes_printf(out, "ctf_array(uint16_t, %s, (const uint16_t *)%s, 8)\n", name, name);
		break;
	case KIND_SID:
		bytes_printf(out,
			"ctf_sequence(uint8_t, %s, (const uint8_t *)%s, uint32_t, (uint32_t)spoor_generated_sid_size(%s))\n",
			name, name, name);
		break;
	default:
		bytes_printf(out, "%s(%s, %s, %s)\n",
			is_hex(field) ? "ctf_integer_hex" : "ctf_integer", type->element, name,
			name);
		break;
	}
}

/* The event class of a template; those of all packed and of all empty ones are shared. */
static void add_class_name(struct bytes *out, const struct man_template *tmpl)
{
	if (!tmpl)
		bytes_text(out, "spoor_empty_class");
	else if (c_is_packed(tmpl))
		bytes_text(out, "spoor_packed_class");
	else
		bytes_printf(out, "%s_class", tmpl->c_name);
}

static void add_class(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl)
{
	bytes_printf(out, "\nTRACEPOINT_EVENT_CLASS(%s, ", p->short_name);
	add_class_name(out, tmpl);
	bytes_text(out, ",\n\t");
	add_tracepoint_arguments(out, tmpl);
	bytes_text(out, ",\n\tTP_FIELDS(\n");
	if (tmpl && c_is_packed(tmpl))
		bytes_text(out, "\t\tctf_integer(uint32_t, length, length)\n"
				"\t\tctf_sequence(char, __data__, __data__, uint32_t, length)\n");
	else if (tmpl)
		vec_each(field, &tmpl->fields)
			add_tracepoint_field(out, field);
	bytes_text(out, "\t)\n)\n");
}

static void write_tracepoints(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	bool packed = false;

	gen_add_head(out, manifest);
	bytes_printf(out,
		"#undef TRACEPOINT_PROVIDER\n"
		"#define TRACEPOINT_PROVIDER %s\n\n"
		"#undef TRACEPOINT_INCLUDE\n"
		"#define TRACEPOINT_INCLUDE \"./tp%s.h\"\n\n"
		"#if !defined(tp%s_h_) || defined(TRACEPOINT_HEADER_MULTI_READ)\n"
		"#define tp%s_h_\n\n"
		"#include <spoor/generated.h>\n\n"
		"#include <lttng/tracepoint.h>\n",
		p->short_name, p->prefix, p->prefix, p->prefix);
	if (manifest_template_is_used(p, NULL))
		add_class(out, p, NULL);
	vec_each(tmpl, &p->templates) {
		if (!tmpl->fields.count || !manifest_template_is_used(p, tmpl))
			continue;
		if (!c_is_packed(tmpl) || !packed)
			add_class(out, p, tmpl);
		packed |= c_is_packed(tmpl);
	}
	vec_each(event, &p->events) {
		const struct man_template *tmpl = manifest_template(p, event);
		bytes_printf(out, "\nTRACEPOINT_EVENT_INSTANCE(%s, ", p->short_name);
		add_class_name(out, tmpl);
		bytes_printf(out, ", %s,\n\t", event->symbol);
		add_tracepoint_arguments(out, tmpl);
		bytes_printf(out, ")\nTRACEPOINT_LOGLEVEL(%s, %s, %s)\n", p->short_name,
			event->symbol, log_level(event->level));
	}
	bytes_text(out, "\n#endif\n\n#include <lttng/tracepoint-event.h>\n");
}

/* ---- The functions that fire ---- */

static void write_header(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out,
		"#ifndef %s_lttng_h_\n#define %s_lttng_h_\n\n"
		"#include \"tp%s.h\"\n\n"
		"#ifdef __cplusplus\nextern \"C\" {\n#endif\n",
		p->prefix, p->prefix, p->prefix);
	c_add_structs(out, p);
	vec_each(event, &p->events) {
		bytes_text(out, "\n");
		c_add_function(out, p, event, "lttng", "_write_");
		bytes_printf(out,
			" SPOOR_HIDDEN;\n"
			"static inline bool %s_lttng_%s_enabled(void)\n{\n"
			"\treturn tracepoint_enabled(%s, %s);\n}\n"
			"static inline ",
			p->prefix, event->symbol, p->short_name, event->symbol);
		c_add_fire(out, p, event, "lttng");
	}
	bytes_text(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* What the tracepoint gets for a parameter: LTTng reads what pointers point at, also at NULL. */
static void add_tracepoint_value(struct bytes *out, const struct man_field *field)
{
	const struct in_type_facts *type = &in_types[field->type];
	const char *name = field->c_name;

	if (type->kind == KIND_TEXT16 || type->kind == KIND_TEXT8)
		bytes_printf(out, "%s ? %s : \"\"", name, name);
	else if (field->count.kind)
		bytes_printf(out, "%s ? (const void *)%s : (const void *)(const %s[%u]){ 0 }", name,
			name, type->element, field->count.value);
	else if (type->kind == KIND_GUID || type->kind == KIND_SYSTEMTIME || type->kind == KIND_SID)
		bytes_printf(out, "%s ? (const void *)%s : (const void *)(const uint64_t[2]){ 0 }",
			name, name);
	else if (type->kind == KIND_TIME)
		bytes_printf(out, "spoor_time_of(%s)", name);
	else
		bytes_text(out, name);
}

static void add_unpacked(struct bytes *out, const struct man_provider *p,
	const struct man_event *event, const struct man_template *tmpl)
{
	bytes_printf(out, "\tdo_tracepoint(%s, %s", p->short_name, event->symbol);
	if (tmpl) {
		vec_each(field, &tmpl->fields) {
			bytes_text(out, ", ");
			add_tracepoint_value(out, field);
		}
	}
	bytes_text(out, ");\n");
}

static void add_packed(struct bytes *out, const struct man_provider *p,
	const struct man_event *event, const struct man_template *tmpl)
{
	c_add_payload_begin(out, p, tmpl, C_LAYOUT_ETW, "");
	bytes_printf(out,
		"\t\tdo_tracepoint(%s, %s, (uint32_t)spoor_size_, (const char *)spoor_bytes_);\n",
		p->short_name, event->symbol);
	c_add_payload_end(out);
}

static void write_source(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out,
		"#include <stdlib.h>\n\n"
		"#define TRACEPOINT_CREATE_PROBES\n"
		"#define TRACEPOINT_DEFINE\n"
		"#include \"%s_lttng.h\"\n",
		p->prefix);
	vec_each(tmpl, &p->templates)
		if (tmpl->fields.count && c_is_packed(tmpl) && manifest_template_is_used(p, tmpl))
			c_add_struct_writers(out, p, tmpl, C_LAYOUT_ETW);
	vec_each(event, &p->events) {
		const struct man_template *tmpl = manifest_template(p, event);
		bytes_text(out, "\n");
		c_add_function(out, p, event, "lttng", "_write_");
		bytes_text(out, "\n{\n");
		if (tmpl && c_is_packed(tmpl))
			add_packed(out, p, event, tmpl);
		else
			add_unpacked(out, p, event, tmpl);
		bytes_text(out, "}\n");
	}
}

void gen_write_lttng(const struct manifest *manifest, const struct man_provider *p,
	struct gen_files *files)
{
	struct bytes name = { 0 };

	/* Without an event there is no tracepoint, and LTTng's macros make no empty provider. */
	if (!p->events.count)
		return;
	bytes_printf(&name, "tp%s", p->prefix);
	struct bytes *out = gen_file_add(files, bytes_z(&name), ".h");
	if (out)
		write_tracepoints(manifest, p, out);
	out = gen_file_add(files, p->prefix, "_lttng.h");
	if (out)
		write_header(manifest, p, out);
	out = gen_file_add(files, p->prefix, "_lttng.c");
	if (out)
		write_source(manifest, p, out);
	files->failed |= name.failed;
	bytes_done(&name);
}
