/*
 * See name_desk.h. What passes between the two threads are pointers, through two pipes: whoever has read one owns what it points to. There is no
 * lock, since a thread that only runs when nobody else does could be stopped for long while it holds one. What it has in hand lies in slots that
 * either side can empty, so that a thread that never gets the CPU keeps nothing. At most IN_FLIGHT_MAX questions are
 * on their way, so that neither pipe is ever full; the others wait in a list on this side.
 *
 * Tables belong to the thread that works with them, and go to the next one with its last word.
 */
#include "symbolize/name_desk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "machine/cpu_clock.h"
#include "machine/proc.h"
#include "symbolize/name_tables.h"

#define IN_FLIGHT_MAX  250u /* pointers; the smallest pipe there is has a page */
#define BATCH_MAX      64u  /* pointers that are written or read at a time: what is cheap to answer should not cost four system calls */
#define BATCH_NS       UINT64_C(2000000) /* an answer is held back for others no longer than this */
#define LEAVE_BOUND_NS UINT64_C(1000000000)
#define REPLACE_BOUND_NS UINT64_C(20000000) /* during a recording: rings have to be read */
#define LOOK_NS        1000000L
#define WAIT_MAX_NS    UINT64_C(500000000) /* a question that waits for longer is answered at ordinary priority */

/* <linux/ioprio.h> came late; these are the kernel's numbers. */
#define IOPRIO_WHO_PROCESS 1
#define IOPRIO_CLASS_SHIFT 13
#define IOPRIO_IDLE        (3 << IOPRIO_CLASS_SHIFT)
#define IOPRIO_NONE        0

enum clerk_state {
	CLERK_SERVES,
	CLERK_LEFT,      /* touches nothing any more: the desk cleans up */
	CLERK_ABANDONED, /* nobody waits for it: it cleans up itself */
};

/* One thread and what it shares with the desk. */
struct clerk {
	int questions[2];           /* pipes of pointers, not blocking */
	int answers[2];
	atomic_int state;           /* enum clerk_state */
	atomic_int tid;             /* 0: has not begun */
	atomic_bool leave;          /* it is to go, after the question it is at */
	atomic_bool room_wanted;    /* it is to drop most of its tables */
	atomic_uint_fast64_t size_bytes; /* of the tables */
	struct name_tables *tables; /* its own, until it has left */
	bool idle;                  /* begins at idle priority */
	bool replaced;              /* has taken over from a thread that could not be raised */
	/* What it has read and not begun, what it has answered and not sent: whoever takes one out has it. The desk does when it leaves the thread behind. */
	_Atomic(struct name_question *) hand[BATCH_MAX];
	_Atomic(struct name_answer *) done[BATCH_MAX];
	_Atomic(struct name_question *) current; /* what it is at: not sent back as long as this points to it */
};

struct name_desk {
	struct name_question *first; /* not on their way yet */
	struct name_question **last;
	struct name_answer *ready;
	struct name_answer **ready_last;
	struct name_answer *spent;
	struct name_tables *tables;  /* nobody's at the moment; */
	struct name_tables *spare;   /* empty, for the time when the others are left behind */
	struct clerk *clerk;         /* NULL: none at the moment */
	uint32_t queued;
	uint32_t in_flight;
	/* Questions are answered in order, so one time is enough to know that one of them has waited for too long. */
	uint64_t asked;              /* questions so far */
	uint64_t answered;
	uint64_t watched;            /* the number of a question; 0: none */
	uint64_t watched_ns;         /* the latest time at which it was asked */
	uint64_t watched_cpu_ns;     /* the thread's CPU time then */
	const struct box *box;       /* borrowed, as what follows: for tables of a thread that replaces another one */
	const char *const *symbol_paths;
	bool raised;                 /* the thread has ordinary priority until it has answered all */
	bool hurried;
	bool raise_forbidden;
};

/* How many pointers there were to read. They are written in wholes (PIPE_BUF), and so read. */
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

/* ---- the thread ---- */

/* Nobody else has it any more. */
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

/* Room for the answer. NULL: no memory, which is an answer too; the question is gone then. */
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

/* The question comes back with its answer. */
static void look_up(struct name_tables *tables, struct name_question *question, struct name_answer *answer)
{
	name_tables_answer(tables, question, answer);
	answer->question = question;
}

/* Only what the others leave. Each of these may be forbidden; then it runs as others do. */
static void become_idle(void)
{
	(void)sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

/* What is done goes back. There is room, see IN_FLIGHT_MAX. */
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
		atomic_store(&clerk->hand[i], questions[i]); /* NULL: only to wake it */
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
		(void)write_pointers(clerk->questions[1], left, rest); /* they have just come from there */
}

