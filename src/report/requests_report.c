/* See requests_report.h. */
#include "report/requests_report.h"

#include "analysis/answers.h"
#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "trace/provider_kind.h"
#include "trace/report.h"

static const char *route_of(const struct requests *requests, const struct request_route *row)
{
	return row->route ? strtab_get(&requests->routes, row->route) : "(other routes)";
}

static int add_process(struct bytes *out, const struct answers *answers,
	const struct report *report, uint32_t at, uint32_t row_count)
{
	const struct requests *requests = &answers->requests;
	const struct requests_process *process = &requests->processes.items[at];
	uint32_t shown = process->row_count < row_count ? process->row_count : row_count;

	uint64_t observed_ns = answer_observed_ns(answers, process->process);

	answer_head(out, report, process->process);
	text_add_things(out, process->count, "request", "requests");
	bytes_text(out, " in ");
	text_add_duration(out, (double)observed_ns / 1e9);
	bytes_text(out, ", ");
	answer_rate(out, process->count, observed_ns);
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
		answer_count_cell(out, 10, row->durations.count);
		answer_durations_cells(out, &row->durations, 0);
		answer_duration_cell(out, 8, row->durations.longest_at_ns);
		bytes_text(out, "  ");
		text_add_safe_z(out, route_of(requests, row));
		bytes_text(out, "\n");
	}
	answer_more(out, 10, process->row_count - shown, "more route", "more routes");
	return 0;
}

static int add_json(struct json *j, const struct answers *answers, const struct report *report,
	uint32_t at)
{
	const struct requests *requests = &answers->requests;
	const struct requests_process *process = &requests->processes.items[at];

	answer_json_process(j, report, process->process);
	json_u64(j, "observed_ns", answer_observed_ns(answers, process->process));
	json_u64(j, "request_count", process->count);
	json_u64(j, "unfinished_count", process->unfinished);
	answer_json_timeline(j, answers, &process->line);
	json_array(j, "routes");
	for (uint32_t r = 0; r < process->row_count; r++) {
		const struct request_route *row = &requests->rows.items[process->row_at + r];
		json_object(j, NULL);
		json_z(j, "route", route_of(requests, row));
		json_u64(j, "count", row->durations.count);
		answer_json_durations(j, &row->durations);
		json_end(j);
	}
	json_end(j);
	json_end(j);
	return 0;
}

static uint32_t process_count(const struct answers *answers)
{
	return answers->requests.processes.count;
}

const struct answer_report requests_report = {
	.option = "requests",
	.row_count = ANSWER_ROWS_DEFAULT,
	.process_count = process_count,
	.add_process = add_process,
	.none = "no request is in this selection; spoor record --profile http takes those of ASP.NET Core, or ",
	.trace = "--providers " PROVIDER_KESTREL_NAME "::4\n",
	.add_json = add_json,
};
