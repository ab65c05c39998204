/*
 * symbolizer.c: sampled addresses get a mapping and a name in the file, and a reader (absorb.c,
 * symbolmap.c) finds the same name again, also when several methods used the same JIT memory one
 * after the other.
 */
#include "unit/test.h"

#include <unistd.h>

#include "base/bytes.h"
#include "code/arch.h"
#include "machine/box.h"
#include "symbolize/symbolizer.h"
#include "trace/absorb.h"
#include "trace/clr.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define JIT_BEGIN UINT64_C(0x7f0000100000)
#define JIT_END   UINT64_C(0x7f0000200000)

/* Two traces: the recorder's, and the one that a reader builds from the events. */
struct fixture {
	struct trace trace;
	struct trace read;
	struct symbolizer symbolizer;
	struct box box;
	uint32_t process;
	uint32_t counts[KNOWN_EVENT_COUNT];
	uint64_t time_ns;
};

static int on_event(void *context, enum known_event known, uint32_t process,
	const struct bytes *payload)
{
	struct fixture *f = context;
	uint32_t pid = f->trace.processes.items[process ? process : f->process].pid;
	struct event event = {
		.time_ns = f->time_ns,
		.payload = payload->data,
		.payload_size = (uint32_t)payload->len,
		.thread_index = trace_thread(&f->read, pid, pid),
		.schema_index = trace_known_schema(&f->read, known),
		.cpu = EVENT_CPU_UNKNOWN,
		.kind = known_events[known].kind,
	};

	f->counts[known]++;
	assert_true(absorb_event(&f->read, &event, NULL) >= 0);
	return 0;
}

static uint32_t add_mapping(struct fixture *f, uint64_t begin, uint64_t end, uint64_t offset,
	const char *path)
{
	uint32_t index = trace_add_mapping(&f->trace, f->process);
	struct mapping *mapping = &f->trace.mappings.items[index];

	mapping->begin = begin;
	mapping->end = end;
	mapping->file_offset = offset;
	mapping->path = trace_add_text(&f->trace, path);
	return index;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	box_read(&f->box);
	assert_int_equal(trace_init(&f->trace), 0);
	assert_int_equal(trace_init(&f->read), 0);
	struct symbolizer_options options = {
		.trace = &f->trace, .box = &f->box, .emit = on_event, .context = f
	};
	assert_int_equal(symbolizer_init(&f->symbolizer, &options), 0);
	f->process = trace_process(&f->trace, (uint32_t)getpid());
	f->time_ns = 1000;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	symbolizer_done(&f->symbolizer);
	trace_done(&f->trace);
	trace_done(&f->read);
	free(f);
	return 0;
}

static uint32_t hit(struct fixture *f, const uint64_t *frames, uint32_t count, uint64_t time_ns)
{
	uint32_t stack = stack_table_intern(&f->trace.stacks, frames, count);
	uint32_t sound = 0;

	assert_int_equal(symbolizer_hit(&f->symbolizer, f->process, stack, time_ns, &sound), 0);
	return sound;
}

static void add_method(struct fixture *f, const char *name, uint64_t begin, uint64_t size,
	uint64_t from_ns)
{
	struct code code = {
		.begin = begin,
		.end = begin + size,
		.method_id = begin ^ from_ns,
		.from_ns = from_ns,
		.until_ns = UINT64_MAX,
		.name_space = "Shop.Pricing",
		.name = name,
		.signature = "int32  (int32)",
		.kind = CODE_JIT,
		.tier = TIER_1,
	};

	assert_int_equal(
		codemap_add(&symbolizer_process(&f->symbolizer, f->process)->codemap, &code), 0);
}

static const char *name_at(struct fixture *f, struct symbolmap *map, uint64_t address,
	uint32_t epoch)
{
	uint32_t process = trace_find_process(&f->read, (uint32_t)getpid());
	uint32_t function = symbolmap_find(map, process, address, epoch);

	assert_int_not_equal(function, 0);
	return trace_text(&f->read, map->functions.items[function].name);
}

