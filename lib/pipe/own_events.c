/* See own_events.h. */
#include "lib/pipe/own_events.h"

#include <string.h>

#include "lib/pipe/session_emit.h"
#include "lib/pipe/session_state.h"
#include "lib/platform/platform.h"

#define COMMAND_MAX 4096u /* + 512 for the rest: struct own_process_info */

SPOOR_PROVIDER(spoor_library, "Spoor-Library")
SPOOR_EVENT_NAMED(spoor_library, session_failed, "SessionFailed", 2, 0, SPOOR_ERROR,
	SPOOR_OPCODE_INFO, 0x1, (u64, SessionId), (i32, Error), (text, Reason), (text, Sink))

SPOOR_EVENT_NAMED(spoor_library, conflict, "Conflict", 3, 0, SPOOR_ERROR, SPOOR_OPCODE_INFO, 0x1,
	(text, Message))

static const struct spoor_field loss_fields[] = {
	{ "Count", SPOOR_TYPE_U64, 0, NULL },
	{ "FirstNs", SPOOR_TYPE_U64, 0, NULL },
	{ "LastNs", SPOOR_TYPE_U64, 0, NULL },
	{ "TotalLost", SPOOR_TYPE_U64, 0, NULL },
	{ "TotalWritten", SPOOR_TYPE_U64, 0, NULL },
};

static struct spoor_event loss_event = {
	.size = sizeof(struct spoor_event),
	.provider = &spoor_library,
	.name = "Loss",
	.fields = loss_fields,
	.field_count = sizeof(loss_fields) / sizeof(loss_fields[0]),
	.id = 1,
	.level = SPOOR_WARNING,
};

static struct spoor_provider event_pipe = { .size = sizeof(event_pipe),
	.name = "Microsoft-DotNETCore-EventPipe" };

static const struct spoor_field process_fields[] = {
	{ "CommandLine", SPOOR_TYPE_TEXT, 0, NULL },
	{ "OSInformation", SPOOR_TYPE_TEXT, 0, NULL },
	{ "ArchInformation", SPOOR_TYPE_TEXT, 0, NULL },
};

static struct spoor_event process_event = {
	.size = sizeof(struct spoor_event),
	.provider = &event_pipe,
	.name = "ProcessInfo",
	.fields = process_fields,
	.field_count = sizeof(process_fields) / sizeof(process_fields[0]),
	.id = 1,
	.version = 1,
};

/* For all sessions that enable "Spoor-Library": a provider was refused because of its definitions. */
static void conflict_report(const char *message)
{
	spoor_library_conflict(message);
}

int own_events_register(void)
{
	int r = registry_describe(&loss_event);

	registry_report_conflicts(conflict_report);
	if (r == 0)
		r = registry_describe(&process_event);
	if (r == 0)
		r = spoor_provider_register(&spoor_library);
	return r;
}

int own_event_loss(struct session *session, const struct session_loss *loss)
{
	uint64_t values[5] = { loss->count, loss->first_ns, loss->last_ns, session->lost,
		session->written };

	return session_emit(session, registry_entry(loss_event.index), 0, platform_thread_id(),
		values, sizeof(values));
}

void own_event_session_failed(uint64_t id, int error, const char *sink)
{
	spoor_library_session_failed(id, error, strerror(-error), sink);
}

int own_event_failure(struct session *session, int error)
{
	uint8_t payload[512];
	uint8_t *at = payload;
	uint64_t id = session->id;
	const char *reason = strerror(-error);
	const char *name = session->sink->ops->name;

	at = spoor_put(at, &id, sizeof(id));
	at = spoor_put(at, &error, sizeof(error));
	at = spoor_put_text(at, reason, strnlen(reason, 256));
	at = spoor_put_text(at, name, strlen(name));
	return session_emit(session, registry_entry(spoor_library_session_failed_event.index), 0,
		platform_thread_id(), payload, (uint32_t)(at - payload));
}

static uint32_t process_info(struct own_process_info *info)
{
	char command[COMMAND_MAX];
	char system[256];
	uint8_t *at = info->payload;
	const char *architecture = platform_architecture();

	platform_command_line(command, sizeof(command));
	platform_os_name(system, sizeof(system));
	at = spoor_put_text(at, command, strlen(command));
	at = spoor_put_text(at, system, strlen(system));
	at = spoor_put_text(at, architecture, strlen(architecture));
	return (uint32_t)(at - info->payload);
}

int own_event_process_info(struct session *session)
{
	struct own_process_info info;
	uint32_t size = process_info(&info);

	return session_emit(session, registry_entry(process_event.index), platform_now_ns(),
		platform_thread_id(), info.payload, size);
}

void own_process_info_make(struct own_process_info *info, uint64_t time_ns,
	struct pipe_event *ret_event)
{
	*ret_event = (struct pipe_event){
		.entry = registry_entry(process_event.index),
		.time_ns = time_ns,
		.payload = info->payload,
		.payload_size = process_info(info),
		.run_start = true,
		.sorted = true,
	};
}

void own_loss_make(struct own_loss *loss, const struct session *session, uint64_t time_ns,
	struct pipe_event *ret_event)
{
	*loss = (struct own_loss){ { session->lost, 0, 0, session->lost, session->written } };
	*ret_event = (struct pipe_event){
		.entry = registry_entry(loss_event.index),
		.time_ns = time_ns,
		.payload = (const uint8_t *)loss->values,
		.payload_size = sizeof(loss->values),
		.run_start = true,
		.sorted = true,
	};
}
