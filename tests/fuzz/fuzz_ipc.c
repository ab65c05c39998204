/*
 * Replies of a diagnostics peer: a header, then its payload decoded as the reply to each command.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "dotnet/ipc.h"

static int add_length(void *user, const char *variable)
{
	*(size_t *)user += strlen(variable);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum ipc_command commands[] = { IPC_PROCESS_INFO, IPC_PROCESS_INFO_2,
		IPC_PROCESS_INFO_3 };
	struct diag diag = { 0 };
	size_t payload_size;
	uint64_t session_id;
	uint32_t error;
	bool ok;

	if (size < IPC_HEADER_SIZE || ipc_decode_header(data, &payload_size, &ok, &diag) < 0)
		return 0;
	/* A peer may send fewer bytes than its header announces; the client reads only those. */
	if (payload_size > size - IPC_HEADER_SIZE)
		payload_size = size - IPC_HEADER_SIZE;
	uint8_t *payload = malloc(payload_size + !payload_size);
	if (!payload)
		return 0;
	memcpy(payload, data + IPC_HEADER_SIZE, payload_size);
	if (ipc_decode_error(payload, payload_size, &error, &diag) == 0 && !*ipc_error_words(error))
		abort();
	(void)ipc_decode_session(payload, payload_size, &session_id, &diag);
	for (unsigned i = 0; i < 3; i++) {
		struct ipc_process_info info;
		if (ipc_decode_process_info(commands[i], payload, payload_size, &info, &diag) < 0)
			continue;
		/*
		 * No text is longer than its source: a UTF-16 unit takes at most 3 bytes of UTF-8.
		 */
		if (strlen(info.command_line) + strlen(info.system) + strlen(info.architecture) +
				strlen(info.entry_assembly) + strlen(info.runtime_version) >
			payload_size / 2 * 3)
			abort();
		ipc_process_info_done(&info);
	}
	char *text = ipc_decode_error_text(payload, payload_size);
	if (text && strlen(text) > payload_size / 2 * 3)
		abort();
	free(text);
	size_t follow;
	(void)ipc_decode_environment_size(payload, payload_size, &follow, &diag);
	size_t total = 0;
	(void)ipc_decode_environment(payload, payload_size, add_length, &total, &diag);
	if (total > payload_size / 2 * 3)
		abort();
	free(payload);
	return 0;
}
