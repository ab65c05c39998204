/* See instruction_report.h. */
#include "report/instruction_report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "analysis/instructions.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "code/disassembler.h"
#include "report/annotation_report.h"
#include "report/source_text.h"
#include "trace/report.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

#define BODIES_SHOWN 8u

struct source_cache {
	uint32_t file; /* strtab */
	struct source_text text;
};

/* The state while a report is made. */
struct listing_state {
	const struct instruction_listing *in;
	const struct report *report;
	const struct annotation_options *options; /* NULL for JSON */
	VEC(struct source_cache) sources;
	VEC(uint32_t) offsets; /* of the instructions of the present body */
	VEC(uint8_t) shown;    /* of each instruction */
	struct bytes *out;
};

static double share_of(const struct report *report, uint64_t ns)
{
	return report->cpu_ns ? 100.0 * (double)ns / (double)report->cpu_ns : 0;
}

/* ---- instructions ---- */

static bool find_offsets(struct listing_state *l, const struct instruction_code *code)
{
	struct instruction instruction;
	uint32_t at = 0;

	vec_reset(&l->offsets);
	while (disassembler_next(l->in->disassembler, code->code, code->size, at, &instruction)) {
		if (!vec_add(&l->offsets, at))
			return false;
		at += instruction.size_bytes;
	}
	return true;
}

/* The time of the instruction from `at` to `end`; *hit is the next hit of the body. */
static struct instruction_hits take_hits(const struct instructions *all,
	const struct instruction_body *body, uint32_t end, uint32_t *hit)
{
	struct instruction_hits sum = { 0 };

	for (; *hit < body->hit_count; ++*hit) {
		const struct instruction_hits *each = &all->hits.items[body->hits_at + *hit];
		if (each->offset >= end)
			break;
		sum.ns += each->ns;
		sum.count += each->count;
	}
	return sum;
}

static uint32_t end_of(const struct listing_state *l, const struct instruction_code *code,
	uint32_t i)
{
	return i + 1 < l->offsets.count ? l->offsets.items[i + 1] : code->size;
}

/* Marks the instructions with time, and those around them. */
static bool choose_shown(struct listing_state *l, const struct instruction_body *body,
	const struct instruction_code *code)
{
	uint32_t context = l->options->context;
	uint32_t hit = 0;

	vec_reset(&l->shown);
	if (!vec_reserve(&l->shown, (size_t)l->offsets.count + 1))
		return false;
	memset(l->shown.items, 0, l->offsets.count);
	l->shown.count = l->offsets.count;
	for (uint32_t i = 0; i < l->offsets.count; i++) {
		if (!take_hits(l->in->instructions, body, end_of(l, code, i), &hit).count)
			continue;
		uint32_t first = i > context ? i - context : 0;
		uint32_t last =
			l->offsets.count - 1 - i > context ? i + context : l->offsets.count - 1;
		memset(l->shown.items + first, 1, last - first + 1);
	}
	return true;
}

/* A call or jump out of the body, with the name of its target where that is known. */
static void add_instruction(const struct listing_state *l, const struct instruction_body *body,
	const struct instruction_code *code, const struct instruction *instruction,
	struct bytes *out)
{
	const struct trace *trace = l->report->trace;
	uint64_t target = body->begin + (uint64_t)instruction->target;
	const char *last = strrchr(instruction->text, ' ');

	if (!instruction->has_target || !last ||
		(instruction->target >= 0 && instruction->target < (int64_t)code->size)) {
		bytes_text(out, instruction->text);
		return;
	}
	bytes_add(out, instruction->text, (size_t)(last + 1 - instruction->text));
	uint32_t epoch = trace->processes.items[body->process].code_epoch;
	uint32_t function = symbolmap_find(l->in->names, body->process, target, epoch);
	const struct function *known = &l->in->names->functions.items[function];
	if (function && known->named)
		text_add_safe_z(out, trace_text(trace, known->name));
	else
		bytes_printf(out, "0x%" PRIx64, target);
}

static const struct line_frame *line_of(const struct listing_state *l,
	const struct instruction_body *body, uint32_t offset)
{
	const struct trace *trace = l->report->trace;
	const struct line_place place = instructions_place(trace, body, offset);
	uint32_t count;
	const struct line_frame *frames = line_table_find(&trace->lines, &place, &count);

	return count && frames->line ? frames : NULL;
}

/* ---- text ---- */

/* NULL: no memory. */
static const struct source_text *source_of(struct listing_state *l, uint32_t file)
{
	vec_each(known, &l->sources)
		if (known->file == file)
			return &known->text;
	struct source_cache *added = vec_push(&l->sources);
	if (!added)
		return NULL;
	added->file = file;
	int result = source_text_read(&added->text, trace_text(l->report->trace, file),
		l->options->folders, l->options->folder_count);
	return result == -ENOMEM ? NULL : &added->text;
}

