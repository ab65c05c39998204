/*
 * See name_desk.h. What passes between the two threads are pointers, through two pipes: whoever has read one owns what it points to. There is no
 * lock, since a thread that only runs when nobody else does could be stopped for long while it holds one. At most IN_FLIGHT_MAX questions are
 * on their way, so that neither pipe is ever full; the others wait in a list on this side.
 *
 * Tables belong to the thread that works with them, and go to the next one with its last word.
 */
#include "session/name_desk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "session/name_tables.h"

#define IN_FLIGHT_MAX  250u /* pointers; the smallest pipe there is has a page */
#define LEAVE_BOUND_NS UINT64_C(1000000000)
#define LOOK_NS        1000000L

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
	atomic_uint_fast64_t size_bytes; /* of the tables */
	struct name_tables *tables; /* its own, until it has left */
	bool idle;                  /* begins at idle priority */
};

struct name_desk {
	struct name_question *first; /* not on their way yet */
	struct name_question **last;
	struct name_answer *ready;
	struct name_answer **ready_last;
	struct name_tables *tables;  /* nobody's at the moment; */
	struct name_tables *spare;   /* empty, for the time when the others are left behind */
	struct clerk *clerk;         /* NULL: none at the moment */
	uint32_t queued;
	uint32_t in_flight;
	bool hurried;
	bool raise_forbidden;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* True and a pointer, when there is one. Pointers are written whole or not at all, and so read. */
static bool read_pointer(int fd, void *ret_pointer)
{
	ssize_t got;

	do
		got = read(fd, ret_pointer, sizeof(void *));
	while (got < 0 && errno == EINTR);
	return got == sizeof(void *);
}

static bool write_pointer(int fd, const void *pointer)
{
	ssize_t put;

	do
		put = write(fd, &pointer, sizeof(pointer));
	while (put < 0 && errno == EINTR);
	return put == sizeof(pointer);
}

/* ---- the thread ---- */

/* Nobody else has it any more. */
static void free_clerk(struct clerk *clerk)
{
	struct name_question *question;
	struct name_answer *answer;

	while (clerk->questions[0] >= 0 && read_pointer(clerk->questions[0], &question))
		name_question_free(question);
	while (clerk->answers[0] >= 0 && read_pointer(clerk->answers[0], &answer))
		name_answer_free(answer);
	for (int i = 0; i < 2; i++) {
		closep(&clerk->questions[i]);
		closep(&clerk->answers[i]);
	}
	name_tables_free(clerk->tables);
	free(clerk);
}

static struct name_answer *look_up(struct name_tables *tables, struct name_question *question)
{
	struct name_answer *answer = calloc(1, sizeof(*answer));

	if (answer)
		name_tables_answer(tables, question, answer);
	name_question_free(question);
	return answer;
}

/* Only what the others leave. Each of these may be forbidden; then it runs as others do. */
static void become_idle(void)
{
	(void)sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){ 0 });
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

