/*
 * The chosen .NET processes, asked who they are: runtime version, architecture, and why one does not answer.
 */
#ifndef SPOOR_TARGET_ROLL_CALL_H
#define SPOOR_TARGET_ROLL_CALL_H

#include <stdint.h>

struct target;
struct targets;

/*
 * Asks all that are reachable at once, for `bound_ns` at most (ProcessInfo: harmless, answered within milliseconds). What they say goes into runtime_version and
 * architecture. One that does not answer is not reachable. For those that are not, the reason becomes as exact as their environment tells, and `remedy` says what to
 * type. The targets were chosen with TARGET_REACH. -ENOMEM, or 0.
 */
int roll_call(struct targets *targets, uint64_t bound_ns);

#endif
