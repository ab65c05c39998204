/* See body_code.h. */
#include "symbols/body_code.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "analysis/instructions.h"
#include "base/bytes.h"
#include "base/cleanup.h"
#include "image/elf.h"
#include "image/image_file.h"
#include "symbolize/symbol_cache.h"
#include "symbols/line_names.h"
#include "trace/trace.h"

static int load_native(const struct trace *trace, const struct instruction_body *body,
	struct bytes *out)
{
	const struct mapping *mapping = &trace->mappings.items[body->mapping];
	const char *path = trace_text(trace, mapping->path);
	uint64_t size = body->end - body->begin;
	char build_id[BUILD_ID_TEXT_SIZE];
	struct image_file file;
	struct elf elf;
	cleanup(closep) int fd =
		*path == '/' ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;

	if (fd < 0 || image_file_from_fd(&file, fd, NULL) < 0 || elf_read(&elf, &file, NULL) < 0)
		return BODY_CODE_NO_IMAGE;
	elf_build_id_text(&elf, build_id);
	elf_done(&elf);
	if (!mapping->build_id || strcmp(build_id, trace_text(trace, mapping->build_id)) != 0)
		return BODY_CODE_OTHER_IMAGE;
	if (size > CODE_BODY_MAX)
		return BODY_CODE_TOO_LARGE;
	uint8_t *to = bytes_reserve(out, size);
	if (!to)
		return -ENOMEM;
	if (image_file_read(&file, body->begin - mapping->begin + mapping->file_offset, to, size) <
		0)
		return BODY_CODE_NO_IMAGE;
	out->len += size;
	return BODY_CODE_FOUND;
}

int body_code_load(const struct trace *trace, const struct instruction_body *body,
	struct bytes *out)
{
	uint32_t size;

	if (!body->code)
		return load_native(trace, body, out);
	const struct code_range *range =
		&trace->processes.items[body->process].codes.items[body->code - 1];
	const uint8_t *code = code_bytes_find(&trace->code, body->process, range->mapping_id,
		range->begin, range->method_id, &size);
	if (!code || size != body->end - body->begin)
		return BODY_CODE_NOT_RECORDED;
	bytes_add(out, code, size);
	return out->failed ? -ENOMEM : BODY_CODE_FOUND;
}

int body_code_want(struct line_names *lines, const struct instruction_body *body, uint32_t offset)
{
	const struct trace *trace = lines->trace;
	const struct mapping *mapping = &trace->mappings.items[body->mapping];
	struct line_missing missing = { .place = instructions_place(trace, body, offset),
		.process = body->process,
		.mapping = body->mapping,
		.code = body->code };
	uint32_t count;

	if (line_table_find(&trace->lines, &missing.place, &count))
		return 0;
	if (!body->code) {
		missing.image = mapping->build_id;
		missing.vaddr = missing.place.offset + mapping->file_offset - mapping->text_offset +
				mapping->text_vaddr;
	}
	return vec_add(&lines->missing, missing) ? 0 : -ENOMEM;
}
