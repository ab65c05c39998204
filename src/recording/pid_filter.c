/* See pid_filter.h. */
#include "recording/pid_filter.h"

#include "perf/perf_record.h"

void pid_filter_done(struct pid_filter *filter)
{
	vec_done(&filter->words);
}

bool pid_filter_has(const struct pid_filter *filter, uint32_t pid)
{
	return pid / 64 < filter->words.count && filter->words.items[pid / 64] >> pid % 64 & 1;
}

static void share(const struct pid_filter *filter, uint32_t pid)
{
	for (unsigned i = 0; i < PID_FILTER_SHARED_MAX; i++)
		if (filter->shared[i])
			__atomic_store_n(&filter->shared[i][pid / 64],
				filter->words.items[pid / 64], __ATOMIC_RELAXED);
}

void pid_filter_add(struct pid_filter *filter, uint32_t pid)
{
	if (pid >= PID_FILTER_PIDS_MAX)
		return;
	while (filter->words.count <= pid / 64)
		if (!vec_push(&filter->words))
			return;
	filter->words.items[pid / 64] |= UINT64_C(1) << pid % 64;
	share(filter, pid);
}

void pid_filter_remove(struct pid_filter *filter, uint32_t pid)
{
	if (pid / 64 >= filter->words.count)
		return;
	filter->words.items[pid / 64] &= ~(UINT64_C(1) << pid % 64);
	share(filter, pid);
}

bool pid_filter_sift(struct pid_filter *filter, const struct perf_record *record)
{
	bool known = pid_filter_has(filter, record->pid);

	switch (record->type) {
	case PERF_TYPE_FORK:
		if (record->pid == record->parent_pid) /* a new thread */
			return known;
		known = pid_filter_has(filter, record->parent_pid);
		if (known)
			pid_filter_add(filter, record->pid);
		else
			pid_filter_remove(filter, record->pid);
		return known;
	case PERF_TYPE_EXIT:
		if (record->pid == record->tid)
			pid_filter_remove(filter, record->pid);
		return known;
	case PERF_TYPE_SAMPLE:
	case PERF_TYPE_COMM:
	case PERF_TYPE_MMAP:
	case PERF_TYPE_MMAP2:
	case PERF_TYPE_SWITCH:
	case PERF_TYPE_SWITCH_CPU_WIDE:
		return known;
	default: /* about the CPU, not about a process */
		return false;
	}
}
