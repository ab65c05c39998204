/*
 * Events of libspoor, as a header and a source file for each provider. The header has the functions
 * that fire, inline, with the same test as a hand-written event; the source file describes the events
 * and writes payloads, one function for each template.
 *
 * The events of the .NET runtime are known to readers by number, with ETW's layout: a template that
 * libspoor's fields cannot describe in that layout is written as bytes. All others describe
 * themselves, and arrays have their own count.
 *
 * If the provider has an event with a stack, it follows each event that wants one (stack_walks.h).
 */
#include "gen/gen.h"

#include <ctype.h>
#include <string.h>

#include "gen/c_code.h"
#include "gen/stack_walks.h"

/* libspoor's levels end there; a provider's own levels are above. */
#define LEVEL_MAX 5u

/* Whether libspoor's own layout is the one that readers of well-known events expect. */
static bool layouts_agree(const struct man_template *tmpl)
{
	vec_each(field, &tmpl->fields) {
		enum in_kind kind = in_types[field->type].kind;
		if (field->count.kind || field->length.kind || kind == KIND_STRUCT ||
			kind == KIND_TEXT8 || kind == KIND_SID || kind == KIND_BINARY)
			return false;
	}
	return true;
}

static enum c_layout layout_of(const struct man_provider *p, const struct man_template *tmpl)
{
	return p->well_known && !layouts_agree(tmpl) ? C_LAYOUT_ETW : C_LAYOUT_SPOOR;
}

/* ---- The header ---- */

static void add_guard(struct bytes *out, const struct man_provider *p)
{
	for (const char *at = p->prefix; *at; at++)
		bytes_u8(out, (uint8_t)toupper((unsigned char)*at));
	bytes_text(out, "_SPOOR_EVENTS_H");
}

static void add_event(struct bytes *out, const struct man_provider *p,
	const struct man_event *event)
{
	const struct man_template *tmpl = manifest_template(p, event);
	struct bytes self = { 0 };

	bytes_printf(out, "\n/* %s, id %u, version %u", event->symbol, event->id, event->version);
	if (event->message && event->message[0]) {
		bytes_text(out, ": ");
		c_add_comment_text(out, event->message);
	}
	bytes_printf(out,
		" */\n"
		"extern struct spoor_event %s_%s_event SPOOR_HIDDEN;\n"
		"static inline bool %s_%s_enabled(void)\n"
		"{\n"
		"\treturn spoor_event_enabled(&%s_%s_event);\n"
		"}\n"
		"static inline void %s_%s(",
		p->prefix, event->symbol, p->prefix, event->symbol, p->prefix, event->symbol,
		p->prefix, event->symbol);
	if (tmpl)
		c_add_parameters(out, p, tmpl, NULL);
	else
		bytes_text(out, "void");
	const bool walks = stack_walk_is_wanted(p, event);
	bytes_printf(out, ")\n{\n\tif (%s_%s_enabled())%s\n\t\t", p->prefix, event->symbol,
		walks ? " {" : "");
	bytes_printf(&self, "&%s_%s_event", p->prefix, event->symbol);
	if (tmpl) {
		bytes_printf(out, "%s_%s_write_(", p->prefix, tmpl->c_name);
		c_add_arguments(out, tmpl, bytes_z(&self));
		bytes_text(out, ");\n");
	} else {
		bytes_printf(out, "spoor_fire(%s, NULL, 0);\n", bytes_z(&self));
	}
	if (walks) {
		stack_walk_add_call(out, p, event);
		bytes_text(out, "\t}\n");
	}
	bytes_text(out, "}\n");
	out->failed |= self.failed;
	bytes_done(&self);
}

static void add_writer_head(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl)
{
	bytes_printf(out, "void %s_%s_write_(", p->prefix, tmpl->c_name);
	c_add_parameters(out, p, tmpl, "struct spoor_event *event_");
	bytes_text(out, ")");
}

