/* Events that a C file and a C++ file of one program fire (cpp.sh). */
#ifndef BOTH_EVENTS_H
#define BOTH_EVENTS_H

#include <spoor/spoor.h>

SPOOR_PROVIDER(both, "Both")
SPOOR_STRUCT(both_point, (i32, x), (counted_text, label))
SPOOR_EVENT(both, order, 1, SPOOR_INFO, 0x1, (u32, kind), (text, customer), (boolean, paid))
SPOOR_EVENT(both, part, 2, SPOOR_INFO, 0x1, (counted_text, word), (u32_array, items), (blob, raw),
	(time, at), (f64, price), (i8, small))
SPOOR_EVENT(both, wide, 3, SPOOR_INFO, 0x1, (text16, name), (object, point, both_point),
	(object_array, points, both_point), (text_array, words))
SPOOR_EVENT(both, tick, 4, SPOOR_INFO, 0x1)
SPOOR_EVENT(both, plain, 5, SPOOR_INFO, 0x1, (u64, value))

#ifdef __cplusplus
extern "C"
#endif
	void
	both_fire_in_c(void);

#endif
