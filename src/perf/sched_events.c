/* See sched_events.h. */
#include "perf/sched_events.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "perf/attribute.h"
#include "perf/perf_record.h"
#include "trace/switch_state.h"

/* raw data of every tracepoint: u16 id, u8 flags, u8 preempt count, s32 pid */
#define RAW_HEADER_BYTES 8u
#define FLAGS_OFFSET     2u
#define FLAG_HARD_IRQ    0x08u
#define FLAG_SOFT_IRQ    0x10u

/* prev_state of sched_switch (include/linux/sched.h, TASK_REPORT) */
#define STATE_INTERRUPTIBLE   0x01u
#define STATE_UNINTERRUPTIBLE 0x02u
#define STATE_STOPPED         0x04u
#define STATE_TRACED          0x08u
#define STATE_EXITED          0x30u /* dead, zombie */
#define STATE_PARKED          0x40u
#define STATE_IDLE            0x80u

/* of struct task_struct beside these, where STATE_IDLE is the end (TASK_DEAD) */
#define RAW_DEAD      0x80u
#define RAW_NO_LOAD   0x400u
#define RAW_LOCK_WAIT 0x1000u
#define RAW_FROZEN    0x8000u

static void refuse(struct sched_events *events, int error)
{
	for (unsigned i = 0; i < SCHED_EVENT_COUNT; i++)
		events->of[i].wanted = false;
	diag_set(&events->limit, error,
		error == -ENOENT || error == -EBADMSG
			? "blocks have no stacks: this kernel's tracepoints sched_switch and sched_waking cannot be read"
			: "blocks have no stacks: this user may not use the kernel's tracepoints");
	diag_remedy(&events->limit,
		error == -ENOENT ? "mount tracefs: sudo mount -t tracefs nodev /sys/kernel/tracing"
				 : "record with sudo");
}

void sched_events_find(struct sched_events *events, bool waking_stacks)
{
	static const struct {
		const char *name;
		const char *field;
	} known[SCHED_EVENT_COUNT] = {
		[SCHED_EVENT_SWITCH] = { "sched/sched_switch", "prev_state" },
		[SCHED_EVENT_WAKING] = { "sched/sched_waking", "pid" },
	};

	*events = (struct sched_events){ 0 };
	for (unsigned i = 0; i < SCHED_EVENT_COUNT; i++) {
		struct sched_tracepoint *each = &events->of[i];
		each->field.name = known[i].field;
		int result = tracepoint_read(known[i].name, &each->field, 1, &each->tracepoint);
		if (result < 0) {
			refuse(events, result);
			return;
		}
		each->wanted = true;
	}
	events->of[SCHED_EVENT_WAKING].no_stack = !waking_stacks;
	/* the idle task: every second switch of a machine that is not busy */
	events->of[SCHED_EVENT_SWITCH].filter = "prev_pid != 0";
}

void sched_events_attribute(const struct sched_events *events, enum sched_event which,
	const struct perf_event_attr *sampling, uint32_t stack_bytes, bool user_only,
	bool kernel_only, struct perf_event_attr *ret_attr)
{
	const struct sched_tracepoint *each = &events->of[which];

	attribute_each(sampling, each->no_stack ? 0 : stack_bytes, user_only || each->no_stack,
		kernel_only || each->no_stack, ret_attr);
	if (each->no_stack)
		attribute_drop_registers(ret_attr);
	ret_attr->type = PERF_TYPE_TRACEPOINT;
	ret_attr->config = each->tracepoint.id;
}

void sched_events_refuse(struct sched_events *events, int error)
{
	refuse(events, error);
}

enum sched_event sched_events_which(const struct sched_events *events,
	const struct perf_record *record)
{
	uint16_t id;

	if (record->raw_size < RAW_HEADER_BYTES)
		return SCHED_EVENT_COUNT;
	memcpy(&id, record->raw, sizeof(id));
	for (unsigned i = 0; i < SCHED_EVENT_COUNT; i++)
		if (events->of[i].wanted && events->of[i].tracepoint.id == id)
			return (enum sched_event)i;
	return SCHED_EVENT_COUNT;
}

uint64_t sched_events_value(const struct sched_events *events, enum sched_event which,
	const struct perf_record *record)
{
	return tracepoint_value(&events->of[which].field, record->raw, record->raw_size);
}

bool sched_events_in_interrupt(const struct perf_record *record)
{
	return record->raw_size > FLAGS_OFFSET &&
	       record->raw[FLAGS_OFFSET] & (FLAG_HARD_IRQ | FLAG_SOFT_IRQ);
}

unsigned sched_events_state(uint64_t prev_state)
{
	if (prev_state & STATE_EXITED)
		return SWITCH_EXITED;
	if (prev_state & STATE_STOPPED)
		return SWITCH_STOPPED;
	if (prev_state & STATE_TRACED)
		return SWITCH_TRACED;
	if (prev_state & STATE_UNINTERRUPTIBLE)
		return SWITCH_UNINTERRUPTIBLE;
	if (prev_state & (STATE_INTERRUPTIBLE | STATE_PARKED | STATE_IDLE))
		return SWITCH_SLEEPING;
	return SWITCH_PREEMPTED; /* it can run on */
}

bool sched_events_is_end(uint32_t state)
{
	return state & (RAW_DEAD | STATE_EXITED);
}

unsigned sched_events_raw_state(uint32_t state)
{
	uint32_t idle = STATE_UNINTERRUPTIBLE | RAW_NO_LOAD;

	if (sched_events_is_end(state))
		return SWITCH_EXITED;
	if ((state & idle) == idle)
		return SWITCH_SLEEPING;
	if (state & (RAW_LOCK_WAIT | RAW_FROZEN))
		return SWITCH_UNINTERRUPTIBLE;
	return sched_events_state(state);
}
