/*
 * The rings. Each thread has one, which only this thread writes and only the loop thread reads.
 *
 * A thread begins with a small ring. When that is full, it moves to a larger one, and from a full
 * ring to the next. The loop thread makes such rings in advance, some with their pages. The state of a
 * ring that a thread has left stays its own, because a signal handler may have moved the thread when
 * the interrupted code had read, but not yet entered, its ring. Such code enters the ring that was
 * left, finds no room in it, and takes the slow path. The memory of a ring that was left is returned
 * after a second.
 *
 * A record is a header, then, each if its flag is set, activity ids and stack, then the payload,
 * padded to 8 bytes. A ring's memory is mapped twice, at consecutive addresses, so a record never
 * wraps. Positions only grow; their low bits are the offset in the ring. tail <= published <= next
 * <= tail + size.
 *
 *   offset  size  record header
 *   0       8     stamp: counter or nanoseconds
 *   8       4     sizes: bits 0-12 this record / 8, 13-25 the previous one / 8 (0: first), 26-28 bytes of padding at its end, 29-31 flags
 *   12      4     index of the event (RECORD_LOSS: a loss record)
 *   16      8     mask of the sessions it is for
 *   24            RECORD_ACTIVITY: 16 bytes activity id, 16 related activity id
 *                 RECORD_STACK: u64 frame count, u64 each, leaf first
 *                 the payload
 *
 * A loss record's payload is, for each slot in its mask, lowest first, the u64 number of events
 * lost so far, then the first and last stamp of the losses.
 *
 * Signals: `turn` is odd while the thread is inside a record. A handler that fires then writes into
 * the thread's second, small ring (`nested`). An event of a handler that interrupts that one as
 * well is counted as lost. A session ends after no thread is inside a record that it began before
 * (lib/pipe/grace_period.h). So `turn` is the read-side mark of a kind of RCU: no fence when an event is fired,
 * membarrier() in each pass. Where that is refused, every event takes the slow path and makes a
 * fence.
 *
 * A handler may leave a record by siglongjmp(). The next event of the thread recognizes this: its
 * frame is not below the one that entered the record, as that of an interrupting handler is
 * (left_record.h). The record is then published for no session, and counted as lost.
 *
 * Loggers (lib/logger) get an event when its payload is complete: spoor_fire_begin() marks the
 * slot, and spoor_fire_end() then calls spoor_fire_logged(). An event that only loggers enable has
 * its payload in memory beside the ring. The thread is inside a record meanwhile, so an event of a
 * handler takes the second ring.
 *
 * fork(): rings are not mapped in the child, and the thread's state (private memory) reads as zero
 * there. So a child in which no fork handler ran also finds no ring.
 */
#ifndef SPOOR_LIB_EVENT_THREAD_RING_H
#define SPOOR_LIB_EVENT_THREAD_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spoor/spoor.h>

#include "lib/event/provider.h"
#include "lib/event/stack_walk.h"

#define RECORD_HEADER        24u
#define RECORD_LOSS          UINT32_MAX
#define RECORD_UNIT          8u
#define RECORD_UNITS_MAX     0x1fffu
#define RECORD_BEFORE_SHIFT  13
#define RECORD_PADDING_SHIFT 26
#define RECORD_FLAG_SHIFT    29
#define RECORD_BYTES_MAX     (RECORD_UNITS_MAX * RECORD_UNIT)
#define RECORD_FRAMES_MAX    100u

#define RING_BYTES_MIN    (64u << 10)
#define RING_NESTED_BYTES (64u << 10)
/* of a new ring, by its thread; more by the loop thread */
#define RING_POPULATE_BYTES (64u << 10)

enum record_flag {
	RECORD_ACTIVITY = 1 << 0,
	RECORD_STACK = 1 << 1,
};

struct record {
	uint64_t stamp;
	uint32_t sizes;
	uint32_t event;
	uint64_t sessions;
};
_Static_assert(sizeof(struct record) == RECORD_HEADER, "the header of a record");

/*
 * The part of a ring that a reader needs after a crash, besides the records. In the file of the
 * rings if there is one.
 */
struct ring_front {
	struct spoor_ring_front front;
	uint64_t tail; /* written by the loop thread: all records before it were read */
	/* start of the last record before tail (tail itself if there is none) */
	uint64_t tail_last;
	uint64_t thread_id;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct ring_front) == 64, "a cache line");

