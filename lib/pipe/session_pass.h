/*
 * The work of each turn of the loop thread: one pass over the rings, then one step of each session.
 */
#ifndef SPOOR_LIB_PIPE_SESSION_PASS_H
#define SPOOR_LIB_PIPE_SESSION_PASS_H

#include <stdint.h>

/*
 * For loop_start(). Returns the time in ns until the next pass; UINT64_MAX: no session exists and
 * no slot is quarantined.
 */
uint64_t sessions_pass(void);

#endif
