/* See symbolizer.h. */
#include "symbolize/symbolizer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "code/arch.h"
#include "code/mapping_kind.h"
#include "code/symbol_file.h"
#include "machine/kernel_symbol.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "symbolize/symbol_worker.h"
#include "symbolize/name_tables.h"
#include "trace/clr.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* read before an address in JIT memory; as many bytes are read after it */
#define STUB_AROUND_BYTES 0x60u
#define STUB_SETTLE_NS    UINT64_C(750000000) /* a runtime has reported a method by then */
/* longer than the event delay of any working runtime */
#define REMOVAL_WAIT_NS  UINT64_C(30000000000)
#define ANSWERS_KEPT_MAX 8192u
/* wait for answers in a flush: 4 % of the flush interval */
#define PATIENCE_NS     UINT64_C(20000000)
#define FINISH_BOUND_NS UINT64_C(5000000000)
#define VDSO_BYTES      8192u /* two pages: every kernel maps at least that */

/* struct symbolizer_hit_entry.state: values below HIT_WAITING are enum unnamed_cause. */
enum hit_state { HIT_WAITING = UNNAMED_CAUSE_COUNT, HIT_NAMED };

int symbolizer_init(struct symbolizer *symbolizer, const struct symbolizer_options *options)
{
	*symbolizer = (struct symbolizer){ .options = *options, .next_id = 1, .kernel_error = 1 };
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

static const char *text_at(const struct symbolizer *symbolizer, uint32_t index)
{
	return strtab_get(&symbolizer->options.trace->strings, index);
}

static bool is_jit_memory(const char *path)
{
	return mapping_kind_of(path) == MAPPING_JIT;
}

static bool is_managed_image(const char *path)
{
	return mapping_kind_of(path) == MAPPING_MANAGED_IMAGE;
}

/* ---- writing to the file ---- */

static int emit(struct symbolizer *symbolizer, enum known_event known, uint32_t process)
{
	if (symbolizer->payload.failed)
		return -ENOMEM;
	return symbolizer->options.emit(symbolizer->options.context, known, process,
		&symbolizer->payload);
}

static uint32_t image_of(struct symbolizer *symbolizer, const struct mapping *mapping);
static uint64_t image_key(struct symbolizer *symbolizer, const struct mapping *mapping);

/*
 * Writes a mapping when an address in it is first named, and before it the metadata of its image.
 */
static int write_mapping(struct symbolizer *symbolizer, uint32_t index)
{
	struct trace *trace = symbolizer->options.trace;
	struct mapping *mapping = &trace->mappings.items[index];
	const char *path = text_at(symbolizer, mapping->path);
	struct symbolizer_process *process = symbolizer_process(symbolizer, mapping->process);
	uint64_t metadata_id = 0;

	if (mapping->id)
		return 0;
	if (!is_jit_memory(path) && *path == '/') {
		uint32_t image =
			symbolizer->options.mappings_only ? 0 : image_of(symbolizer, mapping);
		const struct name_facts *facts =
			image ? symbolizer->images.items[image].facts : NULL;
		if (facts && *facts->build_id) {
			mapping->build_id = trace_add_text(trace, facts->build_id);
			/* The same file, under the key that includes its build id. */
			if (!map_get(&symbolizer->image_index, image_key(symbolizer, mapping)))
				/* without memory the file is opened again */
				(void)map_add(&symbolizer->image_index,
					image_key(symbolizer, mapping), image);
		}
		if (mapping->build_id) {
			bytes_reset(&symbolizer->text);
			payload_elf_metadata(&symbolizer->text,
				text_at(symbolizer, mapping->build_id),
				facts ? facts->debug_link : NULL, facts ? facts->text_vaddr : 0,
				facts ? facts->text_offset : 0);
			metadata_id = symbolizer->next_id++;
			bytes_reset(&symbolizer->payload);
			payload_mapping_metadata(&symbolizer->payload,
				&(struct payload_mapping_metadata){
					.id = metadata_id, .symbols = bytes_z(&symbolizer->text) });
			int result = emit(symbolizer, SYSTEM_MAPPING_METADATA, mapping->process);
			if (result < 0)
				return result;
		}
	}
	/*
	 * Viewers recognize a runtime's code heap only by this name; without W^X the heap is
	 * anonymous memory.
	 */
	if (process && process->managed != MANAGED_NONE &&
		strncmp(path, "//anon", strlen("//anon")) == 0)
		path = "/memfd:doublemapper";
	mapping->id = symbolizer->next_id++;
	bytes_reset(&symbolizer->payload);
	payload_mapping(&symbolizer->payload, &(struct payload_mapping){ .id = mapping->id,
						      .begin = mapping->begin,
						      .end = mapping->end,
						      .file_offset = mapping->file_offset,
						      .path = path,
						      .metadata_id = metadata_id });
	return emit(symbolizer, SYSTEM_PROCESS_MAPPING, mapping->process);
}

/* The value of a mapping in symbol_index. Mapping ids are unique, and 0 is no valid value. */
static uint32_t symbol_value(uint64_t mapping_id)
{
	uint32_t value = (uint32_t)mapping_id;

	return value ? value : 1;
}

static bool first_time(struct symbolizer *symbolizer, uint64_t mapping_id, uint64_t begin)
{
	uint64_t key = hash_u64(mapping_id) ^ begin;

	if (map_get(&symbolizer->symbol_index, key))
		return false;
	return map_add(&symbolizer->symbol_index, key, symbol_value(mapping_id));
}

static int write_symbol(struct symbolizer *symbolizer, uint32_t process, uint64_t mapping_id,
	uint64_t begin, uint64_t end, const char *name, size_t name_len)
{
	if (!first_time(symbolizer, mapping_id, begin))
		return 0;
	bytes_reset(&symbolizer->payload);
	payload_symbol(&symbolizer->payload, &(struct payload_symbol){ .id = symbolizer->next_id++,
						     .mapping_id = mapping_id,
						     .begin = begin,
						     .end = end,
						     .name = name,
						     .name_len = name_len });
	return emit(symbolizer, SYSTEM_PROCESS_SYMBOL, process);
}

/*
 * Writes a managed method: its name as a symbol, then the other properties (kind, tier, lifetime)
 * as a code event.
 */
static int write_code(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit,
	struct code *code)
{
	struct trace *trace = symbolizer->options.trace;
	const struct mapping *mapping = &trace->mappings.items[hit->mapping];
	const char *path = text_at(symbolizer, mapping->path);
	bool in_image = !is_jit_memory(path);
	struct symbolizer_process *process = symbolizer_process(symbolizer, hit->process);
	size_t module_len = 0;
	cleanup(freep) char *module = NULL;
	int result = write_mapping(symbolizer, hit->mapping);

	if (result < 0 || code->written)
		return result;
	mapping = &trace->mappings.items[hit->mapping];
	bytes_reset(&symbolizer->text);
	/* Names from perf maps are complete, without a separate type or assembly. */
	if (!*code->name_space && (code->kind == CODE_UNKNOWN || code->kind == CODE_STUB))
		bytes_text(&symbolizer->text, code->name);
	else
		codemap_symbol_text(&process->codemap, code, in_image, &symbolizer->text);
	code->reused = !first_time(symbolizer, mapping->id, code->begin);
	if (!code->reused) {
		bytes_reset(&symbolizer->payload);
		payload_symbol(&symbolizer->payload,
			&(struct payload_symbol){ .id = symbolizer->next_id++,
				.mapping_id = mapping->id,
				.begin = code->begin,
				.end = code->end,
				.name = bytes_z(&symbolizer->text),
				.name_len = symbolizer->text.len });
		result = emit(symbolizer, SYSTEM_PROCESS_SYMBOL, hit->process);
		if (result < 0)
			return result;
	}
	/*
	 * A managed image is its own module, but a single-file program's image contains many
	 * modules.
	 */
	if (in_image && !is_managed_image(path)) {
		const char *assembly =
			codemap_assembly(&process->codemap, code->module_id, &module_len);
		module = malloc(module_len + 5);
		if (module)
			/* fits */
			(void)snprintf(module, module_len + 5, "%.*s.dll", (int)module_len,
				assembly);
	}
	code->written = true;
	bytes_reset(&symbolizer->payload);
	payload_code_added(&symbolizer->payload,
		&(struct payload_code_added){ .begin = code->begin,
			.end = code->end,
			.name = code->reused ? bytes_z(&symbolizer->text) : "",
			.module = module ? module : "",
			.kind = code->kind,
			.tier = code->tier,
			.method_id = code->method_id,
			.mapping_id = mapping->id });
	return emit(symbolizer, SPOOR_CODE_ADDED, hit->process);
}

/* ---- questions to the symbol worker ---- */

static uint64_t question_key(enum name_question_kind kind, uint32_t image, uint64_t place)
{
	return hash_u64(place) ^ hash_u64((uint64_t)kind << 32 | image);
}

/* NULL without memory. */
static struct symbol_worker *worker_of(struct symbolizer *symbolizer)
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
		worker_of(symbolizer) ? calloc(1, sizeof(*question)) : NULL;

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
	question->path = strdup(mapping_index ? text_at(symbolizer, mapping->path) : "");
	question->build_id = strdup(mapping_index ? text_at(symbolizer, mapping->build_id) : "");
	if (!question->path || !question->build_id || !map_add(&symbolizer->asked, key, 1)) {
		name_question_free(question);
		return NULL;
	}
	symbol_worker_ask(symbolizer->worker, question);
	return NULL;
}

