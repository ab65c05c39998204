/* See c_code.h. */
#include "gen/c_code.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define SMALL_BYTES 1024u /* larger payloads are written into memory of malloc() */

/* .NET packs above nine parameters, though LTTng takes ten. */
#define TRACEPOINT_PARAMETERS_MAX 9u
#define CONSTANT_MAX              100u

void c_add_constant(struct bytes *out, struct c_names *names, const char *name)
{
	char made[CONSTANT_MAX + 16];
	size_t len = 0;

	for (; name[len] && len < CONSTANT_MAX; len++)
		made[len] =
			(char)(isalnum((unsigned char)name[len]) ? toupper((unsigned char)name[len])
								 : '_');
	made[len] = '\0';
	for (unsigned number = 2;; number++) {
		uint32_t before = names->taken.entries.count;
		if (!strtab_add_z(&names->taken, made)) {
			out->failed = true;
			return;
		}
		if (names->taken.entries.count > before)
			break;
		snprintf(made + len, sizeof(made) - len, "_%u", number);
	}
	bytes_text(out, made);
}

void c_add_literal(struct bytes *out, const char *text)
{
	bytes_text(out, "\"");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;
		if (c == '"' || c == '\\' || c == '?')
			bytes_printf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			bytes_printf(out, "\\%03o", c);
		else
			bytes_u8(out, c);
	}
	bytes_text(out, "\"");
}

void c_add_comment_text(struct bytes *out, const char *text)
{
	for (; *text; text++) {
		if ((*text == '*' && text[1] == '/') || (*text == '/' && text[1] == '*'))
			bytes_printf(out, "%c ", *text);
		else if (*text == '\\' && !text[1])
			bytes_text(out, "\\ ");
		else
			bytes_u8(out, (unsigned char)*text < 0x20 ? ' ' : (uint8_t)*text);
	}
}

void c_add_struct_name(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field)
{
	bytes_printf(out, "%s_%s_%s", p->prefix, tmpl->c_name, field->c_name);
}

/* ---- Declarations ---- */

/* The type and the name of a parameter or of a struct's member. */
static void add_declaration(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field)
{
	const struct in_type_facts *type = &in_types[field->type];
	bool array = field->count.kind != AMOUNT_ABSENT;
	bool member = field->parent != MANIFEST_NONE;

	switch (type->kind) {
	case KIND_STRUCT:
		bytes_text(out, "const struct ");
		c_add_struct_name(out, p, tmpl, field);
		bytes_text(out, " *");
		break;
	case KIND_BOOLEAN:
		bytes_text(out, array ? "const uint32_t *" : "bool ");
		break;
	case KIND_POINTER:
		bytes_text(out, array ? "const uint64_t *" : "const void *");
		break;
	case KIND_GUID:
		bytes_text(out,
			member && !array ? "struct spoor_guid " : "const struct spoor_guid *");
		break;
	case KIND_TIME:
		bytes_text(out, array ? "const uint64_t *" : "int64_t ");
		break;
	case KIND_SYSTEMTIME:
		bytes_text(out, "const uint16_t *");
		break;
	case KIND_SID:
	case KIND_BINARY:
		bytes_text(out, "const void *");
		break;
	case KIND_TEXT16:
	case KIND_TEXT8:
		bytes_text(out, array ? "const char *const *" : "const char *");
		break;
	default:
		bytes_printf(out, array ? "const %s *" : "%s ", type->element);
		break;
	}
	bytes_text(out, field->c_name);
}

/* The fields that are parameters: members of structs are not. */
#define each_parameter(field, tmpl)                                                    \
	for (const struct man_field *field = (tmpl)->fields.items;                     \
		field && field < (tmpl)->fields.items + (tmpl)->fields.count; field++) \
		if (field->parent == MANIFEST_NONE)

void c_add_parameters(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const char *before)
{
	const char *comma = before ? ", " : "";

	bytes_text(out, before ? before : "");
	if (!tmpl)
		return;
	each_parameter(field, tmpl)
	{
		bytes_text(out, comma);
		add_declaration(out, p, tmpl, field);
		comma = ", ";
	}
}

void c_add_arguments(struct bytes *out, const struct man_template *tmpl, const char *before)
{
	const char *comma = before ? ", " : "";

	bytes_text(out, before ? before : "");
	if (!tmpl)
		return;
	each_parameter(field, tmpl)
	{
		bytes_printf(out, "%s%s", comma, field->c_name);
		comma = ", ";
	}
}

