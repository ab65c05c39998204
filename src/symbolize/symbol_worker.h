/*
 * The symbol worker: a thread at idle priority that looks up names in symbol files.
 *
 * Opening and parsing the images of a target can take seconds of CPU time. That time must not be
 * taken from the target, and must not keep the recorder from reading its rings. So name_tables.h
 * runs in a thread with the policies SCHED_IDLE and "idle" I/O. When a question has waited for 500
 * ms, the thread gets ordinary priority until all questions are answered; otherwise a recording on
 * a fully busy machine would have no names until its end. Without CAP_SYS_NICE the kernel does not
 * allow that: then a second thread takes over, and keeps ordinary priority.
 *
 * Ownership of each question and answer passes between the caller's thread and the worker thread,
 * and each is normally freed by the thread that allocated it. Nothing else is shared, and no thread
 * waits for a lock that the other one holds.
 *
 *   name_desk_new(&box, symbol_paths, &desk);
 *   name_desk_ask(desk, question);                 at any time; takes ownership of the question
 *   while ((answer = name_desk_take(desk))) ...    the answers so far; in the order of the questions, unless a thread took over
 *   name_desk_give_back(desk, answer);             when it has been read
 *   name_desk_wait(desk, until_ns);                until all questions are answered
 *   name_desk_hurry(desk);                         at the end: from now on at the priority of the caller
 *   name_desk_free(desk);
 *
 * All calls must come from one thread. If reading a file never returns (for example, on a network
 * file system that hangs), the questions after it stay unanswered and the worker thread is
 * abandoned; nothing else is affected.
 */
#ifndef SPOOR_SYMBOLIZE_NAME_DESK_H
#define SPOOR_SYMBOLIZE_NAME_DESK_H

#include <stdbool.h>
#include <stdint.h>

struct box;
struct name_answer;
struct name_desk;
struct name_question;

/* `box` and `symbol_paths` are borrowed until name_desk_free(). */
int name_desk_new(const struct box *box, const char *const *symbol_paths,
	struct name_desk **ret_desk);

/* Reads the kernel's symbols in the caller's thread. Called before the first question. */
void name_desk_open_kernel(struct name_desk *desk);

/*
 * Takes ownership of the question, which is on the heap. It is sent with the next name_desk_take()
 * or name_desk_wait().
 */
void name_desk_ask(struct name_desk *desk, struct name_question *question);

/* The next answer, owned by the caller until name_desk_give_back(); NULL if there is none yet. */
struct name_answer *name_desk_take(struct name_desk *desk);

/* Returns an answer, which its allocating thread then frees. `answer` may be NULL. */
void name_desk_give_back(struct name_desk *desk, struct name_answer *answer);

/* Number of questions without an answer. */
uint32_t name_desk_open_count(const struct name_desk *desk);

/* Waits until every question has its answer (true), at most until `until_ns` (CLOCK_MONOTONIC). */
bool name_desk_wait(struct name_desk *desk, uint64_t until_ns);

/*
 * Gives the worker thread ordinary priority. Without the right to raise it (CAP_SYS_NICE), a new
 * thread replaces it within one second, and repeats the current question if the old thread only
 * waited for a CPU. A thread that hangs in reading a file is abandoned, and its question stays
 * unanswered.
 */
void name_desk_hurry(struct name_desk *desk);

/*
 * Drops most symbol tables, to save memory; later questions read them again. The worker thread does
 * it before its next question.
 */
void name_desk_make_room(struct name_desk *desk);

/* Memory of the symbol tables. */
uint64_t name_desk_size_bytes(const struct name_desk *desk);

/* `desk` may be NULL. */
void name_desk_free(struct name_desk *desk);

/* For tests: behaves as without the right to raise a priority. */
void name_desk_forbid_raise(struct name_desk *desk);

#endif
