/*
 * The runtime's side for tests: an EE that returns a sink and answers UpdateGCEventStatus(), and a
 * sink that stores what it gets. Slots that a test does not expect are NULL, so that a call of a
 * wrong slot crashes.
 */
#ifndef SPOOR_TESTS_MOCK_RUNTIME_H
#define SPOOR_TESTS_MOCK_RUNTIME_H

#include <string.h>

#include "gc/events.h"

static struct {
	char name[600];
	uint8_t data[70000];
	uint32_t size;
	unsigned dynamic; /* counts of the events that arrived */
	unsigned start;
	unsigned background_begin;
	unsigned tick;
	uint32_t start_arguments[4];
	uint64_t tick_arguments[5];
	unsigned polls;
	int32_t polled[4];
	/* the status that a poll reports, if it differs from the last one */
	struct gc_event_status truth[GC_EVENT_PROVIDERS];
} mock;

static void mock_dynamic(struct gc_sink *self, const char *name, void *data, uint32_t size)
{
	(void)self;
	__atomic_fetch_add(&mock.dynamic, 1, __ATOMIC_RELAXED);
	strncpy(mock.name, name, sizeof(mock.name) - 1);
	if (size)
		memcpy(mock.data, data, size);
	mock.size = size;
}

static void mock_start(struct gc_sink *self, uint32_t count, uint32_t depth, uint32_t reason,
	uint32_t type)
{
	(void)self;
	mock.start++;
	mock.start_arguments[0] = count;
	mock.start_arguments[1] = depth;
	mock.start_arguments[2] = reason;
	mock.start_arguments[3] = type;
}

static void mock_background_begin(struct gc_sink *self)
{
	(void)self;
	mock.background_begin++;
}

static void mock_tick(struct gc_sink *self, uint64_t amount, uint32_t kind, uint32_t heap,
	void *object, uint64_t size)
{
	(void)self;
	mock.tick++;
	mock.tick_arguments[0] = amount;
	mock.tick_arguments[1] = kind;
	mock.tick_arguments[2] = heap;
	mock.tick_arguments[3] = (uint64_t)(uintptr_t)object;
	mock.tick_arguments[4] = size;
}

static const struct gc_sink_table mock_sink_table = {
	.FireDynamicEvent = mock_dynamic,
	.FireGCStart_V2 = mock_start,
	.FireBGCBegin = mock_background_begin,
	.FireGCAllocationTick_V4 = mock_tick,
};
static struct gc_sink mock_sink = { &mock_sink_table };

static struct gc_sink *mock_event_sink(struct gc_to_clr *self)
{
	(void)self;
	return &mock_sink;
}

/* Like the runtime: calls ControlEvents only if one of the four numbers is outdated. */
static void mock_update(struct gc_to_clr *self, int32_t level, int32_t keyword,
	int32_t private_level, int32_t private_keyword)
{
	(void)self;
	mock.polls++;
	mock.polled[0] = level;
	mock.polled[1] = keyword;
	mock.polled[2] = private_level;
	mock.polled[3] = private_keyword;
	if (level != mock.truth[0].level || keyword != mock.truth[0].keyword)
		gc_events_control(GC_EVENT_DEFAULT, mock.truth[0].keyword, mock.truth[0].level);
	if (private_level != mock.truth[1].level || private_keyword != mock.truth[1].keyword)
		gc_events_control(GC_EVENT_PRIVATE, mock.truth[1].keyword, mock.truth[1].level);
}

static const struct gc_to_clr_table mock_ee_table = {
	.EventSink = mock_event_sink,
	.UpdateGCEventStatus = mock_update,
};
static struct gc_to_clr mock_ee = { &mock_ee_table };

#endif
