/* See hit_answer.h. */
#include "symbolize/hit_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "code/arch.h"
#include "code/mapping_kind.h"
#include "code/symbol_file.h"
#include "machine/kernel_symbol.h"
#include "machine/target_root.h"
#include "symbolize/name_tables.h"
#include "symbolize/seen_code.h"
#include "symbolize/symbol_worker.h"
#include "symbolize/symbol_writer.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* read before an address in JIT memory; as many bytes are read after it */
#define STUB_AROUND_BYTES 0x60u
#define STUB_SETTLE_NS    UINT64_C(750000000) /* a runtime has reported a method by then */
/* longer than the event delay of any working runtime */
#define REMOVAL_WAIT_NS  UINT64_C(30000000000)
#define ANSWERS_KEPT_MAX 8192u
#define VDSO_BYTES       8192u /* two pages: every kernel maps at least that */

static uint64_t question_key(enum name_question_kind kind, uint32_t image, uint64_t place)
{
	return hash_u64(place) ^ hash_u64((uint64_t)kind << 32 | image);
}

struct symbol_worker *hit_answer_worker(struct symbolizer *symbolizer)
{
	if (!symbolizer->worker &&
		symbol_worker_new(symbolizer->options.box, symbolizer->options.symbol_paths,
			&symbolizer->worker) < 0)
		symbolizer->worker = NULL;
	return symbolizer->worker;
}

/* Allocates a question about a file of the process. NULL without memory. */
static struct name_question *new_question(struct symbolizer *symbolizer,
	enum name_question_kind kind, uint32_t process)
{
	const struct process *owner = &symbolizer->options.trace->processes.items[process];
	struct name_question *question =
		hit_answer_worker(symbolizer) ? calloc(1, sizeof(*question)) : NULL;

	if (!question)
		return NULL;
	question->kind = kind;
	question->pid = owner->pid;
	question->inner_pid = owner->inner_pid;
	question->ended = owner->ended;
	return question;
}

/*
 * Returns the answer to a question if it has arrived; else NULL, and the question is sent unless it
 * was sent before. Until the answer arrives the process's slot is kept.
 */
static const struct name_answer *ask(struct symbolizer *symbolizer, enum name_question_kind kind,
	uint32_t image, uint64_t place, uint32_t mapping_index)
{
	const struct mapping *mapping = &symbolizer->options.trace->mappings.items[mapping_index];
	uint64_t key = question_key(kind, image, place);

	for (struct map_walk w = map_find(&symbolizer->answer_index, key); w.value; map_next(&w)) {
		const struct name_answer *answer = symbolizer->answers.items[w.value - 1];
		if (answer->kind == kind && answer->image == image && answer->place == place)
			return answer;
	}
	if (symbolizer->asking_ended)
		return NULL;
	if (mapping_index)
		symbolizer_process(symbolizer, mapping->process)->awaits = true;
	if (map_get(&symbolizer->asked, key))
		return NULL;
	struct name_question *question =
		new_question(symbolizer, kind, mapping_index ? mapping->process : 0);

	if (!question)
		return NULL;
	question->image = image;
	question->place = place;
	if (mapping_index) {
		question->begin = mapping->begin;
		question->end = mapping->end;
		question->inode = mapping->inode;
		question->wants_facts = !symbolizer->images.items[image].known;
	}
	question->path = strdup(mapping_index ? symbol_writer_text(symbolizer, mapping->path) : "");
	question->build_id =
		strdup(mapping_index ? symbol_writer_text(symbolizer, mapping->build_id) : "");
	if (!question->path || !question->build_id || !map_add(&symbolizer->asked, key, 1)) {
		name_question_free(question);
		return NULL;
	}
	symbol_worker_ask(symbolizer->worker, question);
	return NULL;
}

static void take_maps(struct symbolizer *symbolizer, const struct name_answer *answer)
{
	for (uint32_t i = 1; i < symbolizer->processes.count; i++) {
		struct symbolizer_process *own = &symbolizer->processes.items[i];
		if (own->maps != MAPS_ASKED || own->maps_question != answer->place)
			continue;
		maps_state_enter(&own->maps, MAPS_READ);
		if (!answer->codemap)
			return;
		codemap_settle(answer->codemap);
		for (uint32_t c = 0; c < answer->codemap->codes.count; c++)
			if (codemap_add(&own->codemap, &answer->codemap->codes.items[c]) == -ENOMEM)
				return; /* the missing symbols stay unnamed */
		return;
	}
}

