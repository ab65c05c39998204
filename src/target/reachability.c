/* See reachability.h. */
#include "target/reachability.h"

#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "target/targets.h"

int reachability_count(struct reachability *ret_reachability, struct diag *diag)
{
	const struct target_query query = {
		.all = true, .dotnet_only = true, .details = TARGET_REACH
	};
	struct targets targets;
	int result = targets_choose(&query, &targets, diag);

	*ret_reachability = (struct reachability){ 0 };
	if (result < 0)
		return result;
	ret_reachability->hidden = targets.hidden_count;
	vec_each(target, &targets.list) {
		if (target->kind == DOTNET_UNKNOWN) { /* one of the hidden */
			ret_reachability->likely++;
			continue;
		}
		ret_reachability->found++;
		if (target->reachable) {
			ret_reachability->reachable++;
		} else if (!ret_reachability->refused_pid) {
			ret_reachability->refused_pid = target->pid;
			(void)text_make_safe(target->reason, strlen(target->reason),
				ret_reachability->reason,
				sizeof(ret_reachability->reason)); /* a cut end is fine */
		}
	}
	targets_done(&targets);
	return 0;
}
