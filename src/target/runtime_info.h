/* Sends ProcessInfo to chosen .NET processes: version, architecture, why one does not answer. */
#ifndef SPOOR_TARGET_RUNTIME_INFO_H
#define SPOOR_TARGET_RUNTIME_INFO_H

#include <stdint.h>

struct target;
struct targets;

/*
 * Sends ProcessInfo to all reachable processes simultaneously (it changes nothing in them and is
 * answered within milliseconds) and waits for `bound_ns` at most. The replies fill runtime_version
 * and architecture. A process that does not answer is marked as not reachable. For each that is
 * not, the reason becomes as exact as its environment variables allow, and `remedy` is a command to
 * type. The targets were chosen with TARGET_REACH. -ENOMEM, or 0.
 */
int runtime_info(struct targets *targets, uint64_t bound_ns);

#endif
