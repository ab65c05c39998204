/*
 * Reads requests of the diagnostics protocol from the bytes that a peer sent.
 *
 * The bytes are not trusted: every count is compared with the remaining bytes before it is used,
 * memory is allocated only for data that the message contains, and requests that the runtime
 * refuses are refused with the runtime's code. Where the runtime crashes (an empty payload, a
 * truncated provider), the answer is SERVER_BAD_ENCODING. Functions use their arguments only, so
 * they may be called from any thread.
 *
 * Layouts: docs/formats/diagnostics-ipc.md.
 */
#ifndef SPOOR_LIB_SERVER_SERVER_REQUEST_H
#define SPOOR_LIB_SERVER_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVER_MAGIC         "DOTNET_IPC_V1" /* 14 bytes with its NUL */
#define SERVER_HEADER_SIZE   20u
#define SERVER_MESSAGE_MAX   65535u
#define SERVER_PROVIDERS_MAX 1000u
#define SERVER_LEVEL_MAX     5u

/* Command set in the high byte, id in the low one. */
enum server_command {
	SERVER_STOP_TRACING = 0x0201,
	SERVER_COLLECT_TRACING = 0x0202,
	SERVER_COLLECT_TRACING_2 = 0x0203,
	SERVER_COLLECT_TRACING_3 = 0x0204,
	SERVER_COLLECT_TRACING_4 = 0x0205,
	SERVER_COLLECT_TRACING_5 = 0x0206,
	SERVER_PROCESS_INFO = 0x0400,
	SERVER_RESUME = 0x0401,
	SERVER_ENVIRONMENT = 0x0402,
	SERVER_PROCESS_INFO_2 = 0x0404,
	SERVER_PROCESS_INFO_3 = 0x0408,
	SERVER_REPLY_OK = 0xff00,
	SERVER_REPLY_ERROR = 0xffff,
};

/* The code (HRESULT) in the reply to a refused request. */
enum server_error {
	SERVER_BAD_ENCODING = 0x80131384,
	SERVER_UNKNOWN_COMMAND = 0x80131385,
	SERVER_UNKNOWN_MAGIC = 0x80131386,
	SERVER_NOT_SUPPORTED = 0x80131515,
	SERVER_FAIL = 0x80004005,
};

/* The rundown keywords that "rundown: true" of the older commands means. */
#define SERVER_RUNDOWN_DEFAULT 0x80020139u

struct server_provider {
	uint64_t keywords;
	uint32_t level;
	bool ids_only;   /* true: only `ids`; false: all but `ids` */
	char *name;      /* UTF-8, not empty */
	char *arguments; /* UTF-8; NULL: none */
	uint32_t *ids;
	uint32_t id_count;
};

struct server_request {
	enum server_command command;
	uint64_t session_id;       /* of a stop command */
	uint32_t buffer_mb;        /* for the collect commands, like all members that follow */
	uint64_t rundown_keywords; /* 0: no rundown */
	bool stacks;
	struct server_provider *providers;
	uint32_t provider_count;
};

/*
 * Reads the header of a message. Returns 0 and the size of the payload, or the error to reply: a
 * message without the magic, or with a size below that of its header, has no payload.
 */
uint32_t server_request_header(const uint8_t header[SERVER_HEADER_SIZE],
	enum server_command *ret_command, size_t *ret_payload_size);

/*
 * Reads the payload of a command. Returns 0 and fills `ret_request`, which the caller frees with
 * server_request_done(), or returns the error to reply. Bytes after the command's fields are
 * ignored, as in the runtime.
 */
uint32_t server_request_read(enum server_command command, const uint8_t *payload, size_t size,
	struct server_request *ret_request);

void server_request_done(struct server_request *request);

#endif
