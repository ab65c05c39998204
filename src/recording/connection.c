/* See connection.h. */
#include "recording/connection.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/vec.h"
#include "dotnet/guard.h"
#include "dotnet/held_runtime.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "machine/rights.h"
#include "pipeline/session_writer.h"
#include "recording/dotnet_client.h"
#include "symbolize/symbolizer.h"
#include "trace/trace.h"

#define RETRY_NS    UINT64_C(50000000)
#define RETRY_COUNT 100u
/* After this time most of a program's code is compiled. */
#define GROWN_UP_NS     UINT64_C(10000000000)
#define FIRST_AGAIN_NS  UINT64_C(5000000000)
#define NEXT_AGAIN_NS   UINT64_C(30000000000)
#define TEXTS_BYTES_MAX (4u << 20)
#define RUNDOWNS_A_TRIM 16u

bool connection_may_enter(enum connection_state from, enum connection_state to)
{
	static const unsigned next[] = {
		[CONNECTION_WAITING] = 1u << CONNECTION_ASKING | 1u << CONNECTION_OVER,
		[CONNECTION_ASKING] =
			1u << CONNECTION_NAMED | 1u << CONNECTION_WAITING | 1u << CONNECTION_OVER,
		[CONNECTION_NAMED] =
			1u << CONNECTION_AGAIN | 1u << CONNECTION_WAITING | 1u << CONNECTION_OVER,
		[CONNECTION_AGAIN] =
			1u << CONNECTION_NAMED | 1u << CONNECTION_WAITING | 1u << CONNECTION_OVER,
		[CONNECTION_OVER] = 0,
	};

	return next[from] & 1u << to;
}

void connection_enter(struct connection *connection, enum connection_state state)
{
	bool has_client = state != CONNECTION_WAITING && state != CONNECTION_OVER;

	(void)has_client; /* without assertions */
	assert(connection_may_enter(connection->state, state));
	assert(has_client == (connection->client != NULL));
	connection->state = state;
}

bool connection_may_enter_methods(enum methods_state from, enum methods_state to)
{
	enum { NONE = 1u << METHODS_NONE }; /* the client can end in each state */
	static const unsigned next[] = {
		[METHODS_NONE] = 1u << METHODS_ANNOUNCED | 1u << METHODS_QUIET,
		[METHODS_ANNOUNCED] = NONE,
		[METHODS_QUIET] = 1u << METHODS_WANTED | NONE,
		[METHODS_WANTED] = 1u << METHODS_ASKED | NONE,
		[METHODS_ASKED] = 1u << METHODS_REPORTED | 1u << METHODS_REFUSED | NONE,
		[METHODS_REPORTED] = NONE,
		[METHODS_REFUSED] = NONE,
	};

	return next[from] & 1u << to;
}

void connection_enter_methods(struct connection *connection, enum methods_state state)
{
	assert(connection_may_enter_methods(connection->methods, state));
	assert((state == METHODS_NONE) == (connection->client == NULL));
	connection->methods = state;
}

void connection_set_state(struct connection *connection, enum managed_state state)
{
	struct symbolizer_process *process =
		symbolizer_process(connection->managed->symbolizer, connection->process);

	if (process)
		managed_state_enter(&process->managed, state);
}

void connection_share_texts(struct connection *connection)
{
	struct managed *managed = connection->managed;
	struct symbolizer_process *process =
		symbolizer_process(managed->symbolizer, connection->process);
	struct method_texts *texts = managed->texts.count ? *vec_last(&managed->texts) : NULL;

	if (!process || process->codemap.codes.count || process->codemap.modules.count)
		return;
	if (!texts || strtab_size_bytes(&texts->table) > TEXTS_BYTES_MAX) {
		texts = calloc(1, sizeof(*texts));
		if (!texts || !vec_add(&managed->texts, texts)) {
			free(texts);
			return;
		}
	}
	texts->users++;
	connection->texts = texts;
	process->codemap.shared = &texts->table;
}

