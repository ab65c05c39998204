/*
 * See ctf_read.h. A part is one folder with its metadata; a file is one stream of it, of which one
 * packet at a time is in memory.
 */
#include "formats/ctf_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "formats/ctf_event.h"
#include "formats/ctf_losses.h"
#include "formats/ctf_metadata.h"
#include "trace/trace.h"

#define CTF_MAGIC       0xc1fc1fc1u
#define HEAD_BYTES      4096u /* enough for a packet's header and context */
#define PACKET_SIZE_MAX (256u << 20)
#define METADATA_MAX    (64u << 20)
#define FOLDER_DEPTH    8u
#define FILES_MAX       65536u

struct ctf_part {
	char *folder;
	int fd; /* of its metadata */
	struct ctf_metadata metadata;
	uint64_t shift_ns;              /* from its clock to that of the reader */
	VEC(struct ctf_layout) layouts; /* by event class */
	uint64_t slots[CTF_SLOTS_MAX];
	uint32_t tags[CTF_SLOTS_MAX];
};

enum file_state {
	FILE_WANTS_PACKET,
	FILE_HAS_EVENT, /* its header is decoded, and `time_ns` is its time */
	FILE_WAITS,     /* a whole packet, or the description of its event, is not there yet */
	FILE_ENDED,     /* of a whole trace */
};

struct ctf_file {
	struct ctf_part *part; /* borrowed */
	char *path;
	int fd;
	uint8_t state;   /* enum file_state */
	uint64_t offset; /* of the packet */
	uint64_t size;   /* of the packet */
	uint8_t *packet; /* NULL: none */
	struct ctf_decoder d;
	uint32_t stream; /* in the metadata's `streams`, which may grow */
	uint64_t stream_id;
	uint64_t event_id;
	uint64_t event_at; /* bit offset of the event's header */
	uint64_t event_clock;
	uint64_t time_ns;
	uint64_t instance_id; /* CTF_NO_NUMBER: none */
	uint64_t cpu_id;      /* CTF_NO_NUMBER: none */
	uint64_t discarded;   /* the packet's counter, until it is counted; then 0 */
	uint32_t lost_before;
	int32_t cpu;
};

struct ctf_reader {
	char *folder;
	struct trace *trace;
	enum ctf_growth growth;
	VEC(struct ctf_part *) parts;
	VEC(struct ctf_file *) files;
	struct ctf_file *current; /* has the next events up to limit_ns; NULL: to be chosen */
	uint64_t limit_ns;
	struct bytes payload;
	struct ctf_losses losses;
	void (*consumed)(const char *path, uint64_t offset, uint64_t size);
};

/* ---- files and folders ---- */

static void file_free(struct ctf_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd); /* read only */
	free(file->path);
	free(file->packet);
	free(file);
}

static void part_free(struct ctf_part *part)
{
	if (part->fd >= 0)
		(void)close(part->fd); /* read only */
	ctf_metadata_done(&part->metadata);
	vec_each(layout, &part->layouts)
		ctf_layout_done(layout);
	vec_done(&part->layouts);
	free(part->folder);
	free(part);
}

void ctf_reader_close(struct ctf_reader *reader)
{
	if (!reader)
		return;
	vec_each(file, &reader->files)
		file_free(*file);
	vec_each(part, &reader->parts)
		part_free(*part);
	vec_done(&reader->files);
	vec_done(&reader->parts);
	bytes_done(&reader->payload);
	ctf_losses_done(&reader->losses);
	free(reader->folder);
	free(reader);
}

static struct ctf_part *find_part(const struct ctf_reader *reader, const char *folder)
{
	vec_each(part, &reader->parts)
		if (strcmp((*part)->folder, folder) == 0)
			return *part;
	return NULL;
}

static bool has_file(const struct ctf_reader *reader, const char *path)
{
	vec_each(file, &reader->files)
		if (strcmp((*file)->path, path) == 0)
			return true;
	return false;
}

