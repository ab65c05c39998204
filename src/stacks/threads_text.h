/*
 * The threads of a process for people, for programs, and in the form of dotnet-stack. Foreign names
 * are made safe for a terminal.
 */
#ifndef SPOOR_STACKS_THREADS_TEXT_H
#define SPOOR_STACKS_THREADS_TEXT_H

#include <stdbool.h>

struct bytes;
struct thread_dump;

struct threads_text_options {
	unsigned columns; /* of the terminal; 0: do not cut */
	bool long_names;
	/*
	 * every frame and idle threads of the runtime; else several frames of the kernel, or of a
	 * file without symbols, are one line
	 */
	bool whole;
};

/* Grouped (stacks/thread_groups). */
void threads_text(struct thread_dump *dump, const struct threads_text_options *options,
	struct bytes *out);

/* One JSON object in a line; its members are documented in spoor-stacks(1) and only added to. */
void threads_json(const struct thread_dump *dump, struct bytes *out);

/* "Thread (0x1a2b):" and a line for each managed frame, leaf first; other threads are left out. */
void threads_dotnet_stack(const struct thread_dump *dump, struct bytes *out);

#endif