static void *clerk_main(void *argument)
{
	struct clerk *clerk = argument;
	struct name_question *questions[BATCH_MAX];

	if (clerk->idle)
		become_idle();
	atomic_store(&clerk->tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&clerk->leave)) {
		struct pollfd waits = { .fd = clerk->questions[0], .events = POLLIN };
		size_t count = read_pointers(clerk->questions[0], questions, BATCH_MAX);
		if (count)
			serve(clerk, questions, count);
		else
			(void)poll(&waits, 1, -1); /* woken without reason: looked at again */
	}
	if (atomic_exchange(&clerk->state, CLERK_LEFT) == CLERK_ABANDONED)
		free_clerk(clerk);
	return NULL;
}

/* ---- the desk ---- */

static void free_list(struct name_desk *desk)
{
	while (desk->first) {
		struct name_question *question = desk->first;
		desk->first = question->next;
		name_question_free(question);
	}
	desk->last = &desk->first;
	desk->queued = 0;
}

static void queue(struct name_desk *desk, struct name_question *question)
{
	question->next = NULL;
	*desk->last = question;
	desk->last = &question->next;
	desk->queued++;
}

static void put_ready(struct name_desk *desk, struct name_answer *answer)
{
	desk->answered++;
	if (!answer) /* no memory for it: there is none */
		return;
	answer->next = NULL;
	*desk->ready_last = answer;
	desk->ready_last = &answer->next;
}

static void take_ready(struct name_desk *desk, const struct clerk *clerk)
{
	struct name_answer *answers[BATCH_MAX];
	size_t count;

	while (desk->in_flight && (count = read_pointers(clerk->answers[0], answers, BATCH_MAX))) {
		for (size_t i = 0; i < count; i++)
			put_ready(desk, answers[i]);
		desk->in_flight -= (uint32_t)count;
	}
}

/* What the thread has not begun goes back to the list. */
static void take_back(struct name_desk *desk, const struct clerk *clerk)
{
	struct name_question *question;

	while (read_pointers(clerk->questions[0], &question, 1)) {
		if (!question)
			continue;
		desk->in_flight--;
		queue(desk, question);
	}
}

/* Reads what has been answered, and sends what there is room for. */
static void transfer(struct name_desk *desk)
{
	struct clerk *clerk = desk->clerk;

	if (!clerk)
		return;
	take_ready(desk, clerk);
	while (desk->first && desk->in_flight < IN_FLIGHT_MAX) {
		struct name_question *batch[BATCH_MAX];
		struct name_question *question = desk->first;
		size_t count = 0;
		for (; question && count < BATCH_MAX && desk->in_flight + count < IN_FLIGHT_MAX; question = question->next)
			batch[count++] = question;
		if (!batch[0]->spent) {
			batch[0]->spent = desk->spent;
			desk->spent = NULL;
		}
		if (!write_pointers(clerk->questions[1], batch, count))
			break; /* they are still the list's */
		desk->first = question;
		if (!desk->first)
			desk->last = &desk->first;
		desk->queued -= (uint32_t)count;
		desk->in_flight += (uint32_t)count;
	}
}

static struct clerk *new_clerk(struct name_desk *desk)
{
	struct clerk *clerk = calloc(1, sizeof(*clerk));

	if (!clerk)
		return NULL;
	clerk->questions[0] = clerk->questions[1] = clerk->answers[0] = clerk->answers[1] = -1;
	if (pipe2(clerk->questions, O_CLOEXEC | O_NONBLOCK) < 0 || pipe2(clerk->answers, O_CLOEXEC | O_NONBLOCK) < 0) {
		free_clerk(clerk);
		return NULL;
	}
	clerk->idle = !desk->hurried && !desk->raised;
	clerk->replaced = desk->raised;
	clerk->tables = desk->tables;
	return clerk;
}

/* Where there is none. Without a thread to be had there stays none. */
static void employ(struct name_desk *desk)
{
	struct clerk *clerk = desk->tables ? new_clerk(desk) : NULL;
	pthread_attr_t detached;
	pthread_t thread;
	sigset_t all;
	sigset_t before;

	if (!clerk)
		return;
	/* Signals are the caller's. */
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
	desk->tables = NULL;
	desk->clerk = clerk;
}

/* Whether the thread only waits for a CPU. One that hangs in a file would hang there again. */
static bool is_starved(const struct clerk *clerk)
{
	struct proc_process thread = { 0 };
	char path[64];
	char text[512];

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&clerk->tid)); /* fits */
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return got > 0 && proc_parse_stat(text, (size_t)got, &thread) && thread.state == 'R';
}

/* A copy of the question that the thread is answering. NULL: it answers none, or no memory. */
static struct name_question *current_again(struct clerk *clerk)
{
	const struct name_question *current = atomic_load(&clerk->current);

