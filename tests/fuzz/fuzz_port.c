/*
 * Foreign input of the diagnostics ports: an advertisement at a listen port, a message to the guard
 * (in pieces, as a stream delivers it), and the files of /proc about a target. The first byte
 * selects one.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dotnet/guard_message.h"
#include "dotnet/port.h"
#include "dotnet/reverse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void advertise(const uint8_t *data, size_t size)
{
	struct reverse_peer peer;

	if (reverse_parse_advertise(data, size, &peer) &&
		(size < REVERSE_ADVERTISE_SIZE || peer.pid ||
			memcmp(peer.cookie, data + 8, 16) != 0))
		abort();
}

static void guard(const uint8_t *data, size_t size)
{
	struct guard_message *message = calloc(1, sizeof(*message));
	size_t got = 0;
	size_t needed;

	while (message && guard_message_needed(message, got, &needed) == 0) {
		if (needed > sizeof(*message) - got)
			abort();
		if (!needed) {
			if (message->order == GUARD_ORDER_ADD &&
				GUARD_MESSAGE_MIN + strlen(message->tmpdir) >= message->size)
				abort();
			break;
		}
		size_t piece = needed > 1 ? needed / 2 : needed;
		if (piece > size)
			break;
		memcpy((uint8_t *)message + got, data, piece);
		got += piece;
		data += piece;
		size -= piece;
	}
	free(message);
}

static void target(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	char tmpdir[DOTNET_DIR_MAX];
	uint64_t start_ticks;
	char state;

	if (!text)
		return;
	dotnet_parse_tmpdir((const char *)data, size, tmpdir);
	if (memchr(tmpdir, 0, sizeof(tmpdir)) == NULL)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	(void)dotnet_parse_stat(text, &state, &start_ticks); /* any result is accepted */
	(void)dotnet_parse_inner_pid(text, 7);               /* any result is accepted */
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parsers[])(const uint8_t *data, size_t size) = { advertise, guard,
		target };

	if (size)
		parsers[data[0] % 3](data + 1, size - 1);
	return 0;
}