struct thread_ring {
	/* Cache line of the writer. */
	struct ring_front *front; /* NULL in a child in which no fork handler ran: no ring */
	uint8_t *base;
	uint64_t mask; /* size - 1 */
	/*
	 * the writer may write up to here; lower than the free room if the next event has to take
	 * the slow path
	 */
	uint64_t limit;
	/* the event that is being written: position and sessions (record_entry.h); atomic */
	uint64_t noted_at;
	uint64_t noted;
	uint32_t before; /* size of the last record, in units */
	uint32_t pad;
	uint64_t loss_sessions; /* slots with losses that no record contains yet */
	uint64_t loss_first_stamp;
	uint64_t loss_last_stamp;
	/* The reader's line: written by the loop thread only. */
	uint64_t seen_published; /* `published` at the begin of this pass */
	uint64_t tail;
	uint64_t tail_stamp; /* stamp of the last record before the tail */
	/*
	 * slots of sessions that ended while the record at stale_at was being written, and have
	 * counted it as lost if it was for them; atomic
	 */
	uint64_t stale_slots;
	uint64_t stale_at;
	uint64_t stale_turn; /* in which it was being written */
	/* the turn in which the record at seen_published is being written; 0: none is */
	uint64_t held_turn;
	/* in the first use of the ring's memory, pages up to `populated` exist, until it ends */
	uint64_t populated;
	uint64_t populated_end;
	/* The event that loggers get at its end; used by the writer only. */
	struct {
		uint8_t *scratch; /* its payload, if no session enables it; NULL: not mapped yet */
		uint64_t loggers; /* mask of slots */
		size_t payload_size;
		uint32_t event;
		bool in_ring; /* a record that is also published for sessions */
	} logged;
};

enum thread_status {
	THREAD_FREE,  /* has no thread; may be taken */
	THREAD_TAKEN, /* being set up or trimmed; the reader skips it */
	THREAD_LIVE,
	THREAD_LEFT, /* its thread fires into another of its rings now, and may come back */
	THREAD_DEAD, /* its thread has ended; it is drained, then free */
};

enum ring_class {
	RING_FIRST, /* of a thread's first event */
	RING_LARGE, /* those that follow when a ring is full */
	RING_CLASSES,
};

/* an event waits for room, and handlers that interrupted it may as well */
#define WAITS_MAX 4u

struct left_wait {
	uintptr_t frame;   /* of the function that the event's declaration calls; 0: not set */
	uint64_t sessions; /* that the event is for; atomic, the loop thread clears ended ones */
};

#define THREAD_MAGIC UINT64_C(0x6461657268745053)

struct thread_state {
	struct thread_ring main;
	struct thread_ring nested;
	struct ring_front own_fronts[2]; /* if the rings are not in a file */
	uint64_t magic;                  /* zero in a child of fork() */
	uint64_t thread_id;
	uint32_t status; /* enum thread_status */
	uint32_t ring_class;
	bool has_destructor;
	bool listed;                 /* thread_state_first() has it */
	struct thread_state *others; /* the states of this thread are a circle */
	/* the first of them, in which the thread's losses are counted; atomic */
	struct thread_state *root;
	uint32_t move_failed;      /* the pass in which there was no other ring */
	struct stack_bounds stack; /* bounds of the writer's stack */
	/* Of the root only: */
	uint64_t lost[SESSIONS_MAX];       /* events lost, by slot; only grows; atomic */
	uint64_t losses;                   /* how often any element of `lost` grew; atomic */
	struct left_wait waits[WAITS_MAX]; /* left_record.h */
	uint32_t wait_count;

	/* Used by the loop thread only. */
	/*
	 * at this stamp the thread was outside of any record, and had published all earlier records
	 */
	uint64_t quiescent_ticks;
	/* the thread has been inside the same record since then; 0: it is outside */
	uint64_t held_since_ns;
	uint64_t held_turns; /* sum of both rings' turns at that time */
	/* of the grace period that began in pass `grace_running` (lib/pipe/grace_period.h) */
	uint64_t grace_running;
	uint64_t grace_turns[2]; /* of both rings when it began */
	uint32_t grace_left;     /* rings whose record of that time the thread has left */
	uint64_t grace_passed;   /* the last period in which it has left both */
	uint64_t losses_seen;
	uint64_t lost_seen[SESSIONS_MAX];
	uint64_t last_ns;
	uint64_t checked_ns; /* time of the last check whether the thread exists */
	uint64_t drained_ns; /* the time of the last pass that found records in it; 0: trimmed */
	/* its index in the session's table of threads, by slot */
	uint32_t session_thread[SESSIONS_MAX];
	/* id of the session for which session_thread is valid, by slot; 0: not looked up */
	uint64_t session_serial[SESSIONS_MAX];
	struct thread_state *next;
};

