/*
 * See unwind_images.h. The thread and the caller share one struct unwind_image_reader behind a
 * lock. A thread that hangs owns the reader once it has been abandoned, and frees it if it ever
 * returns.
 */
#include "recording/unwind_images.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "code/mapping_kind.h"
#include "code/unwind_table.h"
#include "image/image_file.h"
#include "machine/target_root.h"
#include "recording/code_spaces.h"

#define TABLES_BYTES_MAX (24u << 20)
#define FILE_SIZE_MAX    (UINT64_C(4) << 30)
#define VDSO_BYTES       8192u
#define IMAGES_MAX       65536u /* code of further files is unwound by frame pointers */

enum image_state {
	IMAGE_UNREAD,
	IMAGE_WANTED, /* the thread reads it */
	IMAGE_READ,
	IMAGE_MISSING,
};

struct unwind_image_row {
	uint64_t device;
	uint64_t inode;
	uint32_t path;     /* strtab */
	uint32_t build_id; /* strtab */
	uint8_t state;     /* enum image_state */
	uint64_t tick;     /* of its last use */
	struct unwind_table *table;
};

/* What the thread needs of an image, in its own memory. */
struct request {
	char *path;
	char *build_id;
	uint64_t begin;
	uint64_t end;
	uint64_t inode;
	uint32_t pid;
	uint32_t number;
};

struct unwind_image_reader {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	struct request request;
	struct unwind_table *table; /* the answer */
	bool wanted;                /* there is a request */
	bool done;                  /* the request was answered */
	bool leave;
	bool abandoned; /* the thread frees it */
};

struct unwind_images {
	const struct strtab *strings;
	VEC(struct unwind_image_row) items; /* item 0 unused */
	struct map index;                   /* hash of the identity -> items */
	struct unwind_image_reader *reader; /* NULL: no thread yet */
	uint64_t tick;
	uint64_t tables_bytes;
	uint64_t wait_ns; /* for an answer of the reader */
	bool hurried;     /* wait_ns is for all answers */
};

/* ---- the thread ---- */

static bool is_that_file(const struct request *request, int fd)
{
	struct stat status;

	return !request->inode || (fstat(fd, &status) == 0 && status.st_ino == request->inode);
}

/* The file in the target's root, behind its mapping, or after the target's end in our own root. */
static int open_mapped(const struct request *request, int *ret_fd)
{
	struct diag quiet = { 0 };
	uint64_t size;
	int result =
		target_file_open(request->pid, request->path, FILE_SIZE_MAX, ret_fd, &size, &quiet);
	bool ended = result == -ESRCH;

	if (result == 0 && is_that_file(request, *ret_fd))
		return 0;
	if (result == 0)
		closep(ret_fd);
	if (!ended)
		return target_map_file_open(request->pid, request->begin, request->end,
			FILE_SIZE_MAX, ret_fd, &size, &quiet);
	/* Only a build id or an inode tells that a file here is the one that the target had. */
	result = *request->build_id || request->inode
			 ? target_file_open(0, request->path, FILE_SIZE_MAX, ret_fd, &size, &quiet)
			 : -ESRCH;
	if (result == 0 && !is_that_file(request, *ret_fd)) {
		closep(ret_fd);
		result = -ESRCH;
	}
	return result;
}

static struct unwind_table *read_table(const struct request *request)
{
	cleanup(closep) int fd = -1;
	struct image_file file;
	struct unwind_table *table;

	if (mapping_kind_of(request->path) == MAPPING_VDSO) {
		const void *vdso = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
		if (!vdso)
			return NULL;
		image_file_from_memory(&file, vdso, VDSO_BYTES);
	} else if (open_mapped(request, &fd) < 0 || image_file_from_fd(&file, fd, NULL) < 0) {
		return NULL;
	}
	if (unwind_table_open(&file, &table) < 0)
		return NULL;
	const char *build_id = unwind_table_build_id(table);
	if (*request->build_id && *build_id && strcmp(request->build_id, build_id) != 0) {
		unwind_table_free(table);
		return NULL;
	}
	return table;
}

