/* See live_dotnet_events.h. */
#include "recording/live_dotnet_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "dotnet/exchange.h"
#include "dotnet/guard.h"
#include "dotnet/ipc.h"
#include "dotnet/port.h"
#include "pipeline/session_writer.h"
#include "recording/live_options.h"
#include "recording/live_user_events.h"
#include "recording/process_table.h"
#include "trace/trace.h"

#define STOP_NS     UINT64_C(2000000000)
#define SESSION_MAX 4096u
#define FIELDS      " u8 version; u16 event_id; __rel_loc u8[] extension; __rel_loc u8[] payload"

/* On the heap: the exchange borrows the target. */
struct user_session {
	uint32_t process;
	struct dotnet_target target;
	struct exchange exchange;
	uint64_t session_id; /* 0: not open */
};

/* ---- tracepoints ---- */

/* "spoor_recorder_4711_0_My_Source": unique, and for a reader of tracefs. */
static char *tracepoint_name(uint32_t i, const char *provider)
{
	char *name = malloc(IPC_TRACEPOINT_MAX + 1);

	if (!name)
		return NULL;
	(void)snprintf(name, IPC_TRACEPOINT_MAX + 1, LIVE_USER_EVENTS_PREFIX "%d_%u_%s",
		(int)getpid(), i, provider); /* cut, if it is longer */
	for (char *at = name; *at; at++)
		if (!((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
			    (*at >= 'A' && *at <= 'Z')))
			*at = '_';
	return name;
}

static int register_one(struct live_dotnet_events *dotnet, uint32_t i, struct diag *diag)
{
	struct user_provider *tracepoint = &dotnet->tracepoints[i];
	char description[IPC_TRACEPOINT_MAX + sizeof(FIELDS)];

	tracepoint->name = tracepoint_name(i, dotnet->providers[i].name);
	if (!tracepoint->name)
		return diag_set(diag, -ENOMEM, "no memory for a tracepoint");
	(void)snprintf(description, sizeof(description), "%s" FIELDS, tracepoint->name);
	dotnet->providers[i].tracepoint = tracepoint->name;
	int result = user_tracepoint_register(dotnet->data_fd, description, &tracepoint->word);
	if (result < 0)
		return diag_set(diag, result, "cannot register the tracepoint '%s': %m",
			tracepoint->name);
	result = live_user_events_add(dotnet->events, tracepoint->name, dotnet->providers[i].name);
	return result < 0 ? diag_set(diag, result, "cannot open the tracepoint '%s': %m",
				    tracepoint->name)
			  : 0;
}

int live_dotnet_events_start(struct live_dotnet_events *dotnet, struct live_user_events *events,
	struct diag *diag)
{
	const struct live_options *options = events->table ? events->table->options : NULL;
	uint32_t count = options ? options->user_provider_count : 0;

	if (!count)
		return 0;
	dotnet->data_fd = user_tracepoints_open_data(&events->tracefs, diag);
	if (dotnet->data_fd < 0)
		return dotnet->data_fd;
	dotnet->events = events;
	dotnet->providers = calloc(count, sizeof(*dotnet->providers));
	dotnet->tracepoints = calloc(count, sizeof(*dotnet->tracepoints));
	if (!dotnet->providers || !dotnet->tracepoints)
		return diag_set(diag, -ENOMEM, "no memory for tracepoints");
	memcpy(dotnet->providers, options->user_providers, count * sizeof(*dotnet->providers));
	dotnet->provider_count = count;
	for (uint32_t i = 0; i < count; i++) {
		int result = register_one(dotnet, i, diag);
		if (result < 0)
			return result;
	}
	return 0;
}

/* ---- sessions ---- */

static void tell_refused(struct live_dotnet_events *dotnet, const struct user_session *session)
{
	const struct exchange *exchange = &session->exchange;
	bool is_old = exchange->state == EXCHANGE_ANSWERED &&
		      exchange->error == IPC_ERROR_UNKNOWN_COMMAND;

	dotnet->refused++;
	session_writer_notice(dotnet->events->table->writer, session->process, NOTICE_USER_EVENTS,
		"", "its runtime writes no events into user_events: %s",
		is_old                                 ? "that takes .NET 10"
		: exchange->state == EXCHANGE_ANSWERED ? ipc_error_words(exchange->error)
						       : exchange->text);
}

static void session_free(struct user_session *session)
{
	exchange_done(&session->exchange);
	free(session);
}

void live_dotnet_events_begin(struct live_dotnet_events *dotnet, uint32_t process,
	struct guard *guard, uint64_t now_ns)
{
	struct diag diag = { 0 };

	if (!dotnet->events || dotnet->sessions.count == SESSION_MAX)
		return;
	const struct trace *trace = dotnet->events->table->trace;
	struct user_session *session = calloc(1, sizeof(*session));
	if (!session)
		return;
	session->process = process;
	session->exchange.fd = -1;
	const struct ipc_request request = { .command = IPC_COLLECT_TRACING_5,
		.user_events = true,
		.providers = dotnet->providers,
		.provider_count = dotnet->provider_count };
	int result =
		dotnet_target_read(trace->processes.items[process].pid, &session->target, &diag);
	struct dotnet_endpoint endpoint = dotnet_target_endpoint(&session->target);

	if (result == 0)
		result = exchange_begin(&session->exchange, &endpoint, &request, now_ns, 0, &diag);
	if (result < 0 || !vec_add(&dotnet->sessions, session)) {
		session_free(session);
		return; /* it has just ended, or memory has run out */
	}
	session->exchange.pass_fd = dotnet->data_fd;
	session->exchange.guard = guard;
	session->exchange.guard_target = &session->target;
}

void live_dotnet_events_await(const struct live_dotnet_events *dotnet, struct poll_set *set)
{
	for (uint32_t i = 0; i < dotnet->sessions.count; i++)
		exchange_await(&dotnet->sessions.items[i]->exchange, set);
}

/* False: there is no session, and there will be none. */
static bool advance_one(struct live_dotnet_events *dotnet, struct user_session *session,
	uint64_t now_ns)
{
	struct exchange *exchange = &session->exchange;

	if (session->session_id)
		return dotnet_target_state(&session->target) != 0;
	enum exchange_state state = exchange_advance(exchange, now_ns);
	if (!exchange_is_over(exchange))
		return true;
	if (state == EXCHANGE_ANSWERED && exchange->ok &&
		ipc_decode_session(exchange->payload, exchange->payload_size, &session->session_id,
			NULL) == 0) {
		guard_session(exchange->guard, exchange->guard_key, session->session_id);
		dotnet->opened++;
		return true;
	}
	tell_refused(dotnet, session);
	return false;
}

void live_dotnet_events_advance(struct live_dotnet_events *dotnet, uint64_t now_ns)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < dotnet->sessions.count; i++) {
		struct user_session *session = dotnet->sessions.items[i];
		if (advance_one(dotnet, session, now_ns))
			dotnet->sessions.items[kept++] = session;
		else
			session_free(session);
	}
	dotnet->sessions.count = kept;
}

