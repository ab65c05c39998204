/* See live_usdt.h. */
#include "recording/live_usdt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "image/usdt_notes.h"
#include "machine/rights.h"
#include "machine/target_root.h"
#include "perf/child.h"
#include "perf/perf_record.h"
#include "perf/usdt_probe.h"
#include "pipeline/reorder_window.h"
#include "pipeline/session_writer.h"
#include "recording/event_patterns.h"
#include "recording/live_options.h"
#include "recording/process_table.h"
#include "trace/trace.h"

#define LOOK_NS     UINT64_C(20000000) /* new images are probed within this and a turn of the session */
#define GROWING_MAX 4096u
#define FOUND_MAX   4096u /* new files of one process that are opened in one turn */
#define TRIES_MAX   50u
#define PATHS_MAX   4096u /* new paths of images in one turn */

int live_usdt_check(const char *const *patterns, bool threads, struct diag *diag)
{
	if (threads && patterns)
		return diag_set(diag, -EINVAL,
			"--usdt records the probes of processes, not of single threads (-t)");
	return event_patterns_check(patterns, "--usdt", "probes", "PROBE", diag);
}

/* ---- images ---- */

static void note_refusals(struct live_usdt *usdt, uint32_t count, int error)
{
	usdt->refused += count;
	if (count)
		usdt->refused_error = error;
}

/* Probes the notes of the image from `first` on; returns their number. */
static uint32_t read_image(struct live_usdt *usdt, int fd, uint32_t first)
{
	struct image_file file;
	struct usdt_notes notes;
	struct elf elf;

	if (image_file_from_fd(&file, fd, NULL) < 0 || elf_read(&elf, &file, NULL) < 0)
		return first; /* data, or an image that is damaged or still being written */
	if (usdt_notes_read(&elf, &file, &notes) < 0)
		notes = (struct usdt_notes){ .data = NULL };
	for (uint32_t i = first; i < notes.items.count; i++) {
		const struct usdt_note *note = &notes.items.items[i];
		if (!event_patterns_have(usdt->table->options->usdt, note->provider, note->name))
			continue;
		int result = usdt_sites_add(&usdt->sites, &elf, &file, note);
		if (result < 0)
			note_refusals(usdt, 1, result);
	}
	int error = 0;
	uint32_t refused = usdt_sites_attach(&usdt->sites, fd, &error);
	note_refusals(usdt, refused, error);
	uint32_t count = notes.items.count;

	usdt_notes_done(&notes);
	elf_done(&elf);
	return count > first ? count : first;
}

/* Takes ownership of the descriptor. */
static void take_image(struct live_usdt *usdt, int own_fd, bool grows)
{
	cleanup(closep) int fd = own_fd;
	struct stat status;
	struct usdt_file file = { .fd = fd };

	if (fstat(fd, &status) < 0)
		return;
	/* The size is taken before the file is read: the next look finds notes that are added meanwhile. */
	file.size_bytes = (uint64_t)status.st_size;
	file.note_count = read_image(usdt, fd, 0);
	if (grows && usdt->growing.count < GROWING_MAX && vec_add(&usdt->growing, file))
		fd = -1;
}

static void read_growth(struct live_usdt *usdt)
{
	vec_each(file, &usdt->growing) {
		struct stat status;
		if (fstat(file->fd, &status) < 0 || (uint64_t)status.st_size == file->size_bytes)
			continue;
		file->size_bytes = (uint64_t)status.st_size;
		file->note_count = read_image(usdt, file->fd, file->note_count);
	}
}

/* ---- processes ---- */

struct found_file {
	uint64_t begin;
	uint64_t end;
	uint64_t key;
	uint32_t path; /* in found_files.paths */
	bool grows;
};

struct found_files {
	struct live_usdt *usdt;
	VEC(struct found_file) items;
	struct bytes paths;
	bool has_memory;
};

static uint64_t file_key(uint64_t device_major, uint64_t device_minor, uint64_t inode)
{
	return hash_u64(inode ^ hash_u64(device_major << 32 | device_minor));
}

static int note_mapping(void *user, const struct proc_mapping *mapping)
{
	struct found_files *found = user;

	found->has_memory = true;
	uint64_t key = file_key(mapping->device_major, mapping->device_minor, mapping->inode);

	if (!mapping->inode || found->items.count == FOUND_MAX || map_get(&found->usdt->seen, key))
		return 0;
	struct found_file file = { .begin = mapping->begin,
		.key = key,
		.end = mapping->end,
		.path = (uint32_t)found->paths.len,
		/* as libspoor names them */
		.grows = strstr(mapping->path, "spoor-usdt") != NULL };

	bytes_add(&found->paths, mapping->path, mapping->path_len + 1);
	return vec_add(&found->items, file) && !found->paths.failed ? 0 : -ENOMEM;
}

enum usdt_reading {
	USDT_READING_COMPLETE,
	USDT_READING_CHANGED, /* a mapping had changed before its file could be opened, as while a program is being loaded */
	USDT_READING_ENDED, /* the process has ended */
};