/* The members of a struct. */
#define each_member(member, structure)                         \
	for (const struct man_field *member = (structure) + 1; \
		member <= (structure) + (structure)->member_count; member++)

/* Headers of several outputs declare them: the first one counts. */
void c_add_function(struct bytes *out, const struct man_provider *p, const struct man_event *event,
	const char *output, const char *ending)
{
	const struct man_template *tmpl = manifest_template(p, event);

	bytes_printf(out, "void %s_%s_%s%s(", p->prefix, output, event->symbol, ending);
	if (tmpl)
		c_add_parameters(out, p, tmpl, NULL);
	else
		bytes_text(out, "void");
	bytes_text(out, ")");
}

void c_add_fire(struct bytes *out, const struct man_provider *p, const struct man_event *event,
	const char *output)
{
	c_add_function(out, p, event, output, "");
	bytes_printf(out, "\n{\n\tif (%s_%s_%s_enabled())\n\t\t%s_%s_%s_write_(", p->prefix, output,
		event->symbol, p->prefix, output, event->symbol);
	c_add_arguments(out, manifest_template(p, event), NULL);
	bytes_text(out, ");\n}\n");
}

void c_add_structs(struct bytes *out, const struct man_provider *p)
{
	bool any = false;

	vec_each(tmpl, &p->templates)
		vec_each(field, &tmpl->fields)
			any |= field->type == IN_NONE;
	if (!any)
		return;
	bytes_printf(out, "\n#ifndef %s_structs_\n#define %s_structs_\n", p->prefix, p->prefix);
	vec_each(tmpl, &p->templates) {
		vec_each(field, &tmpl->fields) {
			if (field->type != IN_NONE)
				continue;
			bytes_text(out, "\nstruct ");
			c_add_struct_name(out, p, tmpl, field);
			bytes_text(out, " {\n");
			each_member(member, field)
			{
				bytes_text(out, "\t");
				add_declaration(out, p, tmpl, member);
				bytes_text(out, ";\n");
			}
			bytes_text(out, "};\n");
		}
	}
	bytes_text(out, "#endif\n");
}

/* ---- Payloads ---- */

/* The value: `Name`, or of a struct's member `spoor_s_->Name`. */
static void add_value(struct bytes *out, const struct man_field *field)
{
	bytes_printf(out, "%s%s", field->parent == MANIFEST_NONE ? "" : "spoor_s_->",
		field->c_name);
}

/* Whether this field says how many of another there are. */
static bool is_amount(const struct man_template *tmpl, const struct man_field *field)
{
	uint32_t index = (uint32_t)(field - tmpl->fields.items);

	vec_each(other, &tmpl->fields)
		if ((other->count.kind == AMOUNT_FIELD && other->count.value == index) ||
			(other->length.kind == AMOUNT_FIELD && other->length.value == index))
			return true;
	return false;
}

/* Whether an integer can be less or more than the number of elements that are written. */
static bool may_exceed(const struct man_field *field)
{
	return in_types[field->type].size > 2 || in_types[field->type].element[0] == 'i';
}

/* The integer in a field as a size_t: less than none is none. */
static void add_size_value(struct bytes *out, const struct man_field *source)
{
	if (in_types[source->type].element[0] == 'i') {
		bytes_text(out, "(");
		add_value(out, source);
		bytes_text(out, " > 0 ? (size_t)");
		add_value(out, source);
		bytes_text(out, " : 0u)");
	} else {
		bytes_text(out, "(size_t)");
		add_value(out, source);
	}
}

/* A count or length as a size_t. */
static void add_amount(struct bytes *out, const struct man_template *tmpl,
	const struct amount *amount)
{
	switch (amount->kind) {
	case AMOUNT_ABSENT:
		bytes_text(out, "SPOOR_GENERATED_WHOLE");
		break;
	case AMOUNT_FIXED:
		bytes_printf(out, "%uu", amount->value);
		break;
	case AMOUNT_FIELD:
		add_size_value(out, &tmpl->fields.items[amount->value]);
		break;
	}
}

/* How many bytes of what the pointer points at: of arrays of equal elements. */
static uint32_t element_size(const struct man_field *field)
{
	return field->type == IN_BINARY ? 1 : in_types[field->type].size;
}

