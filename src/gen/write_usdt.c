/*
 * USDT probes for each provider: a header with functions that fire them, a source file with the
 * probes, and the provider in DTrace's language. A probe costs a test of its semaphore while no tracer
 * traces it.
 *
 * Tracers fetch arguments from registers and memory, so the functions that fire are not inline, and
 * pass no constant. Floating numbers go as their bits, since tracers read no such registers. A
 * template with a struct, or more arguments than a probe has, is one blob in ETW's layout and its
 * length.
 *
 * On macOS, and elsewhere with SPOOR_USDT_BY_DTRACE, the probes are the macros that `dtrace -h` makes
 * of the provider: ACMESHOP_ORDERTAKEN() and ACMESHOP_ORDERTAKEN_ENABLED().
 */
#include "gen/gen.h"

#include <ctype.h>
#include <string.h>

#include "gen/c_code.h"

#define PROBE_ARGUMENTS_MAX 12u
/* With more, the compiler may also leave an argument in memory. */
#define REGISTER_ARGUMENTS_MAX 6u

static uint32_t argument_count(const struct man_template *tmpl)
{
	uint32_t count = 0;

	if (tmpl)
		vec_each(field, &tmpl->fields)
			count += field->parent == MANIFEST_NONE;
	return count;
}

static bool is_blob(const struct man_template *tmpl)
{
	if (!tmpl)
		return false;
	vec_each(field, &tmpl->fields)
		if (field->type == IN_NONE)
			return true;
	return argument_count(tmpl) > PROBE_ARGUMENTS_MAX;
}

/* ---- DTrace's file ---- */

static const char *dtrace_type(const struct man_field *field)
{
	const struct in_type_facts *type = &in_types[field->type];

	if (field->count.kind)
		return "uintptr_t";
	switch (type->kind) {
	case KIND_TEXT16:
	case KIND_TEXT8:
		return "char *";
	case KIND_FLOATING:
		return type->size == 4 ? "uint32_t" : "uint64_t";
	case KIND_BOOLEAN:
		return "int32_t";
	case KIND_TIME:
		return "uint64_t";
	case KIND_INTEGER:
		return type->element;
	default:
		return "uintptr_t";
	}
}

static void write_dtrace(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out, "provider %s {\n", p->prefix);
	vec_each(event, &p->events) {
		const struct man_template *tmpl = manifest_template(p, event);
		const char *comma = "";
		bytes_printf(out, "\tprobe %s(", event->symbol);
		if (is_blob(tmpl)) {
			bytes_text(out, "uint32_t, uintptr_t");
		} else if (tmpl) {
			vec_each(field, &tmpl->fields) {
				bytes_printf(out, "%s%s", comma, dtrace_type(field));
				comma = ", ";
			}
		}
		bytes_text(out, ");\n");
	}
	bytes_text(out, "};\n");
}

/* ---- The functions that fire ---- */

static void add_upper(struct bytes *out, const char *name)
{
	for (; *name; name++)
		bytes_u8(out, (uint8_t)toupper((unsigned char)*name));
}

/* "OrderTaken, ORDERTAKEN": the probe, and its name in a macro of `dtrace -h`, which has one '_' for two. */
static void add_probe_names(struct bytes *out, const struct man_event *event)
{
	bytes_printf(out, "%s, ", event->symbol);
	for (const char *at = event->symbol; *at; at++)
		if (at[0] != '_' || at[1] != '_')
			bytes_u8(out, (uint8_t)toupper((unsigned char)*at));
}

/* What a test and a probe are, with semaphores and with the macros of `dtrace -h`. */
static void add_ways(struct bytes *out, const struct man_provider *p)
{
	bytes_printf(out,
		"\n#if defined(__APPLE__) && !defined(SPOOR_USDT_BY_DTRACE)\n"
		"#define SPOOR_USDT_BY_DTRACE 1\n"
		"#endif\n"
		"#ifdef SPOOR_USDT_BY_DTRACE\n"
		"/* Made by: dtrace -h -s %s_usdt.d -o %s_usdt_probes.h */\n"
		"#include \"%s_usdt_probes.h\"\n"
		"#define %s_usdt_test_(probe, name) (",
		p->prefix, p->prefix, p->prefix, p->prefix);
	add_upper(out, p->prefix);
	bytes_printf(out,
		"_##name##_ENABLED() != 0)\n"
		"#else\n"
		"#define %s_usdt_test_(probe, name) (__atomic_load_n(&%s_##probe##_semaphore, __ATOMIC_RELAXED) != 0)\n"
		"/* Tracers count themselves in these. */\n",
		p->prefix, p->prefix);
	vec_each(event, &p->events)
		bytes_printf(out, "extern unsigned short %s_%s_semaphore SPOOR_HIDDEN;\n",
			p->prefix, event->symbol);
	bytes_text(out, "#endif\n");
}