void hit_answer_take(struct symbolizer *symbolizer)
{
	struct name_answer *answer;

	while (symbolizer->worker && (answer = symbol_worker_take(symbolizer->worker))) {
		uint64_t key = question_key(answer->kind, answer->image, answer->place);
		struct symbolizer_image *image =
			answer->image ? &symbolizer->images.items[answer->image] : NULL;
		symbolizer->files_skipped = symbolizer->files_skipped || answer->skipped;
		if (answer->kind == ASK_MAPS)
			take_maps(symbolizer, answer);
		else
			map_remove(&symbolizer->asked, key, 1);
		if (image && answer->kind == ASK_SYMBOL) {
			image->known = true;
			if (answer->facts && !image->facts)
				image->facts = TAKE(answer->facts);
		}
		if (answer->kind == ASK_MAPS || !vec_add(&symbolizer->answers, answer)) {
			/* without memory the question is sent again */
			symbol_worker_give_back(symbolizer->worker, answer);
			continue;
		}
		name_question_free(TAKE(answer->question));
		/* without memory, as above */
		(void)map_add(&symbolizer->answer_index, key, symbolizer->answers.count);
	}
}

void hit_answer_drop(struct symbolizer *symbolizer, bool all)
{
	uint32_t kept = 0;

	all = all || symbolizer->answers.count > ANSWERS_KEPT_MAX;
	map_reset(&symbolizer->answer_index);
	for (uint32_t i = 0; i < symbolizer->answers.count; i++) {
		struct name_answer *answer = symbolizer->answers.items[i];
		uint64_t key = question_key(answer->kind, answer->image, answer->place);
		if (all || answer->error < 0 || !map_add(&symbolizer->answer_index, key, kept + 1))
			symbol_worker_give_back(symbolizer->worker, answer);
		else
			symbolizer->answers.items[kept++] = answer;
	}
	symbolizer->answers.count = kept;
}

bool hit_answer_open_kernel(struct symbolizer *symbolizer)
{
	if (symbolizer->kernel_source == SOURCE_UNTRIED)
		source_state_enter(&symbolizer->kernel_source,
			kernel_symbols_open(&symbolizer->kernel_asked) == 0);
	return symbolizer->kernel_source == SOURCE_OPEN;
}

/*
 * Names a kernel address: by a query to the kernel if it supports that, else by the symbol worker,
 * which reads /proc/kallsyms.
 */
static uint8_t answer_kernel(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit)
{
	struct kernel_symbol symbol;

	if (!hit_answer_open_kernel(symbolizer)) {
		const struct name_answer *answer = ask(symbolizer, ASK_KERNEL, 0, hit->address, 0);
		if (!answer)
			return symbolizer->asking_ended ? (uint8_t)UNNAMED_KERNEL_HIDDEN
							: HIT_WAITING;
		if (answer->error < 0)
			return UNNAMED_KERNEL_HIDDEN;
		if (!answer->found)
			return UNNAMED_NO_SYMBOLS;
		return symbol_writer_kernel_symbol(symbolizer, answer->begin,
			answer->begin + answer->size_bytes, answer->name, strlen(answer->name));
	}
	if (kernel_symbols_find(symbolizer->kernel_asked, hit->address, &symbol) != 1)
		return UNNAMED_NO_SYMBOLS;
	bytes_reset(&symbolizer->text);
	bytes_text(&symbolizer->text, symbol.name);
	if (*symbol.module)
		bytes_printf(&symbolizer->text, " [%s]", symbol.module);
	return symbol_writer_kernel_symbol(symbolizer, symbol.begin, symbol.end,
		bytes_z(&symbolizer->text), symbolizer->text.len);
}

static uint64_t offset_of(const struct mapping *mapping, uint64_t address)
{
	return address - mapping->begin + mapping->file_offset;
}

/*
 * True if the facts of the mapping's image are known or will never be, so that the mapping can be
 * written with its metadata. Otherwise a question is sent for the sampled address, whose symbol is
 * needed next.
 */
static bool mapping_is_ready(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit)
{
	const struct mapping *mapping = &symbolizer->options.trace->mappings.items[hit->mapping];
	const char *path = symbol_writer_text(symbolizer, mapping->path);

	if (mapping->id || symbolizer->options.mappings_only || *path != '/' ||
		symbol_writer_is_jit(path) || symbol_writer_is_managed_image(path))
		return true;
	uint32_t image = symbol_writer_image(symbolizer, mapping);

	if (!image || symbolizer->images.items[image].known)
		return true;
	/* the answer is used by the next pass */
	(void)ask(symbolizer, ASK_SYMBOL, image, offset_of(mapping, hit->address), hit->mapping);
	return symbolizer->asking_ended;
}

