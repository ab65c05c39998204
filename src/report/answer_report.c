/* See answer_report.h. */
#include "report/answer_report.h"

#include "report/allocations_report.h"
#include "report/blocks_report.h"
#include "report/collections_report.h"
#include "report/compilations_report.h"
#include "report/exceptions_report.h"
#include "report/requests_report.h"
#include "report/thread_pool_report.h"
#include "report/thread_time_report.h"
#include "report/waits_report.h"

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

static bool has_locks(const struct answers *answers)
{
	return answers->locks.tally.processes.count > 0;
}

static bool has_waits(const struct answers *answers)
{
	return answers->handles.tally.processes.count > 0;
}

static bool has_pools(const struct answers *answers)
{
	return answers->thread_pool.processes.count > 0;
}

static bool has_compilations(const struct answers *answers)
{
	return answers->compilations.processes.count > 0;
}

static bool has_thread_time(const struct answers *answers)
{
	return answers->thread_time.processes.count > 0;
}

static bool has_blocks(const struct answers *answers)
{
	return answers->blocks.blocked.processes.count > 0;
}

static bool has_requests(const struct answers *answers)
{
	return answers->requests.processes.count > 0;
}

const struct answer_report answer_reports[ANSWER_COUNT] = {
	[ANSWER_GC] = { "gc", collections_text, collections_json, has_collections },
	[ANSWER_EXCEPTIONS] = { "exceptions", exceptions_text, exceptions_json, has_exceptions },
	[ANSWER_ALLOC] = { "alloc", allocations_text, allocations_json, has_allocations },
	[ANSWER_LOCKS] = { "locks", locks_text, locks_json, has_locks },
	[ANSWER_WAITS] = { "waits", waits_text, waits_json, has_waits },
	[ANSWER_POOL] = { "threadpool", thread_pool_text, thread_pool_json, has_pools },
	[ANSWER_JIT] = { "jit", compilations_text, compilations_json, has_compilations },
	[ANSWER_THREAD_TIME] = { "thread-time", thread_time_text, thread_time_json,
		has_thread_time },
	[ANSWER_OFF_CPU] = { "off-cpu", blocks_text, blocks_json, has_blocks },
	[ANSWER_REQUESTS] = { "requests", requests_text, requests_json, has_requests },
};

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
