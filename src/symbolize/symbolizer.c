/* See symbolizer.h. */
#include "symbolize/symbolizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "code/arch.h"
#include "code/symbol_file.h"
#include "machine/kernel_symbol.h"
#include "machine/rights.h"
#include "symbolize/code_reader.h"
#include "symbolize/hit_answer.h"
#include "symbolize/symbol_worker.h"
#include "symbolize/symbol_writer.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* wait for answers in a flush: 4 % of the flush interval */
#define PATIENCE_NS     UINT64_C(20000000)
#define FINISH_BOUND_NS UINT64_C(5000000000)

int symbolizer_init(struct symbolizer *symbolizer, const struct symbolizer_options *options)
{
	*symbolizer = (struct symbolizer){ .options = *options, .next_id = 1 };
	if (!vec_push(&symbolizer->hits) || !vec_push(&symbolizer->pairs) ||
		!vec_push(&symbolizer->images))
		return -ENOMEM;
	return 0;
}

struct symbolizer_process *symbolizer_process(struct symbolizer *symbolizer, uint32_t process)
{
	while (symbolizer->processes.count <= process)
		if (!vec_push(&symbolizer->processes))
			return NULL;
	return &symbolizer->processes.items[process];
}

/* ---- the kernel ---- */

void symbolizer_open_kernel(struct symbolizer *symbolizer)
{
	struct kernel_symbol symbol;

	if (!hit_answer_open_kernel(symbolizer)) {
		/* Reads the kernel's symbols now: the process may lose the right later. */
		if (hit_answer_worker(symbolizer))
			symbol_worker_open_kernel(symbolizer->worker);
		return;
	}
	uint64_t before = rights_pause(RIGHT_BPF | RIGHT_SYS_ADMIN);
	symbolizer->kernel_needs_right = kernel_symbols_find(symbolizer->kernel_asked,
						 arch_here()->kernel_begin, &symbol) == -EPERM;
	rights_restore(before);
}

/* ---- sampled addresses ---- */

/*
 * The current entry of an address. If there is none and `gone` is true: the entry of removed code.
 */
static uint32_t find_hit(const struct symbolizer *symbolizer, uint32_t process, uint64_t address,
	bool gone)
{
	uint64_t key = hash_u64(address) ^ process;
	uint32_t second = 0;

	for (struct map_walk w = map_find(&symbolizer->hit_index, key); w.value; map_next(&w)) {
		const struct symbolizer_hit_entry *hit = &symbolizer->hits.items[w.value];
		if (hit->address != address || hit->process != process)
			continue;
		if (!hit->gone)
			return w.value;
		second = w.value;
	}
	return gone ? second : 0;
}

static int add_hit(struct symbolizer *symbolizer, uint32_t process, uint32_t mapping,
	uint64_t address, uint64_t time_ns)
{
	if (symbolizer->full)
		return 0;
	struct symbolizer_hit_entry *hit = vec_push(&symbolizer->hits);

	if (!hit)
		return -ENOMEM;
	hit->address = address;
	hit->time_ns = time_ns;
	hit->process = process;
	hit->mapping = mapping;
	hit->state = HIT_WAITING;
	uint32_t index = symbolizer->hits.count - 1;

	if (!map_add(&symbolizer->hit_index, hash_u64(address) ^ process, index) ||
		!vec_add(&symbolizer->waiting, index))
		return -ENOMEM;
	return 0;
}

/*
 * Number of frames at the root that this stack shares with the previous one, usually most of them.
 * They need no second lookup.
 */
static uint32_t common_root(const struct symbolizer *symbolizer, uint32_t process,
	const uint64_t *frames, uint32_t count)
{
	uint32_t most = count < symbolizer->previous.count ? count : symbolizer->previous.count;
	uint32_t same = 0;

	if (symbolizer->previous_process != process)
		return 0;
	while (same < most &&
		frames[count - 1 - same] ==
			symbolizer->previous.items[symbolizer->previous.count - 1 - same])
		same++;
	return same;
}

/*
 * Adds each frame of a new stack as a sampled address. *ret_sound: number of frames before the
 * first one that is no code; all of them if a runtime walked the stack.
 */
