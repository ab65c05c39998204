/* See memory_names.h. */
#include "recording/memory_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/poll_set.h"
#include "code/arch.h"
#include "code/clr_names.h"
#include "code/codemap.h"
#include "dotnet/port.h"
#include "dotnet/runtime_memory.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/free_watch.h"
#include "recording/live_options.h"
#include "recording/passing_code.h"
#include "recording/process_table.h"
#include "recording/removed_code.h"
#include "symbolize/seen_code.h"
#include "symbolize/symbolizer.h"
#include "trace/trace.h"

#define PROCESSES_MAX  1024u
#define ADDRESSES_MAX  262144u /* of one process: 4 MiB */
#define PASSING_MAX    65536u
#define UNIT_BYTES     256u
#define BODY_UNITS_MAX 64u /* of larger bodies, each sampled address is kept */
#define OPEN_GAP_NS    UINT64_C(10000000)
#define OPEN_TRIES_MAX 100u
#define YOUNG_NS       UINT64_C(1000000000)
#define YOUNG_GAP_NS   UINT64_C(10000000)
#define PASSING_GAP_NS UINT64_C(5000000) /* while code is replaced */
#define QUIET_GAP_NS   UINT64_C(40000000)
#define ACTIVE_NS      UINT64_C(1000000000)

enum memory_state {
	MEMORY_CLOSED, /* not read so far */
	MEMORY_OPEN,
	MEMORY_REFUSED, /* no right, or no runtime that can be read */
};

/* An address of code that may be freed, and its first sample since the last pass. */
struct passing_sample {
	uint64_t address;
	uint64_t time_ns;
};

/* A method that is never freed. */
struct lasting_body {
	uint64_t begin;
	uint64_t end;      /* exclusive */
	uint64_t named_ns; /* time of the item with its name */
};

struct memory_process {
	uint32_t pid;
	enum memory_state state;
	struct runtime_memory *memory;
	uint64_t sign_ns; /* when its runtime was noticed */
	uint64_t open_ns; /* next attempt */
	uint32_t tries;
	bool ended;
	enum managed_state managed; /* at its last sample */
	bool bundled;               /* the runtime and the assemblies are in the program's file */
	bool sampled;               /* since the last pass */
	bool missed;      /* a sampled address could not be kept for the end of this pass */
	struct map known; /* address -> 1: it has been looked up, and stays as it is */
	VEC(struct lasting_body) bodies;
	struct map body_units; /* address / UNIT_BYTES -> index + 1 of each body there */
	struct map this_pass;  /* address of code that may be freed -> 1: it is in `samples` */
	VEC(struct passing_sample) samples;
	struct passing_code passing;
	struct free_watch watch;
};

/* Attached to an item of kind PENDING_CODE; the texts follow it. */
struct pending_code {
	struct code code;
	bool bundled; /* the runtime does not report it */
	const char *module_path;
	char texts[];
};

static struct memory_process *find(const struct memory_names *names, uint32_t pid)
{
	uint32_t at = map_get(&names->by_pid, pid);

	return at ? names->list.items[at - 1] : NULL;
}

static void close_process(struct memory_process *process)
{
	runtime_memory_close(process->memory);
	map_done(&process->known);
	vec_done(&process->bodies);
	map_done(&process->body_units);
	map_done(&process->this_pass);
	vec_done(&process->samples);
	passing_code_done(&process->passing);
	free(process);
}

static void drop(struct memory_names *names, uint32_t index)
{
	struct memory_process *process = names->list.items[index];
	struct memory_process *last = names->list.items[names->list.count - 1];

	map_remove(&names->by_pid, process->pid, index + 1);
	names->list.count--;
	if (last != process) {
		map_remove(&names->by_pid, last->pid, names->list.count + 1);
		names->list.items[index] = last;
		/* there is room: two entries were removed */
		(void)map_add(&names->by_pid, last->pid, index + 1);
	}
	close_process(process);
}

/* What the names of this process are: a state of the symbolizer's. */
static enum managed_state state_of(const struct memory_names *names, uint32_t pid)
{
	uint32_t index = process_table_find(names->table, pid);
	struct symbolizer_process *own =
		index ? symbolizer_process(names->table->symbolizer, index) : NULL;

	return own ? own->managed : MANAGED_NONE;
}

