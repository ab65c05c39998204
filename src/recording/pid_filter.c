/* See strangers.h. */
#include "recording/pid_filter.h"

#include "perf/perf_record.h"

#define PID_MAX (UINT32_C(1) << 22) /* PID_MAX_LIMIT of the kernel */

void strangers_done(struct strangers *strangers)
{
	vec_done(&strangers->words);
}

bool strangers_has(const struct strangers *strangers, uint32_t pid)
{
	return pid / 64 < strangers->words.count &&
	       strangers->words.items[pid / 64] >> pid % 64 & 1;
}

void strangers_add(struct strangers *strangers, uint32_t pid)
{
	if (pid >= PID_MAX)
		return;
	while (strangers->words.count <= pid / 64)
		if (!vec_push(&strangers->words))
			return;
	strangers->words.items[pid / 64] |= UINT64_C(1) << pid % 64;
}

void strangers_remove(struct strangers *strangers, uint32_t pid)
{
	if (pid / 64 < strangers->words.count)
		strangers->words.items[pid / 64] &= ~(UINT64_C(1) << pid % 64);
}

bool strangers_sift(struct strangers *strangers, const struct perf_record *record)
{
	bool known = strangers_has(strangers, record->pid);

	switch (record->type) {
	case PERF_TYPE_FORK:
		if (record->pid == record->parent_pid) /* a new thread */
			return known;
		known = strangers_has(strangers, record->parent_pid);
		if (known)
			strangers_add(strangers, record->pid);
		else
			strangers_remove(strangers, record->pid);
		return known;
	case PERF_TYPE_EXIT:
		if (record->pid == record->tid)
			strangers_remove(strangers, record->pid);
		return known;
	case PERF_TYPE_SAMPLE:
	case PERF_TYPE_COMM:
	case PERF_TYPE_MMAP:
	case PERF_TYPE_MMAP2:
		return known;
	default: /* about the CPU, not about a process */
		return false;
	}
}