static int read_metadata(struct ctf_reader *reader, struct ctf_part *part, struct diag *diag)
{
	struct stat status;
	size_t at = part->metadata.file_at;

	if (fstat(part->fd, &status) < 0)
		return diag_set(diag, -errno, "cannot read '%s/metadata': %m", part->folder);
	if (status.st_size < 0 || (uint64_t)status.st_size > METADATA_MAX)
		return diag_set(diag, -EFBIG, "'%s/metadata' has more than 64 MiB", part->folder);
	size_t size = (size_t)status.st_size > at ? (size_t)status.st_size - at : 0;
	cleanup(freep) uint8_t *data = size ? malloc(size) : NULL;

	if (!size)
		return 0;
	if (!data)
		return diag_set(diag, -ENOMEM, "cannot read '%s/metadata': %m", part->folder);
	ssize_t got = pread(part->fd, data, size, (off_t)at);
	if (got < 0)
		return diag_set(diag, -errno, "cannot read '%s/metadata': %m", part->folder);
	size = (size_t)got;
	if (reader->growth == CTF_GROWING)
		size = ctf_metadata_whole(&part->metadata, data, size);
	int result = ctf_metadata_add(&part->metadata, data, size, diag);

	if (result < 0)
		diag_context(diag, "'%s'", part->folder);
	return result;
}

static int add_part(struct ctf_reader *reader, const char *folder, struct ctf_part **ret_part,
	struct diag *diag)
{
	cleanup(freep) char *path = NULL;
	struct ctf_part *part = calloc(1, sizeof(*part));

	if (!part || asprintf(&path, "%s/metadata", folder) < 0) {
		free(part);
		return diag_set(diag, -ENOMEM, "cannot read '%s': %m", folder);
	}
	part->fd = open(path, O_RDONLY | O_CLOEXEC);
	part->folder = strdup(folder);
	int result = part->fd < 0 ? diag_set(diag, -errno, "cannot open '%s': %m", path) : 0;
	if (result == 0 && (!part->folder || ctf_metadata_init(&part->metadata) < 0 ||
				   !vec_add(&reader->parts, part)))
		result = diag_set(diag, -ENOMEM, "cannot read '%s': %m", folder);
	if (result < 0) {
		part_free(part);
		return result;
	}
	*ret_part = part;
	return read_metadata(reader, part, diag);
}

static int add_file(struct ctf_reader *reader, struct ctf_part *part, const char *path,
	struct diag *diag)
{
	struct ctf_file *file = calloc(1, sizeof(*file));

	if (!file)
		return diag_set(diag, -ENOMEM, "cannot read '%s': %m", path);
	file->part = part;
	file->path = strdup(path);
	file->fd = open(path, O_RDONLY | O_CLOEXEC);
	int result = file->fd < 0 ? diag_set(diag, -errno, "cannot open '%s': %m", path) : 0;
	if (result == 0 && reader->files.count >= FILES_MAX)
		result = diag_set(diag, -EFBIG, "'%s' has too many streams", reader->folder);
	if (result == 0 && (!file->path || !vec_add(&reader->files, file)))
		result = diag_set(diag, -ENOMEM, "cannot read '%s': %m", path);
	if (result < 0)
		file_free(file);
	return result;
}

/* Finds the new files of a folder and of those below it. */
static int scan(struct ctf_reader *reader, const char *folder, unsigned depth, struct diag *diag)
{
	DIR *dir = opendir(folder);
	struct ctf_part *part = find_part(reader, folder);
	struct stat status;
	int result = 0;

	if (!dir)
		return reader->growth == CTF_GROWING || depth
			       ? 0
			       : diag_set(diag, -errno, "cannot read '%s': %m", folder);
	if (!part && fstatat(dirfd(dir), "metadata", &status, 0) == 0 && S_ISREG(status.st_mode))
		result = add_part(reader, folder, &part, diag);
	for (struct dirent *entry; result == 0 && (entry = readdir(dir));) {
		cleanup(freep) char *path = NULL;
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "metadata") == 0 ||
			fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0) {
			result = diag_set(diag, -ENOMEM, "cannot read '%s': %m", folder);
			break;
		}
		if (S_ISDIR(status.st_mode) && depth < FOLDER_DEPTH &&
			strcmp(entry->d_name, "index") != 0)
			result = scan(reader, path, depth + 1, diag);
		else if (S_ISREG(status.st_mode) && part && !has_file(reader, path))
			result = add_file(reader, part, path, diag);
	}
	(void)closedir(dir);
	return result;
}

