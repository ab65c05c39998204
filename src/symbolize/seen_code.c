/* See seen_code.h. */
#include "symbolize/seen_code.h"

#include <errno.h>

#include "symbolize/symbolizer_state.h"

static int add_code(struct codemap *map, const struct code *code, const char *module_path)
{
	int result = 0;

	if (code->module_id && !codemap_has_module(map, code->module_id))
		result = codemap_add_module(map, code->module_id, module_path, 0);
	return result < 0 ? result : codemap_add(map, code);
}

static void note_use(struct symbolizer *symbolizer, struct symbolizer_process *process)
{
	symbolizer->memory_process_count += !process->from_memory;
	process->from_memory = true;
}

int seen_code_add(struct symbolizer *symbolizer, uint32_t process, const struct code *code,
	const char *module_path)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, process);

	if (!own)
		return -ENOMEM;
	if (own->managed == MANAGED_KNOWN || symbolizer->full)
		return 0;
	if (own->managed == MANAGED_ASKING)
		return add_code(&own->seen, code, module_path);
	seen_code_settle(symbolizer, own, false);
	note_use(symbolizer, own);
	return add_code(&own->codemap, code, module_path);
}

int seen_code_add_bundled(struct symbolizer *symbolizer, uint32_t process, const struct code *code,
	const char *module_path)
{
	struct symbolizer_process *own = symbolizer_process(symbolizer, process);

	if (!own)
		return -ENOMEM;
	return symbolizer->full ? 0 : add_code(&own->codemap, code, module_path);
}

/*
 * Samples of exact bodies are in the file already, without their ends between them: so they have no
 * names.
 */
void seen_code_settle(struct symbolizer *symbolizer, struct symbolizer_process *process, bool last)
{
	struct codemap *seen = &process->seen;

	if (!seen->codes.count || (process->managed == MANAGED_ASKING && !last))
		return;
	if (process->managed != MANAGED_KNOWN) {
		note_use(symbolizer, process);
		codemap_settle(seen);
		/* Without memory the rest has no names. */
		vec_each(module, &seen->modules)
			(void)codemap_add_module(&process->codemap, module->id, module->path, 0);
		vec_each(code, &seen->codes)
			(void)codemap_add(&process->codemap,
				code->exact ? &(struct code){ .begin = code->begin,
						      .end = code->end,
						      .name_space = "",
						      .name = CODE_UNREAD_NAME,
						      .signature = "",
						      .from_ns = code->from_ns,
						      .kind = CODE_STUB,
						      .exact = true }
					    : code);
	}
	codemap_done(seen);
	*seen = (struct codemap){ .since_ns = 0 };
}
