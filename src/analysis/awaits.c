/* See awaits.h. */
#include "analysis/awaits.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/activity_spans.h"
#include "analysis/event_stacks.h"
#include "analysis/own_function.h"
#include "analysis/runtime_event.h"
#include "trace/activity_event.h"
#include "trace/event.h"
#include "trace/schema.h"
#include "trace/source_event.h"

#define BEHAVIOR_AWAIT 2u /* TaskWaitBehavior.Asynchronous */
#define NESTED_MAX     64u

static uint64_t key_of(uint32_t process, uint32_t task)
{
	return hash_u64((uint64_t)process << 32 | task);
}

/* The open await of this task, as an index + 1; 0: none. */
static uint32_t find(const struct awaits *awaits, uint32_t process, uint32_t task)
{
	for (struct map_walk w = map_find(&awaits->by_task, key_of(process, task)); w.value;
		map_next(&w)) {
		const struct await_begun *begun = &awaits->begun.items[w.value - 1];
		if (begun->is_open && begun->process == process && begun->task == task)
			return w.value;
	}
	return 0;
}

/* i32 scheduler, i32 task that runs, i32 awaited task, i32 behavior, i32 task that continues. */
static int begin(struct awaits *awaits, const struct runtime_event *event)
{
	struct cursor c = event->payload;

	cursor_skip(&c, 8);
	uint32_t task = cursor_u32(&c);
	uint32_t behavior = cursor_u32(&c);
	uint32_t after = cursor_u32(&c);
	if (c.short_read || behavior != BEHAVIOR_AWAIT)
		return 0;
	uint32_t place = awaits->free;
	if (place)
		awaits->free = awaits->begun.items[place - 1].next_free;
	else if (vec_push(&awaits->begun))
		place = awaits->begun.count;
	else
		return -ENOMEM;
	struct await_begun *begun = &awaits->begun.items[place - 1];
	*begun = (struct await_begun){ .at_ns = event->at_ns,
		.from_ns = event->from_ns,
		.process = event->process,
		.task = task,
		.after = after,
		.in_activity = event->event->activity != NULL,
		.is_open = true };
	int error = event_stacks_add(event->stacks, event->process, event->event, &begun->stack);
	return error                                                            ? error
	       : map_add(&awaits->by_task, key_of(event->process, task), place) ? 0
										: -ENOMEM;
}

static int add(struct awaits *awaits, const struct await_begun *begun, uint64_t end_ns,
	unsigned flags)
{
	uint64_t lasts_ns = end_ns > begun->at_ns ? end_ns - begun->at_ns : 0;
	uint32_t outer = begun->after ? find(awaits, begun->process, begun->after) : 0;
	const struct tally_key key = { .process = begun->process,
		.kind = flags | (lasts_ns >= AWAIT_LONG_NS ? (unsigned)AWAIT_IS_LONG : 0) |
			(begun->in_activity ? (unsigned)AWAIT_IN_ACTIVITY : 0),
		.stack = begun->stack,
		.detail = outer ? awaits->begun.items[outer - 1].stack : 0 };
	const struct tally_amount amount = {
		.amount = lasts_ns, .at_ns = begun->at_ns, .from_ns = begun->from_ns, .lasts = true
	};

	return tally_add(&awaits->tally, &key, &amount);
}

/* TaskWaitEnd: i32 scheduler, i32 task that runs, i32 awaited task. */
static int end(struct awaits *awaits, const struct runtime_event *event)
{
	struct cursor c = event->payload;

	cursor_skip(&c, 8);
	uint32_t task = cursor_u32(&c);
	uint32_t place = c.short_read ? 0 : find(awaits, event->process, task);
	if (!place) /* it began before the selected time, or is a thread's */
		return 0;
	struct await_begun *begun = &awaits->begun.items[place - 1];
	int error = add(awaits, begun, event->at_ns, 0);
	map_remove(&awaits->by_task, key_of(event->process, task), place);
	*begun = (struct await_begun){ .next_free = awaits->free };
	awaits->free = place;
	return error;
}

int awaits_event(struct awaits *awaits, const struct runtime_event *event)
{
	if (event->schema->event_id == SOURCE_ID_TASK_WAIT_BEGIN)
		return event->is_selected ? begin(awaits, event) : 0;
	return end(awaits, event);
}

int awaits_settle(struct awaits *awaits, const struct activity_spans *spans, uint64_t end_ns)
{
	int error = 0;

	for (uint32_t i = 0; i < awaits->begun.count && !error; i++) {
		const struct await_begun *begun = &awaits->begun.items[i];
		if (!begun->is_open)
			continue;
		uint64_t to_ns = activity_spans_end(spans, begun->process, end_ns);
		error = add(awaits, begun, to_ns, AWAIT_UNFINISHED);
	}
	vec_done(&awaits->begun);
	map_done(&awaits->by_task);
	return error;
}

/* ---- methods ---- */

/* The awaits with one stack. */
struct stack_sum {
	uint64_t all_ns;
	uint64_t inner_ns; /* of the awaits of the methods that these await */
	uint32_t stack;
	uint32_t outer; /* stack of most of them; 0: none */
	uint32_t place;
	bool is_own;
};