/* "                 Program.cs:412  x = x * 31 + i;" */
static bool add_source_row(struct listing_state *l, const struct line_frame *frame)
{
	const struct trace *trace = l->report->trace;
	const char *path = trace_text(trace, frame->file);
	const char *slash = strrchr(path, '/');
	const struct source_text *source = source_of(l, frame->file);
	size_t len = 0;

	if (!source)
		return false;
	const char *line = source_text_line(source, frame->line, &len);
	while (line && len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	bytes_text(l->out, "                  ");
	text_add_safe_z(l->out, slash ? slash + 1 : path);
	bytes_printf(l->out, ":%u", frame->line);
	if (frame->function) {
		bytes_text(l->out, "  ");
		text_add_safe_z(l->out, trace_text(trace, frame->function));
		bytes_text(l->out, " (inlined)");
	}
	if (line && len) {
		bytes_text(l->out, "  ");
		text_add_safe(l->out, line, len);
	}
	bytes_text(l->out, "\n");
	return true;
}

static bool add_rows(struct listing_state *l, const struct instruction_body *body,
	const struct instruction_code *code)
{
	const struct line_frame *last = NULL;
	struct instruction instruction;
	bool skipped = false;
	uint32_t hit = 0;

	for (uint32_t i = 0; i < l->offsets.count; i++) {
		uint32_t at = l->offsets.items[i];
		struct instruction_hits time =
			take_hits(l->in->instructions, body, end_of(l, code, i), &hit);
		if (!l->shown.items[i]) {
			skipped = true;
			continue;
		}
		if (skipped)
			bytes_text(l->out, "               …\n");
		const struct line_frame *frame = line_of(l, body, at);
		if (frame &&
			(skipped || !last || last->line != frame->line ||
				last->file != frame->file || last->function != frame->function) &&
			!add_source_row(l, frame))
			return false;
		last = frame ? frame : last;
		skipped = false;
		(void)disassembler_next(l->in->disassembler, code->code, code->size, at,
			&instruction); /* its offset was found before */
		if (time.count)
			bytes_printf(l->out, "%5.1f %%", share_of(l->report, time.ns));
		else
			bytes_text(l->out, "       ");
		bytes_printf(l->out, "  %6x  ", at);
		add_instruction(l, body, code, &instruction, l->out);
		bytes_text(l->out, "\n");
	}
	if (skipped)
		bytes_text(l->out, "               …\n");
	return !l->out->failed;
}

static const char *tier_of(const struct trace *trace, const struct instruction_body *body)
{
	const struct code_range *code =
		&trace->processes.items[body->process].codes.items[body->code - 1];

	return code->kind == CODE_READYTORUN ? "ReadyToRun" : code_tier_tag(code->tier);
}

static void add_body_head(const struct listing_state *l, const struct instruction_body *body)
{
	const struct trace *trace = l->report->trace;
	const struct function *function = &l->in->names->functions.items[body->function];

	bytes_text(l->out, "\n");
	text_add_safe_z(l->out, trace_text(trace, function->name));
	if (body->code)
		bytes_printf(l->out, "  [%s]", tier_of(trace, body));
	bytes_text(l->out, "  ");
	text_add_safe_z(l->out, trace_text(trace, function->module));
	bytes_printf(l->out, ", %s, %.1f %% in %s\n", TEXT_SIZE(body->end - body->begin),
		share_of(l->report, body->self_ns),
		TEXT_THINGS(body->self_count, "sample", "samples"));
}

static int add_body(struct listing_state *l, uint32_t index)
{
	const struct instruction_body *body = &l->in->instructions->bodies.items[index];
	const struct instruction_code *code = &l->in->codes[index];

	add_body_head(l, body);
	if (!code->code) {
		bytes_printf(l->out, "(%s)\n", code->why_not);
		return 0;
	}
	bytes_text(l->out, "   self  offset  instruction\n");
	return find_offsets(l, code) && choose_shown(l, body, code) && add_rows(l, body, code)
		       ? 0
		       : -ENOMEM;
}

static void close_listing(struct listing_state *l)
{
	vec_each(known, &l->sources)
		source_text_done(&known->text);
	vec_done(&l->sources);
	vec_done(&l->offsets);
	vec_done(&l->shown);
}

int instruction_report_text(const struct instruction_listing *listing, const struct report *report,
	const struct annotation_options *options, struct bytes *out)
{
	const struct instructions *all = listing->instructions;
	struct listing_state l = {
		.in = listing, .report = report, .options = options, .out = out
	};
	uint64_t rest_ns = 0;
	int result = 0;

	for (uint32_t i = 0; i < all->functions.count; i++) {
		text_add_safe_z(out, i ? ", " : "");
		text_add_safe_z(out, trace_text(report->trace, all->functions.items[i]));
	}
	bytes_printf(out, ": %.3g CPU s itself, %.1f %% of what is shown, in %s of code\n",
		(double)all->self_ns / 1e9, share_of(report, all->self_ns),
		TEXT_THINGS(all->bodies.count, "body", "bodies"));
	for (uint32_t i = 0; i < all->bodies.count && result == 0; i++) {
		if (i < BODIES_SHOWN)
			result = add_body(&l, i);
		else
			rest_ns += all->bodies.items[i].self_ns;
	}
	if (rest_ns)
		bytes_printf(out, "\n%s more: %.1f %% (--json has them)\n",
			TEXT_THINGS(all->bodies.count - BODIES_SHOWN, "body", "bodies"),
			share_of(report, rest_ns));
	if (all->without_body_ns)
		bytes_printf(out, "\ncode whose bounds are not known: %.1f %%\n",
			share_of(report, all->without_body_ns));
	close_listing(&l);
	return result ? result : out->failed ? -ENOMEM : 0;
}

/* ---- JSON ---- */

static int add_instructions_json(struct listing_state *l, const struct instruction_body *body,
	const struct instruction_code *code, struct json *j)
{
	const struct trace *trace = l->report->trace;
	cleanup(bytes_done) struct bytes text = { 0 };
	struct instruction instruction;
	uint32_t hit = 0;

	if (!find_offsets(l, code))
		return -ENOMEM;
	for (uint32_t i = 0; i < l->offsets.count; i++) {
		uint32_t at = l->offsets.items[i];
		struct instruction_hits time =
			take_hits(l->in->instructions, body, end_of(l, code, i), &hit);
		const struct line_frame *frame = line_of(l, body, at);
		(void)disassembler_next(l->in->disassembler, code->code, code->size, at,
			&instruction); /* its offset was found before */
		bytes_reset(&text);
		add_instruction(l, body, code, &instruction, &text);
		json_object(j, NULL);
		json_u64(j, "offset", at);
		json_z(j, "text", bytes_z(&text));
		json_u64(j, "self_ns", time.ns);
		json_u64(j, "self_samples", time.count);
		if (frame && frame->file)
			json_z(j, "file", trace_text(trace, frame->file));
		else
			json_null(j, "file");
		json_u64(j, "line", frame ? frame->line : 0);
		if (frame && frame->function)
			json_z(j, "inlined", trace_text(trace, frame->function));
		else
			json_null(j, "inlined");
		json_end(j);
	}
	return text.failed ? -ENOMEM : 0;
}

static int add_body_json(struct listing_state *l, uint32_t index, struct json *j)
{
	const struct trace *trace = l->report->trace;
	const struct instruction_body *body = &l->in->instructions->bodies.items[index];
	const struct instruction_code *code = &l->in->codes[index];
	const struct function *function = &l->in->names->functions.items[body->function];
	int result = 0;

	json_object(j, NULL);
	json_z(j, "function", trace_text(trace, function->name));
	json_z(j, "module", trace_text(trace, function->module));
	if (body->code)
		json_z(j, "tier", tier_of(trace, body));
	else
		json_null(j, "tier");
	json_u64(j, "pid", trace->processes.items[body->process].pid);
	json_u64(j, "begin", body->begin);
	json_u64(j, "size_bytes", body->end - body->begin);
	json_u64(j, "self_ns", body->self_ns);
	json_u64(j, "self_samples", body->self_count);
	if (code->code)
		json_null(j, "why_no_code");
	else
		json_z(j, "why_no_code", code->why_not);
	json_array(j, "instructions");
	if (code->code)
		result = add_instructions_json(l, body, code, j);
	json_end(j);
	json_end(j);
	return result;
}

int instruction_report_json(const struct instruction_listing *listing, const struct report *report,
	struct bytes *out)
{
	const struct instructions *all = listing->instructions;
	struct listing_state l = { .in = listing, .report = report, .out = out };
	struct json j = { .out = out };
	int result = 0;

	json_object(&j, NULL);
	json_array(&j, "functions");
	vec_each(name, &all->functions)
		json_z(&j, NULL, trace_text(report->trace, *name));
	json_end(&j);
	json_u64(&j, "selected_cpu_ns", report->cpu_ns);
	json_u64(&j, "self_ns", all->self_ns);
	json_u64(&j, "self_samples", all->self_count);
	json_array(&j, "bodies");
	for (uint32_t i = 0; i < all->bodies.count && result == 0; i++)
		result = add_body_json(&l, i, &j);
	json_end(&j);
	json_end(&j);
	bytes_text(out, "\n");
	close_listing(&l);
	return result ? result : out->failed ? -ENOMEM : 0;
}
