/* See managed.h. */
#include "recording/managed.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "base/vec.h"
#include "dotnet/guard.h"
#include "dotnet/held_runtime.h"
#include "dotnet/ipc.h"
#include "dotnet/reason.h"
#include "dotnet/runtime_client.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/relay.h"
#include "recording/connection.h"
#include "symbolize/symbolizer.h"
#include "trace/trace.h"

/* A runtime creates its socket about 20 ms after exec, or later: retries end after 5 s. */

/*
 * A rundown uses tens of milliseconds of one CPU in the runtime: the first other rundown is made
 * after 5 s, later ones after 30 s.
 */

int managed_new(struct trace *trace, struct symbolizer *symbolizer, managed_report *report,
	managed_told *told, void *context, struct managed **ret_managed)
{
	struct managed *managed = calloc(1, sizeof(*managed));

	if (!managed)
		return -ENOMEM;
	managed->trace = trace;
	managed->symbolizer = symbolizer;
	managed->report = report;
	managed->told = told;
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

void managed_sample(struct managed *managed, managed_sampled *sampled, void *context)
{
	managed->sampled_context = context;
	managed->sampled = sampled;
}

/* The runtime connection of a process, created if there is none. NULL without memory. */
static struct conversation *conversation_of(struct managed *managed, uint32_t process,
	uint64_t from_ns)
{
	uint32_t at = map_get(&managed->by_process, process);
	struct conversation *talk = at ? managed->list.items[at - 1] : calloc(1, sizeof(*talk));

	if (at)
		return talk;
	if (!talk || !vec_add(&managed->list, talk)) {
		free(talk);
		return NULL;
	}
	if (!map_add(&managed->by_process, process, managed->list.count)) {
		managed->list.count--;
		free(talk);
		return NULL;
	}
	talk->managed = managed;
	for (int i = 0; i < DOTNET_STREAM_COUNT; i++)
		talk->relayed[i] = -1;
	talk->process = process;
	talk->pid = managed->trace->processes.items[process].pid;
	talk->retry_ns = from_ns;
	connection_share_texts(talk);
	connection_set_state(talk, MANAGED_ASKING);
	return talk;
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
	struct conversation *talk =
		managed->stopping ? NULL : conversation_of(managed, process, now_ns);

	if (!talk || talk->held.waits)
		return false;
	talk->held = *held;
	talk->held_ns = now_ns;
	if (talk->state == CONNECTION_WAITING)
		talk->retry_ns = now_ns;
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
	       (managed->relay && relay_waits(managed->relay, process));
}

void managed_forget(struct managed *managed, uint32_t process)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return;
	struct conversation *talk = managed->list.items[at - 1];
	struct conversation *last = managed->list.items[managed->list.count - 1];

	connection_give_up_texts(talk);
	managed->past_asked++;
	managed->past_known += talk->was_named;
	managed->past_lost += talk->lost - talk->lost_told;
	held_runtime_done(&talk->held);
	managed->list.items[at - 1] = last;
	managed->list.count--;
	map_remove(&managed->by_process, process, at);
	if (last != talk) {
		map_remove(&managed->by_process, last->process, managed->list.count + 1);
		/* there is room: two entries were removed */
		(void)map_add(&managed->by_process, last->process, at);
	}
	free(talk);
}

