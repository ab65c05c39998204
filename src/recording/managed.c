/* See managed.h. */
#include "recording/managed.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/poll_set.h"
#include "base/vec.h"
#include "dotnet/guard.h"
#include "dotnet/held_runtime.h"
#include "dotnet/ipc.h"
#include "dotnet/reason.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/relay.h"
#include "pipeline/session_writer.h"
#include "recording/connection.h"
#include "recording/dotnet_client.h"
#include "symbolize/symbolizer.h"
#include "trace/trace.h"

/* A runtime creates its socket about 20 ms after exec, or later: retries end after 5 s. */

/*
 * A rundown uses tens of milliseconds of one CPU in the runtime: the first other rundown is made
 * after 5 s, later ones after 30 s.
 */

struct guard *managed_guard(const struct managed *managed)
{
	return managed->guard;
}

int managed_new(struct trace *trace, struct symbolizer *symbolizer, managed_report *report,
	managed_notice *notice, void *context, struct managed **ret_managed)
{
	struct managed *managed = calloc(1, sizeof(*managed));

	if (!managed)
		return -ENOMEM;
	managed->trace = trace;
	managed->symbolizer = symbolizer;
	managed->report = report;
	managed->notice = notice;
	managed->context = context;
	*ret_managed = managed;
	return 0;
}

void managed_relay(struct managed *managed, struct relay *relay,
	const struct ipc_provider *providers, uint32_t count, size_t pending_max)
{
	managed->relay = relay;
	managed->providers = providers;
	managed->provider_count = count;
	managed->pending_max = pending_max;
}

void managed_stacks(struct managed *managed, unsigned kinds)
{
	managed->stack_kinds = kinds;
}

void managed_activities(struct managed *managed, uint64_t max)
{
	managed->activity_max = max;
}

void managed_sample(struct managed *managed, managed_sampled *sampled, void *context)
{
	managed->sampled_context = context;
	managed->sampled = sampled;
}

/* The runtime connection of a process, created if there is none. NULL without memory. */
static struct connection *conversation_of(struct managed *managed, uint32_t process,
	uint64_t from_ns)
{
	uint32_t at = map_get(&managed->by_process, process);
	struct connection *connection =
		at ? managed->list.items[at - 1] : calloc(1, sizeof(*connection));

	if (at)
		return connection;
	if (!connection || !vec_add(&managed->list, connection)) {
		free(connection);
		return NULL;
	}
	if (!map_add(&managed->by_process, process, managed->list.count)) {
		managed->list.count--;
		free(connection);
		return NULL;
	}
	connection->managed = managed;
	for (int i = 0; i < DOTNET_STREAM_COUNT; i++)
		connection->relayed[i] = -1;
	connection->process = process;
	connection->pid = managed->trace->processes.items[process].pid;
	connection->retry_ns = from_ns;
	connection_share_texts(connection);
	connection_set_state(connection, MANAGED_ASKING);
	return connection;
}

void managed_watch(struct managed *managed, uint32_t process, uint64_t from_ns)
{
	if (!managed->stopping)
		/* without memory its methods stay unnamed and are counted */
		(void)conversation_of(managed, process, from_ns);
}

bool managed_hold(struct managed *managed, uint32_t process, const struct held_runtime *held,
	uint64_t now_ns)
{
	struct connection *connection =
		managed->stopping ? NULL : conversation_of(managed, process, now_ns);

	if (!connection || connection->held.waits)
		return false;
	connection->held = *held;
	connection->held_ns = now_ns;
	if (connection->state == CONNECTION_WAITING)
		connection->retry_ns = now_ns;
	return true;
}

void managed_process_ended(struct managed *managed, uint32_t process)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (at)
		managed->list.items[at - 1]->process_ended = true;
}

bool managed_is_busy(const struct managed *managed, uint32_t process)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return false;
	return managed->list.items[at - 1]->state != CONNECTION_OVER ||
	       managed->list.items[at - 1]->held.waits ||
	       exception_watch_has_gaps(&managed->list.items[at - 1]->watch) ||
	       managed->list.items[at - 1]->allocations.gap.to_ns ||
	       (managed->relay && relay_waits(managed->relay, process));
}