static void write_header(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out,
		"#ifndef %s_usdt_h_\n#define %s_usdt_h_\n\n"
		"#include <spoor/generated.h>\n\n"
		"#ifdef __cplusplus\nextern \"C\" {\n#endif\n",
		p->prefix, p->prefix);
	add_ways(out, p);
	c_add_structs(out, p);
	vec_each(event, &p->events) {
		bytes_text(out, "\n");
		c_add_function(out, p, event, "usdt", "_write_");
		bytes_printf(out,
			" SPOOR_HIDDEN;\n"
			"static inline bool %s_usdt_%s_enabled(void)\n{\n"
			"\treturn __builtin_expect(%s_usdt_test_(",
			p->prefix, event->symbol, p->prefix);
		add_probe_names(out, event);
		bytes_text(out, "), 0);\n}\nstatic inline ");
		c_add_fire(out, p, event, "usdt");
	}
	bytes_text(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* An argument as an integer or a pointer. */
static void add_value(struct bytes *out, const struct man_field *field)
{
	const struct in_type_facts *type = &in_types[field->type];
	const char *name = field->c_name;

	if (field->count.kind)
		bytes_printf(out, "(uintptr_t)%s", name);
	else if (type->kind == KIND_FLOATING)
		bytes_printf(out, "%s_bits_", name);
	else if (type->kind == KIND_BOOLEAN)
		bytes_printf(out, "(int32_t)%s", name);
	else if (type->kind == KIND_TIME)
		bytes_printf(out, "spoor_time_of(%s)", name);
	else if (type->kind == KIND_INTEGER)
		bytes_text(out, name);
	else if (type->kind == KIND_TEXT16 || type->kind == KIND_TEXT8)
		bytes_printf(out, "(char *)(uintptr_t)%s", name);
	else
		bytes_printf(out, "(uintptr_t)%s", name);
}

static void add_probe(struct bytes *out, const struct man_event *event,
	const struct man_template *tmpl)
{
	uint32_t count = argument_count(tmpl);

	if (tmpl) {
		vec_each(field, &tmpl->fields) {
			const struct in_type_facts *type = &in_types[field->type];
			if (type->kind != KIND_FLOATING || field->count.kind)
				continue;
			bytes_printf(out,
				"\tuint%u_t %s_bits_;\n\tmemcpy(&%s_bits_, &%s, sizeof(%s_bits_));\n",
				8 * type->size, field->c_name, field->c_name, field->c_name,
				field->c_name);
		}
	}
	if (count)
		bytes_printf(out, "\tPROBE_(%u, ", count);
	else
		bytes_text(out, "\tPROBE0_(");
	add_probe_names(out, event);
	if (tmpl) {
		vec_each(field, &tmpl->fields) {
			bytes_text(out, ", ");
			add_value(out, field);
		}
	}
	bytes_text(out, ");\n");
}

static void add_blob(struct bytes *out, const struct man_provider *p, const struct man_event *event,
	const struct man_template *tmpl)
{
	c_add_payload_begin(out, p, tmpl, C_LAYOUT_ETW, "");
	bytes_text(out, "\t\tPROBE_(2, ");
	add_probe_names(out, event);
	bytes_text(out, ", (uint32_t)spoor_size_, (uintptr_t)spoor_bytes_);\n");
	c_add_payload_end(out);
}

static void write_source(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	bool in_memory = false;

	gen_add_head(out, manifest);
	bytes_printf(out,
		"#include \"%s_usdt.h\"\n\n"
		"#include <stdlib.h>\n\n"
		"#ifdef SPOOR_USDT_BY_DTRACE\n"
		"#define PROBE0_(probe, name) ",
		p->prefix);
	add_upper(out, p->prefix);
	bytes_text(out, "_##name()\n#define PROBE_(count, probe, name, ...) ");
	add_upper(out, p->prefix);
	bytes_printf(out,
		"_##name(__VA_ARGS__)\n"
		"#else\n"
		"#define PROBE0_(probe, name) DTRACE_PROBE(%s, probe)\n"
		"#define PROBE_(count, probe, name, ...) DTRACE_PROBE##count(%s, probe, __VA_ARGS__)\n"
		"#define _SDT_HAS_SEMAPHORES 1\n"
		"#define STAP_SDT_ARG_CONSTRAINT r\n"
		"#include <sys/sdt.h>\n\n",
		p->prefix, p->prefix);
	vec_each(event, &p->events)
		bytes_printf(out,
			"__attribute__((section(\".probes\"))) unsigned short %s_%s_semaphore;\n",
			p->prefix, event->symbol);
	bytes_text(out, "#endif\n");
	vec_each(tmpl, &p->templates)
		if (tmpl->fields.count && manifest_template_is_used(p, tmpl))
			c_add_struct_writers(out, p, tmpl, C_LAYOUT_ETW);
	vec_each(event, &p->events) {
		const struct man_template *tmpl = manifest_template(p, event);
		bool more = !is_blob(tmpl) && argument_count(tmpl) > REGISTER_ARGUMENTS_MAX;
		if (more != in_memory)
			bytes_printf(out,
				"\n#undef STAP_SDT_ARG_CONSTRAINT\n#define STAP_SDT_ARG_CONSTRAINT %s\n",
				more ? "rm" : "r");
		in_memory = more;
		bytes_text(out, "\n__attribute__((noinline)) ");
		c_add_function(out, p, event, "usdt", "_write_");
		bytes_text(out, "\n{\n");
		if (is_blob(tmpl))
			add_blob(out, p, event, tmpl);
		else
			add_probe(out, event, tmpl);
		bytes_text(out, "}\n");
	}
}

void gen_write_usdt(const struct manifest *manifest, const struct man_provider *p,
	struct gen_files *files)
{
	/* An empty provider is no C and no DTrace. */
	if (!p->events.count)
		return;
	struct bytes *out = gen_file_add(files, p->prefix, "_usdt.d");
	if (out)
		write_dtrace(manifest, p, out);
	out = gen_file_add(files, p->prefix, "_usdt.h");
	if (out)
		write_header(manifest, p, out);
	out = gen_file_add(files, p->prefix, "_usdt.c");
	if (out)
		write_source(manifest, p, out);
}
