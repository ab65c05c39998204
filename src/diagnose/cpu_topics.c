/* See cpu_topics.h. */
#include "diagnose/cpu_topics.h"

#include <errno.h>
#include <string.h>

#include "analysis/own_function.h"
#include "analysis/profile.h"
#include "base/map.h"
#include "base/text.h"
#include "diagnose/facts.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

enum topic {
	TOPIC_HOT,
	TOPIC_NATIVE,
	TOPIC_JIT,
	TOPIC_EXCEPTION,
	TOPIC_COLLECT,
	TOPIC_LOCK,
	TOPIC_START,
	TOPIC_WRITE,
	TOPIC_RUNTIME,
	TOPIC_TIERING, /* the JIT compiler's own thread, which optimizes hot methods */
	TOPIC_COUNT
};

static const struct {
	int place; /* enum place_kind; -1: none */
	int share; /* enum fact; -1: none */
} topics[TOPIC_COUNT] = {
	[TOPIC_HOT] = { PLACE_hot, FACT_hot_share },
	[TOPIC_NATIVE] = { PLACE_native, FACT_native_share },
	[TOPIC_JIT] = { PLACE_jit, FACT_jit_share },
	[TOPIC_EXCEPTION] = { PLACE_thrower, FACT_exception_share },
	[TOPIC_COLLECT] = { PLACE_collector, -1 },
	[TOPIC_LOCK] = { PLACE_locker, FACT_lock_share },
	[TOPIC_START] = { PLACE_starter, FACT_start_share },
	[TOPIC_WRITE] = { PLACE_writer, FACT_write_share },
	[TOPIC_RUNTIME] = { PLACE_allocator, FACT_runtime_share },
	[TOPIC_TIERING] = { -1, -1 },
};

/* A frame that decides the topic of its stack, by the beginning of its name or module. */
static const struct {
	const char *method; /* NULL: any of the module */
	const char *module; /* NULL: any */
	enum topic topic;
} markers[] = {
	{ "System.Runtime.EH.", NULL, TOPIC_EXCEPTION },
	{ "System.GC.Collect(", NULL, TOPIC_COLLECT },
	{ "System.GC._Collect(", NULL, TOPIC_COLLECT },
	{ "System.Threading.Monitor.Enter", NULL, TOPIC_LOCK },
	{ "System.Threading.Monitor.TryEnter", NULL, TOPIC_LOCK },
	{ "System.Threading.Lock.Enter", NULL, TOPIC_LOCK },
	{ "System.Threading.Lock.TryEnter", NULL, TOPIC_LOCK },
	{ "System.Threading.SpinLock.", NULL, TOPIC_LOCK },
	{ "System.Diagnostics.Process.Start", NULL, TOPIC_START },
	{ "System.IO.RandomAccess.Write", NULL, TOPIC_WRITE },
	{ "System.IO.Strategies.OSFileStreamStrategy.Write", NULL, TOPIC_WRITE },
	{ "System.ConsolePal.Write", NULL, TOPIC_WRITE },
	{ "Interop+Sys.Write(", NULL, TOPIC_WRITE },
	{ "System.Linq.Expressions.Compiler.", NULL, TOPIC_JIT },
	{ "System.Reflection.Emit.", NULL, TOPIC_JIT },
	{ "System.Text.RegularExpressions.RegexCompiler.", NULL, TOPIC_JIT },
	{ NULL, "libclrjit", TOPIC_JIT },
};

/* Functions of the kernel that write to files. */
static const char *const kernel_writes[] = { "ksys_write", "ksys_pwrite64", "vfs_write",
	"do_writev", "do_pwritev" };

/* Code that works for its caller: the caller decides the topic. */
static const char *const neutral_modules[] = { "libc.so", "libc-", "libm.so", "libpthread", "ld-",
	"libSystem.Native", "kernel", "[vdso]", "linux-vdso" };

static const char *const runtime_modules[] = { "libcoreclr", "libclrgc", "libclrjit", "libhostfxr",
	"libhostpolicy", "libcoreclrtraceptprovider" };

static bool begins_with_any(const char *text, const char *const *starts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (text_begins_with(text, starts[i]))
			return true;
	return false;
}

#define BEGINS_WITH_ANY(text, list) \
	begins_with_any((text), (list), sizeof(list) / sizeof((list)[0]))

static bool is_managed(const struct function *function)
{
	return function->kind == FUNCTION_JIT || function->kind == FUNCTION_READYTORUN;
}