void managed_miss(struct managed *managed, uint32_t process)
{
	uint32_t before = managed->list.count;
	struct conversation *talk = conversation_of(managed, process, 0);

	if (!talk || managed->list.count == before)
		return;
	connection_set_state(talk, MANAGED_REFUSED);
	connection_report(talk, false, "the recording ended before it could be asked",
		reason_word(REASON_KIND_ENDED));
	connection_enter(talk, CONNECTION_OVER);
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
		struct conversation *talk = managed->list.items[i];
		/* Bytes from before the guard's intervention are not read: the client checks. */
		if (!talk->client || dotnet_client_advance(talk->client, now_ns) != DOTNET_ENDED ||
			!reason_word_is(dotnet_client_reason_code(talk->client),
				REASON_KIND_GUARDED))
			continue;
		ended++;
		if (!managed->pause_ns && !managed->stopping)
			connection_begin_again(talk, seen_ns, now_ns);
	}
	if (!ended)
		return;
	bytes_printf(&text,
		"spoor %s for %s: its sessions in %u .NET process%s were ended after 2 s, so that %s not held up",
		state == 'T'   ? "was stopped"
		: state == 't' ? "was held by a debugger"
			       : "stood still",
		TEXT_DURATION((double)(now_ns > seen_ns ? now_ns - seen_ns : 0) / 1e9), ended,
		ended == 1 ? "" : "es", ended == 1 ? "it was" : "they were");
	if (!managed->pause_ns && !managed->stopping)
		bytes_text(&text, ", and are opened again");
	managed->told(managed->context, "guard", bytes_z(&text));
}

/*
 * Requests another rundown, or a session that reports methods, for a process whose session does not
 * report new methods and in which samples fell into unknown code. Returns true if another rundown
 * was started.
 */
static bool ask_again(struct conversation *talk, uint64_t now_ns)
{
	bool quiet = talk->methods != METHODS_ANNOUNCED && talk->state == CONNECTION_NAMED;
	struct symbolizer_process *process =
		quiet ? symbolizer_process(talk->managed->symbolizer, talk->process) : NULL;

	if (!process)
		return false;
	if (talk->methods == METHODS_WANTED) {
		/* One more rundown reports the methods compiled before this session. */
		if (dotnet_client_methods(talk->client)) {
			talk->methods = METHODS_ASKED;
			connection_note_reported(talk, DOTNET_STREAM_METHODS, 0);
			process->untold_hit = true;
		}
		talk->again_ns = now_ns;
	} else if (process->untold_hit && now_ns >= talk->again_ns) {
		connection_begin_rundown(talk, now_ns);
	}
	return talk->state == CONNECTION_AGAIN;
}

void managed_advance(struct managed *managed, uint64_t now_ns)
{
	uint32_t asking = 0;

	if (managed->guard)
		managed_look_at_guard(managed, now_ns);
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct conversation *talk = managed->list.items[i];
		if (!talk->client) {
			connection_advance_hold(talk, now_ns);
			continue;
		}
		enum dotnet_state state = dotnet_client_advance(talk->client, now_ns);
		connection_advance_hold(talk, now_ns);
		for (int s = 0; s < DOTNET_STREAM_COUNT; s++)
			if (talk->relayed[s] >= 0 && !dotnet_client_behind(talk->client))
				relay_caught_up(managed->relay, talk->relayed[s], now_ns);
		connection_look(talk, state, now_ns);
		if (talk->client && state == DOTNET_ASKING)
			asking++;
	}
	for (uint32_t i = 0; i < managed->list.count && !managed->stopping && !managed->pause_ns;
		i++) {
		struct conversation *talk = managed->list.items[i];
		if (asking >= MANAGED_RUNDOWNS_MAX && !talk->held.waits)
			continue;
		if (talk->client)
			asking += ask_again(talk, now_ns);
		if (talk->state != CONNECTION_WAITING || talk->retry_ns > now_ns)
			continue;
		connection_start(talk, now_ns);
		asking++;
		if (talk->client)
			connection_look(talk, dotnet_client_advance(talk->client, now_ns), now_ns);
		connection_advance_hold(talk, now_ns);
	}
}

static bool is_hit_untold(const struct conversation *talk)
{
	const struct symbolizer_process *process =
		symbolizer_process(talk->managed->symbolizer, talk->process);

	return process && process->untold_hit;
}

