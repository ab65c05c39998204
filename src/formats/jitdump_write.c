/* See jitdump_write.h; code/jitdump.c has the layout of the records that it reads. Of debug info:
 *
 *   2 debug  u64 address of the code, u64 number of entries, then each: u64 address, u32 line, u32 discriminator, file with NUL
 *
 * It precedes the load record that it belongs to.
 */
#include "formats/jitdump_write.h"

#include <string.h>

#include "base/bytes.h"
#include "code/jitdump.h"

#define ALIGNMENT 8u

enum { ELF_MACHINE_X86_64 = 62, ELF_MACHINE_AARCH64 = 183 };

void jitdump_write_head(struct bytes *out, const char *machine, const struct jitdump_owner *owner)
{
	bytes_u32(out, JITDUMP_MAGIC);
	bytes_u32(out, 1); /* version */
	bytes_u32(out, JITDUMP_HEADER_SIZE);
	bytes_u32(out, strcmp(machine, "aarch64") == 0 ? ELF_MACHINE_AARCH64 : ELF_MACHINE_X86_64);
	bytes_u32(out, 0);
	bytes_u32(out, owner->pid);
	bytes_u64(out, owner->time_ns);
	bytes_u64(out, 0); /* flags: times are CLOCK_MONOTONIC */
}

static void add_entry(struct bytes *out, uint64_t address, const struct jitdump_line *line)
{
	bytes_u64(out, address);
	bytes_u32(out, line->line);
	bytes_u32(out, 0);
	bytes_add(out, line->file, strlen(line->file) + 1);
}

/* perf ends a line table at its last entry, so the last line is repeated at the end of the code. */
static void add_lines(struct bytes *out, const struct jitdump_body *body, uint64_t time_ns)
{
	size_t size_at = out->len + 4;
	size_t begin = out->len;

	bytes_u32(out, JITDUMP_DEBUG);
	bytes_u32(out, 0); /* its size, set below */
	bytes_u64(out, time_ns);
	bytes_u64(out, body->begin);
	bytes_u64(out, body->line_count + UINT64_C(1));
	for (uint32_t i = 0; i < body->line_count; i++)
		add_entry(out, body->begin + body->lines[i].offset, &body->lines[i]);
	add_entry(out, body->begin + body->size, &body->lines[body->line_count - 1]);
	while ((out->len - begin) % ALIGNMENT && !out->failed)
		bytes_u8(out, 0);
	if (!out->failed)
		bytes_set_u32(out, size_at, (uint32_t)(out->len - begin));
}

void jitdump_write_body(struct bytes *out, const struct jitdump_body *body,
	const struct jitdump_owner *owner)
{
	size_t name_len = strnlen(body->name, JITDUMP_NAME_MAX - 1);

	if (body->line_count)
		add_lines(out, body, owner->time_ns);
	bytes_u32(out, JITDUMP_LOAD);
	bytes_u32(out,
		(uint32_t)(JITDUMP_RECORD_HEAD + JITDUMP_LOAD_HEAD + name_len + 1 + body->size));
	bytes_u64(out, owner->time_ns);
	bytes_u32(out, owner->pid);
	bytes_u32(out,
		owner->pid); /* of its main thread: the thread that compiled it is not known */
	bytes_u64(out, body->begin);
	bytes_u64(out, body->begin);
	bytes_u64(out, body->size);
	bytes_u64(out, body->number);
	bytes_add(out, body->name, name_len);
	bytes_u8(out, 0);
	bytes_add(out, body->code, body->size);
}
