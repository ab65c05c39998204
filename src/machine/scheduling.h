/*
 * How we compete with the programs that are watched.
 */
#ifndef SPOOR_MACHINE_SCHEDULING_H
#define SPOOR_MACHINE_SCHEDULING_H

/*
 * The caller's thread has its share of the CPUs from now on, but takes none from who is running: it waits for the end of a time slice (SCHED_BATCH). Programs and
 * threads that it starts run as others do. Forbidden, a policy or a raised priority that somebody chose: as it is.
 */
void scheduling_wait_ones_turn(void);

#endif
