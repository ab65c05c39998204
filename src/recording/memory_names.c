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
#include "recording/live_options.h"
#include "recording/process_table.h"
#include "recording/removed_code.h"
#include "symbolize/seen_code.h"
#include "symbolize/symbolizer.h"
#include "trace/trace.h"

#define PROCESSES_MAX  1024u
#define ADDRESSES_MAX  262144u /* of one process: 4 MiB */
#define OPEN_GAP_NS    UINT64_C(10000000)
#define OPEN_TRIES_MAX 100u
#define YOUNG_NS       UINT64_C(1000000000)
#define YOUNG_GAP_NS   UINT64_C(10000000)
#define QUIET_GAP_NS   UINT64_C(40000000)
#define ACTIVE_NS      UINT64_C(1000000000)

enum memory_state {
	MEMORY_CLOSED, /* not read so far */
	MEMORY_OPEN,
	MEMORY_REFUSED, /* no right, or no runtime that can be read */
};

struct memory_process {
	uint32_t pid;
	enum memory_state state;
	struct runtime_memory *memory;
	uint64_t sign_ns; /* when its runtime was noticed */
	uint64_t open_ns; /* next attempt */
	uint32_t tries;
	bool ended;
	bool named;           /* a method was found */
	struct map known;     /* address -> 1: it has been looked up */
	struct map passing;   /* begin of code that may be freed -> what was there last */
	struct map places;    /* address of such code -> its distance from the begin, plus one */
	struct map this_pass; /* address of such code -> 1: it was looked up in this pass */
};