void live_dotnet_events_stop(struct live_dotnet_events *dotnet)
{
	uint32_t count = dotnet->sessions.count;
	struct exchange *stops = count ? calloc(count, sizeof(*stops)) : NULL;
	uint64_t now_ns = clock_monotonic_ns();

	for (uint32_t i = 0; stops && i < count; i++) {
		struct user_session *session = dotnet->sessions.items[i];
		const struct ipc_request request = { .command = IPC_STOP_TRACING,
			.session_id = session->session_id };
		struct dotnet_endpoint endpoint = dotnet_target_endpoint(&session->target);
		stops[i].fd = -1;
		if (session->session_id)
			/* a failure is one to stop, below */
			(void)exchange_begin(&stops[i], &endpoint, &request, now_ns, 0, NULL);
	}
	if (stops)
		(void)exchange_run(stops, count, now_ns + STOP_NS, NULL);
	for (uint32_t i = 0; i < count; i++) {
		struct user_session *session = dotnet->sessions.items[i];
		struct exchange *exchange = &session->exchange;
		if (stops && stops[i].state == EXCHANGE_ANSWERED)
			guard_session(exchange->guard, exchange->guard_key, 0);
		else
			exchange->guard = NULL; /* the guard keeps it, and ends it */
		session_free(session);
		if (stops)
			exchange_done(&stops[i]);
	}
	free(stops);
	vec_reset(&dotnet->sessions);
}

void live_dotnet_events_done(struct live_dotnet_events *dotnet)
{
	if (!dotnet->events)
		return;
	live_dotnet_events_stop(dotnet);
	vec_done(&dotnet->sessions);
	closep(&dotnet->data_fd);
	for (uint32_t i = 0; i < dotnet->provider_count; i++)
		free(dotnet->tracepoints[i].name);
	free(dotnet->tracepoints);
	free(dotnet->providers);
}