static void take_maps(struct symbolizer *symbolizer, const struct name_answer *answer);

/* Fetches the answers that are ready, for one pass over the waiting addresses. */
static void take_answers(struct symbolizer *symbolizer)
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

/*
 * Called after a pass. Answers about a file, with or without a symbol, are kept for other processes
 * with the same address (a program that is started repeatedly), at most ANSWERS_KEPT_MAX. Failures
 * to open a file are dropped, because another process may provide the file.
 */
static void drop_answers(struct symbolizer *symbolizer, bool all)
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

/* ---- the kernel ---- */

void symbolizer_open_kernel(struct symbolizer *symbolizer)
{
	struct kernel_symbol symbol;

	if (symbolizer->kernel_error == 1)
		symbolizer->kernel_error = kernel_symbols_open(&symbolizer->kernel_asked);
	if (!symbolizer->kernel_asked) {
		/* Reads the kernel's symbols now: the process may lose the right later. */
		if (worker_of(symbolizer))
			symbol_worker_open_kernel(symbolizer->worker);
		return;
	}
	uint64_t before = rights_pause(RIGHT_BPF | RIGHT_SYS_ADMIN);
	symbolizer->kernel_needs_right = kernel_symbols_find(symbolizer->kernel_asked,
						 arch_here()->kernel_begin, &symbol) == -EPERM;
	rights_restore(before);
}

