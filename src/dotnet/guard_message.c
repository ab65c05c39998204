/* See guard_message.h. */
#include "dotnet/guard_message.h"

#include <errno.h>
#include <string.h>

int guard_message_needed(const struct guard_message *message, size_t got, size_t *ret_needed)
{
	if (got < GUARD_MESSAGE_MIN) {
		*ret_needed = GUARD_MESSAGE_MIN - got;
		return 0;
	}
	size_t text_size = message->size - GUARD_MESSAGE_MIN;

	if (message->size < GUARD_MESSAGE_MIN || text_size > sizeof(message->tmpdir) ||
		got > message->size)
		return -EBADMSG;
	if (message->order < GUARD_ORDER_ADD || message->order > GUARD_ORDER_REMOVE)
		return -EBADMSG;
	if ((message->order == GUARD_ORDER_ADD) != (text_size > 0))
		return -EBADMSG;
	if (got == message->size && text_size && !memchr(message->tmpdir, 0, text_size))
		return -EBADMSG;
	*ret_needed = message->size - got;
	return 0;
}
