/*
 * Events of Linux's user_events for each provider, in EventHeader format: a header with functions
 * that fire, inline, and a source file with the descriptions of the events. Events of one level and
 * keywords share a tracepoint, which the kernel enables by a bit in one word.
 */
#include "gen/gen.h"

#include <spoor/user_events.h>
#include <string.h>

#include "base/map.h"
#include "gen/c_code.h"

/* ---- Tracepoints ---- */

static bool is_same_tracepoint(const struct man_event *a, const struct man_event *b)
{
	return spoor_user_events_level(a->level) == spoor_user_events_level(b->level) &&
	       a->keywords == b->keywords;
}

struct tracepoints {
	VEC(uint32_t) first;     /* the first event of each */
	VEC(uint32_t) of_events; /* the tracepoint of each event */
};

static bool tracepoints_find(struct tracepoints *tracepoints, const struct man_provider *p)
{
	struct map numbers = { 0 };
	bool ok = true;

	for (uint32_t i = 0; ok && i < p->events.count; i++) {
		const struct man_event *event = &p->events.items[i];
		uint64_t key = hash_u64(event->keywords) ^ spoor_user_events_level(event->level);
		uint32_t number = tracepoints->first.count;
		for (struct map_walk w = map_find(&numbers, key); w.value; map_next(&w))
			if (is_same_tracepoint(
				    &p->events.items[tracepoints->first.items[w.value - 1]], event))
				number = w.value - 1;
		if (number == tracepoints->first.count)
			ok = vec_add(&tracepoints->first, i) && map_add(&numbers, key, number + 1);
		ok = ok && vec_add(&tracepoints->of_events, number);
	}
	map_done(&numbers);
	return ok;
}

/* ---- Descriptions ---- */

static void add_byte(struct bytes *out, unsigned byte)
{
	bytes_printf(out, "\\%03o", byte);
}

/* The text of a literal, without its quotes. A ';' in a name would begin an attribute. */
static void add_name(struct bytes *out, const char *name)
{
	for (; *name; name++) {
		unsigned char c = *name == ';' ? '_' : (unsigned char)*name;
		if (c == '"' || c == '\\' || c == '?' || c < 0x20 || c >= 0x7f)
			add_byte(out, c);
		else
			bytes_u8(out, c);
	}
	add_byte(out, 0);
}

struct form {
	unsigned encoding;
	unsigned format;
};

/* What a field's outType says of a number. */
static unsigned format_of(const struct man_field *field, unsigned otherwise)
{
	static const struct {
		const char *out_type;
		uint32_t size; /* 0: any */
		unsigned format;
	} formats[] = {
		{ "win:HexInt8", 0, SPOOR_FORMAT_HEX },
		{ "win:HexInt16", 0, SPOOR_FORMAT_HEX },
		{ "win:HexInt32", 0, SPOOR_FORMAT_HEX },
		{ "win:HexInt64", 0, SPOOR_FORMAT_HEX },
		{ "win:PID", 4, SPOOR_FORMAT_PID },
		{ "win:TID", 4, SPOOR_FORMAT_PID },
		{ "win:Port", 2, SPOOR_FORMAT_PORT },
		{ "win:IPv4", 4, SPOOR_FORMAT_IPV4 },
	};

	if (field->type == IN_HEX_INT32 || field->type == IN_HEX_INT64)
		return SPOOR_FORMAT_HEX;
	for (size_t i = 0; field->out_type && i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(field->out_type, formats[i].out_type) == 0 &&
			(!formats[i].size || formats[i].size == in_types[field->type].size))
			return formats[i].format;
	return otherwise;
}

static unsigned text_format_of(const struct man_field *field)
{
	if (field->out_type && strcmp(field->out_type, "win:Xml") == 0)
		return SPOOR_FORMAT_XML;
	if (field->out_type && strcmp(field->out_type, "win:Json") == 0)
		return SPOOR_FORMAT_JSON;
	return SPOOR_FORMAT_TEXT;
}

static unsigned value_of_size(uint32_t size)
{
	return size == 1   ? SPOOR_ENCODING_VALUE8
	       : size == 2 ? SPOOR_ENCODING_VALUE16
	       : size == 4 ? SPOOR_ENCODING_VALUE32
			   : SPOOR_ENCODING_VALUE64;
}

static struct form form_of(const struct man_field *field)
{
	const struct in_type_facts *type = &in_types[field->type];
	const unsigned value = value_of_size(type->size);

