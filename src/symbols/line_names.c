/* See line_names.h. */
#include "symbols/line_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "code/debug_file.h"
#include "code/source_lines.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "symbolize/symbol_cache.h"
#include "trace/event.h"
#include "trace/symbolmap.h"
#include "trace/trace.h"

bool line_names_add(struct line_names *lines, uint32_t process, uint32_t stack, uint32_t epoch)
{
	uint64_t hash = hash_u64((uint64_t)process << 32 | stack) + epoch;

	if (!stack)
		return true;
	for (struct map_walk w = map_find(&lines->stack_index, hash); w.value; map_next(&w)) {
		const struct line_stack *known = &lines->stacks.items[w.value - 1];
		if (known->process == process && known->stack == stack && known->epoch == epoch)
			return true;
	}
	return vec_add(&lines->stacks, ((struct line_stack){ process, stack, epoch })) &&
	       map_add(&lines->stack_index, hash, lines->stacks.count);
}

int line_names_event(void *context, const struct event *event)
{
	struct line_names *lines = context;
	const struct trace *trace = lines->trace;

	if (!event->stack_index || event->thread_index >= trace->threads.count)
		return 0;
	uint32_t process = trace->threads.items[event->thread_index].process;
	return line_names_add(lines, process, event->stack_index,
		       trace->processes.items[process].code_epoch)
		       ? 0
		       : -ENOMEM;
}

/* ---- addresses without lines ---- */

static bool add_address(struct line_names *lines, const struct symbolmap *names,
	const struct line_stack *stack, uint64_t address, bool caller)
{
	struct trace *trace = lines->trace;
	struct line_missing missing = { .process = stack->process };
	uint64_t key = hash_u64(address ^ hash_u64((uint64_t)stack->process << 33 ^
						   (uint64_t)stack->epoch << 1 ^ caller));
	uint32_t count;

	if (map_get(&lines->seen, key))
		return true;
	if (!map_add(&lines->seen, key, 1))
		return false;
	if (!symbolmap_place(names, stack->process, address, stack->epoch, caller, &missing.place,
		    &missing.mapping, &missing.code) ||
		line_table_find(&trace->lines, &missing.place, &count))
		return true;
	const struct mapping *mapping = &trace->mappings.items[missing.mapping];
	if (!missing.code) {
		missing.image = mapping->build_id;
		missing.vaddr = missing.place.offset + mapping->file_offset - mapping->text_offset +
				mapping->text_vaddr;
	}
	return vec_add(&lines->missing, missing);
}

static int find_missing(struct line_names *lines, const struct symbolmap *names)
{
	vec_each(stack, &lines->stacks) {
		uint32_t count;
		const uint64_t *frames =
			stack_table_get(&lines->trace->stacks, stack->stack, &count);
		for (uint32_t f = 0; f < count; f++)
			if (!add_address(lines, names, stack, frames[f], f > 0))
				return -ENOMEM;
	}
	return 0;
}

static int compare_missing(const void *left, const void *right)
{
	const struct line_missing *a = left;
	const struct line_missing *b = right;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->place.mapping_id < b->place.mapping_id   ? -1
	       : a->place.mapping_id > b->place.mapping_id ? 1
							   : 0;
}

/* ---- the debug file of an image ---- */

/* The file with the lines of one image. */
struct debug_file {
	int fd;
	struct image_file file;
	struct elf elf;
	struct source_lines *lines; /* NULL: none yet */
	struct strtab *strings;
	const char *build_id;
	uint64_t text_vaddr;
	int error;
};

/* Takes ownership of fd. True: it has the lines of the image that the recording has. */
static bool take_file(void *context, int opened, const struct elf *unused)
{
	cleanup(closep) int fd = opened;
	struct debug_file *debug = context;
	char build_id[BUILD_ID_TEXT_SIZE];

	(void)unused; /* read again: the caller's ends with the call */
	if (fd < 0 || image_file_from_fd(&debug->file, fd, NULL) < 0)
		return false;
	if (elf_read(&debug->elf, &debug->file, NULL) < 0)
		return false;
	elf_build_id_text(&debug->elf, build_id);
	if (strcmp(build_id, debug->build_id) == 0 && debug->elf.text_vaddr == debug->text_vaddr)
		debug->error =
			source_lines_open(&debug->file, &debug->elf, debug->strings, &debug->lines);
	if (!debug->lines) {
		elf_done(&debug->elf);
		return false;
	}
	debug->fd = TAKE_FD(fd);
	return true;
}