	return current ? name_question_copy(current) : NULL;
}

/* Out of the thread's hands: what it has answered, and what it has not begun. */
static void take_out_of_hand(struct name_desk *desk, struct clerk *clerk)
{
	for (size_t i = 0; i < BATCH_MAX; i++) {
		struct name_answer *answer = atomic_exchange(&clerk->done[i], NULL);
		struct name_question *question = atomic_exchange(&clerk->hand[i], NULL);
		if (answer)
			put_ready(desk, answer);
		if (question)
			queue(desk, question);
	}
}

/* Waits for the thread's end, for `bound_ns` at most. Then it is left where it is, and its current question is queued again if it only waited for a CPU. */
static void dismiss(struct name_desk *desk, uint64_t bound_ns)
{
	struct name_question *const wake = NULL;
	struct clerk *clerk = desk->clerk;
	uint64_t until_ns = clock_monotonic_ns() + bound_ns;

	if (!clerk)
		return;
	atomic_store(&clerk->leave, true);
	(void)write_pointers(clerk->questions[1], &wake, 1); /* full: then it is awake */
	while (atomic_load(&clerk->state) == CLERK_SERVES && clock_monotonic_ns() < until_ns)
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	struct name_question *again = atomic_load(&clerk->state) == CLERK_SERVES && is_starved(clerk) ? current_again(clerk) : NULL;

	/* Before it is left behind: what it does from then on is its own. */
	take_ready(desk, clerk);
	take_back(desk, clerk);
	take_out_of_hand(desk, clerk);
	take_ready(desk, clerk); /* sent in the meantime */
	(void)write_pointers(clerk->questions[1], &wake, 1); /* the first one has just been taken back */
	desk->clerk = NULL;
	if (atomic_exchange(&clerk->state, CLERK_ABANDONED) == CLERK_LEFT) {
		take_ready(desk, clerk);
		take_back(desk, clerk);
		desk->tables = TAKE(clerk->tables);
		free_clerk(clerk);
		name_question_free(TAKE(again)); /* it has its answer */
	} else {
		desk->tables = desk->spare;
		desk->spare = NULL;
	}
	desk->in_flight = 0;
	if (again)
		queue(desk, again);
}

static void answer_here(struct name_desk *desk, struct name_question *question)
{
	struct name_answer *answer = new_answer(question);

	if (answer)
		look_up(desk->tables, question, answer);
	put_ready(desk, answer);
}

static bool raise_clerk(struct name_desk *desk)
{
	int tid = atomic_load(&desk->clerk->tid);

	if (!tid || desk->raise_forbidden || sched_setscheduler(tid, SCHED_OTHER, &(struct sched_param){ 0 }) < 0)
		return false;
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, IOPRIO_NONE); /* slower at worst */
	return true;
}

/* The thread's CPU time; 0 where the kernel does not count it. */
static uint64_t clerk_cpu_ns(const struct clerk *clerk)
{
	char path[64];
	char text[128];
	uint64_t cpu_ns = 0;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", atomic_load(&clerk->tid)); /* fits */
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text));

	return got > 0 && cpu_clock_parse_schedstat(text, (size_t)got, &cpu_ns) ? cpu_ns : 0;
}

/*
 * Without the right to raise the thread another one takes over if the first one waits for a CPU most of the time. The new thread keeps ordinary
 * priority: it could not leave idle priority again.
 */
static void replace(struct name_desk *desk, uint64_t waited_ns)
{
	if (clerk_cpu_ns(desk->clerk) - desk->watched_cpu_ns >= waited_ns / 2 || !is_starved(desk->clerk))
		return;
	if (!desk->spare)
		desk->spare = name_tables_new(desk->box, desk->symbol_paths);
	if (!desk->spare)
		return; /* no memory: names come late */
	desk->raised = true;
	dismiss(desk, REPLACE_BOUND_NS);
	employ(desk);
	transfer(desk);
}

/* All is answered: the thread runs again only when no other one wants the CPU. */
static void lower(struct name_desk *desk)
{
	int tid = atomic_load(&desk->clerk->tid);

	if (desk->raise_forbidden || desk->clerk->replaced)
		return;
	desk->raised = false;
	(void)sched_setscheduler(tid, SCHED_IDLE, &(struct sched_param){ 0 });
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, IOPRIO_IDLE);
}

