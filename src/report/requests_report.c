/* See requests_report.h. */
#include "report/requests_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "report/answer_parts.h"
#include "trace/report.h"

static const char *route_of(const struct requests *requests, const struct request_route *row)
{
	return row->route ? strtab_get(&requests->routes, row->route) : "(other routes)";
}

static void add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, const struct requests_process *process, uint32_t row_count)
{
	const struct requests *requests = &answers->requests;
	uint32_t shown = process->row_count < row_count ? process->row_count : row_count;

	answer_head(out, report, process->process);
	text_add_things(out, process->count, "request", "requests");
	bytes_text(out, " in ");
	text_add_duration(out, (double)answers->span_ns / 1e9);
	bytes_text(out, ", ");
	answer_rate(out, process->count, answers->span_ns);
	bytes_text(out, " a second\n");
	if (process->unfinished) {
		bytes_text(out, "  not ended    ");
		text_add_things(out, process->unfinished, "request", "requests");
		bytes_text(out, " at the end of the recording\n");
	}
	answer_timeline(out, answers, &process->line, NULL);
	bytes_text(out,
		"\n    requests     total       p50       p99   longest        at  route\n");
	for (uint32_t i = 0; i < shown; i++) {
		const struct request_route *row = &requests->rows.items[process->row_at + i];
		answer_count_cell(out, 10, row->count);
		answer_duration_cell(out, 8, row->total_ns);
		answer_duration_cell(out, 8, row->p50_ns);
		answer_duration_cell(out, 8, row->p99_ns);
		answer_duration_cell(out, 8, row->longest_ns);
		answer_duration_cell(out, 8, row->longest_at_ns);
		bytes_text(out, "  ");
		text_add_safe_z(out, route_of(requests, row));
		bytes_text(out, "\n");
	}
	answer_more(out, 10, process->row_count - shown, "more route", "more routes");
}

int requests_text(const struct answers *answers, const struct report *report, uint32_t row_count,
	struct bytes *out)
{
	const struct requests *requests = &answers->requests;

	for (uint32_t i = 0; i < requests->processes.count; i++) {
		if (i)
			bytes_text(out, "\n");
		add_process(out, answers, report, &requests->processes.items[i],
			row_count ? row_count : ANSWER_ROWS_DEFAULT);
	}
	if (!requests->processes.count) {
		bytes_text(out,
			"no request is in this selection; spoor record --profile http takes those of ASP.NET Core, or ");
		answer_trace_command(out, answers, report, 0);
		bytes_text(out, "--providers " REQUEST_PROVIDER "::4\n");
	}
	label_loss(out, report);
	bytes_text(out, "\n");
	return 0;
}

int requests_json(const struct answers *answers, const struct report *report, struct bytes *out)
{
	const struct requests *requests = &answers->requests;
	struct json j = { .out = out };

	answer_json_begin(&j, answers);
	for (uint32_t i = 0; i < requests->processes.count; i++) {
		const struct requests_process *process = &requests->processes.items[i];
		answer_json_process(&j, report, process->process);
		json_u64(&j, "request_count", process->count);
		json_u64(&j, "unfinished_count", process->unfinished);
		answer_json_timeline(&j, answers, &process->line);
		json_array(&j, "routes");
		for (uint32_t r = 0; r < process->row_count; r++) {
			const struct request_route *row =
				&requests->rows.items[process->row_at + r];
			json_object(&j, NULL);
			json_z(&j, "route", route_of(requests, row));
			json_u64(&j, "count", row->count);
			json_u64(&j, "total_ns", row->total_ns);
			json_u64(&j, "p50_ns", row->p50_ns);
			json_u64(&j, "p99_ns", row->p99_ns);
			json_u64(&j, "longest_ns", row->longest_ns);
			json_u64(&j, "longest_at_ns", row->longest_at_ns);
			json_end(&j);
		}
		json_end(&j);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	bytes_text(out, "\n");
	return 0;
}
