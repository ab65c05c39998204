/*
 * Reads requests. A view of the payload with a sticky failure reads each command's fields in wire
 * order. Values that the runtime refuses are refused after the last field they belong to, so that a
 * message is either accepted or refused as a whole.
 */
#include "lib/server/server_request.h"

#include <stdlib.h>
#include <string.h>

/* The rest of the payload. `failed` is sticky: every read after it returns 0. */
struct request_view {
	const uint8_t *at;
	size_t left;
	bool failed;
};

static const uint8_t *request_view_take(struct request_view *v, size_t size)
{
	const uint8_t *at = v->at;

	if (v->failed || size > v->left) {
		v->failed = true;
		return NULL;
	}
	v->at += size;
	v->left -= size;
	return at;
}

static uint64_t request_view_number(struct request_view *v, size_t size)
{
	const uint8_t *at = request_view_take(v, size);
	uint64_t value = 0;

	for (size_t i = 0; at && i < size; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static uint32_t request_view_u32(struct request_view *v)
{
	return (uint32_t)request_view_number(v, 4);
}

static uint64_t request_view_u64(struct request_view *v)
{
	return request_view_number(v, 8);
}

static bool request_view_bool(struct request_view *v)
{
	return request_view_number(v, 1) != 0;
}

/*
 * Converts UTF-16 to UTF-8; a lone surrogate becomes U+FFFD. `to` has room for 3 bytes for each
 * unit, and the NUL.
 */
static void request_text_from_utf16(const uint8_t *units, size_t count, char *to)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t c = units[2 * i] | (uint32_t)units[2 * i + 1] << 8;
		if (c >= 0xd800 && c < 0xdc00 && i + 1 < count) {
			uint32_t low = units[2 * i + 2] | (uint32_t)units[2 * i + 3] << 8;
			if (low >= 0xdc00 && low < 0xe000) {
				c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
				i++;
			}
		}
		if (c >= 0xd800 && c < 0xe000)
			c = 0xfffd;
		if (c < 0x80) {
			*to++ = (char)c;
		} else if (c < 0x800) {
			*to++ = (char)(0xc0 | c >> 6);
			*to++ = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
			*to++ = (char)(0x80 | (c >> 6 & 0x3f));
			*to++ = (char)(0x80 | (c & 0x3f));
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 0x3f));
			*to++ = (char)(0x80 | (c >> 6 & 0x3f));
			*to++ = (char)(0x80 | (c & 0x3f));
		}
	}
	*to = '\0';
}

/*
 * A text: the number of UTF-16 units with the final NUL, then the units; a NUL inside ends the
 * text. NULL: it is absent (no units), or it cannot be read, which sets `failed`.
 */
static char *request_view_text(struct request_view *v)
{
	uint32_t count = request_view_u32(v);

	if (v->failed || count == 0)
		return NULL;
	/* Compared with the remaining bytes before anything is multiplied or allocated. */
	if (count > v->left / 2) {
		v->failed = true;
		return NULL;
	}
	const uint8_t *units = request_view_take(v, (size_t)count * 2);
	if (!units)
		return NULL;
	if (units[2 * count - 2] || units[2 * count - 1]) {
		v->failed = true;
		return NULL;
	}
	size_t length = 0;
	while (units[2 * length] || units[2 * length + 1])
		length++;
	char *text = malloc(length * 3 + 1);
	if (!text) {
		v->failed = true;
		return NULL;
	}
	request_text_from_utf16(units, length, text);
	return text;
}

/* Reads all ids of a filter. */
static void request_view_ids(struct request_view *v, struct server_provider *provider)
{
	uint32_t count = request_view_u32(v);

	if (v->failed || count > v->left / 4) {
		v->failed = true;
		return;
	}
	if (count == 0)
		return;
	provider->ids = calloc(count, sizeof(*provider->ids));
	if (!provider->ids) {
		v->failed = true;
		return;
	}
	provider->id_count = count;
	for (uint32_t i = 0; i < count; i++)
		provider->ids[i] = request_view_u32(v);
}

static void request_view_providers(struct request_view *v, bool filtered,
	struct server_request *request)
{
	uint32_t count = request_view_u32(v);

