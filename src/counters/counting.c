/* See counting.h. */
#include "counters/counting.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clocks.h"
#include "base/diag.h"
#include "base/poll_set.h"
#include "base/text.h"
#include "base/vec.h"
#include "counters/counted_state.h"
#include "counters/counter_choice.h"
#include "counters/counter_feed.h"
#include "counters/counters.h"
#include "dotnet/guard.h"
#include "dotnet/held_runtime.h"
#include "dotnet/ipc.h"
#include "dotnet/path_endpoint.h"
#include "dotnet/port.h"
#include "dotnet/reason.h"
#include "dotnet/reverse.h"
#include "dotnet/runtime_start.h"
#include "machine/scheduling.h"
#include "nettrace/nettrace_read.h"
#include "pipeline/event_session.h"
#include "target/port_peer.h"
#include "target/targets.h"
#include "trace/event.h"
#include "trace/provider_kind.h"
#include "trace/schema.h"
#include "trace/trace.h"

#define SESSION_ID "SHARED"
#define LEVEL      4u
#define TURN_NS    UINT64_C(250000000)
/* values arrive within 15 ms of the end of the runtime's own interval */
#define SETTLE_NS UINT64_C(50000000)
/* for the first EventCounters, which arrive after a second */
#define LIST_WAIT_NS UINT64_C(1300000000)
#define LIST_SECONDS 1.0
#define JOINS_MAX    3u
#define VERSION_ROOM 64u
#define APPEAR_NS    UINT64_C(5000000000)
/* longer than the silence that the EventPipe session reports itself */
#define UNANSWERED_NS UINT64_C(6000000000)
#define SILENT_NS     UINT64_C(5000000000)  /* before the first values, on top of three intervals */
#define STOPPED_NS    UINT64_C(30000000000) /* between later ones, on top of ten */

struct counted {
	uint32_t pid;
	/* the pid is valid in our pid namespace: `target` is known */
	bool seen;
	struct dotnet_target target;
	struct runtime_client client;
	struct held_runtime held;   /* zeros: it did not connect to Spoor's diagnostics port */
	uint64_t resumed_ns;        /* 0: not by us */
	struct runtime_start start; /* in COUNTED_DELAYED */
	char name[256];
	char client_id[40];
	char version[VERSION_ROOM];
	struct event_session session; /* without a pipe: ended, or about to be opened again */
	struct counters counters;
	struct counter_feed events;
	struct ipc_provider *providers;
	struct bytes metrics_arguments;
	struct bytes event_counter_arguments;
	struct reason_note reason;
	enum counted_state state;
	double interval_s; /* requested of the Meters */
	uint32_t max_histograms;
	uint32_t max_time_series;
	uint32_t joins; /* times it was opened again by another's rule */
	bool listed;
	/* when our interval ends; 0: not known before the first value */
	uint64_t next_ns;
	uint64_t asked_ns;
	uint64_t opened_ns;
	uint64_t utc_ns;
	uint64_t closed_ns;
	uint64_t intervals;
	uint64_t refused_reported;
	unsigned reported; /* enum counter_trouble */
};

struct counting {
	struct counting_options options;
	VEC(struct counted *) processes;
	struct reverse *reverse;
	bool stopping;
};

/* The one place where the state changes. */
static void counted_enter(struct counted *p, enum counted_state state)
{
	assert(counted_may_enter(p->state, state));
	p->state = state;
}

static void process_free(struct counted *p)
{
	if (!p)
		return;
	event_session_close(&p->session);
	runtime_client_done(&p->client);
	held_runtime_done(&p->held);
	counter_feed_done(&p->events);
	counters_done(&p->counters);
	bytes_done(&p->metrics_arguments);
	bytes_done(&p->event_counter_arguments);
	free(p->providers);
	free(p);
}

/* ---- the request ---- */