/*
 * Writes a symbol of a file, with its addresses in this mapping; `offset_of_mapping` is the file
 * offset of the mapping's begin.
 */
static uint8_t write_native(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit,
	uint64_t symbol_offset, uint64_t size, uint64_t offset_of_mapping, const char *name)
{
	const struct mapping *mapping = &symbolizer->options.trace->mappings.items[hit->mapping];
	uint64_t begin = mapping->begin;
	uint64_t end = mapping->begin + (symbol_offset + size - offset_of_mapping);

	if (symbol_offset > offset_of_mapping)
		begin += symbol_offset - offset_of_mapping;
	if (end > mapping->end)
		end = mapping->end;
	if (symbol_writer_symbol(symbolizer, hit->process, mapping->id, begin, end, name,
		    strlen(name)) < 0)
		return UNNAMED_NO_MEMORY;
	return HIT_NAMED;
}

/* Names a vdso address. An architecture's processes share one vdso: the recorder's own is read. */
static uint8_t answer_vdso(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit)
{
	const struct mapping *mapping = &symbolizer->options.trace->mappings.items[hit->mapping];
	const uint8_t *vdso = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct diag quiet = { 0 };
	struct symbol_hit symbol;

	if (symbolizer->vdso_source == SOURCE_UNTRIED)
		/* without symbols names show offsets */
		source_state_enter(&symbolizer->vdso_source,
			vdso && symbol_file_open_memory(vdso, VDSO_BYTES, &symbolizer->vdso,
					&quiet) == 0);
	if (symbolizer->vdso_source == SOURCE_FAILED)
		return UNNAMED_NO_IMAGE;
	if (!symbol_file_find_vaddr(symbolizer->vdso, hit->address - mapping->begin, &symbol))
		return UNNAMED_NO_SYMBOLS;
	return write_native(symbolizer, hit, symbol.begin_vaddr,
		symbol.end_vaddr - symbol.begin_vaddr, 0, symbol.name);
}

/* Names an address from the mapped file: an ELF symbol, or a method of a precompiled image. */
static uint8_t answer_file(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit,
	enum name_question_kind kind)
{
	const struct mapping *mapping = &symbolizer->options.trace->mappings.items[hit->mapping];
	uint32_t image = symbol_writer_image(symbolizer, mapping);

	if (!image)
		return UNNAMED_NO_MEMORY;
	const struct name_answer *answer =
		ask(symbolizer, kind, image, offset_of(mapping, hit->address), hit->mapping);

	if (!answer)
		return symbolizer->asking_ended ? (uint8_t)UNNAMED_NO_IMAGE : HIT_WAITING;
	if (answer->error < 0)
		return answer->error == -ENOMEM ? UNNAMED_NO_MEMORY : UNNAMED_NO_IMAGE;
	if (!answer->found)
		return UNNAMED_NO_SYMBOLS;
	uint8_t state = write_native(symbolizer, hit, answer->begin, answer->size_bytes,
		mapping->file_offset, answer->name);

	return state == HIT_NAMED && answer->bounds_only ? (uint8_t)UNNAMED_NO_SYMBOLS : state;
}

/*
 * Requests the files that other runtimes (and .NET, if its environment enables it) write for perf.
 * True when they are in the codemap or cannot be read.
 */
static bool maps_are_read(struct symbolizer *symbolizer, uint32_t index)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, index);
	struct name_question *question;

	if (own->maps == MAPS_READ || symbolizer->asking_ended)
		return true;
	own->awaits = true;
	if (own->maps == MAPS_ASKED)
		return false;
	question = new_question(symbolizer, ASK_MAPS, index);
	if (!question) {
		maps_state_enter(&own->maps, MAPS_READ);
		return true;
	}
	maps_state_enter(&own->maps, MAPS_ASKED);
	own->maps_question = question->place = ++symbolizer->maps_asked;
	symbol_worker_ask(symbolizer->worker, question);
	return false;
}

/*
 * Reads the bytes around an address in JIT memory and recognizes stubs, while the process exists.
 */
