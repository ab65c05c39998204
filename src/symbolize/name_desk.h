/*
 * Questions about names, answered by one thread at idle priority.
 *
 * Opening and parsing the images of a target can take seconds of CPU; none of that may be taken from the target, nor keep the recorder from its
 * rings. So name_tables.h works in a thread with the policies SCHED_IDLE and "idle" I/O. Once a question has waited for 500 ms the thread has ordinary
 * priority until all are answered: on a machine whose CPUs are all busy a recording would have no names until its end. Questions and answers are handed over, and go back to
 * where they were allocated when they are done with; nothing else is shared, and neither side waits for a lock that the other one holds.
 *
 *   name_desk_new(&box, symbol_paths, &desk);
 *   name_desk_ask(desk, question);                 at any time; the question is the desk's then
 *   while ((answer = name_desk_take(desk))) ...    what is ready, in the order asked
 *   name_desk_give_back(desk, answer);             when it has been read
 *   name_desk_wait(desk, until_ns);                until all is answered
 *   name_desk_hurry(desk);                         at the end: from now on at the priority of the caller
 *   name_desk_free(desk);
 *
 * All calls come from one thread. A file that never lets itself be read (a network that hangs) costs the answers to what waits behind it,
 * and nothing else: the thread that hangs in it is left behind.
 */
#ifndef SPOOR_SYMBOLIZE_NAME_DESK_H
#define SPOOR_SYMBOLIZE_NAME_DESK_H

#include <stdbool.h>
#include <stdint.h>

struct box;
struct name_answer;
struct name_desk;
struct name_question;

/* `box` and `symbol_paths` are borrowed for the desk's life. */
int name_desk_new(const struct box *box, const char *const *symbol_paths, struct name_desk **ret_desk);

/* Reads the kernel's names here and now. Before the first question. */
void name_desk_open_kernel(struct name_desk *desk);

/* The question, on the heap, is the desk's from now on. It is sent with the next name_desk_take() or name_desk_wait(). */
void name_desk_ask(struct name_desk *desk, struct name_question *question);

/* The next answer; NULL when there is none yet. */
struct name_answer *name_desk_take(struct name_desk *desk);

/* NULL is harmless. */
void name_desk_give_back(struct name_desk *desk, struct name_answer *answer);

/* How many questions have no answer yet. */
uint32_t name_desk_open_count(const struct name_desk *desk);

/* Until every question has its answer (true), at most until then (CLOCK_MONOTONIC). */
bool name_desk_wait(struct name_desk *desk, uint64_t until_ns);

/*
 * The thread gets the ordinary priority. Where the right to raise it is missing (CAP_SYS_NICE) another thread takes over, after a second at most,
 * also what the first one was at if that only waited for a CPU; one that hangs in a file is left behind there, its question without an answer.
 */
void name_desk_hurry(struct name_desk *desk);

/* Most tables are dropped, to be read again with the next questions: when the memory is wanted for what cannot be had again. Soon, not at once. */
void name_desk_make_room(struct name_desk *desk);

/* Memory of the tables. */
uint64_t name_desk_size_bytes(const struct name_desk *desk);

/* NULL is harmless. */
void name_desk_free(struct name_desk *desk);

/* For tests: as if the right to raise a priority were missing. */
void name_desk_forbid_raise(struct name_desk *desk);

#endif
