/*
 * See tracepoint.h. The format file of a tracepoint:
 *
 *   name: sched_switch
 *   ID: 318
 *   format:
 *           field:unsigned short common_type;       offset:0;       size:2; signed:0;
 *           field:long prev_state;  offset:32;      size:8; signed:1;
 */
#include "perf/tracepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "machine/kernel_file.h"

#define FORMAT_ROOM 8192u
/* the kernel's numbers for the calls of mount(8), which older headers lack */
#define FSCONFIG_CREATE 6
#define MOUNT_CLOSE     1u

/* A detached mount of tracefs: a descriptor of its root, or a negative errno. */
static int mount_privately(void)
{
	cleanup(closep) int context = (int)syscall(SYS_fsopen, "tracefs", MOUNT_CLOSE);

	if (context < 0)
		return -errno;
	if (syscall(SYS_fsconfig, context, FSCONFIG_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	int root = (int)syscall(SYS_fsmount, context, MOUNT_CLOSE, 0);
	return root < 0 ? -errno : root;
}

static int read_format(const char *name, char *buffer, size_t room)
{
	static const char *const folders[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };
	char path[256];
	ssize_t result = -ENOENT;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		/* of our own names: it fits */
		(void)snprintf(path, sizeof(path), "%s/events/%s/format", folders[i], name);
		result = kernel_file_read(AT_FDCWD, path, buffer, room);
		if (result >= 0)
			return 0;
	}
	cleanup(closep) int root = mount_privately();

	if (root < 0)
		return (int)result;
	(void)snprintf(path, sizeof(path), "events/%s/format", name);
	result = kernel_file_read(root, path, buffer, room);
	return result < 0 ? (int)result : 0;
}

/* The number after `key` in the line at `at`; UINT32_MAX: none. */
static uint32_t number_after(const char *at, const char *key)
{
	size_t len = strcspn(at, "\n");
	const char *found = strstr(at, key);
	char *end;

	if (!found || found >= at + len)
		return UINT32_MAX;
	found += strlen(key);
	unsigned long value = strtoul(found, &end, 10);
	return end == found || value > FORMAT_ROOM ? UINT32_MAX : (uint32_t)value;
}

/* Whether the line declares the field: "field:long prev_state;". */
static bool declares(const char *line, const char *name)
{
	size_t end = strcspn(line, ";\n");
	size_t len = strlen(name);

	return line[end] == ';' && end > len && memcmp(line + end - len, name, len) == 0 &&
	       line[end - len - 1] == ' ';
}

static int parse_field(const char *text, struct tracepoint_field *field)
{
	for (const char *line = text; (line = strstr(line, "field:")); line++) {
		if (!declares(line, field->name))
			continue;
		field->offset = number_after(line, "offset:");
		field->size = number_after(line, "size:");
		return field->offset != UINT32_MAX && (field->size == 1 || field->size == 2 ||
							      field->size == 4 || field->size == 8)
			       ? 0
			       : -EBADMSG;
	}
	return -EBADMSG;
}

int tracepoint_parse(const char *text, struct tracepoint_field *fields, size_t count,
	struct tracepoint *ret_tracepoint)
{
	const char *line = strstr(text, "\nID:");
	uint32_t id = line ? number_after(line + 1, "ID:") : UINT32_MAX;
	int result = id == UINT32_MAX ? -EBADMSG : 0;

	for (size_t i = 0; i < count && result == 0; i++)
		result = parse_field(text, &fields[i]);
	if (result == 0)
		ret_tracepoint->id = (uint16_t)id;
	return result;
}

int tracepoint_read(const char *name, struct tracepoint_field *fields, size_t count,
	struct tracepoint *ret_tracepoint)
{
	char text[FORMAT_ROOM];
	int result = read_format(name, text, sizeof(text));

	return result < 0 ? result : tracepoint_parse(text, fields, count, ret_tracepoint);
}

uint64_t tracepoint_value(const struct tracepoint_field *field, const uint8_t *raw, size_t size)
{
	uint64_t value = 0;

	if (field->size > sizeof(value) || (size_t)field->offset + field->size > size)
		return 0;
	memcpy(&value, raw + field->offset, field->size); /* of a little-endian machine */
	return value;
}