	/* The smallest provider has 20 bytes: keywords, level, two texts without a unit. */
	if (v->failed || count == 0 || count > SERVER_PROVIDERS_MAX || count > v->left / 20) {
		v->failed = true;
		return;
	}
	request->providers = calloc(count, sizeof(*request->providers));
	if (!request->providers) {
		v->failed = true;
		return;
	}
	request->provider_count = count;
	for (uint32_t i = 0; i < count && !v->failed; i++) {
		struct server_provider *provider = &request->providers[i];
		provider->keywords = request_view_u64(v);
		provider->level = request_view_u32(v);
		provider->name = request_view_text(v);
		provider->arguments = request_view_text(v);
		if (filtered) {
			provider->ids_only = request_view_bool(v);
			request_view_ids(v, provider);
		}
		if (provider->level > SERVER_LEVEL_MAX || !provider->name || !*provider->name)
			v->failed = true;
	}
}

uint32_t server_request_header(const uint8_t header[SERVER_HEADER_SIZE],
	enum server_command *ret_command, size_t *ret_payload_size)
{
	uint32_t size = header[14] | (uint32_t)header[15] << 8;

	if (memcmp(header, SERVER_MAGIC, 14) != 0)
		return SERVER_UNKNOWN_MAGIC;
	if (size < SERVER_HEADER_SIZE)
		return SERVER_BAD_ENCODING;
	*ret_command = (enum server_command)(header[16] << 8 | header[17]);
	*ret_payload_size = size - SERVER_HEADER_SIZE;
	return 0;
}

/*
 * Reads the fields of the five commands that start a session; newer ones have more fields between
 * the format and the providers.
 */
static uint32_t request_read_collect(struct request_view *v, struct server_request *request)
{
	if (request->command == SERVER_COLLECT_TRACING_5) {
		uint32_t kind = request_view_u32(v);
		if (v->failed || kind > 1)
			return SERVER_BAD_ENCODING;
		if (kind == 1)
			/* user_events: the kernel writes these, there is no stream */
			return SERVER_NOT_SUPPORTED;
	}
	request->buffer_mb = request_view_u32(v);
	uint32_t format = request_view_u32(v);
	request->rundown_keywords = SERVER_RUNDOWN_DEFAULT;
	request->stacks = true;
	switch (request->command) {
	case SERVER_COLLECT_TRACING_2:
		request->rundown_keywords = request_view_bool(v) ? SERVER_RUNDOWN_DEFAULT : 0;
		break;
	case SERVER_COLLECT_TRACING_3:
		request->rundown_keywords = request_view_bool(v) ? SERVER_RUNDOWN_DEFAULT : 0;
		request->stacks = request_view_bool(v);
		break;
	case SERVER_COLLECT_TRACING_4:
	case SERVER_COLLECT_TRACING_5:
		request->rundown_keywords = request_view_u64(v);
		request->stacks = request_view_bool(v);
		break;
	default:
		break;
	}
	request_view_providers(v, request->command == SERVER_COLLECT_TRACING_5, request);
	if (v->failed || request->buffer_mb == 0 || format > 1)
		return SERVER_BAD_ENCODING;
	/*
	 * Format 0 is nettrace before .NET Core 3.0, which the library does not write and current
	 * tools do not request.
	 */
	return format == 1 ? 0 : SERVER_NOT_SUPPORTED;
}

uint32_t server_request_read(enum server_command command, const uint8_t *payload, size_t size,
	struct server_request *ret_request)
{
	struct server_request request = { .command = command };
	struct request_view v = { .at = payload, .left = size };
	uint32_t error = 0;

	switch (command) {
	case SERVER_PROCESS_INFO:
	case SERVER_PROCESS_INFO_2:
	case SERVER_PROCESS_INFO_3:
	case SERVER_RESUME:
	case SERVER_ENVIRONMENT:
		break;
	case SERVER_STOP_TRACING:
		request.session_id = request_view_u64(&v);
		error = v.failed ? SERVER_BAD_ENCODING : 0;
		break;
	case SERVER_COLLECT_TRACING:
	case SERVER_COLLECT_TRACING_2:
	case SERVER_COLLECT_TRACING_3:
	case SERVER_COLLECT_TRACING_4:
	case SERVER_COLLECT_TRACING_5:
		error = request_read_collect(&v, &request);
		break;
	default:
		error = SERVER_UNKNOWN_COMMAND;
		break;
	}
	if (error) {
		server_request_done(&request);
		return error;
	}
	*ret_request = request;
	return 0;
}

void server_request_done(struct server_request *request)
{
	for (uint32_t i = 0; i < request->provider_count; i++) {
		free(request->providers[i].name);
		free(request->providers[i].arguments);
		free(request->providers[i].ids);
	}
	free(request->providers);
	*request = (struct server_request){ 0 };
}
