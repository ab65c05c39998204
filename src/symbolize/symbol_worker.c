/*
 * See symbol_worker.h. The two threads pass pointers through two pipes; the thread that has read a
 * pointer owns the object. There is no lock, because a thread at idle priority could be preempted
 * for long while it holds one. Questions and answers that the worker holds are in slots that both
 * threads can empty atomically, so that a worker that gets no CPU time does not keep them. At most
 * IN_FLIGHT_MAX questions are sent at a time, so that neither pipe is ever full; the others wait in
 * a list of the caller's thread.
 *
 * The tables belong to the running worker. When it leaves, they pass to the next worker.
 */
#include "symbolize/symbol_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "machine/cpu_clock.h"
#include "machine/proc.h"
#include "symbolize/name_tables.h"

#define IN_FLIGHT_MAX 250u /* pointers; the smallest pipe holds one page */
/* pointers written or read at a time, so that a cheap answer does not cost four system calls */
#define BATCH_MAX 64u
/* an answer waits at most this long to be sent with others */
#define BATCH_NS         UINT64_C(2000000)
#define LEAVE_BOUND_NS   UINT64_C(1000000000)
#define REPLACE_BOUND_NS UINT64_C(20000000) /* during a recording, whose rings must be read */
#define LOOK_NS          1000000L
/* a question that has waited longer is answered at ordinary priority */
#define WAIT_MAX_NS UINT64_C(500000000)

/* Old kernel headers have no <linux/ioprio.h>; these are its values. */
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_CLASS_SHIFT 13
#define IOPRIO_IDLE        (3 << IOPRIO_CLASS_SHIFT)
#define IOPRIO_NONE        0

enum clerk_state {
	CLERK_SERVES,
	CLERK_LEFT,      /* touches nothing any more; the worker frees it */
	CLERK_ABANDONED, /* no worker uses it; it frees itself */
};

/* One worker thread and the data that it shares with the worker. */
struct clerk {
	int questions[2]; /* pipes of pointers, non-blocking */
	int answers[2];
	atomic_int state;                /* enum clerk_state */
	atomic_int tid;                  /* 0: has not started */
	atomic_bool leave;               /* it must leave after the current question */
	atomic_bool room_wanted;         /* it must drop most of its tables */
	atomic_uint_fast64_t size_bytes; /* of the tables */
	struct name_tables *tables;      /* owned by the thread until it has left */
	bool idle;                       /* starts at idle priority */
	bool replaced; /* has replaced a thread whose priority could not be raised */
	/*
	 * hand: questions read but not started. done: answers not sent. The thread that takes an
	 * entry out owns it; the worker does so when it abandons the worker.
	 */
	_Atomic(struct name_question *) hand[BATCH_MAX];
	_Atomic(struct name_answer *) done[BATCH_MAX];
	/* the question being answered; not sent back while this points to it */
	_Atomic(struct name_question *) current;
};

struct symbol_worker {
	struct name_question *first; /* list of questions not sent yet */
	struct name_question **last;
	struct name_answer *ready;
	struct name_answer **ready_last;
	struct name_answer *spent;
	struct name_tables *tables; /* while no worker uses them */
	/* empty tables, used after a worker was abandoned with its own */
	struct name_tables *spare;
	struct clerk *clerk; /* NULL: none now */
	uint32_t queued;
	uint32_t in_flight;
	/* Questions are answered in order, so one time stamp detects one that waits too long. */
	uint64_t asked; /* number of questions so far */
	uint64_t answered;
	uint64_t watched;        /* number of a question; 0: none */
	uint64_t watched_ns;     /* the latest time at which it was sent */
	uint64_t watched_cpu_ns; /* the thread's CPU time then */
	/* borrowed, as is symbol_paths: for the tables of a replacement thread */
	const struct box *box;
	const char *const *symbol_paths;
	/* the thread has ordinary priority until all questions are answered */
	bool raised;
	bool hurried;
	bool raise_forbidden;
};

