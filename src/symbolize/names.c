/* See names.h. */
#include "symbolize/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/text.h"
#include "code/arch.h"
#include "code/mapping_kind.h"
#include "code/symbol_file.h"
#include "machine/kernel_symbol.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "symbolize/name_desk.h"
#include "symbolize/name_tables.h"
#include "trace/clr.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

#define STUB_AROUND_BYTES  0x60u          /* read before an address in JIT memory, and as much behind it */
#define STUB_SETTLE_NS     UINT64_C(750000000) /* by then a method would have told of itself */
#define REMOVAL_WAIT_NS    UINT64_C(30000000000) /* longer than a runtime that works at all delays its events */
#define ANSWERS_KEPT_MAX   8192u
#define PATIENCE_NS        UINT64_C(20000000)   /* of a flush: four hundredths of the time between two */
#define FINISH_BOUND_NS    UINT64_C(5000000000)
#define VDSO_BYTES         8192u /* two pages: what every kernel maps at least */

/* struct names_hit_entry.state: below HIT_WAITING a cause. */
enum hit_state { HIT_WAITING = UNNAMED_CAUSE_COUNT, HIT_NAMED };

int names_init(struct names *names, const struct names_options *options)
{
	*names = (struct names){ .options = *options, .next_id = 1, .kernel_error = 1 };
	if (!vec_push(&names->hits) || !vec_push(&names->pairs) || !vec_push(&names->images))
		return -ENOMEM;
	return 0;
}

struct names_process *names_process(struct names *names, uint32_t process)
{
	while (names->processes.count <= process)
		if (!vec_push(&names->processes))
			return NULL;
	return &names->processes.items[process];
}

static const char *text_at(const struct names *names, uint32_t index)
{
	return strtab_get(&names->options.trace->strings, index);
}

static bool is_jit_memory(const char *path)
{
	return mapping_kind_of(path) == MAPPING_JIT;
}

static bool is_managed_image(const char *path)
{
	return mapping_kind_of(path) == MAPPING_MANAGED_IMAGE;
}

/* ---- what goes into the file ---- */

static int emit(struct names *names, enum known_event known, uint32_t process)
{
	if (names->payload.failed)
		return -ENOMEM;
	return names->options.emit(names->options.context, known, process, &names->payload);
}

static uint32_t image_of(struct names *names, const struct mapping *mapping);
static uint64_t image_key(struct names *names, const struct mapping *mapping);

/* The mapping, and before it what identifies its image, at its first hit. */
static int write_mapping(struct names *names, uint32_t index)
{
	struct trace *trace = names->options.trace;
	struct mapping *mapping = &trace->mappings.items[index];
	const char *path = text_at(names, mapping->path);
	struct names_process *process = names_process(names, mapping->process);
	uint64_t metadata_id = 0;

	if (mapping->id)
		return 0;
	if (!is_jit_memory(path) && *path == '/') {
		uint32_t image = names->options.mappings_only ? 0 : image_of(names, mapping);
		const struct name_facts *facts = image ? names->images.items[image].facts : NULL;
		if (facts && *facts->build_id) {
			mapping->build_id = trace_add_text(trace, facts->build_id);
			/* The same file under the name that others may know it by. */
			if (!map_get(&names->image_index, image_key(names, mapping)))
				(void)map_add(&names->image_index, image_key(names, mapping), image); /* else it is opened again */
		}
		if (mapping->build_id) {
			bytes_reset(&names->text);
			payload_elf_metadata(&names->text, text_at(names, mapping->build_id),
				facts ? facts->debug_link : NULL, facts ? facts->text_vaddr : 0, facts ? facts->text_offset : 0);
			metadata_id = names->next_id++;
			bytes_reset(&names->payload);
			payload_mapping_metadata(&names->payload,
				&(struct payload_mapping_metadata){ .id = metadata_id,
					.symbols = bytes_z(&names->text) });
			int result = emit(names, SYSTEM_MAPPING_METADATA, mapping->process);
			if (result < 0)
				return result;
		}
	}
	/* Viewers know a runtime's code heap by this name only; without W^X it is anonymous. */
	if (process && process->managed != MANAGED_NONE && strncmp(path, "//anon", strlen("//anon")) == 0)
		path = "/memfd:doublemapper";
	mapping->id = names->next_id++;
	bytes_reset(&names->payload);
	payload_mapping(&names->payload,
		&(struct payload_mapping){ .id = mapping->id,
			.begin = mapping->begin,
			.end = mapping->end,
			.file_offset = mapping->file_offset,
			.path = path,
			.metadata_id = metadata_id });
	return emit(names, SYSTEM_PROCESS_MAPPING, mapping->process);
}

/* What symbol_index has of a mapping. No mapping gets an id twice, and 0 is no value. */
static uint32_t symbol_value(uint64_t mapping_id)
{
	uint32_t value = (uint32_t)mapping_id;

	return value ? value : 1;
}

static bool first_time(struct names *names, uint64_t mapping_id, uint64_t begin)
{
	uint64_t key = hash_u64(mapping_id) ^ begin;

	if (map_get(&names->symbol_index, key))
		return false;
	return map_add(&names->symbol_index, key, symbol_value(mapping_id));
}

static int write_symbol(struct names *names, uint32_t process, uint64_t mapping_id, uint64_t begin,
	uint64_t end, const char *name, size_t name_len)
{
	if (!first_time(names, mapping_id, begin))
		return 0;
	bytes_reset(&names->payload);
	payload_symbol(&names->payload,
		&(struct payload_symbol){ .id = names->next_id++,
			.mapping_id = mapping_id,
			.begin = begin,
			.end = end,
			.name = name,
			.name_len = name_len });
	return emit(names, SYSTEM_PROCESS_SYMBOL, process);
}

