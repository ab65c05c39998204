/*
 * The messages of the .NET diagnostics protocol: encodes requests, decodes replies.
 *
 * The runtime's parsers do not check their input: a request that is too short or malformed crashes
 * the process that is being observed. So every request of this program is made by ipc_encode(),
 * which computes the exact size beforehand and compares it with the result; nothing else writes to
 * a diagnostics socket. Replies may come from a hostile process: each length is checked before it
 * is used.
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
/* UTF-16 units of a provider's name or arguments, of a path, of a variable's name */
#define IPC_TEXT_MAX       4096u
#define IPC_VALUE_MAX      24000u /* ... of a variable's value */
#define IPC_EVENT_IDS_MAX  4096u  /* of one provider */
#define IPC_TRACEPOINT_MAX 200u   /* characters of a tracepoint's name: letters, digits and _ */

/* The largest environment read; the kernel allows 6 MiB in UTF-8. */
#define IPC_ENVIRONMENT_MAX (16u << 20)

/* Command set in the high byte, id in the low one. */
enum ipc_command {
	IPC_CORE_DUMP = 0x0101,
	IPC_CORE_DUMP_2 = 0x0102,
	IPC_CORE_DUMP_3 = 0x0103, /* .NET 7 */
	IPC_STOP_TRACING = 0x0201,
	IPC_COLLECT_TRACING_2 = 0x0203,
	IPC_COLLECT_TRACING_3 = 0x0204, /* .NET 9 */
	IPC_COLLECT_TRACING_4 = 0x0205, /* .NET 9 */
	IPC_COLLECT_TRACING_5 = 0x0206, /* .NET 10 */
	IPC_PROCESS_INFO = 0x0400,
	IPC_RESUME_RUNTIME = 0x0401,
	IPC_PROCESS_ENVIRONMENT = 0x0402,
	IPC_SET_ENVIRONMENT = 0x0403,
	IPC_PROCESS_INFO_2 = 0x0404,
	IPC_ENABLE_PERF_MAP = 0x0405,  /* .NET 8 */
	IPC_DISABLE_PERF_MAP = 0x0406, /* .NET 8 */
	IPC_STARTUP_HOOK = 0x0407,     /* .NET 8 */
	IPC_PROCESS_INFO_3 = 0x0408,
};

enum ipc_dump_type {
	IPC_DUMP_MINI = 1,
	IPC_DUMP_HEAP = 2,
	IPC_DUMP_TRIAGE = 3,
	IPC_DUMP_FULL = 4,
};

enum ipc_dump_flag {
	IPC_DUMP_LOG = 1 << 0, /* the only flag of IPC_CORE_DUMP */
	IPC_DUMP_VERBOSE = 1 << 1,
	IPC_DUMP_CRASH_REPORT = 1 << 2,
};

enum ipc_perf_map {
	IPC_PERF_MAP_ALL = 1,
	IPC_PERF_MAP_JITDUMP = 2,
	IPC_PERF_MAP_PERFMAP = 3,
};

/* The runtime's error codes (HRESULT). */
enum ipc_error {
	IPC_ERROR_BAD_ENCODING = 0x80131384,
	IPC_ERROR_UNKNOWN_COMMAND = 0x80131385,
	IPC_ERROR_UNKNOWN_MAGIC = 0x80131386,
	IPC_ERROR_NOT_SUPPORTED = 0x80131515,
	/* no session could be made: all 64 are taken; or the dump failed */
	IPC_ERROR_FAIL = 0x80004005,
	IPC_ERROR_INVALID_ARGUMENT = 0x80070057,
	IPC_ERROR_NO_SUCH_VARIABLE = 0x800000cb,
};

struct ipc_provider {
	const char *name;      /* not empty */
	const char *arguments; /* NULL: none */
	uint64_t keywords;
	uint32_t level;
	/* Ids of some of its events; refused with any command but CollectTracing5. */
	const uint32_t *event_ids;
	uint32_t event_id_count;
	bool only_event_ids; /* these alone (without any: none); else all but these */
	/* with user_events: the name of the tracepoint of all its events */
	const char *tracepoint;
};

