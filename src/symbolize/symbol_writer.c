/* See symbol_writer.h. */
#include "symbolize/symbol_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/cleanup.h"
#include "code/arch.h"
#include "code/mapping_kind.h"
#include "machine/target_root.h"
#include "symbolize/code_reader.h"
#include "symbolize/name_tables.h"
#include "trace/clr.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* Limit of symbol_index; above it the index is emptied, and some symbols are written again. */
#define SYMBOLS_KEPT_MAX 200000u

const char *symbol_writer_text(const struct symbolizer *symbolizer, uint32_t index)
{
	return strtab_get(&symbolizer->options.trace->strings, index);
}

bool symbol_writer_is_jit(const char *path)
{
	return mapping_kind_of(path) == MAPPING_JIT;
}

bool symbol_writer_is_managed_image(const char *path)
{
	return mapping_kind_of(path) == MAPPING_MANAGED_IMAGE;
}

int symbol_writer_emit(struct symbolizer *symbolizer, enum known_event known, uint32_t process)
{
	if (symbolizer->payload.failed)
		return -ENOMEM;
	return symbolizer->options.emit(symbolizer->options.context, known, process,
		&symbolizer->payload);
}

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
	const char *build_id = symbol_writer_text(symbolizer, mapping->build_id);
	const char *path = symbol_writer_text(symbolizer, mapping->path);
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

uint32_t symbol_writer_image(struct symbolizer *symbolizer, const struct mapping *mapping)
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

int symbol_writer_mapping(struct symbolizer *symbolizer, uint32_t index)
{
	struct trace *trace = symbolizer->options.trace;
	struct mapping *mapping = &trace->mappings.items[index];
	const char *path = symbol_writer_text(symbolizer, mapping->path);
	struct symbolizer_process *process = symbolizer_process(symbolizer, mapping->process);
	uint64_t metadata_id = 0;

	if (mapping->id)
		return 0;
	if (!symbol_writer_is_jit(path) && *path == '/') {
		uint32_t image = symbolizer->options.mappings_only
					 ? 0
					 : symbol_writer_image(symbolizer, mapping);
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
				symbol_writer_text(symbolizer, mapping->build_id),
				facts ? facts->debug_link : NULL, facts ? facts->text_vaddr : 0,
				facts ? facts->text_offset : 0);
			metadata_id = symbolizer->next_id++;
			bytes_reset(&symbolizer->payload);
			payload_mapping_metadata(&symbolizer->payload,
				&(struct payload_mapping_metadata){
					.id = metadata_id, .symbols = bytes_z(&symbolizer->text) });
			int result = symbol_writer_emit(symbolizer, SYSTEM_MAPPING_METADATA,
				mapping->process);
			if (result < 0)
				return result;
		}
	}
	/* Viewers know a runtime's code heap by this name only; without W^X it is anonymous. */
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
	return symbol_writer_emit(symbolizer, SYSTEM_PROCESS_MAPPING, mapping->process);
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

int symbol_writer_symbol(struct symbolizer *symbolizer, uint32_t process, uint64_t mapping_id,
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
	return symbol_writer_emit(symbolizer, SYSTEM_PROCESS_SYMBOL, process);
}

/* Writes the IL offsets of a body that is in the file, once its runtime has reported them. */
static int write_il(struct symbolizer *symbolizer, uint32_t process, const struct codemap *codemap,
	struct code *code, uint64_t mapping_id)
{
	uint32_t count;
	const struct il_offset *offsets = codemap_find_il(codemap, code, &count);
	const struct code_module *module = codemap_module(codemap, code->module_id);
	uint32_t native[PAYLOAD_LINES_MAX];
	uint32_t il[PAYLOAD_LINES_MAX];

	/* Those of precompiled code are in the assembly, for a reader that has it. */
	if ((!offsets && code->kind != CODE_READYTORUN) || !module || !code->token ||
		code->il_written)
		return 0;
	if (!offsets)
		count = 0;
	code->il_written = true;
	if (count > PAYLOAD_LINES_MAX)
		count = PAYLOAD_LINES_MAX;
	for (uint32_t i = 0; i < count; i++) {
		native[i] = offsets[i].native;
		il[i] = offsets[i].il;
	}
	struct payload_il_offsets payload = { .mapping_id = mapping_id,
		.begin = code->begin,
		.method_id = code->method_id,
		.token = code->token,
		.assembly = module->path,
		.native = native,
		.il = il,
		.count = count };
	memcpy(payload.pdb_id, module->pdb_id, sizeof(payload.pdb_id));
	bytes_reset(&symbolizer->payload);
	(void)payload_il_offsets(&symbolizer->payload, &payload); /* more offsets are cut */
	return symbol_writer_emit(symbolizer, SPOOR_IL_OFFSETS, process);
}

