/* See symbol_apply.h. */
#include "symbols/symbol_apply.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/input.h"
#include "base/map.h"
#include "machine/file_writers.h"
#include "machine/output_file.h"
#include "nettrace/nettrace_edit.h"
#include "nettrace/packed_file.h"
#include "symbols/line_events.h"
#include "symbols/line_names.h"
#include "symbols/symbol_names.h"
#include "trace/spoor_payload.h"
#include "trace/trace.h"

/* Packed data is put into the file in pieces of this size. */
#define PACKED_PIECE (1u << 20)

struct apply {
	const struct symbol_names *found;
	const struct trace *trace;
	struct map replaced; /* hash of the replaced symbol -> index in names + 1 */
	uint32_t next;       /* of names, for the further symbols */
	uint32_t line_schema;
	struct line_events lines;
	int fd;
	off_t offset;
	struct packed_file *packed; /* NULL: the recording is not packed */
	size_t pending;             /* bytes that were added since the last put */
};

static uint64_t symbol_key(uint64_t mapping_id, uint64_t begin, uint64_t end)
{
	return hash_u64(begin ^ hash_u64(end ^ hash_u64(mapping_id)));
}

static int index_names(struct apply *apply)
{
	for (uint32_t i = 0; i < apply->found->names.count; i++) {
		uint32_t replaced = apply->found->names.items[i].replaced;
		if (!replaced)
			continue;
		const struct symbol *old = &apply->trace->symbols.items[replaced - 1];
		if (!map_put(&apply->replaced, symbol_key(old->mapping_id, old->begin, old->end),
			    i + 1))
			return -ENOMEM;
	}
	return 0;
}

static void fill(const struct apply *apply, const struct symbol_name *name,
	struct payload_symbol *symbol)
{
	symbol->mapping_id = name->mapping_id;
	symbol->begin = name->begin;
	symbol->end = name->end;
	symbol->name = trace_text(apply->trace, name->name);
	symbol->name_len = strtab_len(&apply->trace->strings, name->name);
}

static bool change(void *context, struct payload_symbol *symbol)
{
	const struct apply *apply = context;
	uint32_t at = map_get(&apply->replaced,
		symbol_key(symbol->mapping_id, symbol->begin, symbol->end));

	if (!at)
		return false;
	const struct symbol_name *name = &apply->found->names.items[at - 1];
	if (apply->trace->symbols.items[name->replaced - 1].begin != symbol->begin)
		return false;
	fill(apply, name, symbol);
	return true;
}

static bool next(void *context, struct payload_symbol *ret_symbol)
{
	struct apply *apply = context;

	while (apply->next < apply->found->names.count) {
		const struct symbol_name *name = &apply->found->names.items[apply->next++];
		if (name->replaced)
			continue;
		fill(apply, name, ret_symbol);
		return true;
	}
	return false;
}

static bool next_lines(void *context, struct bytes *payload)
{
	struct apply *apply = context;

	return line_events_next(&apply->lines, payload);
}

static int write_at_end(struct apply *apply, const uint8_t *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t put = pwrite(apply->fd, data + done, size - done, apply->offset);
		if (put < 0 && errno != EINTR)
			return -errno;
		done += put > 0 ? (size_t)put : 0;
		apply->offset += put > 0 ? put : 0;
	}
	return 0;
}

static int write_piece(void *context, const uint8_t *data, size_t size)
{
	struct apply *apply = context;

	if (!apply->packed)
		return write_at_end(apply, data, size);
	int result = size ? packed_file_add(apply->packed, data, size) : 0;
	apply->pending += size;
	if (result == 0 && apply->pending >= PACKED_PIECE) {
		apply->pending = 0;
		result = packed_file_put(apply->packed, apply->fd, pwrite);
	}
	return result;
}

/* The end mark, which packed_file.h always writes itself. */
static int write_end(struct apply *apply)
{
	static const uint8_t end[4];

	if (!apply->packed)
		return write_at_end(apply, end, sizeof(end));
	int result = packed_file_put(apply->packed, apply->fd, pwrite);
	return result == 0 ? packed_file_cut(apply->packed, apply->fd) : result;
}

static int copy_into(struct apply *apply, struct input *in, struct diag *diag)
{
	const struct nettrace_edit edit = { .change = change,
		.next = next,
		.next_lines = apply->line_schema ? next_lines : NULL,
		.trace = apply->trace,
		.line_schema = apply->line_schema,
		.write = write_piece,
		.context = apply };
	int result = index_names(apply);

	if (result == 0 && in->unpacker)
		result = packed_file_new(&apply->packed);
	if (result < 0)
		return diag_set(diag, result, "cannot copy '%s': %m", in->name);
	result = nettrace_edit(in, &edit, diag);
	if (result < 0)
		return result;
	result = write_end(apply);
	/* The old file is removed, so the new one must be on the disk. */
	if (result == 0 && fsync(apply->fd) < 0)
		result = -errno;
	return result < 0 ? diag_set(diag, result, "cannot write the copy of '%s': %m", in->name)
			  : 0;
}

static int open_recording(const char *path, struct input *ret_in, struct stat *ret_status,
	struct diag *diag)
{
	cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, ret_status) < 0)
		return diag_set(diag, -errno, "cannot open '%s': %m", path);
	if (!S_ISREG(ret_status->st_mode))
		return diag_set(diag, -EINVAL, "'%s' is no regular file", path);
	if (file_has_writers(fd)) {
		diag_set(diag, -EBUSY, "'%s' is still being written", path);
		diag_remedy(diag, "end its recorder first");
		return -EBUSY;
	}
	int result = input_from_fd(ret_in, TAKE_FD(fd), path);
	return result < 0 ? diag_set(diag, result, "cannot read '%s': %m", path) : 0;
}

static int check_unchanged(const struct input *in, const struct stat *before, struct diag *diag)
{
	struct stat now;

	if (fstat(in->fd, &now) == 0 && now.st_size == before->st_size &&
		now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
		now.st_mtim.tv_nsec == before->st_mtim.tv_nsec)
		return 0;
	return diag_set(diag, -EBUSY, "'%s' has changed meanwhile", in->name);
}

int symbol_apply(const char *path, const char *output, const struct symbol_names *found,
	const struct line_names *lines, struct trace *trace, struct diag *diag)
{
	struct apply apply = { .found = found,
		.trace = trace,
		.fd = -1,
		.line_schema = lines ? trace_known_schema(trace, SPOOR_SOURCE_LINES) : 0,
		.lines = { .trace = trace, .at = lines ? lines->first : UINT32_MAX } };
	struct output_file out;
	struct input in;
	struct stat status;
	int result = open_recording(path, &in, &status, diag);

	if (result < 0)
		return result;
	result = input_unpack(&in, diag);
	if (result == 0 && output)
		result = output_file_spares(output, &status, diag);
	if (result == 0)
		result = output_file_open(&out, output ? output : path, diag);
	if (result < 0) {
		input_close(&in);
		return result;
	}
	apply.fd = out.fd;
	result = copy_into(&apply, &in, diag);
	if (result == 0)
		result = check_unchanged(&in, &status, diag);
	if (result == 0)
		result = output ? output_file_keep(&out, diag)
				: output_file_replace(&out, &status, diag);
	output_file_close(&out);
	packed_file_free(apply.packed);
	map_done(&apply.replaced);
	input_close(&in);
	return result;
}