static int hit_frames(struct symbolizer *symbolizer, uint32_t process, const uint64_t *frames,
	uint32_t count, uint64_t time_ns, bool walked, uint32_t *ret_sound)
{
	struct trace *trace = symbolizer->options.trace;
	uint64_t kernel_begin = arch_here()->kernel_begin;
	bool mapped = trace->processes.items[process].mappings.count != 0 && !symbolizer->full;
	uint32_t fresh = count - common_root(symbolizer, process, frames, count);

	*ret_sound = count;
	for (uint32_t i = 0; i < fresh; i++) {
		bool kernel = frames[i] >= kernel_begin;
		uint32_t owner = kernel ? 0 : process;
		uint32_t mapping = 0;
		bool lost = frames[i] == STACK_LOST_CALLER;
		int result = kernel ? symbol_writer_map_kernel(symbolizer, process)
			     : lost ? symbol_writer_map_lost(symbolizer, process)
				    : 0;
		if (result < 0)
			return result;
		if (lost || find_hit(symbolizer, owner, frames[i], false))
			continue;
		if (!kernel)
			mapping = trace_find_mapping(trace, process, frames[i]);
		if (!kernel && !mapping && mapped && i && !walked) {
			*ret_sound = i;
			return 0;
		}
		if (!kernel && !mapping) {
			struct symbolizer_process *own = symbolizer_process(symbolizer, process);
			if (own)
				own->unmapped = true;
		}
		result = add_hit(symbolizer, owner, mapping, frames[i], time_ns);
		if (result < 0)
			return result;
	}
	vec_reset(&symbolizer->previous);
	symbolizer->previous_process = 0;
	if (vec_reserve(&symbolizer->previous, count)) {
		memcpy(symbolizer->previous.items, frames, count * sizeof(*frames));
		symbolizer->previous.count = count;
		symbolizer->previous_process = process;
	}
	return 0;
}

static int take_stack(struct symbolizer *symbolizer, uint32_t process, uint32_t stack_index,
	uint64_t time_ns, bool walked, uint32_t *ret_stack_index)
{
	struct trace *trace = symbolizer->options.trace;
	uint32_t epoch = trace->processes.items[process].code_epoch;
	uint64_t key = hash_u64((uint64_t)process << 32 | stack_index) ^ epoch;

	for (struct map_walk w = map_find(&symbolizer->pair_index, key); w.value; map_next(&w)) {
		struct symbolizer_pair *pair = &symbolizer->pairs.items[w.value];
		if (pair->process == process && pair->stack_index == stack_index &&
			pair->epoch == epoch) {
			pair->count++;
			*ret_stack_index = pair->sound_index;
			return 0;
		}
	}
	struct symbolizer_pair *pair = vec_push(&symbolizer->pairs);

	if (!pair || !map_add(&symbolizer->pair_index, key, symbolizer->pairs.count - 1))
		return -ENOMEM;
	*pair = (struct symbolizer_pair){ .process = process,
		.stack_index = stack_index,
		.epoch = epoch,
		.count = 1,
		.sound_index = stack_index };
	uint32_t count;
	const uint64_t *frames = stack_table_get(&trace->stacks, stack_index, &count);
	uint32_t sound;
	int result = hit_frames(symbolizer, process, frames, count, time_ns, walked, &sound);

	if (result < 0)
		return result;
	if (sound < count) {
		/* Interning may move the table, so its own memory cannot be the source. */
		vec_reset(&symbolizer->frames);
		if (!vec_reserve(&symbolizer->frames, sound))
			return -ENOMEM;
		memcpy(symbolizer->frames.items, frames, sound * sizeof(*frames));
		uint32_t index =
			stack_table_intern(&trace->stacks, symbolizer->frames.items, sound);
		if (!index)
			return -ENOMEM;
		pair->sound_index = index;
	}
	*ret_stack_index = pair->sound_index;
	return 0;
}

int symbolizer_hit(struct symbolizer *symbolizer, uint32_t process, uint32_t stack_index,
	uint64_t time_ns, uint32_t *ret_stack_index)
{
	return take_stack(symbolizer, process, stack_index, time_ns, symbolizer->options.sound,
		ret_stack_index);
}

int symbolizer_hit_walked(struct symbolizer *symbolizer, uint32_t process, uint32_t stack_index,
	uint64_t time_ns)
{
	return take_stack(symbolizer, process, stack_index, time_ns, true, &stack_index);
}