/* A client of the shared session is known by a name that no other has. */
static void make_client_id(char out[40])
{
	uint8_t random[16];

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random)) {
		uint64_t words[2] = { clock_monotonic_ns(), (uint64_t)getpid() };
		memcpy(random, words, sizeof(random));
	}
	memcpy(out, "spoor-", 6);
	size_t len = text_put_hex(out + 6, random, sizeof(random));

	out[6 + len] = '\0';
}

static uint32_t count_event_sources(const struct counter_choice *choice)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < choice->providers.count; i++)
		count += !strchr(choice->providers.items[i].name, '*');
	return count;
}

/* The runtime's limit of providers is far above ours. A name given in two ways counts once. */
static int make_request(const struct counting *counting, struct counted *p, uint32_t *ret_count)
{
	const struct counting_options *o = &counting->options;
	uint32_t count = 0;
	struct bytes meters = { 0 };

	bytes_reset(&p->metrics_arguments);
	bytes_reset(&p->event_counter_arguments);
	free(p->providers);
	p->providers = calloc(count_event_sources(o->choice) + 1, sizeof(*p->providers));
	counter_choice_add_meters(o->choice, &meters);
	if (o->list) {
		bytes_text(&p->metrics_arguments, "SessionId=" SESSION_ID ";ClientId=");
		bytes_text(&p->metrics_arguments, p->client_id);
	} else if (meters.len) {
		bytes_printf(&p->metrics_arguments,
			"SessionId=" SESSION_ID
			";ClientId=%s;Metrics=%s;RefreshInterval=%.9g;MaxTimeSeries=%u;MaxHistograms=%u",
			p->client_id, bytes_z(&meters), p->interval_s, p->max_time_series,
			p->max_histograms);
	}
	bytes_printf(&p->event_counter_arguments, "EventCounterIntervalSec=%.9g",
		o->list ? LIST_SECONDS : (double)o->interval_ns / 1e9);
	bool failed = !p->providers || p->metrics_arguments.failed ||
		      p->event_counter_arguments.failed || meters.failed;

	bytes_done(&meters);
	if (failed)
		return -ENOMEM;
	const char *event_counters = bytes_z(&p->event_counter_arguments);

	if (p->metrics_arguments.len)
		p->providers[count++] = (struct ipc_provider){
			.name = PROVIDER_METRICS_NAME,
			.arguments = bytes_z(&p->metrics_arguments),
			.keywords = o->list ? METRICS_KEYWORD_PUBLISH : METRICS_KEYWORD_VALUES,
			.level = LEVEL,
		};
	for (uint32_t i = 0; i < o->choice->providers.count; i++) {
		const char *name = o->choice->providers.items[i].name;
		bool asked = strchr(name, '*') != NULL ||
			     (p->held.waits && strcmp(name, PROVIDER_SYSTEM_RUNTIME_NAME) == 0);
		for (uint32_t k = 0; k < count && !asked; k++)
			asked = strcmp(p->providers[k].name, name) == 0;
		if (!asked)
			p->providers[count++] = (struct ipc_provider){
				.name = name, .arguments = event_counters, .level = LEVEL
			};
	}
	*ret_count = count;
	return p->metrics_arguments.failed || p->event_counter_arguments.failed ? -ENOMEM : 0;
}

/* ---- the stream ---- */

/* A truncated event loses one value; its length is known, so the next events are readable. */
static void take_event(void *user, const struct schema *schema, const struct event *event,
	struct diag *broken)
{
	struct counted *p = user;

	if (counter_feed_take(&p->events, &p->session.trace.strings, schema, event->payload,
		    event->payload_size) == -ENOMEM)
		diag_set(broken, -ENOMEM, "there is no memory for its counters: %m");
}

static void fail(struct counted *p, enum reason_kind kind, const char *reason)
{
	counted_enter(p, COUNTED_FAILED);
	reason_note_set(&p->reason, kind, reason);
}

