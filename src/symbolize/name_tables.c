/* See name_tables.h. */
#include "symbolize/name_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/text.h"
#include "base/vec.h"
#include "base/write_all.h"
#include "code/codemap.h"
#include "code/debug_file.h"
#include "code/demangle.h"
#include "code/jitdump.h"
#include "code/kallsyms.h"
#include "code/perf_map.h"
#include "code/r2r.h"
#include "code/symbol_file.h"
#include "machine/box.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "symbolize/name_states.h"
#include "symbolize/symbol_cache.h"

#define MAPPED_SIZE_MAX   (UINT64_C(4) << 30)
#define MAP_FILE_SIZE_MAX (64u << 20)
/* limit of cached symbol tables; above it the least recently used are dropped */
#define IMAGE_BYTES_MAX (20u << 20)
/* limit when the memory is needed for data that cannot be read again */
#define IMAGE_BYTES_LEAST (4u << 20)
/* attempts for one image, each with another process, if processes end before the image is opened */
#define OPEN_TRIES_MAX 8u
#define KALLSYMS_CACHE "kallsyms"

/* The tables of one file, for all processes that map it. */
struct image_tables {
	struct symbol_file *file;    /* NULL: not opened, or cannot be opened */
	struct image_search *search; /* used by `file` during its lifetime */
	struct r2r *r2r;
	uint64_t tick; /* last use */
	/* the process in whose root it was last searched without success */
	uint32_t tried_pid;
	uint32_t tries;
};

struct name_tables {
	struct box box;
	char **symbol_paths; /* NULL-terminated */
	size_t symbol_path_count;
	struct symbol_cache cache;
	VEC(struct image_tables) images;
	uint64_t tick;
	struct kallsyms *kernel;
	/* the mapped cache file that `kernel` refers to; NULL: not cached */
	void *kernel_data;
	size_t kernel_data_size;
	enum source_state kernel_source; /* of `kernel` */
	int kernel_error;                /* negative errno in SOURCE_FAILED, else 0 */
	/* set while a question is being answered, if a file was skipped */
	bool skipped;
};

/*
 * How the tables of one image find their debug file: in the root of a process that maps it, then in
 * the recorder's own root.
 */
struct image_search {
	struct symbol_search search;
	struct symbol_root root;
	struct name_tables *tables;
	uint32_t pid;
};

struct name_tables *name_tables_new(const struct box *box, const char *const *symbol_paths)
{
	struct name_tables *tables = calloc(1, sizeof(*tables));
	size_t count = 0;

	if (!tables)
		return NULL;
	tables->box = *box;
	(void)symbol_cache_open(&tables->cache, false, NULL); /* without: no names from it */
	while (symbol_paths && symbol_paths[count])
		count++;
	tables->symbol_paths = calloc(count + 1, sizeof(*tables->symbol_paths));
	for (size_t i = 0; tables->symbol_paths && i < count; i++) {
		tables->symbol_paths[i] = strdup(symbol_paths[i]);
		if (!tables->symbol_paths[i])
			break;
		tables->symbol_path_count++;
	}
	if (!tables->symbol_paths || tables->symbol_path_count != count ||
		!vec_push(&tables->images)) {
		name_tables_free(tables);
		return NULL;
	}
	return tables;
}

/* ---- the kernel ---- */

static int load_kernel_cache(struct name_tables *tables)
{
	cleanup(closep) int folder = -1;
	struct diag quiet = { 0 };
	struct stat status;

	if (box_open_cache(&tables->box, &folder, &quiet) < 0)
		return -ENOENT;
	cleanup(closep) int fd = openat(folder, KALLSYMS_CACHE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || status.st_size <= 0 || status.st_size > KALLSYMS_TEXT_MAX)
		return -EBADMSG;
	/* Spoor's own file, only ever replaced by rename: it does not shrink while mapped. */
	void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (data == MAP_FAILED)
		return -errno;
	tables->kernel_data = data;
	tables->kernel_data_size = (size_t)status.st_size;
	return kallsyms_load(data, tables->kernel_data_size, &tables->kernel);
}

