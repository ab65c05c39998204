/* See stack_walks.h. */
#include "gen/stack_walks.h"

#include <string.h>

#include "gen/c_code.h"

#define STACK_FIELDS 2u /* FrameCount and Stack */

static bool has_stack(const struct man_template *tmpl)
{
	if (!tmpl || tmpl->fields.count < STACK_FIELDS)
		return false;
	const struct man_field *count = &tmpl->fields.items[tmpl->fields.count - 2];
	const struct man_field *stack = &tmpl->fields.items[tmpl->fields.count - 1];
	if (count->type != IN_UINT32 || count->count.kind || strcmp(count->name, "FrameCount") != 0)
		return false;
	if (stack->type != IN_POINTER || !stack->count.kind || strcmp(stack->name, "Stack") != 0)
		return false;
	for (const struct man_field *each = tmpl->fields.items; each < count; each++)
		if (in_types[each->type].kind != KIND_INTEGER || each->count.kind ||
			each->parent != MANIFEST_NONE)
			return false;
	return count->parent == MANIFEST_NONE;
}

void stack_walk_find(struct man_provider *p)
{
	p->stack_walk = MANIFEST_NONE;
	for (uint32_t i = 0; i < p->events.count && p->stack_walk == MANIFEST_NONE; i++)
		if (has_stack(manifest_template(p, &p->events.items[i])))
			p->stack_walk = i;
}

const struct man_event *stack_walk_of(const struct man_provider *p)
{
	return p->stack_walk == MANIFEST_NONE ? NULL : &p->events.items[p->stack_walk];
}

bool stack_walk_is_wanted(const struct man_provider *p, const struct man_event *event)
{
	return !event->no_stack && !has_stack(manifest_template(p, event)) && stack_walk_of(p);
}

/* ---- The list ---- */

struct walk_part {
	const char *at;
	size_t len;
};

static bool is_text(struct walk_part part, const char *text)
{
	return part.len == strlen(text) && memcmp(part.at, text, part.len) == 0;
}

static void line_read(struct manifest *manifest, struct walk_part line)
{
	struct walk_part parts[5] = { { 0 } };
	size_t count = 0;

	while (count < 5) {
		const char *colon = memchr(line.at, ':', line.len);
		size_t len = colon ? (size_t)(colon - line.at) : line.len;
		parts[count++] = (struct walk_part){ line.at, len };
		if (!colon)
			break;
		line.at += len + 1;
		line.len -= len + 1;
	}
	if (count < 5 || !is_text(parts[0], "nostack"))
		return;
	const struct walk_part task = parts[1], provider = parts[2], symbol = parts[4];
	if (!task.len && !provider.len && !symbol.len)
		return;
	vec_each(p, &manifest->providers) {
		vec_each(event, &p->events) {
			/* .NET's scripts look at the symbol alone, if there is one. */
			bool left_out =
				symbol.len
					? is_text(symbol, event->symbol)
					: (!provider.len || is_text(provider, p->name)) &&
						  (!task.len || is_text(task, manifest_task_name(p,
										      event)));
			event->no_stack = event->no_stack || left_out;
		}
	}
}

void stack_walks_leave_out(struct manifest *manifest, const char *list, size_t size)
{
	const char *const end = list + size;

	while (list < end) {
		const char *stop = memchr(list, '\n', (size_t)(end - list));
		struct walk_part line = { list, (size_t)((stop ? stop : end) - list) };
		if (line.len && line.at[line.len - 1] == '\r')
			line.len--;
		if (line.len && *line.at != '#')
			line_read(manifest, line);
		list = stop ? stop + 1 : end;
	}
}

/* ---- The code ---- */

/* Parameters of the function: the fields before the stack. */
#define each_head_field(field, tmpl)                               \
	for (const struct man_field *field = (tmpl)->fields.items; \
		field < (tmpl)->fields.items + (tmpl)->fields.count - STACK_FIELDS; field++)

void stack_walk_add_function(struct bytes *out, const struct man_provider *p)
{
	const struct man_event *walk = stack_walk_of(p);
	const struct man_template *tmpl = walk ? manifest_template(p, walk) : NULL;
	uint32_t size = 0;

	if (!tmpl)
		return;
	each_head_field(field, tmpl) size += in_types[field->type].size;
	bytes_printf(out,
		"\n"
		"/* After an event: its stack, for sessions that enable both. */\n"
		"extern struct spoor_event %s_%s_event SPOOR_HIDDEN;\n"
		"__attribute__((always_inline)) static inline void %s_stack_walk_(const struct spoor_event *after_",
		p->prefix, walk->symbol, p->prefix);
	each_head_field(field, tmpl)
		bytes_printf(out, ", %s %s", in_types[field->type].element, field->c_name);
	bytes_printf(out,
		")\n{\n"
		"\tuint8_t spoor_head_[%u];\n"
		"\tuint8_t *spoor_at_ = spoor_head_;\n"
		"\tconst uint8_t *const spoor_end_ = spoor_head_ + sizeof(spoor_head_);\n\n",
		size ? size : 1);
	each_head_field(field, tmpl) bytes_printf(out,
		"\tspoor_at_ = spoor_put_within(spoor_at_, spoor_end_, &%s, sizeof(%s));\n",
		field->c_name, field->c_name);
	if (!size)
		bytes_text(out, "\t(void)spoor_end_;\n");
	bytes_printf(out,
		"\tspoor_fire_stack_walk(&%s_%s_event, after_, spoor_head_, (size_t)(spoor_at_ - spoor_head_));\n"
		"}\n",
		p->prefix, walk->symbol);
}

/* The event's parameter of this name, if it is the same kind of number. */
static bool has_parameter(const struct man_template *tmpl, const struct man_field *wanted)
{
	if (!tmpl)
		return false;
	vec_each(field, &tmpl->fields)
		if (field->parent == MANIFEST_NONE && field->type == wanted->type &&
			!field->count.kind && strcmp(field->c_name, wanted->c_name) == 0)
			return true;
	return false;
}

void stack_walk_add_call(struct bytes *out, const struct man_provider *p,
	const struct man_event *event)
{
	const struct man_event *walk = stack_walk_of(p);
	const struct man_template *tmpl = manifest_template(p, walk);

	bytes_printf(out,
		"\t\tif (spoor_event_enabled(&%s_%s_event))\n\t\t\t%s_stack_walk_(&%s_%s_event",
		p->prefix, walk->symbol, p->prefix, p->prefix, event->symbol);
	each_head_field(field, tmpl) bytes_printf(out, ", %s",
		has_parameter(manifest_template(p, event), field) ? field->c_name : "0");
	bytes_text(out, ");\n");
}