/*
 * Reads up to `max` pointers and returns their number. Writes of up to PIPE_BUF bytes are atomic,
 * so no pointer is ever split.
 */
static size_t read_pointers(int fd, void *ret_pointers, size_t max)
{
	ssize_t got;

	do
		got = read(fd, ret_pointers, max * sizeof(void *));
	while (got < 0 && errno == EINTR);
	return got > 0 ? (size_t)got / sizeof(void *) : 0;
}

static bool write_pointers(int fd, const void *pointers, size_t count)
{
	ssize_t put;

	do
		put = write(fd, pointers, count * sizeof(void *));
	while (put < 0 && errno == EINTR);
	return put == (ssize_t)(count * sizeof(void *));
}

/* ---- the worker thread ---- */

/* Frees a worker that no thread uses any more, with the unread contents of its pipes. */
static void free_clerk(struct clerk *clerk)
{
	struct name_question *question;
	struct name_answer *answer;

	while (clerk->questions[0] >= 0 && read_pointers(clerk->questions[0], &question, 1))
		name_question_free(question);
	while (clerk->answers[0] >= 0 && read_pointers(clerk->answers[0], &answer, 1))
		name_answer_free(answer);
	for (int i = 0; i < 2; i++) {
		closep(&clerk->questions[i]);
		closep(&clerk->answers[i]);
	}
	name_tables_free(clerk->tables);
	free(clerk);
}

/*
 * Allocates the answer. Returns NULL without memory; the question is freed then. Also frees the
 * answers that come back with the question, because this thread allocated them.
 */
static struct name_answer *new_answer(struct name_question *question)
{
	struct name_answer *answer = calloc(1, sizeof(*answer));

	while (question->spent) {
		struct name_answer *spent = question->spent;
		question->spent = spent->next;
		name_answer_free(spent);
	}
	if (!answer)
		name_question_free(question);
	return answer;
}

/* Fills in the answer and attaches the question, which its allocating thread frees. */
static void look_up(struct name_tables *tables, struct name_question *question,
	struct name_answer *answer)
{
	name_tables_answer(tables, question, answer);
	answer->question = question;
}

/*
 * Uses only CPU time and I/O that no other thread wants. Each call may be forbidden; then the
 * thread keeps ordinary priority.
 */
static void become_idle(void)
{
	(void)sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

/* Sends the finished answers. The pipe has room for them, see IN_FLIGHT_MAX. */
static void send_answers(struct clerk *clerk)
{
	struct name_answer *answers[BATCH_MAX];
	size_t count = 0;

	for (size_t i = 0; i < BATCH_MAX; i++) {
		struct name_answer *answer = atomic_exchange(&clerk->done[i], NULL);
		if (answer)
			answers[count++] = answer;
	}
	if (count && !write_pointers(clerk->answers[1], answers, count))
		for (size_t i = 0; i < count; i++)
			name_answer_free(answers[i]);
}

static void serve(struct clerk *clerk, struct name_question *const *questions, size_t count)
{
	uint64_t begin_ns = clock_monotonic_ns();
	size_t rest = 0;

	if (atomic_exchange(&clerk->room_wanted, false))
		name_tables_make_room(clerk->tables);
	for (size_t i = 0; i < count; i++)
		atomic_store(&clerk->hand[i], questions[i]); /* NULL: only wakes the thread */
	for (size_t i = 0; i < count && !atomic_load(&clerk->leave); i++) {
		struct name_question *question = atomic_exchange(&clerk->hand[i], NULL);
		struct name_answer *answer = question ? new_answer(question) : NULL;
		if (!answer)
			continue;
		atomic_store(&clerk->current, question);
		look_up(clerk->tables, question, answer);
		atomic_store(&clerk->current, NULL);
		atomic_store(&clerk->done[i], answer);
		if (clock_monotonic_ns() < begin_ns + BATCH_NS)
			continue;
		send_answers(clerk);
		begin_ns = clock_monotonic_ns();
	}
	atomic_store(&clerk->size_bytes, name_tables_size_bytes(clerk->tables));
	send_answers(clerk);
	struct name_question *left[BATCH_MAX];

	for (size_t i = 0; i < count; i++) {
		struct name_question *question = atomic_exchange(&clerk->hand[i], NULL);
		if (question)
			left[rest++] = question;
	}
	if (rest)
		/* there is room: they were just read from this pipe */
		(void)write_pointers(clerk->questions[1], left, rest);
}

#if defined(__SANITIZE_ADDRESS__)
/*
 * An abandoned thread may still run when the program ends. The search for leaks cannot always stop
 * it, and would then take its memory for leaked.
 */
static atomic_int abandoned_count;

/* exported: the sanitizer's library looks it up by name */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return atomic_load(&abandoned_count) > 0;
}