/* Raises the thread's priority once a question has waited for WAIT_MAX_NS, and lowers it when all are answered. */
static void watch(struct name_desk *desk)
{
	uint64_t now = clock_monotonic_ns();

	if (!name_desk_open_count(desk)) {
		desk->answered = desk->asked; /* also those that have lost their answer */
		desk->watched = 0;
		if (desk->raised && !desk->hurried)
			lower(desk);
		return;
	}
	if (!desk->watched || desk->answered >= desk->watched) {
		desk->watched = desk->asked;
		desk->watched_ns = now;
		desk->watched_cpu_ns = clerk_cpu_ns(desk->clerk);
		return;
	}
	if (desk->raised || desk->hurried || now < desk->watched_ns + WAIT_MAX_NS)
		return;
	desk->raised = raise_clerk(desk);
	if (!desk->raised)
		replace(desk, now - desk->watched_ns);
}

static void exchange(struct name_desk *desk)
{
	transfer(desk);
	if (desk->clerk)
		watch(desk);
}

int name_desk_new(const struct box *box, const char *const *symbol_paths, struct name_desk **ret_desk)
{
	struct name_desk *desk = calloc(1, sizeof(*desk));

	if (!desk)
		return -ENOMEM;
	desk->box = box;
	desk->symbol_paths = symbol_paths;
	desk->last = &desk->first;
	desk->ready_last = &desk->ready;
	desk->tables = name_tables_new(box, symbol_paths);
	desk->spare = name_tables_new(box, symbol_paths);
	if (!desk->tables || !desk->spare) {
		name_desk_free(desk);
		return -ENOMEM;
	}
	*ret_desk = desk;
	return 0;
}

void name_desk_open_kernel(struct name_desk *desk)
{
	if (desk->tables)
		name_tables_open_kernel(desk->tables);
}

void name_desk_ask(struct name_desk *desk, struct name_question *question)
{
	desk->asked++;
	if (!desk->clerk)
		employ(desk);
	if (desk->clerk)
		queue(desk, question);
	else if (desk->tables)
		answer_here(desk, question); /* no thread is to be had: here and now */
	else
		name_question_free(question);
}

struct name_answer *name_desk_take(struct name_desk *desk)
{
	if (!desk->ready)
		exchange(desk);
	struct name_answer *answer = desk->ready;

	if (answer) {
		desk->ready = answer->next;
		if (!desk->ready)
			desk->ready_last = &desk->ready;
	}
	return answer;
}

void name_desk_give_back(struct name_desk *desk, struct name_answer *answer)
{
	if (!answer)
		return;
	name_question_free(TAKE(answer->question));
	answer->next = desk->spent;
	desk->spent = answer;
}

uint32_t name_desk_open_count(const struct name_desk *desk)
{
	return desk->queued + desk->in_flight;
}

bool name_desk_wait(struct name_desk *desk, uint64_t until_ns)
{
	for (;;) {
		exchange(desk);
		uint64_t now = clock_monotonic_ns();
		if (!name_desk_open_count(desk) || !desk->clerk || now >= until_ns)
			break;
		struct pollfd waits = { .fd = desk->clerk->answers[0], .events = POLLIN };
		struct timespec left = clock_left(until_ns, now);
		(void)ppoll(&waits, 1, &left, NULL); /* whatever woke it is looked at above */
	}
	return !name_desk_open_count(desk);
}

void name_desk_hurry(struct name_desk *desk)
{
	if (desk->hurried || !desk->clerk || !name_desk_open_count(desk))
		return;
	desk->hurried = true;
	if (raise_clerk(desk))
		return;
	dismiss(desk, LEAVE_BOUND_NS);
	employ(desk);
	exchange(desk);
}

void name_desk_make_room(struct name_desk *desk)
{
	struct name_question *nothing = NULL;

	if (!desk->clerk) {
		if (desk->tables)
			name_tables_make_room(desk->tables);
		return;
	}
	atomic_store(&desk->clerk->room_wanted, true);
	(void)write_pointers(desk->clerk->questions[1], &nothing, 1); /* full: then it is awake */
}

uint64_t name_desk_size_bytes(const struct name_desk *desk)
{
	if (desk->clerk)
		return atomic_load(&desk->clerk->size_bytes);
	return desk->tables ? name_tables_size_bytes(desk->tables) : 0;
}

void name_desk_free(struct name_desk *desk)
{
	if (!desk)
		return;
	if (desk->clerk)
		(void)raise_clerk(desk); /* so that it leaves soon; at worst it is left behind */
	dismiss(desk, LEAVE_BOUND_NS);
	free_list(desk);
	for (struct name_answer *answer; (answer = name_desk_take(desk));)
		name_desk_give_back(desk, answer);
	while (desk->spent) {
		struct name_answer *answer = desk->spent;
		desk->spent = answer->next;
		name_answer_free(answer);
	}
	name_tables_free(desk->tables);
	name_tables_free(desk->spare);
	free(desk);
}

void name_desk_forbid_raise(struct name_desk *desk)
{
	desk->raise_forbidden = true;
}