/* The number of elements; of binary ones, of bytes. */
static void add_count(struct bytes *out, const struct man_template *tmpl,
	const struct man_field *field)
{
	if (field->type == IN_BINARY && field->count.kind) {
		bytes_text(out, "spoor_generated_product(");
		add_amount(out, tmpl, &field->count);
		bytes_text(out, ", ");
		add_amount(out, tmpl, &field->length);
		bytes_text(out, ")");
	} else {
		add_amount(out, tmpl, field->type == IN_BINARY ? &field->length : &field->count);
	}
}

/* What the helper functions of <spoor/generated.h> are called for a field of texts. */
static const char *text_form(const struct man_field *field, enum c_layout layout)
{
	if (layout != C_LAYOUT_ETW)
		return layout == C_LAYOUT_SPOOR ? "text" : "counted_text";
	return in_types[field->type].kind == KIND_TEXT16 ? "etw_text16" : "etw_text8";
}

static bool is_text(const struct man_field *field)
{
	enum in_kind kind = in_types[field->type].kind;

	return kind == KIND_TEXT16 || kind == KIND_TEXT8;
}

static void add_struct_function(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field, const char *act)
{
	c_add_struct_name(out, p, tmpl, field);
	bytes_printf(out, "%s_%s_", field->count.kind ? "_all" : "", act);
}

/* One term of a sum. */
static void add_field_size(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field, enum c_layout layout)
{
	const struct in_type_facts *type = &in_types[field->type];
	bool array = field->count.kind != AMOUNT_ABSENT;

	if (type->kind == KIND_STRUCT) {
		add_struct_function(out, p, tmpl, field, "size");
		bytes_printf(out, "(%s", field->c_name);
		if (array) {
			bytes_text(out, ", ");
			add_amount(out, tmpl, &field->count);
		}
		bytes_text(out, ")");
	} else if (is_text(field)) {
		bytes_printf(out, "spoor_generated_%s%s_size(", text_form(field, layout),
			array ? "s" : "");
		add_value(out, field);
		if (array) {
			bytes_text(out, ", ");
			add_amount(out, tmpl, &field->count);
		}
		bytes_text(out, ", ");
		add_amount(out, tmpl, &field->length);
		bytes_text(out, ")");
	} else if (type->kind == KIND_SID) {
		bytes_printf(out, "%sspoor_generated_sid_size(",
			layout != C_LAYOUT_ETW ? "2u + " : "");
		add_value(out, field);
		bytes_text(out, ")");
	} else if (array || type->kind == KIND_BINARY) {
		bytes_printf(out,
			layout != C_LAYOUT_ETW ? "2u + %uu * spoor_count_of("
					       : "%uu * spoor_generated_count(",
			element_size(field));
		if (layout != C_LAYOUT_ETW) {
			add_value(out, field);
			bytes_text(out, ", ");
		}
		add_count(out, tmpl, field);
		bytes_text(out, ")");
	} else {
		bytes_printf(out, "%uu", type->size);
	}
}

/* The begin of a statement, up to the value: "spoor_at_ = FUNCTION(spoor_at_, spoor_end_, ". */
static void begin_put(struct bytes *out, const char *function)
{
	bytes_printf(out, "spoor_at_ = %s(spoor_at_, spoor_end_, ", function);
}

/* ", COUNT" of an array's elements; nothing of a single value. */
static void add_array_amount(struct bytes *out, const struct man_template *tmpl,
	const struct man_field *field)
{
	if (field->count.kind == AMOUNT_ABSENT)
		return;
	bytes_text(out, ", ");
	add_amount(out, tmpl, &field->count);
}

static void put_struct(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field)
{
	bytes_text(out, "spoor_at_ = ");
	add_struct_function(out, p, tmpl, field, "put");
	bytes_printf(out, "(spoor_at_, spoor_end_, %s", field->c_name);
	add_array_amount(out, tmpl, field);
	bytes_text(out, ");\n");
}

static void put_text(struct bytes *out, const struct man_template *tmpl,
	const struct man_field *field, enum c_layout layout)
{
	bool array = field->count.kind != AMOUNT_ABSENT;

	bytes_printf(out, "spoor_at_ = spoor_generated_put_%s%s(spoor_at_, spoor_end_, ",
		text_form(field, layout), array ? "s" : "");
	add_value(out, field);
	add_array_amount(out, tmpl, field);
	bytes_text(out, ", ");
	add_amount(out, tmpl, &field->length);
	bytes_text(out, ");\n");
}