static void write_header(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	struct c_names names = { 0 };
	char guid[GEN_GUID_ROOM];

	gen_add_head(out, manifest);
	bytes_text(out, "#ifndef ");
	add_guard(out, p);
	bytes_text(out, "\n#define ");
	add_guard(out, p);
	bytes_text(out,
		"\n\n#include <spoor/generated.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* ");
	c_add_comment_text(out, p->name);
	bytes_printf(out,
		", %s: spoor_provider_register(&%s) registers its events. */\n"
		"extern struct spoor_provider %s SPOOR_HIDDEN;\n",
		gen_put_guid(guid, p->guid), p->prefix, p->prefix);
	c_add_constants(out, p, &names);
	strtab_done(&names.taken);
	c_add_structs(out, p);
	bytes_text(out, "\n");
	vec_each(tmpl, &p->templates) {
		if (!manifest_template_is_used(p, tmpl) || !tmpl->fields.count)
			continue;
		add_writer_head(out, p, tmpl);
		bytes_text(out, " SPOOR_HIDDEN;\n");
	}
	stack_walk_add_function(out, p);
	vec_each(event, &p->events)
		add_event(out, p, event);
	bytes_text(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

/* ---- The source file ---- */

static void add_field(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field)
{
	const struct in_type_facts *type = &in_types[field->type];
	bool array = field->count.kind || type->kind == KIND_BINARY || type->kind == KIND_SID;

	bytes_text(out, "\t{ ");
	c_add_literal(out, field->name);
	bytes_printf(out, ", SPOOR_TYPE_%s%s, ", type->kind == KIND_STRUCT ? "STRUCT" : type->type,
		array ? " | SPOOR_TYPE_ARRAY" : "");
	if (type->kind == KIND_STRUCT) {
		bytes_printf(out, "%u, ", field->member_count);
		c_add_struct_name(out, p, tmpl, field);
		bytes_text(out, "_fields_ },\n");
	} else if (type->kind == KIND_SYSTEMTIME) {
		bytes_text(out, "8, systemtime_fields_ },\n");
	} else {
		bytes_text(out, "0, NULL },\n");
	}
}

static void add_fields(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl)
{
	vec_each(field, &tmpl->fields) {
		if (field->type != IN_NONE)
			continue;
		bytes_text(out, "\nstatic const struct spoor_field ");
		c_add_struct_name(out, p, tmpl, field);
		bytes_text(out, "_fields_[] = {\n");
		for (uint32_t i = 1; i <= field->member_count; i++)
			add_field(out, p, tmpl, &field[i]);
		bytes_text(out, "};\n");
	}
	bytes_printf(out, "\nstatic const struct spoor_field %s_fields_[] = {\n", tmpl->c_name);
	vec_each(field, &tmpl->fields)
		if (field->parent == MANIFEST_NONE)
			add_field(out, p, tmpl, field);
	bytes_text(out, "};\n");
}

static bool any_of_type(const struct man_provider *p, enum in_type type)
{
	vec_each(tmpl, &p->templates)
		vec_each(field, &tmpl->fields)
			if (field->type == type)
				return true;
	return false;
}

static uint32_t parameter_count(const struct man_template *tmpl)
{
	uint32_t count = 0;

	vec_each(field, &tmpl->fields)
		count += field->parent == MANIFEST_NONE;
	return count;
}

static void add_writer(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl)
{
	enum c_layout layout = layout_of(p, tmpl);

	c_add_struct_writers(out, p, tmpl, layout);
	bytes_text(out, "\n");
	add_writer_head(out, p, tmpl);
	bytes_text(out, "\n{\n\tconst size_t spoor_size_ = ");
	c_add_size(out, p, tmpl, layout);
	bytes_text(out,
		";\n"
		"\tconst struct spoor_slot spoor_slot_ = spoor_fire_begin(event_, spoor_size_);\n"
		"\tuint8_t *spoor_at_ = spoor_slot_.at;\n\n"
		"\tif (spoor_at_) {\n"
		"\t\tconst uint8_t *const spoor_end_ = spoor_at_ + spoor_size_;\n");
	c_add_puts(out, p, tmpl, layout);
	bytes_text(out, "\t\tspoor_generated_end(spoor_at_, spoor_end_);\n"
			"\t\tspoor_fire_end(spoor_slot_);\n"
			"\t}\n}\n");
}

static void add_event_object(struct bytes *out, const struct man_provider *p,
	const struct man_event *event)
{
	const struct man_template *tmpl = manifest_template(p, event);

	bytes_printf(out,
		"\nstruct spoor_event %s_%s_event = {\n"
		"\t.size = sizeof(struct spoor_event),\n"
		"\t.provider = &%s,\n"
		"\t.name = \"%s\",\n"
		"\t.keywords = UINT64_C(0x%llx),\n",
		p->prefix, event->symbol, p->prefix, event->symbol,
		(unsigned long long)event->keywords);
	if (tmpl && layout_of(p, tmpl) == C_LAYOUT_SPOOR)
		bytes_printf(out, "\t.fields = %s_fields_,\n\t.field_count = %u,\n", tmpl->c_name,
			parameter_count(tmpl));
	bytes_printf(out, "\t.id = %u,\n\t.version = %u,\n\t.level = %u,\n\t.opcode = %u,\n%s};\n",
		event->id, event->version, event->level > LEVEL_MAX ? LEVEL_MAX : event->level,
		event->opcode, p->well_known ? "\t.flags = SPOOR_EVENT_WELL_KNOWN,\n" : "");
}

static void write_source(const struct manifest *manifest, const struct man_provider *p,
	struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out, "#include \"%s.h\"\n", p->prefix);
	if (any_of_type(p, IN_SYSTEMTIME))
		bytes_text(out,
			"\n__attribute__((unused)) static const struct spoor_field systemtime_fields_[] = {\n"
			"\t{ \"Year\", SPOOR_TYPE_U16, 0, NULL },\n"
			"\t{ \"Month\", SPOOR_TYPE_U16, 0, NULL },\n"
			"\t{ \"DayOfWeek\", SPOOR_TYPE_U16, 0, NULL },\n"
			"\t{ \"Day\", SPOOR_TYPE_U16, 0, NULL },\n"
			"\t{ \"Hour\", SPOOR_TYPE_U16, 0, NULL },\n"
			"\t{ \"Minute\", SPOOR_TYPE_U16, 0, NULL },\n"
			"\t{ \"Second\", SPOOR_TYPE_U16, 0, NULL },\n"
			"\t{ \"Milliseconds\", SPOOR_TYPE_U16, 0, NULL },\n"
			"};\n");
	vec_each(tmpl, &p->templates)
		if (tmpl->fields.count && layout_of(p, tmpl) == C_LAYOUT_SPOOR &&
			manifest_template_is_used(p, tmpl))
			add_fields(out, p, tmpl);
	vec_each(event, &p->events)
		add_event_object(out, p, event);
	vec_each(tmpl, &p->templates)
		if (tmpl->fields.count && manifest_template_is_used(p, tmpl))
			add_writer(out, p, tmpl);
	if (p->events.count) {
		bytes_text(out, "\nstatic struct spoor_event *const all_events_[] = {\n");
		vec_each(event, &p->events)
			bytes_printf(out, "\t&%s_%s_event,\n", p->prefix, event->symbol);
		bytes_text(out, "};\n");
	}
	bytes_printf(out,
		"\nstruct spoor_provider %s = {\n\t.size = sizeof(struct spoor_provider),\n\t.name = ",
		p->prefix);
	c_add_literal(out, p->name);
	bytes_text(out, ",\n");
	if (p->events.count)
		bytes_printf(out, "\t.events = all_events_,\n\t.events_end = all_events_ + %u,\n",
			p->events.count);
	bytes_text(out, "};\n");
}

void gen_write_libspoor(const struct manifest *manifest, const struct man_provider *p,
	struct gen_files *files)
{
	struct bytes *out = gen_file_add(files, p->prefix, ".h");

	if (out)
		write_header(manifest, p, out);
	out = gen_file_add(files, p->prefix, ".c");
	if (out)
		write_source(manifest, p, out);
}
