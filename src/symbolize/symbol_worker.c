/*
 * See symbol_worker.h. The two threads share a ring of slots. A question stays in its slot until the
 * answer is in it, whatever happens to the thread meanwhile, and the slot's state says which thread may
 * touch its contents:
 *
 *   EMPTY      caller   ask       -> ASKED
 *   ASKED      thread   begins    -> WORKED     caller  takes it back -> EMPTY
 *   WORKED     thread   finishes  -> ANSWERED   caller  withdraws it  -> WITHDRAWN
 *   ANSWERED   caller   takes it  -> EMPTY
 *   WITHDRAWN  thread   frees question and answer
 *
 * Each change is one atomic operation. There is no lock, because a thread at idle priority could be
 * preempted for long while it holds one. The questions that find no free slot wait in a list of the
 * caller's thread.
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
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "machine/cpu_clock.h"
#include "machine/proc.h"
#include "symbolize/name_tables.h"

#define SLOT_COUNT 256u /* a power of two */
/* an answer waits at most this long until the caller is woken */
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

enum worker_thread_state {
	CLERK_SERVES,
	CLERK_LEFT,      /* touches nothing any more; the worker frees it */
	CLERK_ABANDONED, /* no worker uses it; it frees itself */
};

enum slot_state { SLOT_EMPTY, SLOT_ASKED, SLOT_WORKED, SLOT_ANSWERED, SLOT_WITHDRAWN };

struct worker_slot {
	atomic_int state; /* enum slot_state */
	struct name_question *question;
	struct name_answer *answer; /* NULL in ANSWERED: there was no memory for it */
	struct name_answer
		*spent; /* list of answers on their way back to the thread that frees them */
};