/* Opens the session; also once more, by another tool's rule. */
static int open_process(const struct counting *counting, struct counted *p)
{
	struct eventpipe_options options = {
		.buffer_mb = COUNTING_BUFFER_MB,
		.no_stacks = true,
		.appear_ns = p->held.reverse ? clock_monotonic_ns() + APPEAR_NS : 0,
	};
	const struct event_reading reading = {
		.take = take_event,
		.user = p,
		.name = "the counters' events",
		.flags = NETTRACE_NAMES_ONLY,
	};
	int result = make_request(counting, p, &options.provider_count);

	options.providers = p->providers;
	if (result == 0)
		result = event_session_open(&p->session, &p->client, &options, &reading);
	if (result < 0)
		return result;
	counted_enter(p, COUNTED_OPENING);
	p->opened_ns = 0;
	p->asked_ns = clock_monotonic_ns();
	return 0;
}

int counting_new(const struct counting_options *options, struct counting **ret_counting,
	struct diag *diag)
{
	struct counting *counting = calloc(1, sizeof(*counting));

	if (!counting)
		return diag_set(diag, -ENOMEM, "out of memory");
	scheduling_wait_ones_turn(); /* data that is not read yet waits in the runtimes */
	counting->options = *options;
	*ret_counting = counting;
	return 0;
}

/*
 * The runtime's own EventCounters that are requested before it has started can deadlock it
 * permanently: its first thread holds the list of EventSources while the thread that reads the
 * counters makes some of these (dotnet/runtime issues 119014 and 105682). From .NET 9 on there is a
 * Meter with the same figures; else the session has to wait until the start is over.
 */
static bool can_begin_early(const struct counting *counting, const struct target *target)
{
	const struct counter_choice *choice = counting->options.choice;

	if (!counter_choice_has_provider(choice, PROVIDER_SYSTEM_RUNTIME_NAME))
		return true;
	for (uint32_t i = 0; i < choice->providers.count; i++)
		if (choice->providers.items[i].only_event_counters &&
			strcmp(choice->providers.items[i].name, PROVIDER_SYSTEM_RUNTIME_NAME) == 0)
			return false;
	return strtoul(target->runtime_version, NULL, 10) >= 9;
}

/*
 * `seen`: its pid is valid in our pid namespace. `endpoint` NULL: its own diagnostics socket. `held`
 * NULL: it did not connect to Spoor's port.
 */
static int add(struct counting *counting, const struct target *target, bool seen,
	const struct dotnet_endpoint *endpoint, const struct held_runtime *held, struct diag *diag)
{
	struct counted *p = calloc(1, sizeof(*p));
	int result = p ? counters_init(&p->counters) : -ENOMEM;

	if (result == 0 && seen)
		result = dotnet_target_read(target->pid, &p->target, endpoint ? NULL : diag);
	if (p)
		p->seen = seen && result == 0;
	if (endpoint && result < 0 && result != -ENOMEM)
		result = 0; /* the diagnostics connection works without it */
	if (result == 0) {
		p->pid = target->pid;
		runtime_client_init(&p->client, endpoint, p->seen ? &p->target : NULL,
			counting->options.guard);
		p->held = held ? *held : (struct held_runtime){ 0 };
		text_set(p->name, "%s", target->name);
		text_set(p->version, "%s", target->runtime_version);
		make_client_id(p->client_id);
		p->counters.derive = counting->options.derive;
		p->events = (struct counter_feed){
			.counters = &p->counters,
			.choice = counting->options.choice,
			.session_id = SESSION_ID,
			.client_id = p->client_id,
			.list_all = counting->options.list,
			.from_start = p->held.waits,
		};
		p->interval_s = (double)counting->options.interval_ns / 1e9;
		p->max_histograms = counting->options.max_histograms;
		p->max_time_series = counting->options.max_time_series;
		if (held && !counting->options.hold && !can_begin_early(counting, target)) {
			p->events.from_start = false;
			counted_enter(p, COUNTED_HELD);
		} else {
			result = open_process(counting, p);
		}
	}
	if (result == 0 && !vec_add(&counting->processes, p))
		result = -ENOMEM;
	if (result < 0) {
		process_free(p);
		return diag_set(diag, result, "cannot read counters of process %u: %m",
			target->pid);
	}
	return 0;
}

