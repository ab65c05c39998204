/*
 * See evntprov.h. Sessions: etw_session(level, keywords) enables all providers, as ETW decides for an event: its level is at most
 * the session's, and its keywords are none or have one in common.
 */
#include <evntprov.h>

#include <stdio.h>

#include "etw.h"

#define PROVIDERS_MAX 8

static struct {
	GUID guid;
	PENABLECALLBACK callback;
	PVOID context;
} providers[PROVIDERS_MAX];
static UCHAR level_now;
static ULONGLONG keywords_now;
static int is_on;

void etw_session(int on, unsigned level, uint64_t keywords)
{
	is_on = on;
	level_now = (UCHAR)level;
	keywords_now = keywords;
	for (int i = 0; i < PROVIDERS_MAX; i++)
		if (providers[i].callback)
			providers[i].callback(&providers[i].guid, (ULONG)on, level_now, keywords, 0,
				NULL, providers[i].context);
}

ULONG EventRegister(LPCGUID provider, PENABLECALLBACK callback, PVOID context,
	REGHANDLE *ret_handle)
{
	for (ULONG i = 0; i < PROVIDERS_MAX; i++) {
		if (providers[i].callback)
			continue;
		providers[i].guid = *provider;
		providers[i].callback = callback;
		providers[i].context = context;
		*ret_handle = i + 1;
		return 0;
	}
	return 14; /* ERROR_OUTOFMEMORY */
}

ULONG EventUnregister(REGHANDLE handle)
{
	providers[handle - 1].callback = NULL;
	return 0;
}

UCHAR EventEnabled(REGHANDLE handle, const EVENT_DESCRIPTOR *event)
{
	return handle && is_on && event->Level <= level_now &&
	       (!event->Keyword || (event->Keyword & keywords_now));
}

ULONG EventWrite(REGHANDLE handle, const EVENT_DESCRIPTOR *event, ULONG count,
	EVENT_DATA_DESCRIPTOR *data)
{
	const GUID *g = &providers[handle - 1].guid;

	printf("%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x %u %u %u %u %u %u 0x%llx ",
		g->Data1, g->Data2, g->Data3, g->Data4[0], g->Data4[1], g->Data4[2], g->Data4[3],
		g->Data4[4], g->Data4[5], g->Data4[6], g->Data4[7], event->Id, event->Version,
		event->Channel, event->Level, event->Opcode, event->Task,
		(unsigned long long)event->Keyword);
	for (ULONG i = 0; i < count; i++)
		for (ULONG k = 0; k < data[i].Size; k++)
			printf("%02x", ((const uint8_t *)(uintptr_t)data[i].Ptr)[k]);
	printf("\n");
	return 0;
}