/* One worker thread and the data that it shares with the worker. */
struct worker_thread {
	struct worker_slot slots[SLOT_COUNT];
	uint32_t next;                   /* number of the next question; written by the thread */
	int asked_fd;                    /* eventfd, non-blocking: there are questions */
	int done_fd;                     /* eventfd, non-blocking: there are answers */
	atomic_int state;                /* enum worker_thread_state */
	atomic_int tid;                  /* 0: has not started */
	atomic_bool leave;               /* it must leave after the current question */
	atomic_bool room_wanted;         /* it must drop most of its tables */
	atomic_uint_fast64_t size_bytes; /* of the tables */
	struct name_tables *tables;      /* owned by the thread until it has left */
	bool idle;                       /* starts at idle priority */
	bool replaced; /* has replaced a thread whose priority could not be raised */
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
	struct worker_thread *worker_thread; /* NULL: none now */
	uint32_t queued;
	/* numbers of questions, whose slots are their remainders: those from `taken` to `sent` are in flight */
	uint32_t sent;
	uint32_t taken;
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

static struct worker_slot *slot_of(struct worker_thread *worker_thread, uint32_t number)
{
	return &worker_thread->slots[number & (SLOT_COUNT - 1)];
}

static bool slot_change(struct worker_slot *slot, int from, int to)
{
	return atomic_compare_exchange_strong(&slot->state, &from, to);
}

/* Makes the descriptor readable; a full counter is readable already. */
static void notify(int fd)
{
	(void)!write(fd, &(uint64_t){ 1 }, sizeof(uint64_t));
}

/* Before the slots are looked at: a later change makes it readable again. */
static void take_notice(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
}

static void free_answers(struct name_answer *first)
{
	while (first) {
		struct name_answer *answer = first;
		first = answer->next;
		name_answer_free(answer);
	}
}

/* ---- the worker thread ---- */

/* Frees a worker that no thread uses any more; the slots have nothing but answers to be freed. */
static void free_worker_thread(struct worker_thread *worker_thread)
{
	for (uint32_t i = 0; i < SLOT_COUNT; i++)
		free_answers(worker_thread->slots[i].spent);
	closep(&worker_thread->asked_fd);
	closep(&worker_thread->done_fd);
	name_tables_free(worker_thread->tables);
	free(worker_thread);
}

/* The answer, to which the question belongs from now on. NULL without memory. */
static struct name_answer *look_up(struct name_tables *tables, struct name_question *question)
{
	struct name_answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	name_tables_answer(tables, question, answer);
	answer->question = question;
	return answer;
}

static void free_both(struct name_question *question, struct name_answer *answer)
{
	if (answer)
		answer->question = NULL;
	name_answer_free(answer);
	name_question_free(question);
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

/* Answers the next question; false: there is none. */
static bool answer_next(struct worker_thread *worker_thread)
{
	struct worker_slot *slot = slot_of(worker_thread, worker_thread->next);

	if (!slot_change(slot, SLOT_ASKED, SLOT_WORKED))
		return false;
	worker_thread->next++;
	free_answers(TAKE(slot->spent)); /* this thread allocated them */
	slot->answer = look_up(worker_thread->tables, slot->question);
	if (!slot_change(slot, SLOT_WORKED, SLOT_ANSWERED))
		free_both(slot->question, slot->answer);
	return true;
}

static void serve(struct worker_thread *worker_thread)
{
	uint64_t begin_ns = clock_monotonic_ns();
	bool silent = false; /* there are answers that the caller was not woken for */

	if (atomic_exchange(&worker_thread->room_wanted, false))
		name_tables_make_room(worker_thread->tables);
	while (!atomic_load(&worker_thread->leave) && answer_next(worker_thread)) {
		silent = clock_monotonic_ns() < begin_ns + BATCH_NS;
		if (silent)
			continue;
		notify(worker_thread->done_fd);
		begin_ns = clock_monotonic_ns();
	}
	atomic_store(&worker_thread->size_bytes, name_tables_size_bytes(worker_thread->tables));
	if (silent)
		notify(worker_thread->done_fd);
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

static void *worker_thread_main(void *argument)
{
	struct worker_thread *worker_thread = argument;

	if (worker_thread->idle)
		become_idle();
	atomic_store(&worker_thread->tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&worker_thread->leave)) {
		take_notice(worker_thread->asked_fd);
		serve(worker_thread);
		/* after a wake-up without questions the loop polls again */
		if (!atomic_load(&worker_thread->leave))
			(void)poll_one(worker_thread->asked_fd, POLLIN, -1);
	}
	if (atomic_exchange(&worker_thread->state, CLERK_LEFT) == CLERK_ABANDONED) {
		free_worker_thread(worker_thread);
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

/* Takes what the thread left in an answered slot. */
static void take_slot(struct symbol_worker *worker, struct worker_slot *slot)
{
	if (!slot->answer)
		name_question_free(slot->question);
	put_ready(worker, TAKE(slot->answer));
	slot->question = NULL;
	atomic_store(&slot->state, SLOT_EMPTY);
}

/* Takes the answers, and puts as many questions into slots as are free. */
static void transfer(struct symbol_worker *worker)
{
	struct worker_thread *worker_thread = worker->worker_thread;
	uint32_t before = worker->sent;

	if (!worker_thread)
		return;
	if (worker->taken != worker->sent)
		take_notice(worker_thread->done_fd);
	for (; worker->taken != worker->sent; worker->taken++) {
		struct worker_slot *slot = slot_of(worker_thread, worker->taken);
		if (atomic_load(&slot->state) != SLOT_ANSWERED)
			break;
		take_slot(worker, slot);
	}
	for (; worker->first && worker->sent - worker->taken < SLOT_COUNT; worker->sent++) {
		struct worker_slot *slot = slot_of(worker_thread, worker->sent);
		slot->question = worker->first;
		worker->first = slot->question->next;
		if (!worker->first)
			worker->last = &worker->first;
		worker->queued--;
		slot->spent = TAKE(worker->spent);
		atomic_store(&slot->state, SLOT_ASKED);
	}
	if (worker->sent != before)
		notify(worker_thread->asked_fd);
}

static struct worker_thread *new_worker_thread(struct symbol_worker *worker)
{
	struct worker_thread *worker_thread = calloc(1, sizeof(*worker_thread));

	if (!worker_thread)
		return NULL;
	worker_thread->asked_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	worker_thread->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (worker_thread->asked_fd < 0 || worker_thread->done_fd < 0) {
		free_worker_thread(worker_thread);
		return NULL;
	}
	worker_thread->idle = !worker->hurried && !worker->raised;
	worker_thread->replaced = worker->raised;
	worker_thread->tables = worker->tables;
	return worker_thread;
}

/* Starts a worker thread. If no thread can be created, worker->worker_thread stays NULL. */
static void employ(struct symbol_worker *worker)
{
	struct worker_thread *worker_thread = worker->tables ? new_worker_thread(worker) : NULL;
	pthread_attr_t detached;
	pthread_t thread;
	sigset_t all;
	sigset_t before;

	if (!worker_thread)
		return;
	/* Signals are handled by the caller's thread. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	(void)pthread_attr_init(&detached);
	(void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
	int error = pthread_create(&thread, &detached, worker_thread_main, worker_thread);

	(void)pthread_attr_destroy(&detached);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		worker_thread->tables = NULL;
		free_worker_thread(worker_thread);
		return;
	}
	worker->tables = NULL;
	worker->worker_thread = worker_thread;
	worker->sent = worker->taken = 0;
}

/* True if the thread only waits for a CPU. One that hangs in reading a file would hang again. */
static bool is_starved(const struct worker_thread *worker_thread)
{
	struct proc_process thread = { 0 };
	char path[64];
	char text[512];

	text_set(path, "/proc/self/task/%d/stat", atomic_load(&worker_thread->tid));
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return got > 0 && proc_parse_stat(text, (size_t)got, &thread) && thread.state == 'R';
}

/*
 * Empties a slot of a thread that is to be abandoned. The question that it is answering is withdrawn, and with
 * `again` asked once more.
 */
static void empty_slot(struct symbol_worker *worker, struct worker_slot *slot, bool again)
{
	if (slot_change(slot, SLOT_ASKED, SLOT_EMPTY)) {
		queue(worker, TAKE(slot->question));
		return;
	}
	/* Until it is withdrawn, the thread only reads the question and does not free it. */
	struct name_question *copy = again && atomic_load(&slot->state) == SLOT_WORKED
					     ? name_question_copy(slot->question)
					     : NULL;
	if (!slot_change(slot, SLOT_WORKED, SLOT_WITHDRAWN)) {
		name_question_free(copy); /* the thread has answered it */
		take_slot(worker, slot);
	} else if (copy) {
		queue(worker, copy);
	}
}

/*
 * Waits at most `bound_ns` for the thread to leave. If it does not, it is abandoned; its current
 * question is queued again if the thread only waited for a CPU.
 */
static void dismiss(struct symbol_worker *worker, uint64_t bound_ns)
{
	struct worker_thread *worker_thread = worker->worker_thread;
	uint64_t until_ns = clock_monotonic_ns() + bound_ns;

	if (!worker_thread)
		return;
	atomic_store(&worker_thread->leave, true);
	notify(worker_thread->asked_fd);
	while (atomic_load(&worker_thread->state) == CLERK_SERVES &&
		clock_monotonic_ns() < until_ns)
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	bool starved =
		atomic_load(&worker_thread->state) == CLERK_SERVES && is_starved(worker_thread);

	for (; worker->taken != worker->sent; worker->taken++)
		empty_slot(worker, slot_of(worker_thread, worker->taken), starved);
	worker->worker_thread = NULL;
	count_abandoned(1);
	if (atomic_exchange(&worker_thread->state, CLERK_ABANDONED) == CLERK_LEFT) {
		count_abandoned(-1);
		worker->tables = TAKE(worker_thread->tables);
		free_worker_thread(worker_thread);
	} else {
		worker->tables = worker->spare;
		worker->spare = NULL;
	}
}

static void answer_here(struct symbol_worker *worker, struct name_question *question)
{
	struct name_answer *answer = look_up(worker->tables, question);

	if (!answer)
		name_question_free(question);
	put_ready(worker, answer);
}

static bool start_worker_thread(struct symbol_worker *worker)
{
	int tid = atomic_load(&worker->worker_thread->tid);

	if (!tid || worker->raise_forbidden ||
		sched_setscheduler(tid, SCHED_OTHER, &(struct sched_param){ 0 }) < 0)
		return false;
	/* if it fails, lookups are slower */
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, IOPRIO_NONE);
	return true;
}

/* The thread's CPU time; 0 if the kernel does not account it. */
static uint64_t thread_cpu_ns(const struct worker_thread *worker_thread)
{
	char path[64];
	char text[128];
	uint64_t cpu_ns = 0;

	text_set(path, "/proc/self/task/%d/schedstat", atomic_load(&worker_thread->tid));
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return got > 0 && cpu_clock_parse_schedstat(text, (size_t)got, &cpu_ns) ? cpu_ns : 0;
}

/* Makes the tables of a thread that takes over from one that may keep its own. False: no memory. */
static bool has_spare(struct symbol_worker *worker)
{
	if (!worker->spare)
		worker->spare = name_tables_new(worker->box, worker->symbol_paths);
	return worker->spare != NULL;
}

/*
 * Without the right to raise the worker's priority, a new thread replaces it if it waits for a CPU
 * most of the time. The new thread keeps ordinary priority, because it could not leave idle
 * priority again.
 */
static void replace(struct symbol_worker *worker, uint64_t waited_ns)
{
	/* Without a thread id it has not run at all. */
	if (atomic_load(&worker->worker_thread->tid) &&
		(thread_cpu_ns(worker->worker_thread) - worker->watched_cpu_ns >= waited_ns / 2 ||
			!is_starved(worker->worker_thread)))
		return;
	if (!has_spare(worker))
		return; /* names are resolved late */
	worker->raised = true;
	dismiss(worker, REPLACE_BOUND_NS);
	employ(worker);
	transfer(worker);
}

/* Returns the thread to idle priority when all questions are answered. */
static void lower(struct symbol_worker *worker)
{
	int tid = atomic_load(&worker->worker_thread->tid);

	if (worker->raise_forbidden || worker->worker_thread->replaced)
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
		worker->answered = worker->asked; /* includes those that a hanging thread had */
		worker->watched = 0;
		if (worker->raised && !worker->hurried)
			lower(worker);
		return;
	}
	if (!worker->watched || worker->answered >= worker->watched) {
		worker->watched = worker->asked;
		worker->watched_ns = now;
		worker->watched_cpu_ns = thread_cpu_ns(worker->worker_thread);
		return;
	}
	if (worker->raised || worker->hurried || now < worker->watched_ns + WAIT_MAX_NS)
		return;
	worker->raised = start_worker_thread(worker);
	if (!worker->raised)
		replace(worker, now - worker->watched_ns);
}

static void exchange(struct symbol_worker *worker)
{
	transfer(worker);
	if (worker->worker_thread)
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
	if (!worker->worker_thread)
		employ(worker);
	if (worker->worker_thread)
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
	return worker->queued + (worker->sent - worker->taken);
}

bool symbol_worker_wait(struct symbol_worker *worker, uint64_t until_ns)
{
	for (;;) {
		exchange(worker);
		uint64_t now = clock_monotonic_ns();
		if (!symbol_worker_open_count(worker) || !worker->worker_thread || now >= until_ns)
			break;
		/* the loop above checks the cause */
		(void)poll_one(worker->worker_thread->done_fd, POLLIN,
			clock_left_ms(until_ns, now));
	}
	return !symbol_worker_open_count(worker);
}

void symbol_worker_hurry(struct symbol_worker *worker)
{
	if (worker->hurried || !worker->worker_thread || !symbol_worker_open_count(worker))
		return;
	worker->hurried = true;
	/* The first spare tables may be those of the thread that runs now. */
	if (start_worker_thread(worker) || !has_spare(worker))
		return;
	dismiss(worker, LEAVE_BOUND_NS);
	employ(worker);
	exchange(worker);
}

void symbol_worker_make_room(struct symbol_worker *worker)
{
	if (!worker->worker_thread) {
		if (worker->tables)
			name_tables_make_room(worker->tables);
		return;
	}
	atomic_store(&worker->worker_thread->room_wanted, true);
	notify(worker->worker_thread->asked_fd);
}

uint64_t symbol_worker_size_bytes(const struct symbol_worker *worker)
{
	if (worker->worker_thread)
		return atomic_load(&worker->worker_thread->size_bytes);
	return worker->tables ? name_tables_size_bytes(worker->tables) : 0;
}

void symbol_worker_free(struct symbol_worker *worker)
{
	if (!worker)
		return;
	if (worker->worker_thread)
		/* so that it leaves within LEAVE_BOUND_NS; otherwise it is abandoned */
		(void)start_worker_thread(worker);
	dismiss(worker, LEAVE_BOUND_NS);
	free_list(worker);
	for (struct name_answer *answer; (answer = symbol_worker_take(worker));)
		symbol_worker_give_back(worker, answer);
	free_answers(worker->spent);
	name_tables_free(worker->tables);
	name_tables_free(worker->spare);
	free(worker);
}

void symbol_worker_forbid_raise(struct symbol_worker *worker)
{
	worker->raise_forbidden = true;
}