void memory_names_sign(void *context, uint32_t pid, const char *path)
{
	struct memory_names *names = context;
	const struct live_options *options = names->table->options;
	unsigned signs = dotnet_signs_of_path(path);

	if (options->no_names || (options->no_dotnet && !names->forced) ||
		!(signs & (DOTNET_SIGN_CORECLR | DOTNET_SIGN_JIT_MEMORY)))
		return;
	struct memory_process *known = find(names, pid);

	if (known && signs & DOTNET_SIGN_CORECLR)
		known->bundled = false;
	if (known || names->list.count >= PROCESSES_MAX)
		return;
	struct memory_process *process = calloc(1, sizeof(*process));
	if (!process || !vec_add(&names->list, process)) {
		free(process);
		return;
	}
	process->pid = pid;
	process->bundled = !(signs & DOTNET_SIGN_CORECLR);
	process->sign_ns = clock_monotonic_ns();
	if (!map_add(&names->by_pid, pid, names->list.count)) {
		names->list.count--;
		free(process);
	}
}

bool memory_names_has(const struct memory_names *names, uint32_t pid)
{
	return names->list.count && find(names, pid);
}

static bool open_process(struct memory_names *names, struct memory_process *process)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (process->state == MEMORY_OPEN)
		return true;
	if (process->state == MEMORY_REFUSED || now_ns < process->open_ns)
		return false;
	process->open_ns = now_ns + OPEN_GAP_NS;
	if (!names->pages)
		names->pages = calloc(1, sizeof(*names->pages));
	int result = names->pages ? runtime_memory_open(&names->table->proc, process->pid,
					    &names->images, names->pages, &process->memory)
				  : -ENOMEM;
	if (result == 0) {
		process->state = MEMORY_OPEN;
		return true;
	}
	/* The runtime may still be starting. */
	if (result != -ENODATA || ++process->tries == OPEN_TRIES_MAX) {
		process->state = MEMORY_REFUSED;
		names->refused_count += result == -EACCES || result == -EPERM;
	}
	return false;
}

static size_t put_text(struct pending_code *side, size_t at, const char *text,
	const char **ret_text)
{
	size_t size = strlen(text) + 1;

	memcpy(side->texts + at, text, size);
	*ret_text = side->texts + at;
	return at + size;
}

static void emit(struct memory_names *names, struct memory_process *process, uint64_t time_ns,
	const struct code *code, const char *module_path)
{
	size_t size = strlen(code->name_space) + strlen(code->name) + strlen(code->signature) +
		      strlen(module_path) + 4;
	struct pending_code *side = malloc(sizeof(*side) + size);
	struct pending *item = side ? reorder_window_add(names->table->writer->window) : NULL;

	if (!item) {
		free(side); /* without memory the method has no name */
		return;
	}
	side->code = *code;
	side->bundled = process->bundled && code->kind == CODE_READYTORUN;
	size_t at = put_text(side, 0, code->name_space, &side->code.name_space);
	at = put_text(side, at, code->name, &side->code.name);
	at = put_text(side, at, code->signature, &side->code.signature);
	(void)put_text(side, at, module_path, &side->module_path);
	item->kind = PENDING_CODE;
	item->time_ns = time_ns;
	item->pid = process->pid;
	item->side = side;
}

static struct code code_of(const struct clr_found *found)
{
	return (struct code){ .begin = found->begin,
		.end = found->end,
		.method_id = found->method_id,
		.module_id = found->module_id,
		.name_space = found->name_space,
		.name = found->name,
		.signature = found->signature,
		.kind = found->kind,
		.tier = found->tier };
}

static struct lasting_body *lasting_body_at(const struct memory_process *process, uint64_t address)
{
	for (struct map_walk w = map_find(&process->body_units, address / UNIT_BYTES); w.value;
		map_next(&w)) {
		struct lasting_body *body = &process->bodies.items[w.value - 1];
		if (address >= body->begin && address < body->end)
			return body;
	}
	return NULL;
}

/* So that no other address of the method is read. Without memory, or room, they are. */
static void keep_body(struct memory_process *process, uint64_t time_ns,
	const struct clr_found *found)
{
	struct lasting_body *known = lasting_body_at(process, found->begin);
	const struct lasting_body body = { found->begin, found->end, time_ns };
	uint64_t first = found->begin / UNIT_BYTES;
	uint64_t last = (found->end - 1) / UNIT_BYTES;

	if (known && known->end == found->end) {
		known->named_ns = time_ns;
		return;
	}
	if (last - first >= BODY_UNITS_MAX || process->body_units.count >= ADDRESSES_MAX ||
		!vec_add(&process->bodies, body))
		return;
	for (uint64_t unit = first; unit <= last; unit++)
		if (!map_add(&process->body_units, unit, process->bodies.count))
			return;
}

/* A method of code that is never freed. */
static void emit_lasting(struct memory_names *names, struct memory_process *process,
	uint64_t time_ns, const struct clr_found *found)
{
	struct code code = code_of(found);

	code.stood_ns = clock_monotonic_ns();
	emit(names, process, time_ns, &code, found->module_path);
	keep_body(process, time_ns, found);
	names->method_count++;
}