/* A managed body: its name as a symbol, and what a symbol cannot say (kind, tier, lifetime). */
static int write_code(struct names *names, const struct names_hit_entry *hit, struct code *code)
{
	struct trace *trace = names->options.trace;
	const struct mapping *mapping = &trace->mappings.items[hit->mapping];
	const char *path = text_at(names, mapping->path);
	bool in_image = !is_jit_memory(path);
	struct names_process *process = names_process(names, hit->process);
	size_t module_len = 0;
	cleanup(freep) char *module = NULL;
	int result = write_mapping(names, hit->mapping);

	if (result < 0 || code->written)
		return result;
	mapping = &trace->mappings.items[hit->mapping];
	bytes_reset(&names->text);
	/* What perf maps tell of other runtimes is a whole name, with no type and no assembly to it. */
	if (!*code->name_space && (code->kind == CODE_UNKNOWN || code->kind == CODE_STUB))
		bytes_text(&names->text, code->name);
	else
		codemap_symbol_text(&process->codemap, code, in_image, &names->text);
	code->reused = !first_time(names, mapping->id, code->begin);
	if (!code->reused) {
		bytes_reset(&names->payload);
		payload_symbol(&names->payload,
			&(struct payload_symbol){ .id = names->next_id++,
				.mapping_id = mapping->id,
				.begin = code->begin,
				.end = code->end,
				.name = bytes_z(&names->text),
				.name_len = names->text.len });
		result = emit(names, SYSTEM_PROCESS_SYMBOL, hit->process);
		if (result < 0)
			return result;
	}
	/* An image's name is its module; a single-file program's image holds many. */
	if (in_image && !is_managed_image(path)) {
		const char *assembly = codemap_assembly(&process->codemap, code->module_id, &module_len);
		module = malloc(module_len + 5);
		if (module)
			(void)snprintf(module, module_len + 5, "%.*s.dll", (int)module_len, assembly); /* fits */
	}
	code->written = true;
	bytes_reset(&names->payload);
	payload_code_added(&names->payload,
		&(struct payload_code){ .begin = code->begin,
			.end = code->end,
			.name = code->reused ? bytes_z(&names->text) : "",
			.module = module ? module : "",
			.kind = code->kind,
			.tier = code->tier,
			.method_id = code->method_id,
			.mapping_id = mapping->id });
	return emit(names, SPOOR_CODE_ADDED, hit->process);
}

/* ---- what is asked at the desk ---- */

static uint64_t question_key(enum name_question_kind kind, uint32_t image, uint64_t place)
{
	return hash_u64(place) ^ hash_u64((uint64_t)kind << 32 | image);
}

/* NULL: no memory. */
static struct name_desk *names_desk(struct names *names)
{
	if (!names->desk && name_desk_new(names->options.box, names->options.symbol_paths, &names->desk) < 0)
		names->desk = NULL;
	return names->desk;
}

/* Who has the file, as it is known now. NULL: no memory. */
static struct name_question *new_question(struct names *names, enum name_question_kind kind, uint32_t process)
{
	const struct process *owner = &names->options.trace->processes.items[process];
	struct name_question *question = names_desk(names) ? calloc(1, sizeof(*question)) : NULL;

	if (!question)
		return NULL;
	question->kind = kind;
	question->pid = owner->pid;
	question->inner_pid = owner->inner_pid;
	question->ended = owner->ended;
	return question;
}

/*
 * The answer to a question, if it is there in this pass; else NULL, and the question is asked unless that has been done. What is waited for keeps the process's place.
 */
static const struct name_answer *ask(struct names *names, enum name_question_kind kind, uint32_t image, uint64_t place,
	uint32_t mapping_index)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[mapping_index];
	uint64_t key = question_key(kind, image, place);

	for (struct map_walk w = map_find(&names->answer_index, key); w.value; map_next(&w)) {
		const struct name_answer *answer = names->answers.items[w.value - 1];
		if (answer->kind == kind && answer->image == image && answer->place == place)
			return answer;
	}
	if (names->asking_ended)
		return NULL;
	if (mapping_index)
		names_process(names, mapping->process)->awaits = true;
	if (map_get(&names->asked, key))
		return NULL;
	struct name_question *question = new_question(names, kind, mapping_index ? mapping->process : 0);

	if (!question)
		return NULL;
	question->image = image;
	question->place = place;
	if (mapping_index) {
		question->begin = mapping->begin;
		question->end = mapping->end;
		question->inode = mapping->inode;
		question->wants_facts = !names->images.items[image].known;
	}
	question->path = strdup(mapping_index ? text_at(names, mapping->path) : "");
	question->build_id = strdup(mapping_index ? text_at(names, mapping->build_id) : "");
	if (!question->path || !question->build_id || !map_add(&names->asked, key, 1)) {
		name_question_free(question);
		return NULL;
	}
	name_desk_ask(names->desk, question);
	return NULL;
}

static void take_maps(struct names *names, const struct name_answer *answer);

/* What the desk has ready, for one pass over what waits. */
static void take_answers(struct names *names)
{
	struct name_answer *answer;

	while (names->desk && (answer = name_desk_take(names->desk))) {
		uint64_t key = question_key(answer->kind, answer->image, answer->place);
		struct names_image *image = answer->image ? &names->images.items[answer->image] : NULL;
		names->files_skipped = names->files_skipped || answer->skipped;
		if (answer->kind == ASK_MAPS)
			take_maps(names, answer);
		else
			map_remove(&names->asked, key, 1);
		if (image && answer->kind == ASK_SYMBOL) {
			image->known = true;
			if (answer->facts && !image->facts)
				image->facts = TAKE(answer->facts);
		}
		if (answer->kind == ASK_MAPS || !vec_add(&names->answers, answer)) {
			name_desk_give_back(names->desk, answer); /* no memory: it is asked for again */
			continue;
		}
		name_question_free(TAKE(answer->question));
		(void)map_add(&names->answer_index, key, names->answers.count); /* as above */
	}
}