int counting_add(struct counting *counting, const struct target *target, struct diag *diag)
{
	return add(counting, target, true, NULL, NULL, diag);
}

int counting_add_path(struct counting *counting, const char *path, struct diag *diag)
{
	const struct dotnet_endpoint endpoint = path_endpoint(path);
	struct port_peer peer;
	int result = port_peer_ask(path, TARGET_DOTNET, &peer, diag);

	if (result == 0)
		result = add(counting, &peer.target, peer.seen, &endpoint, NULL, diag);
	port_peer_done(&peer);
	return result;
}

void counting_listen(struct counting *counting, struct reverse *reverse)
{
	counting->reverse = reverse;
}

/* Runtimes that connected to Spoor's port are counted; while counting stops, only resumed. */
static void take_newcomers(struct counting *counting)
{
	uint32_t peer;

	if (!counting->reverse)
		return;
	reverse_advance(counting->reverse);
	while (!counting->stopping && reverse_next(counting->reverse, &peer)) {
		const struct held_runtime held = held_runtime_of(counting->reverse, peer);
		struct port_peer newcomer;

		port_peer_read(reverse_peer(counting->reverse, peer), TARGET_DOTNET, &newcomer);
		/* Out of memory: the runtime is resumed at the end, without having been counted. */
		(void)add(counting, &newcomer.target, newcomer.seen, &held.endpoint, &held, NULL);
		port_peer_done(&newcomer);
	}
	if (counting->stopping)
		reverse_release(counting->reverse, 0, 0);
}

/* Sends ResumeRuntime: once the session of the process is open, or has failed. */
static void begin_resume(const struct counting *counting, struct counted *p, uint64_t now)
{
	if (!p->held.waits || counting->options.hold || held_runtime_is_resuming(&p->held))
		return;
	p->resumed_ns = now;
	if (p->state == COUNTED_HELD)
		counted_enter(p, COUNTED_DELAYED);
	runtime_start_begin(&p->start, p->seen ? p->pid : 0, now);
	held_runtime_resume(&p->held, now);
}

/* A runtime whose session is over gets no further request, so the port may reuse its place. */
static void leave_place(const struct counting *counting, struct counted *p, uint64_t now)
{
	if (!p->held.reverse || p->session.pipe || counted_awaits_start(p->state))
		return;
	if (!counting->stopping)
		begin_resume(counting, p, now); /* once more, if its connection was lost */
	if (held_runtime_is_resuming(&p->held) ||
		(p->held.waits && p->client.endpoint.state(p->client.endpoint.context)))
		return;
	held_runtime_done(&p->held);
}

/* ---- turns ---- */

static void tell(const struct counting *counting, uint32_t index, const char *sentence)
{
	if (counting->options.tell)
		counting->options.tell(counting->options.context, index, sentence);
}

/* The Meters' session has other limits than ours: ours is opened again by its rule. */
static void join_others(struct counting *counting, uint32_t index)
{
	struct counted *p = counting->processes.items[index];
	char sentence[256];

	if (p->joins++ >= JOINS_MAX) {
		tell(counting, index,
			"another tool's metrics session has other limits, which changed time and again: no values of Meters");
		return;
	}
	p->interval_s = p->events.expected_interval_s;
	p->max_histograms = p->events.expected_max_histograms;
	p->max_time_series = p->events.expected_max_time_series;
	if (p->state == COUNTED_RUNNING)
		counted_enter(p, COUNTED_REOPENING);
	event_session_stop(&p->session, clock_monotonic_ns());
	text_set(sentence,
		"another tool reads its Meters every %g s, %u time series and %u histograms at most: these limits hold for us, too",
		p->interval_s, p->max_time_series, p->max_histograms);
	tell(counting, index, sentence);
}