	switch (type->kind) {
	case KIND_STRUCT:
		return (struct form){ SPOOR_ENCODING_STRUCT, field->member_count };
	case KIND_INTEGER:
		return (struct form){ value,
			format_of(field, type->element[0] == 'i' ? SPOOR_FORMAT_SIGNED
								 : SPOOR_FORMAT_DEFAULT) };
	case KIND_FLOATING:
		return (struct form){ value, SPOOR_FORMAT_FLOAT };
	case KIND_BOOLEAN:
		return (struct form){ value, SPOOR_FORMAT_BOOLEAN };
	case KIND_POINTER:
		return (struct form){ value, SPOOR_FORMAT_HEX };
	case KIND_GUID:
		return (struct form){ SPOOR_ENCODING_VALUE128, SPOOR_FORMAT_UUID };
	case KIND_SYSTEMTIME:
		return (struct form){ SPOOR_ENCODING_STRUCT, 8 };
	case KIND_TEXT16:
	case KIND_TEXT8:
		return (struct form){ SPOOR_ENCODING_COUNTED_BYTES, text_format_of(field) };
	case KIND_SID:
	case KIND_BINARY:
		return (struct form){ SPOOR_ENCODING_COUNTED_BYTES, SPOOR_FORMAT_BYTES };
	case KIND_TIME:
	default:
		return (struct form){ value, SPOOR_FORMAT_DEFAULT };
	}
}

static void add_form(struct bytes *out, unsigned encoding, unsigned format)
{
	add_byte(out, encoding | (format ? SPOOR_ENCODING_FORMAT : 0u));
	if (format)
		add_byte(out, format);
}

/* "Name\000\204\007" */
static void add_field(struct bytes *out, const struct man_field *field)
{
	static const char *const parts[] = { "Year", "Month", "DayOfWeek", "Day", "Hour", "Minute",
		"Second", "Milliseconds" };
	const enum in_kind kind = in_types[field->type].kind;
	const struct form form = form_of(field);
	/* An array of binary values is one value. */
	const bool array = field->count.kind && kind != KIND_BINARY;

	bytes_text(out, "\n\t\"");
	add_name(out, field->name);
	add_form(out, form.encoding | (array ? SPOOR_ENCODING_ARRAY : 0u), form.format);
	bytes_text(out, "\"");
	if (kind != KIND_SYSTEMTIME)
		return;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		bytes_text(out, " \"");
		add_name(out, parts[i]);
		add_form(out, SPOOR_ENCODING_VALUE16, SPOOR_FORMAT_DEFAULT);
		bytes_text(out, "\"");
	}
}

/* The description of an event: its name and its fields. */
static void add_description(struct bytes *out, const struct man_event *event,
	const struct man_template *tmpl)
{
	bytes_printf(out, "\nstatic const char %s_description_[] =\n\t\"", event->symbol);
	add_name(out, event->symbol);
	bytes_text(out, "\"");
	if (tmpl)
		vec_each(field, &tmpl->fields)
			add_field(out, field);
	bytes_text(out, ";\n");
}

/* ---- The files ---- */