/* Saves the symbols for this boot's later recordings; without that the next takes 40 ms longer. */
static void save_kernel_cache(const struct name_tables *tables)
{
	cleanup(closep) int folder = -1;
	cleanup(bytes_done) struct bytes image = { 0 };
	struct diag quiet = { 0 };
	char name[64];

	kallsyms_save(tables->kernel, &image);
	if (image.failed || box_open_cache(&tables->box, &folder, &quiet) < 0)
		return;
	text_set(name, KALLSYMS_CACHE ".%d", (int)getpid());
	cleanup(closep) int fd =
		openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return;
	if (write_all(fd, image.data, image.len) < 0 ||
		renameat(folder, name, folder, KALLSYMS_CACHE) < 0)
		/* if this fails too, an unused file stays in the cache */
		(void)unlinkat(folder, name, 0);
}

static int load_kernel(struct name_tables *tables)
{
	struct diag quiet = { 0 };
	struct input in;

	if (load_kernel_cache(tables) == 0)
		return 0;
	int result = input_open(&in, "/proc/kallsyms", &quiet);

	if (result < 0)
		return result;
	result = kallsyms_read(&in, &tables->kernel, &quiet);
	input_close(&in);
	if (result == 0)
		save_kernel_cache(tables);
	return result;
}

void name_tables_open_kernel(struct name_tables *tables)
{
	if (tables->kernel_source != SOURCE_UNTRIED)
		return;
	tables->kernel_error = load_kernel(tables);
	source_state_enter(&tables->kernel_source, tables->kernel_error == 0);
}

/* Copies a generated text into the answer as its name. */
static void take_name(struct name_answer *answer, struct bytes *text)
{
	if (!text->failed)
		answer->name = strdup(bytes_z(text));
	answer->found = answer->name != NULL;
	if (!answer->found)
		answer->error = -ENOMEM;
}

static void answer_kernel(struct name_tables *tables, struct name_answer *answer)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	struct kallsyms_hit hit;

	name_tables_open_kernel(tables);
	answer->error = tables->kernel_error;
	if (answer->error < 0 || !kallsyms_find(tables->kernel, answer->place, &hit))
		return;
	answer->begin = hit.begin;
	answer->size_bytes = hit.end - hit.begin;
	bytes_text(&text, hit.name);
	if (*hit.module)
		bytes_printf(&text, " [%s]", hit.module);
	take_name(answer, &text);
}

/* ---- files ---- */

/*
 * Notes a file that was skipped: without openat2 no file whose path comes from a target is opened.
 */
static int take_note(struct name_tables *tables, int result)
{
	if (result == -ENOSYS)
		tables->skipped = true;
	return result;
}

/* In the target's root, or with pid 0 in our own. */
static int open_there(struct name_tables *tables, uint32_t pid, const char *path, int *ret_fd)
{
	struct diag quiet = { 0 };
	uint64_t size;

	return take_note(tables,
		target_file_open(pid, path, MAPPED_SIZE_MAX, ret_fd, &size, &quiet));
}

/*
 * Opens a file in a folder that the user named, with the user's own rights. Symbolic links are
 * followed, since the folder is the user's, but only regular files are opened, since the file name
 * may come from the target.
 */
static int open_for_user(void *context, const char *path)
{
	uint64_t before = rights_lower();
	cleanup(closep) int place = open(path, O_PATH | O_CLOEXEC);
	struct stat status;
	char again[40];
	int result = -EINVAL;

	(void)context;
	if (place < 0) {
		result = -errno;
	} else if (fstat(place, &status) == 0 && S_ISREG(status.st_mode)) {
		text_set(again, "/proc/self/fd/%d", place);
		result = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		result = result < 0 ? -errno : result;
	}
	rights_restore(before);
	return result;
}

static int open_from_cache(void *context, const char *build_id)
{
	const struct name_tables *tables = context;
	int fd = -1;
	int result = symbol_cache_find(&tables->cache, build_id, &fd);

	return result < 0 ? result : fd;
}