static void look_for_trouble(struct counting *counting, uint32_t index)
{
	struct counted *p = counting->processes.items[index];
	unsigned trouble = p->events.trouble & ~p->reported;
	char sentence[400];

	p->events.trouble = 0;
	p->reported |= trouble & ~(unsigned)COUNTER_TROUBLE_OTHERS_RULE;
	if ((trouble & COUNTER_TROUBLE_OTHERS_RULE) && !counting->stopping &&
		counted_is_running(p->state))
		join_others(counting, index);
	if (trouble & COUNTER_TROUBLE_BUSY)
		tell(counting, index,
			"another tool has its only metrics session: EventCounters only, no values of Meters");
	if (trouble & COUNTER_TROUBLE_SERIES) {
		text_set(sentence,
			"it has more than %u time series: those beyond are missing; --maxTimeSeries takes more",
			p->max_time_series);
		tell(counting, index, sentence);
	}
	if (trouble & COUNTER_TROUBLE_HISTOGRAMS) {
		text_set(sentence,
			"it has more than %u histograms: those beyond are missing; --maxHistograms takes more",
			p->max_histograms);
		tell(counting, index, sentence);
	}
	if (trouble & (COUNTER_TROUBLE_ERROR | COUNTER_TROUBLE_CALLBACK)) {
		text_set(sentence,
			trouble & COUNTER_TROUBLE_ERROR
				? "its metrics session has ended with an error: %s"
				: "an instrument of it failed: %s",
			p->events.message);
		tell(counting, index, sentence);
	}
	if (p->counters.refused && !p->refused_reported) {
		p->refused_reported = p->counters.refused;
		text_set(sentence, "it has more than %u counters: those beyond are left out",
			COUNTERS_SERIES_MAX);
		tell(counting, index, sentence);
	}
}