bool managed_names_rest(struct managed *managed, uint64_t now_ns)
{
	uint32_t running = 0;
	bool some = false;

	for (uint32_t i = 0; i < managed->list.count; i++)
		running += managed->list.items[i]->state == CONNECTION_AGAIN;
	for (uint32_t i = 0; i < managed->list.count; i++) {
		struct conversation *talk = managed->list.items[i];
		some |= talk->state == CONNECTION_AGAIN;
		if (talk->state != CONNECTION_NAMED || talk->rested || !is_hit_untold(talk))
			continue;
		some = true;
		if (running >= MANAGED_RUNDOWNS_MAX)
			continue;
		connection_begin_rundown(talk, now_ns);
		talk->rested = talk->state == CONNECTION_AGAIN;
		running += talk->rested;
	}
	return some;
}

void managed_await(const struct managed *managed, struct poll_set *set)
{
	if (guard_rounds(managed->guard) != managed->guard_rounds)
		poll_set_wake(set, 0);
	for (uint32_t i = 0; i < managed->list.count; i++) {
		const struct conversation *talk = managed->list.items[i];
		if (talk->client)
			dotnet_client_await(talk->client, set);
		else if (talk->state != CONNECTION_OVER && !managed->stopping && !managed->pause_ns)
			poll_set_wake(set, talk->retry_ns);
		held_runtime_await(&talk->held, set);
		if (talk->held.waits && !held_runtime_is_resuming(&talk->held))
			poll_set_wake(set, talk->held_ns + MANAGED_HOLD_NS);
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
		struct conversation *talk = managed->list.items[i];
		if (talk->client) {
			dotnet_client_stop(talk->client, now_ns);
		} else if (talk->state == CONNECTION_WAITING) {
			if (!talk->reported) {
				connection_set_state(talk, MANAGED_REFUSED);
				connection_report(talk, false,
					talk->retries ? reason_text(REASON_NO_SOCKET_YET)
						      : "there was no time to connect to it",
					reason_word(talk->retries ? REASON_KIND_NO_SOCKET
								  : REASON_KIND_ENDED));
			}
			connection_enter(talk, CONNECTION_OVER);
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

static uint64_t lost_of(const struct conversation *talk)
{
	uint64_t lost = talk->lost;

	for (int s = 0; s < DOTNET_STREAM_COUNT; s++) {
		if (talk->decoders[s])
			lost += nettrace_decoder_lost(talk->decoders[s]);
		if (talk->relayed[s] >= 0)
			lost += relay_stream_lost(talk->managed->relay, talk->relayed[s]);
	}
	return lost;
}

bool managed_take_losses(struct managed *managed, uint32_t process, uint64_t *ret_lost,
	uint64_t *ret_dropped)
{
	uint32_t at = map_get(&managed->by_process, process);

	if (!at)
		return false;
	struct conversation *talk = managed->list.items[at - 1];
	uint64_t lost = lost_of(talk);
	uint64_t dropped = talk->dropped;

	for (int s = 0; s < DOTNET_STREAM_COUNT; s++)
		if (talk->relayed[s] >= 0)
			dropped += relay_stream_dropped(managed->relay, talk->relayed[s]);

	if (lost == talk->lost_told && dropped == talk->dropped_told)
		return false;
	*ret_lost = lost - talk->lost_told;
	*ret_dropped = dropped - talk->dropped_told;
	talk->lost_told = lost;
	talk->dropped_told = dropped;
	return true;
}

uint64_t managed_lost(const struct managed *managed)
{
	uint64_t lost = managed->past_lost;

	for (uint32_t i = 0; i < managed->list.count; i++)
		lost += lost_of(managed->list.items[i]) - managed->list.items[i]->lost_told;
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
		*ret_known += managed->list.items[i]->was_named;
}

void managed_free(struct managed *managed)
{
	if (!managed)
		return;
	for (uint32_t i = 0; i < managed->list.count; i++) {
		connection_drop_client(managed->list.items[i]);
		held_runtime_done(&managed->list.items[i]->held);
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