static enum usdt_reading read_process(struct live_usdt *usdt, uint32_t pid)
{
	struct found_files found = { .usdt = usdt };
	enum usdt_reading reading = USDT_READING_COMPLETE;

	/* A process that is ending has no mappings any more. */
	if (proc_read_maps(&usdt->table->proc, pid, note_mapping, &found) < 0 || !found.has_memory)
		reading = USDT_READING_ENDED;
	vec_each(file, &found.items) {
		const char *path = (const char *)found.paths.data + file->path;
		uint64_t size;
		int fd;
		if (map_get(&usdt->seen, file->key))
			continue; /* a second mapping of it */
		int result = target_image_open(pid, file->begin, file->end, IMAGE_SIZE_MAX, &fd,
			&size, NULL);
		if ((result == -EPERM || result == -EACCES) && path[0] == '/')
			result = target_file_open(pid, path, IMAGE_SIZE_MAX, &fd, &size, NULL);
		if (result == -ENOENT) {
			reading = USDT_READING_CHANGED;
			continue;
		}
		/* without memory it is read again with the next process */
		(void)map_put(&usdt->seen, file->key, 1);
		if (result == 0)
			take_image(usdt, fd, file->grows);
	}
	vec_done(&found.items);
	bytes_done(&found.paths);
	return reading;
}

/*
 * The file of a process that has ended: it is the next one's. Its path is as that process saw it, so
 * at worst another file is probed, which has probes of these names too.
 */
static void read_path(struct live_usdt *usdt, uint32_t path_index)
{
	const char *path = strtab_get(&usdt->table->trace->strings, path_index);
	struct stat status;
	uint64_t size;
	int fd;

	/* "[vdso]", "//anon", and memory, which has probes if it is an image of libspoor */
	if (path[0] != '/' || path[1] == '/' ||
		(strncmp(path, "/memfd:", 7) == 0 && !strstr(path, "spoor-usdt")))
		return;
	if (target_file_open(0, path, IMAGE_SIZE_MAX, &fd, &size, NULL) < 0) {
		usdt->missed_files++;
		return;
	}
	uint64_t key = fstat(fd, &status) < 0 ? 0
					      : file_key(major(status.st_dev), minor(status.st_dev),
							status.st_ino);
	if (!key || map_get(&usdt->seen, key)) {
		(void)close(fd); /* it was only read */
		return;
	}
	/* without memory it is probed twice */
	(void)map_put(&usdt->seen, key, 1);
	uint32_t before = usdt->sites.rows.count;
	take_image(usdt, fd, false);
	usdt->late_files += usdt->sites.rows.count > before;
}

/* Reads the command's file, which it maps only at its exec: later, its first events would be missed. */
static void read_command(struct live_usdt *usdt)
{
	const struct live_options *options = usdt->table->options;
	cleanup(freep) char *path = NULL;
	struct stat status;
	uint64_t size;
	int fd;

	if (!options->child || !options->child->waits || options->machine || options->pid_count)
		return;
	/* The user names the file: it is opened with the user's own rights. */
	uint64_t before = rights_lower();
	path = record_child_path(options->child);
	int result = path ? target_file_open(0, path, IMAGE_SIZE_MAX, &fd, &size, NULL) : -ENOENT;

	rights_restore(before);
	if (result == 0) {
		bool known = fstat(fd, &status) == 0;
		take_image(usdt, fd, false);
		if (known)
			/* without memory it is probed twice */
			(void)map_put(&usdt->seen,
				file_key(major(status.st_dev), minor(status.st_dev), status.st_ino),
				1);
	}
}

void live_usdt_start(struct live_usdt *usdt, struct process_table *table, struct usdt_probe *probe)
{
	const struct trace *trace = table->trace;

	usdt->table = table;
	usdt_sites_init(&usdt->sites, probe, table->trace);
	read_command(usdt);
	if (table->command_pid)
		(void)map_put(&usdt->recorded, table->command_pid, 1); /* as below */
	for (uint32_t i = 1; i < table->rows.count; i++) {
		uint32_t pid = trace->processes.items[i].pid;
		if (trace->processes.items[i].ended || i == table->writer->recorder_process ||
			!(table->options->machine || table->rows.items[i].wanted))
			continue;
		/* without memory its later images have no probes */
		(void)map_put(&usdt->recorded, pid, 1);
		live_usdt_note(usdt, pid, 0);
	}
	live_usdt_look(usdt, UINT64_MAX);
}

void live_usdt_note(struct live_usdt *usdt, uint32_t pid, uint32_t path)
{
	struct usdt_process process = { .pid = pid };
	const struct usdt_path file = { .pid = pid, .path = path };

	if (!usdt->table || (!usdt->table->options->machine && !map_get(&usdt->recorded, pid)))
		return;
	/* without memory the file is found by its next process */
	if (path && usdt->paths.count < PATHS_MAX && !map_get(&usdt->known_paths, path) &&
		vec_add(&usdt->paths, file))
		(void)map_put(&usdt->known_paths, path, 1);
	/* A starting process reports its mappings one after the other. */
	for (uint32_t i = usdt->processes.count; i-- > 0 && i + 8 > usdt->processes.count;)
		if (usdt->processes.items[i].pid == pid)
			return;
	(void)vec_add(&usdt->processes, process); /* without memory its next mapping tries again */
}

