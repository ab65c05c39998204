/* See frame_names.h. */
#include "stacks/frame_names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/partition_point.h"
#include "code/mapping_kind.h"
#include "code/method_name.h"
#include "stacks/thread_dump.h"
#include "stacks/thread_stacks_state.h"
#include "symbolize/name_tables.h"
#include "target/targets.h"
#include "trace/symbolmap.h"

const struct stack_code_mapping *code_mapping_of(const struct stacks_taking *t, uint64_t address)
{
	uint32_t low = partition_point(t->mappings.count, i, t->mappings.items[i].end <= address);

	return low < t->mappings.count && t->mappings.items[low].begin <= address
		       ? &t->mappings.items[low]
		       : NULL;
}

const char *code_mapping_name(const struct stacks_taking *t,
	const struct stack_code_mapping *mapping)
{
	const char *path = strtab_get(&t->dump->texts, mapping->path);
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

uint32_t frame_text(struct stacks_taking *t, const char *text)
{
	return strtab_add_z(&t->dump->texts, text);
}

static uint32_t unnamed(struct stacks_taking *t, uint64_t address)
{
	bytes_reset(&t->text);
	bytes_printf(&t->text, "0x%" PRIx64, address);
	return frame_text(t, bytes_z(&t->text));
}

/* The long name into the scratch, and the short one as a text of the dump. */
static uint32_t add_method(struct stacks_taking *t, const struct method_name *name)
{
	bytes_reset(&t->text);
	method_name_format(name, METHOD_NAME_SHORT, &t->text);
	uint32_t short_name = frame_text(t, bytes_z(&t->text));

	bytes_reset(&t->text);
	method_name_format(name, METHOD_NAME_LONG, &t->text);
	return short_name;
}

uint32_t frame_managed(struct stacks_taking *t, uint64_t address, uint64_t time_ns)
{
	cleanup(bytes_done) struct bytes raw = { 0 };
	struct method_name name;
	struct dump_frame frame = { 0 };
	size_t module_len;
	const struct code *code = codemap_find(&t->codemap, address, time_ns);

	if (!code)
		return 0;
	codemap_symbol_text(&t->codemap, code, true, &raw);
	bytes_reset(&t->text);
	if (method_name_parse(bytes_z(&raw), raw.len, &name))
		frame.short_name = add_method(t, &name);
	else
		bytes_text(&t->text, bytes_z(&raw));
	const char *module = codemap_assembly(&t->codemap, code->module_id, &module_len);

	frame.name = frame_text(t, bytes_z(&t->text));
	frame.module = module_len ? strtab_add(&t->dump->texts, module, module_len)
		       : code->kind == CODE_DYNAMIC ? frame_text(t, "dynamic")
						    : 0;
	frame.kind = code->kind == CODE_READYTORUN ? FUNCTION_READYTORUN : FUNCTION_JIT;
	return thread_dump_frame(t->dump, &frame);
}

/* One file, one number, for as long as we live. */
static uint32_t image_of(struct frame_naming *naming, const struct stack_code_mapping *mapping)
{
	uint64_t key = hash_u64(mapping->device ^ hash_u64(mapping->inode));
	uint32_t image = map_get(&naming->image_index, key);

	if (image)
		return image;
	return map_put(&naming->image_index, key, ++naming->image_count) ? naming->image_count : 0;
}

uint32_t frame_native(struct stacks_taking *t, uint64_t address)
{
	const struct stack_code_mapping *mapping = code_mapping_of(t, address);
	struct dump_frame frame = { .kind = FUNCTION_NATIVE };
	struct name_answer answer = { 0 };
	const char *path = mapping ? strtab_get(&t->dump->texts, mapping->path) : "";
	enum mapping_kind mapped = mapping_kind_of(path);

	if (mapped == MAPPING_JIT) {
		/* Code in runtime memory for which the sampled runtime sent no method is a stub. */
		frame.name =
			mapping ? frame_text(t, t->sampled ? "(stub)" : "(compiled at run time)")
				: unnamed(t, address);
		frame.kind = !mapping     ? FUNCTION_UNKNOWN
			     : t->sampled ? FUNCTION_STUB
					  : FUNCTION_JIT;
		return thread_dump_frame(t->dump, &frame);
	}
	const char *name = code_mapping_name(t, mapping);
	bool managed = mapped == MAPPING_MANAGED_IMAGE;
	uint64_t offset = address - mapping->begin + mapping->file_offset;
	struct name_question question = {
		.kind = managed ? ASK_METHOD : ASK_SYMBOL,
		.image = mapping->inode ? image_of(t->naming, mapping) : 0,
		.place = offset,
		.pid = t->target->pid,
		.inner_pid = t->target->inner_pid,
		.begin = mapping->begin,
		.end = mapping->end,
		.inode = mapping->inode,
		.path = (char *)path, /* read only */
		.build_id = (char *)"",
	};
	struct method_name method;

	if (question.image)
		name_tables_answer(t->naming->tables, &question, &answer);
	bytes_reset(&t->text);
	if (!answer.found || !answer.name)
		bytes_printf(&t->text, "%s+0x%" PRIx64, name, offset);
	else if (managed && method_name_parse(answer.name, strlen(answer.name), &method))
		frame.short_name = add_method(t, &method);
	else
		bytes_printf(&t->text, "%s%s%s", answer.bounds_only ? name : "",
			answer.bounds_only ? "!" : "", answer.name);
	free(answer.name);
	free(answer.facts);
	frame.name = frame_text(t, bytes_z(&t->text));
	frame.module = strtab_add(&t->dump->texts, name,
		managed ? (size_t)(strrchr(name, '.') - name) : strlen(name));
	if (managed)
		frame.kind = FUNCTION_READYTORUN;
	return thread_dump_frame(t->dump, &frame);
}

uint32_t frame_kernel(struct stacks_taking *t, const char *name, size_t len)
{
	const struct dump_frame frame = {
		.name = strtab_add(&t->dump->texts, name, len),
		.module = frame_text(t, "kernel"),
		.kind = FUNCTION_KERNEL,
	};

	return thread_dump_frame(t->dump, &frame);
}