/*
 * After a pass. What was found, or is not to be found, is kept for others that hit the same place (a program that is started again and again), up to
 * a bound; failures are not, since another process may show the file.
 */
static void drop_answers(struct names *names, bool all)
{
	uint32_t kept = 0;

	all = all || names->answers.count > ANSWERS_KEPT_MAX;
	map_reset(&names->answer_index);
	for (uint32_t i = 0; i < names->answers.count; i++) {
		struct name_answer *answer = names->answers.items[i];
		uint64_t key = question_key(answer->kind, answer->image, answer->place);
		if (all || answer->error < 0 || !map_add(&names->answer_index, key, kept + 1))
			name_desk_give_back(names->desk, answer);
		else
			names->answers.items[kept++] = answer;
	}
	names->answers.count = kept;
}

/* ---- the kernel ---- */

void names_open_kernel(struct names *names)
{
	struct kernel_symbol symbol;

	if (names->kernel_error == 1)
		names->kernel_error = kernel_symbols_open(&names->kernel_asked);
	if (!names->kernel_asked) {
		/* Its list of names is read now: later the right may be gone. */
		if (names_desk(names))
			name_desk_open_kernel(names->desk);
		return;
	}
	uint64_t before = rights_pause(RIGHT_BPF | RIGHT_SYS_ADMIN);
	names->kernel_needs_right = kernel_symbols_find(names->kernel_asked, arch_here()->kernel_begin, &symbol) == -EPERM;
	rights_restore(before);
}

/* The kernel's mapping: one id for all processes that have kernel frames, told to each. */
static int map_kernel(struct names *names, uint32_t process)
{
	struct names_process *own = names_process(names, process);

	if (!own || own->kernel_mapped)
		return own ? 0 : -ENOMEM;
	own->kernel_mapped = true;
	if (!names->kernel_mapping_id)
		names->kernel_mapping_id = names->next_id++;
	bytes_reset(&names->payload);
	payload_mapping(&names->payload,
		&(struct payload_mapping){ .id = names->kernel_mapping_id,
			.begin = arch_here()->kernel_begin,
			.end = UINT64_MAX,
			.path = "vmlinux" });
	return emit(names, SYSTEM_PROCESS_MAPPING, process);
}

static uint8_t write_kernel_symbol(struct names *names, uint64_t begin, uint64_t end, const char *name,
	size_t name_len)
{
	return write_symbol(names, 0, names->kernel_mapping_id, begin, end, name, name_len) < 0 ? UNNAMED_NO_MEMORY
												: HIT_NAMED;
}

/* The kernel itself names what is hit, at once; where it does not, its list of names is read at the desk. */
static uint8_t answer_kernel(struct names *names, const struct names_hit_entry *hit)
{
	struct kernel_symbol symbol;

	if (names->kernel_error == 1)
		names->kernel_error = kernel_symbols_open(&names->kernel_asked);
	if (!names->kernel_asked) {
		const struct name_answer *answer = ask(names, ASK_KERNEL, 0, hit->address, 0);
		if (!answer)
			return names->asking_ended ? (uint8_t)UNNAMED_KERNEL_HIDDEN : HIT_WAITING;
		if (answer->error < 0)
			return UNNAMED_KERNEL_HIDDEN;
		if (!answer->found)
			return UNNAMED_NO_SYMBOLS;
		return write_kernel_symbol(names, answer->begin, answer->begin + answer->size_bytes, answer->name,
			strlen(answer->name));
	}
	if (kernel_symbols_find(names->kernel_asked, hit->address, &symbol) != 1)
		return UNNAMED_NO_SYMBOLS;
	bytes_reset(&names->text);
	bytes_text(&names->text, symbol.name);
	if (*symbol.module)
		bytes_printf(&names->text, " [%s]", symbol.module);
	return write_kernel_symbol(names, symbol.begin, symbol.end, bytes_z(&names->text), names->text.len);
}

/* ---- images ---- */

/*
 * Who shares tables. A build id is the target's own claim, and a forged one must not name the code of others; so files are taken to be the same for
 * processes of one user in one mount namespace, who could change each other's anyway. 0: not to be known, as for a process that has ended;
 * its files are looked for at their path on this machine, and that is what it shares.
 */
static uint64_t sharing_of(struct names *names, uint32_t index)
{
	const struct process *process = &names->options.trace->processes.items[index];
	struct names_process *own = names_process(names, index);

	if (!own || process->ended)
		return 0;
	if (!own->sharing_asked) {
		uint64_t space = target_mount_namespace(process->pid);
		own->sharing_asked = true;
		own->sharing = space ? hash_u64(space) ^ hash_u64(process->uid + UINT64_C(1)) : 0;
	}
	return own->sharing;
}

static uint64_t image_key(struct names *names, const struct mapping *mapping)
{
	const char *build_id = text_at(names, mapping->build_id);
	const char *path = text_at(names, mapping->path);
	uint64_t of_path = hash_bytes(path, strlen(path));

	if (mapping_kind_of(path) == MAPPING_VDSO)
		return of_path;
	uint64_t whose = sharing_of(names, mapping->process);

	if (!whose)
		whose = of_path;
	if (*build_id)
		return hash_bytes(build_id, strlen(build_id)) ^ whose;
	if (mapping->inode)
		return hash_u64(mapping->inode) ^ hash_u64(mapping->device + 1) ^ whose;
	return of_path ^ hash_u64(mapping->process + 1);
}

/* The number of a mapping's image; 0 when there is no memory. */
static uint32_t image_of(struct names *names, const struct mapping *mapping)
{
	uint64_t key = image_key(names, mapping);
	uint32_t index = map_get(&names->image_index, key);

	if (index)
		return index;
	if (!vec_push(&names->images))
		return 0;
	index = names->images.count - 1;
	return map_add(&names->image_index, key, index) ? index : 0;
}

