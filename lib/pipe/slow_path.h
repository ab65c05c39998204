/*
 * Which events take the slow path of firing (firing.c): those of some slots, or all while the
 * loop thread rests or threads have to make fences. Loop thread; slow_path_set_up() before it runs.
 */
#ifndef SPOOR_LIB_PIPE_SLOW_PATH_H
#define SPOOR_LIB_PIPE_SLOW_PATH_H

#include <stdbool.h>
#include <stdint.h>

/* `fences`: threads make a fence in each record (the system has no barrier for all threads). */
void slow_path_set_up(bool fences);
void slow_path_child(void); /* in the child of fork() */
void slow_path_fences(void);

/* Do events for this slot take the slow path? */
void slow_path_slot(uint32_t slot, bool on);

/*
 * The next event wakes the loop thread. Returns true if that was set before, and no event was fired
 * since. False: threads may be firing without having seen it; the caller makes a pass before it
 * sleeps.
 */
bool slow_path_rest(void);
/* Ends the rest: events wake the loop thread no more. */
void slow_path_work(void);

#endif