static void put_sid(struct bytes *out, const struct man_field *field, enum c_layout layout)
{
	begin_put(out, layout != C_LAYOUT_ETW ? "spoor_generated_put_counted_sid"
					      : "spoor_generated_put_sid");
	add_value(out, field);
	bytes_text(out, ");\n");
}

/* A GUID of the EventHeader layout, whose bytes are in another order. */
static void put_uuid(struct bytes *out, const struct man_template *tmpl,
	const struct man_field *field)
{
	bool array = field->count.kind != AMOUNT_ABSENT;

	begin_put(out, array ? "spoor_generated_put_uuids" : "spoor_generated_put_uuid");
	bytes_text(out, field->parent != MANIFEST_NONE && !array ? "&" : "");
	add_value(out, field);
	if (array) {
		bytes_text(out, ", ");
		add_count(out, tmpl, field);
	}
	bytes_text(out, ");\n");
}

/* An array of values of one size, or bytes. */
static void put_elements(struct bytes *out, const struct man_template *tmpl,
	const struct man_field *field, enum c_layout layout)
{
	if (layout != C_LAYOUT_ETW) {
		begin_put(out, "spoor_put_array_within");
		add_value(out, field);
		bytes_printf(out, ", %uu, spoor_count_of(", element_size(field));
		add_value(out, field);
		bytes_text(out, ", ");
	} else {
		begin_put(out, "spoor_generated_put_elements");
		add_value(out, field);
		bytes_printf(out, ", %uu * spoor_generated_count(", element_size(field));
	}
	add_count(out, tmpl, field);
	bytes_text(out, "));\n");
}

/* How many of another field there are, as many as are written: a reader finds what follows by it. */
static void put_count(struct bytes *out, const struct man_field *field)
{
	begin_put(out, "spoor_generated_put_amount");
	add_size_value(out, field);
	bytes_printf(out, ", %uu);\n", in_types[field->type].size);
}

static void put_scalar(struct bytes *out, const struct man_field *field)
{
	switch (in_types[field->type].kind) {
	case KIND_BOOLEAN:
		begin_put(out, "spoor_generated_put_u32");
		add_value(out, field);
		bytes_text(out, " ? 1u : 0u);\n");
		break;
	case KIND_POINTER:
		begin_put(out, "spoor_generated_put_u64");
		bytes_text(out, "(uintptr_t)");
		add_value(out, field);
		bytes_text(out, ");\n");
		break;
	case KIND_TIME:
		begin_put(out, "spoor_generated_put_u64");
		bytes_text(out, "spoor_time_of(");
		add_value(out, field);
		bytes_text(out, "));\n");
		break;
	case KIND_GUID:
	case KIND_SYSTEMTIME:
		if (in_types[field->type].kind == KIND_GUID && field->parent != MANIFEST_NONE) {
			begin_put(out, "spoor_put_within");
			bytes_text(out, "&");
		} else {
			begin_put(out, "spoor_generated_put_elements");
		}
		add_value(out, field);
		bytes_text(out, ", 16);\n");
		break;
	default:
		begin_put(out, "spoor_put_within");
		bytes_text(out, "&");
		add_value(out, field);
		bytes_text(out, ", sizeof(");
		add_value(out, field);
		bytes_text(out, "));\n");
		break;
	}
}

/* The statement that writes a field. */
static void add_field_put(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field, enum c_layout layout)
{
	const struct in_type_facts *type = &in_types[field->type];

	bytes_text(out, "\t\t");
	if (type->kind == KIND_STRUCT)
		put_struct(out, p, tmpl, field);
	else if (is_text(field))
		put_text(out, tmpl, field, layout);
	else if (type->kind == KIND_SID)
		put_sid(out, field, layout);
	else if (layout == C_LAYOUT_EVENT_HEADER && type->kind == KIND_GUID)
		put_uuid(out, tmpl, field);
	else if (field->count.kind != AMOUNT_ABSENT || type->kind == KIND_BINARY)
		put_elements(out, tmpl, field, layout);
	else if (layout == C_LAYOUT_ETW && is_amount(tmpl, field) && may_exceed(field))
		put_count(out, field);
	else
		put_scalar(out, field);
}

