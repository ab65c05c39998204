/*
 * passing_code.c and the way of its changes into a file: a made-up runtime places and frees methods
 * at random, samples and reads come at random times, and a reader of the file (absorb.c,
 * symbolmap.c) gives every sample its own method or none.
 */
#include "unit/test.h"

#include <unistd.h>

#include "base/bytes.h"
#include "code/clr_names.h"
#include "code/codemap.h"
#include "machine/box.h"
#include "pipeline/reorder_window.h"
#include "recording/passing_code.h"
#include "symbolize/seen_code.h"
#include "symbolize/symbolizer.h"
#include "trace/absorb.h"
#include "trace/clr.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define HEAP_BEGIN UINT64_C(0x7f0000100000)
#define UNIT       UINT64_C(0x40)
#define UNITS      12u
#define US         UINT64_C(1000)
#define MS         UINT64_C(1000000)
#define NAME_ROOM  16u

struct method {
	uint64_t begin;
	uint64_t end;
	uint64_t free_ns; /* not needed from then on */
	uint64_t id;      /* reused, as the runtime does */
	unsigned number;
};

struct taken_sample {
	uint64_t address;
	unsigned number; /* of the method that ran */
	uint32_t epoch;
};

/* The recorder's trace and symbolizer, and the trace that a reader builds from the events. */
struct world {
	struct trace trace;
	struct trace read;
	struct symbolizer symbolizer;
	struct box box;
	uint32_t process;
	uint64_t now_ns;
	uint64_t random;
	VEC(struct method) methods; /* that exist */
	unsigned made_count;
	uint64_t freed_ns; /* when a method was last freed */
	uint64_t noted_ns;
	struct passing_code passing;
	struct reorder_window window;
	VEC(struct code) codes; /* of items in the window, which have an index */
	VEC(uint64_t) sampled;  /* addresses since the last pass */
	VEC(uint64_t) sampled_at;
	VEC(struct taken_sample) samples;
};

/* What a run is like. */
struct habits {
	uint64_t gap_ns;  /* longest between two passes */
	uint64_t life_ns; /* longest of a method */
	bool watches;     /* the recorder knows when the runtime has freed nothing */
	bool asks;        /* the runtime may still send names, and does not */
};

static uint64_t below(struct world *w, uint64_t limit)
{
	w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (w->random >> 33) % limit;
}

static int on_event(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload)
{
	struct world *w = context;
	uint32_t pid = w->trace.processes.items[process ? process : w->process].pid;
	struct event event = {
		.time_ns = w->now_ns,
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len,
		.thread_index = trace_thread(&w->read, pid, pid),
		.schema_index = trace_known_schema(&w->read, known),
		.cpu = EVENT_CPU_UNKNOWN,
		.kind = known_events[known].kind,
	};

	assert_true(absorb_event(&w->read, &event, NULL) >= 0);
	return 0;
}

static void take_removed(void *context, uint32_t process, uint32_t code, const struct code *body)
{
	struct world *w = context;
	struct bytes payload = { 0 };
	const struct code *ended = symbolizer_end_code(&w->symbolizer, process, code, body->begin);

	if (!ended)
		return;
	bytes_u64(&payload, ended->begin);
	bytes_u64(&payload, ended->end);
	assert_int_equal(on_event(w, SPOOR_CODE_REMOVED, process, &payload), 0);
	w->trace.processes.items[process].code_epoch++;
	bytes_done(&payload);
}

static void name_of(unsigned number, char name[NAME_ROOM])
{
	(void)snprintf(name, NAME_ROOM, "M%u", number);
}

/* ---- the runtime ---- */

static const struct method *method_at(const struct world *w, uint64_t address)
{
	vec_each(method, &w->methods)
		if (address >= method->begin && address < method->end)
			return method;
	return NULL;
}

static void make_method(struct world *w, const struct habits *habits)
{
	uint64_t units = 1 + below(w, 3);
	uint64_t begin = HEAP_BEGIN + below(w, UNITS - units + 1) * UNIT;

	for (uint64_t at = begin; at < begin + units * UNIT; at += UNIT)
		if (method_at(w, at))
			return;
	assert_true(vec_add(&w->methods,
		((struct method){ .begin = begin,
			.end = begin + units * UNIT,
			.free_ns = w->now_ns + MS + below(w, habits->life_ns),
			.id = 1 + below(w, 4),
			.number = ++w->made_count })));
}

