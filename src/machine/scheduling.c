/* See scheduling.h. */
#include "machine/scheduling.h"

#include <sched.h>
#include <sys/resource.h>

void scheduling_wait_ones_turn(void)
{
	/* A program with a raised priority would lose it. */
	if (sched_getscheduler(0) == SCHED_OTHER && getpriority(PRIO_PROCESS, 0) >= 0)
		(void)sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK,
			&(struct sched_param){ 0 });
}

void scheduling_wait_no_more(void)
{
	/* The flag cannot be cleared without a right, and does no harm. */
	if (sched_getscheduler(0) == (SCHED_BATCH | SCHED_RESET_ON_FORK))
		(void)sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK,
			&(struct sched_param){ 0 });
}

void scheduling_go_first(void)
{
	(void)setpriority(PRIO_PROCESS, 0, -20); /* without the right the normal priority remains */
}
