/* The calls of ETW, as a program on Linux: each event is written to standard output as a line. Any thread. */
#ifndef TESTS_GEN_ETW_EVNTPROV_H
#define TESTS_GEN_ETW_EVNTPROV_H

#include <windows.h>

typedef ULONGLONG REGHANDLE;
typedef struct {
	USHORT Id;
	UCHAR Version, Channel, Level, Opcode;
	USHORT Task;
	ULONGLONG Keyword;
} EVENT_DESCRIPTOR;
typedef struct {
	ULONGLONG Ptr;
	ULONG Size, Reserved;
} EVENT_DATA_DESCRIPTOR;
typedef struct event_filter *PEVENT_FILTER_DESCRIPTOR;
typedef void (*PENABLECALLBACK)(LPCGUID source, ULONG enabled, UCHAR level, ULONGLONG any,
	ULONGLONG all, PEVENT_FILTER_DESCRIPTOR filter, PVOID context);

ULONG EventRegister(LPCGUID provider, PENABLECALLBACK callback, PVOID context,
	REGHANDLE *ret_handle);
ULONG EventUnregister(REGHANDLE handle);
ULONG EventWrite(REGHANDLE handle, const EVENT_DESCRIPTOR *event, ULONG count,
	EVENT_DATA_DESCRIPTOR *data);
/*
 * The line begins with "transfer", and has before the payload the activity, the related one (or "-"),
 * the thread, and the bytes of the provider's and of the event's metadata.
 */
ULONG EventWriteTransfer(REGHANDLE handle, const EVENT_DESCRIPTOR *event, LPCGUID activity,
	LPCGUID related, ULONG count, EVENT_DATA_DESCRIPTOR *data);
typedef int EVENT_INFO_CLASS;
ULONG EventSetInformation(REGHANDLE handle, EVENT_INFO_CLASS what, PVOID bytes, ULONG size);
UCHAR EventEnabled(REGHANDLE handle, const EVENT_DESCRIPTOR *event);

static inline void EventDataDescCreate(EVENT_DATA_DESCRIPTOR *data, const void *bytes, ULONG size)
{
	data->Ptr = (uintptr_t)bytes;
	data->Size = size;
	data->Reserved = 0;
}

#endif
