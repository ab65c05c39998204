/* See late_providers.h. */
#include "tracing/late_providers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "dotnet/ipc.h"
#include "machine/proc.h"

#define COUNTERS_ARGUMENT "EventCounterIntervalSec"
/* A thread that a runtime creates only after the point where it waits to be resumed. */
#define LATER_THREAD ".NET Finalizer"

bool late_providers_has(const struct ipc_provider *provider)
{
	return provider->arguments && strstr(provider->arguments, COUNTERS_ARGUMENT);
}

int late_providers_split(struct late_providers *late, const struct ipc_provider *providers,
	uint32_t count)
{
	uint32_t late_count = 0;

	*late = (struct late_providers){ 0 };
	for (uint32_t i = 0; i < count; i++)
		late_count += late_providers_has(&providers[i]);
	if (late_count)
		late->late = calloc(late_count, sizeof(*late->late));
	if (count > late_count)
		late->early = calloc(count - late_count, sizeof(*late->early));
	if ((late_count && !late->late) || (count > late_count && !late->early)) {
		late_providers_done(late);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (late_providers_has(&providers[i]))
			late->late[late->late_count++] = providers[i];
		else
			late->early[late->early_count++] = providers[i];
	}
	return 0;
}

bool late_providers_has_begun(uint32_t pid)
{
	struct proc_reader proc;
	struct id_list list = { 0 };
	struct proc_thread thread;
	bool begun = false;

	if (proc_open(&proc, NULL) < 0)
		return true;
	if (proc_list_threads(&proc, pid, &list) == 0)
		for (uint32_t i = 0; i < list.ids.count && !begun; i++)
			begun = proc_read_thread(&proc, pid, list.ids.items[i], &thread) == 0 &&
				strcmp(thread.comm, LATER_THREAD) == 0;
	vec_done(&list.ids);
	proc_close(&proc);
	return begun;
}

void late_providers_done(struct late_providers *late)
{
	free(late->early);
	free(late->late);
	*late = (struct late_providers){ 0 };
}
