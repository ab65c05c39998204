/*
 * The ranges of generated code, sorted by address; no two overlap. A removed range stays until
 * another one takes its place, so that the rundown can name earlier samples in it. When removed
 * ranges fill half of the room, all of them are freed.
 */
#include "lib/code/code.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/code/code_dump.h"
#include "lib/code/method_payload.h"
#include "lib/event/provider.h"
#include "lib/sink/code_hits.h"

static pthread_mutex_t code_lock = PTHREAD_MUTEX_INITIALIZER;
static struct announced_code *ranges;
static size_t range_count;
static size_t range_room;
static size_t removed_count;
static uint64_t range_births;

static struct spoor_provider runtime_provider;
static struct spoor_event method_load = { .size = sizeof(struct spoor_event),
	.provider = &runtime_provider,
	.name = "MethodLoadVerbose",
	.keywords = 0x30,
	.fields = method_fields,
	.field_count = METHOD_FIELDS,
	.id = 143,
	.version = 1,
	.level = SPOOR_VERBOSE,
	.flags = SPOOR_EVENT_WELL_KNOWN };
static struct spoor_event method_unload = { .size = sizeof(struct spoor_event),
	.provider = &runtime_provider,
	.name = "MethodUnloadVerbose",
	.keywords = 0x30,
	.fields = method_fields,
	.field_count = METHOD_FIELDS,
	.id = 144,
	.version = 1,
	.level = SPOOR_INFO,
	.flags = SPOOR_EVENT_WELL_KNOWN };
static struct spoor_event *const runtime_events[] = { &method_load, &method_unload };

void code_range_done(struct announced_code *range)
{
	free(range->name);
	free(range->module);
	free(range->signature);
	free(range->lines);
	*range = (struct announced_code){ 0 };
}

static char *code_text(const char *text, const char *otherwise)
{
	return strndup(text ? text : otherwise, CODE_NAME_MAX);
}