/* Writes the kernel's mapping to each process with kernel frames, with the same id for all. */
static int map_kernel(struct symbolizer *symbolizer, uint32_t process)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, process);

	if (!own || own->kernel_mapped)
		return own ? 0 : -ENOMEM;
	own->kernel_mapped = true;
	if (!symbolizer->kernel_mapping_id)
		symbolizer->kernel_mapping_id = symbolizer->next_id++;
	bytes_reset(&symbolizer->payload);
	payload_mapping(&symbolizer->payload,
		&(struct payload_mapping){ .id = symbolizer->kernel_mapping_id,
			.begin = arch_here()->kernel_begin,
			.end = UINT64_MAX,
			.path = "vmlinux" });
	return emit(symbolizer, SYSTEM_PROCESS_MAPPING, process);
}

static uint8_t write_kernel_symbol(struct symbolizer *symbolizer, uint64_t begin, uint64_t end,
	const char *name, size_t name_len)
{
	return write_symbol(symbolizer, 0, symbolizer->kernel_mapping_id, begin, end, name,
		       name_len) < 0
		       ? UNNAMED_NO_MEMORY
		       : HIT_NAMED;
}

/*
 * Names a kernel address: by a query to the kernel if it supports that, else by the symbol worker,
 * which reads /proc/kallsyms.
 */