/* Any function of this program can be used. */
static void test_native(void **state)
{
	struct fixture *f = *state;
	uint64_t address = (uint64_t)(uintptr_t)test_native;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	struct symbolmap map;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long begin;
		unsigned long end;
		unsigned long offset;
		char path[400];
		if (sscanf(line, "%lx-%lx r-xp %lx %*s %*s %399s", &begin, &end, &offset, path) ==
				4 &&
			address >= begin && address < end)
			add_mapping(f, begin, end, offset, path);
	}
	fclose(maps);
	uint64_t frames[] = { address + 4, address + 4 };

	hit(f, frames, 2, 500);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 600), 0);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_MAPPING], 1);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 1);
	assert_int_equal(f->symbolizer.frames_total, 2);
	assert_int_equal(f->symbolizer.frames_unnamed[UNNAMED_NO_SYMBOLS], 0);
	assert_int_equal(symbolmap_init(&map, &f->read, METHOD_NAME_LONG), 0);
	assert_string_equal(name_at(f, &map, address + 4, 0), "test_native");
	symbolmap_done(&map);
}

static void test_wrong_walk(void **state)
{
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN, JIT_BEGIN + 16, 0x1234000, JIT_BEGIN + 32 };
	uint32_t count;

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "/memfd:doublemapper (deleted)");
	uint32_t sound = hit(f, frames, 4, 10);

	stack_table_get(&f->trace.stacks, sound, &count);
	assert_int_equal(count, 2);
	assert_int_equal(hit(f, frames, 4, 11), sound); /* the same at the second time */
	uint64_t leaf[] = { 0x1234000 };                /* a stack keeps at least its leaf */
	stack_table_get(&f->trace.stacks, hit(f, leaf, 1, 12), &count);
	assert_int_equal(count, 1);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->symbolizer.frames_unnamed[UNNAMED_NO_MAPPING], 1);
}

static void take_removed(void *context, uint32_t process, uint32_t code, const struct code *body)
{
	struct fixture *f = context;
	struct bytes payload = { 0 };
	const struct code *ended = symbolizer_end_code(&f->symbolizer, process, code, body->begin);

	if (!ended)
		return;
	bytes_u64(&payload, ended->begin);
	bytes_u64(&payload, ended->end);
	assert_int_equal(on_event(f, SPOOR_CODE_REMOVED, process, &payload), 0);
	f->trace.processes.items[process].code_epoch++;
	bytes_done(&payload);
}

static void test_name_reported_late(void **state)
{
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN + 0x40 };
	struct symbolmap map;

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "/memfd:doublemapper");
	symbolizer_process(&f->symbolizer, f->process)->managed = MANAGED_KNOWN;
	hit(f, frames, 1, 100);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 200), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 0);
	add_method(f, "Burn", JIT_BEGIN, 0x100, 90);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 300), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 1);
	assert_int_equal(f->counts[SPOOR_CODE_ADDED], 1);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->symbolizer.frames_unnamed[UNNAMED_NO_METHOD], 0);
	assert_int_equal(symbolmap_init(&map, &f->read, METHOD_NAME_LONG), 0);
	assert_string_equal(name_at(f, &map, JIT_BEGIN + 0x40, 0), "Shop.Pricing.Burn(int)");
	symbolmap_done(&map);
}

/* A method of a module that only the rundown names: its symbol waits for the module. */
static void test_module_reported_late(void **state)
{
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN + 0x40 };
	struct code code = {
		.begin = JIT_BEGIN,
		.end = JIT_BEGIN + 0x100,
		.method_id = 1,
		.module_id = 77,
		.from_ns = 90,
		.until_ns = UINT64_MAX,
		.name_space = "Shop.Pricing",
		.name = "Burn",
		.signature = "int32  (int32)",
		.kind = CODE_OSR,
		.tier = TIER_1_OSR,
	};
	struct symbolmap map;

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "/memfd:doublemapper");
	struct symbolizer_process *own = symbolizer_process(&f->symbolizer, f->process);

	own->managed = MANAGED_ASKING;
	assert_int_equal(codemap_add(&own->codemap, &code), 0);
	hit(f, frames, 1, 100);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 200), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 0);
	assert_int_equal(codemap_add_module(&own->codemap, 77, "/app/Shop.dll", 0), 0);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 300), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 1);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(symbolmap_init(&map, &f->read, METHOD_NAME_LONG), 0);
	uint32_t function = symbolmap_find(&map, trace_find_process(&f->read, (uint32_t)getpid()),
		frames[0], 0);
	assert_string_equal(trace_text(&f->read, map.functions.items[function].module), "Shop.dll");
	symbolmap_done(&map);
}