static uint64_t offset_of(const struct mapping *mapping, uint64_t address)
{
	return address - mapping->begin + mapping->file_offset;
}

/*
 * Whether the mapping's image is known as far as it will be, so that the mapping can be written with what identifies it. Else it is asked for,
 * with the hit's own place, whose symbol will be wanted next.
 */
static bool mapping_is_ready(struct names *names, const struct names_hit_entry *hit)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	const char *path = text_at(names, mapping->path);

	if (mapping->id || names->options.mappings_only || *path != '/' || is_jit_memory(path) || is_managed_image(path))
		return true;
	uint32_t image = image_of(names, mapping);

	if (!image || names->images.items[image].known)
		return true;
	(void)ask(names, ASK_SYMBOL, image, offset_of(mapping, hit->address), hit->mapping); /* comes with the next pass */
	return names->asking_ended;
}

/* A symbol of a file, with the addresses it has in this mapping; `offset_of_mapping` is the file offset of its begin. */
static uint8_t write_native(struct names *names, const struct names_hit_entry *hit, uint64_t symbol_offset,
	uint64_t size, uint64_t offset_of_mapping, const char *name)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	uint64_t begin = mapping->begin;
	uint64_t end = mapping->begin + (symbol_offset + size - offset_of_mapping);

	if (symbol_offset > offset_of_mapping)
		begin += symbol_offset - offset_of_mapping;
	if (end > mapping->end)
		end = mapping->end;
	if (write_symbol(names, hit->process, mapping->id, begin, end, name, strlen(name)) < 0)
		return UNNAMED_NO_MEMORY;
	return HIT_NAMED;
}

/* The vdso is the same in all processes of a kind: ours is read, which takes no time. */
static uint8_t answer_vdso(struct names *names, const struct names_hit_entry *hit)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	const uint8_t *vdso = (const uint8_t *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	struct diag quiet = { 0 };
	struct symbol_hit symbol;

	if (vdso && !names->vdso_tried)
		(void)symbol_file_open_memory(vdso, VDSO_BYTES, &names->vdso, &quiet); /* none: offsets are shown */
	names->vdso_tried = true;
	if (!names->vdso)
		return UNNAMED_NO_IMAGE;
	if (!symbol_file_find_vaddr(names->vdso, hit->address - mapping->begin, &symbol))
		return UNNAMED_NO_SYMBOLS;
	return write_native(names, hit, symbol.begin_vaddr, symbol.end_vaddr - symbol.begin_vaddr, 0, symbol.name);
}

/* From the mapped file: a symbol of an ELF image, or a method of a precompiled one whose process cannot be asked. */
static uint8_t answer_file(struct names *names, const struct names_hit_entry *hit, enum name_question_kind kind)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	uint32_t image = image_of(names, mapping);

	if (!image)
		return UNNAMED_NO_MEMORY;
	const struct name_answer *answer = ask(names, kind, image, offset_of(mapping, hit->address), hit->mapping);

	if (!answer)
		return names->asking_ended ? (uint8_t)UNNAMED_NO_IMAGE : HIT_WAITING;
	if (answer->error < 0)
		return answer->error == -ENOMEM ? UNNAMED_NO_MEMORY : UNNAMED_NO_IMAGE;
	if (!answer->found)
		return UNNAMED_NO_SYMBOLS;
	return write_native(names, hit, answer->begin, answer->size_bytes, mapping->file_offset, answer->name);
}

/* ---- managed code ---- */

/* What other runtimes (and .NET, told so by its environment) leave behind for perf. True once it is in the codemap. */
static bool maps_are_read(struct names *names, uint32_t index)
{
	struct names_process *own = names_process(names, index);
	struct name_question *question;

	if (own->maps_read || names->asking_ended)
		return true;
	own->awaits = true;
	if (own->maps_asked)
		return false;
	question = new_question(names, ASK_MAPS, index);
	if (!question) {
		own->maps_read = true;
		return true;
	}
	own->maps_asked = question->place = ++names->maps_asked;
	name_desk_ask(names->desk, question);
	return false;
}

static void take_maps(struct names *names, const struct name_answer *answer)
{
	for (uint32_t i = 1; i < names->processes.count; i++) {
		struct names_process *own = &names->processes.items[i];
		if (own->maps_asked != answer->place)
			continue;
		own->maps_read = true;
		if (!answer->codemap)
			return;
		codemap_settle(answer->codemap);
		for (uint32_t c = 0; c < answer->codemap->codes.count; c++)
			if (codemap_add(&own->codemap, &answer->codemap->codes.items[c]) == -ENOMEM)
				return; /* what is missing stays unnamed */
		return;
	}
}

/* The bytes around an address in JIT memory, while the process is there to be read. */
static void look_for_stub(struct names *names, struct names_hit_entry *hit)
{
	const struct process *process = &names->options.trace->processes.items[hit->process];
	uint8_t code[2 * STUB_AROUND_BYTES];
	size_t at;
	int fd;

	hit->stub_tried = 1;
	if (process->ended || target_memory_open(process->pid, &fd) < 0)
		return;
	uint64_t begin = hit->address - STUB_AROUND_BYTES;
	ssize_t got = target_memory_read(fd, begin, code, sizeof(code));

	if (got <= (ssize_t)STUB_AROUND_BYTES) { /* the page before may not be there */
		begin = hit->address & ~UINT64_C(0xfff);
		got = target_memory_read(fd, begin, code, sizeof(code));
	}
	closep(&fd);
	if (got <= 0 || hit->address - begin >= (uint64_t)got)
		return;
	hit->stub_tried = 2; /* read */
	hit->stub = arch_find_stub(arch_here(), code, (size_t)got, (size_t)(hit->address - begin), &at);
	if (hit->stub)
		hit->stub_offset = (uint8_t)(hit->address - begin - at);
}

