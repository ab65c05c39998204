/*
 * Replies: a header of 20 bytes whose size is set last, then the reply of the command. A text that
 * would make the message too long is cut.
 */
#include "lib/server/server_reply.h"

#include <stdlib.h>
#include <string.h>

static void reply_put(struct server_reply *reply, const void *bytes, size_t size)
{
	if (reply->failed)
		return;
	if (size > reply->room - reply->size) {
		size_t room = reply->room ? reply->room : 256;
		while (room - reply->size < size)
			room *= 2;
		uint8_t *grown = realloc(reply->bytes, room);
		if (!grown) {
			reply->failed = true;
			return;
		}
		reply->bytes = grown;
		reply->room = room;
	}
	if (size)
		memcpy(reply->bytes + reply->size, bytes, size);
	reply->size += size;
}

static void reply_number(struct server_reply *reply, uint64_t value, size_t size)
{
	uint8_t bytes[8];

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(value >> (8 * i));
	reply_put(reply, bytes, size);
}

/*
 * Reads one UTF-8 character of at most `left` bytes; a byte that is not valid UTF-8 becomes U+FFFD.
 */
static uint32_t reply_character(const char *text, size_t left, size_t *ret_length)
{
	const uint8_t *s = (const uint8_t *)text;
	size_t length = s[0] < 0x80                   ? 1
			: s[0] >= 0xc2 && s[0] < 0xe0 ? 2
			: s[0] >= 0xe0 && s[0] < 0xf0 ? 3
			: s[0] >= 0xf0 && s[0] < 0xf5 ? 4
						      : 0;
	uint32_t c = length == 1 ? s[0] : length ? s[0] & (0x7fu >> length) : 0;

	*ret_length = 1;
	if (length == 0 || length > left)
		return 0xfffd;
	for (size_t i = 1; i < length; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0xfffd;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((length == 3 && c < 0x800) || (length == 4 && (c < 0x10000 || c > 0x10ffff)) ||
		(c >= 0xd800 && c < 0xe000))
		return 0xfffd;
	*ret_length = length;
	return c;
}

/* Writes the number of units with the NUL as u32, and the units; at most `unit_max` of them. */
static void reply_text(struct server_reply *reply, const char *text, size_t size, size_t unit_max)
{
	size_t count_at = reply->size;
	uint32_t units = 1;

	reply_number(reply, 0, 4);
	for (size_t at = 0, length; at < size; at += length) {
		uint32_t c = reply_character(text + at, size - at, &length);
		if (units + 1 + (c > 0xffff) > unit_max)
			break;
		if (c > 0xffff) {
			reply_number(reply, 0xd800 + ((c - 0x10000) >> 10), 2);
			reply_number(reply, 0xdc00 + ((c - 0x10000) & 0x3ff), 2);
			units += 2;
		} else {
			reply_number(reply, c, 2);
			units++;
		}
	}
	reply_number(reply, 0, 2);
	for (size_t i = 0; i < 4 && !reply->failed; i++)
		reply->bytes[count_at + i] = (uint8_t)(units >> (8 * i));
}

static void reply_begin(struct server_reply *reply, enum server_command status)
{
	reply->size = 0;
	reply_put(reply, SERVER_MAGIC, 14);
	reply_number(reply, 0, 2);
	reply_number(reply, (uint64_t)status >> 8, 1);
	reply_number(reply, (uint64_t)status & 0xff, 1);
	reply_number(reply, 0, 2);
}

static void reply_end(struct server_reply *reply)
{
	if (reply->failed)
		return;
	reply->bytes[14] = (uint8_t)reply->size;
	reply->bytes[15] = (uint8_t)(reply->size >> 8);
}

void server_reply_done(struct server_reply *reply)
{
	free(reply->bytes);
	*reply = (struct server_reply){ 0 };
}

void server_reply_error(struct server_reply *reply, uint32_t error)
{
	reply_begin(reply, SERVER_REPLY_ERROR);
	reply_number(reply, error, 4);
	reply_end(reply);
}

void server_reply_u32(struct server_reply *reply, uint32_t value)
{
	reply_begin(reply, SERVER_REPLY_OK);
	reply_number(reply, value, 4);
	reply_end(reply);
}

void server_reply_session(struct server_reply *reply, uint64_t id)
{
	reply_begin(reply, SERVER_REPLY_OK);
	reply_number(reply, id, 8);
	reply_end(reply);
}

static void reply_words(struct server_reply *reply, const char *text, size_t unit_max)
{
	reply_text(reply, text, strlen(text), unit_max);
}

void server_reply_info(struct server_reply *reply, enum server_command command,
	const struct server_identity *identity)
{
	/*
	 * 20 + 4 + 8 + 16 bytes and six texts of at most 1,024 units (2,052 bytes each) leave more
	 * than 50,000 bytes for the command line.
	 */
	reply_begin(reply, SERVER_REPLY_OK);
	if (command == SERVER_PROCESS_INFO_3)
		reply_number(reply, 1, 4);
	reply_number(reply, identity->pid, 8);
	reply_put(reply, identity->cookie, 16);
	reply_words(reply, identity->command_line, 25000);
	reply_words(reply, identity->system, 1024);
	reply_words(reply, identity->architecture, 1024);
	if (command != SERVER_PROCESS_INFO) {
		reply_words(reply, identity->entry, 1024);
		reply_words(reply, identity->version, 1024);
	}
	if (command == SERVER_PROCESS_INFO_3)
		reply_words(reply, identity->rid, 1024);
	reply_end(reply);
}

void server_reply_environment(struct server_reply *reply, const char *environment, size_t size)
{
	uint32_t count = 0;

	reply_begin(reply, SERVER_REPLY_OK);
	reply_number(reply, 0, 4);
	reply_number(reply, 0, 2);
	/*
	 * The message ends here. The data that follows has its own length in the first number, and
	 * may be longer than a message.
	 */
	reply_end(reply);
	size_t begin = reply->size;
	reply_number(reply, 0, 4);
	for (size_t at = 0; at < size;) {
		size_t length = strnlen(environment + at, size - at);
		if (memchr(environment + at, '=', length)) {
			reply_text(reply, environment + at, length, UINT32_MAX);
			count++;
		}
		at += length + 1;
	}
	if (reply->failed)
		return;
	uint32_t bytes = (uint32_t)(reply->size - begin);
	for (size_t i = 0; i < 4; i++) {
		reply->bytes[SERVER_HEADER_SIZE + i] = (uint8_t)(bytes >> (8 * i));
		reply->bytes[begin + i] = (uint8_t)(count >> (8 * i));
	}
}

void server_advertise(uint8_t bytes[SERVER_ADVERTISE_SIZE], const struct server_identity *identity)
{
	memset(bytes, 0, SERVER_ADVERTISE_SIZE);
	memcpy(bytes, "ADVR_V1", 8);
	memcpy(bytes + 8, identity->cookie, 16);
	for (size_t i = 0; i < 8; i++)
		bytes[24 + i] = (uint8_t)(identity->pid >> (8 * i));
}