static void answer_waiting(struct symbolizer *symbolizer, uint64_t now_ns, bool last)
{
	uint32_t before = symbolizer->answers.count;
	uint32_t kept = 0;

	hit_answer_take(symbolizer);
	for (uint32_t i = 0; i < symbolizer->processes.count; i++)
		symbolizer->processes.items[i].awaits = false;
	for (uint32_t i = 0; i < symbolizer->waiting.count; i++) {
		uint32_t index = symbolizer->waiting.items[i];
		struct symbolizer_hit_entry *hit = &symbolizer->hits.items[index];
		if (hit->state == HIT_WAITING)
			hit->state = hit_answer(symbolizer, hit, now_ns, last);
		if (hit->state == HIT_WAITING)
			symbolizer->waiting.items[kept++] = index;
	}
	symbolizer->waiting.count = kept;
	if (symbolizer->answers.count > before)
		hit_answer_drop(symbolizer, false);
}

/*
 * If a CPU is idle, the symbol worker answers within PATIENCE_NS, and the name is written with the
 * first flush after the sample. Otherwise a later flush writes it.
 */
int symbolizer_resolve(struct symbolizer *symbolizer, uint64_t now_ns)
{
	answer_waiting(symbolizer, now_ns, false);
	if (symbolizer->worker && symbol_worker_open_count(symbolizer->worker)) {
		uint32_t open = symbol_worker_open_count(symbolizer->worker);
		/* later answers are used by the next flush */
		(void)symbol_worker_wait(symbolizer->worker, clock_monotonic_ns() + PATIENCE_NS);
		if (symbol_worker_open_count(symbolizer->worker) < open)
			answer_waiting(symbolizer, now_ns, false);
	}
	return 0;
}

/* Counts the frames of all pairs, with or without a name, and drops the pairs. */
static void count_frames(struct symbolizer *symbolizer)
{
	const struct trace *trace = symbolizer->options.trace;
	uint64_t kernel_begin = arch_here()->kernel_begin;

	for (uint32_t p = 1; p < symbolizer->pairs.count && !symbolizer->options.mappings_only;
		p++) {
		const struct symbolizer_pair *pair = &symbolizer->pairs.items[p];
		uint32_t count;
		const uint64_t *frames = stack_table_get(&trace->stacks, pair->sound_index, &count);
		symbolizer->frames_total += (uint64_t)count * pair->count;
		for (uint32_t i = 0; i < count; i++) {
			if (frames[i] == STACK_LOST_CALLER) {
				symbolizer->frames_total -= pair->count; /* a mark, not a frame */
				continue;
			}
			uint32_t hit = find_hit(symbolizer,
				frames[i] >= kernel_begin ? 0 : pair->process, frames[i], true);
			uint8_t state = hit ? symbolizer->hits.items[hit].state
					    : (uint8_t)UNNAMED_NO_MEMORY;
			if (state < UNNAMED_CAUSE_COUNT)
				symbolizer->frames_unnamed[state] += pair->count;
		}
	}
	symbolizer->pairs.count = 1;
	map_reset(&symbolizer->pair_index);
}

int symbolizer_finish(struct symbolizer *symbolizer)
{
	uint64_t until_ns = clock_monotonic_ns() + FINISH_BOUND_NS;

	answer_waiting(symbolizer, UINT64_MAX, true);
	while (symbolizer->worker && symbol_worker_open_count(symbolizer->worker)) {
		symbol_worker_hurry(symbolizer->worker);
		bool all = symbol_worker_wait(symbolizer->worker, until_ns);
		answer_waiting(symbolizer, UINT64_MAX, true); /* may send more questions */
		if (!all)
			break;
	}
	symbolizer->asking_ended = true;
	answer_waiting(symbolizer, UINT64_MAX, true);
	symbol_writer_end_reused(symbolizer);
	count_frames(symbolizer);
	return 0;
}

void symbolizer_removed_codes(struct symbolizer *symbolizer,
	void (*each)(void *context, uint32_t process, uint32_t code, const struct code *body),
	void *context)
{
	for (uint32_t p = 1; p < symbolizer->processes.count; p++) {
		struct symbolizer_process *own = &symbolizer->processes.items[p];
		if (own->codemap.changes == own->changes_seen)
			continue;
		codemap_settle(&own->codemap);
		own->changes_seen = own->codemap.changes;
		for (uint32_t i = 0; i < own->codemap.codes.count; i++) {
			struct code *code = &own->codemap.codes.items[i];
			if (code->removal_reported || code->until_ns == UINT64_MAX)
				continue;
			code->removal_reported = true;
			each(context, p, i, code);
		}
	}
}

