/*
 * The words of the .NET diagnostics protocol: requests made, replies understood.
 *
 * The runtime does not guard its parsers: a request that is too short or malformed crashes the process that is being observed. So
 * every request of this program is made by ipc_encode(), which works the exact size out beforehand and holds the result against it; nothing
 * else writes to a diagnostics socket. Replies come from a peer that may lie: each length is checked before it is used.
 *
 * Layouts: docs/formats/diagnostics-ipc.md.
 */
#ifndef SPOOR_DOTNET_IPC_H
#define SPOOR_DOTNET_IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes;
struct diag;

#define IPC_HEADER_SIZE   20u
#define IPC_MESSAGE_MAX   65535u
#define IPC_PROVIDERS_MAX 1000u
#define IPC_LEVEL_MAX     5u
#define IPC_TEXT_MAX      4096u  /* UTF-16 units of a provider's name or arguments */

/* Command set in the high byte, id in the low one. */
enum ipc_command {
	IPC_STOP_TRACING = 0x0201,
	IPC_COLLECT_TRACING_2 = 0x0203,
	IPC_COLLECT_TRACING_3 = 0x0204,
	IPC_COLLECT_TRACING_4 = 0x0205,
	IPC_PROCESS_INFO = 0x0400,
	IPC_RESUME_RUNTIME = 0x0401,
	IPC_PROCESS_INFO_2 = 0x0404,
	IPC_PROCESS_INFO_3 = 0x0408,
};

/* What the runtime answers when it refuses (HRESULT). */
enum ipc_error {
	IPC_ERROR_BAD_ENCODING = 0x80131384,
	IPC_ERROR_UNKNOWN_COMMAND = 0x80131385,
	IPC_ERROR_UNKNOWN_MAGIC = 0x80131386,
	IPC_ERROR_NOT_SUPPORTED = 0x80131515,
	IPC_ERROR_FAIL = 0x80004005, /* no session could be made: all 64 are taken */
};

struct ipc_provider {
	const char *name;      /* not empty */
	const char *arguments; /* NULL: none */
	uint64_t keywords;
	uint32_t level;
};

struct ipc_request {
	enum ipc_command command;
	uint64_t session_id;                  /* stop */
	uint32_t buffer_mb;                   /* collect, the rest too; not 0 */
	uint64_t rundown_keywords;            /* 4: as it is; 2 and 3 only know whether it is 0 */
	bool stacks;                          /* 3 and 4; 2 always has them */
	const struct ipc_provider *providers; /* at least one */
	uint32_t provider_count;
};

/*
 * Appends the message to `out`. -EINVAL for a request that the runtime must never see (no provider, an empty name, level above 5, a message
 * above IPC_MESSAGE_MAX), -ENOMEM; `out` is then as before.
 */
int ipc_encode(const struct ipc_request *request, struct bytes *out, struct diag *diag);

/*
 * The header of a reply. *ret_size is that of the payload behind it; *ret_ok tells a success from an error. -EPROTO when it is no reply.
 */
int ipc_decode_header(const uint8_t header[IPC_HEADER_SIZE], size_t *ret_size, bool *ret_ok,
	struct diag *diag);

/* The HRESULT in the payload of an error reply. */
int ipc_decode_error(const uint8_t *payload, size_t size, uint32_t *ret_error, struct diag *diag);

/* The session id in the payload of a reply to collect or stop. */
int ipc_decode_session(const uint8_t *payload, size_t size, uint64_t *ret_session_id,
	struct diag *diag);

/* "all 64 sessions are in use", ...; never NULL. */
const char *ipc_error_words(uint32_t error);

/* Who the peer says it is. Texts are UTF-8, never NULL after a success, freed by ipc_process_info_done(). */
struct ipc_process_info {
	uint64_t pid;            /* as the peer sees itself */
	uint8_t cookie[16];      /* of this run of the runtime */
	char *command_line;
	char *system;            /* "Linux" */
	char *architecture;      /* "x64" */
	char *entry_assembly;    /* "" before ProcessInfo2 */
	char *runtime_version;   /* "10.0.12"; "" before ProcessInfo2 */
};

/* The payload of the reply to `command`, one of the three ProcessInfo. -EPROTO when it is too short or lies. */
int ipc_decode_process_info(enum ipc_command command, const uint8_t *payload, size_t size,
	struct ipc_process_info *ret_info, struct diag *diag);

void ipc_process_info_done(struct ipc_process_info *info);

#endif