void live_usdt_fork(struct live_usdt *usdt, uint32_t parent_pid, uint32_t pid)
{
	if (usdt->table && pid != parent_pid && map_get(&usdt->recorded, parent_pid))
		(void)map_put(&usdt->recorded, pid, 1); /* as in live_usdt_start() */
}

void live_usdt_exit(struct live_usdt *usdt, uint32_t pid)
{
	map_remove(&usdt->recorded, pid, 1);
}

void live_usdt_await(const struct live_usdt *usdt, struct poll_set *set)
{
	if (usdt->table)
		poll_set_wake(set, usdt->looked_ns + LOOK_NS);
}

void live_usdt_look(struct live_usdt *usdt, uint64_t now_ns)
{
	if (!usdt->table || now_ns < usdt->looked_ns + LOOK_NS)
		return;
	usdt->looked_ns = now_ns == UINT64_MAX ? 0 : now_ns;
	uint32_t again = 0;

	for (uint32_t i = 0; i < usdt->processes.count; i++) {
		struct usdt_process process = usdt->processes.items[i];
		enum usdt_reading reading = read_process(usdt, process.pid);
		if (reading == USDT_READING_CHANGED && ++process.tries < TRIES_MAX)
			usdt->processes.items[again++] = process;
		if (reading != USDT_READING_ENDED)
			continue;
		vec_each(file, &usdt->paths)
			if (file->pid == process.pid)
				read_path(usdt, file->path);
	}
	usdt->processes.count = again;
	if (!again)
		vec_reset(&usdt->paths);
	read_growth(usdt);
}

/* ---- events ---- */

bool live_usdt_is_hit(const struct perf_record *record)
{
	struct usdt_hit hit;

	return usdt_hit_read(record->raw, record->raw_size, &hit);
}

bool live_usdt_take(struct live_usdt *usdt, const struct perf_record *record, uint32_t stack_index)
{
	uint32_t schema_index;
	unsigned unreadable;

	const struct usdt_raw raw = { .bytes = record->raw,
		.size = record->raw_size,
		.pid = record->pid,
		.time_ns = record->time_ns };

	bytes_reset(&usdt->payload);
	if (!usdt_sites_decode(&usdt->sites, &raw, &usdt->payload, &schema_index, &unreadable))
		return false;
	const struct hit_event event = { .schema_index = schema_index,
		.payload = usdt->payload.data,
		.payload_size = (uint32_t)usdt->payload.len };
	struct pending *item = NULL;

	if (usdt->payload.failed)
		usdt->hits.memory_lost++;
	else
		item = hits_put(&usdt->hits, usdt->table->writer->window, PENDING_USDT, record,
			stack_index, &event);
	if (item)
		item->value = unreadable;
	return true;
}

void live_usdt_write(struct live_usdt *usdt, const struct pending *item, uint64_t late_ns)
{
	if (hits_write(&usdt->hits, usdt->table, item, late_ns))
		usdt->unreadable += item->value;
}

uint64_t live_usdt_lost(const struct live_usdt *usdt)
{
	return usdt->table ? usdt_probe_lost(usdt->sites.probe) + hits_lost(&usdt->hits) : 0;
}

void live_usdt_tell(struct live_usdt *usdt)
{
	struct session_writer *writer = usdt->table ? usdt->table->writer : NULL;

	if (!writer)
		return;
	if (usdt->refused)
		session_writer_notice(writer, 0, NOTICE_USDT, "", "%s could not be probed: %s",
			TEXT_THINGS(usdt->refused, "USDT probe", "USDT probes"),
			strerror(-usdt->refused_error));
	if (!usdt->sites.rows.count)
		session_writer_notice(writer, 0, NOTICE_USDT,
			"'readelf -n FILE' lists the probes of a program or library",
			usdt->missed_files
				? "no image that could be read had a USDT probe that --usdt names"
				: "no image of the recorded processes had a USDT probe that --usdt names");
	if (usdt->late_files || usdt->missed_files)
		session_writer_notice(writer, 0, NOTICE_USDT, "",
			"processes ended before %s could be read: their USDT probes are missing%s",
			TEXT_THINGS(usdt->late_files + usdt->missed_files, "image", "images"),
			usdt->late_files ? ", and were set for the next processes" : "");
	if (usdt->unreadable)
		session_writer_notice(writer, 0, NOTICE_USDT_ARGUMENTS, "",
			"%s could not be read: the field 'unreadable' of their events names them",
			TEXT_THINGS(usdt->unreadable, "argument of USDT probes",
				"arguments of USDT probes"));
}

void live_usdt_done(struct live_usdt *usdt)
{
	vec_each(file, &usdt->growing)
		closep(&file->fd);
	vec_done(&usdt->growing);
	vec_done(&usdt->processes);
	vec_done(&usdt->paths);
	map_done(&usdt->known_paths);
	map_done(&usdt->recorded);
	map_done(&usdt->seen);
	bytes_done(&usdt->payload);
	usdt_sites_done(&usdt->sites);
}