static int write_stub(struct names *names, const struct names_hit_entry *hit)
{
	const struct mapping *mapping = &names->options.trace->mappings.items[hit->mapping];
	uint64_t begin = hit->address - (hit->stub ? hit->stub_offset : 0u);
	uint64_t end = hit->stub ? begin + hit->stub->size_bytes : begin + 1;

	if (end <= hit->address)
		end = hit->address + 1;
	if (end > mapping->end)
		end = mapping->end;
	bytes_reset(&names->text);
	bytes_printf(&names->text, "(%s)", hit->stub ? hit->stub->kind : "JIT stub");
	int result = write_symbol(names, hit->process, mapping->id, begin, end, bytes_z(&names->text),
		names->text.len);

	if (result < 0)
		return result;
	bytes_reset(&names->payload);
	payload_code_added(&names->payload,
		&(struct payload_code){ .begin = begin,
			.end = end,
			.name = "",
			.module = "",
			.kind = CODE_STUB,
			.mapping_id = mapping->id });
	return emit(names, SPOOR_CODE_ADDED, hit->process);
}

static uint8_t answer_jit(struct names *names, struct names_hit_entry *hit, uint64_t now_ns, bool last)
{
	struct names_process *own = names_process(names, hit->process);

	if (own->managed == MANAGED_NONE || own->managed == MANAGED_REFUSED) {
		if (!maps_are_read(names, hit->process))
			return HIT_WAITING; /* what they have is looked for before this is asked again */
		if (own->managed == MANAGED_NONE)
			return UNNAMED_NO_SYMBOLS;
	}
	if (!hit->stub_tried)
		look_for_stub(names, hit);
	bool settled = own->managed == MANAGED_KNOWN && now_ns > hit->time_ns + STUB_SETTLE_NS;

	if (own->managed == MANAGED_ASKING && !last)
		return HIT_WAITING;
	if (hit->stub && (settled || last || own->managed == MANAGED_REFUSED))
		return write_stub(names, hit) < 0 ? UNNAMED_NO_MEMORY : HIT_NAMED;
	if (!last && own->untold && !hit->stub && hit->time_ns >= own->rundown_ns)
		own->untold_hit = true;
	if (!last)
		return own->managed == MANAGED_REFUSED ? UNNAMED_NOT_ASKED : HIT_WAITING;
	if (own->managed != MANAGED_KNOWN)
		return UNNAMED_NOT_ASKED;
	/* One that came later may have been hit too: for what was there before nobody has a name. */
	struct code *next = hit->gone ? NULL : codemap_find_next(&own->codemap, hit->address, hit->time_ns);

	if (next)
		return write_code(names, hit, next) < 0 ? UNNAMED_NO_MEMORY : HIT_NAMED;
	/* All methods are known and none owns it: what the runtime made itself. Without the right to read it that is all there is to say. */
	if (hit->stub_tried == 1 && !hit->gone)
		(void)write_stub(names, hit); /* counted as unnamed all the same */
	return names->full ? UNNAMED_NO_MEMORY : UNNAMED_NO_METHOD; /* at the cap methods are taken no more */
}

/*
 * A rundown sends the modules after the methods, and the live session announces methods of modules that were loaded before it began. Until the
 * first rundown has ended such a body has no module yet; its symbol is written once and must not lack it. A body that has ended is written without:
 * its end must stand behind it in the file.
 */
static bool module_may_come(const struct names_process *own, const struct code *code)
{
	return own->managed == MANAGED_ASKING && code->until_ns == UINT64_MAX && code->module_id && code->kind != CODE_DYNAMIC &&
		!codemap_has_module(&own->codemap, code->module_id);
}

/*
 * A runtime may send its events seconds late. Until it has reported the time of the sample, it may still report that this code was removed before the
 * sample, and that other code was loaded at the address. Only dynamic methods and those of collectible assemblies are ever removed. A runtime
 * without events reports no time at all; after REMOVAL_WAIT_NS the code counts as not removed.
 */
static bool removal_may_come(const struct names_process *own, const struct code *code, const struct names_hit_entry *hit, uint64_t now_ns)
{
	bool removable = code->kind == CODE_DYNAMIC || (own->unloads_code && code->kind != CODE_READYTORUN);
	bool reports = own->managed == MANAGED_ASKING || own->managed == MANAGED_KNOWN;

	return removable && reports && code->until_ns == UINT64_MAX && hit->time_ns > code->stood_ns && hit->time_ns > own->reported_ns &&
		now_ns < hit->time_ns + REMOVAL_WAIT_NS;
}

