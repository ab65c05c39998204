/*
 * Requests of an external program to the library's diagnostics socket: a header, then its payload
 * decoded as each command.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/server/server_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct server_request request;
	enum server_command command;
	size_t payload_size;

	if (size < SERVER_HEADER_SIZE || server_request_header(data, &command, &payload_size) != 0)
		return 0;
	/*
	 * The server waits for the complete payload, so the decoder never gets fewer bytes than the
	 * header announces.
	 */
	if (payload_size > size - SERVER_HEADER_SIZE)
		payload_size = size - SERVER_HEADER_SIZE;
	uint8_t *payload = malloc(payload_size + !payload_size);
	if (!payload)
		return 0;
	memcpy(payload, data + SERVER_HEADER_SIZE, payload_size);
	if (server_request_read(command, payload, payload_size, &request) == 0) {
		size_t bytes = 0;
		for (uint32_t i = 0; i < request.provider_count; i++) {
			const struct server_provider *provider = &request.providers[i];
			if (!*provider->name || provider->level > SERVER_LEVEL_MAX)
				abort();
			bytes += strlen(provider->name) +
				 (provider->arguments ? strlen(provider->arguments) : 0) +
				 provider->id_count;
		}
		/*
		 * No text is longer than its source: a UTF-16 unit takes at most 3 bytes of UTF-8.
		 */
		if (bytes > payload_size / 2 * 3)
			abort();
		server_request_done(&request);
	}
	free(payload);
	return 0;
}