/* The weight of one (topic, own method, leaf) of a process. */
struct topic_sum {
	uint64_t weight_ns;
	uint64_t stack_ns; /* of its heaviest stack */
	uint32_t stack;    /* in profile.stacks */
	uint32_t method;   /* functions; 0: no own method is on the stack */
	uint32_t leaf;     /* functions: the first frame that is not neutral */
	uint8_t topic;
};

struct topic_gathering {
	struct facts *facts;
	const struct profile *profile;
	const struct symbolmap *names;
	VEC(struct topic_sum) sums; /* of one process; item 0 unused */
	struct map index;
	uint64_t topic_ns[TOPIC_COUNT];
	uint64_t all_ns;
};

static const char *text_of(const struct topic_gathering *g, uint32_t text)
{
	return trace_text(g->profile->trace, text);
}

static const char *module_of(const struct topic_gathering *g, const struct function *function)
{
	return text_of(g, function->module);
}

static bool find_marker(const struct topic_gathering *g, const struct function *function,
	enum topic *ret_topic)
{
	const char *method = text_of(g, function->full_name);
	const char *module = module_of(g, function);

	if (function->kind == FUNCTION_KERNEL && BEGINS_WITH_ANY(method, kernel_writes)) {
		*ret_topic = TOPIC_WRITE;
		return true;
	}
	for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++) {
		if (markers[i].method ? is_managed(function) &&
						text_begins_with(method, markers[i].method)
				      : text_begins_with(module, markers[i].module)) {
			*ret_topic = markers[i].topic;
			return true;
		}
	}
	return false;
}

/* Its symbols may be fetched; until then it is no method to change. */
static bool is_unnamed(const struct function *function)
{
	return function->kind == FUNCTION_NATIVE && !function->named;
}

/* The topic of a stack without a marker, by the first frame that is not neutral. */
static enum topic topic_of_leaf(const struct topic_gathering *g, const struct function *leaf,
	bool managed_process)
{
	if (BEGINS_WITH_ANY(module_of(g, leaf), runtime_modules))
		return TOPIC_RUNTIME;
	if (is_unnamed(leaf))
		return TOPIC_NATIVE;
	return is_managed(leaf) || leaf->kind == FUNCTION_STUB || !managed_process ? TOPIC_HOT
										   : TOPIC_NATIVE;
}

static void classify(const struct topic_gathering *g, const struct profile_stack *stack,
	bool managed_process, struct topic_sum *ret_sum)
{
	const uint32_t *frames = &g->profile->functions.items[stack->at];
	enum topic topic = TOPIC_COUNT;

	*ret_sum = (struct topic_sum){ 0 };
	for (uint32_t i = 0; i < stack->frame_count; i++) {
		const struct function *function = &g->names->functions.items[frames[i]];
		bool neutral = function->kind == FUNCTION_KERNEL ||
			       BEGINS_WITH_ANY(module_of(g, function), neutral_modules);
		if (!ret_sum->leaf && !neutral)
			ret_sum->leaf = frames[i];
		if (topic == TOPIC_COUNT)
			(void)find_marker(g, function, &topic); /* none: as before */
		if (!ret_sum->method && own_function(g->names, frames[i]))
			ret_sum->method = frames[i];
	}
	if (!ret_sum->leaf && stack->frame_count)
		ret_sum->leaf = frames[0];
	if (topic == TOPIC_JIT && !ret_sum->method)
		topic = TOPIC_TIERING;
	if (topic == TOPIC_COUNT)
		topic = topic_of_leaf(g, &g->names->functions.items[ret_sum->leaf],
			managed_process);
	if (!managed_process)
		ret_sum->method = ret_sum->leaf;
	ret_sum->topic = (uint8_t)topic;
}

static struct topic_sum *find_sum(struct topic_gathering *g, const struct topic_sum *of)
{
	/* A native function is shown beside its caller, so it tells sums apart; others do not. */
	uint32_t leaf = of->topic == TOPIC_NATIVE ? of->leaf : 0;
	uint64_t key = hash_u64(((uint64_t)of->method << 32 | leaf) * TOPIC_COUNT + of->topic);
	struct map_walk walk;

	for (walk = map_find(&g->index, key); walk.value; map_next(&walk)) {
		struct topic_sum *sum = &g->sums.items[walk.value];
		if (sum->method == of->method && sum->topic == of->topic &&
			(!leaf || sum->leaf == leaf))
			return sum;
	}
	if ((!g->sums.count && !vec_push(&g->sums)) || !vec_add(&g->sums, *of) ||
		!map_add(&g->index, key, g->sums.count - 1))
		return NULL;
	return vec_last(&g->sums);
}