void c_add_size(struct bytes *out, const struct man_provider *p, const struct man_template *tmpl,
	enum c_layout layout)
{
	const char *plus = "";

	each_parameter(field, tmpl)
	{
		bytes_text(out, plus);
		add_field_size(out, p, tmpl, field, layout);
		plus = " + ";
	}
}

void c_add_puts(struct bytes *out, const struct man_provider *p, const struct man_template *tmpl,
	enum c_layout layout)
{
	each_parameter(field, tmpl) add_field_put(out, p, tmpl, field, layout);
}

void c_add_payload_begin(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, enum c_layout layout, const char *declarations)
{
	bytes_text(out, "\tconst size_t spoor_size_ = ");
	c_add_size(out, p, tmpl, layout);
	bytes_printf(out,
		";\n"
		"\tuint8_t spoor_small_[%u];\n"
		"\tuint8_t *const spoor_bytes_ = spoor_size_ <= sizeof(spoor_small_) ? spoor_small_ : (uint8_t *)malloc(spoor_size_);\n%s\n"
		"\tif (spoor_bytes_) {\n"
		"\t\tuint8_t *spoor_at_ = spoor_bytes_;\n"
		"\t\tconst uint8_t *const spoor_end_ = spoor_at_ + spoor_size_;\n",
		SMALL_BYTES, declarations);
	c_add_puts(out, p, tmpl, layout);
	bytes_text(out, "\t\tspoor_generated_end(spoor_at_, spoor_end_);\n");
}

void c_add_payload_end(struct bytes *out)
{
	bytes_text(out, "\t\tif (spoor_bytes_ != spoor_small_)\n"
			"\t\t\tfree(spoor_bytes_);\n"
			"\t}\n");
}

static void add_one_struct_writer(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, const struct man_field *field, enum c_layout layout)
{
	struct bytes name = { 0 };
	const char *plus = "";

	c_add_struct_name(&name, p, tmpl, field);
	const char *tag = bytes_z(&name);
	bytes_printf(out,
		"\nstatic size_t %s_size_(const struct %s *spoor_s_)\n"
		"{\n"
		"\tstatic const struct %s none_;\n\n"
		"\tspoor_s_ = spoor_s_ ? spoor_s_ : &none_;\n"
		"\t(void)spoor_s_;\n"
		"\treturn ",
		tag, tag, tag);
	each_member(member, field)
	{
		bytes_text(out, plus);
		add_field_size(out, p, tmpl, member, layout);
		plus = " + ";
	}
	bytes_printf(out,
		";\n}\n"
		"\nstatic uint8_t *%s_put_(uint8_t *spoor_at_, const uint8_t *spoor_end_, const struct %s *spoor_s_)\n"
		"{\n"
		"\tstatic const struct %s none_;\n\n"
		"\tspoor_s_ = spoor_s_ ? spoor_s_ : &none_;\n"
		"\t{\n",
		tag, tag, tag);
	each_member(member, field) add_field_put(out, p, tmpl, member, layout);
	bytes_text(out, "\t}\n\treturn spoor_at_;\n}\n");
	if (field->count.kind) {
		const char *count = layout != C_LAYOUT_ETW
					    ? "spoor_count_of(spoor_s_, spoor_count_)"
					    : "spoor_generated_count(spoor_count_)";
		const char *item =
			layout != C_LAYOUT_ETW ? "&spoor_s_[i]" : "spoor_s_ ? &spoor_s_[i] : NULL";
		bytes_printf(out,
			"\nstatic size_t %s_all_size_(const struct %s *spoor_s_, size_t spoor_count_)\n"
			"{\n"
			"\tsize_t size = %s;\n\n"
			"\tspoor_count_ = %s;\n"
			"\tfor (size_t i = 0; i < spoor_count_; i++)\n"
			"\t\tsize += %s_size_(%s);\n"
			"\treturn size;\n"
			"}\n",
			tag, tag, layout != C_LAYOUT_ETW ? "2" : "0", count, tag, item);
		bytes_printf(out,
			"\nstatic uint8_t *%s_all_put_(uint8_t *spoor_at_, const uint8_t *spoor_end_, const struct %s *spoor_s_,\n"
			"\tsize_t spoor_count_)\n"
			"{\n"
			"\tspoor_count_ = %s;\n"
			"%s"
			"\tfor (size_t i = 0; i < spoor_count_; i++)\n"
			"\t\tspoor_at_ = %s_put_(spoor_at_, spoor_end_, %s);\n"
			"\treturn spoor_at_;\n"
			"}\n",
			tag, tag, count,
			layout != C_LAYOUT_ETW
				? "\tspoor_at_ = spoor_generated_put_u16(spoor_at_, spoor_end_, (uint16_t)spoor_count_);\n"
				: "",
			tag, item);
	}
	out->failed |= name.failed;
	bytes_done(&name);
}