void managed_forget(struct managed *managed, uint32_t process)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return;
	struct connection *connection = managed->list.items[at - 1];
	struct connection *last = managed->list.items[managed->list.count - 1];

	connection_give_up_texts(connection);
	managed->past_asked++;
	managed->past_known += connection->report == REPORT_NAMED;
	managed->past_lost += connection->lost - connection->lost_reported;
	held_runtime_done(&connection->held);
	exception_watch_done(&connection->watch);
	managed->list.items[at - 1] = last;
	managed->list.count--;
	map_remove(&managed->by_process, process, at);
	if (last != connection) {
		map_remove(&managed->by_process, last->process, managed->list.count + 1);
		/* there is room: two entries were removed */
		(void)map_add(&managed->by_process, last->process, at);
	}
	free(connection);
}

void managed_miss(struct managed *managed, uint32_t process)
{
	uint32_t before = managed->list.count;
	struct connection *connection = conversation_of(managed, process, 0);

	if (!connection || managed->list.count == before)
		return;
	connection_refuse(connection, REASON_END_BEFORE_ASKED);
	connection_enter(connection, CONNECTION_OVER);
}

void managed_look_at_guard(struct managed *managed, uint64_t now_ns)
{
	cleanup(bytes_done) struct bytes text = { 0 };
	uint64_t seen_ns;
	uint32_t ended = 0;
	char state;

	guard_beat(managed->guard, now_ns);
	if (guard_problem(managed->guard))
		managed_tell_unguarded(managed, guard_problem(managed->guard));
	if (guard_rounds(managed->guard) == managed->guard_rounds)
		return;
	managed->guard_rounds = guard_rounds(managed->guard);
	guard_last_round(managed->guard, &seen_ns, &state);
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct connection *connection = managed->list.items[i];
		/* Bytes from before the guard's intervention are not read: the client checks. */
		if (!connection->client ||
			dotnet_client_advance(connection->client, now_ns) != DOTNET_ENDED ||
			dotnet_client_reason_kind(connection->client) != REASON_KIND_GUARDED)
			continue;
		ended++;
		if (!managed->pause_ns && !managed->stopping)
			connection_begin_again(connection, seen_ns, now_ns);
	}
	if (!ended)
		return;
	session_add_guarded(&text, managed->guard, ended, !managed->pause_ns && !managed->stopping,
		now_ns);
	managed->notice(managed->context, NOTICE_GUARD, bytes_z(&text));
}

/*
 * Requests another rundown, or a session that reports methods, for a process whose session does not
 * report new methods and in which samples fell into unknown code. Returns true if another rundown
 * was started.
 */
static bool ask_again(struct connection *connection, uint64_t now_ns)
{
	bool quiet =
		connection->methods != METHODS_ANNOUNCED && connection->state == CONNECTION_NAMED;
	struct symbolizer_process *process =
		quiet ? symbolizer_process(connection->managed->symbolizer, connection->process)
		      : NULL;

	if (!process)
		return false;
	if (connection->methods == METHODS_WANTED) {
		/* One more rundown reports the methods compiled before this session. */
		if (dotnet_client_methods(connection->client)) {
			connection_enter_methods(connection, METHODS_ASKED);
			connection_note_reported(connection, DOTNET_STREAM_METHODS, 0);
			process->has_unresolved_samples = true;
		}
		connection->again_ns = now_ns;
	} else if (process->has_unresolved_samples && now_ns >= connection->again_ns) {
		connection_begin_rundown(connection, now_ns);
	}
	return connection->state == CONNECTION_AGAIN;
}

