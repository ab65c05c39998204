/*
 * See file_writer.h. The file is a valid nettrace file at any time: it ends with the end tag (one
 * byte). To append, all bytes after the tag and a new end tag are written first; then the old tag
 * is overwritten with the first byte of the next object. One byte is written completely or not at
 * all, so a process that is killed leaves a file that opens and lacks at most the last flush
 * interval and what waits in the queue.
 *
 * The thread holds the lock while it takes items and while it counts, never while it writes.
 */
#include "lib/sink/file_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/pipe/own_events.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"
#include "lib/sink/nettrace4.h"

/* written when so many bytes are pending, before a mark asks for it */
#define PUT_BYTES   (512u << 10)
#define CHUNK_BYTES (64u << 10)
#define SPARES_MAX  32u /* free chunks that are kept for reuse */
#define LOOK_MS     50  /* a pipe is full: how often the thread looks whether it was abandoned */

struct file_writer {
	uint32_t references; /* atomic: one of the caller, one of the thread */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_cond_t progressed; /* for file_writer_start() and file_writer_wait() */

	/* Guarded by the lock; those marked "atomic" are read without it. */
	struct file_item *first, *last;
	struct file_item *spares;
	uint32_t spare_count;
	struct session_loss losses; /* not taken yet */
	uint64_t added;             /* events, without those of the library */
	uint64_t settled;           /* of `added`: in the file, or counted in losses */
	bool wakes_loop;            /* when the queue is empty */
	bool abandoned;             /* atomic */
	bool ended;
	size_t bytes;      /* atomic */
	uint64_t passed;   /* atomic: serial of the last mark that was processed */
	uint64_t progress; /* atomic */
	int error;         /* atomic */
	int fd;            /* atomic: for the child of fork() */

	uint64_t serial; /* of the adding thread: the last mark */

	/* Of the thread. */
	struct nettrace4 *encoder;
	struct outbuf out;
	char *path;
	uint64_t rotate_bytes;
	uint32_t keep;
	uint32_t number; /* of the current file of a rotation */
	bool regular;
	uint64_t end; /* offset of the end tag; 0: no byte was written yet */
	uint64_t first_ns;
	struct session_loss unwritten; /* events since the last complete write */
	uint32_t own_sequence;
	void *memory;
	size_t memory_size;
};

/* NAME.3.nettrace: the number is inserted before the last dot of the file name. */
static char *numbered(const char *path, uint32_t number)
{
	size_t size = strlen(path) + 16;
	char *name = malloc(size);
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(path, '.');

	if (!name)
		return NULL;
	if (!dot || (slash && dot < slash) || dot == path || (slash && dot == slash + 1))
		dot = path + strlen(path);
	if (number)
		snprintf(name, size, "%.*s.%u%s", (int)(dot - path), path, number, dot);
	else
		snprintf(name, size, "%s", path);
	return name;
}

static void loss_add(struct session_loss *loss, uint64_t count, uint64_t first_ns, uint64_t last_ns)
{
	if (!count)
		return;
	if (!loss->count || first_ns < loss->first_ns)
		loss->first_ns = first_ns;
	if (!loss->count || last_ns > loss->last_ns)
		loss->last_ns = last_ns;
	loss->count += count;
}

static bool is_abandoned(const struct file_writer *writer)
{
	return __atomic_load_n(&writer->abandoned, __ATOMIC_ACQUIRE);
}

/* ---- Writing; on the thread ---- */

static int writable_wait(struct file_writer *writer)
{
	struct pollfd watch = { .fd = writer->fd, .events = POLLOUT };

	while (!is_abandoned(writer)) {
		int n = poll(&watch, 1, LOOK_MS);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			return 0;
	}
	return -ETIMEDOUT;
}

static int write_all(struct file_writer *writer, const uint8_t *data, size_t size, uint64_t at)
{
	while (size) {
		ssize_t n = writer->regular ? pwrite(writer->fd, data, size, (off_t)at)
					    : write(writer->fd, data, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && !writer->regular) {
			int r = writable_wait(writer);
			if (r)
				return r;
			continue;
		}
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		__atomic_fetch_add(&writer->progress, 1, __ATOMIC_RELAXED);
		data += n;
		size -= (size_t)n;
		at += (uint64_t)n;
	}
	return 0;
}