/* Attached to an item of kind PENDING_CODE; the texts follow it. */
struct pending_code {
	struct code code;
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
	map_done(&process->passing);
	map_done(&process->places);
	map_done(&process->this_pass);
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
static uint8_t state_of(const struct memory_names *names, uint32_t pid)
{
	uint32_t index = process_table_find(names->table, pid);
	struct symbolizer_process *own =
		index ? symbolizer_process(names->table->symbolizer, index) : NULL;

	return own ? own->managed : (uint8_t)MANAGED_NONE;
}

void memory_names_sign(void *context, uint32_t pid, const char *path)
{
	struct memory_names *names = context;
	const struct live_options *options = names->table->options;

	if (options->no_names || (options->no_dotnet && !names->forced) ||
		!(dotnet_signs_of_path(path) & (DOTNET_SIGN_CORECLR | DOTNET_SIGN_JIT_MEMORY)) ||
		find(names, pid) || names->list.count >= PROCESSES_MAX)
		return;
	struct memory_process *process = calloc(1, sizeof(*process));
	if (!process || !vec_add(&names->list, process)) {
		free(process);
		return;
	}
	process->pid = pid;
	process->sign_ns = clock_monotonic_ns();
	if (!map_add(&names->by_pid, pid, names->list.count)) {
		names->list.count--;
		free(process);
	}
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
	uint64_t from_ns, const struct clr_found *found)
{
	size_t size = strlen(found->name_space) + strlen(found->name) + strlen(found->signature) +
		      strlen(found->module_path) + 4;
	struct pending_code *side = malloc(sizeof(*side) + size);
	struct pending *item = side ? reorder_window_add(names->table->writer->window) : NULL;

	if (!item) {
		free(side); /* without memory the method has no name */
		return;
	}
	side->code = (struct code){ .begin = found->begin,
		.end = found->end,
		.method_id = found->method_id,
		.module_id = found->module_id,
		.from_ns = from_ns,
		.stood_ns = time_ns,
		.kind = found->kind };
	size_t at = put_text(side, 0, found->name_space, &side->code.name_space);
	at = put_text(side, at, found->name, &side->code.name);
	at = put_text(side, at, found->signature, &side->code.signature);
	(void)put_text(side, at, found->module_path, &side->module_path);
	item->kind = PENDING_CODE;
	item->time_ns = time_ns;
	item->pid = process->pid;
	item->side = side;
	process->named = true;
	names->method_count++;
}

static uint32_t mark_of(const struct clr_found *found)
{
	uint64_t hash = hash_u64(found->method_id) ^ hash_bytes(found->name, strlen(found->name)) ^
			hash_bytes(found->name_space, strlen(found->name_space)) ^ found->end;

	return (uint32_t)hash | 1;
}

/* Code that may be freed: other code that was at its begin before has ended by now. */
static void emit_passing(struct memory_names *names, struct memory_process *process,
	uint64_t time_ns, uint64_t address, const struct clr_found *found)
{
	uint32_t before = map_get(&process->passing, found->begin);
	uint32_t mark = mark_of(found);

	if (process->places.count >= ADDRESSES_MAX ||
		!map_put(&process->places, address, (uint32_t)(address - found->begin) + 1) ||
		before == mark)
		return;
	if (map_put(&process->passing, found->begin, mark))
		emit(names, process, time_ns, before ? time_ns : 0, found);
}

/* No method was found where one was before: it has been freed, and its name is not that of a later one. */
static void end_passing(struct memory_names *names, struct memory_process *process,
	uint64_t time_ns, uint64_t address)
{
	uint32_t place = map_get(&process->places, address);
	uint64_t begin = address - place + 1;
	uint32_t mark = place ? map_get(&process->passing, begin) : 0;

	if (!place)
		return;
	map_remove(&process->places, address, place);
	if (!mark)
		return;
	map_remove(&process->passing, begin, mark);
	emit(names, process, time_ns, time_ns,
		&(struct clr_found){ .begin = begin,
			.end = begin + 1,
			.name_space = "",
			.name = "",
			.signature = "",
			.module_path = "" });
}

static void look_up(struct memory_names *names, struct memory_process *process, uint64_t time_ns,
	uint64_t address)
{
	struct clr_found found;

	if (map_get(&process->known, address) || map_get(&process->this_pass, address))
		return;
	if (!clr_names_find(process->memory->names, address, &found)) {
		/* Without memory it is only read again. */
		if (clr_names_may_come(process->memory->names, address)) {
			(void)map_put(&process->this_pass, address, 1);
			end_passing(names, process, time_ns, address);
		} else if (process->known.count < ADDRESSES_MAX) {
			(void)map_put(&process->known, address, 1);
		}
		return;
	}
	if (found.lasts && process->known.count < ADDRESSES_MAX) {
		if (map_put(&process->known, address, 1))
			emit(names, process, time_ns, 0, &found);
	} else if (map_put(&process->this_pass, address, 1)) {
		emit_passing(names, process, time_ns, address, &found);
	}
}

void memory_names_sample(struct memory_names *names, uint32_t pid, uint64_t time_ns,
	const uint64_t *frames, uint32_t count)
{
	struct memory_process *process = names->list.count ? find(names, pid) : NULL;
	uint64_t kernel_begin = arch_here()->kernel_begin;

	if (!process || process->state == MEMORY_REFUSED ||
		(!names->forced && state_of(names, pid) == MANAGED_KNOWN) ||
		!open_process(names, process))
		return;
	for (uint32_t i = 0; i < count; i++)
		if (frames[i] < kernel_begin)
			look_up(names, process, time_ns, frames[i]);
}

void memory_names_exec(struct memory_names *names, uint32_t pid)
{
	uint32_t at = map_get(&names->by_pid, pid);

	names->exec_ns = clock_monotonic_ns();
	if (at)
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
			drop(names, i);
			continue;
		}
		if (process->this_pass.count)
			map_reset(&process->this_pass);
		if (process->memory)
			clr_names_pass(process->memory->names);
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
	for (uint32_t i = 0; i < names->list.count && !soon; i++)
		soon = now_ns < names->list.items[i]->sign_ns + YOUNG_NS;
	if (soon)
		poll_set_wake(set, now_ns + YOUNG_GAP_NS);
	else if (options->machine || options->child)
		poll_set_wake(set, now_ns + QUIET_GAP_NS);
}

void memory_names_take(struct memory_names *names, struct pending *item)
{
	struct pending_code *side = item->side;
	uint32_t process = process_table_owner(names->table, item->pid);
	bool replaces = side->code.from_ns != 0;

	item->side = NULL;
	if (process)
		/* without memory the method has no name */
		(void)seen_code_add(names->table->symbolizer, process, &side->code,
			side->module_path);
	free(side);
	/* What it replaced ends before the next sample is written. */
	if (process && replaces)
		removed_code_end(names->table, process);
}

bool memory_names_reads(const struct memory_names *names, uint32_t pid)
{
	const struct memory_process *process = find(names, pid);

	return process && process->state == MEMORY_OPEN;
}

size_t memory_names_size_bytes(const struct memory_names *names)
{
	size_t size = names->images.size_bytes + (names->pages ? sizeof(*names->pages) : 0);

	for (uint32_t i = 0; i < names->list.count; i++)
		size += map_size_bytes(&names->list.items[i]->known) +
			map_size_bytes(&names->list.items[i]->passing) +
			map_size_bytes(&names->list.items[i]->places);
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