static int open_for_symbols(void *context, const char *path)
{
	const struct image_search *search = context;
	int fd = -1;
	int result = open_there(search->tables, search->pid, path, &fd);

	if (result < 0)
		result = open_there(search->tables, 0, path, &fd);
	return result < 0 ? result : fd;
}

/*
 * True if this file is the mapped one, by its inode. If the kernel reported a build id instead of
 * the inode, is_same_image() compares that.
 */
static bool is_same_file(const struct name_question *question, int fd)
{
	struct stat status;

	if (!question->inode)
		return true;
	return fstat(fd, &status) == 0 && status.st_ino == question->inode;
}

static bool is_same_image(const struct name_question *question, const struct elf *elf)
{
	char text[2 * ELF_BUILD_ID_MAX + 1];

	if (!*question->build_id || !elf->build_id_len)
		return true;
	elf_build_id_text(elf, text);
	return strcmp(text, question->build_id) == 0;
}

/* The places where a mapped file is searched, in this order. */
enum file_place { FILE_IN_TARGET, FILE_BEHIND_MAPPING, FILE_HERE, FILE_PLACE_COUNT };

/*
 * False for a process that has ended, perhaps since the question was created, and for one that the
 * recorder may not access.
 */
static bool has_root(uint32_t pid)
{
	struct target_root root = { .fd = -1 };
	struct diag quiet = { 0 };
	bool has = target_root_open(&root, pid, &quiet) == 0;

	target_root_close(&root);
	return has;
}

/* *gone is set at the last place: true if the process has no accessible root. */
static int open_mapped_file(struct name_tables *tables, const struct name_question *question,
	enum file_place place, bool *gone)
{
	struct diag quiet = { 0 };
	uint64_t size;
	int fd = -1;
	int result = -ENOENT;

	switch (place) {
	case FILE_IN_TARGET:
		if (!question->ended)
			result = open_there(tables, question->pid, question->path, &fd);
		break;
	case FILE_BEHIND_MAPPING:
		if (!question->ended)
			result = target_map_file_open(question->pid, question->begin, question->end,
				MAPPED_SIZE_MAX, &fd, &size, &quiet);
		break;
	case FILE_HERE:
		*gone = question->ended || !has_root(question->pid);
		if (*gone)
			result = open_there(tables, 0, question->path, &fd);
		break;
	default:
		break;
	}
	if (result < 0)
		return result;
	/* /proc/PID/map_files leads to the mapped file itself. */
	if (place == FILE_BEHIND_MAPPING || is_same_file(question, fd))
		return fd;
	closep(&fd);
	return -ENOENT;
}

static void drop_tables(struct image_tables *image)
{
	symbol_file_close(image->file);
	image->file = NULL;
	free(image->search);
	image->search = NULL;
	r2r_close(image->r2r);
	image->r2r = NULL;
}

static uint64_t image_size_bytes(const struct image_tables *image)
{
	return (image->file ? symbol_file_size_bytes(image->file) : 0) +
	       (image->r2r ? r2r_size_bytes(image->r2r) : 0);
}

/* Drops the least recently used symbol tables until at most `most` bytes are left. */
static void bound_images(struct name_tables *tables, uint64_t most)
{
	for (;;) {
		uint64_t total = 0;
		struct image_tables *oldest = NULL;
		vec_each(image, &tables->images) {
			if (!image->file && !image->r2r)
				continue;
			total += image_size_bytes(image);
			if (image->tick != tables->tick && (!oldest || image->tick < oldest->tick))
				oldest = image;
		}
		if (total <= most || !oldest)
			return;
		drop_tables(oldest);
		oldest->tries = oldest->tried_pid = 0;
	}
}

/*
 * Whether to try to open the image: not again with the process that failed last, and not after a
 * running process could not provide it.
 */
static bool is_to_be_tried(struct image_tables *image, const struct name_question *question)
{
	if (image->tries >= OPEN_TRIES_MAX || (image->tries && image->tried_pid == question->pid))
		return false;
	image->tries++;
	image->tried_pid = question->pid;
	return true;
}