static uint8_t answer_kernel(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit)
{
	struct kernel_symbol symbol;

	if (symbolizer->kernel_error == 1)
		symbolizer->kernel_error = kernel_symbols_open(&symbolizer->kernel_asked);
	if (!symbolizer->kernel_asked) {
		const struct name_answer *answer = ask(symbolizer, ASK_KERNEL, 0, hit->address, 0);
		if (!answer)
			return symbolizer->asking_ended ? (uint8_t)UNNAMED_KERNEL_HIDDEN
							: HIT_WAITING;
		if (answer->error < 0)
			return UNNAMED_KERNEL_HIDDEN;
		if (!answer->found)
			return UNNAMED_NO_SYMBOLS;
		return write_kernel_symbol(symbolizer, answer->begin,
			answer->begin + answer->size_bytes, answer->name, strlen(answer->name));
	}
	if (kernel_symbols_find(symbolizer->kernel_asked, hit->address, &symbol) != 1)
		return UNNAMED_NO_SYMBOLS;
	bytes_reset(&symbolizer->text);
	bytes_text(&symbolizer->text, symbol.name);
	if (*symbol.module)
		bytes_printf(&symbolizer->text, " [%s]", symbol.module);
	return write_kernel_symbol(symbolizer, symbol.begin, symbol.end, bytes_z(&symbolizer->text),
		symbolizer->text.len);
}

/* ---- images ---- */

/*
 * Identifies the processes that may share symbol tables. A build id is a claim of the target, and a
 * forged one must not change the names of other users' code. So files with the same identity are
 * treated as one only between processes of the same user in the same mount namespace, which could
 * modify each other anyway. 0: unknown, as for an ended process; its files are searched by their
 * path on this machine, so the path identifies them.
 */
static uint64_t sharing_of(struct symbolizer *symbolizer, uint32_t index)
{
	const struct process *process = &symbolizer->options.trace->processes.items[index];
	struct symbolizer_process *own = symbolizer_process(symbolizer, index);

	if (!own || process->ended)
		return 0;
	if (!own->sharing_asked) {
		uint64_t space = target_mount_namespace(process->pid);
		own->sharing_asked = true;
		own->sharing = space ? hash_u64(space) ^ hash_u64(process->uid + UINT64_C(1)) : 0;
	}
	return own->sharing;
}

static uint64_t image_key(struct symbolizer *symbolizer, const struct mapping *mapping)
{
	const char *build_id = text_at(symbolizer, mapping->build_id);
	const char *path = text_at(symbolizer, mapping->path);
	uint64_t of_path = hash_bytes(path, strlen(path));

	if (mapping_kind_of(path) == MAPPING_VDSO)
		return of_path;
	uint64_t whose = sharing_of(symbolizer, mapping->process);

	if (!whose)
		whose = of_path;
	if (*build_id)
		return hash_bytes(build_id, strlen(build_id)) ^ whose;
	if (mapping->inode)
		return hash_u64(mapping->inode) ^ hash_u64(mapping->device + 1) ^ whose;
	return of_path ^ hash_u64(mapping->process + 1);
}