static void *clerk_main(void *argument)
{
	struct clerk *clerk = argument;

	if (clerk->idle)
		become_idle();
	atomic_store(&clerk->tid, (int)syscall(SYS_gettid));
	while (!atomic_load(&clerk->leave)) {
		struct pollfd waits = { .fd = clerk->questions[0], .events = POLLIN };
		struct name_question *question;
		if (!read_pointer(clerk->questions[0], &question)) {
			(void)poll(&waits, 1, -1); /* woken without reason: looked at again */
			continue;
		}
		if (!question) /* only to wake it */
			continue;
		struct name_answer *answer = look_up(clerk->tables, question);
		atomic_store(&clerk->size_bytes, name_tables_size_bytes(clerk->tables));
		/* A NULL too: one question less is open. There is room, see IN_FLIGHT_MAX. */
		if (!write_pointer(clerk->answers[1], answer))
			name_answer_free(answer);
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
	if (!answer) /* no memory for it: there is none */
		return;
	answer->next = NULL;
	*desk->ready_last = answer;
	desk->ready_last = &answer->next;
}

static void take_ready(struct name_desk *desk, const struct clerk *clerk)
{
	struct name_answer *answer;

	while (desk->in_flight && read_pointer(clerk->answers[0], &answer)) {
		desk->in_flight--;
		put_ready(desk, answer);
	}
}

/* Reads what has been answered, and sends what there is room for. */
static void exchange(struct name_desk *desk)
{
	struct clerk *clerk = desk->clerk;

	if (!clerk)
		return;
	take_ready(desk, clerk);
	while (desk->first && desk->in_flight < IN_FLIGHT_MAX) {
		struct name_question *question = desk->first;
		struct name_question *next = question->next; /* it is the clerk's once it is written */
		if (!write_pointer(clerk->questions[1], question))
			break;
		desk->first = next;
		if (!desk->first)
			desk->last = &desk->first;
		desk->queued--;
		desk->in_flight++;
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
	clerk->idle = !desk->hurried;
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

/* Sees the thread out, for a second at most; then it is left where it is. What it has not begun goes back to the list. */
static void dismiss(struct name_desk *desk)
{
	struct clerk *clerk = desk->clerk;
	uint64_t until_ns = now_ns() + LEAVE_BOUND_NS;
	struct name_question *question;

	if (!clerk)
		return;
	atomic_store(&clerk->leave, true);
	(void)write_pointer(clerk->questions[1], NULL); /* full: then it is awake */
	while (atomic_load(&clerk->state) == CLERK_SERVES && now_ns() < until_ns)
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	/* Before it is left behind: what it does from then on is its own. */
	take_ready(desk, clerk);
	while (read_pointer(clerk->questions[0], &question)) {
		if (!question)
			continue;
		desk->in_flight--;
		queue(desk, question);
	}
	(void)write_pointer(clerk->questions[1], NULL); /* the first one has just been taken back */
	desk->clerk = NULL;
	if (atomic_exchange(&clerk->state, CLERK_ABANDONED) == CLERK_LEFT) {
		take_ready(desk, clerk);
		desk->tables = TAKE(clerk->tables);
		free_clerk(clerk);
	} else {
		desk->tables = desk->spare;
		desk->spare = NULL;
	}
	desk->in_flight = 0; /* what it was working on stays without an answer */
}

static bool raise_clerk(struct name_desk *desk)
{
	int tid = atomic_load(&desk->clerk->tid);

	if (!tid || desk->raise_forbidden || sched_setscheduler(tid, SCHED_OTHER, &(struct sched_param){ 0 }) < 0)
		return false;
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, tid, IOPRIO_NONE); /* slower at worst */
	return true;
}

int name_desk_new(const struct box *box, const char *const *symbol_paths, struct name_desk **ret_desk)
{
	struct name_desk *desk = calloc(1, sizeof(*desk));

	if (!desk)
		return -ENOMEM;
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

void name_desk_ask(struct name_desk *desk, struct name_question *question)
{
	if (!desk->clerk)
		employ(desk);
	if (desk->clerk)
		queue(desk, question);
	else if (desk->tables)
		put_ready(desk, look_up(desk->tables, question)); /* no thread is to be had: here and now */
	else
		name_question_free(question);
	exchange(desk);
}

struct name_answer *name_desk_take(struct name_desk *desk)
{
	exchange(desk);
	struct name_answer *answer = desk->ready;

	if (answer) {
		desk->ready = answer->next;
		if (!desk->ready)
			desk->ready_last = &desk->ready;
	}
	return answer;
}

uint32_t name_desk_open_count(const struct name_desk *desk)
{
	return desk->queued + desk->in_flight;
}

bool name_desk_wait(struct name_desk *desk, uint64_t until_ns)
{
	for (;;) {
		exchange(desk);
		uint64_t now = now_ns();
		if (!name_desk_open_count(desk) || !desk->clerk || now >= until_ns)
			break;
		struct pollfd waits = { .fd = desk->clerk->answers[0], .events = POLLIN };
		struct timespec left = { .tv_sec = (time_t)((until_ns - now) / 1000000000),
			.tv_nsec = (long)((until_ns - now) % 1000000000) };
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
	dismiss(desk);
	employ(desk);
	exchange(desk);
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
	dismiss(desk);
	free_list(desk);
	while (desk->ready) {
		struct name_answer *answer = desk->ready;
		desk->ready = answer->next;
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