/*
 * The runtime ends during its rundown, so modules stay without a name: the names of the methods are
 * written nevertheless.
 */
static void test_module_never_reported(void **state)
{
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN + 0x40 };

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "/memfd:doublemapper");
	struct symbolizer_process *own = symbolizer_process(&f->symbolizer, f->process);

	own->managed = MANAGED_ASKING;
	add_method(f, "Burn", JIT_BEGIN, 0x100, 90);
	own->codemap.codes.items[0].module_id = 77;
	hit(f, frames, 1, 100);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 200), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 0);
	own->managed = MANAGED_REFUSED;
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 300), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 1);
	/* A body that ends before its module is known is written, too. */
	own->managed = MANAGED_ASKING;
	add_method(f, "Freed", JIT_BEGIN + 0x200, 0x100, 90);
	own->codemap.codes.items[1].module_id = 77;
	frames[0] = JIT_BEGIN + 0x240;
	hit(f, frames, 1, 400);
	codemap_remove(&own->codemap, JIT_BEGIN + 0x200, 450);
	assert_non_null(symbolizer_end_code(&f->symbolizer, f->process, 1, JIT_BEGIN + 0x200));
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 2);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
}

/*
 * Code that is in no rundown needs another rundown if it has samples after the start of the last
 * one; that rundown names it.
 */
static void test_second_rundown(void **state)
{
	struct fixture *f = *state;
	uint64_t before[] = { JIT_BEGIN };
	uint64_t after[] = { JIT_BEGIN + 0x100 };

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "/memfd:doublemapper (deleted)");
	struct symbolizer_process *own = symbolizer_process(&f->symbolizer, f->process);

	own->managed = MANAGED_KNOWN;
	own->rundown_ns = 500;
	own->needs_rundown_for_new_methods = true;
	hit(f, before, 1, 400);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 600), 0);
	assert_false(own->has_unresolved_samples);
	hit(f, after, 1, 550);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 600), 0);
	assert_true(own->has_unresolved_samples);
	own->codemap.since_ns = 500;
	add_method(f, "Late", JIT_BEGIN + 0x100, 0x40, 0);
	assert_int_equal(codemap_find(&own->codemap, JIT_BEGIN + 0x100, 550)->from_ns, 500);
	own->rundown_ns = 700;
	own->has_unresolved_samples = false;
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 800), 0);
	assert_false(own->has_unresolved_samples);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->symbolizer.frames_unnamed[UNNAMED_NO_METHOD], 1);
}

static void test_three_owners(void **state)
{
	static const char *const names[] = { "First", "Second", "Third" };
	static const char *const shown[] = { "Shop.Pricing.First(int)", "Shop.Pricing.Second(int)",
		"Shop.Pricing.Third(int)" };
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN + 0x40 };
	struct symbolmap map;

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "/memfd:doublemapper");
	symbolizer_process(&f->symbolizer, f->process)->managed = MANAGED_KNOWN;
	for (uint64_t i = 0; i < 3; i++) {
		f->time_ns = 1000 + i * UINT64_C(1000000000);
		add_method(f, names[i], JIT_BEGIN, 0x100, f->time_ns); /* ends the one before it */
		symbolizer_removed_codes(&f->symbolizer, take_removed, f);
		hit(f, frames, 1, f->time_ns + 10);
		assert_int_equal(symbolizer_resolve(&f->symbolizer, f->time_ns + 20), 0);
	}
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->counts[SPOOR_CODE_ADDED], 3);
	assert_int_equal(f->counts[SPOOR_CODE_REMOVED], 2);
	assert_int_equal(f->symbolizer.frames_total, 3);
	for (int i = 0; i < UNNAMED_CAUSE_COUNT; i++)
		assert_int_equal(f->symbolizer.frames_unnamed[i], 0);
	/* for the last method, so that viewers show it */
	assert_int_equal(f->counts[CLR_METHOD_UNLOAD_VERBOSE], 1);
	assert_int_equal(symbolmap_init(&map, &f->read, METHOD_NAME_LONG), 0);
	for (uint32_t epoch = 0; epoch < 3; epoch++)
		assert_string_equal(name_at(f, &map, JIT_BEGIN + 0x40, epoch), shown[epoch]);
	symbolmap_done(&map);
}

