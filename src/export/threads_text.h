/*
 * The threads of a process for people, for programs, and in the form of dotnet-stack. Foreign names are made safe for a terminal.
 */
#ifndef SPOOR_EXPORT_THREADS_TEXT_H
#define SPOOR_EXPORT_THREADS_TEXT_H

struct bytes;
struct thread_dump;

/* Grouped (analyze/thread_groups). `columns` of the terminal; 0: do not cut. */
void threads_text(struct thread_dump *dump, unsigned columns, struct bytes *out);

/* One JSON object in a line; its members are documented in spoor-stacks(1) and only added to. */
void threads_json(const struct thread_dump *dump, struct bytes *out);

/* "Thread (0x1a2b):" and a line a managed frame, leaf first. Threads without managed frames are left out. */
void threads_dotnet_stack(const struct thread_dump *dump, struct bytes *out);

#endif
