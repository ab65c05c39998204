/* Threads with the same stack that wait for the same thing form one group. */
#ifndef SPOOR_STACKS_THREAD_GROUPS_H
#define SPOOR_STACKS_THREAD_GROUPS_H

struct thread_dump;

/*
 * Fills dump->members and dump->groups: idle ones last, those with managed frames first, larger
 * ones before smaller, then by the lowest thread id; a group's threads in order of their ids.
 * -ENOMEM.
 */
int thread_groups_make(struct thread_dump *dump);

#endif