static void count_abandoned(int change)
{
	atomic_fetch_add(&abandoned_count, change);
}
#else
static void count_abandoned(int change)
{
	(void)change;
}
#endif

static void *clerk_main(void *argument)
{
	struct clerk *clerk = argument;
	struct name_question *questions[BATCH_MAX];

	if (clerk->idle)
		become_idle();
	atomic_store(&clerk->tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&clerk->leave)) {
		size_t count = read_pointers(clerk->questions[0], questions, BATCH_MAX);
		if (count)
			serve(clerk, questions, count);
		else
			/* after a wake-up without data the loop polls again */
			(void)poll_one(clerk->questions[0], POLLIN, -1);
	}
	if (atomic_exchange(&clerk->state, CLERK_LEFT) == CLERK_ABANDONED) {
		free_clerk(clerk);
		count_abandoned(-1);
	}
	return NULL;
}

/* ---- the worker, in the caller's thread ---- */

static void free_list(struct symbol_worker *worker)
{
	while (worker->first) {
		struct name_question *question = worker->first;
		worker->first = question->next;
		name_question_free(question);
	}
	worker->last = &worker->first;
	worker->queued = 0;
}

static void queue(struct symbol_worker *worker, struct name_question *question)
{
	question->next = NULL;
	*worker->last = question;
	worker->last = &question->next;
	worker->queued++;
}

static void put_ready(struct symbol_worker *worker, struct name_answer *answer)
{
	worker->answered++;
	if (!answer) /* there was no memory for it */
		return;
	answer->next = NULL;
	*worker->ready_last = answer;
	worker->ready_last = &answer->next;
}

static void take_ready(struct symbol_worker *worker, const struct clerk *clerk)
{
	struct name_answer *answers[BATCH_MAX];
	size_t count;

	while (worker->in_flight &&
		(count = read_pointers(clerk->answers[0], answers, BATCH_MAX))) {
		for (size_t i = 0; i < count; i++)
			put_ready(worker, answers[i]);
		worker->in_flight -= (uint32_t)count;
	}
}

/* Moves the questions that the worker has not read back to the list. */
static void take_back(struct symbol_worker *worker, const struct clerk *clerk)
{
	struct name_question *question;

	while (read_pointers(clerk->questions[0], &question, 1)) {
		if (!question)
			continue;
		worker->in_flight--;
		queue(worker, question);
	}
}

/* Reads the answers, and sends as many questions as the pipe has room for. */
static void transfer(struct symbol_worker *worker)
{
	struct clerk *clerk = worker->clerk;

	if (!clerk)
		return;
	take_ready(worker, clerk);
	while (worker->first && worker->in_flight < IN_FLIGHT_MAX) {
		struct name_question *batch[BATCH_MAX];
		struct name_question *question = worker->first;
		size_t count = 0;
		for (; question && count < BATCH_MAX && worker->in_flight + count < IN_FLIGHT_MAX;
			question = question->next)
			batch[count++] = question;
		if (!batch[0]->spent) {
			batch[0]->spent = worker->spent;
			worker->spent = NULL;
		}
		if (!write_pointers(clerk->questions[1], batch, count))
			break; /* they stay in the list */
		worker->first = question;
		if (!worker->first)
			worker->last = &worker->first;
		worker->queued -= (uint32_t)count;
		worker->in_flight += (uint32_t)count;
	}
}