/* Code at an address before the first session has no name; later code at that address has one. */
static void test_code_before_the_session(void **state)
{
	static const char *const names[] = { "Second", "Third", "Fourth" };
	static const char *const shown[] = { "Shop.Pricing.Second(int)", "Shop.Pricing.Third(int)",
		"Shop.Pricing.Fourth(int)" };
	const uint64_t second = UINT64_C(1000000000);
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN + 0x40 };
	uint64_t others[] = { JIT_BEGIN + 0x1040 };
	struct symbolmap map;

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "/memfd:doublemapper");
	symbolizer_process(&f->symbolizer, f->process)->managed = MANAGED_KNOWN;
	hit(f, frames, 1, 100);
	hit(f, others, 1, 100);
	for (uint64_t i = 0; i < 3; i++) {
		f->time_ns = (1 + i) * second;
		add_method(f, names[i], JIT_BEGIN, 0x100, f->time_ns);
		symbolizer_removed_codes(&f->symbolizer, take_removed, f);
		hit(f, frames, 1, f->time_ns + 10);
		assert_int_equal(symbolizer_resolve(&f->symbolizer, f->time_ns + 20), 0);
	}
	add_method(f, "Standing", JIT_BEGIN + 0x1000, 0x100, 2 * second);
	hit(f, others, 1, 3 * second);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->counts[SPOOR_CODE_ADDED], 4);
	assert_int_equal(f->counts[SPOOR_CODE_REMOVED], 2);
	assert_int_equal(symbolmap_init(&map, &f->read, METHOD_NAME_LONG), 0);
	for (uint32_t epoch = 0; epoch < 3; epoch++)
		assert_string_equal(name_at(f, &map, JIT_BEGIN + 0x40, epoch), shown[epoch]);
	assert_string_equal(name_at(f, &map, JIT_BEGIN + 0x1040, 2), "Shop.Pricing.Standing(int)");
	symbolmap_done(&map);
}

static void test_mappings_only(void **state)
{
	struct fixture *f = *state;
	uint64_t frames[] = { arch_here()->kernel_begin + 0x1000, JIT_BEGIN };

	f->symbolizer.options.mappings_only = true;
	add_mapping(f, JIT_BEGIN, JIT_END, 0x1000, "/no/such/library.so");
	hit(f, frames, 2, 10);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_MAPPING], 2); /* also a mapping of the kernel */
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 0);
}

/* Other viewers have a name for it too; it needs no mapping of the process. */
static void test_lost_caller(void **state)
{
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN, STACK_LOST_CALLER, JIT_BEGIN + 8 };
	struct symbolmap map;

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "//anon");
	hit(f, frames, 3, 10);
	frames[0] += 16;
	hit(f, frames, 3, 20);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 1);
	assert_int_equal(f->symbolizer.frames_total, 4); /* it is a mark, not a frame */
	assert_int_equal(f->symbolizer.frames_unnamed[UNNAMED_NO_MEMORY], 0);
	assert_int_equal(f->read.symbols.count, 2); /* item 0 is unused */
	const struct symbol *symbol = &f->read.symbols.items[1];
	assert_int_equal(symbol->begin, STACK_LOST_CALLER);
	assert_string_equal(trace_text(&f->read, symbol->name), STACK_LOST_CALLER_NAME);
	assert_int_equal(symbolmap_init(&map, &f->read, METHOD_NAME_LONG), 0);
	assert_string_equal(name_at(f, &map, STACK_LOST_CALLER, 0), STACK_LOST_CALLER_NAME);
	symbolmap_done(&map);
}

