/* The same event as fire.c's, for LTTng-UST. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER spoor_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "fire_lttng_events.h"

#if !defined(FIRE_LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define FIRE_LTTNG_EVENTS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(spoor_bench, four,
	LTTNG_UST_TP_ARGS(uint32_t, number, uint64_t, bytes, double, price, const char *, name),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint32_t, number, number)
			lttng_ust_field_integer(uint64_t, bytes, bytes)
				lttng_ust_field_float(double, price, price)
					lttng_ust_field_string(name, name)))

#endif

#include <lttng/tracepoint-event.h>