void managed_advance(struct managed *managed, uint64_t now_ns)
{
	uint32_t asking = 0;

	if (managed->guard)
		managed_look_at_guard(managed, now_ns);
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct connection *connection = managed->list.items[i];
		if (!connection->client) {
			connection_advance_hold(connection, now_ns);
			continue;
		}
		enum dotnet_state state = dotnet_client_advance(connection->client, now_ns);
		connection_advance_hold(connection, now_ns);
		for (int s = 0; s < DOTNET_STREAM_COUNT; s++)
			if (connection->relayed[s] >= 0 &&
				!dotnet_client_behind(connection->client))
				relay_caught_up(managed->relay, connection->relayed[s], now_ns);
		if (managed->activity_max && connection->activity_count >= managed->activity_max)
			dotnet_client_end(connection->client, DOTNET_STREAM_ACTIVITIES, now_ns);
		connection_advance_exceptions(connection, now_ns);
		connection_look(connection, state, now_ns);
		if (connection->client && state == DOTNET_ASKING)
			asking++;
	}
	for (uint32_t i = 0; i < managed->list.count && !managed->stopping && !managed->pause_ns;
		i++) {
		struct connection *connection = managed->list.items[i];
		if (asking >= MANAGED_RUNDOWNS_MAX && !connection->held.waits)
			continue;
		if (connection->client)
			asking += ask_again(connection, now_ns);
		if (connection->state != CONNECTION_WAITING || connection->retry_ns > now_ns)
			continue;
		connection_start(connection, now_ns);
		asking++;
		if (connection->client)
			connection_look(connection,
				dotnet_client_advance(connection->client, now_ns), now_ns);
		connection_advance_hold(connection, now_ns);
	}
}

static bool has_unresolved(const struct connection *connection)
{
	const struct symbolizer_process *process =
		symbolizer_process(connection->managed->symbolizer, connection->process);

	return process && process->has_unresolved_samples;
}

bool managed_names_rest(struct managed *managed, uint64_t now_ns)
{
	uint32_t running = 0;
	bool some = false;

	for (uint32_t i = 0; i < managed->list.count; i++)
		running += managed->list.items[i]->state == CONNECTION_AGAIN;
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct connection *connection = managed->list.items[i];
		some |= connection->state == CONNECTION_AGAIN;
		some |= connection->client && exception_watch_waits(&connection->watch, now_ns);
		if (connection->state != CONNECTION_NAMED || connection->rested ||
			!has_unresolved(connection))
			continue;
		some = true;
		if (running >= MANAGED_RUNDOWNS_MAX)
			continue;
		connection_begin_rundown(connection, now_ns);
		connection->rested = connection->state == CONNECTION_AGAIN;
		running += connection->rested;
	}
	return some;
}

void managed_await(const struct managed *managed, struct poll_set *set)
{
	if (guard_rounds(managed->guard) != managed->guard_rounds)
		poll_set_wake(set, 0);
	for (uint32_t i = 0; i < managed->list.count; i++) {
		const struct connection *connection = managed->list.items[i];
		if (connection->client && !managed->stopping && !managed->pause_ns) {
			poll_set_wake(set, exception_watch_deadline_ns(&connection->watch));
			poll_set_wake(set, event_windows_deadline_ns(&connection->allocations));
		}
		if (connection->client)
			dotnet_client_await(connection->client, set);
		else if (connection->state != CONNECTION_OVER && !managed->stopping &&
			 !managed->pause_ns)
			poll_set_wake(set, connection->retry_ns);
		held_runtime_await(&connection->held, set);
		if (connection->held.waits && !held_runtime_is_resuming(&connection->held))
			poll_set_wake(set, connection->held_ns + MANAGED_HOLD_NS);
	}
}

void managed_pause(struct managed *managed, uint64_t now_ns)
{
	managed->pause_ns = now_ns;
	for (uint32_t i = 0; i < managed->list.count; i++)
		if (managed->list.items[i]->client)
			dotnet_client_stop(managed->list.items[i]->client, now_ns);
}

void managed_resume(struct managed *managed, uint64_t now_ns)
{
	uint64_t since_ns = managed->pause_ns;

	managed->pause_ns = 0;
	if (managed->guard)
		managed_look_at_guard(managed, now_ns);
	for (uint32_t i = 0; i < managed->list.count; i++)
		if (managed->list.items[i]->client)
			connection_begin_again(managed->list.items[i], since_ns, now_ns);
}

