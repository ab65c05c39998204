/* See runtime_start.h. */
#include "dotnet/runtime_start.h"

#include "machine/proc.h"
#include "machine/process_use.h"

static uint64_t waited_ns(uint32_t pid)
{
	struct proc_reader proc;
	uint64_t wait_ns = 0;

	if (!pid || proc_open(&proc, NULL) < 0)
		return 0;
	if (!process_use_read_wait(&proc, pid, &wait_ns))
		wait_ns = 0;
	proc_close(&proc);
	return wait_ns;
}

void runtime_start_begin(struct runtime_start *start, uint32_t pid, uint64_t now_ns)
{
	*start = (struct runtime_start){
		.begin_ns = now_ns, .waited_ns = waited_ns(pid), .due_ns = now_ns + RUNTIME_START_NS
	};
}

bool runtime_start_is_over(struct runtime_start *start, uint32_t pid, uint64_t now_ns)
{
	if (now_ns < start->due_ns)
		return false;
	uint64_t waited = waited_ns(pid);
	uint64_t more_ns = waited > start->waited_ns ? waited - start->waited_ns : 0;

	if (more_ns > RUNTIME_START_MOST_NS - RUNTIME_START_NS)
		more_ns = RUNTIME_START_MOST_NS - RUNTIME_START_NS;
	if (start->due_ns < start->begin_ns + RUNTIME_START_NS + more_ns)
		start->due_ns = start->begin_ns + RUNTIME_START_NS + more_ns;
	return now_ns >= start->due_ns;
}
