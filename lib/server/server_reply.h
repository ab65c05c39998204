/* Makes the replies of the diagnostics server, in the layouts of the runtime. */
#ifndef SPOOR_LIB_SERVER_SERVER_REPLY_H
#define SPOOR_LIB_SERVER_SERVER_REPLY_H

#include "lib/server/server_request.h"

/*
 * A growable buffer; freed by its owner. After a failed allocation `failed` stays true and nothing
 * is added.
 */
struct server_reply {
	uint8_t *bytes;
	size_t size;
	size_t room;
	bool failed;
};

/*
 * The process, for the three versions of ProcessInfo. Texts are UTF-8; bytes that are not valid
 * become U+FFFD.
 */
struct server_identity {
	uint64_t pid;
	uint8_t cookie[16];
	const char *command_line;
	const char *system;
	const char *architecture;
	const char *entry;
	const char *version;
	const char *rid;
};

#define SERVER_ADVERTISE_SIZE 34u

void server_reply_done(struct server_reply *reply);
void server_reply_error(struct server_reply *reply, uint32_t error);
void server_reply_u32(struct server_reply *reply, uint32_t value);  /* OK and one number */
void server_reply_session(struct server_reply *reply, uint64_t id); /* OK and the id of a session */
void server_reply_info(struct server_reply *reply, enum server_command command,
	const struct server_identity *identity);
/*
 * NAME=value and NUL for each variable. An entry without '=' is left out, because readers stop at
 * it.
 */
void server_reply_environment(struct server_reply *reply, const char *environment, size_t size);
void server_advertise(uint8_t bytes[SERVER_ADVERTISE_SIZE], const struct server_identity *identity);

#endif
