/* See survey.h. */
#include "target/survey.h"

#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "target/targets.h"

int survey_dotnet(struct survey *ret_survey, struct diag *diag)
{
	const struct target_query query = {
		.all = true, .dotnet_only = true, .details = TARGET_REACH
	};
	struct targets targets;
	int result = targets_choose(&query, &targets, diag);

	*ret_survey = (struct survey){ 0 };
	if (result < 0)
		return result;
	ret_survey->hidden = targets.hidden_count;
	vec_each(target, &targets.list) {
		if (target->kind == DOTNET_UNKNOWN) { /* one of the hidden */
			ret_survey->likely++;
			continue;
		}
		ret_survey->found++;
		if (target->reachable) {
			ret_survey->reachable++;
		} else if (!ret_survey->refused_pid) {
			ret_survey->refused_pid = target->pid;
			(void)text_make_safe(target->reason, strlen(target->reason),
				ret_survey->reason,
				sizeof(ret_survey->reason)); /* a cut end is fine */
		}
	}
	targets_done(&targets);
	return 0;
}