static void test_forgetting_a_process(void **state)
{
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN, JIT_BEGIN + 8 };
	bool dead[8] = { false };

	add_mapping(f, JIT_BEGIN, JIT_END, 0, "//anon");
	hit(f, frames, 2, 10);
	dead[f->process] = true;
	symbolizer_forget_processes(&f->symbolizer, dead, 8);
	assert_int_equal(f->symbolizer.waiting.count, 0);
	assert_int_equal(f->symbolizer.hits.count, 1); /* item 0 */
	assert_int_equal(f->symbolizer.frames_total, 2);
	assert_int_equal(f->symbolizer.frames_unnamed[UNNAMED_NO_SYMBOLS], 2);
	hit(f, frames, 2, 20); /* the next process in that slot starts empty */
	assert_int_equal(f->symbolizer.waiting.count, 2);
}

/*
 * Symbols in the mappings of ended processes are not kept, however many processes end. Those of
 * other processes are kept, and are not written twice.
 */
static void test_many_processes(void **state)
{
	struct fixture *f = *state;
	uint64_t frames[] = { JIT_BEGIN, JIT_BEGIN + 0x40 };
	uint32_t lasting = f->process;
	bool dead[64] = { false };

	for (uint32_t round = 0; round < 40; round++) {
		if (round)
			f->process = trace_process(&f->trace, (uint32_t)getpid() + round);
		add_mapping(f, JIT_BEGIN, JIT_END, 0, "/memfd:doublemapper");
		symbolizer_process(&f->symbolizer, f->process)->managed = MANAGED_KNOWN;
		add_method(f, "Burn", JIT_BEGIN, 0x20, 5);
		add_method(f, "Cool", JIT_BEGIN + 0x40, 0x20, 5);
		hit(f, frames, 2, 10 + round);
		assert_int_equal(symbolizer_resolve(&f->symbolizer, 20 + round), 0);
		assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 2 * (round + 1));
		if (!round)
			continue;
		dead[f->process] = true;
		symbolizer_forget_processes(&f->symbolizer, dead, 64);
		dead[f->process] = false;
		assert_int_equal(f->symbolizer.symbol_index.count, 2);
	}
	f->process = lasting;
	hit(f, (const uint64_t[]){ JIT_BEGIN + 4 }, 1, 100);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 110), 0);
	assert_int_equal(f->counts[SYSTEM_PROCESS_SYMBOL], 2 * 40);
}

/* Code that can be freed has other bytes by the time it is read. */
static void test_code_that_can_be_freed(void **state)
{
	struct fixture *f = *state;
	static const uint8_t bodies[128] = { 0x55, 0xc3 };
	uint64_t begin = (uint64_t)(uintptr_t)bodies;
	uint64_t frames[] = { begin + 1, begin + 65 };

	f->symbolizer.options.code = true;
	add_mapping(f, begin, begin + sizeof(bodies), 0, "/memfd:doublemapper (deleted)");
	struct symbolizer_process *own = symbolizer_process(&f->symbolizer, f->process);
	struct code code = { .begin = begin,
		.end = begin + 64,
		.method_id = 1,
		.from_ns = 1,
		.until_ns = UINT64_MAX,
		.name_space = "Plugin",
		.name = "Stays",
		.signature = "int32  ()",
		.kind = CODE_JIT };
	assert_int_equal(codemap_add(&own->codemap, &code), 0);
	code.begin += 64;
	code.end += 64;
	code.method_id = 2;
	code.name = "Freed";
	code.exact = true; /* as names from memory tell it */
	assert_int_equal(codemap_add(&own->codemap, &code), 0);
	hit(f, frames, 2, 10);
	assert_int_equal(symbolizer_resolve(&f->symbolizer, 20), 0);
	assert_int_equal(symbolizer_finish(&f->symbolizer), 0);
	assert_int_equal(f->counts[SPOOR_CODE_ADDED], 2);
	assert_int_equal(f->counts[SPOOR_CODE_BYTES], 1);
	assert_int_equal(f->symbolizer.code_refused, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_native, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wrong_walk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_name_reported_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_module_reported_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_module_never_reported, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_second_rundown, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_three_owners, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_code_before_the_session, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mappings_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_lost_caller, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_forgetting_a_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_code_that_can_be_freed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_processes, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