static void open_image(struct name_tables *tables, struct image_tables *image,
	const struct name_question *question)
{
	struct image_search *search = calloc(1, sizeof(*search));
	struct diag quiet = { 0 };
	bool gone = false;

	if (!search)
		return;
	search->tables = tables;
	search->pid = question->pid;
	search->root = (struct symbol_root){ .open_file = open_for_symbols, .context = search };
	search->search = (struct symbol_search){ .roots = &search->root,
		.root_count = 1,
		.dirs = (const char *const *)tables->symbol_paths,
		.dir_count = tables->symbol_path_count,
		.dir_root = { .open_file = open_for_user },
		.store = { .open_file = open_from_cache, .context = tables } };
	for (int place = 0; place < FILE_PLACE_COUNT && !image->file; place++) {
		int fd = open_mapped_file(tables, question, (enum file_place)place, &gone);
		if (fd < 0 || symbol_file_open(fd, question->path, &search->search, &image->file,
				      &quiet) < 0)
			continue; /* no symbols: names show offsets */
		/* Another file has replaced the mapped one at that path. */
		if (!is_same_image(question, symbol_file_elf(image->file))) {
			symbol_file_close(image->file);
			image->file = NULL;
		}
	}
	image->search = search;
	if (image->file)
		return;
	drop_tables(image);
	if (!gone)
		image->tries = OPEN_TRIES_MAX;
}

static void open_r2r(struct name_tables *tables, struct image_tables *image,
	const struct name_question *question)
{
	struct diag quiet = { 0 };
	bool gone = false;

	for (int place = 0; place < FILE_PLACE_COUNT && !image->r2r; place++) {
		int fd = open_mapped_file(tables, question, (enum file_place)place, &gone);
		if (fd >= 0)
			/* no methods: names show offsets */
			(void)r2r_open(fd, &image->r2r, &quiet);
	}
	if (!image->r2r && !gone)
		image->tries = OPEN_TRIES_MAX;
}

static struct image_tables *image_of(struct name_tables *tables,
	const struct name_question *question)
{
	while (tables->images.count <= question->image)
		if (!vec_push(&tables->images))
			return NULL;
	struct image_tables *image = &tables->images.items[question->image];

	image->tick = ++tables->tick;
	if (!image->file && !image->r2r && is_to_be_tried(image, question)) {
		if (question->kind == ASK_SYMBOL)
			open_image(tables, image, question);
		else
			open_r2r(tables, image, question);
	}
	return image;
}

static void give_facts(struct name_answer *answer, const struct elf *elf)
{
	struct name_facts *facts = calloc(1, sizeof(*facts));

	if (!facts)
		return;
	facts->text_vaddr = elf->text_vaddr;
	facts->text_offset = elf->text_offset;
	elf_build_id_text(elf, facts->build_id);
	memcpy(facts->debug_link, elf->debug_link, sizeof(facts->debug_link));
	answer->facts = facts;
}

static void answer_symbol(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	const struct image_tables *image = image_of(tables, question);
	struct symbol_hit symbol;

	answer->error = image && image->file ? 0 : -ENOENT;
	if (answer->error)
		return;
	if (question->wants_facts)
		give_facts(answer, symbol_file_elf(image->file));
	bool named = symbol_file_find_offset(image->file, question->place, &symbol);
	answer->bounds_only =
		!named && symbol_file_find_bounds(image->file, question->place, &symbol);
	if (named || answer->bounds_only) {
		answer->begin = symbol.begin_offset;
		answer->size_bytes = symbol.end_vaddr - symbol.begin_vaddr;
		if (!demangle(symbol.name, symbol.name_len, &text))
			bytes_add(&text, symbol.name, symbol.name_len);
		take_name(answer, &text);
	}
	bound_images(tables, IMAGE_BYTES_MAX); /* the lookup may have loaded more tables */
}

static void answer_method(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	const struct image_tables *image = image_of(tables, question);
	struct r2r_hit method;

	answer->error = image && image->r2r ? 0 : -ENOENT;
	if (answer->error)
		return;
	if (r2r_find_offset(image->r2r, question->place, &method)) {
		answer->begin = method.begin_offset;
		answer->size_bytes = method.end_rva - method.begin_rva;
		bytes_add(&text, method.name, method.name_len);
		take_name(answer, &text);
	}
	bound_images(tables, IMAGE_BYTES_MAX);
}