/* Restores the file as it was after the last complete write. */
static void file_cut(struct file_writer *writer)
{
	static const uint8_t end_tag = 1;

	if (!writer->regular || writer->fd < 0)
		return;
	if (writer->end)
		(void)!pwrite(writer->fd, &end_tag, 1, (off_t)writer->end);
	/* If this fails as well, the file opens and has an incomplete last block. */
	(void)!ftruncate(writer->fd, writer->end ? (off_t)writer->end + 1 : 0);
}

static int out_write(struct file_writer *writer)
{
	static const uint8_t end_tag = 1;
	struct outbuf *out = &writer->out;
	size_t size = out->size;

	if (!writer->regular)
		return write_all(writer, out->data, size, 0);
	outbuf_add(out, &end_tag, 1);
	if (out->failed)
		return -ENOMEM;
	/* The first write contains the head and the first block. */
	if (!writer->end)
		return write_all(writer, out->data, size + 1, 0);
	int r = write_all(writer, out->data + 1, size, writer->end + 1);
	if (r == 0 && is_abandoned(writer))
		r = -ETIMEDOUT;
	return r ? r : write_all(writer, out->data, 1, writer->end);
}

/* Writes all of `out` into the file. The encoder has no pending event. */
static int put(struct file_writer *writer)
{
	size_t size = writer->out.size;

	if (!size)
		return writer->out.failed ? -ENOMEM : 0;
	int r = out_write(writer);
	if (r)
		return r;
	/* Those that file_writer_abandon() has counted as lost must not be in the file. */
	pthread_mutex_lock(&writer->lock);
	bool late = writer->abandoned;
	if (!late)
		writer->settled += writer->unwritten.count;
	pthread_mutex_unlock(&writer->lock);
	if (late)
		return -ETIMEDOUT;
	writer->end += size;
	writer->unwritten = (struct session_loss){ 0 };
	outbuf_reset(&writer->out);
	return nettrace4_safe(writer->encoder);
}

static int flush(struct file_writer *writer)
{
	int r = nettrace4_flush(writer->encoder);

	return r ? r : put(writer);
}

static int event_write(struct file_writer *writer, struct pipe_event *event)
{
	/* Of this thread: it fires nothing else. */
	if (!event->capture_thread_id) {
		event->thread_id = event->capture_thread_id = platform_thread_id();
		event->sequence = ++writer->own_sequence;
	}
	return nettrace4_event(writer->encoder, event);
}

static int file_open(struct file_writer *writer, uint64_t time_ns)
{
	char *path = numbered(writer->path, writer->number);
	struct own_process_info info;
	struct pipe_event event;
	struct stat facts;

	if (!path)
		return -ENOMEM;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	int r = fd < 0 ? -errno : 0;
	free(path);
	if (r)
		return r;
	__atomic_store_n(&writer->fd, fd, __ATOMIC_RELEASE);
	writer->regular = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode);
	if (writer->regular && ftruncate(fd, 0))
		return -errno;
	writer->end = 0;
	writer->own_sequence = 0;
	r = nettrace4_begin(writer->encoder);
	if (r == 0) {
		own_process_info_make(&info, time_ns, &event);
		r = event_write(writer, &event);
	}
	return r ? r : flush(writer);
}

static void file_close(struct file_writer *writer)
{
	int fd = writer->fd;

	__atomic_store_n(&writer->fd, -1, __ATOMIC_RELEASE);
	platform_close(fd);
}

static int file_end(struct file_writer *writer, uint64_t time_ns, const struct outbuf *rows)
{
	int r = nettrace4_end(writer->encoder, time_ns, rows);

	/* The end tag is written by put(). */
	if (r == 0 && writer->regular)
		writer->out.size--;
	return r ? r : put(writer);
}

static int rotate(struct file_writer *writer, uint64_t time_ns, const struct outbuf *rows)
{
	int r = file_end(writer, time_ns, rows);

	if (r)
		return r;
	file_close(writer);
	writer->number++;
	if (writer->keep && writer->number >= writer->keep) {
		char *oldest = numbered(writer->path, writer->number - writer->keep);
		if (oldest)
			(void)unlink(oldest); /* another program may have removed it */
		free(oldest);
	}
	return file_open(writer, time_ns);
}

/* ---- The thread ---- */

static void events_lose(struct file_writer *writer, const struct session_loss *loss)
{
	pthread_mutex_lock(&writer->lock);
	if (!writer->abandoned) {
		loss_add(&writer->losses, loss->count, loss->first_ns, loss->last_ns);
		writer->settled += loss->count;
	}
	pthread_mutex_unlock(&writer->lock);
}