/* ---- packets ---- */

static const struct ctf_stream_class *stream_of(const struct ctf_file *file)
{
	return &file->part->metadata.streams.items[file->stream];
}

static int damaged(const struct ctf_file *file, const char *what, struct diag *diag)
{
	return diag_set(diag, -EBADMSG, "'%s': the packet at offset %" PRIu64 " %s", file->path,
		file->offset, what);
}

/*
 * Decodes a packet's header and context from its first bytes. 1: done, 0: they refer to a stream
 * that is not described yet.
 */
static int open_packet(struct ctf_file *file, const uint8_t *data, size_t size, struct diag *diag)
{
	const struct ctf_metadata *metadata = &file->part->metadata;
	uint64_t *slots = file->part->slots;

	slots[CTF_SLOT_MAGIC] = CTF_MAGIC;
	slots[CTF_SLOT_STREAM_ID] = slots[CTF_SLOT_CONTENT_SIZE] = slots[CTF_SLOT_PACKET_SIZE] = 0;
	slots[CTF_SLOT_BEGIN] = slots[CTF_SLOT_DISCARDED] = 0;
	slots[CTF_SLOT_CPU] = slots[CTF_SLOT_INSTANCE_ID] = CTF_NO_NUMBER;
	file->d = (struct ctf_decoder){ .metadata = metadata,
		.slots = slots,
		.tags = file->part->tags,
		.data = data,
		.end = (uint64_t)size * 8,
		.clock = file->d.clock,
		.steps_left = CTF_STEPS_MAX };
	if (metadata->packet_header)
		ctf_skip(&file->d, metadata->packet_header);
	if (slots[CTF_SLOT_MAGIC] != CTF_MAGIC)
		return damaged(file, "does not begin with CTF's number", diag);
	file->stream_id = slots[CTF_SLOT_STREAM_ID];
	const struct ctf_stream_class *stream = ctf_metadata_stream(metadata, file->stream_id);
	if (!stream)
		return 0;
	file->stream = (uint32_t)(stream - metadata->streams.items);
	if (stream->packet_context)
		ctf_skip(&file->d, stream->packet_context);
	if (file->d.short_read)
		return damaged(file, "is cut off in its header", diag);
	file->d.clock = slots[CTF_SLOT_BEGIN];
	return 1;
}

/*
 * Adds the events that a packet announces as lost to those before the file's next event. This waits
 * for the packet's first event, in the order of time: the files of one stream have one counter.
 * LTTng-UST 2.13 writes 0 into some packets of a busy stream, and the whole number into the next one.
 */
static int count_discarded(struct ctf_reader *reader, struct ctf_file *file, struct diag *diag)
{
	const struct ctf_metadata *metadata = &file->part->metadata;
	const struct ctf_stream_key key = { .trace = strtab_get(&metadata->strings, metadata->uuid),
		.path = file->path,
		.stream_id = file->stream_id,
		.instance_id = file->instance_id,
		.cpu = file->cpu_id };
	uint64_t more;

	if (!ctf_losses_add(&reader->losses, &key, file->discarded, &more))
		return diag_set(diag, -ENOMEM, "cannot count lost events: %m");
	file->discarded = 0;
	more += file->lost_before;
	file->lost_before = more > INT32_MAX ? INT32_MAX : (uint32_t)more;
	return 0;
}