void connection_give_up_texts(struct connection *connection)
{
	struct managed *managed = connection->managed;
	struct symbolizer_process *process =
		symbolizer_process(managed->symbolizer, connection->process);
	struct method_texts *texts = connection->texts;

	if (!texts)
		return;
	if (process && process->codemap.shared == &texts->table) {
		codemap_done(&process->codemap);
		process->codemap = (struct codemap){ 0 };
	}
	if (--texts->users || texts == *vec_last(&managed->texts))
		return;
	for (uint32_t i = 0; i < managed->texts.count; i++) {
		if (managed->texts.items[i] != texts)
			continue;
		/* Only the position of the last table matters. */
		memmove(&managed->texts.items[i], &managed->texts.items[i + 1],
			(managed->texts.count - i - 1) * sizeof(managed->texts.items[0]));
		managed->texts.count--;
		break;
	}
	strtab_done(&texts->table);
	free(texts);
}

/* "live ...\nrundown ..." */
static const char *sessions_text(const struct connection *connection, struct bytes *text)
{
	for (int i = 0; connection->client && i < DOTNET_STREAM_COUNT; i++) {
		const char *session =
			dotnet_client_session(connection->client, (enum dotnet_stream)i);
		if (!session)
			continue;
		if (text->len)
			bytes_text(text, "\n");
		bytes_text(text, session);
	}
	return bytes_z(text);
}

void connection_report(struct connection *connection, bool reachable, const char *reason,
	enum reason_kind kind)
{
	cleanup(bytes_done) struct bytes sessions = { 0 };
	struct managed_outcome outcome = {
		.process = connection->process,
		.reachable = reachable,
		.reason = reason,
		.reason_kind = kind,
		.info = connection->client ? dotnet_client_info(connection->client) : NULL,
		.sessions = sessions_text(connection, &sessions),
		.clock_measured = connection->clock_error_ns != 0,
		.clock_offset_ns = connection->clock_offset_ns,
		.clock_error_ns = connection->clock_error_ns,
	};

	if (reachable)
		connection->report = REPORT_NAMED;
	else if (connection->report == REPORT_NONE)
		connection->report = REPORT_UNREACHABLE;
	connection->managed->report(connection->managed->context, &outcome);
}

void connection_refuse(struct connection *connection, enum reason reason)
{
	connection_set_state(connection, MANAGED_REFUSED);
	connection_report(connection, false, reason_text(reason), reason_kind(reason));
}

void connection_drop_client(struct connection *connection)
{
	dotnet_client_free(connection->client);
	connection->client = NULL;
	for (int i = 0; i < DOTNET_STREAM_COUNT; i++)
		(void)connection_bytes(connection, (enum dotnet_stream)i, NULL,
			0); /* freeing cannot fail */
	if (connection->methods != METHODS_NONE)
		connection_enter_methods(connection, METHODS_NONE);
	connection_end_exceptions(connection, clock_monotonic_ns());
}

void managed_tell_unguarded(struct managed *managed, const char *why)
{
	cleanup(bytes_done) struct bytes text = { 0 };

	if (managed->unguarded)
		return;
	managed->unguarded = true;
	bytes_printf(&text, SESSION_UNGUARDED "%s", why);
	managed->notice(managed->context, NOTICE_UNGUARDED, bytes_z(&text));
}

static void managed_need_guard(struct managed *managed)
{
	struct diag diag = { 0 };

	if (!managed->guard && !managed->unguarded && guard_start(&managed->guard, &diag) < 0)
		managed_tell_unguarded(managed, diag.text);
}

