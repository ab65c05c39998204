/* See answer_report.h. */
#include "report/answer_report.h"

#include "base/bytes.h"
#include "base/json.h"
#include "base/text.h"
#include "render/frame_label.h"
#include "report/allocations_report.h"
#include "report/awaits_report.h"
#include "report/blocks_report.h"
#include "report/calls_report.h"
#include "report/collections_report.h"
#include "report/compilations_report.h"
#include "report/databases_report.h"
#include "report/exceptions_report.h"
#include "report/io_calls_report.h"
#include "report/requests_report.h"
#include "report/startup_report.h"
#include "report/thread_pool_report.h"
#include "report/thread_time_report.h"
#include "report/waits_report.h"

const struct answer_report *const answer_reports[ANSWER_COUNT] = {
	[ANSWER_GC] = &collections_report,
	[ANSWER_EXCEPTIONS] = &exceptions_report,
	[ANSWER_ALLOC] = &allocations_report,
	[ANSWER_LOCKS] = &locks_report,
	[ANSWER_WAITS] = &waits_report,
	[ANSWER_POOL] = &thread_pool_report,
	[ANSWER_JIT] = &compilations_report,
	[ANSWER_THREAD_TIME] = &thread_time_report,
	[ANSWER_OFF_CPU] = &blocks_report,
	[ANSWER_REQUESTS] = &requests_report,
	[ANSWER_HTTP] = &calls_report,
	[ANSWER_ASYNC] = &awaits_report,
	[ANSWER_DATABASES] = &databases_report,
	[ANSWER_STARTUP] = &startup_report,
	[ANSWER_IO] = &io_calls_report,
};

static void add_none(struct bytes *out, const struct answer_report *kind,
	const struct answers *answers, const struct report *report)
{
	bytes_text(out, kind->none);
	if (!kind->trace)
		return;
	answer_trace_command(out, answers, report, 0);
	bytes_text(out, kind->trace);
}

int answer_report_text(enum answer answer, const struct answers *answers,
	const struct report *report, uint32_t row_count, struct bytes *out)
{
	const struct answer_report *kind = answer_reports[answer];
	uint32_t count = kind->process_count(answers);
	uint32_t shown = kind->shown_count ? kind->shown_count(answers) : count;
	uint32_t most = kind->process_max > row_count ? kind->process_max : row_count;
	uint32_t more = kind->process_max && shown > most ? shown - most : 0;
	int error = 0;

	for (uint32_t i = 0; i < shown - more && !error; i++) {
		if (i)
			bytes_text(out, "\n");
		error = kind->add_process(out, answers, report, i,
			row_count ? row_count : kind->row_count);
	}
	if (more)
		bytes_printf(out, "\n%s; --top shows more of them, -p and -n choose some\n",
			TEXT_THINGS(more, "more process", "more processes"));
	if (count > shown)
		bytes_printf(out, "\n%s without work\n",
			TEXT_THINGS(count - shown, "process", "processes"));
	if (kind->lacks_wakings) {
		answer_switch_end(out, report, count > 0, kind->lacks_wakings(answers));
		return error;
	}
	if (!count)
		add_none(out, kind, answers, report);
	label_loss(out, report);
	bytes_text(out, "\n");
	return error;
}

int answer_report_json(enum answer answer, const struct answers *answers,
	const struct report *report, struct bytes *out)
{
	const struct answer_report *kind = answer_reports[answer];
	uint32_t count = kind->process_count(answers);
	struct json j = { .out = out };
	int error = 0;

	json_object(&j, NULL);
	json_u64(&j, "duration_ns", answers->span_ns);
	json_array(&j, "processes");
	for (uint32_t i = 0; i < count && !error; i++)
		error = kind->add_json(&j, answers, report, i);
	json_end(&j);
	if (kind->add_json_end)
		kind->add_json_end(&j, answers, report);
	json_end(&j);
	bytes_text(out, "\n");
	return error;
}

enum answer answer_report_requested(const bool *flags, bool *ret_several)
{
	enum answer found = ANSWER_COUNT;

	*ret_several = false;
	for (unsigned i = 0; i < ANSWER_COUNT; i++) {
		if (!flags[i])
			continue;
		*ret_several = found != ANSWER_COUNT;
		found = (enum answer)i;
	}
	return found;
}