static void take_cpu(struct counted *p)
{
	struct timespec used;
	clockid_t clock;

	if (!p->seen || clock_getcpuclockid((pid_t)p->pid, &clock) != 0 ||
		clock_gettime(clock, &used) < 0)
		return;
	counters_take_cpu(&p->counters,
		(uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec, clock_monotonic_ns());
}

/*
 * Ends an interval SETTLE_NS (at most a quarter of the interval) after the time at which the
 * runtime's own interval is expected to end. After an interval without values the next values set
 * that time anew.
 */
static void close_interval(struct counting *counting, uint32_t index, uint64_t now)
{
	struct counted *p = counting->processes.items[index];
	uint64_t interval_ns = counting->options.interval_ns;
	uint64_t settle_ns = interval_ns / 4 < SETTLE_NS ? interval_ns / 4 : SETTLE_NS;

	if (!p->next_ns && counters_any(&p->counters)) {
		uint64_t first_ns = p->opened_ns + interval_ns;
		/* Another tool's shorter interval brings the first values early. */
		p->next_ns = (first_ns > now ? first_ns : now) + settle_ns;
	}
	if (!p->next_ns || now < p->next_ns)
		return;
	if (p->events.collecting && now < p->next_ns + interval_ns / 2)
		return;
	if (!counters_any(&p->counters)) {
		p->next_ns = 0;
		return;
	}
	take_cpu(p);
	if (p->events.from_start && p->resumed_ns && now > p->resumed_ns + settle_ns) {
		/* The first one holds the start, too, which the runtime's own interval does not. */
		double seconds = (double)(now - p->resumed_ns - settle_ns) / 1e9;
		if (seconds > p->counters.meter_seconds)
			counters_take_interval(&p->counters, seconds - p->counters.meter_seconds);
	}
	p->events.from_start = false;
	(void)counters_close(&p->counters); /* how many are new is of no matter */
	p->utc_ns = clock_utc_ns();
	p->closed_ns = now;
	p->intervals++;
	p->next_ns += interval_ns;
	if (p->next_ns <= now)
		p->next_ns = now + interval_ns;
	counting->options.ready(counting->options.context, index);
}

static void end_process(struct counting *counting, struct counted *p)
{
	const struct reason_note *reason = eventpipe_reason(p->session.pipe);

	if (p->state == COUNTED_REOPENING && eventpipe_whole(p->session.pipe)) {
		event_session_end(&p->session);
		/*
		 * The runtime adds clients by their ids, but subtracts one at each end: a client
		 * that joined twice with one id would end another client's share too. So each join
		 * gets a new id.
		 */
		make_client_id(p->client_id);
		if (open_process(counting, p) < 0)
			fail(p, REASON_KIND_ERROR, reason_text(REASON_NO_MEMORY));
		return;
	}
	if (*reason->text)
		fail(p, reason->kind, reason->text);
	else if (p->session.broken.error)
		fail(p, REASON_KIND_LIED, p->session.broken.text);
	else
		counted_enter(p, COUNTED_ENDED);
	event_session_end(&p->session);
}

static void advance(struct counting *counting, uint32_t index, uint64_t now)
{
	struct counted *p = counting->processes.items[index];

	if (counted_awaits_start(p->state))
		begin_resume(counting, p, now);
	held_runtime_advance(&p->held, now);
	if (p->state == COUNTED_DELAYED && !p->held.waits &&
		runtime_start_is_over(&p->start, p->seen ? p->pid : 0, now) &&
		open_process(counting, p) < 0)
		fail(p, REASON_KIND_ERROR, reason_text(REASON_NO_MEMORY));
	leave_place(counting, p, now);
	if (!p->session.pipe)
		return;
	runtime_client_advance(&p->client, now);
	enum eventpipe_state state = eventpipe_state(p->session.pipe);

	if (eventpipe_opened_ns(p->session.pipe) || state == EVENTPIPE_ENDED)
		begin_resume(counting, p, now);

	if (state == EVENTPIPE_STREAMING && p->state == COUNTED_OPENING) {
		counted_enter(p, COUNTED_RUNNING);
		p->opened_ns = now;
		/* else the version that the target's files have stays */
		(void)event_session_version(&p->session, p->version, sizeof(p->version));
		take_cpu(p);
	}
	if (p->intervals || counters_any(&p->counters))
		eventpipe_valued(p->session.pipe);
	look_for_trouble(counting, index);
	if (counted_is_running(p->state) && !counting->options.list)
		close_interval(counting, index, now);
	if (counting->options.list && p->opened_ns && now >= p->opened_ns + LIST_WAIT_NS &&
		!p->listed) {
		/* all instruments are listed, also those without a value since the last interval */
		(void)counters_close(&p->counters);
		p->listed = true;
	}
	if (p->session.broken.error && state == EVENTPIPE_STREAMING)
		event_session_stop(&p->session, now);
	if (state == EVENTPIPE_ENDED)
		end_process(counting, p);
}

static void await(const struct counting *counting, const struct counted *p, struct poll_set *set)
{
	held_runtime_await(&p->held, set);
	runtime_client_await(&p->client, set);
	if (p->state == COUNTED_DELAYED)
		poll_set_wake(set, p->start.due_ns);
	if (p->session.pipe && p->next_ns && counted_is_running(p->state))
		poll_set_wake(set, p->next_ns);
	if (p->session.pipe && counting->options.list && p->opened_ns && !p->listed)
		poll_set_wake(set, p->opened_ns + LIST_WAIT_NS);
}

int counting_step(struct counting *counting, struct poll_set *set)
{
	int running = 0;

	poll_set_wake(set, clock_monotonic_ns() + TURN_NS);
	for (uint32_t i = 0; i < counting->processes.count; i++)
		await(counting, counting->processes.items[i], set);
	if (counting->reverse)
		reverse_await(counting->reverse, set);
	uint64_t now = poll_set_wait(set);

	guard_beat(counting->options.guard, now);
	take_newcomers(counting);
	/* No session that could end and make room: a runtime would wait for us for ever. */
	if (counting->reverse && !counting->stopping && reverse_error(counting->reverse) &&
		!counting->processes.count)
		return reverse_error(counting->reverse);
	for (uint32_t i = 0; i < counting->processes.count; i++) {
		const struct counted *p = counting->processes.items[i];
		advance(counting, i, now);
		running += p->session.pipe || held_runtime_is_resuming(&p->held) ||
			   counted_awaits_start(p->state);
	}
	return running + (counting->reverse && !counting->stopping);
}

void counting_stop(struct counting *counting)
{
	counting->stopping = true;
	for (uint32_t i = 0; i < counting->processes.count; i++) {
		struct counted *p = counting->processes.items[i];
		if (counted_awaits_start(p->state))
			counted_enter(p, COUNTED_ENDED); /* it never began */
		if (!p->session.pipe)
			continue;
		if (p->state != COUNTED_STOPPING)
			counted_enter(p, COUNTED_STOPPING);
		event_session_stop(&p->session, clock_monotonic_ns());
	}
	for (uint32_t i = 0; i < counting->processes.count; i++)
		begin_resume(counting, counting->processes.items[i], clock_monotonic_ns());
}

uint32_t counting_count(const struct counting *counting)
{
	return counting->processes.count;
}

static enum counting_wait wait_of(const struct counting *counting, const struct counted *p,
	uint64_t now)
{
	uint64_t interval_ns = counting->options.interval_ns;

	if (p->state == COUNTED_OPENING)
		return now >= p->asked_ns + UNANSWERED_NS ? COUNTING_UNANSWERED : COUNTING_ON_TIME;
	if (!counted_is_running(p->state) || counting->options.list)
		return COUNTING_ON_TIME;
	uint64_t due_ns = p->intervals ? p->closed_ns + 10 * interval_ns + STOPPED_NS
				       : p->opened_ns + 3 * interval_ns + SILENT_NS;

	return now >= due_ns ? COUNTING_SILENT : COUNTING_ON_TIME;
}

/* The state that callers see. */
static enum counting_state public_state(enum counted_state state)
{
	switch (state) {
	case COUNTED_NEW:
	case COUNTED_HELD:
	case COUNTED_DELAYED:
	case COUNTED_OPENING:
		return COUNTING_OPENING;
	case COUNTED_RUNNING:
	case COUNTED_REOPENING:
		return COUNTING_RUNNING;
	case COUNTED_STOPPING:
		return COUNTING_STOPPING;
	case COUNTED_ENDED:
		return COUNTING_ENDED;
	case COUNTED_FAILED:
		break;
	}
	return COUNTING_FAILED;
}

void counting_process(const struct counting *counting, uint32_t index,
	struct counting_process *ret_process)
{
	const struct counted *p = counting->processes.items[index];

	*ret_process = (struct counting_process){
		.pid = p->pid,
		.name = p->name,
		.state = public_state(p->state),
		.reason = *p->reason.text || !p->session.pipe
				  ? p->reason.text
				  : eventpipe_reason(p->session.pipe)->text,
		.reason_kind = p->reason.kind,
		.wait = wait_of(counting, p, clock_monotonic_ns()),
		.runtime_version = p->version,
		.counters = &p->counters,
		.utc_ns = p->utc_ns,
		.monotonic_ns = p->closed_ns,
		.intervals = p->intervals,
		.bytes = p->session.bytes,
		.lost = event_session_lost(&p->session),
		.instruments = p->events.instruments.items,
		.instrument_count = p->events.instruments.count,
		.listed = p->listed,
	};
}

void counting_free(struct counting *counting)
{
	if (!counting)
		return;
	for (uint32_t i = 0; i < counting->processes.count; i++)
		process_free(counting->processes.items[i]);
	vec_done(&counting->processes);
	free(counting);
}
