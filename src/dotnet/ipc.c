/* See ipc.h. */
#include "dotnet/ipc.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/diag.h"
#include "base/text.h"

/*
 * Message header, little-endian (docs/formats/diagnostics-ipc.md, "Message").
 *
 *   offset  size  field
 *   0       14    magic     "DOTNET_IPC_V1" and a NUL
 *   14      2     size      of the whole message
 *   16      1     set       of commands; 0xff: a reply
 *   17      1     command   in a reply: 0 success, 0xff error
 *   18      2     reserved  0
 */
#define MAGIC      "DOTNET_IPC_V1"
#define MAGIC_SIZE 14u
#define SET_SERVER 0xffu

#define FORMAT_NETTRACE 1u

enum { SESSION_STREAMS = 0, SESSION_USER_EVENTS = 1 };

/* UTF-16 units of a text without its NUL. */
static size_t text_units(const char *text)
{
	size_t len = strlen(text);
	size_t units = 0;

	for (size_t at = 0; at < len;)
		units += text_next_char(text, len, &at) >= 0x10000 ? 2 : 1;
	return units;
}

/* A count of units with the NUL, then the units; an absent one is the count 0 alone. */
static size_t text_size(const char *text)
{
	return text ? 4 + 2 * (text_units(text) + 1) : 4;
}

static void put_text(struct bytes *out, const char *text)
{
	if (!text) {
		bytes_u32(out, 0);
		return;
	}
	bytes_u32(out, (uint32_t)text_units(text) + 1);
	bytes_utf16z(out, text, strlen(text), IPC_TEXT_MAX);
}

bool ipc_is_collect(enum ipc_command command)
{
	return command == IPC_COLLECT_TRACING_2 || command == IPC_COLLECT_TRACING_3 ||
	       command == IPC_COLLECT_TRACING_4 || command == IPC_COLLECT_TRACING_5;
}

static bool has_filter(const struct ipc_provider *provider)
{
	return provider->only_event_ids || provider->event_id_count;
}

enum ipc_command ipc_collect_command(const struct ipc_request *request)
{
	for (uint32_t i = 0; i < request->provider_count; i++)
		if (has_filter(&request->providers[i]))
			return IPC_COLLECT_TRACING_5;
	if (request->rundown_keywords && request->rundown_keywords != IPC_RUNDOWN_WHOLE)
		return IPC_COLLECT_TRACING_4;
	return request->stacks ? IPC_COLLECT_TRACING_2 : IPC_COLLECT_TRACING_3;
}

enum ipc_command ipc_collect_fallback(enum ipc_command command)
{
	switch (command) {
	case IPC_COLLECT_TRACING_4:
		return IPC_COLLECT_TRACING_3;
	case IPC_COLLECT_TRACING_3:
		return IPC_COLLECT_TRACING_2;
	default:
		return (enum ipc_command)0;
	}
}

static int check_text(const char *what, const char *text, size_t units_max, struct diag *diag)
{
	if (text && text_units(text) > units_max)
		return diag_set(diag, -EINVAL, "%s is longer than %zu characters", what, units_max);
	return 0;
}

/* The runtime passes the name to the kernel, followed by the description of the fields. */
static int check_tracepoint(const struct ipc_provider *provider, struct diag *diag)
{
	const char *name = provider->tracepoint ? provider->tracepoint : "";
	size_t len =
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	if (!len || name[len] || len > IPC_TRACEPOINT_MAX)
		return diag_set(diag, -EINVAL, "provider '%s': '%s' is no name of a tracepoint",
			provider->name, name);
	return 0;
}