void connection_start(struct connection *connection, uint64_t now_ns)
{
	struct dotnet_target target;
	struct dotnet_handler handler = { .bytes = connection_bytes, .user = connection };
	struct diag diag = { 0 };

	connection->retry_ns = UINT64_MAX;
	if (dotnet_target_read(connection->pid, &target, &diag) < 0) {
		connection_refuse(connection, REASON_ENDED_UNASKED);
		connection_enter(connection, CONNECTION_OVER);
		return;
	}
	connection->inner_pid = target.inner_pid;
	target.borrows = connection->names_only || !connection->managed->provider_count;
	managed_need_guard(connection->managed);
	if (dotnet_client_new(&target, &handler, now_ns, &connection->client) < 0) {
		connection_set_state(connection, MANAGED_REFUSED);
		connection_enter(connection, CONNECTION_OVER);
		return;
	}
	connection_enter(connection, CONNECTION_ASKING);
	connection_note_reported(connection, DOTNET_STREAM_METHODS, UINT64_MAX);
	connection_note_reported(connection, DOTNET_STREAM_LIVE, 0);
	dotnet_client_guard(connection->client, connection->managed->guard);
	connection_enter_methods(connection,
		!connection->held.waits && dotnet_target_age_ns(&target) >= GROWN_UP_NS
			? METHODS_QUIET
			: METHODS_ANNOUNCED);
	connection->valued = false;
	connection->rundown_ns = now_ns;
	connection->again_ns = now_ns + FIRST_AGAIN_NS;
	const struct managed *managed = connection->managed;
	struct dotnet_wishes *wishes = dotnet_client_wishes(connection->client);

	wishes->without_methods = connection->methods == METHODS_QUIET;
	wishes->from_start = connection->held.waits;
	wishes->lines = managed->symbolizer->options.lines;
	wishes->samples = managed->sampled != NULL;
	if (!connection->names_only) {
		wishes->providers = managed->providers;
		wishes->provider_count = managed->provider_count;
		wishes->stack_kinds = managed->stack_kinds;
		wishes->activities = connection->activity_count < managed->activity_max;
	}
	connection_begin_exceptions(connection);
}

void connection_advance_hold(struct connection *connection, uint64_t now_ns)
{
	const struct dotnet_client *client = connection->client;
	bool opening =
		client ? !dotnet_client_is_prepared(client)
		       : connection->state != CONNECTION_OVER && connection->report == REPORT_NONE;

	if (!connection->held.waits)
		return;
	if (!opening || connection->managed->stopping || connection->managed->pause_ns ||
		now_ns >= connection->held_ns + MANAGED_HOLD_NS)
		held_runtime_resume(&connection->held, now_ns);
	held_runtime_advance(&connection->held, now_ns);
}

void connection_begin_again(struct connection *connection, uint64_t since_ns, uint64_t now_ns)
{
	struct symbolizer_process *process =
		symbolizer_process(connection->managed->symbolizer, connection->process);

	connection_drop_client(connection);
	if (connection->process_ended) {
		connection_enter(connection, CONNECTION_OVER);
		return;
	}
	connection_enter(connection, CONNECTION_WAITING);
	connection->retries = 0;
	connection->retry_ns = now_ns;
	connection_set_state(connection, MANAGED_ASKING);
	if (process && connection->report == REPORT_NAMED)
		process->codemap.since_ns = since_ns;
}

/*
 * A rundown leaves freed blocks between used ones: after every RUNDOWNS_A_TRIM rundowns they are
 * returned to the system.
 */
static void connection_give_back(struct managed *managed)
{
	if (++managed->rundowns % RUNDOWNS_A_TRIM != 0)
		return;
#ifdef __GLIBC__
	(void)malloc_trim(0); /* nothing to release is no failure */
#endif
}

void connection_begin_rundown(struct connection *connection, uint64_t now_ns)
{
	struct symbolizer_process *process =
		symbolizer_process(connection->managed->symbolizer, connection->process);

	if (!dotnet_client_rundown(connection->client))
		return; /* managed_advance() tries again in the next step */
	if (process)
		process->codemap.since_ns = connection->rundown_ns; /* begin of the last rundown */
	connection_enter(connection, CONNECTION_AGAIN);
	connection->rundown_ns = now_ns;
	connection->again_ns = now_ns + NEXT_AGAIN_NS;
}