/* Index of the first range that ends after `address`. The lock is held. */
static size_t code_place(uint64_t address)
{
	size_t low = 0, high = range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges[middle].begin + ranges[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void code_tell(struct spoor_event *event, const struct announced_code *range)
{
	struct outbuf out = { 0 };

	if (!spoor_event_enabled(event))
		return;
	method_payload(&out, range->id, 1, range->begin, range->size, range->name,
		range->signature);
	if (!out.failed)
		spoor_fire(event, out.data, out.size);
	outbuf_done(&out);
}

/* Removes what overlaps [begin, end) from the table. The lock is held. Returns its index. */
static size_t code_clear(uint64_t begin, uint64_t end)
{
	size_t first = code_place(begin), last = first;

	while (last < range_count && ranges[last].begin < end) {
		if (ranges[last].removed)
			removed_count--;
		else
			code_tell(&method_unload, &ranges[last]);
		code_range_done(&ranges[last++]);
	}
	if (last > first) {
		memmove(ranges + first, ranges + last, (range_count - last) * sizeof(*ranges));
		range_count -= last - first;
	}
	return first;
}

static void code_sweep(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < range_count; i++) {
		if (ranges[i].removed)
			code_range_done(&ranges[i]);
		else
			ranges[kept++] = ranges[i];
	}
	range_count = kept;
	removed_count = 0;
}

/* Inserts a range. The lock is held. */
static int code_insert(struct announced_code *range)
{
	if (removed_count >= CODE_MAX / 2)
		code_sweep();
	size_t at = code_clear(range->begin, range->begin + range->size);
	if (range_count >= CODE_MAX)
		return -ENOSPC;
	if (range_count == range_room) {
		size_t room = range_room ? range_room * 2 : 256;
		struct announced_code *grown = realloc(ranges, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		ranges = grown;
		range_room = room;
	}
	memmove(ranges + at + 1, ranges + at, (range_count - at) * sizeof(*ranges));
	ranges[at] = *range;
	range_count++;
	code_tell(&method_load, &ranges[at]);
	return 0;
}

/*
 * Copies lines and their texts into one block; an entry without a file has that of the previous
 * one. NULL: no lines, or no memory.
 */
static struct code_lines *code_lines_copy(const struct spoor_code_line *lines, size_t count)
{
	size_t bytes = 1;

	if (!lines || count == 0)
		return NULL;
	if (count > CODE_LINES_MAX)
		count = CODE_LINES_MAX;
	for (size_t i = 0; i < count; i++)
		bytes += lines[i].file ? strnlen(lines[i].file, CODE_NAME_MAX) + 1 : 0;
	struct code_lines *copy = malloc(sizeof(*copy) + count * sizeof(copy->line[0]) + bytes);
	if (!copy)
		return NULL;
	char *to = (char *)&copy->line[count];
	const char *file = to;
	*to++ = '\0';
	copy->count = (uint32_t)count;
	for (size_t i = 0; i < count; i++) {
		if (lines[i].file) {
			size_t length = strnlen(lines[i].file, CODE_NAME_MAX);
			file = memcpy(to, lines[i].file, length);
			to[length] = '\0';
			to += length + 1;
		}
		copy->line[i] = (struct spoor_code_line){
			.offset = lines[i].offset, .line = lines[i].line, .file = file
		};
	}
	return copy;
}

int spoor_code_add(const void *address, size_t size, const char *name,
	const struct spoor_code_options *options)
{
	struct spoor_code_options given = { 0 };
	uint64_t begin = (uintptr_t)address;

	if (options)
		memcpy(&given, options,
			options->size < sizeof(given) ? options->size : sizeof(given));
	if (!address || !size || !name || !*name || size > UINT64_MAX - begin)
		return -EINVAL;
	struct announced_code range = {
		.begin = begin,
		.size = size,
		.name = code_text(name, ""),
		.module = code_text(given.module, "generated"),
		.signature = code_text(given.signature, ""),
		.lines = code_lines_copy(given.lines, given.line_count),
	};
	int error = -ENOMEM;
	(void)pthread_mutex_lock(&code_lock);
	if (range.name && range.module && range.signature) {
		range.id = ++range_births;
		error = code_insert(&range);
	}
	if (!error)
		code_dump_add(&range, code_dump_files());
	(void)pthread_mutex_unlock(&code_lock);
	if (error)
		code_range_done(&range);
	return error;
}

/* The range in use that begins at this address. The lock is held. */
static struct announced_code *code_at(const void *address)
{
	uint64_t begin = (uintptr_t)address;
	size_t at = code_place(begin);

	return at < range_count && ranges[at].begin == begin && !ranges[at].removed ? &ranges[at]
										    : NULL;
}

int spoor_code_move(const void *from, const void *to)
{
	int error = -ENOENT;

	(void)pthread_mutex_lock(&code_lock);
	struct announced_code *range = code_at(from);
	if (range && (uintptr_t)to <= UINT64_MAX - range->size && to) {
		/* Earlier samples keep their name: the old place stays as a removed range. */
		struct announced_code moved = {
			.begin = (uintptr_t)to,
			.size = range->size,
			.id = range->id,
			.name = code_text(range->name, ""),
			.module = code_text(range->module, ""),
			.signature = code_text(range->signature, ""),
			.lines = range->lines,
		};
		if (moved.name && moved.module && moved.signature) {
			code_tell(&method_unload, range);
			range->lines = NULL;
			range->removed = true;
			removed_count++;
			error = code_insert(&moved);
		} else {
			moved.lines = NULL;
			error = -ENOMEM;
		}
		if (!error)
			code_dump_move(&moved, (uintptr_t)from);
		else
			code_range_done(&moved);
	}
	(void)pthread_mutex_unlock(&code_lock);
	return error;
}

int spoor_code_remove(const void *address)
{
	(void)pthread_mutex_lock(&code_lock);
	struct announced_code *range = code_at(address);
	if (range) {
		code_tell(&method_unload, range);
		range->removed = true;
		removed_count++;
	}
	(void)pthread_mutex_unlock(&code_lock);
	return range ? 0 : -ENOENT;
}

int spoor_code_files(uint32_t files, const char *folder)
{
	(void)pthread_mutex_lock(&code_lock);
	uint32_t before = code_dump_files();
	code_dump_close(before & ~files);
	uint32_t fresh = files & ~before;
	int error = code_dump_open(fresh, folder ? folder : "/tmp");
	fresh &= code_dump_files();
	for (size_t i = 0; fresh && i < range_count; i++)
		if (!ranges[i].removed)
			code_dump_add(&ranges[i], fresh);
	(void)pthread_mutex_unlock(&code_lock);
	return error;
}

int code_after(uint64_t address, struct announced_code *ret_range)
{
	int found = 0;

	(void)pthread_mutex_lock(&code_lock);
	size_t at = code_place(address);
	if (at < range_count) {
		*ret_range = ranges[at];
		ret_range->lines = NULL;
		ret_range->name = strdup(ranges[at].name);
		ret_range->module = strdup(ranges[at].module);
		ret_range->signature = strdup(ranges[at].signature);
		found = 1;
		if (!ret_range->name || !ret_range->module || !ret_range->signature) {
			code_range_done(ret_range);
			found = -ENOMEM;
		}
	}
	(void)pthread_mutex_unlock(&code_lock);
	return found;
}

static void code_fork_prepare(void)
{
	(void)pthread_mutex_lock(&code_lock);
}

static void code_fork_parent(void)
{
	(void)pthread_mutex_unlock(&code_lock);
}

/* The child has the same code at the same addresses. The files belong to the parent. */
static void code_fork_child(void)
{
	code_dump_forget();
	(void)pthread_mutex_unlock(&code_lock);
}

static void code_once(void)
{
	(void)pthread_atfork(code_fork_prepare, code_fork_parent, code_fork_child);
}

static int code_start(const struct spoor_options *options)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)options;
	(void)pthread_once(&once, code_once);
	runtime_provider = (struct spoor_provider){
		.size = sizeof(runtime_provider),
		.name = "Microsoft-Windows-DotNETRuntime",
		.events = runtime_events,
		.events_end = runtime_events + 2,
	};
	return registry_add_unlogged(&runtime_provider);
}

static void code_stop(void)
{
	spoor_provider_unregister(&runtime_provider);
}

const struct module code_module = {
	.name = "code",
	.start = code_start,
	.stop = code_stop,
	.child = code_hits_forget,
};
