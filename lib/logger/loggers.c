/*
 * See loggers.h and <spoor/logger.h>. Which events exist and which are enabled is looked up by
 * loggers_look(): when events were registered, on the thread that registered them, and by a timer of
 * the loop thread. The firing path reads only the table of parts.
 *
 * Locks: `loggers.lock` guards the tables. It is never held while an enable callback runs or a lock
 * of the registry is taken, because a callback may register events. A tracer's own lock is taken
 * inside it, so fork() does not take it: the child makes it anew.
 */
#include "lib/logger/loggers.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/event/firing.h"
#include "lib/logger/logger.h"
#include "lib/platform/loop.h"
#include "lib/platform/platform.h"

#define LOOK_NS    UINT64_C(100000000)
#define PART_CHUNK 1024u

/* Those of this system. A logger's place here is that of its slot. */
static const struct {
	enum spoor_logger which;
	const struct logger_ops *ops;
} all[] = {
#if defined(SPOOR_DIRECT_DTRACE)
	{ SPOOR_LOGGER_DTRACE, &logger_dtrace },
#elif defined(SPOOR_DIRECT_ETW)
	{ SPOOR_LOGGER_ETW, &logger_etw },
#else
	{ SPOOR_LOGGER_USDT, &logger_usdt },
	{ SPOOR_LOGGER_LTTNG, &logger_lttng },
	{ SPOOR_LOGGER_USER_EVENTS, &logger_user_events },
#endif
};
#define LOGGER_COUNT (sizeof(all) / sizeof(all[0]))
#define WHICH_MAX    SPOOR_LOGGER_DTRACE
_Static_assert(LOGGER_COUNT <= LOGGERS_MAX, "each logger has a slot");

struct logger_part {
	void *part; /* the logger's; NULL: not made yet, or `refused` */
	bool was_on;
	bool refused; /* atomic: no memory, or its tools cannot have this event */
};

struct logger {
	bool open; /* atomic */
	bool was_opened;
	uint32_t seen; /* entries below this index have a part */
	/* by the entry's index; atomic */
	struct logger_part *chunks[REGISTRY_EVENTS_MAX / PART_CHUNK];
};

static struct {
	pthread_mutex_t lock;
	pthread_mutex_t open_lock; /* one call of open() at a time; taken before `lock` */
	struct logger loggers[LOGGER_COUNT];
	struct logger_names *names; /* by the entry's index; provider NULL: not made yet */
	uint32_t names_room;
	struct loop_timer timer;
} loggers = { .lock = PTHREAD_MUTEX_INITIALIZER, .open_lock = PTHREAD_MUTEX_INITIALIZER };

/* LOGGER_COUNT: not on this system. */
static size_t place_of(enum spoor_logger which)
{
	size_t i = 0;

	while (i < LOGGER_COUNT && all[i].which != which)
		i++;
	return i;
}

static uint32_t slot_of(size_t index)
{
	return SESSIONS_MAX + (uint32_t)index;
}

static bool is_open(const struct logger *logger)
{
	return __atomic_load_n(&logger->open, __ATOMIC_RELAXED);
}

/* ---- Names ---- */

/* Letters, digits and '_' of a provider, without "Microsoft-" and "Windows-", as .NET's LTTng names it. */
static char *provider_name_make(const char *provider)
{
	static const char *const dropped[] = { "Microsoft-", "Windows-" };
	const char *at = provider;

	for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
		size_t length = strlen(dropped[i]);
		if (strncmp(at, dropped[i], length) == 0 && at[length])
			at += length;
	}
	return strdup(at);
}

static void name_clean(char *name)
{
	for (char *at = name; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
			    (*at >= '0' && *at <= '9')))
			*at = '_';
}

static bool name_is_taken(uint32_t index, const char *provider, const char *event)
{
	for (uint32_t i = 1; i < index; i++)
		if (loggers.names[i].provider && strcmp(loggers.names[i].event, event) == 0 &&
			strcmp(loggers.names[i].provider, provider) == 0)
			return true;
	return false;
}

/*
 * The names of an entry. A later version of an event is name_V1, as in the runtime's manifest; of
 * two events with one name the second is name_ID. NULL: no memory.
 */
static const struct logger_names *names_of(const struct event_entry *entry)
{
	uint32_t index = entry->index;
	char suffix[32] = "";
	char *event = NULL;

	if (index >= loggers.names_room) {
		uint32_t room = loggers.names_room ? loggers.names_room : 256;
		while (room <= index)
			room *= 2;
		struct logger_names *names = realloc(loggers.names, room * sizeof(*names));
		if (!names)
			return NULL;
		memset(names + loggers.names_room, 0, (room - loggers.names_room) * sizeof(*names));
		loggers.names = names;
		loggers.names_room = room;
	}
	struct logger_names *names = &loggers.names[index];
	if (names->provider)
		return names;
	char *provider = provider_name_make(entry->info.provider);
	if (!provider)
		return NULL;
	name_clean(provider);
	if (entry->info.version) {
		(void)snprintf(suffix, sizeof(suffix), "_V%u", entry->info.version);
		size_t length = strlen(entry->info.name), end = strlen(suffix);
		if (length >= end && strcmp(entry->info.name + length - end, suffix) == 0)
			suffix[0] = '\0';
	}
	size_t room = strlen(entry->info.name) + sizeof(suffix) + 32;
	event = malloc(room);
	for (int attempt = 0; event && attempt < 3; attempt++) {
		(void)snprintf(event, room, "%s%s",
			entry->info.name[0] ? entry->info.name : "event", suffix);
		name_clean(event);
		if (!name_is_taken(index, provider, event))
			break;
		(void)snprintf(suffix, sizeof(suffix), attempt == 0 ? "_%u" : "_%u_%u",
			entry->info.id, index);
	}
	if (!event) {
		free(provider);
		return NULL;
	}
	names->event = event;
	names->provider = provider;
	return names;
}

