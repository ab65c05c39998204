/*
 * CPU time by the keys on the command line: process name, process, module, function, in any
 * combination. perf's `--sort comm,dso,sym`.
 */
#ifndef SPOOR_ANALYSIS_GROUP_H
#define SPOOR_ANALYSIS_GROUP_H

struct profile;
struct report;
struct symbolmap;

enum group_form {
	GROUP_BY_SELF,
	GROUP_BY_TOTAL,  /* sorted by its time, including the functions that it called */
	GROUP_SELF_ONLY, /* callers make no group: total is self */
};

/*
 * Fills report->groups by report->group_keys (enum report_group_key), most time first. A group that
 * is several times on a stack counts once towards its total. 0 or -ENOMEM.
 */
int group_count(struct report *report, const struct profile *profile, const struct symbolmap *names,
	enum group_form form);

#endif
