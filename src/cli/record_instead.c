/* See record_instead.h. */
#include "cli/record_instead.h"

#include <stddef.h>

#include "base/diag.h"
#include "perf/recorder.h"
#include "recording/live.h"

/* Adds to the refusal the things that can be recorded without any perf event. */
static void say_instead(const struct live_options *options, struct diag *refusal)
{
	const struct diag all = *refusal;
	bool stacks = !options->no_dotnet && !options->no_names;

	*refusal = (struct diag){ 0 }; /* its first sentence is its last */
	diag_set(refusal, all.error, "%s; instead %s", all.text,
		stacks ? "the threads' CPU clocks are read, and .NET runtimes sample their managed stacks, stopping their threads for it: "
			 "no native and kernel frames, and no stacks of other programs"
		       : "the threads' CPU clocks are read: CPU time by process and thread, and no stacks");
	diag_remedy(refusal, "%s", all.remedy);
}

bool record_open_instead(struct live_options *options, struct live **ret_live, struct diag *diag)
{
	struct diag refusal = { 0 };
	struct diag failure = { 0 };

	if (options->kernel_only || options->cpu_count || options->usdt ||
		live_options_want_user_events(options) || !recorder_refusal(&refusal))
		return false;
	say_instead(options, &refusal);
	options->instead = &refusal;
	int result = live_open(options, ret_live, &failure);

	options->instead = NULL;
	if (result < 0)
		return false;
	*diag = (struct diag){ 0 };
	return true;
}