static void write_header(const struct manifest *manifest, const struct man_provider *p,
	const struct tracepoints *tracepoints, struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out,
		"#ifndef %s_user_events_h_\n#define %s_user_events_h_\n\n"
		"#include <spoor/user_events.h>\n\n"
		"#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
		"/*\n"
		" * Registers the tracepoints; 0 or a negative errno: -ENOENT where the kernel has no user_events,\n"
		" * -EACCES without rights. Before it and after the end all events are off. Not while another\n"
		" * thread fires.\n"
		" */\n"
		"int %s_user_events_register(void) SPOOR_HIDDEN;\n"
		"void %s_user_events_unregister(void) SPOOR_HIDDEN;\n\n"
		"/* Of the calling thread: the activity that its events carry, or NULL. */\n"
		"extern __thread const struct spoor_guid *%s_user_events_activity SPOOR_HIDDEN;\n\n"
		"/* Of each tracepoint: whether a tool enables it. Set by the kernel. */\n"
		"extern uint32_t %s_user_events_on_[%u] SPOOR_HIDDEN;\n",
		p->prefix, p->prefix, p->prefix, p->prefix, p->prefix, p->prefix,
		tracepoints->first.count);
	c_add_structs(out, p);
	for (uint32_t i = 0; i < p->events.count; i++) {
		const struct man_event *event = &p->events.items[i];
		bytes_text(out, "\n");
		c_add_function(out, p, event, "user_events", "_write_");
		bytes_printf(out,
			" SPOOR_HIDDEN;\n"
			"static inline bool %s_user_events_%s_enabled(void)\n{\n"
			"\treturn spoor_user_events_enabled(&%s_user_events_on_[%u]);\n}\n"
			"static inline ",
			p->prefix, event->symbol, p->prefix, tracepoints->of_events.items[i]);
		c_add_fire(out, p, event, "user_events");
	}
	bytes_text(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

static void add_writer(struct bytes *out, const struct man_provider *p,
	const struct tracepoints *tracepoints, uint32_t index)
{
	const struct man_event *event = &p->events.items[index];
	const struct man_template *tmpl = manifest_template(p, event);
	const uint32_t tracepoint = tracepoints->of_events.items[index];

	add_description(out, event, tmpl);
	bytes_text(out, "\n");
	c_add_function(out, p, event, "user_events", "_write_");
	bytes_printf(out,
		"\n{\n\tstatic const uint8_t spoor_head_[] = { SPOOR_EVENT_HEADER_FLAGS, %u, %u, %u, 0, 0, %u, %u };\n",
		event->version, event->id & 0xffu, (unsigned)event->id >> 8, event->opcode,
		spoor_user_events_level(event->level));
	if (!tmpl || !tmpl->fields.count) {
		bytes_printf(out,
			"\n\twrite_(%uu, spoor_head_, %s_description_, sizeof(%s_description_) - 1, NULL, 0);\n}\n",
			tracepoint, event->symbol, event->symbol);
		return;
	}
	c_add_payload_begin(out, p, tmpl, C_LAYOUT_EVENT_HEADER, "");
	bytes_printf(out,
		"\t\twrite_(%uu, spoor_head_, %s_description_, sizeof(%s_description_) - 1, spoor_bytes_, spoor_size_);\n",
		tracepoint, event->symbol, event->symbol);
	c_add_payload_end(out);
	bytes_text(out, "}\n");
}

static void add_registration(struct bytes *out, const struct man_provider *p,
	const struct tracepoints *tracepoints)
{
	bytes_printf(out,
		"__thread const struct spoor_guid *%s_user_events_activity;\n"
		"uint32_t %s_user_events_on_[%u];\n"
		"static uint32_t indexes_[%u];\n"
		"static int fd_ = -1;\n\n"
		"static const char *const names_[] = {\n",
		p->prefix, p->prefix, tracepoints->first.count, tracepoints->first.count);
	vec_each(first, &tracepoints->first) {
		const struct man_event *event = &p->events.items[*first];
		bytes_printf(out, "\t\"%s_L%xK%llx\",\n", p->short_name,
			spoor_user_events_level(event->level), (unsigned long long)event->keywords);
	}
	bytes_printf(out,
		"};\n\n"
		"void %s_user_events_unregister(void)\n"
		"{\n"
		"\tif (fd_ < 0)\n"
		"\t\treturn;\n"
		"\tfor (size_t i = 0; i < sizeof(names_) / sizeof(names_[0]); i++)\n"
		"\t\tspoor_user_events_unregister(fd_, &%s_user_events_on_[i]);\n"
		"\t(void)close(fd_);\n"
		"\tfd_ = -1;\n"
		"}\n\n"
		"int %s_user_events_register(void)\n"
		"{\n"
		"\tint r = 0;\n\n"
		"\tif (fd_ >= 0)\n"
		"\t\treturn 0;\n"
		"\tfd_ = spoor_user_events_open();\n"
		"\tif (fd_ < 0)\n"
		"\t\treturn fd_;\n"
		"\tfor (size_t i = 0; r == 0 && i < sizeof(names_) / sizeof(names_[0]); i++)\n"
		"\t\tr = spoor_user_events_register(fd_, names_[i], &%s_user_events_on_[i], &indexes_[i]);\n"
		"\tif (r)\n"
		"\t\t%s_user_events_unregister();\n"
		"\treturn r;\n"
		"}\n\n"
		"static void write_(uint32_t tracepoint, const uint8_t *header, const char *description, size_t description_size,\n"
		"\tconst uint8_t *payload, size_t payload_size)\n"
		"{\n"
		"\t(void)spoor_user_events_write(fd_, indexes_[tracepoint], header, description, description_size,\n"
		"\t\t%s_user_events_activity, NULL, payload, payload_size);\n"
		"}\n",
		p->prefix, p->prefix, p->prefix, p->prefix, p->prefix, p->prefix);
}

static void write_source(const struct manifest *manifest, const struct man_provider *p,
	const struct tracepoints *tracepoints, struct bytes *out)
{
	gen_add_head(out, manifest);
	bytes_printf(out, "#include \"%s_user_events.h\"\n\n#include <stdlib.h>\n\n", p->prefix);
	add_registration(out, p, tracepoints);
	vec_each(tmpl, &p->templates)
		if (tmpl->fields.count && manifest_template_is_used(p, tmpl))
			c_add_struct_writers(out, p, tmpl, C_LAYOUT_EVENT_HEADER);
	for (uint32_t i = 0; i < p->events.count; i++)
		add_writer(out, p, tracepoints, i);
}

void gen_write_user_events(const struct manifest *manifest, const struct man_provider *p,
	struct gen_files *files)
{
	struct tracepoints tracepoints = { 0 };

	if (!p->events.count)
		return;
	files->failed |= !tracepoints_find(&tracepoints, p);
	struct bytes *out = files->failed ? NULL : gen_file_add(files, p->prefix, "_user_events.h");
	if (out)
		write_header(manifest, p, &tracepoints, out);
	out = files->failed ? NULL : gen_file_add(files, p->prefix, "_user_events.c");
	if (out)
		write_source(manifest, p, &tracepoints, out);
	vec_done(&tracepoints.first);
	vec_done(&tracepoints.of_events);
}