/* One hit: named, not to be named (and why), or still waited for. */
static uint8_t answer(struct names *names, struct names_hit_entry *hit, uint64_t now_ns, bool last)
{
	struct trace *trace = names->options.trace;

	if (!hit->process)
		return names->options.mappings_only ? (uint8_t)UNNAMED_NO_SYMBOLS : answer_kernel(names, hit);
	struct names_process *own = names_process(names, hit->process);

	if (!own)
		return UNNAMED_NO_MEMORY;
	if (!hit->mapping)
		hit->mapping = trace_find_mapping(trace, hit->process, hit->address);
	if (!hit->mapping)
		return last ? UNNAMED_NO_MAPPING : HIT_WAITING;
	if (!mapping_is_ready(names, hit))
		return HIT_WAITING;
	if (write_mapping(names, hit->mapping) < 0)
		return UNNAMED_NO_MEMORY;
	if (names->options.mappings_only)
		return UNNAMED_NO_SYMBOLS;
	const char *path = text_at(names, trace->mappings.items[hit->mapping].path);

	if (own->codemap.codes.count) {
		struct code *code = codemap_find(&own->codemap, hit->address, hit->time_ns);
		if (code && !last && (module_may_come(own, code) || removal_may_come(own, code, hit, now_ns)))
			return HIT_WAITING;
		if (code)
			return write_code(names, hit, code) < 0 ? UNNAMED_NO_MEMORY : HIT_NAMED;
	}
	if (is_jit_memory(path))
		return answer_jit(names, hit, now_ns, last);
	if (mapping_kind_of(path) == MAPPING_VDSO)
		return answer_vdso(names, hit);
	if (is_managed_image(path)) {
		if (!last && (own->managed == MANAGED_ASKING || own->managed == MANAGED_KNOWN))
			return HIT_WAITING;
		uint8_t state = answer_file(names, hit, ASK_METHOD);
		return state == HIT_NAMED || state == HIT_WAITING || own->managed == MANAGED_REFUSED ? state : UNNAMED_NO_METHOD;
	}
	if (*path != '/')
		return UNNAMED_NO_SYMBOLS;
	/* A single-file program's own image holds ReadyToRun code that only the runtime can name. */
	if (own->managed == MANAGED_ASKING && !last &&
		trace->mappings.items[hit->mapping].path == trace->processes.items[hit->process].executable)
		return HIT_WAITING;
	return answer_file(names, hit, ASK_SYMBOL);
}

/* ---- hits ---- */

/* The standing hit; when there is none and `gone` will do, one whose code has ended. */
static uint32_t find_hit(const struct names *names, uint32_t process, uint64_t address, bool gone)
{
	uint64_t key = hash_u64(address) ^ process;
	uint32_t second = 0;

	for (struct map_walk w = map_find(&names->hit_index, key); w.value; map_next(&w)) {
		const struct names_hit_entry *hit = &names->hits.items[w.value];
		if (hit->address != address || hit->process != process)
			continue;
		if (!hit->gone)
			return w.value;
		second = w.value;
	}
	return gone ? second : 0;
}

static int add_hit(struct names *names, uint32_t process, uint32_t mapping, uint64_t address,
	uint64_t time_ns)
{
	if (names->full)
		return 0;
	struct names_hit_entry *hit = vec_push(&names->hits);

	if (!hit)
		return -ENOMEM;
	hit->address = address;
	hit->time_ns = time_ns;
	hit->process = process;
	hit->mapping = mapping;
	hit->state = HIT_WAITING;
	uint32_t index = names->hits.count - 1;

	if (!map_add(&names->hit_index, hash_u64(address) ^ process, index) ||
		!vec_add(&names->waiting, index))
		return -ENOMEM;
	return 0;
}

/* Frames at the root that this stack shares with the one before, which were looked at then: most of them, usually. */
static uint32_t common_root(const struct names *names, uint32_t process, const uint64_t *frames,
	uint32_t count)
{
	uint32_t most = count < names->previous.count ? count : names->previous.count;
	uint32_t same = 0;

	if (names->previous_process != process)
		return 0;
	while (same < most &&
		frames[count - 1 - same] == names->previous.items[names->previous.count - 1 - same])
		same++;
	return same;
}

/* Looks at each frame of a stack that is new to the process. *ret_sound: how many of them are code. */
static int hit_frames(struct names *names, uint32_t process, const uint64_t *frames, uint32_t count,
	uint64_t time_ns, uint32_t *ret_sound)
{
	struct trace *trace = names->options.trace;
	uint64_t kernel_begin = arch_here()->kernel_begin;
	bool mapped = trace->processes.items[process].mappings.count != 0 && !names->full;
	uint32_t fresh = count - common_root(names, process, frames, count);

	*ret_sound = count;
	for (uint32_t i = 0; i < fresh; i++) {
		bool kernel = frames[i] >= kernel_begin;
		uint32_t owner = kernel ? 0 : process;
		uint32_t mapping = 0;
		int result = kernel ? map_kernel(names, process) : 0;
		if (result < 0)
			return result;
		if (find_hit(names, owner, frames[i], false))
			continue;
		if (!kernel)
			mapping = trace_find_mapping(trace, process, frames[i]);
		if (!kernel && !mapping && mapped && i && !names->options.sound) {
			*ret_sound = i;
			return 0;
		}
		if (!kernel && !mapping) {
			struct names_process *own = names_process(names, process);
			if (own)
				own->unmapped = true;
		}
		result = add_hit(names, owner, mapping, frames[i], time_ns);
		if (result < 0)
			return result;
	}
	vec_reset(&names->previous);
	names->previous_process = 0;
	if (vec_reserve(&names->previous, count)) {
		memcpy(names->previous.items, frames, count * sizeof(*frames));
		names->previous.count = count;
		names->previous_process = process;
	}
	return 0;
}

int names_hit(struct names *names, uint32_t process, uint32_t stack_index, uint64_t time_ns,
	uint32_t *ret_stack_index)
{
	struct trace *trace = names->options.trace;
	uint32_t epoch = trace->processes.items[process].code_epoch;
	uint64_t key = hash_u64((uint64_t)process << 32 | stack_index) ^ epoch;

	for (struct map_walk w = map_find(&names->pair_index, key); w.value; map_next(&w)) {
		struct names_pair *pair = &names->pairs.items[w.value];
		if (pair->process == process && pair->stack_index == stack_index && pair->epoch == epoch) {
			pair->count++;
			*ret_stack_index = pair->sound_index;
			return 0;
		}
	}
	struct names_pair *pair = vec_push(&names->pairs);

	if (!pair || !map_add(&names->pair_index, key, names->pairs.count - 1))
		return -ENOMEM;
	*pair = (struct names_pair){ .process = process,
		.stack_index = stack_index,
		.epoch = epoch,
		.count = 1,
		.sound_index = stack_index };
	uint32_t count;
	const uint64_t *frames = stack_table_get(&trace->stacks, stack_index, &count);
	uint32_t sound;
	int result = hit_frames(names, process, frames, count, time_ns, &sound);

	if (result < 0)
		return result;
	if (sound < count) {
		/* Interning may move the table, so not from its own memory. */
		vec_reset(&names->frames);
		if (!vec_reserve(&names->frames, sound))
			return -ENOMEM;
		memcpy(names->frames.items, frames, sound * sizeof(*frames));
		uint32_t index = stack_table_intern(&trace->stacks, names->frames.items, sound);
		if (!index)
			return -ENOMEM;
		pair->sound_index = index;
	}
	*ret_stack_index = pair->sound_index;
	return 0;
}

