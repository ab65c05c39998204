/*
 * Writes events into a nettrace file, or a sequence of files, on a thread of its own: a disk that
 * is slow or hangs delays nothing else. sink_file.c (as events come) and sink_recorder.c (all at
 * the end) hand it items in order:
 *
 *   file_writer_new()      allocates it
 *   file_writer_start()    starts its thread, which opens the file and writes its head; waits for that
 *   file_writer_begin()    the same without waiting; items may be added before
 *   file_writer_add()      a chunk of events
 *   file_writer_mark()     what to do after the events before it: flush, sequence point, end
 *   file_writer_passed()   has the thread processed everything up to a mark?
 *   file_writer_abandon()  do not wait for the thread any longer
 *   file_writer_unref()    releases the caller's reference; the thread has its own
 *
 * Ownership: items that were added belong to the writer. Losses: every event that was added is in
 * the file, or counted by file_writer_take_losses() or file_writer_abandon(), each of them once.
 * One thread at a time adds; file_writer_start() may be called from any thread. Errors are a
 * negative errno. After an error (disk full), the file is cut after its last complete write, and
 * events count as lost until MARK_RESUME.
 */
#ifndef SPOOR_LIB_SINK_FILE_WRITER_H
#define SPOOR_LIB_SINK_FILE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/event/outbuf.h"
#include "lib/pipe/session_state.h"
#include "lib/sink/event_store.h"

/* while it writes nothing for so long, its end is not waited for */
#define FILE_WRITER_STUCK_NS UINT64_C(5000000000)

struct file_writer;

struct file_writer_options {
	const char *path;
	uint64_t rotate_bytes; /* a new file at the first mark after so many; 0: never */
	uint32_t keep;         /* files of a rotation; 0: all */
};

enum file_mark {
	MARK_FLUSH = 1 << 0,  /* write all events before it to the file */
	MARK_POINT = 1 << 1,  /* with a sequence point; without this flag only if one is due */
	MARK_ROTATE = 1 << 2, /* end this file, begin the next one */
	MARK_RESUME = 1 << 3, /* after an error: write again, from the last complete write on */
	MARK_END = 1 << 4,    /* end the file; the thread ends */
};

/* An item of the queue: a chunk of events, with its memory, or a mark. */
struct file_item {
	struct file_item *next;
	struct store_chunk *chunk; /* NULL: a mark */
	void *owned;               /* freed with the item; NULL: nothing */
	size_t bytes;              /* counted in file_writer_bytes() */
	uint64_t serial;
	uint64_t time_ns;
	unsigned flags; /* enum file_mark */
	uint32_t rows_size;
	/* followed by the rows of a mark, or by the chunk of file_writer_chunk() */
};

int file_writer_new(const struct file_writer_options *options, struct file_writer **ret_writer);

/* first_ns: no event that will be added is earlier. */
int file_writer_start(struct file_writer *writer, uint64_t first_ns);
int file_writer_begin(struct file_writer *writer, uint64_t first_ns);
void file_writer_unref(struct file_writer *writer);

/* An empty chunk of this writer, with room for at least `size` bytes; NULL: no memory. */
struct file_item *file_writer_chunk(struct file_writer *writer, size_t size);
void file_writer_add(struct file_writer *writer, struct file_item *item);

/*
 * Events in memory of the caller. It stays readable until file_writer_passed() a later mark, or is
 * given to the writer. `owned`: freed by the writer. -ENOMEM.
 */
int file_writer_add_foreign(struct file_writer *writer, struct store_chunk *chunk, void *owned);
/* Memory of platform_map_large(), unmapped when the writer has ended. Before the mark of the end. */
void file_writer_give(struct file_writer *writer, void *memory, size_t size);

/*
 * time_ns: all events up to then were added. `rows`: of session_point_rows(); NULL: none.
 * *ret_serial is for file_writer_passed(). -ENOMEM.
 */
int file_writer_mark(struct file_writer *writer, unsigned flags, uint64_t time_ns,
	const struct outbuf *rows, uint64_t *ret_serial);

bool file_writer_passed(const struct file_writer *writer, uint64_t serial);
size_t file_writer_bytes(const struct file_writer *writer); /* of items that it has not processed */

/* True: it has items to process; then it wakes the loop thread when it has none any more. */
bool file_writer_busy(struct file_writer *writer);

/* The error after which it does not write; 0: none. */
int file_writer_error(const struct file_writer *writer);

/* Adds events that could not be written to *loss; false: there are none. */
bool file_writer_take_losses(struct file_writer *writer, struct session_loss *ret_loss);

/* Increases while the thread gets on. */
uint64_t file_writer_progress(const struct file_writer *writer);

/*
 * Gives up all events that are not in the file by now; *ret_loss counts them. A write that hangs
 * and later succeeds is reverted.
 */
void file_writer_abandon(struct file_writer *writer, struct session_loss *ret_loss);

/*
 * Waits until the thread has processed the mark, as long as it makes progress; else abandons it.
 * 0, the writer's error, or -ETIMEDOUT.
 */
int file_writer_wait(struct file_writer *writer, uint64_t serial);

/* In the child of fork(): closes the file. */
void file_writer_child(struct file_writer *writer);

#endif
