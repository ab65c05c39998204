/*
 * Which events the options --usdt and --user-events name: PROVIDER or PROVIDER:EVENT, several with commas, with * and ?
 * for any characters. Patterns are a NULL-terminated list of such texts.
 */
#ifndef SPOOR_RECORDING_EVENT_PATTERNS_H
#define SPOOR_RECORDING_EVENT_PATTERNS_H

#include <stdbool.h>

struct diag;

/*
 * Whether all patterns (NULL: none) have this form. `option` ("--usdt") and `what` ("probes") are for the sentence. `events`: what
 * the part after the colon is ("PROBE"). 0 or -EINVAL.
 */
int event_patterns_check(const char *const *patterns, const char *option, const char *what,
	const char *events, struct diag *diag);

/* Whether one of them has this event. `event` NULL: whether one may have events of the provider. */
bool event_patterns_have(const char *const *patterns, const char *provider, const char *event);

#endif
