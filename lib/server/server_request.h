/*
 * The requests of the diagnostics protocol, read from bytes that a peer sent.
 *
 * This is the one place where a stranger's bytes become values: every count is held against the bytes that are there before it is used, nothing is
 * allocated that the message could not fill, and what the runtime refuses is refused with the runtime's own code. Where the runtime crashes
 * (an empty payload, a provider cut short) the answer here is SERVER_BAD_ENCODING. No call touches anything but its arguments.
 *
 * Layouts: docs/formats/diagnostics-ipc.md.
 */
#ifndef SPOOR_LIB_SERVER_SERVER_REQUEST_H
#define SPOOR_LIB_SERVER_SERVER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVER_MAGIC          "DOTNET_IPC_V1" /* 14 bytes with its NUL */
#define SERVER_HEADER_SIZE    20u
#define SERVER_MESSAGE_MAX    65535u
#define SERVER_PROVIDERS_MAX  1000u
#define SERVER_LEVEL_MAX      5u

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

/* What is answered to a request that is refused (HRESULT). */
enum server_error {
	SERVER_BAD_ENCODING = 0x80131384,
	SERVER_UNKNOWN_COMMAND = 0x80131385,
	SERVER_UNKNOWN_MAGIC = 0x80131386,
	SERVER_NOT_SUPPORTED = 0x80131515,
	SERVER_FAIL = 0x80004005,
};

/* What "rundown: true" of the older commands stands for. */
#define SERVER_RUNDOWN_DEFAULT 0x80020139u

struct server_provider {
	uint64_t keywords;
	uint32_t level;
	bool ids_only;        /* only `ids`; else all but `ids` */
	char *name;           /* UTF-8, not empty */
	char *arguments;      /* UTF-8; NULL: none */
	uint32_t *ids;
	uint32_t id_count;
};

struct server_request {
	enum server_command command;
	uint64_t session_id;       /* stop */
	uint32_t buffer_mb;        /* collect, and all that follows */
	uint64_t rundown_keywords; /* 0: no rundown */
	bool stacks;
	struct server_provider *providers;
	uint32_t provider_count;
};

/*
 * The header of a message. Returns 0 and how many bytes of payload follow, or what to answer: a message that does not begin with the magic,
 * or says that it is shorter than its header, has no payload that could be trusted.
 */
uint32_t server_request_header(const uint8_t header[SERVER_HEADER_SIZE], enum server_command *ret_command,
	size_t *ret_payload_size);

/*
 * The payload of a command. Returns 0 and fills `ret_request`, which the caller frees by server_request_done(), or what to answer. Bytes behind
 * what a command needs are ignored, as the runtime does.
 */
uint32_t server_request_read(enum server_command command, const uint8_t *payload, size_t size,
	struct server_request *ret_request);

void server_request_done(struct server_request *request);

#endif