/* ---- Parts ---- */

static struct logger_part *part_of(struct logger *logger, uint32_t index)
{
	struct logger_part *chunk =
		__atomic_load_n(&logger->chunks[index / PART_CHUNK], __ATOMIC_ACQUIRE);

	return chunk ? &chunk[index % PART_CHUNK] : NULL;
}

/* The lock is held. */
static void part_add(size_t i, const struct event_entry *entry)
{
	struct logger *logger = &loggers.loggers[i];
	uint32_t index = entry->index;

	if (!logger->chunks[index / PART_CHUNK]) {
		struct logger_part *chunk = calloc(PART_CHUNK, sizeof(*chunk));
		if (!chunk)
			return;
		__atomic_store_n(&logger->chunks[index / PART_CHUNK], chunk, __ATOMIC_RELEASE);
	}
	const struct logger_names *names = names_of(entry);
	void *part = names ? all[i].ops->add(entry, names) : NULL;
	__atomic_store_n(&part_of(logger, index)->part, part, __ATOMIC_RELEASE);
	__atomic_store_n(&part_of(logger, index)->refused, !part, __ATOMIC_RELAXED);
}

static bool is_refused(uint32_t index)
{
	for (size_t i = 0; i < LOGGER_COUNT; i++) {
		struct logger *logger = &loggers.loggers[i];
		const struct logger_part *part = is_open(logger) ? part_of(logger, index) : NULL;
		if (part && __atomic_load_n(&part->refused, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static bool is_on(uint32_t slot, const struct event_entry *entry)
{
	size_t i = slot - SESSIONS_MAX;
	struct logger *logger = &loggers.loggers[i];
	const struct logger_part *part = is_open(logger) ? part_of(logger, entry->index) : NULL;
	const void *own = part ? __atomic_load_n(&part->part, __ATOMIC_ACQUIRE) : NULL;

	return own && all[i].ops->is_on(own);
}

static void set(size_t i)
{
	registry_logger_set(slot_of(i), SPOOR_LOGGER_SESSION + all[i].which, is_on);
}

/*
 * Makes parts for new entries, and sets the bits of events that tools have enabled or disabled
 * since the last look. `always`: sets them in any case, because events may have been registered
 * again. Without the lock held.
 */
static void loggers_look(bool always)
{
	for (size_t i = 0; i < LOGGER_COUNT; i++) {
		struct logger *logger = &loggers.loggers[i];
		bool changed = false;
		bool any = false;

		if (!is_open(logger))
			continue;
		pthread_mutex_lock(&loggers.lock);
		for (uint32_t end = registry_entry_end(); is_open(logger) && logger->seen < end;
			logger->seen++) {
			const struct event_entry *entry = registry_entry(logger->seen);
			if (entry && !(entry->flags & (ENTRY_OWN | ENTRY_UNLOGGED)))
				part_add(i, entry);
		}
		for (uint32_t index = 1; index < logger->seen; index++) {
			struct logger_part *part = part_of(logger, index);
			bool on = part && part->part && all[i].ops->is_on(part->part);
			any = any || on;
			if (!part || part->was_on == on)
				continue;
			part->was_on = on;
			changed = true;
		}
		pthread_mutex_unlock(&loggers.lock);
		if (changed || (always && any))
			set(i);
	}
}

static void look_at_added(void)
{
	loggers_look(true);
}

static void timer_expired(struct loop_timer *timer)
{
	loggers_look(false);
	if (registry_is_announcing())
		loop_timer_set(timer, platform_now_ns() + LOOK_NS);
}

static void look_posted(void *context)
{
	(void)context;
	loggers_look(false);
}

void loggers_look_soon(void)
{
	(void)loop_post(look_posted, NULL);
}

static void timer_start(void *context)
{
	(void)context;
	loggers.timer.expired = timer_expired;
	if (!loggers.timer.set)
		loop_timer_set(&loggers.timer, platform_now_ns() + LOOK_NS);
}

static void timer_stop(void *context)
{
	(void)context;
	loop_timer_clear(&loggers.timer);
}

/* ---- Firing ---- */

static void loggers_log(const struct event_entry *entry, uint64_t slots, const uint8_t *payload,
	size_t payload_size)
{
	int error = errno;

	for (; slots; slots &= slots - 1) {
		size_t i = (size_t)__builtin_ctzll(slots) - SESSIONS_MAX;
		const struct logger_part *part = part_of(&loggers.loggers[i], entry->index);
		void *own = part ? __atomic_load_n(&part->part, __ATOMIC_ACQUIRE) : NULL;
		if (own)
			all[i].ops->fire(own, entry, payload, payload_size);
	}
	errno = error;
}

/* ---- Start and end ---- */

/* No event is on. The lock is held, or this is the only thread. */
static void parts_off(size_t i)
{
	struct logger *logger = &loggers.loggers[i];

	for (uint32_t index = 1; index < logger->seen; index++) {
		struct logger_part *part = part_of(logger, index);
		if (!part)
			continue;
		part->was_on = false;
		if (all[i].ops->remakes_parts)
			__atomic_store_n(&part->part, NULL, __ATOMIC_RELEASE);
	}
	if (all[i].ops->remakes_parts)
		logger->seen = 1;
}

int spoor_logger_start(enum spoor_logger which)
{
	size_t i = place_of(which);

	if (i == LOGGER_COUNT)
		return (int)which < 0 || which > WHICH_MAX ? -EINVAL : -ENOTSUP;
	if (!loop_running())
		return -ENOTCONN;
	struct logger *logger = &loggers.loggers[i];
	pthread_mutex_lock(&loggers.open_lock);
	bool was_open = is_open(logger);
	int r = was_open ? 0 : all[i].ops->open();
	if (r == 0) {
		pthread_mutex_lock(&loggers.lock);
		if (!logger->seen)
			logger->seen = 1;
		logger->was_opened = true;
		__atomic_store_n(&logger->open, true, __ATOMIC_RELEASE);
		pthread_mutex_unlock(&loggers.lock);
	}
	pthread_mutex_unlock(&loggers.open_lock);
	if (r || was_open)
		return r;
	pipe_log_to(loggers_log);
	registry_announce_to(look_at_added, is_refused);
	loggers_look(true);
	return loop_post(timer_start, NULL);
}

void spoor_logger_stop(enum spoor_logger which)
{
	size_t i = place_of(which);
	bool any = false;

	if (i == LOGGER_COUNT || !is_open(&loggers.loggers[i]))
		return;
	pthread_mutex_lock(&loggers.open_lock);
	pthread_mutex_lock(&loggers.lock);
	__atomic_store_n(&loggers.loggers[i].open, false, __ATOMIC_RELEASE);
	for (size_t k = 0; k < LOGGER_COUNT; k++)
		any = any || is_open(&loggers.loggers[k]);
	if (!any)
		registry_announce_to(NULL, NULL);
	all[i].ops->close();
	parts_off(i);
	pthread_mutex_unlock(&loggers.lock);
	pthread_mutex_unlock(&loggers.open_lock);
	set(i);
}

void spoor_logger_prepare_thread(void)
{
	for (size_t i = 0; i < LOGGER_COUNT; i++)
		if (is_open(&loggers.loggers[i]) && all[i].ops->prepare_thread)
			all[i].ops->prepare_thread();
}

void loggers_start_configured(void)
{
	const char *at = platform_is_secure() ? NULL : getenv("SPOOR_LOGGERS");

	while (at && *at) {
		size_t length = strcspn(at, ", ");
		for (size_t i = 0; i < LOGGER_COUNT; i++)
			if (length == strlen(all[i].ops->name) &&
				strncmp(at, all[i].ops->name, length) == 0)
				(void)spoor_logger_start(all[i].which);
		at += length;
		at += strspn(at, ", ");
	}
}

static int loggers_start(const struct spoor_options *options)
{
	(void)options;
	return 0;
}

static void loggers_stop(void)
{
	for (size_t i = 0; i < LOGGER_COUNT; i++)
		spoor_logger_stop(all[i].which);
	(void)loop_call(timer_stop, NULL);
}

void loggers_fork_before(void)
{
	for (size_t i = 0; i < LOGGER_COUNT; i++)
		if (loggers.loggers[i].was_opened && all[i].ops->fork_before)
			all[i].ops->fork_before();
}

void loggers_fork_parent(void)
{
	for (size_t i = LOGGER_COUNT; i > 0; i--)
		if (loggers.loggers[i - 1].was_opened && all[i - 1].ops->fork_parent)
			all[i - 1].ops->fork_parent();
}

void loggers_fork_child(void)
{
	pthread_mutex_init(&loggers.lock, NULL);
	pthread_mutex_init(&loggers.open_lock, NULL);
	loggers.timer = (struct loop_timer){ 0 };
	registry_announce_to(NULL, NULL);
	for (size_t i = LOGGER_COUNT; i > 0; i--) {
		struct logger *logger = &loggers.loggers[i - 1];
		parts_off(i - 1);
		__atomic_store_n(&logger->open, false, __ATOMIC_RELAXED);
		if (logger->was_opened && all[i - 1].ops->fork_child)
			all[i - 1].ops->fork_child();
	}
}

const struct module loggers_module = {
	.name = "loggers",
	.start = loggers_start,
	.stop = loggers_stop,
};