struct change_context {
	struct memory_names *names;
	struct memory_process *process;
};

static void on_change(void *context, const struct passing_change *change)
{
	const struct change_context *c = context;
	struct code code = { .begin = change->begin,
		.end = change->end,
		.name_space = "",
		.name = CODE_UNREAD_NAME,
		.signature = "",
		.kind = CODE_STUB };

	if (change->found)
		code = code_of(change->found);
	code.exact = true;
	code.from_ns = change->at_ns;
	code.stood_ns = change->at_ns;
	/* before the samples of that time */
	emit(c->names, c->process, change->at_ns - 1, &code,
		change->found ? change->found->module_path : "");
	c->names->method_count += change->found != NULL;
}

/* Its samples so far have no names from now on. */
static void end_passing(struct memory_names *names, struct memory_process *process)
{
	passing_code_end(&process->passing, on_change,
		&(struct change_context){ .names = names, .process = process });
	vec_reset(&process->samples);
	map_reset(&process->this_pass);
	process->missed = false;
}

static void keep_for_pass(struct memory_process *process, uint64_t time_ns, uint64_t address)
{
	const struct passing_sample sample = { address, time_ns };

	if (process->samples.count >= PASSING_MAX || !map_put(&process->this_pass, address, 1) ||
		!vec_add(&process->samples, sample))
		process->missed = true;
}

/* The runtime reports its methods; precompiled ones are named from their image files. */
static bool is_reported(const struct memory_names *names, const struct memory_process *process)
{
	return !names->forced && process->managed == MANAGED_KNOWN;
}

static void look_up(struct memory_names *names, struct memory_process *process, uint64_t time_ns,
	uint64_t address)
{
	struct clr_names *memory = process->memory->names;
	const struct lasting_body *body = lasting_body_at(process, address);
	bool only_bundled = is_reported(names, process);
	struct clr_found found;

	/* A sample of another CPU's ring may be older than the name: then it is put before it, too. */
	if (body ? body->named_ns <= time_ns
		 : map_get(&process->known, address) || map_get(&process->this_pass, address))
		return;
	if (!only_bundled && passing_code_has(&process->passing, address)) {
		keep_for_pass(process, time_ns, address);
		return;
	}
	bool has = clr_names_find(memory, address, &found);
	if (only_bundled)
		has = has && found.lasts && found.kind == CODE_READYTORUN;
	else if (has ? !found.lasts : clr_names_may_come(memory, address)) {
		keep_for_pass(process, time_ns, address);
		return;
	}
	/* Without memory it is only read again. */
	bool kept = process->known.count < ADDRESSES_MAX && map_put(&process->known, address, 1);
	if (has && kept)
		emit_lasting(names, process, time_ns, &found);
}

void memory_names_sample(struct memory_names *names, uint32_t pid, uint64_t time_ns,
	const uint64_t *frames, uint32_t count)
{
	struct memory_process *process = names->list.count ? find(names, pid) : NULL;
	uint64_t kernel_begin = arch_here()->kernel_begin;

	if (!process || process->state == MEMORY_REFUSED)
		return;
	enum managed_state managed = state_of(names, pid);

	if ((!names->forced && managed == MANAGED_KNOWN && !process->bundled) ||
		!open_process(names, process))
		return;
	/* Now known not to answer: exact bodies so far have no names (seen_code_settle()). */
	if (process->managed == MANAGED_ASKING && managed != MANAGED_ASKING)
		end_passing(names, process);
	process->managed = managed;
	process->sampled = true;
	for (uint32_t i = 0; i < count; i++)
		if (frames[i] < kernel_begin)
			look_up(names, process, time_ns, frames[i]);
}