/* 1: a packet is in memory, 0: there is no whole one. */
static int load_packet(struct ctf_reader *reader, struct ctf_file *file, struct diag *diag)
{
	uint64_t *slots = file->part->slots;
	uint8_t head[HEAD_BYTES];
	struct stat status;

	if (fstat(file->fd, &status) < 0)
		return diag_set(diag, -errno, "cannot read '%s': %m", file->path);
	uint64_t left = (uint64_t)status.st_size > file->offset
				? (uint64_t)status.st_size - file->offset
				: 0;
	if (!left)
		return 0;
	ssize_t got = pread(file->fd, head, sizeof(head), (off_t)file->offset);
	if (got < 0)
		return diag_set(diag, -errno, "cannot read '%s': %m", file->path);
	bool growing = reader->growth == CTF_GROWING;
	struct diag first = { 0 };
	int result = open_packet(file, head, (size_t)got, &first);
	if (result <= 0) {
		if (growing && left < HEAD_BYTES)
			return 0;
		if (result == 0 && !growing)
			return damaged(file, "is of a stream that the metadata does not describe",
				diag);
		return result < 0 ? diag_set(diag, result, "%s", first.text) : 0;
	}
	uint64_t content = slots[CTF_SLOT_CONTENT_SIZE], size = slots[CTF_SLOT_PACKET_SIZE];
	if (!size && !content)
		size = content = left * 8; /* the whole file is one packet */
	size = size ? size : content;
	content = content ? content : size;
	if (size % 8 || content > size || content < file->d.at || size / 8 > PACKET_SIZE_MAX)
		return damaged(file, "has a size that cannot be", diag);
	size /= 8;
	if (size > left)
		return growing ? 0 : damaged(file, "is cut off", diag);
	uint8_t *packet = malloc((size_t)size);
	if (!packet)
		return diag_set(diag, -ENOMEM, "cannot read '%s': %m", file->path);
	for (size_t at = 0; at < size; at += (size_t)got) {
		got = pread(file->fd, packet + at, (size_t)size - at, (off_t)(file->offset + at));
		if (got <= 0) {
			free(packet);
			return growing && got == 0 ? 0 : damaged(file, "cannot be read", diag);
		}
	}
	free(file->packet);
	file->packet = packet;
	file->size = size;
	file->d.data = packet;
	file->d.end = content;
	file->cpu =
		slots[CTF_SLOT_CPU] <= INT32_MAX ? (int32_t)slots[CTF_SLOT_CPU] : EVENT_CPU_UNKNOWN;
	file->cpu_id = slots[CTF_SLOT_CPU];
	file->instance_id = slots[CTF_SLOT_INSTANCE_ID];
	file->discarded = slots[CTF_SLOT_DISCARDED];
	return 1;
}

static void end_packet(struct ctf_reader *reader, struct ctf_file *file)
{
	if (reader->consumed)
		reader->consumed(file->path, file->offset, file->size);
	free(file->packet);
	file->packet = NULL;
	file->offset += file->size;
	file->state = FILE_WANTS_PACKET;
}

/* Decodes the header of the next event. 1: file->time_ns is valid, 0: none at present. */
static int find_event(struct ctf_reader *reader, struct ctf_file *file, struct diag *diag)
{
	for (;;) {
		if (file->state == FILE_HAS_EVENT)
			return 1;
		if (!file->packet) {
			int result = load_packet(reader, file, diag);
			if (result <= 0) {
				file->state =
					reader->growth == CTF_GROWING ? FILE_WAITS : FILE_ENDED;
				return result;
			}
		}
		struct ctf_decoder *d = &file->d;
		if (d->at >= d->end) {
			if (file->discarded && count_discarded(reader, file, diag) < 0)
				return -ENOMEM;
			end_packet(reader, file);
			continue;
		}
		file->event_at = d->at;
		file->event_clock = d->clock;
		d->depth = 0;
		d->steps_left = CTF_STEPS_MAX;
		d->slots[CTF_SLOT_ID] = 0;
		uint32_t header = stream_of(file)->event_header;
		if (header)
			ctf_skip(d, header);
		if (d->short_read)
			return damaged(file, "has an event that is cut off", diag);
		file->event_id = d->slots[CTF_SLOT_ID];
		file->time_ns = ctf_metadata_ns(d->metadata, d->clock) + file->part->shift_ns;
		file->state = FILE_HAS_EVENT;
		return 1;
	}
}

/* ---- events ---- */