/* Global state that the firing path reads besides the event and the ring; rarely written. */
struct pipe_hot {
	/*
	 * slots that need the slow path: loggers, with stacks, or stalled; all while `fences` is
	 * set or the loop thread rests (lib/pipe/slow_path.h)
	 */
	uint64_t special;
	uint64_t stacks;   /* slots whose sessions record stacks */
	uint64_t blocking; /* slots of sessions with SPOOR_BLOCK */
	uint64_t stalled;  /* of `blocking`: the sink is full */
	/*
	 * of `stalled`: a thread has waited in vain; the others do not wait until the sink takes
	 * something
	 */
	uint64_t given_up;
	uint64_t block_ns[SESSIONS_MAX];
	/* of `stalled`: when the sink was last seen to take something, or became full */
	uint64_t taken_ns[SESSIONS_MAX];
	/* futex word: changes when blocked threads should look for room again */
	uint32_t room_word;
	uint32_t asleep;  /* 1: the next event wakes the loop thread */
	uint32_t passes;  /* number of the pass over all rings; not 0 */
	uint32_t waiting; /* a thread waits for room; set before each sleep, reset by the wake-up */
	bool counter;     /* stamps are of the processor's counter */
	bool running;
	/* the system has no barrier for all threads: a thread that enters a record makes a fence */
	bool fences;
};
extern struct pipe_hot pipe_hot;

/*
 * The calling thread's state; NULL: it has none, or it has ended. Initial-exec (the whole library is
 * compiled so): the first access does not allocate.
 */
extern __thread struct thread_state *current_thread;
/* The calling thread's state, made if it does not exist. NULL: no memory. Safe in signal handlers. */
struct thread_state *thread_attach(void);
/*
 * The main ring of `state`, the calling thread's, is full: returns another state of this thread, whose
 * rings are empty, or NULL: none is ready. The caller is inside a record of the full ring, and enters
 * one in the other. Then thread_moved() ends the first record and makes `to` the current state.
 */
struct thread_state *thread_move(struct thread_state *state);
void thread_moved(struct thread_state *from, struct thread_state *to);

/* All states that were ever made: a list that only grows, at its head. */
struct thread_state *thread_state_first(void);

/* How rings are made from here on. */
struct ring_settings {
	size_t first_bytes; /* of the ring that a thread begins with: a power of two */
	size_t large_bytes; /* of the rings that follow when it is full; 0: threads have one ring */
	/*
	 * of all rings together; new rings become smaller as it fills, then threads get none, and
	 * lose their events
	 */
	size_t memory_bytes;
	/*
	 * Returns a ring of `size` bytes, mapped twice, in a file that outlives the process, and
	 * where its front is (recover_file_ring()). Lock-free, safe in signal handlers. NULL: rings
	 * are private memory.
	 */
	uint8_t *(*map_in_file)(size_t size, uint64_t thread_id, struct ring_front **ret_front);
};

/* Called before the first event of this run. 0 or a negative errno. */
int rings_set_up(const struct ring_settings *settings);
void rings_child(void); /* in the child of fork(): forgets all rings */

/*
 * Makes the state of an ended thread, whose rings were drained, available to other threads. The
 * rings of a few such states stay mapped. Loop thread.
 */
void thread_state_release(struct thread_state *state);
/* Returns the memory of the ring's content to the system. Loop thread, when no session exists. */
void thread_state_trim(struct thread_state *state);
/*
 * Unmaps the rings of a state and returns them to memory_bytes, so that other threads may get such.
 * A state that its thread has left stays that thread's own. Loop thread, while the state is taken
 * and its rings are empty.
 */
void thread_state_unmap(struct thread_state *state);
/* False: the state is free without rings, or its thread has left it and they were returned. */
static inline bool thread_state_has_rings(const struct thread_state *state)
{
	return __atomic_load_n(&state->main.base, __ATOMIC_RELAXED) != NULL;
}
/*
 * Makes some rings ready, with their pages, for the threads that need one next. Loop thread, in each
 * pass and before a session begins. False: not all of them are ready yet.
 */
bool rings_prepare(void);
/* Unmaps the rings of all free states. Loop thread, when no session exists; or while there is none. */
void rings_unprepare(void);

/*
 * Allocates the pages of at most `size` bytes behind the position `published`, if the writer has not
 * used them before. Loop thread.
 */
void ring_populate(struct thread_ring *ring, uint64_t published, uint64_t size);

/* Counts an event of a thread that got no ring, for the slots in this mask. */
void rings_refuse(uint64_t sessions);
/* Events for a slot, in all, of threads that got no ring, because memory_bytes are in use. */
uint64_t rings_refused(uint32_t slot);

#endif