/*
 * Turns the entries of a removed code range into tombstones, so that later samples there are looked
 * up again. For each address only the last tombstone stays in the index, for the frame counts.
 */
static void forget_range(struct symbolizer *symbolizer, uint32_t process, uint64_t begin,
	uint64_t end)
{
	symbolizer->previous_process = 0;
	for (uint32_t i = 1; i < symbolizer->hits.count; i++) {
		struct symbolizer_hit_entry *hit = &symbolizer->hits.items[i];
		uint64_t key = hash_u64(hit->address) ^ process;
		if (hit->gone || hit->process != process || hit->address < begin ||
			hit->address >= end)
			continue;
		map_remove(&symbolizer->hit_index, key, i);
		uint32_t before = find_hit(symbolizer, process, hit->address, true);
		if (before)
			map_remove(&symbolizer->hit_index, key, before);
		(void)map_add(&symbolizer->hit_index, key,
			i); /* there is room: one entry was removed */
		hit->gone = true;
	}
}

/*
 * An unread range is written if a sample before its end has no name: a reader would give it to the
 * body that is placed there next.
 */
static bool write_unread(struct symbolizer *symbolizer, uint32_t process, struct code *body)
{
	const struct trace *trace = symbolizer->options.trace;

	for (uint32_t i = 1; i < symbolizer->hits.count; i++) {
		struct symbolizer_hit_entry hit = symbolizer->hits.items[i];
		if (hit.process != process || hit.address < body->begin ||
			hit.address >= body->end || hit.time_ns >= body->until_ns ||
			hit.state == HIT_NAMED)
			continue;
		if (!hit.mapping)
			hit.mapping = trace_find_mapping(trace, process, hit.address);
		if (hit.mapping)
			return symbol_writer_code(symbolizer, &hit, body) >= 0;
	}
	return false;
}

const struct code *symbolizer_end_code(struct symbolizer *symbolizer, uint32_t process,
	uint32_t code, uint64_t begin)
{
	struct codemap *codemap = process < symbolizer->processes.count
					  ? &symbolizer->processes.items[process].codemap
					  : NULL;

	if (!codemap || code >= codemap->codes.count || codemap->codes.items[code].begin != begin)
		return NULL; /* the slot belongs to another process now */
	struct code *body = &codemap->codes.items[code];
	const struct symbolizer_hit_entry *hidden = NULL;

	for (uint32_t i = 0; i < symbolizer->waiting.count; i++) {
		struct symbolizer_hit_entry *hit =
			&symbolizer->hits.items[symbolizer->waiting.items[i]];
		if (hit->process != process || hit->address < begin || hit->address >= body->end ||
			hit->state != HIT_WAITING)
			continue;
		hit->state = hit_answer(symbolizer, hit, hit->time_ns, false);
		if (hit->state == HIT_WAITING && !hit->gone && hit->mapping &&
			hit->time_ns < body->from_ns)
			hidden = hit;
	}
	/*
	 * An earlier sample at this address found no method. This body may have been sampled as
	 * well, so it is written; later samples are looked up again.
	 */
	if (symbol_writer_is_unread(body) && !body->written)
		(void)write_unread(symbolizer, process, body); /* false: there is no such sample */
	else if (!body->written && hidden && !body->exact)
		(void)symbol_writer_code(symbolizer, hidden,
			body); /* without memory it has no name */
	if (!body->written)
		return NULL;
	forget_range(symbolizer, process, begin, body->end);
	return body;
}

bool symbolizer_awaits(const struct symbolizer *symbolizer, uint32_t process)
{
	/* Above the memory limit no address waits. */
	return !symbolizer->full && process < symbolizer->processes.count &&
	       symbolizer->processes.items[process].awaits;
}

void symbolizer_forget_stacks(struct symbolizer *symbolizer)
{
	count_frames(symbolizer);
}