/* The names and ids of LTTng's contexts. */
static void read_context(struct ctf_decoder *d, uint32_t type, struct ctf_event *ret_event)
{
	const struct ctf_metadata *metadata = d->metadata;
	const struct ctf_type *context = &metadata->types.items[type];

	if (context->kind != CTF_STRUCT) {
		ctf_skip(d, type);
		return;
	}
	ctf_align(d, context->align);
	for (uint32_t i = 0; i < context->count && !d->short_read; i++) {
		const struct ctf_field *field = &metadata->fields.items[context->first + i];
		const struct ctf_type *of = &metadata->types.items[field->type];
		const char *name = strtab_get(&metadata->strings, field->name);
		ctf_align(d, of->align ? of->align : 1);
		uint64_t begin = d->at;
		ctf_skip_field(d, field);
		if (strcmp(name, "_procname") == 0 && of->kind == CTF_ARRAY && !d->short_read) {
			ret_event->process_name = (const char *)d->data + begin / 8;
			ret_event->process_name_size = of->size;
		}
	}
}

/* 1, or 0: the event is not described yet. */
static int decode(struct ctf_reader *reader, struct ctf_file *file, struct ctf_event *ret_event,
	struct diag *diag)
{
	struct ctf_part *part = file->part;
	const struct ctf_metadata *metadata = &part->metadata;
	const struct ctf_event_class *event =
		ctf_metadata_event(metadata, file->stream_id, file->event_id);
	uint64_t *slots = part->slots;

	if (!event) {
		file->d.at = file->event_at;
		file->d.clock = file->event_clock;
		file->state = FILE_WAITS;
		if (reader->growth == CTF_GROWING)
			return 0;
		return damaged(file, "has an event that the metadata does not describe", diag);
	}
	if (file->discarded && count_discarded(reader, file, diag) < 0)
		return -ENOMEM;
	uint32_t class = (uint32_t)(event - metadata->events.items);
	while (part->layouts.count <= class)
		if (!vec_push(&part->layouts))
			return diag_set(diag, -ENOMEM, "cannot read events: %m");
	struct ctf_layout *layout = &part->layouts.items[class];
	if (layout->kind == CTF_LAYOUT_NONE &&
		ctf_layout_make(layout, metadata, event, reader->trace) < 0)
		return diag_set(diag, -ENOMEM, "cannot read events: %m");

	*ret_event = (struct ctf_event){ 0 };
	slots[CTF_SLOT_VPID] = metadata->vpid;
	slots[CTF_SLOT_VTID] = slots[CTF_SLOT_PID] = slots[CTF_SLOT_TID] = 0;
	slots[CTF_SLOT_PID_NAMESPACE] = 0;
	uint32_t context = stream_of(file)->event_context;
	if (context)
		read_context(&file->d, context, ret_event);
	if (event->context)
		ctf_skip(&file->d, event->context);
	ret_event->pid =
		(uint32_t)(slots[CTF_SLOT_PID] ? slots[CTF_SLOT_PID] : slots[CTF_SLOT_VPID]);
	ret_event->tid =
		(uint32_t)(slots[CTF_SLOT_TID] ? slots[CTF_SLOT_TID] : slots[CTF_SLOT_VTID]);
	ret_event->pid_namespace = slots[CTF_SLOT_PID_NAMESPACE];
	bytes_reset(&reader->payload);
	ctf_layout_payload(layout, event, &file->d, &reader->payload);
	if (file->d.short_read)
		return damaged(file, "has an event that is cut off", diag);
	if (file->d.at == file->event_at)
		return damaged(file, "has an event of 0 bits, so it has no end", diag);
	if (reader->payload.failed)
		return diag_set(diag, -ENOMEM, "cannot read events: %m");
	ret_event->event = (struct event){
		.time_ns = file->time_ns,
		.payload = reader->payload.data,
		.payload_size =
			(uint32_t)(reader->payload.len < EVENT_PAYLOAD_MAX ? reader->payload.len
									   : EVENT_PAYLOAD_MAX),
		.schema_index = layout->schema_index,
		.lost_before = file->lost_before,
		.cpu = file->cpu,
		.kind = reader->trace->schemas.items[layout->schema_index].kind,
	};
	file->lost_before = 0;
	file->state = FILE_WANTS_PACKET;
	return 1;
}