static int add_stack(struct topic_gathering *g, uint32_t index, bool managed_process)
{
	const struct profile_stack *stack = &g->profile->stacks.items[index];
	struct topic_sum of;

	g->all_ns += stack->weight_ns;
	if (!stack->frame_count)
		return 0;
	classify(g, stack, managed_process, &of);
	g->topic_ns[of.topic] += stack->weight_ns;
	struct topic_sum *sum = find_sum(g, &of);
	if (!sum)
		return -ENOMEM;
	sum->weight_ns += stack->weight_ns;
	if (stack->weight_ns > sum->stack_ns) {
		sum->stack_ns = stack->weight_ns;
		sum->stack = index;
		sum->leaf = of.leaf;
	}
	return 0;
}

/*
 * Whether native code without frame pointers hides the callers: no method of the user's is on the
 * stack, and the recording has no stacks that were unwound.
 */
static bool lacks_callers(const struct topic_gathering *g, const struct process_facts *process,
	const struct topic_sum *sum)
{
	return process->managed && !sum->method &&
	       g->profile->trace->recording.session.call_graph == SESSION_FRAME_POINTERS;
}

static int set_place(struct topic_gathering *g, struct process_facts *process, enum topic topic)
{
	const struct topic_sum *most = NULL;

	for (uint32_t i = 1; i < g->sums.count; i++) {
		const struct topic_sum *sum = &g->sums.items[i];
		if (sum->topic != topic)
			continue;
		/* The framework's own work is named where no method of the user calls it. */
		if (!most || (sum->method && !most->method) ||
			(!sum->method == !most->method && sum->weight_ns > most->weight_ns))
			most = sum;
	}
	if (!most || topics[topic].place < 0 || (!most->method && topic == TOPIC_RUNTIME))
		return 0;
	struct place *place = &process->places[topics[topic].place];
	const struct profile_stack *stack = &g->profile->stacks.items[most->stack];
	const struct place_stack shown = { .functions = &g->profile->functions.items[stack->at],
		.count = stack->frame_count,
		.method = most->method ? most->method : most->leaf,
		.callee = most->leaf };
	if (topic == TOPIC_NATIVE && !process->managed &&
		is_unnamed(&g->names->functions.items[most->leaf]))
		process->words[WORD_unnamed] = strtab_add_z(&g->facts->texts,
			module_of(g, &g->names->functions.items[most->leaf]));
	if (topic == TOPIC_NATIVE && lacks_callers(g, process, most))
		process->words[WORD_callers] = strtab_add_z(&g->facts->texts, "--call-graph auto");
	int error = facts_set_place(g->facts, place, g->names, &shown);
	place->share = (double)most->weight_ns / (double)g->topic_ns[topic];
	return error;
}

static int set_facts(struct topic_gathering *g, struct process_facts *process)
{
	int error = 0;

	for (unsigned t = 0; t < TOPIC_COUNT && !error && g->all_ns; t++) {
		enum topic topic = (enum topic)t;
		double share = (double)g->topic_ns[topic] / (double)g->all_ns;
		error = set_place(g, process, topic);
		/* What one method has is what a change of it can win back. */
		if (topic == TOPIC_HOT || topic == TOPIC_NATIVE)
			share *= process->places[topics[topic].place].share;
		if (topics[topic].share >= 0)
			facts_set(process, (enum fact)topics[topic].share, share);
	}
	return error;
}

int cpu_topics_gather(struct facts *facts, const struct profile *profile,
	const struct symbolmap *names)
{
	struct topic_gathering g = { .facts = facts, .profile = profile, .names = names };
	int error = 0;

	for (uint32_t i = 0; i < profile->stacks.count && !error;) {
		uint32_t index = profile->stacks.items[i].process;
		struct process_facts *process =
			facts_find(facts, profile->trace->processes.items[index].pid);
		vec_reset(&g.sums);
		map_reset(&g.index);
		memset(g.topic_ns, 0, sizeof(g.topic_ns));
		g.all_ns = 0;
		for (; i < profile->stacks.count && profile->stacks.items[i].process == index; i++)
			if (process && !error)
				error = add_stack(&g, i, process->managed);
		if (process && !error)
			error = set_facts(&g, process);
	}
	vec_done(&g.sums);
	map_done(&g.index);
	return error;
}