/* The index of a mapping's image; 0 without memory. */
static uint32_t image_of(struct symbolizer *symbolizer, const struct mapping *mapping)
{
	uint64_t key = image_key(symbolizer, mapping);
	uint32_t index = map_get(&symbolizer->image_index, key);

	if (index)
		return index;
	if (!vec_push(&symbolizer->images))
		return 0;
	index = symbolizer->images.count - 1;
	return map_add(&symbolizer->image_index, key, index) ? index : 0;
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
	const char *path = text_at(symbolizer, mapping->path);

	if (mapping->id || symbolizer->options.mappings_only || *path != '/' ||
		is_jit_memory(path) || is_managed_image(path))
		return true;
	uint32_t image = image_of(symbolizer, mapping);

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
	if (write_symbol(symbolizer, hit->process, mapping->id, begin, end, name, strlen(name)) < 0)
		return UNNAMED_NO_MEMORY;
	return HIT_NAMED;
}

/*
 * Names a vdso address. All processes of one architecture have the same vdso, so the recorder's own
 * is read.
 */
static uint8_t answer_vdso(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit)
{
	const struct mapping *mapping = &symbolizer->options.trace->mappings.items[hit->mapping];
	const uint8_t *vdso = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct diag quiet = { 0 };
	struct symbol_hit symbol;

	if (vdso && !symbolizer->vdso_tried)
		/* without symbols names show offsets */
		(void)symbol_file_open_memory(vdso, VDSO_BYTES, &symbolizer->vdso, &quiet);
	symbolizer->vdso_tried = true;
	if (!symbolizer->vdso)
		return UNNAMED_NO_IMAGE;
	if (!symbol_file_find_vaddr(symbolizer->vdso, hit->address - mapping->begin, &symbol))
		return UNNAMED_NO_SYMBOLS;
	return write_native(symbolizer, hit, symbol.begin_vaddr,
		symbol.end_vaddr - symbol.begin_vaddr, 0, symbol.name);
}

/*
 * Names an address from the mapped file: by a symbol of an ELF image, or by a method of a
 * precompiled managed image.
 */
static uint8_t answer_file(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit,
	enum name_question_kind kind)
{
	const struct mapping *mapping = &symbolizer->options.trace->mappings.items[hit->mapping];
	uint32_t image = image_of(symbolizer, mapping);

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

/* ---- managed code ---- */

/*
 * Requests the files that other runtimes (and .NET, if its environment enables it) write for perf.
 * True when they are in the codemap or cannot be read.
 */
static bool maps_are_read(struct symbolizer *symbolizer, uint32_t index)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, index);
	struct name_question *question;

	if (own->maps_read || symbolizer->asking_ended)
		return true;
	own->awaits = true;
	if (own->maps_asked)
		return false;
	question = new_question(symbolizer, ASK_MAPS, index);
	if (!question) {
		own->maps_read = true;
		return true;
	}
	own->maps_asked = question->place = ++symbolizer->maps_asked;
	symbol_worker_ask(symbolizer->worker, question);
	return false;
}

