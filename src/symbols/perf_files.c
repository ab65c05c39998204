/* See perf_files.h. */
#include "symbols/perf_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "code/arch.h"
#include "formats/jitdump_write.h"
#include "machine/output_file.h"
#include "symbols/line_names.h"
#include "symbols/managed_lines.h"
#include "symbols/precompiled.h"
#include "trace/event.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

static bool is_chosen(const struct perf_files *files, uint32_t process)
{
	uint32_t pid = files->trace->processes.items[process].pid;

	for (uint32_t i = 0; i < files->pid_count; i++)
		if (files->pids[i] == pid)
			return true;
	return !files->pid_count;
}

void perf_files_sample(struct perf_files *files, const struct event *event)
{
	const struct trace *trace = files->trace;
	uint32_t count;

	if (event->kind != EVENT_SAMPLE || event->thread_index >= trace->threads.count)
		return;
	const struct thread *thread = &trace->threads.items[event->thread_index];
	const uint64_t *frames = stack_table_get(&trace->stacks, event->stack_index, &count);
	if (!count || !thread->process || !is_chosen(files, thread->process))
		return;
	const struct perf_data_place place = { .pid = trace->processes.items[thread->process].pid,
		.tid = thread->tid,
		.time_ns = event->time_ns,
		.cpu = event->cpu };
	perf_data_sample(&files->samples, &place, event->value, frames, count,
		arch_by_name(trace_text(trace, trace->recording.architecture))->kernel_begin);
	files->sample_count++;
}

/* ---- what perf.data says about processes ---- */

static uint64_t begin_of(const struct trace *trace, const struct process *process)
{
	return process->begin_ns > trace->recording.sync_ns ? process->begin_ns
							    : trace->recording.sync_ns;
}

/*
 * When a mapping began: a recording has it when its first sample is named, so one that takes no other's
 * place is as old as its process.
 */
static uint64_t mapped_ns(const struct trace *trace, const struct process *process, uint32_t number)
{
	const struct mapping *mapping = &trace->mappings.items[process->mappings.items[number]];

	for (uint32_t i = 0; i < number; i++) {
		const struct mapping *earlier = &trace->mappings.items[process->mappings.items[i]];
		if (earlier->begin < mapping->end && mapping->begin < earlier->end)
			return mapping->from_ns;
	}
	return begin_of(trace, process);
}

static void add_process(struct perf_files *files, const struct process *process)
{
	const struct trace *trace = files->trace;
	struct perf_data_place place = {
		.pid = process->pid, .tid = process->pid, .time_ns = begin_of(trace, process)
	};

	perf_data_comm(&files->samples, &place, trace_text(trace, process->name));
	for (uint32_t i = 0; i < process->mappings.count; i++) {
		const struct mapping *mapping = &trace->mappings.items[process->mappings.items[i]];
		if (!mapping->process)
			continue; /* the kernel's */
		place.time_ns = mapped_ns(trace, process, i);
		perf_data_map(&files->samples, &place,
			&(struct perf_data_map){ .begin = mapping->begin,
				.end = mapping->end,
				.file_offset = mapping->file_offset,
				.path = trace_text(trace, mapping->path) });
	}
}

static void add_threads(struct perf_files *files)
{
	const struct trace *trace = files->trace;

	for (uint32_t i = 1; i < trace->threads.count; i++) {
		const struct thread *thread = &trace->threads.items[i];
		const struct process *process = &trace->processes.items[thread->process];
		if (!thread->process || !thread->name || !is_chosen(files, thread->process))
			continue;
		const struct perf_data_place place = {
			.pid = process->pid, .tid = thread->tid, .time_ns = begin_of(trace, process)
		};
		perf_data_comm(&files->samples, &place, trace_text(trace, thread->name));
	}
}

/* perf inject looks for the jitdump where the process maps it. */
static void add_marker(struct perf_files *files, const struct process *process, const char *path)
{
	const struct perf_data_place place = {
		.pid = process->pid, .tid = process->pid, .time_ns = begin_of(files->trace, process)
	};
	const struct perf_data_map map = { .begin = 0x1000, .end = 0x2000, .path = path };

	perf_data_map(&files->samples, &place, &map);
}

/* ---- jitdumps ---- */

static const uint8_t *code_of(const struct trace *trace, uint32_t process,
	const struct code_range *code, uint32_t *ret_size)
{
	const uint8_t *bytes = code_bytes_find(&trace->code, process, code->mapping_id, code->begin,
		code->method_id, ret_size);

	return bytes && *ret_size == code->end - code->begin ? bytes : NULL;
}

/* The places at which lines of the recorded bodies may begin, as places whose lines are wanted. */
static bool want_lines(struct perf_files *files, struct line_names *lines, uint32_t process)
{
	const struct process *p = &files->trace->processes.items[process];

	for (uint32_t i = 0; i < p->codes.count; i++) {
		const struct code_range *code = &p->codes.items[i];
		struct line_missing missing = { .place = { code->mapping_id, code->begin,
							code->method_id, 0 },
			.process = process,
			.code = i + 1 };
		const struct line_body *body =
			line_table_body(&files->trace->lines, &missing.place);
		uint32_t size;
		for (uint32_t at = 0; body && at < body->count; at++) {
			missing.place.offset = files->trace->lines.il.items[body->at + at].native;
			if (code_of(files->trace, process, code, &size) &&
				missing.place.offset < size && !vec_add(&lines->missing, missing))
				return false;
		}
	}
	return true;
}

typedef VEC(struct jitdump_line) jitdump_lines;

