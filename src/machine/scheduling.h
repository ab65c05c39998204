/* The scheduling of spoor, which competes for CPUs with the programs that it observes. */
#ifndef SPOOR_MACHINE_SCHEDULING_H
#define SPOOR_MACHINE_SCHEDULING_H

/*
 * Sets SCHED_BATCH for the calling thread, which then preempts no running thread. Its children and
 * new threads get the normal policy. No effect if forbidden, or if the user chose another policy or
 * priority.
 */
void scheduling_wait_ones_turn(void);

#endif