static void answer_waiting(struct names *names, uint64_t now_ns, bool last)
{
	uint32_t before = names->answers.count;
	uint32_t kept = 0;

	take_answers(names);
	for (uint32_t i = 0; i < names->processes.count; i++)
		names->processes.items[i].awaits = false;
	for (uint32_t i = 0; i < names->waiting.count; i++) {
		uint32_t index = names->waiting.items[i];
		struct names_hit_entry *hit = &names->hits.items[index];
		if (hit->state == HIT_WAITING)
			hit->state = answer(names, hit, now_ns, last);
		if (hit->state == HIT_WAITING)
			names->waiting.items[kept++] = index;
	}
	names->waiting.count = kept;
	if (names->answers.count > before)
		drop_answers(names, false);
}

/*
 * Where nobody else wants the CPU an answer comes in no time: then a name is in the file with the flush that hit it first. Else with a later one.
 */
int names_resolve(struct names *names, uint64_t now_ns)
{
	answer_waiting(names, now_ns, false);
	if (names->desk && name_desk_open_count(names->desk)) {
		uint32_t open = name_desk_open_count(names->desk);
		(void)name_desk_wait(names->desk, clock_monotonic_ns() + PATIENCE_NS); /* what is not ready comes later */
		if (name_desk_open_count(names->desk) < open)
			answer_waiting(names, now_ns, false);
	}
	return 0;
}

/* Frames of the pairs so far, by whether they have a name. */
static void count_frames(struct names *names)
{
	const struct trace *trace = names->options.trace;
	uint64_t kernel_begin = arch_here()->kernel_begin;

	for (uint32_t p = 1; p < names->pairs.count && !names->options.mappings_only; p++) {
		const struct names_pair *pair = &names->pairs.items[p];
		uint32_t count;
		const uint64_t *frames = stack_table_get(&trace->stacks, pair->sound_index, &count);
		names->frames_total += (uint64_t)count * pair->count;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t hit = find_hit(names, frames[i] >= kernel_begin ? 0 : pair->process, frames[i],
				true);
			uint8_t state = hit ? names->hits.items[hit].state : (uint8_t)UNNAMED_NO_MEMORY;
			if (state < UNNAMED_CAUSE_COUNT)
				names->frames_unnamed[state] += pair->count;
		}
	}
	names->pairs.count = 1;
	map_reset(&names->pair_index);
}

/* Bodies on ranges that had another owner before need an end event, or viewers give them the first owner's name. */
static void end_reused_code(struct names *names)
{
	for (uint32_t p = 1; p < names->processes.count; p++) {
		const struct codemap *codemap = &names->processes.items[p].codemap;
		for (uint32_t i = 0; i < codemap->codes.count; i++) {
			const struct code *code = &codemap->codes.items[i];
			if (!code->written || !code->reused || code->removal_told)
				continue;
			bytes_reset(&names->payload);
			clr_method_unload_payload(code, &names->payload);
			(void)emit(names, CLR_METHOD_UNLOAD_VERBOSE, p); /* the sink keeps its own error */
		}
	}
}

int names_finish(struct names *names)
{
	uint64_t until_ns = clock_monotonic_ns() + FINISH_BOUND_NS;

	answer_waiting(names, UINT64_MAX, true);
	while (names->desk && name_desk_open_count(names->desk)) {
		name_desk_hurry(names->desk);
		bool all = name_desk_wait(names->desk, until_ns);
		answer_waiting(names, UINT64_MAX, true); /* which may ask for more */
		if (!all)
			break;
	}
	names->asking_ended = true;
	answer_waiting(names, UINT64_MAX, true);
	end_reused_code(names);
	count_frames(names);
	return 0;
}