static int compare_times(const void *a, const void *b)
{
	const struct passing_sample *x = a;
	const struct passing_sample *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/* Reads code that may be freed, at the sampled addresses: from no page that was read before. */
static void read_passing(struct memory_names *names, struct memory_process *process)
{
	struct clr_names *memory = process->memory->names;
	struct change_context context = { names, process };

	if (process->missed) {
		end_passing(names, process);
		return;
	}
	if (!process->samples.count)
		return;
	qsort(process->samples.items, process->samples.count, sizeof(*process->samples.items),
		compare_times);
	uint64_t before_ns = clock_monotonic_ns();
	uint64_t done = 0; /* end of the method that was read last */
	uint64_t done_begin = 0;
	clr_memory_refresh(clr_names_memory(memory));
	vec_each(sample, &process->samples) {
		struct clr_found found;
		if (sample->address >= done_begin && sample->address < done)
			continue;
		bool has = clr_names_find(memory, sample->address, &found);
		uint64_t after_ns = clock_monotonic_ns();
		if (has && found.lasts)
			emit_lasting(names, process, sample->time_ns, &found);
		bool passing = has && !found.lasts;
		bool is_new = passing && passing_code_is_new(&process->passing, &found);
		passing_code_read(&process->passing,
			&(struct passing_read){ .address = sample->address,
				.sampled_ns = sample->time_ns,
				.before_ns = before_ns,
				.after_ns = after_ns,
				.quiet_ns = is_new ? free_watch_since(&process->watch,
							     &names->table->proc, process->pid)
						   : 0,
				.found = passing ? &found : NULL },
			on_change, &context);
		done_begin = passing ? found.begin : 0;
		done = passing ? found.end : 0;
	}
	vec_reset(&process->samples);
	map_reset(&process->this_pass);
}

void memory_names_exec(struct memory_names *names, uint32_t pid)
{
	uint32_t at = map_get(&names->by_pid, pid);

	names->exec_ns = clock_monotonic_ns();
	if (!at)
		return;
	end_passing(names, names->list.items[at - 1]);
	drop(names, at - 1);
}

void memory_names_exit(struct memory_names *names, uint32_t pid)
{
	struct memory_process *process = find(names, pid);

	/* Other rings may still have samples of it. */
	if (process)
		process->ended = true;
}

void memory_names_pass(struct memory_names *names)
{
	for (uint32_t i = names->list.count; i-- > 0;) {
		struct memory_process *process = names->list.items[i];
		if (process->ended) {
			end_passing(names, process);
			drop(names, i);
			continue;
		}
		if (!process->memory)
			continue;
		clr_names_pass(process->memory->names);
		read_passing(names, process);
		if (process->sampled)
			free_watch_note(&process->watch, &names->table->proc, process->pid);
		process->sampled = false;
	}
	if (names->pages)
		clr_pages_pass(names->pages);
}

void memory_names_await(const struct memory_names *names, struct poll_set *set)
{
	const struct live_options *options = names->table->options;
	uint64_t now_ns = clock_monotonic_ns();
	bool soon = now_ns < names->exec_ns + ACTIVE_NS;

	if (options->no_names || (options->no_dotnet && !names->forced))
		return;
	bool replacing = false;
	for (uint32_t i = 0; i < names->list.count; i++) {
		const struct memory_process *process = names->list.items[i];
		soon |= now_ns < process->sign_ns + YOUNG_NS;
		replacing |= process->passing.replaced_ns &&
			     now_ns < process->passing.replaced_ns + ACTIVE_NS;
	}
	if (replacing)
		poll_set_wake(set, now_ns + PASSING_GAP_NS);
	else if (soon)
		poll_set_wake(set, now_ns + YOUNG_GAP_NS);
	else if (options->machine || options->child)
		poll_set_wake(set, now_ns + QUIET_GAP_NS);
}

void memory_names_take(struct memory_names *names, struct pending *item)
{
	struct pending_code *side = item->side;
	uint32_t process = process_table_owner(names->table, item->pid);
	bool exact = side->code.exact;

	item->side = NULL;
	/* Without memory the method has no name. */
	if (process && side->bundled)
		(void)seen_code_add_bundled(names->table->symbolizer, process, &side->code,
			side->module_path);
	else if (process)
		(void)seen_code_add(names->table->symbolizer, process, &side->code,
			side->module_path);
	free(side);
	/* What it replaced ends before the next sample is written. */
	if (process && exact)
		removed_code_end(names->table, process);
}

bool memory_names_reads(struct memory_names *names, uint32_t pid)
{
	struct memory_process *process = find(names, pid);

	/* Before its first sample it is not open. */
	return process && (open_process(names, process) || process->state != MEMORY_REFUSED);
}

size_t memory_names_size_bytes(const struct memory_names *names)
{
	size_t size = names->images.size_bytes + (names->pages ? sizeof(*names->pages) : 0);

	for (uint32_t i = 0; i < names->list.count; i++)
		size += map_size_bytes(&names->list.items[i]->known) +
			map_size_bytes(&names->list.items[i]->body_units) +
			names->list.items[i]->bodies.capacity * sizeof(struct lasting_body) +
			map_size_bytes(&names->list.items[i]->this_pass) +
			names->list.items[i]->samples.capacity * sizeof(struct passing_sample) +
			passing_code_size_bytes(&names->list.items[i]->passing);
	return size;
}

void memory_names_done(struct memory_names *names)
{
	for (uint32_t i = 0; i < names->list.count; i++)
		close_process(names->list.items[i]);
	vec_done(&names->list);
	map_done(&names->by_pid);
	clr_images_done(&names->images);
	free(names->pages);
}
