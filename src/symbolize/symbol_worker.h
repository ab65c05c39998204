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
 *   symbol_worker_new(&box, symbol_paths, &worker);
 *   symbol_worker_ask(worker, question);                 at any time; takes ownership of the question
 *   while ((answer = symbol_worker_take(worker))) ...    the answers so far; in the order of the questions, unless a thread took over
 *   symbol_worker_give_back(worker, answer);             when it has been read
 *   symbol_worker_wait(worker, until_ns);                until all questions are answered
 *   symbol_worker_hurry(worker);                         at the end: from now on at the priority of the caller
 *   symbol_worker_free(worker);
 *
 * All calls must come from one thread. If reading a file never returns (for example, on a network
 * file system that hangs), the questions after it stay unanswered and the worker thread is
 * abandoned; nothing else is affected.
 */
#ifndef SPOOR_SYMBOLIZE_SYMBOL_WORKER_H
#define SPOOR_SYMBOLIZE_SYMBOL_WORKER_H

#include <stdbool.h>
#include <stdint.h>

struct box;
struct name_answer;
struct symbol_worker;
struct name_question;

/* `box` and `symbol_paths` are borrowed until symbol_worker_free(). */
int symbol_worker_new(const struct box *box, const char *const *symbol_paths,
	struct symbol_worker **ret_desk);

/* Reads the kernel's symbols in the caller's thread. Called before the first question. */
void symbol_worker_open_kernel(struct symbol_worker *worker);

/*
 * Takes ownership of the question, which is on the heap. It is sent with the next symbol_worker_take()
 * or symbol_worker_wait().
 */
void symbol_worker_ask(struct symbol_worker *worker, struct name_question *question);

/* The next answer, owned by the caller until symbol_worker_give_back(); NULL if there is none yet. */
struct name_answer *symbol_worker_take(struct symbol_worker *worker);

/* Returns an answer, which its allocating thread then frees. `answer` may be NULL. */
void symbol_worker_give_back(struct symbol_worker *worker, struct name_answer *answer);

/* Number of questions without an answer. */
uint32_t symbol_worker_open_count(const struct symbol_worker *worker);

/* Waits until every question has its answer (true), at most until `until_ns` (CLOCK_MONOTONIC). */
bool symbol_worker_wait(struct symbol_worker *worker, uint64_t until_ns);

/*
 * Gives the worker thread ordinary priority. Without the right to raise it (CAP_SYS_NICE), a new
 * thread replaces it within one second, and repeats the current question if the old thread only
 * waited for a CPU. A thread that hangs in reading a file is abandoned, and its question stays
 * unanswered.
 */
void symbol_worker_hurry(struct symbol_worker *worker);

/*
 * Drops most symbol tables, to save memory; later questions read them again. The worker thread does
 * it before its next question.
 */
void symbol_worker_make_room(struct symbol_worker *worker);

/* Memory of the symbol tables. */
uint64_t symbol_worker_size_bytes(const struct symbol_worker *worker);

/* `worker` may be NULL. */
void symbol_worker_free(struct symbol_worker *worker);

/* For tests: behaves as without the right to raise a priority. */
void symbol_worker_forbid_raise(struct symbol_worker *worker);

#endif