void symbolizer_forget_processes(struct symbolizer *symbolizer, const bool *dead, uint32_t count)
{
	uint32_t kept = 0;
	bool asking_ended = symbolizer->asking_ended;

	symbolizer->asking_ended = true; /* for the addresses of the ended processes */
	for (uint32_t i = 0; i < symbolizer->waiting.count; i++) {
		uint32_t index = symbolizer->waiting.items[i];
		struct symbolizer_hit_entry *hit = &symbolizer->hits.items[index];
		if (hit->process < count && dead[hit->process] && hit->state == HIT_WAITING)
			hit->state = hit_answer(symbolizer, hit, UINT64_MAX, true);
	}
	symbolizer->asking_ended = asking_ended;
	count_frames(symbolizer);
	symbolizer->previous_process = 0;
	/* Rebuilds the table without the ended processes. A waiting entry is known by its state. */
	vec_reset(&symbolizer->waiting);
	map_reset(&symbolizer->hit_index);
	for (uint32_t i = 1; i < symbolizer->hits.count; i++) {
		struct symbolizer_hit_entry hit = symbolizer->hits.items[i];
		if ((hit.process < count && dead[hit.process]) ||
			(hit.gone && hit.state != HIT_WAITING))
			continue;
		symbolizer->hits.items[++kept] = hit;
		/* Both have had at least this capacity: no allocation is needed. */
		(void)map_add(&symbolizer->hit_index, hash_u64(hit.address) ^ hit.process, kept);
		if (hit.state == HIT_WAITING)
			(void)vec_add(&symbolizer->waiting, kept);
	}
	symbolizer->hits.count = kept + 1;
	symbol_writer_forget(symbolizer, dead, count);
	for (uint32_t i = 0; i < count && i < symbolizer->processes.count; i++) {
		if (!dead[i])
			continue;
		codemap_done(&symbolizer->processes.items[i].codemap);
		codemap_done(&symbolizer->processes.items[i].seen);
		code_reader_forget(symbolizer, &symbolizer->processes.items[i]);
		symbolizer->processes.items[i] = (struct symbolizer_process){ 0 };
	}
}

void symbolizer_make_room(struct symbolizer *symbolizer)
{
	if (symbolizer->worker)
		symbol_worker_make_room(symbolizer->worker);
}

uint64_t symbolizer_size_bytes(const struct symbolizer *symbolizer)
{
	uint64_t total = map_size_bytes(&symbolizer->hit_index) +
			 map_size_bytes(&symbolizer->pair_index) +
			 map_size_bytes(&symbolizer->symbol_index) +
			 map_size_bytes(&symbolizer->image_index) +
			 symbolizer->hits.capacity * sizeof(struct symbolizer_hit_entry) +
			 symbolizer->pairs.capacity * sizeof(struct symbolizer_pair) +
			 symbolizer->processes.capacity * sizeof(struct symbolizer_process);

	for (uint32_t i = 1; i < symbolizer->processes.count; i++)
		total += codemap_size_bytes(&symbolizer->processes.items[i].codemap) +
			 codemap_size_bytes(&symbolizer->processes.items[i].seen);
	return total + (symbolizer->worker ? symbol_worker_size_bytes(symbolizer->worker) : 0);
}

void symbolizer_done(struct symbolizer *symbolizer)
{
	for (uint32_t i = 0; i < symbolizer->processes.count; i++) {
		codemap_done(&symbolizer->processes.items[i].codemap);
		codemap_done(&symbolizer->processes.items[i].seen);
		code_reader_forget(symbolizer, &symbolizer->processes.items[i]);
	}
	for (uint32_t i = 0; i < symbolizer->images.count; i++)
		free(symbolizer->images.items[i].facts);
	if (symbolizer->worker)
		hit_answer_drop(symbolizer, true);
	symbol_worker_free(symbolizer->worker);
	symbol_file_close(symbolizer->vdso);
	kernel_symbols_close(symbolizer->kernel_asked);
	vec_done(&symbolizer->processes);
	vec_done(&symbolizer->hits);
	vec_done(&symbolizer->pairs);
	vec_done(&symbolizer->images);
	vec_done(&symbolizer->waiting);
	vec_done(&symbolizer->frames);
	vec_done(&symbolizer->previous);
	vec_done(&symbolizer->answers);
	map_done(&symbolizer->hit_index);
	map_done(&symbolizer->pair_index);
	map_done(&symbolizer->image_index);
	map_done(&symbolizer->symbol_index);
	map_done(&symbolizer->asked);
	map_done(&symbolizer->answer_index);
	bytes_done(&symbolizer->text);
	bytes_done(&symbolizer->payload);
}
