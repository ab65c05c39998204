/* The manifest as JSON: what was read, resolved. Masks are hexadecimal texts, as JSON's numbers have 53 bits. */
#include "gen/gen.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "gen/c_code.h"

static void add_mask(struct json *j, const char *name, uint64_t mask)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)mask);
	json_z(j, name, text);
}

static void add_optional(struct json *j, const char *name, const char *text)
{
	if (text && text[0])
		json_z(j, name, text);
}

static void add_amount(struct json *j, const char *name, const struct amount *amount)
{
	if (amount->kind == AMOUNT_FIXED)
		json_u64(j, name, amount->value);
	else if (amount->kind == AMOUNT_FIELD)
		json_z(j, name, amount->name);
}

static void add_field(struct json *j, const struct man_field *field)
{
	json_object(j, NULL);
	json_z(j, "name", field->name);
	if (strcmp(field->name, field->c_name) != 0)
		json_z(j, "nameInC", field->c_name);
	json_z(j, "type", field->type == IN_NONE ? "struct" : in_types[field->type].name);
	add_optional(j, "outType", field->out_type);
	add_optional(j, "map", field->map_name);
	add_amount(j, "count", &field->count);
	add_amount(j, "length", &field->length);
	if (field->type == IN_NONE) {
		json_array(j, "fields");
		for (uint32_t i = 1; i <= field->member_count; i++)
			add_field(j, &field[i]);
		json_end(j);
	}
	json_end(j);
}

static void add_event(struct json *j, const struct man_provider *p, const struct man_event *event)
{
	const struct man_template *tmpl = manifest_template(p, event);

	json_object(j, NULL);
	json_z(j, "symbol", event->symbol);
	json_u64(j, "id", event->id);
	json_u64(j, "version", event->version);
	json_u64(j, "level", event->level);
	add_mask(j, "keywords", event->keywords);
	add_optional(j, "task", manifest_task_name(p, event));
	json_u64(j, "opcode", event->opcode);
	add_optional(j, "opcodeName", event->opcode_name);
	add_optional(j, "message", event->message);
	json_bool(j, "packed", c_is_packed(tmpl));
	if (tmpl)
		json_z(j, "template", tmpl->tid);
	json_array(j, "fields");
	if (tmpl)
		vec_each(field, &tmpl->fields)
			if (field->parent == MANIFEST_NONE)
				add_field(j, field);
	json_end(j);
	json_end(j);
}

static void add_map(struct json *j, const struct man_map *map)
{
	json_object(j, NULL);
	json_z(j, "name", map->name);
	json_bool(j, "bits", map->bits);
	json_array(j, "entries");
	vec_each(entry, &map->entries) {
		json_object(j, NULL);
		json_u64(j, "value", entry->value);
		json_z(j, "message", entry->message ? entry->message : "");
		json_end(j);
	}
	json_end(j);
	json_end(j);
}

static void add_provider(struct json *j, const struct man_provider *p)
{
	char guid[GEN_GUID_ROOM];

	json_object(j, NULL);
	json_z(j, "name", p->name);
	json_z(j, "guid", gen_put_guid(guid, p->guid));
	json_z(j, "shortName", p->short_name);
	json_z(j, "prefix", p->prefix);
	json_array(j, "keywords");
	vec_each(keyword, &p->keywords) {
		json_object(j, NULL);
		json_z(j, "name", keyword->name);
		add_mask(j, "mask", keyword->mask);
		add_optional(j, "message", keyword->message);
		json_end(j);
	}
	json_end(j);
	json_array(j, "tasks");
	vec_each(task, &p->tasks) {
		json_object(j, NULL);
		json_z(j, "name", task->name);
		json_u64(j, "value", task->value);
		add_optional(j, "message", task->message);
		json_end(j);
	}
	json_end(j);
	json_array(j, "opcodes");
	vec_each(opcode, &p->opcodes) {
		json_object(j, NULL);
		json_z(j, "name", opcode->name);
		json_u64(j, "value", opcode->value);
		if (opcode->task != MANIFEST_NONE)
			json_z(j, "task", p->tasks.items[opcode->task].name);
		add_optional(j, "message", opcode->message);
		json_end(j);
	}
	json_end(j);
	json_array(j, "maps");
	vec_each(map, &p->maps)
		add_map(j, map);
	json_end(j);
	json_array(j, "events");
	vec_each(event, &p->events)
		add_event(j, p, event);
	json_end(j);
	json_end(j);
}

void gen_write_json(const struct manifest *manifest, struct gen_files *files)
{
	struct bytes *out = gen_file_add(files, "events", ".json");

	if (!out)
		return;
	struct json j = { .out = out };
	json_object(&j, NULL);
	json_z(&j, "comment", GEN_MARK);
	json_z(&j, "manifest", manifest->name);
	json_array(&j, "providers");
	vec_each(p, &manifest->providers)
		add_provider(&j, p);
	json_end(&j);
	json_end(&j);
	bytes_text(out, "\n");
}