struct ipc_request {
	enum ipc_command command;
	uint64_t session_id; /* stop */
	/* CollectTracing, as the fields up to provider_count; not 0 */
	uint32_t buffer_mb;
	/* 4 and 5: sent unchanged; 2 and 3 send only whether it is 0 */
	uint64_t rundown_keywords;
	bool stacks; /* 3 and later; 2 always has them */
	/*
	 * 5: the events go to the kernel's user_events, and no stream follows. A descriptor of user_events_data is sent
	 * after the request (exchange.h); buffer_mb and stacks are not sent
	 */
	bool user_events;
	const struct ipc_provider *providers; /* at least one */
	uint32_t provider_count;
	/* dump, as the target sees it; NULL or "": a default name in its /tmp */
	const char *path;
	/*
	 * startup hook: an absolute path, as the target sees it, without ':'. The runtime loads and
	 * runs it immediately, and ends the target if that fails: see forward/hook_folder.h
	 */
	const char *hook;
	enum ipc_dump_type dump_type;
	unsigned dump_flags; /* enum ipc_dump_flag */
	enum ipc_perf_map perf_map;
	/* set environment: a name, not empty and without '=' */
	const char *variable;
	const char *value; /* NULL removes it */
};

bool ipc_is_collect(enum ipc_command command);

/*
 * The oldest CollectTracing that can express the whole request: 2 where it is enough, since every
 * runtime knows it; 5 with event ids, 4 with rundown keywords that are neither none nor the ones 2
 * implies, 3 without stacks. And the command to fall back to when a runtime does not know
 * `command`: 0 when there is none (event ids cannot be left out), else the next older one, which
 * sends stacks or a whole rundown where the request wanted less.
 */
enum ipc_command ipc_collect_command(const struct ipc_request *request);
enum ipc_command ipc_collect_fallback(enum ipc_command command);

/* The rundown that CollectTracing 2 and 3 mean by "yes". */
#define IPC_RUNDOWN_WHOLE UINT64_C(0x80020139)

/*
 * Appends the message to `out`. -EINVAL for a request that the runtime must never see (no provider,
 * an empty name, level above 5, a dump of no type, a message above IPC_MESSAGE_MAX), -ENOMEM; `out`
 * is then as before.
 */
int ipc_encode(const struct ipc_request *request, struct bytes *out, struct diag *diag);

/* Decodes a reply's header. *ret_size: of the payload; *ret_ok: no error. -EPROTO. */
int ipc_decode_header(const uint8_t header[IPC_HEADER_SIZE], size_t *ret_size, bool *ret_ok,
	struct diag *diag);

/* The HRESULT in the payload of an error reply. */
int ipc_decode_error(const uint8_t *payload, size_t size, uint32_t *ret_error, struct diag *diag);

/*
 * The text after the HRESULT of a refused IPC_CORE_DUMP_3: the output of createdump, with its line
 * ends, as UTF-8; "" when there is none. The caller frees it; NULL when memory ran out.
 */
char *ipc_decode_error_text(const uint8_t *payload, size_t size);

/* The session id in the payload of a reply to collect or stop. */
int ipc_decode_session(const uint8_t *payload, size_t size, uint64_t *ret_session_id,
	struct diag *diag);

/* "all 64 sessions are in use", ...; never NULL. */
const char *ipc_error_words(uint32_t error);

/* The reply to ProcessInfo, UTF-8, never NULL; ipc_process_info_done() frees it. */
struct ipc_process_info {
	uint64_t pid;       /* as the peer sees itself */
	uint8_t cookie[16]; /* of this run of the runtime */
	char *command_line;
	char *system;          /* "Linux" */
	char *architecture;    /* "x64" */
	char *entry_assembly;  /* "" before ProcessInfo2 */
	char *runtime_version; /* "10.0.12"; "" before ProcessInfo2 */
};

/* Decodes the reply to one of the three ProcessInfo commands. -EPROTO: wrong lengths. */
int ipc_decode_process_info(enum ipc_command command, const uint8_t *payload, size_t size,
	struct ipc_process_info *ret_info, struct diag *diag);

void ipc_process_info_done(struct ipc_process_info *info);

/*
 * The reply to IPC_PROCESS_ENVIRONMENT says how many bytes follow it on the connection; -EPROTO
 * when they are more than IPC_ENVIRONMENT_MAX. Then these bytes hold the variables, each of which
 * goes to `each` as "NAME=value" (UTF-8, NUL-terminated, borrowed for the call); a return other
 * than 0 ends it and is returned.
 */
int ipc_decode_environment_size(const uint8_t *payload, size_t size, size_t *ret_size,
	struct diag *diag);
int ipc_decode_environment(const uint8_t *data, size_t size,
	int (*each)(void *user, const char *variable), void *user, struct diag *diag);

#endif