/* IL offsets are sorted by native offset; a line is not repeated for each of its offsets. */
static bool add_lines(const struct trace *trace, const struct code_range *code,
	jitdump_lines *ret_lines)
{
	struct line_place place = { code->mapping_id, code->begin, code->method_id, 0 };
	const struct line_body *body = line_table_body(&trace->lines, &place);

	vec_reset(ret_lines);
	for (uint32_t i = 0; body && i < body->count; i++) {
		uint32_t count;
		place.offset = trace->lines.il.items[body->at + i].native;
		const struct line_frame *frame = line_table_find(&trace->lines, &place, &count);
		if (!count || !frame->line || !frame->file)
			continue;
		const struct jitdump_line line = { .offset = (uint32_t)place.offset,
			.line = frame->line,
			.file = trace_text(trace, frame->file) };
		const struct jitdump_line *last = ret_lines->count ? vec_last(ret_lines) : NULL;
		if (last && (last->offset == line.offset ||
				    (last->line == line.line && last->file == line.file)))
			continue;
		if (!vec_add(ret_lines, line))
			return false;
	}
	return true;
}

/* "Shop.Cart.Total(int)[Tier1]": a method's bodies differ by their tier, as the runtime names them. */
static void add_name(struct symbolmap *map, uint32_t process, const struct code_range *code,
	struct bytes *out)
{
	uint32_t now = map->trace->processes.items[process].code_epoch;
	uint32_t epoch = code->removed_epoch == UINT32_MAX ? now
			 : code->removed_epoch             ? code->removed_epoch - 1
							   : 0;
	uint32_t function = symbolmap_find(map, process, code->begin, epoch);

	bytes_reset(out);
	bytes_text(out, trace_text(map->trace, map->functions.items[function].name));
	bytes_printf(out, "[%s]",
		code->kind == CODE_READYTORUN ? "ReadyToRun" : code_tier_tag(code->tier));
}

static int dump_process(struct perf_files *files, struct symbolmap *map, uint32_t process,
	struct bytes *out, jitdump_lines *lines)
{
	const struct process *p = &files->trace->processes.items[process];
	const struct jitdump_owner owner = { .pid = p->pid, .time_ns = begin_of(files->trace, p) };
	cleanup(bytes_done) struct bytes name = { 0 };

	bytes_reset(out);
	jitdump_write_head(out, trace_text(files->trace, files->trace->recording.architecture),
		&owner);
	for (uint32_t i = 0; i < p->codes.count; i++) {
		const struct code_range code = p->codes.items[i];
		struct jitdump_body body = { .begin = code.begin, .number = i };
		body.code = code_of(files->trace, process, &code, &body.size);
		if (!body.code) {
			files->without_code_count++;
			continue;
		}
		if (!add_lines(files->trace, &code, lines))
			return -ENOMEM;
		add_name(map, process, &code, &name);
		body.name = bytes_z(&name);
		body.lines = lines->items;
		body.line_count = lines->count;
		jitdump_write_body(out, &body, &owner);
		files->body_count++;
		files->with_line_count += body.line_count != 0;
	}
	return out->failed ? -ENOMEM : 0;
}

static int write_dump(const struct bytes *dump, const char *path, struct diag *diag)
{
	cleanup(output_file_close) struct output_file file = { .fd = -1 };
	size_t done = 0;
	int result = output_file_open_regular(&file, path, diag);

	while (result == 0 && done < dump->len) {
		ssize_t n = write(file.fd, dump->data + done, dump->len - done);
		if (n < 0 && errno != EINTR)
			result = diag_set(diag, -errno, "cannot write '%s': %m", path);
		done += n > 0 ? (size_t)n : 0;
	}
	return result == 0 ? output_file_keep(&file, diag) : result;
}

static bool has_code(const struct trace *trace, uint32_t process)
{
	vec_each(copy, &trace->code.copies)
		if (copy->process == process)
			return true;
	return false;
}

static int write_process(struct perf_files *files, struct symbolmap *map, uint32_t process,
	jitdump_lines *lines, struct diag *diag)
{
	const struct process *p = &files->trace->processes.items[process];
	cleanup(bytes_done) struct bytes dump = { 0 };
	cleanup(bytes_done) struct bytes path = { 0 };
	int result = dump_process(files, map, process, &dump, lines);

	bytes_printf(&path, "%s/jit-%u.dump", files->folder, p->pid);
	if (result < 0 || path.failed)
		return diag_set(diag, -ENOMEM, "cannot write the code of process %u: %m", p->pid);
	result = write_dump(&dump, bytes_z(&path), diag);
	if (result == 0) {
		add_marker(files, p, bytes_z(&path));
		files->dump_count++;
	}
	return result;
}

int perf_files_finish(struct perf_files *files, struct symbolmap *map, struct line_names *lines,
	struct diag *diag)
{
	struct trace *trace = files->trace;
	jitdump_lines body_lines = { 0 };

	int result = precompiled_load(trace, files->cache);

	for (uint32_t i = 1; i < trace->processes.count && result == 0; i++)
		if (is_chosen(files, i) && !want_lines(files, lines, i))
			return diag_set(diag, -ENOMEM, "cannot find the source lines: %m");
	if (result == 0)
		result = managed_lines_find(lines, files->cache);
	if (result < 0)
		return diag_set(diag, result, "cannot find the source lines: %m");
	for (uint32_t i = 1; i < trace->processes.count && result == 0; i++) {
		if (!is_chosen(files, i))
			continue;
		add_process(files, &trace->processes.items[i]);
		if (has_code(trace, i))
			result = write_process(files, map, i, &body_lines, diag);
	}
	add_threads(files);
	vec_done(&body_lines);
	return result;
}