static struct clerk *new_clerk(struct symbol_worker *worker)
{
	struct clerk *clerk = calloc(1, sizeof(*clerk));

	if (!clerk)
		return NULL;
	clerk->questions[0] = clerk->questions[1] = clerk->answers[0] = clerk->answers[1] = -1;
	if (pipe2(clerk->questions, O_CLOEXEC | O_NONBLOCK) < 0 ||
		pipe2(clerk->answers, O_CLOEXEC | O_NONBLOCK) < 0) {
		free_clerk(clerk);
		return NULL;
	}
	clerk->idle = !worker->hurried && !worker->raised;
	clerk->replaced = worker->raised;
	clerk->tables = worker->tables;
	return clerk;
}

/* Starts a worker thread. If no thread can be created, worker->clerk stays NULL. */
static void employ(struct symbol_worker *worker)
{
	struct clerk *clerk = worker->tables ? new_clerk(worker) : NULL;
	pthread_attr_t detached;
	pthread_t thread;
	sigset_t all;
	sigset_t before;

	if (!clerk)
		return;
	/* Signals are handled by the caller's thread. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	(void)pthread_attr_init(&detached);
	(void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	int error = pthread_create(&thread, &detached, clerk_main, clerk);

	(void)pthread_attr_destroy(&detached);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		clerk->tables = NULL;
		free_clerk(clerk);
		return;
	}
	worker->tables = NULL;
	worker->clerk = clerk;
}

/* True if the thread only waits for a CPU. One that hangs in reading a file would hang again. */
static bool is_starved(const struct clerk *clerk)
{
	struct proc_process thread = { 0 };
	char path[64];
	char text[512];

	text_set(path, "/proc/self/task/%d/stat", atomic_load(&clerk->tid));
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return got > 0 && proc_parse_stat(text, (size_t)got, &thread) && thread.state == 'R';
}

/* A copy of the question that the thread is answering. NULL if there is none, or without memory. */
static struct name_question *current_again(struct clerk *clerk)
{
	const struct name_question *current = atomic_load(&clerk->current);

	return current ? name_question_copy(current) : NULL;
}

/* Takes the answers and the questions out of the worker's slots. */
static void take_out_of_hand(struct symbol_worker *worker, struct clerk *clerk)
{
	for (size_t i = 0; i < BATCH_MAX; i++) {
		struct name_answer *answer = atomic_exchange(&clerk->done[i], NULL);
		struct name_question *question = atomic_exchange(&clerk->hand[i], NULL);
		if (answer)
			put_ready(worker, answer);
		if (question)
			queue(worker, question);
	}
}

/*
 * Waits at most `bound_ns` for the thread to leave. If it does not, it is abandoned; its current
 * question is queued again if the thread only waited for a CPU.
 */
static void dismiss(struct symbol_worker *worker, uint64_t bound_ns)
{
	struct name_question *const wake = NULL;
	struct clerk *clerk = worker->clerk;
	uint64_t until_ns = clock_monotonic_ns() + bound_ns;

	if (!clerk)
		return;
	atomic_store(&clerk->leave, true);
	/* if the pipe is full, the thread is awake */
	(void)write_pointers(clerk->questions[1], &wake, 1);
	while (atomic_load(&clerk->state) == CLERK_SERVES && clock_monotonic_ns() < until_ns)
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	struct name_question *again =
		atomic_load(&clerk->state) == CLERK_SERVES && is_starved(clerk)
			? current_again(clerk)
			: NULL;

	/* Before the worker is abandoned; the worker does not read its later answers. */
	take_ready(worker, clerk);
	take_back(worker, clerk);
	take_out_of_hand(worker, clerk);
	take_ready(worker, clerk); /* sent since the first call */
	/* take_back() may have removed the first wake-up */
	(void)write_pointers(clerk->questions[1], &wake, 1);
	worker->clerk = NULL;
	count_abandoned(1);
	if (atomic_exchange(&clerk->state, CLERK_ABANDONED) == CLERK_LEFT) {
		count_abandoned(-1);
		take_ready(worker, clerk);
		take_back(worker, clerk);
		worker->tables = TAKE(clerk->tables);
		free_clerk(clerk);
		name_question_free(TAKE(again)); /* the thread has answered it */
	} else {
		worker->tables = worker->spare;
		worker->spare = NULL;
	}
	worker->in_flight = 0;
	if (again)
		queue(worker, again);
}

static void answer_here(struct symbol_worker *worker, struct name_question *question)
{
	struct name_answer *answer = new_answer(question);

	if (answer)
		look_up(worker->tables, question, answer);
	put_ready(worker, answer);
}

static bool raise_clerk(struct symbol_worker *worker)
{
	int tid = atomic_load(&worker->clerk->tid);

	if (!tid || worker->raise_forbidden ||
		sched_setscheduler(tid, SCHED_OTHER, &(struct sched_param){ 0 }) < 0)
		return false;
	/* if it fails, lookups are slower */
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, IOPRIO_NONE);
	return true;
}

