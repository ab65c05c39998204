/* The provider of activities, as a module of the library. */
#ifndef SPOOR_LIB_EVENT_ACTIVITY_H
#define SPOOR_LIB_EVENT_ACTIVITY_H

#include <spoor/activity.h>

#include "lib/platform/module.h"

extern const struct module activity_module;

/* Reads a traceparent header. False, and nothing written, when it is none. */
bool traceparent_read(const char *text, uint8_t ret_trace_id[16], uint8_t ret_span_id[8],
	uint8_t *ret_flags);

#endif