/* Ends a rundown: code sampled before its begin that it did not report is no method. */
static void connection_end_rundown(struct connection *connection)
{
	struct symbolizer_process *process =
		symbolizer_process(connection->managed->symbolizer, connection->process);

	connection_enter(connection, CONNECTION_NAMED);
	if (!process)
		return;
	process->needs_rundown_for_new_methods = connection->methods == METHODS_QUIET ||
						 connection->methods == METHODS_WANTED ||
						 connection->methods == METHODS_REFUSED;
	process->has_unresolved_samples = false;
	process->rundown_ns = connection->rundown_ns;
	codemap_trim(&process->codemap);
	connection_give_back(connection->managed);
}

void connection_look(struct connection *connection, enum dotnet_state state, uint64_t now_ns)
{
	enum reason_kind kind = dotnet_client_reason_kind(connection->client);

	if (dotnet_client_named(connection->client) && connection->state == CONNECTION_ASKING) {
		connection_end_rundown(connection);
		connection_set_state(connection, MANAGED_KNOWN);
		if (connection->report != REPORT_NAMED)
			connection_report(connection, true, "", REASON_KIND_NONE);
	}
	if (connection->methods == METHODS_ASKED &&
		dotnet_client_session(connection->client, DOTNET_STREAM_METHODS)) {
		connection_enter_methods(connection, METHODS_REPORTED);
		connection_report(connection, true, "", REASON_KIND_NONE);
	}
	/*
	 * A session that could not be opened reports nothing, so no sampled address waits for it.
	 */
	if (state == DOTNET_LIVE && !dotnet_client_session(connection->client, DOTNET_STREAM_LIVE))
		connection_note_reported(connection, DOTNET_STREAM_LIVE, UINT64_MAX);
	if (state == DOTNET_LIVE && connection->methods == METHODS_ASKED) {
		connection_enter_methods(connection, METHODS_REFUSED);
		connection_note_reported(connection, DOTNET_STREAM_METHODS, UINT64_MAX);
	}
	/* Also when the rundown was refused or cut short. */
	if (connection->state == CONNECTION_AGAIN &&
		(state == DOTNET_LIVE || state == DOTNET_ENDED))
		connection_end_rundown(connection);
	if (state == DOTNET_HUNG && connection->report == REPORT_NONE) {
		connection_set_state(connection, MANAGED_REFUSED);
		connection_report(connection, false, dotnet_client_reason(connection->client),
			kind);
	}
	if (state != DOTNET_ENDED || connection->managed->pause_ns)
		return;
	/*
	 * If the guard intervenes between two checks, managed_look_at_guard() opens the session again in
	 * the next step.
	 */
	if (!connection->managed->stopping && kind == REASON_KIND_GUARDED)
		return;
	if (connection->report != REPORT_NAMED && !connection->names_only &&
		connection->managed->provider_count && rights_are_borrowed() &&
		kind == REASON_KIND_PERMISSION) {
		connection_drop_client(connection);
		connection_enter(connection, CONNECTION_WAITING);
		connection->names_only = true;
		connection->managed->withheld++;
		connection->retry_ns = now_ns;
		return;
	}
	bool young = (kind == REASON_KIND_NO_SOCKET && !dotnet_is_switched_off(connection->pid)) ||
		     kind == REASON_KIND_REFUSED;

	if (connection->report != REPORT_NAMED && young && connection->retries < RETRY_COUNT &&
		!connection->process_ended && !connection->managed->stopping) {
		connection_drop_client(connection);
		connection_enter(connection, CONNECTION_WAITING);
		connection->retries++;
		connection->retry_ns = now_ns + RETRY_NS;
		return;
	}
	if (connection->report == REPORT_NONE) {
		connection_set_state(connection, MANAGED_REFUSED);
		connection_report(connection, false, dotnet_client_reason(connection->client),
			kind);
	} else if (connection->report == REPORT_NAMED) {
		connection_set_state(connection,
			MANAGED_KNOWN); /* the names known before stay valid */
	}
	connection_drop_client(connection);
	connection_enter(connection, CONNECTION_OVER);
}
