/* What the loop thread does again and again: one pass over the rings, then one step of each session. */
#ifndef SPOOR_LIB_PIPE_SESSION_PASS_H
#define SPOOR_LIB_PIPE_SESSION_PASS_H

#include <stdint.h>

/* For loop_start(). The time in ns until the next pass; UINT64_MAX: no session is active, and none has to be waited for. */
uint64_t sessions_pass(void);

#endif