/* ---- files that other runtimes (and .NET, if its environment enables it) write for perf ---- */

static void answer_maps(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer)
{
	struct target_root root = { .fd = -1 };
	struct diag quiet = { 0 };
	char path[64];
	uint64_t size;
	int fd;

	answer->error = question->ended ? -ESRCH : target_root_open(&root, question->pid, &quiet);
	if (answer->error < 0)
		return;
	answer->codemap = calloc(1, sizeof(*answer->codemap));
	for (size_t i = 0; answer->codemap && i < 2; i++) {
		struct input in;
		quiet = (struct diag){ 0 };
		text_set(path, i == 0 ? "/tmp/perf-%u.map" : "/tmp/jit-%u.dump",
			question->inner_pid ? question->inner_pid : question->pid);
		if (take_note(tables, target_root_open_word(&root, path, MAP_FILE_SIZE_MAX, &fd,
					      &size, &quiet)) < 0)
			continue;
		if (input_from_fd(&in, fd, path) < 0)
			continue;
		if (i == 0)
			/* the entries before an error are used */
			(void)perf_map_read(&in, answer->codemap, &quiet);
		else
			(void)jitdump_read(&in, answer->codemap, NULL, &quiet); /* as above */
		input_close(&in);
	}
	answer->found = answer->codemap && answer->codemap->codes.count;
	target_root_close(&root);
}

void name_tables_answer(struct name_tables *tables, const struct name_question *question,
	struct name_answer *answer)
{
	*answer = (struct name_answer){
		.kind = question->kind, .image = question->image, .place = question->place
	};
	tables->skipped = false;
	switch (question->kind) {
	case ASK_SYMBOL:
		answer_symbol(tables, question, answer);
		break;
	case ASK_METHOD:
		answer_method(tables, question, answer);
		break;
	case ASK_MAPS:
		answer_maps(tables, question, answer);
		break;
	case ASK_KERNEL:
		answer_kernel(tables, answer);
		break;
	}
	answer->skipped = tables->skipped;
}

void name_tables_make_room(struct name_tables *tables)
{
	bound_images(tables, IMAGE_BYTES_LEAST);
}

uint64_t name_tables_size_bytes(const struct name_tables *tables)
{
	uint64_t total = tables->images.capacity * sizeof(struct image_tables);

	for (uint32_t i = 0; i < tables->images.count; i++)
		total += image_size_bytes(&tables->images.items[i]);
	return total + (tables->kernel ? kallsyms_size_bytes(tables->kernel) : 0);
}

void name_tables_free(struct name_tables *tables)
{
	if (!tables)
		return;
	for (uint32_t i = 0; i < tables->images.count; i++)
		drop_tables(&tables->images.items[i]);
	vec_done(&tables->images);
	for (size_t i = 0; tables->symbol_paths && i < tables->symbol_path_count; i++)
		free(tables->symbol_paths[i]);
	free(tables->symbol_paths);
	symbol_cache_close(&tables->cache);
	kallsyms_free(tables->kernel);
	if (tables->kernel_data)
		/* cannot fail for a mapped range */
		(void)munmap(tables->kernel_data, tables->kernel_data_size);
	free(tables);
}

struct name_question *name_question_copy(const struct name_question *question)
{
	struct name_question *copy = malloc(sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *question;
	copy->next = NULL;
	copy->path = question->path ? strdup(question->path) : NULL;
	copy->build_id = question->build_id ? strdup(question->build_id) : NULL;
	if (!copy->path == !question->path && !copy->build_id == !question->build_id)
		return copy;
	name_question_free(copy);
	return NULL;
}

void name_question_free(struct name_question *question)
{
	if (!question)
		return;
	free(question->path);
	free(question->build_id);
	free(question);
}

void name_answer_free(struct name_answer *answer)
{
	if (!answer)
		return;
	if (answer->codemap)
		codemap_done(answer->codemap);
	free(answer->codemap);
	free(answer->facts);
	free(answer->name);
	name_question_free(answer->question);
	free(answer);
}