/* The finalizer thread runs. */
static void free_methods(struct world *w)
{
	for (uint32_t i = w->methods.count; i-- > 0;) {
		if (w->methods.items[i].free_ns > w->now_ns)
			continue;
		w->methods.items[i] = *vec_last(&w->methods);
		w->methods.count--;
		w->freed_ns = w->now_ns;
	}
}

/* ---- the recorder ---- */

static void on_change(void *context, const struct passing_change *change)
{
	struct world *w = context;
	struct code code = { .begin = change->begin,
		.end = change->end,
		.name_space = "",
		.name = CODE_UNREAD_NAME,
		.signature = "",
		.from_ns = change->at_ns,
		.kind = CODE_STUB,
		.exact = true };

	if (change->found) {
		code.name_space = change->found->name_space;
		code.name = strdup(change->found->name);
		code.signature = change->found->signature;
		code.method_id = change->found->method_id;
		code.kind = CODE_DYNAMIC;
	}
	assert_true(vec_add(&w->codes, code));
	struct pending *item = reorder_window_add(&w->window);

	assert_non_null(item);
	item->kind = PENDING_CODE;
	item->time_ns = change->at_ns - 1;
	item->value = w->codes.count - 1;
}

static void read_address(struct world *w, const struct habits *habits, uint64_t address,
	uint64_t sampled_ns, uint64_t before_ns)
{
	char name[NAME_ROOM];
	const struct method *method = method_at(w, address);
	struct clr_found found = { .name_space = "dynamicClass",
		.name = name,
		.signature = "int32  (int32)",
		.module_path = "" };

	if (method) {
		name_of(method->number, name);
		found.begin = method->begin;
		found.end = method->end;
		found.method_id = method->id;
	}
	bool quiet = habits->watches && w->noted_ns && w->freed_ns < w->noted_ns;
	passing_code_read(&w->passing,
		&(struct passing_read){ .address = address,
			.sampled_ns = sampled_ns,
			.before_ns = before_ns,
			.after_ns = w->now_ns,
			.quiet_ns = quiet ? w->noted_ns : 0,
			.found = method ? &found : NULL },
		on_change, w);
}

static void pass(struct world *w, const struct habits *habits)
{
	uint64_t before_ns = w->now_ns;

	for (uint32_t i = 0; i < w->sampled.count; i++) {
		/* The program runs while it is read. */
		w->now_ns += 20 * US;
		if (below(w, 20) == 0)
			free_methods(w);
		if (below(w, 20) == 0)
			make_method(w, habits);
		read_address(w, habits, w->sampled.items[i], w->sampled_at.items[i], before_ns);
	}
	vec_reset(&w->sampled);
	vec_reset(&w->sampled_at);
	w->noted_ns = ++w->now_ns;
}

static void sample(struct world *w)
{
	if (!w->methods.count)
		return;
	const struct method *method = &w->methods.items[below(w, w->methods.count)];
	uint64_t address = method->begin + below(w, (method->end - method->begin) / UNIT) * UNIT +
			   below(w, 2) * 8;
	struct pending *item = reorder_window_add(&w->window);
	bool known = false;

	assert_non_null(item);
	assert_true(vec_add(&w->samples,
		((struct taken_sample){ .address = address, .number = method->number })));
	item->kind = PENDING_SAMPLE;
	item->time_ns = w->now_ns;
	item->value = w->samples.count - 1;
	vec_each(other, &w->sampled)
		known |= *other == address;
	if (!known)
		assert_true(vec_add(&w->sampled, address) && vec_add(&w->sampled_at, w->now_ns));
}

static void take_code(struct world *w, const struct code *code)
{
	assert_int_equal(seen_code_add(&w->symbolizer, w->process, code, ""), 0);
	symbolizer_removed_codes(&w->symbolizer, take_removed, w);
	if (code->kind == CODE_DYNAMIC)
		free((char *)(uintptr_t)code->name);
}

static void take_sample(struct world *w, struct taken_sample *taken, uint64_t time_ns)
{
	uint32_t stack = stack_table_intern(&w->trace.stacks, &taken->address, 1);
	uint32_t sound;

	assert_int_equal(symbolizer_hit(&w->symbolizer, w->process, stack, time_ns, &sound), 0);
	uint32_t process = trace_find_process(&w->read, (uint32_t)getpid());
	taken->epoch = process ? w->read.processes.items[process].code_epoch : 0;
}