static int open_here(void *context, const char *path)
{
	(void)context;
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The image itself, at the path that it had, or the debug file that belongs to it. */
static bool take_image(struct debug_file *debug, const char *path)
{
	const struct symbol_root root = { .open_file = open_here };
	const struct symbol_search search = { .roots = &root, .root_count = 1 };
	char build_id[BUILD_ID_TEXT_SIZE];
	struct image_file file;
	struct elf elf;
	cleanup(closep) int fd = *path == '/' ? open_here(NULL, path) : -1;

	if (fd < 0 || image_file_from_fd(&file, fd, NULL) < 0 || elf_read(&elf, &file, NULL) < 0)
		return false;
	elf_build_id_text(&elf, build_id);
	bool taken = false;
	if (strcmp(build_id, debug->build_id) == 0)
		taken = take_file(debug, dup(fd), NULL) ||
			debug_file_find(&elf, path, &search, take_file, debug);
	elf_done(&elf);
	return taken;
}

static bool open_debug_file(struct debug_file *debug, const char *path,
	const struct symbol_cache *cache)
{
	int fd;

	return (symbol_cache_find(cache, debug->build_id, &fd) == 0 &&
		       take_file(debug, fd, NULL)) ||
	       take_image(debug, path);
}

static void close_debug_file(struct debug_file *debug)
{
	if (!debug->lines)
		return;
	source_lines_close(debug->lines);
	elf_done(&debug->elf);
	closep(&debug->fd);
}

/* ---- lines ---- */

static int add_lines(struct line_names *lines, const struct debug_file *debug,
	const struct source_query *query, const struct line_place *place)
{
	VEC(struct line_frame) frames = { 0 };
	bool known = false;
	bool done = true;

	for (uint32_t i = 0; i < query->frame_count && done; i++) {
		const struct source_frame *frame =
			source_lines_frame(debug->lines, query->frame_at + i);
		known |= frame->line != 0 || frame->function;
		done = vec_add(&frames,
			((struct line_frame){ frame->function, frame->file, frame->line }));
	}
	if (done && known) {
		done = line_table_add(&lines->trace->lines, place, frames.items, frames.count);
		lines->answered++;
	}
	vec_done(&frames);
	return done ? 0 : -ENOMEM;
}

/* The lines of the image that missing.items[at] is in; `count` addresses. */
static int find_in_image(struct line_names *lines, uint32_t at, uint32_t count,
	const struct symbol_cache *cache)
{
	const struct line_missing *first = &lines->missing.items[at];
	const struct mapping *mapping = &lines->trace->mappings.items[first->mapping];
	/* Texts move when others are added, so the build id is copied. */
	char build_id[BUILD_ID_TEXT_SIZE] = "";
	struct debug_file debug = { .fd = -1,
		.strings = &lines->trace->strings,
		.build_id = build_id,
		.text_vaddr = mapping->text_vaddr };
	struct source_query *queries = calloc((size_t)count + 1, sizeof(*queries));
	int result = queries ? 0 : -ENOMEM;

	(void)strncat(build_id, trace_text(lines->trace, first->image), sizeof(build_id) - 1);
	lines->image_count++;
	if (result == 0 &&
		!open_debug_file(&debug, trace_text(lines->trace, mapping->path), cache)) {
		lines->without++;
		if (!lines->first_without)
			lines->first_without = mapping->path;
		result = debug.error == -ENOMEM ? -ENOMEM : 0;
		free(queries);
		return result;
	}
	for (uint32_t i = 0; i < count && result == 0; i++)
		queries[i].vaddr = lines->missing.items[at + i].vaddr;
	if (result == 0)
		result = source_lines_find(debug.lines, queries, count);
	for (uint32_t i = 0; i < count && result == 0; i++)
		result = add_lines(lines, &debug, &queries[i], &lines->missing.items[at + i].place);
	close_debug_file(&debug);
	free(queries);
	return result;
}

int line_names_find(struct line_names *lines, const struct symbolmap *names,
	const struct symbol_cache *cache)
{
	int result = find_missing(lines, names);

	lines->first = lines->trace->lines.entries.count;
	lines->asked = lines->missing.count;
	if (lines->missing.count > 1)
		qsort(lines->missing.items, lines->missing.count, sizeof(*lines->missing.items),
			compare_missing);
	for (uint32_t i = 0; i < lines->missing.count && result == 0;) {
		uint32_t image = lines->missing.items[i].image;
		uint32_t count = 0;
		while (i + count < lines->missing.count &&
			lines->missing.items[i + count].image == image)
			count++;
		if (image)
			result = find_in_image(lines, i, count, cache);
		i += count;
	}
	return result;
}

void line_names_done(struct line_names *lines)
{
	vec_done(&lines->stacks);
	map_done(&lines->stack_index);
	vec_done(&lines->missing);
	map_done(&lines->seen);
}