void c_add_struct_writers(struct bytes *out, const struct man_provider *p,
	const struct man_template *tmpl, enum c_layout layout)
{
	vec_each(field, &tmpl->fields)
		if (field->type == IN_NONE)
			add_one_struct_writer(out, p, tmpl, field, layout);
}

/* ---- Constants ---- */

/* "DOTNETRUNTIME_TASK_GARBAGECOLLECTION" */
static void add_name(struct bytes *out, struct c_names *names, const struct man_provider *p,
	const char *kind, const char *outer, const char *name)
{
	struct bytes whole = { 0 };

	bytes_printf(&whole, "%s_%s%s%s%s%s", p->prefix, kind, kind[0] ? "_" : "", outer,
		outer[0] ? "_" : "", name);
	c_add_constant(out, names, bytes_z(&whole));
	out->failed |= whole.failed;
	bytes_done(&whole);
}

static void add_map(struct bytes *out, const struct man_provider *p, const struct man_map *map,
	struct c_names *names)
{
	bool large = false;

	vec_each(entry, &map->entries)
		large |= entry->value > INT32_MAX;
	if (!map->entries.count)
		return;
	if (large)
		bytes_text(out, "\n");
	else
		bytes_printf(out, "\nenum %s_%s {\n", p->prefix, map->c_name);
	vec_each(entry, &map->entries) {
		char number[32];
		snprintf(number, sizeof(number), "VALUE_%u", entry->value);
		bytes_text(out, large ? "#define " : "\t");
		add_name(out, names, p, "", map->name,
			entry->message && entry->message[0] ? entry->message
			: entry->symbol                     ? entry->symbol
							    : number);
		bytes_printf(out,
			large       ? " UINT32_C(0x%x)\n"
			: map->bits ? " = 0x%x,\n"
				    : " = %u,\n",
			entry->value);
	}
	bytes_text(out, large ? "" : "};\n");
}

void c_add_constants(struct bytes *out, const struct man_provider *p, struct c_names *names)
{
	if (p->keywords.count)
		bytes_text(out, "\n");
	vec_each(keyword, &p->keywords) {
		bytes_text(out, "#define ");
		add_name(out, names, p, "KEYWORD", "", keyword->name);
		bytes_printf(out, " UINT64_C(0x%llx)\n", (unsigned long long)keyword->mask);
	}
	if (p->tasks.count)
		bytes_text(out, "\n");
	vec_each(task, &p->tasks) {
		bytes_text(out, "#define ");
		add_name(out, names, p, "TASK", "", task->name);
		bytes_printf(out, " %u\n", task->value);
	}
	if (p->opcodes.count)
		bytes_text(out, "\n");
	vec_each(opcode, &p->opcodes) {
		bytes_text(out, "#define ");
		add_name(out, names, p, "OPCODE",
			opcode->task == MANIFEST_NONE ? "" : p->tasks.items[opcode->task].name,
			opcode->name);
		bytes_printf(out, " %u\n", opcode->value);
	}
	vec_each(map, &p->maps)
		add_map(out, p, map, names);
}

/* LTTng has no arrays of these. */
static bool has_no_sequence(const struct man_field *field)
{
	enum in_kind kind = in_types[field->type].kind;

	return field->count.kind && (kind == KIND_TEXT16 || kind == KIND_TEXT8 ||
					    kind == KIND_GUID || kind == KIND_SYSTEMTIME);
}

bool c_is_packed(const struct man_template *tmpl)
{
	unsigned parameters = 0;

	if (!tmpl)
		return false;
	each_parameter(field, tmpl)
	{
		parameters++;
		if (field->type == IN_NONE || field->length.kind ||
			field->count.kind == AMOUNT_FIELD || has_no_sequence(field))
			return true;
	}
	return parameters > TRACEPOINT_PARAMETERS_MAX;
}
