/*
 * Owners of monitors, read from the memory of a .NET process: for threads whose wait began before
 * the session, so that the runtime announced no owner.
 *
 * The object is found on the stack of the waiting thread; code/clr_locks.h reads its owner. Supported: .NET 9
 * and 10 on 64-bit machines; elsewhere owners stay unknown. System.Threading.Lock is no monitor.
 */
#ifndef SPOOR_STACKS_LOCK_OWNERS_H
#define SPOOR_STACKS_LOCK_OWNERS_H

struct thread_dump;

/* After thread_waits_find(). Without the right to read the process's memory nothing changes. */
void lock_owners_find(struct thread_dump *dump);

#endif