static int check_collect(const struct ipc_request *request, struct diag *diag)
{
	if (request->user_events && request->command != IPC_COLLECT_TRACING_5)
		return diag_set(diag, -EINVAL, "this request cannot have user_events");
	if (!request->buffer_mb && !request->user_events)
		return diag_set(diag, -EINVAL, "a session needs a buffer");
	if (!request->provider_count || request->provider_count > IPC_PROVIDERS_MAX)
		return diag_set(diag, -EINVAL, "a session takes 1 to %u providers, not %" PRIu32,
			IPC_PROVIDERS_MAX, request->provider_count);
	for (uint32_t i = 0; i < request->provider_count; i++) {
		const struct ipc_provider *provider = &request->providers[i];
		if (!provider->name || !*provider->name)
			return diag_set(diag, -EINVAL, "a provider needs a name");
		if (provider->level > IPC_LEVEL_MAX)
			return diag_set(diag, -EINVAL,
				"provider '%s': level %" PRIu32 " is above %u", provider->name,
				provider->level, IPC_LEVEL_MAX);
		int r = check_text("a provider's name", provider->name, IPC_TEXT_MAX, diag);
		if (r == 0)
			r = check_text("what a provider is told", provider->arguments, IPC_TEXT_MAX,
				diag);
		if (r < 0)
			return r;
		if (provider->event_id_count > IPC_EVENT_IDS_MAX)
			return diag_set(diag, -EINVAL, "provider '%s': more than %u event ids",
				provider->name, IPC_EVENT_IDS_MAX);
		if (has_filter(provider) && request->command != IPC_COLLECT_TRACING_5)
			return diag_set(diag, -EINVAL,
				"provider '%s': this request cannot choose events by id",
				provider->name);
		r = request->user_events ? check_tracepoint(provider, diag) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_environment(const struct ipc_request *request, struct diag *diag)
{
	int r;

	if (!request->variable || !*request->variable || strchr(request->variable, '='))
		return diag_set(diag, -EINVAL, "an environment variable needs a name without '='");
	r = check_text("the variable's name", request->variable, IPC_TEXT_MAX, diag);
	return r < 0 ? r : check_text("the variable's value", request->value, IPC_VALUE_MAX, diag);
}

static int check_dump(const struct ipc_request *request, struct diag *diag)
{
	unsigned flags = request->command == IPC_CORE_DUMP
				 ? IPC_DUMP_LOG
				 : IPC_DUMP_LOG | IPC_DUMP_VERBOSE | IPC_DUMP_CRASH_REPORT;

	if (request->dump_type < IPC_DUMP_MINI || request->dump_type > IPC_DUMP_FULL)
		return diag_set(diag, -EINVAL, "there is no dump of type %d",
			(int)request->dump_type);
	if (request->dump_flags & ~flags)
		return diag_set(diag, -EINVAL, "this runtime's dump knows no such option");
	return check_text("the dump's path", request->path, IPC_TEXT_MAX, diag);
}

/* The runtime takes a path with ':' for several. */
static int check_hook(const struct ipc_request *request, struct diag *diag)
{
	if (!request->hook || *request->hook != '/' || strchr(request->hook, ':'))
		return diag_set(diag, -EINVAL, "a startup hook needs an absolute path without ':'");
	return check_text("the startup hook's path", request->hook, IPC_TEXT_MAX, diag);
}

static int check_request(const struct ipc_request *request, struct diag *diag)
{
	switch (request->command) {
	case IPC_COLLECT_TRACING_2:
	case IPC_COLLECT_TRACING_3:
	case IPC_COLLECT_TRACING_4:
	case IPC_COLLECT_TRACING_5:
		return check_collect(request, diag);
	case IPC_SET_ENVIRONMENT:
		return check_environment(request, diag);
	case IPC_STARTUP_HOOK:
		return check_hook(request, diag);
	case IPC_CORE_DUMP:
	case IPC_CORE_DUMP_2:
	case IPC_CORE_DUMP_3:
		return check_dump(request, diag);
	case IPC_ENABLE_PERF_MAP:
		if (request->perf_map < IPC_PERF_MAP_ALL ||
			request->perf_map > IPC_PERF_MAP_PERFMAP)
			return diag_set(diag, -EINVAL, "there is no perf map of type %d",
				(int)request->perf_map);
		return 0;
	default:
		return 0;
	}
}

/* An absent path ends the target; an empty one is the default name. */
static const char *dump_path(const struct ipc_request *request)
{
	return request->path ? request->path : "";
}

/* The exact size of the message from the layout alone; 0: not ours to send. */
static size_t request_size(const struct ipc_request *request)
{
	size_t size = IPC_HEADER_SIZE;

	switch (request->command) {
	case IPC_PROCESS_INFO:
	case IPC_PROCESS_INFO_2:
	case IPC_PROCESS_INFO_3:
	case IPC_RESUME_RUNTIME:
	case IPC_PROCESS_ENVIRONMENT:
	case IPC_DISABLE_PERF_MAP:
		return size;
	case IPC_STOP_TRACING:
		return size + 8;
	case IPC_SET_ENVIRONMENT:
		return size + text_size(request->variable) + text_size(request->value);
	case IPC_STARTUP_HOOK:
		return size + text_size(request->hook);
	case IPC_ENABLE_PERF_MAP:
		return size + 4;
	case IPC_CORE_DUMP:
	case IPC_CORE_DUMP_2:
	case IPC_CORE_DUMP_3:
		return size + text_size(dump_path(request)) + 4 + 4; /* path, type, flags */
	case IPC_COLLECT_TRACING_2:
		size += 4 + 4 + 1 + 4; /* buffer, format, rundown, provider count */
		break;
	case IPC_COLLECT_TRACING_3:
		size += 4 + 4 + 1 + 1 + 4; /* ... rundown, stacks ... */
		break;
	case IPC_COLLECT_TRACING_4:
		size += 4 + 4 + 8 + 1 + 4; /* ... rundown keywords, stacks ... */
		break;
	case IPC_COLLECT_TRACING_5:
		/* kind of session, then as 4; with user_events without buffer, format and stacks */
		size += request->user_events ? 4 + 8 + 4 : 4 + 4 + 4 + 8 + 1 + 4;
		break;
	default:
		return 0;
	}
	for (uint32_t i = 0; i < request->provider_count; i++) {
		const struct ipc_provider *provider = &request->providers[i];
		size += 8 + 4 + text_size(provider->name) + text_size(provider->arguments);
		if (request->command == IPC_COLLECT_TRACING_5)
			size += 1 + 4 +
				4 * (size_t)provider->event_id_count; /* only these?, count, ids */
		if (request->user_events)
			size += text_size(provider->tracepoint) + 4; /* and no others */
	}
	return size;
}

static void put_stream(const struct ipc_request *request, struct bytes *out)
{
	if (request->command == IPC_COLLECT_TRACING_5)
		bytes_u32(out, SESSION_STREAMS);
	bytes_u32(out, request->buffer_mb);
	bytes_u32(out, FORMAT_NETTRACE);
	if (request->command == IPC_COLLECT_TRACING_4 || request->command == IPC_COLLECT_TRACING_5)
		bytes_u64(out, request->rundown_keywords);
	else
		bytes_u8(out, request->rundown_keywords != 0);
	if (request->command != IPC_COLLECT_TRACING_2)
		bytes_u8(out, request->stacks);
}

static void put_collect(const struct ipc_request *request, struct bytes *out)
{
	if (request->user_events) {
		bytes_u32(out, SESSION_USER_EVENTS);
		bytes_u64(out, request->rundown_keywords);
	} else {
		put_stream(request, out);
	}
	bytes_u32(out, request->provider_count);
	for (uint32_t i = 0; i < request->provider_count; i++) {
		const struct ipc_provider *provider = &request->providers[i];
		bytes_u64(out, provider->keywords);
		bytes_u32(out, provider->level);
		put_text(out, provider->name);
		put_text(out, provider->arguments);
		if (request->command != IPC_COLLECT_TRACING_5)
			continue;
		/* The runtime reads these fields without checking that the message has them. */
		bytes_u8(out, provider->only_event_ids);
		bytes_u32(out, provider->event_id_count);
		for (uint32_t k = 0; k < provider->event_id_count; k++)
			bytes_u32(out, provider->event_ids[k]);
		if (!request->user_events)
			continue;
		put_text(out, provider->tracepoint);
		bytes_u32(out, 0); /* tracepoints of single events */
	}
}

static void put_payload(const struct ipc_request *request, struct bytes *out)
{
	switch (request->command) {
	case IPC_STOP_TRACING:
		bytes_u64(out, request->session_id);
		break;
	case IPC_SET_ENVIRONMENT:
		put_text(out, request->variable);
		put_text(out, request->value);
		break;
	case IPC_STARTUP_HOOK:
		put_text(out, request->hook);
		break;
	case IPC_ENABLE_PERF_MAP:
		bytes_u32(out, request->perf_map);
		break;
	case IPC_CORE_DUMP:
	case IPC_CORE_DUMP_2:
	case IPC_CORE_DUMP_3:
		put_text(out, dump_path(request));
		bytes_u32(out, request->dump_type);
		bytes_u32(out, request->dump_flags);
		break;
	default:
		if (ipc_is_collect(request->command))
			put_collect(request, out);
		break;
	}
}

int ipc_encode(const struct ipc_request *request, struct bytes *out, struct diag *diag)
{
	size_t at = out->len;
	int r = check_request(request, diag);

	if (r < 0)
		return r;
	size_t size = request_size(request);
	if (!size)
		return diag_set(diag, -EINVAL, "no such diagnostics command: %#x",
			(unsigned)request->command);
	if (size > IPC_MESSAGE_MAX)
		return diag_set(diag, -EINVAL, "the request takes %zu bytes, and %u is the most",
			size, IPC_MESSAGE_MAX);

	bytes_add(out, MAGIC, MAGIC_SIZE);
	bytes_u16(out, (uint16_t)size);
	bytes_u8(out, (uint8_t)(request->command >> 8));
	bytes_u8(out, (uint8_t)(request->command & 0xff));
	bytes_u16(out, 0);
	put_payload(request, out);
	if (out->failed) {
		out->len = at;
		return diag_set(diag, -ENOMEM, "no memory for a diagnostics request");
	}
	/* Checked at run time too: a message of another size kills the process. */
	assert(out->len - at == size);
	if (out->len - at != size) {
		out->len = at;
		return diag_set(diag, -EINVAL, "a diagnostics request came out at the wrong size");
	}
	return 0;
}

int ipc_decode_header(const uint8_t header[IPC_HEADER_SIZE], size_t *ret_size, bool *ret_ok,
	struct diag *diag)
{
	struct cursor c = cursor_of(header, IPC_HEADER_SIZE);
	const uint8_t *magic = cursor_take(&c, MAGIC_SIZE);
	size_t size = cursor_u16(&c);
	unsigned set = cursor_u8(&c);
	unsigned command = cursor_u8(&c);

	if (memcmp(magic, MAGIC, MAGIC_SIZE) != 0)
		return diag_set(diag, -EPROTO, "the reply is not of the diagnostics protocol");
	if (size < IPC_HEADER_SIZE)
		return diag_set(diag, -EPROTO,
			"the reply claims a size of %zu bytes, less than its header", size);
	if (set != SET_SERVER || (command != 0 && command != 0xff))
		return diag_set(diag, -EPROTO,
			"the reply is neither a success nor an error: %#x %#x", set, command);
	*ret_size = size - IPC_HEADER_SIZE;
	*ret_ok = command == 0;
	return 0;
}

int ipc_decode_error(const uint8_t *payload, size_t size, uint32_t *ret_error, struct diag *diag)
{
	struct cursor c = cursor_of(payload, size);
	uint32_t error = cursor_u32(&c);

	if (c.short_read)
		return diag_set(diag, -EPROTO, "the error reply has %zu bytes and no code", size);
	*ret_error = error;
	return 0;
}

int ipc_decode_session(const uint8_t *payload, size_t size, uint64_t *ret_session_id,
	struct diag *diag)
{
	struct cursor c = cursor_of(payload, size);
	uint64_t session_id = cursor_u64(&c);

	/* The size must be exact: bytes after the session id belong to the stream. */
	if (c.short_read || cursor_left(&c))
		return diag_set(diag, -EPROTO, "the reply has %zu bytes where a session id has 8",
			size);
	*ret_session_id = session_id;
	return 0;
}

const char *ipc_error_words(uint32_t error)
{
	switch (error) {
	case IPC_ERROR_BAD_ENCODING:
		return "it does not understand the request";
	case IPC_ERROR_UNKNOWN_COMMAND:
		return "it does not know the command";
	case IPC_ERROR_UNKNOWN_MAGIC:
		return "it speaks another version of the protocol";
	case IPC_ERROR_NOT_SUPPORTED:
		return "its runtime was built without it";
	case IPC_ERROR_FAIL:
		return "it could not make a session (all 64 may be taken)";
	case IPC_ERROR_INVALID_ARGUMENT:
		return "it takes no such argument";
	case IPC_ERROR_NO_SUCH_VARIABLE:
		return "it has no such variable";
	default:
		return "it refused";
	}
}

/* A reply's text as UTF-8; its length includes the NUL. NULL: malformed, or no memory. */
static char *take_text(struct cursor *c)
{
	uint32_t units = cursor_u32(c);
	const uint8_t *text = cursor_take(c, (size_t)units * 2);

	if (c->short_read)
		return NULL;
	cleanup(bytes_done) struct bytes utf8 = { 0 };
	for (size_t i = 0; i < units; i++) {
		if (!text[i * 2] && !text[i * 2 + 1])
			units = (uint32_t)i;
	}
	text_add_utf16(&utf8, text, units);
	char *copy = strdup(bytes_z(&utf8));
	return copy;
}

int ipc_decode_process_info(enum ipc_command command, const uint8_t *payload, size_t size,
	struct ipc_process_info *ret_info, struct diag *diag)
{
	struct cursor c = cursor_of(payload, size);
	struct ipc_process_info info = { 0 };

	if (command == IPC_PROCESS_INFO_3)
		cursor_skip(&c, 4); /* version of the reply: later ones only append */
	info.pid = cursor_u64(&c);
	const uint8_t *cookie = cursor_take(&c, sizeof(info.cookie));
	if (cookie)
		memcpy(info.cookie, cookie, sizeof(info.cookie));
	info.command_line = take_text(&c);
	info.system = take_text(&c);
	info.architecture = take_text(&c);
	bool named = command != IPC_PROCESS_INFO;
	info.entry_assembly = named ? take_text(&c) : strdup("");
	info.runtime_version = named ? take_text(&c) : strdup("");
	if (c.short_read) {
		ipc_process_info_done(&info);
		return diag_set(diag, -EPROTO,
			"what it says of itself ends within a field (%zu bytes)", size);
	}
	if (!info.command_line || !info.system || !info.architecture || !info.entry_assembly ||
		!info.runtime_version) {
		ipc_process_info_done(&info);
		return diag_set(diag, -ENOMEM, "no memory for what a process says of itself");
	}
	*ret_info = info;
	return 0;
}

void ipc_process_info_done(struct ipc_process_info *info)
{
	free(info->command_line);
	free(info->system);
	free(info->architecture);
	free(info->entry_assembly);
	free(info->runtime_version);
	*info = (struct ipc_process_info){ 0 };
}

char *ipc_decode_error_text(const uint8_t *payload, size_t size)
{
	struct cursor c = cursor_of(payload, size);

	cursor_skip(&c, 4); /* the HRESULT */
	if (c.short_read || !cursor_left(&c))
		return strdup("");
	char *text = take_text(&c);

	return text || !c.short_read ? text : strdup("");
}

/* u32 bytes that follow, u16 0. */
int ipc_decode_environment_size(const uint8_t *payload, size_t size, size_t *ret_size,
	struct diag *diag)
{
	struct cursor c = cursor_of(payload, size);
	uint32_t follow = cursor_u32(&c);

	cursor_skip(&c, 2);
	if (c.short_read || cursor_left(&c))
		return diag_set(diag, -EPROTO,
			"the reply has %zu bytes where 6 tell the size of an environment", size);
	if (follow < 4 || follow > IPC_ENVIRONMENT_MAX)
		return diag_set(diag, -EPROTO, "it claims an environment of %" PRIu32 " bytes",
			follow);
	*ret_size = follow;
	return 0;
}

int ipc_decode_environment(const uint8_t *data, size_t size,
	int (*each)(void *user, const char *variable), void *user, struct diag *diag)
{
	struct cursor c = cursor_of(data, size);
	uint32_t count = cursor_u32(&c);

	for (uint32_t i = 0; i < count; i++) {
		char *text = take_text(&c);
		if (c.short_read) {
			free(text);
			return diag_set(diag, -EPROTO,
				"its environment ends within a variable (%zu bytes)", size);
		}
		if (!text)
			return diag_set(diag, -ENOMEM, "no memory for its environment");
		int r = each(user, text);
		free(text);
		if (r)
			return r;
	}
	if (c.short_read)
		return diag_set(diag, -EPROTO, "its environment has no count (%zu bytes)", size);
	return 0;
}
