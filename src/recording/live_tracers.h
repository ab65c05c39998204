/* The other tracers of a live session together: LTTng, USDT probes and user_events. Only live.c calls this. */
#ifndef SPOOR_RECORDING_LIVE_TRACERS_H
#define SPOOR_RECORDING_LIVE_TRACERS_H

#include <stdint.h>

struct diag;
struct live;
struct poll_set;

/* Before the recorder starts. USDT probes start later: they need the table of processes. 0 or a negative errno. */
int live_tracers_start(struct live *live, struct diag *diag);

/* The rights that they still need after the start (a set of enum right). */
uint32_t live_tracers_rights(const struct live *live);

/* A runtime answers: its events are requested too, where it writes them into user_events. */
void live_tracers_note_runtime(struct live *live, uint32_t process);

/* While the session runs: what they wait for, and the look at what is new. */
void live_tracers_await(const struct live *live, struct poll_set *set);
void live_tracers_look(struct live *live, uint64_t now_ns);

/* When the recorder is closed. The sessions of runtimes have been stopped. */
void live_tracers_done(struct live *live);

#endif