static void flush(struct world *w, uint64_t until_ns)
{
	struct pending *item;
	uint64_t late_ns;

	reorder_window_sort(&w->window, until_ns);
	while ((item = reorder_window_next(&w->window, &late_ns))) {
		if (item->kind == PENDING_CODE)
			take_code(w, &w->codes.items[item->value]);
		else
			take_sample(w, &w->samples.items[item->value], item->time_ns);
	}
	assert_int_equal(symbolizer_resolve(&w->symbolizer, w->now_ns), 0);
}

static void set_up_world(struct world *w, uint64_t seed)
{
	box_read(&w->box);
	assert_int_equal(trace_init(&w->trace), 0);
	assert_int_equal(trace_init(&w->read), 0);
	struct symbolizer_options options = {
		.trace = &w->trace, .box = &w->box, .emit = on_event, .context = w
	};
	assert_int_equal(symbolizer_init(&w->symbolizer, &options), 0);
	w->process = trace_process(&w->trace, (uint32_t)getpid());
	/* no event is read from the process, whose memory has no such code */
	w->trace.processes.items[w->process].ended = true;
	w->now_ns = 1000 * MS;
	w->random = seed;
	struct mapping *mapping =
		&w->trace.mappings.items[trace_add_mapping(&w->trace, w->process)];
	mapping->begin = HEAP_BEGIN;
	mapping->end = HEAP_BEGIN + UNITS * UNIT;
	mapping->path = trace_add_text(&w->trace, "/memfd:doublemapper");
}

static void tear_down_world(struct world *w)
{
	passing_code_done(&w->passing);
	reorder_window_done(&w->window);
	symbolizer_done(&w->symbolizer);
	trace_done(&w->trace);
	trace_done(&w->read);
	vec_done(&w->methods);
	vec_done(&w->codes);
	vec_done(&w->sampled);
	vec_done(&w->sampled_at);
	vec_done(&w->samples);
}

/* Returns the percentage of samples with a name. No name is wrong. */
static unsigned run(const struct habits *habits, uint64_t seed)
{
	struct world w = { .now_ns = 0 };
	struct symbolmap map;
	unsigned named = 0;

	set_up_world(&w, seed);
	struct symbolizer_process *own = symbolizer_process(&w.symbolizer, w.process);

	own->managed = habits->asks ? MANAGED_ASKING : MANAGED_REFUSED;
	uint64_t pass_ns = w.now_ns;
	uint64_t flush_ns = w.now_ns;
	bool settled = false;

	while (w.now_ns < 3000 * MS) {
		w.now_ns += 100 * US + below(&w, 900 * US);
		if (below(&w, 4) == 0)
			make_method(&w, habits);
		if (below(&w, 8) == 0)
			free_methods(&w);
		if (w.now_ns >= 1600 * MS && !settled) {
			own->managed = MANAGED_REFUSED;
			if (habits->asks)
				passing_code_end(&w.passing, on_change, &w);
			settled = true;
		}
		sample(&w);
		if (w.now_ns >= pass_ns) {
			pass(&w, habits);
			pass_ns = w.now_ns + below(&w, habits->gap_ns);
			/* as in live_step(): the rings are always read before a flush */
			if (w.now_ns >= flush_ns) {
				flush(&w, w.now_ns - REORDER_WINDOW_NS);
				flush_ns = w.now_ns + 500 * MS;
			}
		}
	}
	passing_code_end(&w.passing, on_change, &w);
	flush(&w, UINT64_MAX);
	assert_int_equal(symbolizer_resolve(&w.symbolizer, w.now_ns), 0);
	symbolizer_removed_codes(&w.symbolizer, take_removed, &w);
	assert_int_equal(symbolizer_finish(&w.symbolizer), 0);
	assert_int_equal(symbolmap_init(&map, &w.read, METHOD_NAME_LONG), 0);
	vec_each(taken, &w.samples) {
		char right[64];
		uint32_t function =
			symbolmap_find(&map, trace_find_process(&w.read, (uint32_t)getpid()),
				taken->address, taken->epoch);
		const char *name = trace_text(&w.read, map.functions.items[function].name);
		(void)snprintf(right, sizeof(right), "dynamicClass.M%u(int)", taken->number);
		named += map.functions.items[function].named;
		if (map.functions.items[function].named)
			assert_string_equal(name, right);
		else
			assert_string_equal(name, CODE_UNREAD_NAME);
	}
	unsigned percent = named * 100 / w.samples.count;
	symbolmap_done(&map);
	tear_down_world(&w);
	return percent;
}