/* The thread's CPU time; 0 if the kernel does not account it. */
static uint64_t clerk_cpu_ns(const struct clerk *clerk)
{
	char path[64];
	char text[128];
	uint64_t cpu_ns = 0;

	text_set(path, "/proc/self/task/%d/schedstat", atomic_load(&clerk->tid));
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return got > 0 && cpu_clock_parse_schedstat(text, (size_t)got, &cpu_ns) ? cpu_ns : 0;
}

/*
 * Without the right to raise the worker's priority, a new thread replaces it if it waits for a CPU
 * most of the time. The new thread keeps ordinary priority, because it could not leave idle
 * priority again.
 */
static void replace(struct symbol_worker *worker, uint64_t waited_ns)
{
	/* Without a thread id it has not run at all. */
	if (atomic_load(&worker->clerk->tid) &&
		(clerk_cpu_ns(worker->clerk) - worker->watched_cpu_ns >= waited_ns / 2 ||
			!is_starved(worker->clerk)))
		return;
	if (!worker->spare)
		worker->spare = name_tables_new(worker->box, worker->symbol_paths);
	if (!worker->spare)
		return; /* no memory: names are resolved late */
	worker->raised = true;
	dismiss(worker, REPLACE_BOUND_NS);
	employ(worker);
	transfer(worker);
}

/* Returns the thread to idle priority when all questions are answered. */
static void lower(struct symbol_worker *worker)
{
	int tid = atomic_load(&worker->clerk->tid);

	if (worker->raise_forbidden || worker->clerk->replaced)
		return;
	worker->raised = false;
	(void)sched_setscheduler(tid, SCHED_IDLE, &(struct sched_param){ 0 });
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, IOPRIO_IDLE);
}

/* Raises the thread's priority when a question waited WAIT_MAX_NS; lowers it after all answers. */
static void watch(struct symbol_worker *worker)
{
	uint64_t now = clock_monotonic_ns();

	if (!symbol_worker_open_count(worker)) {
		worker->answered = worker->asked; /* includes questions whose answer was lost */
		worker->watched = 0;
		if (worker->raised && !worker->hurried)
			lower(worker);
		return;
	}
	if (!worker->watched || worker->answered >= worker->watched) {
		worker->watched = worker->asked;
		worker->watched_ns = now;
		worker->watched_cpu_ns = clerk_cpu_ns(worker->clerk);
		return;
	}
	if (worker->raised || worker->hurried || now < worker->watched_ns + WAIT_MAX_NS)
		return;
	worker->raised = raise_clerk(worker);
	if (!worker->raised)
		replace(worker, now - worker->watched_ns);
}

static void exchange(struct symbol_worker *worker)
{
	transfer(worker);
	if (worker->clerk)
		watch(worker);
}