static void look_for_stub(struct symbolizer *symbolizer, struct symbolizer_hit_entry *hit)
{
	const struct process *process = &symbolizer->options.trace->processes.items[hit->process];
	uint8_t code[2 * STUB_AROUND_BYTES];
	size_t at;
	int fd;

	hit->stub_tried = 1;
	if (process->ended || target_memory_open(process->pid, &fd) < 0)
		return;
	uint64_t begin = hit->address - STUB_AROUND_BYTES;
	ssize_t got = target_memory_read(fd, begin, code, sizeof(code));

	if (got <= (ssize_t)STUB_AROUND_BYTES) { /* the preceding page may not be mapped */
		begin = hit->address & ~UINT64_C(0xfff);
		got = target_memory_read(fd, begin, code, sizeof(code));
	}
	closep(&fd);
	if (got <= 0 || hit->address - begin >= (uint64_t)got)
		return;
	hit->stub_tried = 2; /* the bytes were read */
	hit->stub =
		arch_find_stub(arch_here(), code, (size_t)got, (size_t)(hit->address - begin), &at);
	if (hit->stub)
		hit->stub_offset = (uint8_t)(hit->address - begin - at);
}

static int write_stub(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit)
{
	const struct mapping *mapping = &symbolizer->options.trace->mappings.items[hit->mapping];
	uint64_t begin = hit->address - (hit->stub ? hit->stub_offset : 0u);
	uint64_t end = hit->stub ? begin + hit->stub->size_bytes : begin + 1;

	if (end <= hit->address)
		end = hit->address + 1;
	if (end > mapping->end)
		end = mapping->end;
	bytes_reset(&symbolizer->text);
	bytes_printf(&symbolizer->text, "(%s)", hit->stub ? hit->stub->kind : "JIT stub");
	int result = symbol_writer_symbol(symbolizer, hit->process, mapping->id, begin, end,
		bytes_z(&symbolizer->text), symbolizer->text.len);

	if (result < 0)
		return result;
	bytes_reset(&symbolizer->payload);
	payload_code_added(&symbolizer->payload, &(struct payload_code_added){ .begin = begin,
							 .end = end,
							 .name = "",
							 .module = "",
							 .kind = CODE_STUB,
							 .mapping_id = mapping->id });
	return symbol_writer_emit(symbolizer, SPOOR_CODE_ADDED, hit->process);
}

static uint8_t answer_jit(struct symbolizer *symbolizer, struct symbolizer_hit_entry *hit,
	uint64_t now_ns, bool last)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, hit->process);

	if (own->managed == MANAGED_NONE || own->managed == MANAGED_REFUSED) {
		if (!maps_are_read(symbolizer, hit->process))
			/* the perf files are read before the state is decided */
			return HIT_WAITING;
		if (own->managed == MANAGED_NONE)
			return UNNAMED_NO_SYMBOLS;
	}
	if (!hit->stub_tried)
		look_for_stub(symbolizer, hit);
	bool settled = own->managed == MANAGED_KNOWN && now_ns > hit->time_ns + STUB_SETTLE_NS;

	if (own->managed == MANAGED_ASKING && !last)
		return HIT_WAITING;
	if (hit->stub && (settled || last || own->managed == MANAGED_REFUSED))
		return write_stub(symbolizer, hit) < 0 ? UNNAMED_NO_MEMORY : HIT_NAMED;
	if (!last && own->needs_rundown_for_new_methods && !hit->stub &&
		hit->time_ns >= own->rundown_ns)
		own->has_unresolved_samples = true;
	if (!last)
		return own->managed == MANAGED_REFUSED ? UNNAMED_NOT_ASKED : HIT_WAITING;
	if (own->managed != MANAGED_KNOWN)
		return UNNAMED_NOT_ASKED;
	/* The next code loaded here may have been sampled too; earlier code has no name. */
	struct code *next =
		hit->gone ? NULL : codemap_find_next(&own->codemap, hit->address, hit->time_ns);

	if (next)
		return symbol_writer_code(symbolizer, hit, next) < 0 ? UNNAMED_NO_MEMORY
								     : HIT_NAMED;
	/*
	 * All methods are known and none contains the address: the runtime generated the code
	 * itself. Without the right to read it, it is named "JIT stub".
	 */
	if (hit->stub_tried == 1 && !hit->gone)
		(void)write_stub(symbolizer, hit); /* also counted as unnamed */
	/* above the memory limit no more methods are added */
	return symbolizer->full ? UNNAMED_NO_MEMORY : UNNAMED_NO_METHOD;
}

