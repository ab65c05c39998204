/* The layout of the messages from the owner of sessions to the guard. */
#ifndef SPOOR_DOTNET_GUARD_MESSAGE_H
#define SPOOR_DOTNET_GUARD_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "dotnet/port.h"

enum guard_order {
	GUARD_ORDER_ADD = 1,
	GUARD_ORDER_SESSION,
	GUARD_ORDER_REMOVE,
};

struct guard_message {
	uint32_t size;  /* bytes of the whole message */
	uint32_t order; /* enum guard_order */
	uint32_t key;
	uint64_t session_id;
	uint64_t start_ticks;
	uint32_t pid;
	uint32_t inner_pid;
	char tmpdir[DOTNET_DIR_MAX]; /* sent up to its NUL, with GUARD_ORDER_ADD alone */
};

#define GUARD_MESSAGE_MIN offsetof(struct guard_message, tmpdir)

/* Bytes missing after `got`; 0: whole, with an ended text. -EBADMSG: it is no message. */
int guard_message_needed(const struct guard_message *message, size_t got, size_t *ret_needed);

#endif