/* The events since the last complete write are lost. */
static void writer_fail(struct file_writer *writer, int error)
{
	events_lose(writer, &writer->unwritten);
	writer->unwritten = (struct session_loss){ 0 };
	__atomic_store_n(&writer->error, error, __ATOMIC_RELEASE);
	nettrace4_roll_back(writer->encoder);
	file_cut(writer);
	if (!is_abandoned(writer))
		loop_wake();
}

/* Writes the events at the front of the run that differ little from the one before. */
static uint32_t run_write(struct file_writer *writer, struct record_run *run)
{
	uint64_t first_ns = run->floor_ns;
	uint32_t count = nettrace4_records(writer->encoder, run);

	loss_add(&writer->unwritten, count, first_ns, run->floor_ns);
	return count;
}

static void chunk_write(struct file_writer *writer, const struct store_chunk *chunk)
{
	struct session_loss left = { chunk->events, chunk->first_ns, chunk->last_ns };
	struct store_cursor cursor = { 0 };
	struct pipe_event event;
	int r;

	while (!writer->error && store_next(chunk, &cursor, &event)) {
		struct session_loss one = { !(event.entry->flags & ENTRY_OWN), event.time_ns,
			event.time_ns };
		r = event_write(writer, &event);
		if (__builtin_expect(r == -EMSGSIZE, 0))
			events_lose(writer, &one);
		else if (r == 0)
			loss_add(&writer->unwritten, one.count, one.first_ns, one.last_ns);
		if (r == 0 || r == -EMSGSIZE)
			left.count -= one.count;
		if (r == 0 && __builtin_expect(writer->out.size >= PUT_BYTES, 0))
			r = flush(writer);
		if (__builtin_expect(r && r != -EMSGSIZE, 0))
			writer_fail(writer, r);
		else
			left.count -= run_write(writer, &cursor.run);
	}
	events_lose(writer, &left);
}

static void mark_process(struct file_writer *writer, struct file_item *mark)
{
	const struct outbuf rows = { .data = (uint8_t *)(mark + 1), .size = mark->rows_size };
	bool has_file = writer->fd >= 0 && writer->regular && writer->end;
	int r = 0;

	if ((mark->flags & MARK_RESUME) && has_file && !is_abandoned(writer))
		__atomic_store_n(&writer->error, 0, __ATOMIC_RELEASE);
	if (writer->error)
		return;
	bool turns = writer->regular &&
		     ((mark->flags & MARK_ROTATE) ||
			     (writer->rotate_bytes &&
				     writer->end + writer->out.size >= writer->rotate_bytes));
	if (mark->flags & MARK_END)
		r = file_end(writer, mark->time_ns, &rows);
	else if (turns)
		r = rotate(writer, mark->time_ns, &rows);
	else if ((mark->flags & MARK_POINT) || nettrace4_wants_point(writer->encoder))
		r = nettrace4_point(writer->encoder, mark->time_ns, &rows);
	if (r == 0 && (mark->flags & MARK_FLUSH))
		r = flush(writer);
	if (r)
		writer_fail(writer, r);
}

/* The thread has processed the item. */
static void item_done(struct file_writer *writer, struct file_item *item)
{
	bool wake = false;

	pthread_mutex_lock(&writer->lock);
	__atomic_store_n(&writer->bytes, writer->bytes - item->bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&writer->progress, 1, __ATOMIC_RELAXED);
	if (!item->chunk) {
		__atomic_store_n(&writer->passed, item->serial, __ATOMIC_RELEASE);
		wake = true;
	}
	if (!writer->first && writer->wakes_loop) {
		writer->wakes_loop = false;
		wake = true;
	}
	wake = wake && !writer->abandoned;
	if (item->chunk == (struct store_chunk *)(void *)(item + 1) &&
		item->chunk->room == CHUNK_BYTES && writer->spare_count < SPARES_MAX) {
		item->next = writer->spares;
		writer->spares = item;
		writer->spare_count++;
		item = NULL;
	}
	pthread_cond_broadcast(&writer->progressed);
	pthread_mutex_unlock(&writer->lock);
	if (item)
		free(item->owned);
	free(item);
	if (wake)
		loop_wake();
}

