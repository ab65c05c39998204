/*
 * The scheduling policy of spoor, which competes for the CPUs with the programs that it observes.
 */
#ifndef SPOOR_MACHINE_SCHEDULING_H
#define SPOOR_MACHINE_SCHEDULING_H

/*
 * Sets SCHED_BATCH for the calling thread: it gets its share of the CPUs but does not preempt
 * running threads. Its child processes and new threads get the normal policy. Without effect if it
 * is forbidden, or if the user chose another policy or a raised priority.
 */
void scheduling_wait_ones_turn(void);

#endif