int symbol_worker_new(const struct box *box, const char *const *symbol_paths,
	struct symbol_worker **ret_desk)
{
	struct symbol_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return -ENOMEM;
	worker->box = box;
	worker->symbol_paths = symbol_paths;
	worker->last = &worker->first;
	worker->ready_last = &worker->ready;
	worker->tables = name_tables_new(box, symbol_paths);
	worker->spare = name_tables_new(box, symbol_paths);
	if (!worker->tables || !worker->spare) {
		symbol_worker_free(worker);
		return -ENOMEM;
	}
	*ret_desk = worker;
	return 0;
}

void symbol_worker_open_kernel(struct symbol_worker *worker)
{
	if (worker->tables)
		name_tables_open_kernel(worker->tables);
}

void symbol_worker_ask(struct symbol_worker *worker, struct name_question *question)
{
	worker->asked++;
	if (!worker->clerk)
		employ(worker);
	if (worker->clerk)
		queue(worker, question);
	else if (worker->tables)
		/* no thread can be created: answer in the caller's thread */
		answer_here(worker, question);
	else
		name_question_free(question);
}

struct name_answer *symbol_worker_take(struct symbol_worker *worker)
{
	if (!worker->ready)
		exchange(worker);
	struct name_answer *answer = worker->ready;

	if (answer) {
		worker->ready = answer->next;
		if (!worker->ready)
			worker->ready_last = &worker->ready;
	}
	return answer;
}

void symbol_worker_give_back(struct symbol_worker *worker, struct name_answer *answer)
{
	if (!answer)
		return;
	name_question_free(TAKE(answer->question));
	answer->next = worker->spent;
	worker->spent = answer;
}

uint32_t symbol_worker_open_count(const struct symbol_worker *worker)
{
	return worker->queued + worker->in_flight;
}

bool symbol_worker_wait(struct symbol_worker *worker, uint64_t until_ns)
{
	for (;;) {
		exchange(worker);
		uint64_t now = clock_monotonic_ns();
		if (!symbol_worker_open_count(worker) || !worker->clerk || now >= until_ns)
			break;
		/* the loop above checks the cause */
		(void)poll_one(worker->clerk->answers[0], POLLIN, clock_left_ms(until_ns, now));
	}
	return !symbol_worker_open_count(worker);
}

void symbol_worker_hurry(struct symbol_worker *worker)
{
	if (worker->hurried || !worker->clerk || !symbol_worker_open_count(worker))
		return;
	worker->hurried = true;
	if (raise_clerk(worker))
		return;
	dismiss(worker, LEAVE_BOUND_NS);
	employ(worker);
	exchange(worker);
}

void symbol_worker_make_room(struct symbol_worker *worker)
{
	struct name_question *nothing = NULL;

	if (!worker->clerk) {
		if (worker->tables)
			name_tables_make_room(worker->tables);
		return;
	}
	atomic_store(&worker->clerk->room_wanted, true);
	/* if the pipe is full, the thread is awake */
	(void)write_pointers(worker->clerk->questions[1], &nothing, 1);
}

uint64_t symbol_worker_size_bytes(const struct symbol_worker *worker)
{
	if (worker->clerk)
		return atomic_load(&worker->clerk->size_bytes);
	return worker->tables ? name_tables_size_bytes(worker->tables) : 0;
}

void symbol_worker_free(struct symbol_worker *worker)
{
	if (!worker)
		return;
	if (worker->clerk)
		/* so that it leaves within LEAVE_BOUND_NS; otherwise it is abandoned */
		(void)raise_clerk(worker);
	dismiss(worker, LEAVE_BOUND_NS);
	free_list(worker);
	for (struct name_answer *answer; (answer = symbol_worker_take(worker));)
		symbol_worker_give_back(worker, answer);
	while (worker->spent) {
		struct name_answer *answer = worker->spent;
		worker->spent = answer->next;
		name_answer_free(answer);
	}
	name_tables_free(worker->tables);
	name_tables_free(worker->spare);
	free(worker);
}

void symbol_worker_forbid_raise(struct symbol_worker *worker)
{
	worker->raise_forbidden = true;
}