static struct file_item *item_take(struct file_writer *writer)
{
	pthread_mutex_lock(&writer->lock);
	while (!writer->first && !writer->abandoned)
		pthread_cond_wait(&writer->changed, &writer->lock);
	struct file_item *item = writer->abandoned ? NULL : writer->first;
	if (item) {
		writer->first = item->next;
		if (!writer->first)
			writer->last = NULL;
	}
	pthread_mutex_unlock(&writer->lock);
	return item;
}

static void *writer_main(void *context)
{
	struct file_writer *writer = context;
	bool ends = false;

	platform_thread_name("spoor-file");
	platform_thread_raise();
	int r = file_open(writer, writer->first_ns);
	if (r)
		writer_fail(writer, r);
	pthread_mutex_lock(&writer->lock);
	__atomic_store_n(&writer->passed, 1, __ATOMIC_RELEASE);
	pthread_cond_broadcast(&writer->progressed);
	pthread_mutex_unlock(&writer->lock);
	while (!ends && (r == 0)) {
		struct file_item *item = item_take(writer);
		if (!item)
			break;
		ends = (item->flags & MARK_END) != 0;
		if (item->chunk)
			chunk_write(writer, item->chunk);
		else
			mark_process(writer, item);
		if (ends)
			file_close(writer);
		item_done(writer, item);
	}
	file_close(writer);
	file_writer_unref(writer);
	return NULL;
}

/* ---- The other side ---- */

static void items_free(struct file_item *item)
{
	while (item) {
		struct file_item *next = item->next;
		free(item->owned);
		free(item);
		item = next;
	}
}

