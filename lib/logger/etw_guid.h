/* The GUID of a provider that has only a name, as EventSource and TraceLogging make it. */
#ifndef SPOOR_LIB_LOGGER_ETW_GUID_H
#define SPOOR_LIB_LOGGER_ETW_GUID_H

#include <stdint.h>

/*
 * Writes 16 bytes: u32, u16 and u16 little-endian, then 8 bytes. Tools make the same GUID of the
 * name, without regard to ASCII case. `name` is UTF-8 of any length. No allocation.
 */
void etw_guid_of_name(const char *name, uint8_t ret_guid[16]);

#endif