static void request_done(struct request *request)
{
	free(request->path);
	free(request->build_id);
	*request = (struct request){ 0 };
}

static void reader_free(struct unwind_image_reader *reader)
{
	request_done(&reader->request);
	unwind_table_free(reader->table);
	pthread_cond_destroy(&reader->changed);
	pthread_mutex_destroy(&reader->lock);
	free(reader);
}

static void *read_images(void *user)
{
	struct unwind_image_reader *reader = user;

	pthread_mutex_lock(&reader->lock);
	for (;;) {
		while (!reader->leave && !(reader->wanted && !reader->done))
			pthread_cond_wait(&reader->changed, &reader->lock);
		if (reader->leave)
			break;
		pthread_mutex_unlock(&reader->lock);
		struct unwind_table *table = read_table(&reader->request);
		pthread_mutex_lock(&reader->lock);
		reader->table = table;
		reader->done = true;
		pthread_cond_broadcast(&reader->changed);
	}
	bool abandoned = reader->abandoned;
	pthread_mutex_unlock(&reader->lock);
	if (abandoned)
		reader_free(reader);
	return NULL;
}

static struct unwind_image_reader *reader_new(void)
{
	struct unwind_image_reader *reader = calloc(1, sizeof(*reader));
	pthread_condattr_t clock;

	if (!reader)
		return NULL;
	pthread_mutex_init(&reader->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&reader->changed, &clock);
	pthread_condattr_destroy(&clock);
	if (pthread_create(&reader->thread, NULL, read_images, reader) != 0) {
		reader_free(reader);
		return NULL;
	}
	return reader;
}

/* Waits for the answer, while the lock is held. */
static bool await_answer(struct unwind_image_reader *reader, uint64_t wait_ns)
{
	uint64_t until_ns = clock_monotonic_ns() + wait_ns;
	struct timespec until = { .tv_sec = (time_t)(until_ns / 1000000000),
		.tv_nsec = (long)(until_ns % 1000000000) };

	while (!reader->done)
		if (pthread_cond_timedwait(&reader->changed, &reader->lock, &until) != 0)
			break;
	return reader->done;
}

static void reader_leave(struct unwind_image_reader *reader)
{
	if (!reader)
		return;
	pthread_mutex_lock(&reader->lock);
	reader->leave = true;
	bool hangs = reader->wanted && !await_answer(reader, UNWIND_IMAGE_WAIT_NS);
	reader->abandoned = hangs;
	pthread_cond_broadcast(&reader->changed);
	pthread_mutex_unlock(&reader->lock);
	if (hangs) {
		pthread_detach(reader->thread);
		return;
	}
	pthread_join(reader->thread, NULL);
	reader_free(reader);
}

/* ---- the images ---- */

int unwind_images_new(const struct strtab *strings, struct unwind_images **ret_images)
{
	struct unwind_images *images = calloc(1, sizeof(*images));

	if (!images || !vec_push(&images->items)) {
		free(images);
		return -ENOMEM;
	}
	images->strings = strings;
	images->wait_ns = UNWIND_IMAGE_WAIT_NS;
	*ret_images = images;
	return 0;
}

void unwind_images_hurry(struct unwind_images *images)
{
	images->wait_ns = UNWIND_IMAGE_HURRY_NS;
	images->hurried = true;
}

void unwind_images_free(struct unwind_images *images)
{
	if (!images)
		return;
	reader_leave(images->reader);
	for (uint32_t i = 1; i < images->items.count; i++)
		unwind_table_free(images->items.items[i].table);
	vec_done(&images->items);
	map_done(&images->index);
	free(images);
}

