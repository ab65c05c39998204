/* The scheduling of spoor, which competes for CPUs with the programs that it observes. */
#ifndef SPOOR_MACHINE_SCHEDULING_H
#define SPOOR_MACHINE_SCHEDULING_H

/*
 * Sets SCHED_BATCH for the calling thread, which then preempts no running thread. Its children and
 * new threads get the normal policy. No effect if forbidden, or if the user chose another policy or
 * priority.
 */
void scheduling_wait_ones_turn(void);

/* Ends that: a user waits for the calling thread. */
void scheduling_wait_no_more(void);

/*
 * Raises the priority of the calling thread, to drain rings that fill faster than a thread of normal
 * priority can read. No effect if forbidden. Its children inherit the priority.
 */
void scheduling_go_first(void);

#endif
