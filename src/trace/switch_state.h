/* What a context switch says about the thread that left the CPU, as the event cswitch has it. */
#ifndef SPOOR_TRACE_SWITCH_STATE_H
#define SPOOR_TRACE_SWITCH_STATE_H

enum switch_state {
	SWITCH_UNKNOWN, /* it blocked, and the reason is not recorded */
	SWITCH_SLEEPING,
	SWITCH_UNINTERRUPTIBLE,
	SWITCH_PREEMPTED, /* it could run on, and waited for a CPU */
	SWITCH_STOPPED,
	SWITCH_TRACED,
	SWITCH_EXITED,
	SWITCH_STATE_COUNT
};

enum switch_flag {
	SWITCH_OFF_BEFORE = 1 << 0, /* off the CPU since before the recording began */
	SWITCH_OFF_AT_END = 1 << 1, /* still off the CPU when the recording ended */
	SWITCH_STACK_OMITTED = 1 << 2,
	SWITCH_READY_UNKNOWN = 1 << 3, /* no waking was recorded: ReadyNs is not known */
	SWITCH_WOKEN_BY_INTERRUPT = 1 << 4,
	SWITCH_NEW_THREAD = 1 << 5, /* the time since its creation, all of it runnable */
};

#endif
