/* See annotate_asm.h. */
#include "cli/annotate_asm.h"

#include <errno.h>

#include "analysis/instructions.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/vec.h"
#include "cli/selection.h"
#include "code/disassembler.h"
#include "report/instruction_report.h"
#include "symbolize/symbol_cache.h"
#include "symbols/body_code.h"
#include "symbols/line_names.h"
#include "symbols/managed_lines.h"
#include "symbols/precompiled.h"

static const char *const why_not[] = {
	[BODY_CODE_NOT_RECORDED] = "the recording has no machine code of it: spoor record --code",
	[BODY_CODE_NO_IMAGE] = "its file is not here",
	[BODY_CODE_OTHER_IMAGE] = "the file here has not the build id of the recorded one",
	[BODY_CODE_TOO_LARGE] = "it is larger than 1 MiB",
};

/* What is open while the code is found. */
struct disassembly {
	struct instructions instructions;
	struct disassembler *disassembler;
	struct bytes code;    /* of all bodies */
	VEC(uint32_t) begins; /* in `code`, of each body */
	VEC(struct instruction_code) codes;
	struct line_names lines;
	struct symbol_cache cache;
};

static int want_lines(struct disassembly *a, const struct instruction_body *body,
	const uint8_t *code, uint32_t size)
{
	struct instruction instruction;
	int result = 0;

	for (uint32_t at = 0;
		result == 0 && disassembler_next(a->disassembler, code, size, at, &instruction);
		at += instruction.size_bytes)
		result = body_code_want(&a->lines, body, at);
	return result;
}

static int load(struct disassembly *a, struct selection *s)
{
	int result = precompiled_load(&s->trace, &a->cache);

	for (uint32_t i = 0; i < a->instructions.bodies.count && result == 0; i++) {
		uint32_t begin = (uint32_t)a->code.len;
		int answer = body_code_load(&s->trace, &a->instructions.bodies.items[i], &a->code);
		if (answer < 0)
			return answer;
		const struct instruction_code code = { .size = (uint32_t)a->code.len - begin,
			.why_not = why_not[answer] };
		if (!vec_add(&a->codes, code) || !vec_add(&a->begins, begin))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < a->codes.count && result == 0; i++) {
		struct instruction_code *code = &a->codes.items[i];
		if (code->why_not)
			continue;
		code->code = a->code.data + a->begins.items[i];
		result = want_lines(a, &a->instructions.bodies.items[i], code->code, code->size);
	}
	return result;
}

static int find_lines(struct disassembly *a, struct selection *s)
{
	int result = line_names_find(&a->lines, &s->names, &a->cache);

	return result == 0 ? managed_lines_find(&a->lines, &a->cache) : result;
}

int annotate_asm(struct selection *s, const char *pattern, const struct annotation_options *options,
	bool json, struct bytes *out, bool *ret_found, struct diag *diag)
{
	struct disassembly a = { .lines = { .trace = &s->trace }, .cache = { .fd = -1 } };
	int result = instructions_count(&a.instructions, &s->profile, &s->names, pattern);

	*ret_found = a.instructions.functions.count != 0;
	if (result == 0 && *ret_found)
		result = disassembler_open(trace_text(&s->trace, s->trace.recording.architecture),
			&a.disassembler, diag);
	if (result == 0 && *ret_found) {
		(void)symbol_cache_open(&a.cache, false, NULL); /* without: the machine's store */
		result = load(&a, s);
		if (result == 0)
			result = find_lines(&a, s);
		const struct instruction_listing listing = { .instructions = &a.instructions,
			.codes = a.codes.items,
			.disassembler = a.disassembler,
			.names = &s->names };
		if (result == 0)
			result = json ? instruction_report_json(&listing, &s->report, out)
				      : instruction_report_text(&listing, &s->report, options, out);
	}
	if (result < 0 && !diag->error)
		diag_set(diag, result, "cannot annotate '%s': %m", s->path);
	line_names_done(&a.lines);
	symbol_cache_close(&a.cache);
	disassembler_close(a.disassembler);
	instructions_done(&a.instructions);
	bytes_done(&a.code);
	vec_done(&a.begins);
	vec_done(&a.codes);
	return result;
}
