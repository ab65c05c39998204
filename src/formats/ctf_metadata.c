/* See ctf_metadata.h. The text is cut into declarations, which ctf_tsdl.c parses. */
#include "formats/ctf_metadata.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "base/diag.h"
#include "formats/ctf_tsdl.h"

#define TEXT_MAX (64u << 20)

/*
 * A packet of the file `metadata`, little-endian here (docs/formats/ctf.md):
 *
 *   offset  size  field
 *   0       4     magic 0x75d11d57
 *   4       16    uuid
 *   20      4     checksum
 *   24      4     content size in bits, with this header
 *   28      4     packet size in bits
 *   32      5     compression, encryption, checksum scheme (all 0), major, minor
 */
#define PACKET_MAGIC     0x75d11d57u
#define PACKET_HEAD_SIZE 37u

static const char *const slot_names[CTF_SLOT_FIRST_FREE] = {
	[CTF_SLOT_ID] = "id",
	[CTF_SLOT_STREAM_ID] = "stream_id",
	[CTF_SLOT_INSTANCE_ID] = "stream_instance_id",
	[CTF_SLOT_CONTENT_SIZE] = "content_size",
	[CTF_SLOT_PACKET_SIZE] = "packet_size",
	[CTF_SLOT_DISCARDED] = "events_discarded",
	[CTF_SLOT_CPU] = "cpu_id",
	[CTF_SLOT_BEGIN] = "timestamp_begin",
	[CTF_SLOT_END] = "timestamp_end",
	[CTF_SLOT_MAGIC] = "magic",
	[CTF_SLOT_VPID] = "_vpid",
	[CTF_SLOT_VTID] = "_vtid",
	[CTF_SLOT_PID] = "_pid",
	[CTF_SLOT_TID] = "_tid",
	[CTF_SLOT_PID_NAMESPACE] = "_pid_ns",
};

int ctf_metadata_init(struct ctf_metadata *metadata)
{
	*metadata = (struct ctf_metadata){ .slot_count = CTF_SLOT_FIRST_FREE };
	bool good = vec_push(&metadata->types) && vec_push(&metadata->events);

	for (uint32_t slot = 1; good && slot < CTF_SLOT_FIRST_FREE; slot++) {
		uint32_t name = strtab_add_z(&metadata->strings, slot_names[slot]);
		good = name && map_put(&metadata->slots, name, slot);
	}
	if (!good)
		ctf_metadata_done(metadata);
	return good ? 0 : -ENOMEM;
}

void ctf_metadata_done(struct ctf_metadata *metadata)
{
	strtab_done(&metadata->strings);
	vec_done(&metadata->types);
	vec_done(&metadata->fields);
	vec_done(&metadata->ranges);
	vec_done(&metadata->streams);
	vec_done(&metadata->events);
	map_done(&metadata->aliases);
	map_done(&metadata->slots);
	map_done(&metadata->event_index);
	bytes_done(&metadata->text);
	*metadata = (struct ctf_metadata){ 0 };
}

static bool has_packets(const uint8_t *data, size_t size)
{
	struct cursor c = cursor_of(data, size);

	return cursor_u32(&c) == PACKET_MAGIC;
}

size_t ctf_metadata_whole(const struct ctf_metadata *metadata, const uint8_t *data, size_t size)
{
	size_t at = 0;

	if (!metadata->file_at && size < 4)
		return 0; /* too little to see whether it has packets */
	if (metadata->file_at ? !metadata->is_packed : !has_packets(data, size))
		return size;
	while (size - at >= PACKET_HEAD_SIZE) {
		struct cursor c = cursor_of(data + at + 28, 4);
		size_t packet = cursor_u32(&c) / 8;
		/* a damaged size: ctf_metadata_add() reports it */
		if (packet < PACKET_HEAD_SIZE)
			return size;
		if (packet > size - at)
			break;
		at += packet;
	}
	return at;
}

static int take_packets(struct ctf_metadata *metadata, const uint8_t *data, size_t size,
	struct diag *diag)
{
	struct cursor c = cursor_of(data, size);

	while (cursor_left(&c)) {
		size_t at = metadata->file_at + (size_t)(c.at - data);
		uint32_t magic = cursor_u32(&c);
		cursor_skip(&c, 20); /* uuid, checksum */
		uint32_t content = cursor_u32(&c) / 8;
		uint32_t packet = cursor_u32(&c) / 8;
		uint8_t compression = cursor_u8(&c), encryption = cursor_u8(&c);
		cursor_skip(&c, 3);
		if (c.short_read || magic != PACKET_MAGIC || content < PACKET_HEAD_SIZE ||
			packet < content || compression || encryption)
			return diag_set(diag, -EBADMSG,
				"the packet of the metadata at offset %zu is damaged", at);
		const uint8_t *text = cursor_take(&c, content - PACKET_HEAD_SIZE);
		cursor_skip(&c, packet - content);
		if (c.short_read)
			return diag_set(diag, -EBADMSG,
				"the packet of the metadata at offset %zu is cut off", at);
		bytes_add(&metadata->text, text, content - PACKET_HEAD_SIZE);
	}
	return 0;
}

/*
 * The length of the first declaration, up to its ';' outside of braces; 0: there is no whole one.
 * Comments and texts are skipped.
 */
static size_t declaration_size(const char *text, size_t size)
{
	unsigned depth = 0;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];
		if (c == '"') {
			for (i++; i < size && text[i] != '"'; i++)
				i += text[i] == '\\';
		} else if (c == '/' && i + 1 < size && text[i + 1] == '*') {
			for (i += 2; i + 1 < size && (text[i] != '*' || text[i + 1] != '/'); i++)
				;
			i++;
		} else if (c == '/' && i + 1 < size && text[i + 1] == '/') {
			while (i < size && text[i] != '\n')
				i++;
		} else if (c == '{') {
			depth++;
		} else if (c == '}') {
			depth -= depth > 0;
		} else if (c == ';' && !depth) {
			return i + 1;
		}
	}
	return 0;
}

int ctf_metadata_add(struct ctf_metadata *metadata, const uint8_t *data, size_t size,
	struct diag *diag)
{
	int result = 0;

	if (!size)
		return 0;
	if (metadata->text.len + size > TEXT_MAX)
		return diag_set(diag, -EBADMSG, "the metadata has more than 64 MiB");
	if (metadata->file_at == 0)
		metadata->is_packed = has_packets(data, size);
	if (metadata->is_packed)
		result = take_packets(metadata, data, size, diag);
	else
		bytes_add(&metadata->text, data, size);
	metadata->file_at += size;
	if (metadata->text.failed)
		return diag_set(diag, -ENOMEM, "cannot read the metadata: %m");
	while (result == 0) {
		const char *text = (const char *)metadata->text.data + metadata->parsed;
		size_t len = declaration_size(text, metadata->text.len - metadata->parsed);
		if (!len)
			break;
		result = ctf_tsdl_declaration(metadata, text, len, diag);
		metadata->parsed += len;
	}
	return result;
}