void names_removed_codes(struct names *names,
	void (*each)(void *context, uint32_t process, uint32_t code, const struct code *body), void *context)
{
	for (uint32_t p = 1; p < names->processes.count; p++) {
		struct names_process *own = &names->processes.items[p];
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

/* Who asks for an address in the range from now on asks anew. Of what was there, the last is kept findable, to be counted by. */
static void forget_range(struct names *names, uint32_t process, uint64_t begin, uint64_t end)
{
	names->previous_process = 0;
	for (uint32_t i = 1; i < names->hits.count; i++) {
		struct names_hit_entry *hit = &names->hits.items[i];
		uint64_t key = hash_u64(hit->address) ^ process;
		if (hit->gone || hit->process != process || hit->address < begin || hit->address >= end)
			continue;
		map_remove(&names->hit_index, key, i);
		uint32_t before = find_hit(names, process, hit->address, true);
		if (before)
			map_remove(&names->hit_index, key, before);
		(void)map_add(&names->hit_index, key, i); /* there is room: one was taken out */
		hit->gone = true;
	}
}

const struct code *names_end_code(struct names *names, uint32_t process, uint32_t code, uint64_t begin)
{
	struct codemap *codemap = process < names->processes.count ? &names->processes.items[process].codemap : NULL;

	if (!codemap || code >= codemap->codes.count || codemap->codes.items[code].begin != begin)
		return NULL; /* another process has the place by now */
	struct code *body = &codemap->codes.items[code];
	const struct names_hit_entry *hidden = NULL;

	for (uint32_t i = 0; i < names->waiting.count; i++) {
		struct names_hit_entry *hit = &names->hits.items[names->waiting.items[i]];
		if (hit->process != process || hit->address < begin || hit->address >= body->end || hit->state != HIT_WAITING)
			continue;
		hit->state = answer(names, hit, hit->time_ns, false);
		if (hit->state == HIT_WAITING && !hit->gone && hit->mapping && hit->time_ns < body->from_ns)
			hidden = hit;
	}
	/* A hit before it, whose code nobody told of, stands for the address: this body may have been hit as well, and who comes next is asked for anew. */
	if (!body->written && (!hidden || write_code(names, hidden, body) < 0))
		return NULL;
	forget_range(names, process, begin, body->end);
	return body;
}

bool names_awaits(const struct names *names, uint32_t process)
{
	/* At the cap nothing is waited for. */
	return !names->full && process < names->processes.count && names->processes.items[process].awaits;
}

void names_forget_stacks(struct names *names)
{
	count_frames(names);
}

/* Symbols of mappings that are gone are never asked for again, but cannot be told from the others: all go, and a few are written twice. */
#define SYMBOLS_KEPT_MAX 200000u

/* Symbols in the mappings of ended processes are never looked for again. Without memory they stay, and the index is emptied at its limit. */
static void forget_symbols(struct names *names, const bool *dead, uint32_t count)
{
	const struct trace *trace = names->options.trace;
	struct map gone = { 0 };
	struct map kept = { 0 };
	bool complete = true;

	for (uint32_t p = 1; p < count && p < trace->processes.count; p++)
		for (uint32_t i = 0; dead[p] && i < trace->processes.items[p].mappings.count; i++) {
			const struct mapping *mapping = &trace->mappings.items[trace->processes.items[p].mappings.items[i]];
			complete = complete && (!mapping->id || map_put(&gone, symbol_value(mapping->id), 1));
		}
	for (uint32_t i = 0; complete && i < names->symbol_index.capacity; i++) {
		const struct map_slot *slot = &names->symbol_index.slots[i];
		if (slot->value && !map_get(&gone, slot->value))
			complete = map_add(&kept, slot->key, slot->value);
	}
	if (complete) {
		map_done(&names->symbol_index);
		names->symbol_index = kept;
		kept = (struct map){ 0 };
	}
	map_done(&kept);
	map_done(&gone);
	if (names->symbol_index.count > SYMBOLS_KEPT_MAX)
		map_reset(&names->symbol_index);
}

void names_forget_processes(struct names *names, const bool *dead, uint32_t count)
{
	uint32_t kept = 0;
	bool asking_ended = names->asking_ended;

	names->asking_ended = true; /* for these it has */
	for (uint32_t i = 0; i < names->waiting.count; i++) {
		uint32_t index = names->waiting.items[i];
		struct names_hit_entry *hit = &names->hits.items[index];
		if (hit->process < count && dead[hit->process] && hit->state == HIT_WAITING)
			hit->state = answer(names, hit, UINT64_MAX, true);
	}
	names->asking_ended = asking_ended;
	count_frames(names);
	names->previous_process = 0;
	/* The table without the dead; what waits finds its new place through its state. */
	vec_reset(&names->waiting);
	map_reset(&names->hit_index);
	for (uint32_t i = 1; i < names->hits.count; i++) {
		struct names_hit_entry hit = names->hits.items[i];
		if ((hit.process < count && dead[hit.process]) || (hit.gone && hit.state != HIT_WAITING))
			continue;
		names->hits.items[++kept] = hit;
		/* Both have held at least as many before: no memory is asked for. */
		(void)map_add(&names->hit_index, hash_u64(hit.address) ^ hit.process, kept);
		if (hit.state == HIT_WAITING)
			(void)vec_add(&names->waiting, kept);
	}
	names->hits.count = kept + 1;
	forget_symbols(names, dead, count);
	for (uint32_t i = 0; i < count && i < names->processes.count; i++) {
		if (!dead[i])
			continue;
		codemap_done(&names->processes.items[i].codemap);
		names->processes.items[i] = (struct names_process){ 0 };
	}
}

void names_make_room(struct names *names)
{
	if (names->desk)
		name_desk_make_room(names->desk);
}

uint64_t names_size_bytes(const struct names *names)
{
	uint64_t total = map_size_bytes(&names->hit_index) + map_size_bytes(&names->pair_index) +
		map_size_bytes(&names->symbol_index) + map_size_bytes(&names->image_index) +
		names->hits.capacity * sizeof(struct names_hit_entry) +
		names->pairs.capacity * sizeof(struct names_pair) +
		names->processes.capacity * sizeof(struct names_process);

	for (uint32_t i = 1; i < names->processes.count; i++)
		total += codemap_size_bytes(&names->processes.items[i].codemap);
	return total + (names->desk ? name_desk_size_bytes(names->desk) : 0);
}

void names_done(struct names *names)
{
	for (uint32_t i = 0; i < names->processes.count; i++)
		codemap_done(&names->processes.items[i].codemap);
	for (uint32_t i = 0; i < names->images.count; i++)
		free(names->images.items[i].facts);
	if (names->desk)
		drop_answers(names, true);
	name_desk_free(names->desk);
	symbol_file_close(names->vdso);
	kernel_symbols_close(names->kernel_asked);
	vec_done(&names->processes);
	vec_done(&names->hits);
	vec_done(&names->pairs);
	vec_done(&names->images);
	vec_done(&names->waiting);
	vec_done(&names->frames);
	vec_done(&names->previous);
	vec_done(&names->answers);
	map_done(&names->hit_index);
	map_done(&names->pair_index);
	map_done(&names->image_index);
	map_done(&names->symbol_index);
	map_done(&names->asked);
	map_done(&names->answer_index);
	bytes_done(&names->text);
	bytes_done(&names->payload);
}
