/* Records without any perf event, where the system refuses these to this user. */
#ifndef SPOOR_CLI_RECORD_INSTEAD_H
#define SPOOR_CLI_RECORD_INSTEAD_H

#include <stdbool.h>

struct diag;
struct live;
struct live_options;

/*
 * Opens a recording by the CPU clocks in /proc, if no option needs events and the system refuses
 * them. True: *ret_live is open, and *diag is empty. False: *diag is unchanged.
 */
bool record_open_instead(struct live_options *options, struct live **ret_live, struct diag *diag);

#endif
