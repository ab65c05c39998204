/*
 * Opens what samples a recording: the unwinder of its stacks, and the recorder of perf events. Part of
 * live.c, which calls these two in this order.
 */
#ifndef SPOOR_RECORDING_LIVE_RECORDER_H
#define SPOOR_RECORDING_LIVE_RECORDER_H

struct diag;
struct live;
struct live_options;

/* Opens live->unwinder if the options want unwound stacks. live_close() frees it. */
int live_recorder_unwind(struct live *live, const struct live_options *options, struct diag *diag);

/*
 * Opens live->recorder, and tells the parts of the session what it records. live_close() frees it.
 * The options are those of live_open(), whose borrowed lists are needed here.
 */
int live_recorder_open(struct live *live, const struct live_options *options, struct diag *diag);

#endif