struct sums {
	VEC(struct stack_sum) list;
	struct map index;
};

static struct stack_sum *find_sum(const struct sums *sums, uint32_t stack)
{
	uint32_t at = stack ? map_get(&sums->index, stack) : 0;

	return at ? &sums->list.items[at - 1] : NULL;
}

static bool is_chosen(const struct tally_row *row, unsigned mask)
{
	return row->key.stack && (row->key.kind & mask) == mask;
}

static int add_sum(struct sums *sums, const struct symbolmap *names, const struct tally_row *row)
{
	struct stack_sum *sum = find_sum(sums, row->key.stack);

	if (!sum) {
		sum = vec_push(&sums->list);
		if (!sum || !map_put(&sums->index, row->key.stack, sums->list.count))
			return -ENOMEM;
		sum->stack = row->key.stack;
		sum->place = row->key.place;
		sum->is_own = own_function(names, row->key.place);
	}
	sum->all_ns += row->amount;
	if (!sum->outer)
		sum->outer = row->key.detail; /* rows are sorted: the largest */
	return 0;
}

/* The time of a method of the user is no time of those that await it, through the framework's too. */
static void take_inner(const struct sums *sums, const struct tally_row *row)
{
	const struct stack_sum *sum = find_sum(sums, row->key.stack);
	struct stack_sum *outer = sum && sum->is_own ? find_sum(sums, row->key.detail) : NULL;

	for (unsigned i = 0; outer && !outer->is_own && i < NESTED_MAX; i++)
		outer = find_sum(sums, outer->outer);
	if (outer && outer != sum)
		outer->inner_ns += row->amount;
}

static int add_method(const struct sums *sums, struct await_methods *methods,
	const struct tally_row *row)
{
	const struct stack_sum *sum = find_sum(sums, row->key.stack);

	const struct stack_sum *outer = find_sum(sums, row->key.detail);

	/* The framework's methods between the user's and what it awaits await too. */
	if (!sum || !sum->is_own || (outer && outer != sum && outer->place == sum->place))
		return 0;
	uint32_t at = map_get(&methods->index, row->key.place);
	if (!at) {
		if (!vec_push(&methods->list) ||
			!map_put(&methods->index, row->key.place, methods->list.count))
			return -ENOMEM;
		at = methods->list.count;
		methods->list.items[at - 1].method = row->key.place;
		methods->list.items[at - 1].first_ns = row->first_ns;
	}
	struct await_method *method = &methods->list.items[at - 1];
	method->count += row->count;
	method->pending += row->key.kind & AWAIT_UNFINISHED ? row->count : 0;
	method->all_ns += row->amount;
	if (row->first_ns < method->first_ns)
		method->first_ns = row->first_ns;
	if (row->amount >= method->stack_ns) {
		method->stack_ns = row->amount;
		method->stack = row->key.stack;
	}
	if (row->most >= method->longest_ns) {
		method->longest_ns = row->most;
		method->longest_at_ns = row->most_at_ns;
	}
	return 0;
}

static void take_self(const struct sums *sums, struct await_methods *methods)
{
	for (uint32_t i = 0; i < sums->list.count; i++) {
		const struct stack_sum *sum = &sums->list.items[i];
		uint32_t at = sum->is_own ? map_get(&methods->index, sum->place) : 0;
		if (at && sum->all_ns > sum->inner_ns)
			methods->list.items[at - 1].self_ns += sum->all_ns - sum->inner_ns;
	}
}

static int compare_methods(const void *a, const void *b)
{
	const struct await_method *x = a;
	const struct await_method *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns > y->self_ns ? -1 : 1;
	if (x->all_ns != y->all_ns)
		return x->all_ns > y->all_ns ? -1 : 1;
	return x->method < y->method ? -1 : x->method > y->method;
}

int awaits_methods(const struct awaits *awaits, const struct symbolmap *names,
	const struct tally_process *process, unsigned mask, struct await_methods *ret_methods)
{
	const struct tally_row *rows = awaits->tally.rows.list.items + process->row_at;
	struct sums sums = { 0 };
	int error = 0;

	*ret_methods = (struct await_methods){ 0 };
	for (uint32_t i = 0; i < process->row_count && !error; i++)
		if (is_chosen(&rows[i], mask))
			error = add_sum(&sums, names, &rows[i]);
	for (uint32_t i = 0; i < process->row_count && !error; i++) {
		if (!is_chosen(&rows[i], mask))
			continue;
		take_inner(&sums, &rows[i]);
		error = add_method(&sums, ret_methods, &rows[i]);
	}
	take_self(&sums, ret_methods);
	if (ret_methods->list.count > 1)
		qsort(ret_methods->list.items, ret_methods->list.count, sizeof(struct await_method),
			compare_methods);
	vec_done(&sums.list);
	map_done(&sums.index);
	return error;
}

void await_methods_done(struct await_methods *methods)
{
	vec_done(&methods->list);
	map_done(&methods->index);
}

void awaits_done(struct awaits *awaits)
{
	tally_done(&awaits->tally);
	vec_done(&awaits->begun);
	map_done(&awaits->by_task);
}
