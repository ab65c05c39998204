/*
 * See evntprov.h. Sessions: etw_session(level, keywords) enables all providers, as ETW decides for an event: its level is at most
 * the session's, and its keywords are none or have one in common.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <evntprov.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "etw.h"

#define PROVIDERS_MAX 16
#define TRAITS_MAX    256

static struct {
	GUID guid;
	PENABLECALLBACK callback;
	PVOID context;
	uint8_t traits[TRAITS_MAX];
	ULONG traits_size;
} providers[PROVIDERS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that is above and below */
static UCHAR level_now;
static ULONGLONG keywords_now;
static int is_on;

void etw_session(int on, unsigned level, uint64_t keywords)
{
	pthread_mutex_lock(&lock);
	is_on = on;
	level_now = (UCHAR)level;
	keywords_now = keywords;
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < PROVIDERS_MAX; i++) {
		pthread_mutex_lock(&lock);
		PENABLECALLBACK callback = providers[i].callback;
		PVOID context = providers[i].context;
		GUID guid = providers[i].guid;
		pthread_mutex_unlock(&lock);
		if (callback)
			callback(&guid, (ULONG)on, (UCHAR)level, keywords, 0, NULL, context);
	}
}

ULONG EventRegister(LPCGUID provider, PENABLECALLBACK callback, PVOID context,
	REGHANDLE *ret_handle)
{
	ULONG i = 0;

	pthread_mutex_lock(&lock);
	while (i < PROVIDERS_MAX && providers[i].callback)
		i++;
	if (i < PROVIDERS_MAX) {
		providers[i].guid = *provider;
		providers[i].callback = callback;
		providers[i].context = context;
		providers[i].traits_size = 0;
		*ret_handle = i + 1;
	}
	const int tells = is_on;
	const UCHAR level = level_now;
	const ULONGLONG keywords = keywords_now;
	pthread_mutex_unlock(&lock);
	if (i == PROVIDERS_MAX)
		return 14; /* ERROR_OUTOFMEMORY */
	/* Sessions that wait for the provider. */
	if (tells)
		callback(provider, 1, level, keywords, 0, NULL, context);
	return 0;
}

ULONG EventUnregister(REGHANDLE handle)
{
	pthread_mutex_lock(&lock);
	providers[handle - 1].callback = NULL;
	pthread_mutex_unlock(&lock);
	return 0;
}

UCHAR EventEnabled(REGHANDLE handle, const EVENT_DESCRIPTOR *event)
{
	pthread_mutex_lock(&lock);
	const int enabled = handle && is_on && event->Level <= level_now &&
			    (!event->Keyword || (event->Keyword & keywords_now));
	pthread_mutex_unlock(&lock);
	return (UCHAR)enabled;
}

static void guid_print(const GUID *g)
{
	printf("%08x-%04x-%04x-%02x%02x-%02x%02x%02x%02x%02x%02x", g->Data1, g->Data2, g->Data3,
		g->Data4[0], g->Data4[1], g->Data4[2], g->Data4[3], g->Data4[4], g->Data4[5],
		g->Data4[6], g->Data4[7]);
}

static void event_print(REGHANDLE handle, const EVENT_DESCRIPTOR *event)
{
	guid_print(&providers[handle - 1].guid);
	printf(" %u %u %u %u %u %u 0x%llx ", event->Id, event->Version, event->Channel,
		event->Level, event->Opcode, event->Task, (unsigned long long)event->Keyword);
}

static void bytes_print(const EVENT_DATA_DESCRIPTOR *data)
{
	for (ULONG k = 0; k < data->Size; k++)
		printf("%02x", ((const uint8_t *)(uintptr_t)data->Ptr)[k]);
}

ULONG EventWrite(REGHANDLE handle, const EVENT_DESCRIPTOR *event, ULONG count,
	EVENT_DATA_DESCRIPTOR *data)
{
	event_print(handle, event);
	for (ULONG i = 0; i < count; i++)
		bytes_print(&data[i]);
	printf("\n");
	return 0;
}

static void id_print(LPCGUID id)
{
	if (id)
		guid_print(id);
	else
		printf("-");
	printf(" ");
}

ULONG EventSetInformation(REGHANDLE handle, EVENT_INFO_CLASS what, PVOID bytes, ULONG size)
{
	if (what != 2 || size > TRAITS_MAX)
		return 87; /* ERROR_INVALID_PARAMETER */
	pthread_mutex_lock(&lock);
	memcpy(providers[handle - 1].traits, bytes, size);
	providers[handle - 1].traits_size = size;
	pthread_mutex_unlock(&lock);
	return 0;
}

ULONG EventWriteTransfer(REGHANDLE handle, const EVENT_DESCRIPTOR *event, LPCGUID activity,
	LPCGUID related, ULONG count, EVENT_DATA_DESCRIPTOR *data)
{
	if (!handle || !EventEnabled(handle, event))
		return 6; /* ERROR_INVALID_HANDLE */
	/* The provider's metadata comes first, and is what EventSetInformation() got. */
	pthread_mutex_lock(&lock);
	const int wrong = count < 2 || data[0].Reserved != 2 || data[1].Reserved != 1 ||
			  data[0].Size != providers[handle - 1].traits_size ||
			  memcmp((const void *)(uintptr_t)data[0].Ptr, providers[handle - 1].traits,
				  data[0].Size) != 0;
	if (wrong) {
		pthread_mutex_unlock(&lock);
		return 87;
	}
	flockfile(stdout); /* lines of other threads do not mix with it */
	printf("transfer ");
	event_print(handle, event);
	id_print(activity);
	id_print(related);
	printf("%ld ", syscall(SYS_gettid));
	bytes_print(&data[0]);
	printf(" ");
	bytes_print(&data[1]);
	printf(" ");
	for (ULONG i = 2; i < count; i++)
		bytes_print(&data[i]);
	printf("\n");
	funlockfile(stdout);
	pthread_mutex_unlock(&lock);
	return 0;
}