bool symbol_writer_is_unread(const struct code *code)
{
	return code->exact && code->kind == CODE_STUB;
}

int symbol_writer_code(struct symbolizer *symbolizer, const struct symbolizer_hit_entry *hit,
	struct code *code)
{
	struct trace *trace = symbolizer->options.trace;
	const struct mapping *mapping = &trace->mappings.items[hit->mapping];
	const char *path = symbol_writer_text(symbolizer, mapping->path);
	bool in_image = !symbol_writer_is_jit(path);
	struct symbolizer_process *process = symbolizer_process(symbolizer, hit->process);
	size_t module_len = 0;
	cleanup(freep) char *module = NULL;
	int result = symbol_writer_mapping(symbolizer, hit->mapping);

	if (result < 0)
		return result;
	mapping = &trace->mappings.items[hit->mapping];
	if (code->written)
		return symbolizer->options.lines ? write_il(symbolizer, hit->process,
							   &process->codemap, code, mapping->id)
						 : 0;
	bytes_reset(&symbolizer->text);
	/* Names from perf maps are complete, without a separate type or assembly. */
	if (!*code->name_space && (code->kind == CODE_UNKNOWN || code->kind == CODE_STUB))
		bytes_text(&symbolizer->text, code->name);
	else
		codemap_symbol_text(&process->codemap, code, in_image, &symbolizer->text);
	/*
	 * A symbol names all samples at its address. Where code is reused that is wrong, so only
	 * CodeAdded with its times is written.
	 */
	code->reused = code->exact || !first_time(symbolizer, mapping->id, code->begin);
	if (!code->reused) {
		bytes_reset(&symbolizer->payload);
		payload_symbol(&symbolizer->payload,
			&(struct payload_symbol){ .id = symbolizer->next_id++,
				.mapping_id = mapping->id,
				.begin = code->begin,
				.end = code->end,
				.name = bytes_z(&symbolizer->text),
				.name_len = symbolizer->text.len });
		result = symbol_writer_emit(symbolizer, SYSTEM_PROCESS_SYMBOL, hit->process);
		if (result < 0)
			return result;
	}
	/* A managed image is its own module; a single-file program's image contains many. */
	if (in_image && !symbol_writer_is_managed_image(path)) {
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
	result = symbol_writer_emit(symbolizer, SPOOR_CODE_ADDED, hit->process);
	if (result == 0 && symbolizer->options.code)
		result = code_reader_write(symbolizer, hit->process, code, mapping->id);
	return result < 0 || !symbolizer->options.lines
		       ? result
		       : write_il(symbolizer, hit->process, &process->codemap, code, mapping->id);
}

int symbol_writer_map_kernel(struct symbolizer *symbolizer, uint32_t process)
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
	return symbol_writer_emit(symbolizer, SYSTEM_PROCESS_MAPPING, process);
}

int symbol_writer_map_lost(struct symbolizer *symbolizer, uint32_t process)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, process);

	if (!own || own->lost_mapped)
		return own ? 0 : -ENOMEM;
	own->lost_mapped = true;
	uint64_t id = symbolizer->next_id++;

	bytes_reset(&symbolizer->payload);
	payload_mapping(&symbolizer->payload, &(struct payload_mapping){ .id = id,
						      .begin = STACK_LOST_CALLER,
						      .end = STACK_LOST_CALLER + 1,
						      .path = "[spoor]" });
	int result = symbol_writer_emit(symbolizer, SYSTEM_PROCESS_MAPPING, process);
	return result < 0 ? result
			  : symbol_writer_symbol(symbolizer, process, id, STACK_LOST_CALLER,
				    STACK_LOST_CALLER + 1, STACK_LOST_CALLER_NAME,
				    sizeof(STACK_LOST_CALLER_NAME) - 1);
}

uint8_t symbol_writer_kernel_symbol(struct symbolizer *symbolizer, uint64_t begin, uint64_t end,
	const char *name, size_t name_len)
{
	return symbol_writer_symbol(symbolizer, 0, symbolizer->kernel_mapping_id, begin, end, name,
		       name_len) < 0
		       ? UNNAMED_NO_MEMORY
		       : HIT_NAMED;
}

void symbol_writer_end_reused(struct symbolizer *symbolizer)
{
	for (uint32_t p = 1; p < symbolizer->processes.count; p++) {
		const struct codemap *codemap = &symbolizer->processes.items[p].codemap;
		vec_each(code, &codemap->codes) {
			if (!code->written || !code->reused || code->removal_reported)
				continue;
			bytes_reset(&symbolizer->payload);
			clr_method_unload_payload(code, &symbolizer->payload);
			/* the sink keeps its error */
			(void)symbol_writer_emit(symbolizer, CLR_METHOD_UNLOAD_VERBOSE, p);
		}
	}
}

void symbol_writer_forget(struct symbolizer *symbolizer, const bool *dead, uint32_t count)
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
