/*
 * The verbs of spoor: one table, from which help, completion and the check for man pages are made.
 *
 * A verb is a file cli/cmd_<name>.c with a function and an option table, both declared here, a row
 * in verbs.c, a page docs/man/spoor-<name>.1 and cases in tests/cli/<name>/. Its function gets its
 * own row and the arguments from its name on, calls options_parse() first, and returns the exit
 * code. A verb prints results to stdout and words to stderr.
 */
#ifndef SPOOR_CLI_VERBS_H
#define SPOOR_CLI_VERBS_H

#include "cli/options.h"
#include "cli/verb.h"

/* NULL when there is no such verb. */
const struct verb *verb_find(const char *name);

/* The verb whose name is nearest to a mistyped one, NULL when none is near. */
const struct verb *verb_nearest(const char *name);

int cmd_ps(const struct verb *self, int argc, char **argv);
extern const struct option ps_options[];
/* Prints that there is no such verb, the nearest one, and how to list all. EXIT_MISUSED. */
int verb_say_unknown(const char *name);

int cmd_record(const struct verb *self, int argc, char **argv);
int cmd_trace(const struct verb *self, int argc, char **argv);
extern const struct option trace_options[];
int cmd_report(const struct verb *self, int argc, char **argv);
extern const struct option report_options[];
int cmd_events(const struct verb *self, int argc, char **argv);
extern const struct option events_options[];
int cmd_flame(const struct verb *self, int argc, char **argv);
extern const struct option flame_options[];
int cmd_counters(const struct verb *self, int argc, char **argv);
extern const struct option counters_options[];
int cmd_stacks(const struct verb *self, int argc, char **argv);
extern const struct option stacks_options[];
int cmd_heap(const struct verb *self, int argc, char **argv);
extern const struct option heap_options[];
int cmd_dump(const struct verb *self, int argc, char **argv);
extern const struct option dump_options[];
int cmd_env(const struct verb *self, int argc, char **argv);
extern const struct option env_options[];
int cmd_perfmap(const struct verb *self, int argc, char **argv);
extern const struct option perfmap_options[];
int cmd_recover(const struct verb *self, int argc, char **argv);
extern const struct option recover_options[];
int cmd_symbols(const struct verb *self, int argc, char **argv);
extern const struct option symbols_options[];
int cmd_diagnose(const struct verb *self, int argc, char **argv);
extern const struct option diagnose_options[];
int cmd_doctor(const struct verb *self, int argc, char **argv);
extern const struct option doctor_options[];
int cmd_help(const struct verb *self, int argc, char **argv);
extern const struct option record_options[];
extern const struct option help_options[];

#endif