/* Chooses the file with the earliest event, and the time up to which it stays the earliest. */
static int choose(struct ctf_reader *reader, struct diag *diag)
{
	reader->current = NULL;
	reader->limit_ns = UINT64_MAX;
	vec_each(item, &reader->files) {
		struct ctf_file *file = *item;
		if (file->state == FILE_WAITS || file->state == FILE_ENDED)
			continue;
		int result = find_event(reader, file, diag);
		if (result < 0)
			return result;
		if (result == 0)
			continue;
		if (!reader->current || file->time_ns < reader->current->time_ns) {
			if (reader->current)
				reader->limit_ns = reader->current->time_ns;
			reader->current = file;
		} else if (file->time_ns < reader->limit_ns) {
			reader->limit_ns = file->time_ns;
		}
	}
	return reader->current != NULL;
}

int ctf_reader_next(struct ctf_reader *reader, struct ctf_event *ret_event, struct diag *diag)
{
	for (;;) {
		struct ctf_file *file = reader->current;
		int result = file ? find_event(reader, file, diag) : 0;
		if (result == 0 || file->time_ns > reader->limit_ns)
			result = result < 0 ? result : choose(reader, diag);
		if (result <= 0)
			return result;
		result = decode(reader, reader->current, ret_event, diag);
		if (result)
			return result;
		reader->current = NULL;
	}
}

int ctf_reader_look(struct ctf_reader *reader, struct diag *diag)
{
	int result = scan(reader, reader->folder, 0, diag);

	vec_each(part, &reader->parts)
		if (result == 0)
			result = read_metadata(reader, *part, diag);
	vec_each(file, &reader->files)
		if ((*file)->state == FILE_WAITS)
			(*file)->state = FILE_WANTS_PACKET;
	reader->current = NULL;
	return result;
}

/* ---- clocks ---- */

bool ctf_reader_clock(const struct ctf_reader *reader, int64_t *ret_offset_ns)
{
	bool known = false;

	vec_each(part, &reader->parts) {
		if (!(*part)->metadata.clock_hz)
			continue;
		int64_t offset_ns = ctf_metadata_offset_ns(&(*part)->metadata);
		if (!known || offset_ns < *ret_offset_ns)
			*ret_offset_ns = offset_ns;
		known = true;
	}
	return known;
}

static bool is_same_clock(const struct ctf_metadata *a, const struct ctf_metadata *b)
{
	return a == b || (a->clock_uuid && b->clock_uuid &&
				 strcmp(strtab_get(&a->strings, a->clock_uuid),
					 strtab_get(&b->strings, b->clock_uuid)) == 0);
}

/*
 * The reader's clock is that of the part with the least offset, so that no time becomes negative.
 * LTTng measures an offset for each part: parts with one clock keep its exact times.
 */
static void join_clocks(struct ctf_reader *reader)
{
	int64_t base_ns;

	if (!ctf_reader_clock(reader, &base_ns))
		return;
	vec_each(part, &reader->parts) {
		const struct ctf_metadata *metadata = &(*part)->metadata;
		int64_t offset_ns = ctf_metadata_offset_ns(metadata);
		if (!metadata->clock_hz)
			continue;
		vec_each(other, &reader->parts) {
			const struct ctf_metadata *of = &(*other)->metadata;
			if (of->clock_hz && is_same_clock(metadata, of) &&
				ctf_metadata_offset_ns(of) < offset_ns)
				offset_ns = ctf_metadata_offset_ns(of);
		}
		(*part)->shift_ns = (uint64_t)offset_ns - (uint64_t)base_ns;
	}
}

int ctf_reader_open(const char *folder, struct trace *trace, enum ctf_growth growth,
	struct ctf_reader **ret_reader, struct diag *diag)
{
	struct ctf_reader *reader = calloc(1, sizeof(*reader));

