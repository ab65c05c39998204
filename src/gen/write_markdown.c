/* A reference page of all providers: their keywords, events with their fields, and maps. */
#include "gen/gen.h"

#include <string.h>

#include "gen/c_code.h"

/* In a cell of a table: on one line, with what Markdown takes for markup escaped. */
static void add_cell(struct bytes *out, const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20)
			bytes_text(out, " ");
		else if (strchr("|\\`*_<>[]", *text))
			bytes_printf(out, "\\%c", *text);
		else
			bytes_u8(out, (uint8_t)*text);
	}
}

static void add_keyword_names(struct bytes *out, const struct man_provider *p, uint64_t mask)
{
	const char *comma = "";

	vec_each(keyword, &p->keywords) {
		if (!(keyword->mask & mask))
			continue;
		bytes_text(out, comma);
		add_cell(out, keyword->name);
		comma = ", ";
		mask &= ~keyword->mask;
	}
	if (mask)
		bytes_printf(out, "%s0x%llx", comma, (unsigned long long)mask);
}

static void add_fields(struct bytes *out, const struct man_template *tmpl)
{
	bytes_text(out, "\n| field | type | shown as |\n| --- | --- | --- |\n");
	vec_each(field, &tmpl->fields) {
		struct bytes type = { 0 };
		bytes_text(out, "| ");
		if (field->parent != MANIFEST_NONE) {
			add_cell(out, tmpl->fields.items[field->parent].name);
			bytes_text(out, ".");
		}
		add_cell(out, field->name);
		bytes_text(out, " | ");
		gen_add_field_type(&type, field);
		add_cell(out, bytes_z(&type));
		bytes_done(&type);
		bytes_text(out, " | ");
		if (field->map_name)
			add_cell(out, field->map_name);
		else if (field->out_type)
			add_cell(out, field->out_type);
		bytes_text(out, " |\n");
	}
}

static void add_event(struct bytes *out, const struct man_provider *p,
	const struct man_event *event)
{
	const struct man_template *tmpl = manifest_template(p, event);

	bytes_text(out, "\n### ");
	add_cell(out, event->symbol);
	bytes_printf(out, "\n\nId %u, version %u, level %u", event->id, event->version,
		event->level);
	if (gen_level_name(event->level)[0])
		bytes_printf(out, " (%s)", gen_level_name(event->level));
	if (manifest_task_name(p, event)[0]) {
		bytes_text(out, ", task ");
		add_cell(out, manifest_task_name(p, event));
	}
	if (event->opcode_name) {
		bytes_text(out, ", opcode ");
		add_cell(out, event->opcode_name);
	}
	if (event->keywords) {
		bytes_text(out, ", keywords ");
		add_keyword_names(out, p, event->keywords);
	}
	bytes_text(out, ".\n");
	if (event->message && event->message[0]) {
		bytes_text(out, "\n> ");
		add_cell(out, event->message);
		bytes_text(out, "\n");
	}
	if (tmpl)
		add_fields(out, tmpl);
}

static void add_provider(struct bytes *out, const struct man_provider *p)
{
	char guid[GEN_GUID_ROOM];

	bytes_text(out, "\n# ");
	add_cell(out, p->name);
	bytes_printf(out, "\n\nGUID %s, %u events.\n", gen_put_guid(guid, p->guid),
		p->events.count);
	if (p->keywords.count)
		bytes_text(out,
			"\n## Keywords\n\n| keyword | mask | meaning |\n| --- | --- | --- |\n");
	vec_each(keyword, &p->keywords) {
		bytes_text(out, "| ");
		add_cell(out, keyword->name);
		bytes_printf(out, " | 0x%llx | ", (unsigned long long)keyword->mask);
		add_cell(out, keyword->message ? keyword->message : "");
		bytes_text(out, " |\n");
	}
	if (p->events.count)
		bytes_text(out, "\n## Events\n");
	vec_each(event, &p->events)
		add_event(out, p, event);
	if (p->maps.count)
		bytes_text(out, "\n## Values\n");
	vec_each(map, &p->maps) {
		bytes_text(out, "\n### ");
		add_cell(out, map->name);
		bytes_printf(out, "\n\n| %s | name |\n| --- | --- |\n",
			map->bits ? "bit" : "value");
		vec_each(entry, &map->entries) {
			bytes_printf(out, map->bits ? "| 0x%x | " : "| %u | ", entry->value);
			add_cell(out, entry->message ? entry->message : "");
			bytes_text(out, " |\n");
		}
	}
}

void gen_write_markdown(const struct manifest *manifest, struct gen_files *files)
{
	struct bytes *out = gen_file_add(files, "events", ".md");

	if (!out)
		return;
	bytes_text(out, "<!-- " GEN_MARK ". Do not edit. -->\n\nFrom ");
	add_cell(out, manifest->name);
	bytes_text(out, ".\n");
	vec_each(p, &manifest->providers)
		add_provider(out, p);
}
