/* See kept_names.h. */
#include "stacks/kept_names.h"

#include "stacks/thread_stacks_state.h"
#include "target/targets.h"
#include "trace/trace.h"

void kept_names_take(struct kept_names_list *list, struct stacks_taking *t)
{
	for (uint32_t i = 0; i < list->items.count && !t->has_kept_names; i++) {
		struct kept_names *kept = &list->items.items[i];
		if (kept->pid != t->target->pid || kept->start_ticks != t->port.start_ticks)
			continue;
		t->codemap = kept->codemap;
		t->nameless = kept->nameless;
		t->has_kept_names = true;
		*kept = *vec_last(&list->items);
		list->items.count--;
	}
}

void kept_names_keep(struct kept_names_list *list, struct stacks_taking *t)
{
	const struct kept_names names = { .pid = t->target->pid,
		.start_ticks = t->port.start_ticks,
		.codemap = t->codemap,
		.nameless = t->nameless };

	if (!t->codemap.codes.count || !vec_add(&list->items, names))
		return;
	t->codemap = (struct codemap){ 0 };
	t->nameless = (struct map){ 0 };
}

/* Of the frames of this sample. With `note`, those without a name are put down as nameless. */
static bool has_names(struct stacks_taking *t, const struct moment *moment, bool note)
{
	uint32_t count = 0;
	const uint64_t *frames =
		moment->mode ? stack_table_get(&t->session.trace.stacks, moment->stack, &count)
			     : NULL;

	/* all but a running leaf are return addresses: the call is before it */
	for (uint32_t i = 0; i < count; i++) {
		if (codemap_find(&t->codemap, frames[i] - 1, moment->time_ns) ||
			(!i && codemap_find(&t->codemap, frames[i], moment->time_ns)) ||
			map_get(&t->nameless, frames[i]))
			continue;
		if (!note)
			return false;
		/* without memory the next round has another rundown */
		(void)map_put(&t->nameless, frames[i], 1);
	}
	return true;
}

bool kept_names_are_short(struct stacks_taking *t)
{
	bool short_of = false;

	codemap_settle(&t->codemap);
	for (uint32_t i = 0; i < t->seen.count && !short_of; i++)
		short_of = !has_names(t, &t->seen.items[i].before, false) ||
			   !has_names(t, &t->seen.items[i].after, false);
	return short_of;
}

void kept_names_note_nameless(struct stacks_taking *t)
{
	for (uint32_t i = 0; i < t->seen.count; i++) {
		(void)has_names(t, &t->seen.items[i].before, true); /* now all are named or noted */
		(void)has_names(t, &t->seen.items[i].after, true);
	}
}

void kept_names_done(struct kept_names_list *list)
{
	for (uint32_t i = 0; i < list->items.count; i++) {
		codemap_done(&list->items.items[i].codemap);
		map_done(&list->items.items[i].nameless);
	}
	vec_done(&list->items);
}