	if (reader)
		reader->folder = strdup(folder);
	if (!reader || !reader->folder) {
		ctf_reader_close(reader);
		return diag_set(diag, -ENOMEM, "cannot read '%s': %m", folder);
	}
	reader->trace = trace;
	reader->growth = growth;
	int result = ctf_reader_look(reader, diag);
	if (result == 0 && !reader->parts.count && growth == CTF_WHOLE) {
		result =
			diag_set(diag, -ENOENT, "there is no CTF trace in the folder '%s'", folder);
		diag_remedy(diag, "name a recording, or a folder that LTTng wrote");
	}
	if (growth == CTF_WHOLE)
		join_clocks(reader);
	if (result < 0) {
		ctf_reader_close(reader);
		return result;
	}
	*ret_reader = reader;
	return 0;
}

void ctf_reader_on_consumed(struct ctf_reader *reader,
	void (*consumed)(const char *path, uint64_t offset, uint64_t size))
{
	reader->consumed = consumed;
}

uint64_t ctf_reader_lost(const struct ctf_reader *reader)
{
	return reader->losses.total;
}

/* ---- a saved trace ---- */

/* What callers have as an opaque struct source. */
struct saved_ctf {
	struct ctf_reader *reader;
	uint64_t sorted_ns;
};

static struct saved_ctf *saved_of(struct source *source)
{
	return (struct saved_ctf *)(void *)source;
}

int ctf_source_open(const char *folder, struct trace *trace, struct source **ret_source,
	struct diag *diag)
{
	struct saved_ctf *saved = calloc(1, sizeof(*saved));

	if (!saved)
		return diag_set(diag, -ENOMEM, "cannot read '%s': %m", folder);
	int result = ctf_reader_open(folder, trace, CTF_WHOLE, &saved->reader, diag);
	if (result < 0)
		free(saved);
	else
		*ret_source = (struct source *)(void *)saved;
	return result;
}

/*
 * The first event gives the begin of the recording, and the trace its date: none before 1970 or
 * after 2262.
 */
static void set_begin(struct saved_ctf *saved, uint64_t time_ns)
{
	struct recording *recording = &saved->reader->trace->recording;
	int64_t offset_ns;

	recording->sync_ns = time_ns;
	if (!ctf_reader_clock(saved->reader, &offset_ns))
		return;
	__int128 utc_ns = (__int128)time_ns + offset_ns;
	recording->utc_ns = utc_ns > 0 && utc_ns <= INT64_MAX ? (uint64_t)utc_ns : 0;
}

static int source_next(struct source *source, struct event *ret_event, struct diag *diag)
{
	struct saved_ctf *saved = saved_of(source);
	struct trace *trace = saved->reader->trace;
	struct ctf_event event;
	int result = ctf_reader_next(saved->reader, &event, diag);

	if (result <= 0)
		return result;
	if (!trace->recording.sync_ns)
		set_begin(saved, event.event.time_ns);
	if (event.pid) {
		uint32_t thread = trace_thread(trace, event.pid, event.tid ? event.tid : event.pid);
		struct process *process =
			&trace->processes.items[trace->threads.items[thread].process];
		if (!thread)
			return diag_set(diag, -ENOMEM, "cannot read events: %m");
		if (!process->name && event.process_name)
			process->name = strtab_add(&trace->strings, event.process_name,
				strnlen(event.process_name, event.process_name_size));
		event.event.thread_index = thread;
	}
	saved->sorted_ns = event.event.time_ns;
	trace->recording.end_ns = event.event.time_ns;
	*ret_event = event.event;
	return 1;
}

static uint64_t source_sorted_ns(const struct source *source)
{
	return ((const struct saved_ctf *)(const void *)source)->sorted_ns;
}

static uint64_t source_lost(const struct source *source)
{
	return ctf_reader_lost(((const struct saved_ctf *)(const void *)source)->reader);
}

static void source_close(struct source *source)
{
	ctf_reader_close(saved_of(source)->reader);
	free(source);
}

const struct source_ops ctf_source = {
	.name = "CTF",
	.next = source_next,
	.sorted_ns = source_sorted_ns,
	.lost = source_lost,
	.close = source_close,
};