uint32_t unwind_images_number(struct unwind_images *images, const struct code_mapping *mapping)
{
	const uint64_t identity[] = { mapping->path, mapping->build_id,
		mapping->build_id ? 0 : mapping->device, mapping->build_id ? 0 : mapping->inode };
	uint64_t hash = hash_bytes(identity, sizeof(identity));

	for (struct map_walk w = map_find(&images->index, hash); w.value; map_next(&w)) {
		const struct unwind_image_row *image = &images->items.items[w.value];
		if (image->path == identity[0] && image->build_id == identity[1] &&
			image->device == identity[2] && image->inode == identity[3])
			return w.value;
	}
	uint32_t number = images->items.count;
	if (number >= IMAGES_MAX ||
		!vec_add(&images->items, ((struct unwind_image_row){ .path = mapping->path,
						 .build_id = mapping->build_id,
						 .device = identity[2],
						 .inode = identity[3] })) ||
		!map_add(&images->index, hash, number))
		return 0;
	return number;
}

static void drop_oldest(struct unwind_images *images)
{
	while (images->tables_bytes > TABLES_BYTES_MAX) {
		struct unwind_image_row *oldest = NULL;
		for (uint32_t i = 1; i < images->items.count; i++) {
			struct unwind_image_row *image = &images->items.items[i];
			if (image->table && image->tick != images->tick &&
				(!oldest || image->tick < oldest->tick))
				oldest = image;
		}
		if (!oldest)
			return;
		images->tables_bytes -= unwind_table_size_bytes(oldest->table);
		unwind_table_free(oldest->table);
		oldest->table = NULL;
		oldest->state = IMAGE_UNREAD;
	}
}

/* Takes the answer, while the lock is held. */
static void take_answer(struct unwind_images *images, struct unwind_image_reader *reader)
{
	struct unwind_image_row *image = &images->items.items[reader->request.number];

	image->table = reader->table;
	image->state = image->table ? IMAGE_READ : IMAGE_MISSING;
	images->tables_bytes += image->table ? unwind_table_size_bytes(image->table) : 0;
	reader->table = NULL;
	reader->wanted = reader->done = false;
	request_done(&reader->request);
}

static void ask(struct unwind_images *images, uint32_t number, uint32_t pid,
	const struct code_mapping *mapping)
{
	struct unwind_image_row *image = &images->items.items[number];

	if (!images->reader)
		images->reader = reader_new();
	struct unwind_image_reader *reader = images->reader;
	if (!reader)
		return;
	pthread_mutex_lock(&reader->lock);
	if (reader->wanted && reader->done)
		take_answer(images, reader);
	if (!reader->wanted && image->state == IMAGE_UNREAD) {
		reader->request = (struct request){
			.path = strdup(strtab_get(images->strings, image->path)),
			.build_id = strdup(strtab_get(images->strings, image->build_id)),
			.begin = mapping->begin,
			.end = mapping->end,
			.inode = image->inode,
			.pid = pid,
			.number = number,
		};
		reader->wanted = reader->request.path && reader->request.build_id;
		image->state = reader->wanted ? IMAGE_WANTED : IMAGE_UNREAD;
		pthread_cond_broadcast(&reader->changed);
		uint64_t begin_ns = clock_monotonic_ns();
		if (reader->wanted && await_answer(reader, images->wait_ns))
			take_answer(images, reader);
		uint64_t waited_ns = images->hurried ? clock_monotonic_ns() - begin_ns : 0;
		images->wait_ns -= waited_ns < images->wait_ns ? waited_ns : images->wait_ns;
	}
	pthread_mutex_unlock(&reader->lock);
}

const struct unwind_table *unwind_images_table(struct unwind_images *images, uint32_t number,
	uint32_t pid, const struct code_mapping *mapping)
{
	struct unwind_image_row *image = &images->items.items[number];

	images->tick++;
	image->tick = images->tick;
	if (unwind_images_pending(images, number))
		ask(images, number, pid, mapping);
	drop_oldest(images);
	return images->items.items[number].table;
}

bool unwind_images_pending(const struct unwind_images *images, uint32_t number)
{
	uint8_t state = images->items.items[number].state;

	return state == IMAGE_UNREAD || state == IMAGE_WANTED;
}
