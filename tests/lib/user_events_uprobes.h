/*
 * The stand-in for user_events with tracepoints that tools can enable: an uprobe for each, in the tracefs whose
 * uprobe_events is $USER_EVENTS_UPROBES. The folder /sys/kernel/tracing, which the test has mounted, gets their
 * descriptions, as the kernel would write them. Each tracepoint is a function with an uprobe of its own, since the
 * kernel must not get two with one name. Processes share the numbers of tracepoints through $USER_EVENTS_FOLDER.
 */
#ifndef SPOOR_TESTS_LIB_USER_EVENTS_UPROBES_H
#define SPOOR_TESTS_LIB_USER_EVENTS_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USER_EVENTS_UPROBES_MAX 384
#define USER_EVENTS_UPROBE_SIZE 2560u /* bytes of an event that a tool gets */

/* Whether there are tracepoints. */
bool user_events_uprobes_exist(void);

/* The number of a tracepoint, which is made for the first process that registers it. -1: failed; errno is set. */
int user_events_uprobe_make(const char *description);

/* Whether a tool has enabled it. */
bool user_events_uprobe_is_enabled(int number);

/* An event of the tracepoint, without its index. Async-signal-safe. */
void user_events_uprobe_fire(int number, const uint8_t *event, size_t size);

#endif
