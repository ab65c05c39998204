/* See answer_report.h. */
#include "report/answer_report.h"

#include "report/allocations_report.h"
#include "report/collections_report.h"
#include "report/exceptions_report.h"

static bool has_collections(const struct answers *answers)
{
	return answers->collections.processes.count > 0;
}

static bool has_exceptions(const struct answers *answers)
{
	return answers->exceptions.tally.processes.count > 0;
}

static bool has_allocations(const struct answers *answers)
{
	return answers->allocations.tally.processes.count > 0;
}

const struct answer_report answer_reports[ANSWER_COUNT] = {
	[ANSWER_GC] = { "gc", collections_text, collections_json, has_collections },
	[ANSWER_EXCEPTIONS] = { "exceptions", exceptions_text, exceptions_json, has_exceptions },
	[ANSWER_ALLOC] = { "alloc", allocations_text, allocations_json, has_allocations },
};