static unsigned run_many(const struct habits *habits)
{
	unsigned least = 100;

	for (uint64_t seed = 1; seed <= 8; seed++) {
		unsigned percent = run(habits, seed);
		least = percent < least ? percent : least;
	}
	return least;
}

/* Methods that live for many passes have their names. */
static void test_long_lived(void **state)
{
	(void)state;
	assert_true(run_many(&(struct habits){ .gap_ns = 10 * MS, .life_ns = 800 * MS }) >= 85);
}

/* Most methods are gone before the second read. */
static void test_short_lived(void **state)
{
	(void)state;
	assert_true(run_many(&(struct habits){ .gap_ns = 40 * MS, .life_ns = 30 * MS }) >= 7);
}

static void test_watched(void **state)
{
	struct habits habits = { .gap_ns = 10 * MS, .life_ns = 100 * MS };

	(void)state;
	unsigned without = run(&habits, 1);

	habits.watches = true;
	assert_true(run(&habits, 1) > without);
	assert_true(run_many(&habits) >= 70);
	habits.gap_ns = 2 * MS;
	habits.life_ns = 5 * MS;
	assert_true(run_many(&habits) >= 70);
}

/*
 * The recorder does not run for longer than the reorder window. Hardly a sample has a name then;
 * run() fails for one that is wrong.
 */
static void test_delayed(void **state)
{
	(void)state;
	(void)run_many(&(struct habits){
		.gap_ns = 700 * MS, .life_ns = 600 * MS, .watches = true });
	(void)run_many(&(struct habits){ .gap_ns = 700 * MS, .life_ns = 20 * MS });
}

/* All that was read takes effect when the runtime is known not to answer. */
static void test_asked(void **state)
{
	(void)state;
	assert_true(run_many(&(struct habits){ .gap_ns = 10 * MS,
			    .life_ns = 100 * MS,
			    .watches = true,
			    .asks = true }) >= 55);
}

struct seen_change {
	unsigned count;
	uint64_t at_ns;
	bool named;
};

static void note_change(void *context, const struct passing_change *change)
{
	struct seen_change *seen = context;

	seen->count++;
	seen->at_ns = change->at_ns;
	seen->named = change->found != NULL;
}

/* A torn read, of a name that no code has, is not repeated: it names nothing. */
static void test_torn(void **state)
{
	struct passing_code code = { .replaced_ns = 0 };
	struct clr_found found = { .begin = 100,
		.end = 200,
		.name_space = "",
		.name = "A",
		.signature = "",
		.module_path = "" };
	struct passing_read read = {
		.address = 150, .sampled_ns = 10, .before_ns = 20, .after_ns = 21, .found = &found
	};
	struct seen_change seen = { .count = 0 };

	(void)state;
	passing_code_read(&code, &read, note_change, &seen);
	assert_int_equal(seen.count, 1); /* the samples before it have no name */
	assert_false(seen.named);
	assert_true(passing_code_has(&code, 199));
	assert_false(passing_code_has(&code, 200));
	found.name = "B";
	assert_true(passing_code_is_new(&code, &found));
	read.sampled_ns = 25;
	read.before_ns = 30;
	read.after_ns = 31;
	passing_code_read(&code, &read, note_change, &seen);
	assert_int_equal(seen.count, 2);
	assert_false(seen.named);
	read.before_ns = 40;
	read.after_ns = 41;
	passing_code_read(&code, &read, note_change, &seen);
	assert_int_equal(seen.count, 3);
	assert_true(seen.named);
	assert_int_equal(seen.at_ns, 31);
	/* The method after the last read is not known. */
	passing_code_end(&code, note_change, &seen);
	assert_int_equal(seen.count, 4);
	assert_false(seen.named);
	assert_int_equal(seen.at_ns, 41);
	passing_code_done(&code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_long_lived),
		cmocka_unit_test(test_short_lived),
		cmocka_unit_test(test_watched),
		cmocka_unit_test(test_delayed),
		cmocka_unit_test(test_asked),
		cmocka_unit_test(test_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