void managed_stop(struct managed *managed, uint64_t now_ns)
{
	managed->stopping = true;
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct connection *connection = managed->list.items[i];
		if (connection->client) {
			dotnet_client_stop(connection->client, now_ns);
		} else if (connection->state == CONNECTION_WAITING) {
			if (connection->report == REPORT_NONE)
				connection_refuse(connection, connection->retries
								      ? REASON_NO_SOCKET_YET
								      : REASON_NO_TIME);
			connection_enter(connection, CONNECTION_OVER);
		}
	}
}

bool managed_is_streaming(const struct managed *managed)
{
	for (uint32_t i = 0; i < managed->list.count; i++)
		if (managed->list.items[i]->client)
			return true;
	return false;
}

bool managed_ended(const struct managed *managed)
{
	for (uint32_t i = 0; i < managed->list.count; i++) {
		const struct dotnet_client *client = managed->list.items[i]->client;
		if (client && dotnet_client_state(client) != DOTNET_ENDED)
			return false;
	}
	return true;
}

static uint64_t lost_of(const struct connection *connection)
{
	uint64_t lost = connection->lost;

	for (int s = 0; s < DOTNET_STREAM_COUNT; s++) {
		if (connection->decoders[s])
			lost += nettrace_decoder_lost(connection->decoders[s]);
		if (connection->relayed[s] >= 0)
			lost += relay_stream_lost(connection->managed->relay,
				connection->relayed[s]);
	}
	return lost;
}

bool managed_take_losses(struct managed *managed, uint32_t process, uint64_t *ret_lost,
	uint64_t *ret_dropped)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return false;
	struct connection *connection = managed->list.items[at - 1];
	uint64_t lost = lost_of(connection);
	uint64_t dropped = connection->dropped;

	for (int s = 0; s < DOTNET_STREAM_COUNT; s++)
		if (connection->relayed[s] >= 0)
			dropped += relay_stream_dropped(managed->relay, connection->relayed[s]);

	if (lost == connection->lost_reported && dropped == connection->dropped_reported)
		return false;
	*ret_lost = lost - connection->lost_reported;
	*ret_dropped = dropped - connection->dropped_reported;
	connection->lost_reported = lost;
	connection->dropped_reported = dropped;
	return true;
}

uint64_t managed_lost(const struct managed *managed)
{
	uint64_t lost = managed->past_lost;

	for (uint32_t i = 0; i < managed->list.count; i++)
		lost += lost_of(managed->list.items[i]) - managed->list.items[i]->lost_reported;
	return lost;
}

uint32_t managed_withheld(const struct managed *managed)
{
	return managed->withheld;
}

size_t managed_size_bytes(const struct managed *managed)
{
	size_t size = 0;

	for (uint32_t i = 0; i < managed->texts.count; i++)
		size += strtab_size_bytes(&managed->texts.items[i]->table);
	return size;
}

void managed_counts(const struct managed *managed, uint32_t *ret_asked, uint32_t *ret_known)
{
	*ret_asked = managed->past_asked + managed->list.count;
	*ret_known = managed->past_known;
	for (uint32_t i = 0; i < managed->list.count; i++)
		*ret_known += managed->list.items[i]->report == REPORT_NAMED;
}

void managed_free(struct managed *managed)
{
	if (!managed)
		return;
	for (uint32_t i = 0; i < managed->list.count; i++) {
		connection_drop_client(managed->list.items[i]);
		held_runtime_done(&managed->list.items[i]->held);
		exception_watch_done(&managed->list.items[i]->watch);
		free(managed->list.items[i]);
	}
	guard_free(managed->guard);
	for (uint32_t i = 0; i < managed->texts.count; i++) {
		/* no code map reads these names any more */
		strtab_done(&managed->texts.items[i]->table);
		free(managed->texts.items[i]);
	}
	vec_done(&managed->texts);
	vec_done(&managed->wanted);
	vec_done(&managed->list);
	map_done(&managed->by_process);
	free(managed);
}