/*
 * A rundown sends the modules after the methods, and the live session announces methods of modules
 * that were loaded before it began. Until the first rundown has ended, such a body has no module
 * yet. Its symbol is written only one time and must include the module, so it waits. A body that
 * was removed does not wait, because its removal event must follow its symbol in the file.
 */
static bool module_may_come(const struct symbolizer_process *own, const struct code *code)
{
	return own->managed == MANAGED_ASKING && code->until_ns == UINT64_MAX && code->module_id &&
	       code->kind != CODE_DYNAMIC && !codemap_has_module(&own->codemap, code->module_id);
}

/*
 * A runtime may send its events seconds late. Until it has reported the time of the sample, it may
 * still report that this code was removed before the sample, and that other code was loaded at the
 * address. Only dynamic methods and those of collectible assemblies are ever removed. A runtime
 * without events reports no time at all; after REMOVAL_WAIT_NS the code counts as not removed.
 */
static bool removal_may_come(const struct symbolizer_process *own, const struct code *code,
	const struct symbolizer_hit_entry *hit, uint64_t now_ns)
{
	bool removable =
		code->kind == CODE_DYNAMIC || (own->unloads_code && code->kind != CODE_READYTORUN);
	bool reports = own->managed == MANAGED_ASKING || own->managed == MANAGED_KNOWN;

	return removable && reports && !code->exact && code->until_ns == UINT64_MAX &&
	       hit->time_ns > code->stood_ns && hit->time_ns > own->reported_ns &&
	       now_ns < hit->time_ns + REMOVAL_WAIT_NS;
}

uint8_t hit_answer(struct symbolizer *symbolizer, struct symbolizer_hit_entry *hit, uint64_t now_ns,
	bool last)
{
	struct trace *trace = symbolizer->options.trace;

	if (!hit->process)
		return symbolizer->options.mappings_only ? (uint8_t)UNNAMED_NO_SYMBOLS
							 : answer_kernel(symbolizer, hit);
	struct symbolizer_process *own = symbolizer_process(symbolizer, hit->process);

	if (!own)
		return UNNAMED_NO_MEMORY;
	if (!hit->mapping)
		hit->mapping = trace_find_mapping(trace, hit->process, hit->address);
	if (!hit->mapping)
		return last ? UNNAMED_NO_MAPPING : HIT_WAITING;
	if (!mapping_is_ready(symbolizer, hit))
		return HIT_WAITING;
	if (symbol_writer_mapping(symbolizer, hit->mapping) < 0)
		return UNNAMED_NO_MEMORY;
	if (symbolizer->options.mappings_only)
		return UNNAMED_NO_SYMBOLS;
	const char *path = symbol_writer_text(symbolizer, trace->mappings.items[hit->mapping].path);

	seen_code_settle(symbolizer, own, last);
	if (own->codemap.codes.count) {
		struct code *code = codemap_find(&own->codemap, hit->address, hit->time_ns);
		if (code && !last &&
			(module_may_come(own, code) || removal_may_come(own, code, hit, now_ns)))
			return HIT_WAITING;
		if (code && symbol_writer_code(symbolizer, hit, code) < 0)
			return UNNAMED_NO_MEMORY;
		if (code)
			return symbol_writer_is_unread(code) ? (uint8_t)UNNAMED_FREED : HIT_NAMED;
	}
	if (symbol_writer_is_jit(path))
		return answer_jit(symbolizer, hit, now_ns, last);
	if (mapping_kind_of(path) == MAPPING_VDSO)
		return answer_vdso(symbolizer, hit);
	if (symbol_writer_is_managed_image(path)) {
		if (!last && (own->managed == MANAGED_ASKING || own->managed == MANAGED_KNOWN))
			return HIT_WAITING;
		uint8_t state = answer_file(symbolizer, hit, ASK_METHOD);
		return state == HIT_NAMED || state == HIT_WAITING || own->managed == MANAGED_REFUSED
			       ? state
			       : UNNAMED_NO_METHOD;
	}
	if (*path != '/')
		return UNNAMED_NO_SYMBOLS;
	/* A single-file program's image contains ReadyToRun code that only the runtime can name. */
	if (own->managed == MANAGED_ASKING && !last &&
		trace->mappings.items[hit->mapping].path ==
			trace->processes.items[hit->process].executable)
		return HIT_WAITING;
	return answer_file(symbolizer, hit, ASK_SYMBOL);
}