static void take_maps(struct symbolizer *symbolizer, const struct name_answer *answer)
{
	for (uint32_t i = 1; i < symbolizer->processes.count; i++) {
		struct symbolizer_process *own = &symbolizer->processes.items[i];
		if (own->maps_asked != answer->place)
			continue;
		own->maps_read = true;
		if (!answer->codemap)
			return;
		codemap_settle(answer->codemap);
		for (uint32_t c = 0; c < answer->codemap->codes.count; c++)
			if (codemap_add(&own->codemap, &answer->codemap->codes.items[c]) == -ENOMEM)
				return; /* the missing symbols stay unnamed */
		return;
	}
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
	int result = write_symbol(symbolizer, hit->process, mapping->id, begin, end,
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
	return emit(symbolizer, SPOOR_CODE_ADDED, hit->process);
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
	if (!last && own->untold && !hit->stub && hit->time_ns >= own->rundown_ns)
		own->untold_hit = true;
	if (!last)
		return own->managed == MANAGED_REFUSED ? UNNAMED_NOT_ASKED : HIT_WAITING;
	if (own->managed != MANAGED_KNOWN)
		return UNNAMED_NOT_ASKED;
	/*
	 * The next code loaded at this address may have been sampled too; there is no name for any
	 * earlier code.
	 */
	struct code *next =
		hit->gone ? NULL : codemap_find_next(&own->codemap, hit->address, hit->time_ns);

	if (next)
		return write_code(symbolizer, hit, next) < 0 ? UNNAMED_NO_MEMORY : HIT_NAMED;
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

	return removable && reports && code->until_ns == UINT64_MAX &&
	       hit->time_ns > code->stood_ns && hit->time_ns > own->reported_ns &&
	       now_ns < hit->time_ns + REMOVAL_WAIT_NS;
}

/*
 * Names one sampled address. Returns its new state: named, the cause why it has no name, or
 * waiting.
 */
static uint8_t answer(struct symbolizer *symbolizer, struct symbolizer_hit_entry *hit,
	uint64_t now_ns, bool last)
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
	if (write_mapping(symbolizer, hit->mapping) < 0)
		return UNNAMED_NO_MEMORY;
	if (symbolizer->options.mappings_only)
		return UNNAMED_NO_SYMBOLS;
	const char *path = text_at(symbolizer, trace->mappings.items[hit->mapping].path);

	if (own->codemap.codes.count) {
		struct code *code = codemap_find(&own->codemap, hit->address, hit->time_ns);
		if (code && !last &&
			(module_may_come(own, code) || removal_may_come(own, code, hit, now_ns)))
			return HIT_WAITING;
		if (code)
			return write_code(symbolizer, hit, code) < 0 ? UNNAMED_NO_MEMORY
								     : HIT_NAMED;
	}
	if (is_jit_memory(path))
		return answer_jit(symbolizer, hit, now_ns, last);
	if (mapping_kind_of(path) == MAPPING_VDSO)
		return answer_vdso(symbolizer, hit);
	if (is_managed_image(path)) {
		if (!last && (own->managed == MANAGED_ASKING || own->managed == MANAGED_KNOWN))
			return HIT_WAITING;
		uint8_t state = answer_file(symbolizer, hit, ASK_METHOD);
		return state == HIT_NAMED || state == HIT_WAITING || own->managed == MANAGED_REFUSED
			       ? state
			       : UNNAMED_NO_METHOD;
	}
	if (*path != '/')
		return UNNAMED_NO_SYMBOLS;
	/*
	 * A single-file program's own image contains ReadyToRun code that only the runtime can
	 * name.
	 */
	if (own->managed == MANAGED_ASKING && !last &&
		trace->mappings.items[hit->mapping].path ==
			trace->processes.items[hit->process].executable)
		return HIT_WAITING;
	return answer_file(symbolizer, hit, ASK_SYMBOL);
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
		int result = kernel ? map_kernel(symbolizer, process) : 0;
		if (result < 0)
			return result;
		if (find_hit(symbolizer, owner, frames[i], false))
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

	take_answers(symbolizer);
	for (uint32_t i = 0; i < symbolizer->processes.count; i++)
		symbolizer->processes.items[i].awaits = false;
	for (uint32_t i = 0; i < symbolizer->waiting.count; i++) {
		uint32_t index = symbolizer->waiting.items[i];
		struct symbolizer_hit_entry *hit = &symbolizer->hits.items[index];
		if (hit->state == HIT_WAITING)
			hit->state = answer(symbolizer, hit, now_ns, last);
		if (hit->state == HIT_WAITING)
			symbolizer->waiting.items[kept++] = index;
	}
	symbolizer->waiting.count = kept;
	if (symbolizer->answers.count > before)
		drop_answers(symbolizer, false);
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

/*
 * Methods at addresses that another method used before need an unload event; otherwise viewers show
 * the first method's name for them.
 */
static void end_reused_code(struct symbolizer *symbolizer)
{
	for (uint32_t p = 1; p < symbolizer->processes.count; p++) {
		const struct codemap *codemap = &symbolizer->processes.items[p].codemap;
		vec_each(code, &codemap->codes) {
			if (!code->written || !code->reused || code->removal_told)
				continue;
			bytes_reset(&symbolizer->payload);
			clr_method_unload_payload(code, &symbolizer->payload);
			/* the sink keeps its error */
			(void)emit(symbolizer, CLR_METHOD_UNLOAD_VERBOSE, p);
		}
	}
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
	end_reused_code(symbolizer);
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
			if (code->removal_told || code->until_ns == UINT64_MAX)
				continue;
			code->removal_told = true;
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
		hit->state = answer(symbolizer, hit, hit->time_ns, false);
		if (hit->state == HIT_WAITING && !hit->gone && hit->mapping &&
			hit->time_ns < body->from_ns)
			hidden = hit;
	}
	/*
	 * An earlier sample at this address found no method. This body may have been sampled as
	 * well, so it is written; later samples are looked up again.
	 */
	if (!body->written && (!hidden || write_code(symbolizer, hidden, body) < 0))
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

/* Limit of symbol_index; above it the index is emptied, and some symbols are written again. */
#define SYMBOLS_KEPT_MAX 200000u

/*
 * Removes the symbols in the mappings of ended processes from the index, because they are not
 * looked up again. Without memory they stay.
 */
static void forget_symbols(struct symbolizer *symbolizer, const bool *dead, uint32_t count)
{
	const struct trace *trace = symbolizer->options.trace;
	struct map gone = { 0 };
	struct map kept = { 0 };
	bool complete = true;

	for (uint32_t p = 1; p < count && p < trace->processes.count; p++)
		for (uint32_t i = 0; dead[p] && i < trace->processes.items[p].mappings.count; i++) {
			const struct mapping *mapping =
				&trace->mappings.items[trace->processes.items[p].mappings.items[i]];
			complete = complete &&
				   (!mapping->id || map_put(&gone, symbol_value(mapping->id), 1));
		}
	for (uint32_t i = 0; complete && i < symbolizer->symbol_index.capacity; i++) {
		const struct map_slot *slot = &symbolizer->symbol_index.slots[i];
		if (slot->value && !map_get(&gone, slot->value))
			complete = map_add(&kept, slot->key, slot->value);
	}
	if (complete) {
		map_done(&symbolizer->symbol_index);
		symbolizer->symbol_index = kept;
		kept = (struct map){ 0 };
	}
	map_done(&kept);
	map_done(&gone);
	if (symbolizer->symbol_index.count > SYMBOLS_KEPT_MAX)
		map_reset(&symbolizer->symbol_index);
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
			hit->state = answer(symbolizer, hit, UINT64_MAX, true);
	}
	symbolizer->asking_ended = asking_ended;
	count_frames(symbolizer);
	symbolizer->previous_process = 0;
	/*
	 * Rebuilds the table without the ended processes. Waiting entries are recognized by their
	 * state.
	 */
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
	forget_symbols(symbolizer, dead, count);
	for (uint32_t i = 0; i < count && i < symbolizer->processes.count; i++) {
		if (!dead[i])
			continue;
		codemap_done(&symbolizer->processes.items[i].codemap);
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
		total += codemap_size_bytes(&symbolizer->processes.items[i].codemap);
	return total + (symbolizer->worker ? symbol_worker_size_bytes(symbolizer->worker) : 0);
}

void symbolizer_done(struct symbolizer *symbolizer)
{
	for (uint32_t i = 0; i < symbolizer->processes.count; i++)
		codemap_done(&symbolizer->processes.items[i].codemap);
	for (uint32_t i = 0; i < symbolizer->images.count; i++)
		free(symbolizer->images.items[i].facts);
	if (symbolizer->worker)
		drop_answers(symbolizer, true);
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