void file_writer_unref(struct file_writer *writer)
{
	if (!writer || __atomic_fetch_sub(&writer->references, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	items_free(writer->first);
	items_free(writer->spares);
	nettrace4_free(writer->encoder);
	outbuf_done(&writer->out);
	platform_unmap(writer->memory, writer->memory_size);
	pthread_mutex_destroy(&writer->lock);
	pthread_cond_destroy(&writer->changed);
	pthread_cond_destroy(&writer->progressed);
	free(writer->path);
	free(writer);
}

int file_writer_new(const struct file_writer_options *options, struct file_writer **ret_writer)
{
	struct file_writer *writer = calloc(1, sizeof(*writer));
	pthread_condattr_t attributes;

	if (!writer)
		return -ENOMEM;
	writer->references = 1;
	writer->fd = -1;
	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&writer->progressed, &attributes);
	pthread_condattr_destroy(&attributes);
	writer->serial = 1;
	writer->path = strdup(options->path);
	writer->encoder = nettrace4_new(&writer->out);
	writer->rotate_bytes = options->rotate_bytes;
	writer->keep = options->keep;
	if (!writer->path || !writer->encoder) {
		file_writer_unref(writer);
		return -ENOMEM;
	}
	*ret_writer = writer;
	return 0;
}

int file_writer_begin(struct file_writer *writer, uint64_t first_ns)
{
	struct platform_signals before;
	pthread_attr_t attributes;
	pthread_t thread;

	writer->first_ns = first_ns;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	__atomic_fetch_add(&writer->references, 1, __ATOMIC_RELAXED);
	/* The thread inherits the mask: no signal of the program is delivered to it. */
	platform_signals_block(&before);
	int r = pthread_create(&thread, &attributes, writer_main, writer);
	platform_signals_restore(&before);
	pthread_attr_destroy(&attributes);
	if (r)
		file_writer_unref(writer);
	return -r;
}

int file_writer_start(struct file_writer *writer, uint64_t first_ns)
{
	int r = file_writer_begin(writer, first_ns);

	if (r)
		return r;
	pthread_mutex_lock(&writer->lock);
	while (!writer->passed)
		pthread_cond_wait(&writer->progressed, &writer->lock);
	pthread_mutex_unlock(&writer->lock);
	return file_writer_error(writer);
}

struct file_item *file_writer_chunk(struct file_writer *writer, size_t size)
{
	size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
	struct file_item *item = NULL;

	pthread_mutex_lock(&writer->lock);
	if (room == CHUNK_BYTES && writer->spares) {
		item = writer->spares;
		writer->spares = item->next;
		writer->spare_count--;
	}
	pthread_mutex_unlock(&writer->lock);
	if (!item)
		item = malloc(sizeof(*item) + sizeof(struct store_chunk) + room);
	if (!item)
		return NULL;
	*item = (struct file_item){ .chunk = (struct store_chunk *)(void *)(item + 1) };
	*item->chunk = (struct store_chunk){ .room = room };
	return item;
}

void file_writer_add(struct file_writer *writer, struct file_item *item)
{
	if (item->chunk == (struct store_chunk *)(void *)(item + 1))
		item->bytes = item->chunk->used;
	pthread_mutex_lock(&writer->lock);
	if (item->chunk)
		writer->added += item->chunk->events;
	if (writer->last)
		writer->last->next = item;
	else
		writer->first = item;
	writer->last = item;
	__atomic_store_n(&writer->bytes, writer->bytes + item->bytes, __ATOMIC_RELAXED);
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

int file_writer_add_foreign(struct file_writer *writer, struct store_chunk *chunk, void *owned)
{
	struct file_item *item = calloc(1, sizeof(*item));

	if (!item)
		return -ENOMEM;
	item->chunk = chunk;
	item->owned = owned;
	file_writer_add(writer, item);
	return 0;
}

void file_writer_give(struct file_writer *writer, void *memory, size_t size)
{
	writer->memory = memory;
	writer->memory_size = size;
}

int file_writer_mark(struct file_writer *writer, unsigned flags, uint64_t time_ns,
	const struct outbuf *rows, uint64_t *ret_serial)
{
	size_t size = rows ? rows->size : 0;
	struct file_item *item = calloc(1, sizeof(*item) + size);

	if (!item)
		return -ENOMEM;
	item->bytes = sizeof(*item) + size;
	item->serial = ++writer->serial;
	item->time_ns = time_ns;
	item->flags = flags;
	item->rows_size = (uint32_t)size;
	if (size)
		memcpy(item + 1, rows->data, size);
	uint64_t serial = item->serial;
	file_writer_add(writer, item);
	if (ret_serial)
		*ret_serial = serial;
	return 0;
}

bool file_writer_passed(const struct file_writer *writer, uint64_t serial)
{
	return __atomic_load_n(&writer->passed, __ATOMIC_ACQUIRE) >= serial;
}

size_t file_writer_bytes(const struct file_writer *writer)
{
	return __atomic_load_n(&writer->bytes, __ATOMIC_RELAXED);
}

bool file_writer_busy(struct file_writer *writer)
{
	pthread_mutex_lock(&writer->lock);
	bool busy = writer->bytes != 0;
	writer->wakes_loop = busy;
	pthread_mutex_unlock(&writer->lock);
	return busy;
}

int file_writer_error(const struct file_writer *writer)
{
	return __atomic_load_n(&writer->error, __ATOMIC_ACQUIRE);
}

bool file_writer_take_losses(struct file_writer *writer, struct session_loss *ret_loss)
{
	pthread_mutex_lock(&writer->lock);
	*ret_loss = writer->losses;
	writer->losses = (struct session_loss){ 0 };
	pthread_mutex_unlock(&writer->lock);
	return ret_loss->count != 0;
}

uint64_t file_writer_progress(const struct file_writer *writer)
{
	return __atomic_load_n(&writer->progress, __ATOMIC_RELAXED);
}

void file_writer_abandon(struct file_writer *writer, struct session_loss *ret_loss)
{
	uint64_t now = platform_now_ns();

	pthread_mutex_lock(&writer->lock);
	*ret_loss = writer->losses;
	writer->losses = (struct session_loss){ 0 };
	loss_add(ret_loss, writer->added - writer->settled, now, now);
	__atomic_store_n(&writer->abandoned, true, __ATOMIC_RELEASE);
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}

int file_writer_wait(struct file_writer *writer, uint64_t serial)
{
	uint64_t progress = file_writer_progress(writer);
	struct session_loss loss;
	int r = 0;

	pthread_mutex_lock(&writer->lock);
	while (writer->passed < serial && r != -ETIMEDOUT) {
		uint64_t until = platform_now_ns() + FILE_WRITER_STUCK_NS;
		struct timespec deadline = { .tv_sec = (time_t)(until / 1000000000u),
			.tv_nsec = (long)(until % 1000000000u) };
		r = -pthread_cond_timedwait(&writer->progressed, &writer->lock, &deadline);
		if (progress != file_writer_progress(writer))
			r = 0;
		progress = file_writer_progress(writer);
	}
	bool passed = writer->passed >= serial;
	pthread_mutex_unlock(&writer->lock);
	if (passed)
		return file_writer_error(writer);
	file_writer_abandon(writer, &loss);
	return -ETIMEDOUT;
}

void file_writer_child(struct file_writer *writer)
{
	platform_close(__atomic_exchange_n(&writer->fd, -1, __ATOMIC_ACQ_REL));
}
