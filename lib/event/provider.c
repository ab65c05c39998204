/*
 * See provider.h. A list of nodes (registered providers), which only grows, and the 64 slots of
 * sessions with the providers that each enables. The entries of events are in event_table.c. An
 * event's mask is a pure function of its entry and the slots: mask_of().
 *
 * Enable callbacks are queued in the order of the changes. The thread that made a change empties
 * the queue before it returns, without the lock held and one thread at a time. A change inside a
 * callback is only queued; the thread that runs the callback calls it afterwards.
 */
#include "lib/event/provider.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/platform/loop.h"

#define CONFLICT_MAX 512u
/* ids of events that are made at run time: declared events of the same name rarely have them */
#define ID_FIRST 32768u
#define ID_COUNT 65536u

struct node {
	struct node *next;
	/* NULL: unregistered; the node can be used for another provider */
	struct spoor_provider *provider;
	/* slots of the sessions that enable it; atomic, for registry_provider_wanted() */
	uint64_t sessions;
	uint64_t any_keywords;
	uint32_t any_level;
	bool calling;  /* an enable callback of it is running, on `registry.calling_thread` */
	bool unlogged; /* loggers do not get its events */
	struct {
		uint64_t session_id;
		uint64_t keywords;
		uint32_t level;
	} slots[SLOTS_MAX];
	struct spoor_event **events;
	uint32_t event_count;
	uint32_t event_room;
};

enum provider_flag {
	PROVIDER_MAY_BE_EMPTY = 1 << 0,
	PROVIDER_UNLOGGED = 1 << 1,
};

struct provider_slot {
	bool used;
	uint64_t session_id;
	const struct session_wants *wants;
};

struct change {
	struct change *next;
	struct node *node;
	struct spoor_enable what;
	char *arguments;
	uint64_t ticket;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t called;
	struct node *nodes;
	struct provider_slot slots[SESSIONS_MAX];
	void (*added)(void);             /* see registry_announce_to(); atomic */
	bool (*refused)(uint32_t index); /* see registry_announce_to(); atomic */
	struct change *first_change;
	struct change **last_change;
	uint64_t tickets;
	uint64_t done_tickets;
	bool calling;
	pthread_t calling_thread;
	char conflict[CONFLICT_MAX];                  /* see spoor_provider_conflict() */
	void (*report_conflict)(const char *message); /* NULL: none */
} registry = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.called = PTHREAD_COND_INITIALIZER,
	.last_change = &registry.first_change,
};

void registry_lock(void)
{
	pthread_mutex_lock(&registry.lock);
}

void registry_unlock(void)
{
	pthread_mutex_unlock(&registry.lock);
}

void registry_lock_reset(void)
{
	pthread_mutex_init(&registry.lock, NULL);
	pthread_cond_init(&registry.called, NULL);
}

/* ---- Which events a session enables ---- */

static bool slot_wants(const struct provider_slot *slot, const struct spoor_event_info *info)
{
	if (!slot->used)
		return false;
	for (size_t i = 0; i < slot->wants->count; i++) {
		const struct spoor_want *want = &slot->wants->wants[i];
		if (want_names(want, info->provider) &&
			want_admits(want, info->level, info->keywords, info->id))
			return true;
	}
	return false;
}

static uint64_t mask_of(const struct event_entry *entry)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		if (slot_wants(&registry.slots[i], &entry->info))
			mask |= UINT64_C(1) << i;
	return mask;
}

/* ---- Entries ---- */

static struct spoor_event_info info_of(const struct spoor_event *event, const char *provider)
{
	return (struct spoor_event_info){
		.size = sizeof(struct spoor_event_info),
		.provider = provider,
		.name = event->name,
		.keywords = event->keywords,
		.fields = event->fields,
		.field_count = event->field_count,
		.id = event->id,
		.version = event->version,
		.level = event->level,
		.opcode = event->opcode,
	};
}

static int event_describe(struct spoor_event *event, const char *provider, uint32_t flags,
	struct event_entry **ret_entry)
{
	struct spoor_event_info info = info_of(event, provider);

	if (event->flags & SPOOR_EVENT_WELL_KNOWN)
		flags |= ENTRY_WELL_KNOWN;
	int r = event_table_find(&info, flags, ret_entry);
	if (r == 0)
		__atomic_store_n(&event->index, (*ret_entry)->index, __ATOMIC_RELAXED);
	return r;
}

void registry_record_entries(void (*record)(const struct event_entry *entry))
{
	registry_lock();
	event_table_record(record);
	registry_unlock();
}

void registry_report_conflicts(void (*report)(const char *message))
{
	registry_lock();
	registry.report_conflict = report;
	registry_unlock();
}

int registry_describe(struct spoor_event *event)
{
	struct event_entry *entry;

	registry_lock();
	int r = event_describe(event, event->provider->name, ENTRY_OWN, &entry);
	registry_unlock();
	return r;
}

/* ---- Enable callbacks ---- */

static void node_sum_up(struct node *node)
{
	uint64_t keywords = 0;
	uint32_t level = 0;

	for (uint32_t i = 0; i < SLOTS_MAX; i++) {
		if (!(node->sessions >> i & 1))
			continue;
		keywords |= node->slots[i].keywords;
		if (node->slots[i].level > level)
			level = node->slots[i].level;
	}
	__atomic_store_n(&node->any_keywords, keywords, __ATOMIC_RELAXED);
	__atomic_store_n(&node->any_level, level, __ATOMIC_RELAXED);
}

/* The union of what a slot enables of a provider; false: nothing. */
static bool slot_sum_up(const struct provider_slot *slot, const char *name, uint64_t *ret_keywords,
	uint32_t *ret_level, const char **ret_arguments)
{
	bool any = false;

	*ret_keywords = 0;
	*ret_level = 0;
	*ret_arguments = NULL;
	for (size_t i = 0; slot->used && i < slot->wants->count; i++) {
		const struct spoor_want *want = &slot->wants->wants[i];
		if (!want_names(want, name))
			continue;
		any = true;
		*ret_keywords |= want->keywords;
		if (want->level > *ret_level)
			*ret_level = want->level;
		if (!*ret_arguments)
			*ret_arguments = want->arguments;
	}
	return any;
}

static void queue_change(struct node *node, uint32_t slot, bool enabled, const char *arguments)
{
	if (!node->provider->enable)
		return;
	struct change *change = calloc(1, sizeof(*change));
	if (!change)
		/*
		 * If memory runs out, the enable callback is skipped; events are still delivered.
		 */
		return;
	change->node = node;
	change->ticket = ++registry.tickets;
	change->arguments = arguments ? strdup(arguments) : NULL;
	change->what = (struct spoor_enable){
		.size = sizeof(change->what),
		.provider = node->provider,
		.session_id = node->slots[slot].session_id,
		.enabled = enabled,
		.level = (uint8_t)node->slots[slot].level,
		.keywords = node->slots[slot].keywords,
		.arguments = change->arguments,
		.any_enabled = node->sessions != 0,
		.any_level = (uint8_t)node->any_level,
		.any_keywords = node->any_keywords,
	};
	*registry.last_change = change;
	registry.last_change = &change->next;
}

static void node_enable(struct node *node, uint32_t slot)
{
	uint64_t keywords;
	uint32_t level;
	const char *arguments;

	if (!slot_sum_up(&registry.slots[slot], node->provider->name, &keywords, &level,
		    &arguments))
		return;
	node->slots[slot].session_id = registry.slots[slot].session_id;
	node->slots[slot].keywords = keywords;
	node->slots[slot].level = level;
	__atomic_store_n(&node->sessions, node->sessions | UINT64_C(1) << slot, __ATOMIC_RELAXED);
	node_sum_up(node);
	queue_change(node, slot, true, arguments);
}

static void node_disable(struct node *node, uint32_t slot)
{
	if (!(node->sessions >> slot & 1))
		return;
	__atomic_store_n(&node->sessions, node->sessions & ~(UINT64_C(1) << slot),
		__ATOMIC_RELAXED);
	node_sum_up(node);
	queue_change(node, slot, false, NULL);
}

/*
 * Empties the queue up to now, or waits for the thread that does. The lock is held at the begin and
 * at the end. Inside a callback of this thread it returns without waiting.
 */
static void changes_deliver(void)
{
	uint64_t upto = registry.tickets;

	while (registry.done_tickets < upto || (registry.first_change && !registry.calling)) {
		if (registry.calling) {
			/*
			 * The loop thread does not wait for a callback, because the callback may
			 * wait for the loop. The calling thread delivers the changes that were
			 * queued.
			 */
			if (pthread_equal(registry.calling_thread, pthread_self()) ||
				loop_is_self())
				return;
			pthread_cond_wait(&registry.called, &registry.lock);
			continue;
		}
		struct change *change = registry.first_change;
		if (!change) {
			registry.done_tickets = upto; /* changes for which there was no memory */
			break;
		}
		registry.first_change = change->next;
		if (!registry.first_change)
			registry.last_change = &registry.first_change;
		registry.calling = true;
		registry.calling_thread = pthread_self();
		change->node->calling = true;
		/* The provider may have been unregistered meanwhile, and its memory freed. */
		if (change->node->provider == change->what.provider &&
			change->what.provider->enable) {
			spoor_enable_function *function = change->what.provider->enable;
			void *context = change->what.provider->enable_context;
			registry_unlock();
			function(&change->what, context);
			registry_lock();
		}
		change->node->calling = false;
		registry.calling = false;
		registry.done_tickets = change->ticket;
		free(change->arguments);
		free(change);
		pthread_cond_broadcast(&registry.called);
	}
}

/* ---- Providers ---- */

static struct node *node_of(const struct spoor_provider *provider)
{
	return __atomic_load_n((struct node *const *)(const void *)&provider->registered,
		__ATOMIC_ACQUIRE);
}

struct sentence {
	char *at;
	size_t left;
};

static __attribute__((format(printf, 2, 3))) void say(struct sentence *to, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	int n = vsnprintf(to->at, to->left, format, arguments);
	va_end(arguments);
	size_t written = n < 0 ? 0 : (size_t)n < to->left ? (size_t)n : to->left - 1;
	to->at += written;
	to->left -= written;
}

/* As it was declared: "event 1 'order' version 0 (u32 id, text name)". */
static void say_event(struct sentence *to, const struct spoor_event_info *info)
{
	static const char *const types[] = { "?", "boolean", "i8", "u8", "i16", "u16", "i32", "u32",
		"i64", "u64", "f32", "f64", "char16", "guid", "time", "pointer", "text", "text16",
		"object" };

	say(to, "event %u '%.60s' of '%.60s', version %u, level %u, keywords 0x%llx (", info->id,
		info->name, info->provider, info->version, info->level,
		(unsigned long long)info->keywords);
	for (uint32_t i = 0; i < info->field_count; i++) {
		uint32_t type = info->fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY;
		say(to, "%s%s%s %.40s", i ? ", " : "", types[type <= SPOOR_TYPE_STRUCT ? type : 0],
			info->fields[i].type & SPOOR_TYPE_ARRAY ? "_array" : "",
			info->fields[i].name);
	}
	say(to, ")");
}

/* Each of the two gets half of the room. */
static int conflict(const struct spoor_event_info *a, const struct spoor_event_info *b)
{
	struct sentence to = { registry.conflict, sizeof(registry.conflict) / 2 };

	say_event(&to, a);
	to.left += sizeof(registry.conflict) / 2;
	say(&to, " conflicts with ");
	say_event(&to, b);
	return -EEXIST;
}

/*
 * The registered event for which readers would take this one, by its provider, id and version;
 * NULL: none. Two well-known ones are what readers know them to be.
 */
static const struct event_entry *rival_of(const struct event_entry *entry)
{
	for (const struct node *node = registry.nodes; node; node = node->next) {
		if (!node->provider ||
			!provider_name_matches(node->provider->name, entry->info.provider))
			continue;
		for (uint32_t i = 0; i < node->event_count; i++) {
			const struct event_entry *other = registry_entry(node->events[i]->index);
			if (node->events[i]->id == entry->info.id &&
				node->events[i]->version == entry->info.version &&
				node->events[i]->index != entry->index &&
				!(other->flags & entry->flags & ENTRY_WELL_KNOWN))
				return other;
		}
	}
	return NULL;
}

static int check_id(const struct event_entry *entry)
{
	const struct event_entry *rival = rival_of(entry);

	return rival ? conflict(&rival->info, &entry->info) : 0;
}

/* A source file defines the event in this way. */
static int check_definition(const struct node *node, const struct spoor_event *event,
	const struct spoor_event *definition)
{
	const struct spoor_event_info info = info_of(definition, node->provider->name);
	const struct event_entry *entry = registry_entry(event->index);
	uint32_t total = 0;
	int r = info.name ? event_fields_check(info.fields, info.field_count, 0, &total) : -EINVAL;

	return r || !entry || event_info_same(&entry->info, &info) ? r
								   : conflict(&entry->info, &info);
}

/*
 * The id of an event that is made at run time: that of an equal event of a provider of this name,
 * or one that no event of such a provider ever had. -ENOSPC: there is none.
 */
static int free_id(const struct spoor_event *event, const char *provider, uint16_t *ret_id)
{
	const struct spoor_event_info info = info_of(event, provider);
	uint8_t taken[ID_COUNT / 8] = { 1 };

	for (uint32_t i = 1; i < registry_entry_end(); i++) {
		const struct event_entry *entry = registry_entry(i);
		if (!provider_name_matches(entry->info.provider, provider))
			continue;
		if (event_info_same_content(&entry->info, &info) && !rival_of(entry)) {
			*ret_id = entry->info.id;
			return 0;
		}
		taken[entry->info.id / 8] |= (uint8_t)(1u << entry->info.id % 8);
	}
	for (uint32_t i = 0; i < ID_COUNT; i++) {
		uint32_t id = (ID_FIRST + i) % ID_COUNT;
		if (taken[id / 8] >> id % 8 & 1)
			continue;
		*ret_id = (uint16_t)id;
		return 0;
	}
	return -ENOSPC;
}

static int node_add_event(struct node *node, struct spoor_event *event)
{
	struct event_entry *entry;

	for (uint32_t i = 0; i < node->event_count; i++)
		if (node->events[i] == event)
			return 0;
	/* The program's header writes rings in another way than this library reads them. */
	if (event->protocol && event->protocol != SPOOR_RING_PROTOCOL)
		return -EPROTONOSUPPORT;
	if (node->event_count == node->event_room) {
		uint32_t room = node->event_room ? node->event_room * 2 : 16;
		struct spoor_event **events =
			realloc(node->events, room * sizeof(struct spoor_event *));
		if (!events)
			return -ENOMEM;
		node->events = events;
		node->event_room = room;
	}
	int r = event_describe(event, node->provider->name, node->unlogged ? ENTRY_UNLOGGED : 0,
		&entry);
	if (r == 0)
		r = check_id(entry);
	if (r)
		return r;
	node->events[node->event_count++] = event;
	__atomic_store_n(&event->sessions, mask_of(entry), __ATOMIC_RELEASE);
	return 0;
}

static void node_drop(struct node *node)
{
	for (uint32_t i = 0; i < node->event_count; i++)
		__atomic_store_n(&node->events[i]->sessions, 0, __ATOMIC_RELAXED);
	free(node->events);
	node->events = NULL;
	node->event_count = node->event_room = 0;
	__atomic_store_n(&node->sessions, 0, __ATOMIC_RELAXED);
	node->provider->registered = NULL;
	node->provider = NULL;
}

static int provider_register(struct spoor_provider *provider, enum provider_flag flags)
{
	int r = 0;
	struct node *node;
	const struct spoor_event *before = NULL;
	char message[CONFLICT_MAX];

	if (!provider || provider->size < sizeof(*provider) || !provider->name ||
		!provider->name[0] || strchr(provider->name, '*'))
		return -EINVAL;
	registry_lock();
	if (provider->registered) {
		registry_unlock();
		return 0;
	}
	for (node = registry.nodes; node && (node->provider || node->calling); node = node->next)
		;
	if (!node) {
		node = calloc(1, sizeof(*node));
		if (!node) {
			registry_unlock();
			return -ENOMEM;
		}
		node->next = registry.nodes;
		registry.nodes = node;
	}
	node->provider = provider;
	node->unlogged = (flags & PROVIDER_UNLOGGED) != 0;
	/*
	 * The callback is queued after this, but a caller sees both the provider and its events
	 * when the function returns.
	 */
	__atomic_store_n((struct node **)(void *)&provider->registered, node, __ATOMIC_RELEASE);
	for (struct spoor_event *const *event = provider->events;
		event && event != provider->events_end && r == 0; event++) {
		if (!*event || (*event)->provider != provider)
			continue;
		if (!((*event)->flags & SPOOR_EVENT_DEFINITION))
			r = node_add_event(node, *event);
		else if (before)
			r = check_definition(node, before, *event);
		before = (*event)->flags & SPOOR_EVENT_DEFINITION ? NULL : *event;
	}
	if (r == 0 && !node->event_count && !(flags & PROVIDER_MAY_BE_EMPTY))
		r = -ENODATA;
	if (r) {
		node_drop(node);
		memcpy(message, registry.conflict, sizeof(message));
		void (*report)(const char *message) = registry.report_conflict;
		registry_unlock();
		if (r == -EEXIST && report)
			report(message);
		return r;
	}
	for (uint32_t i = 0; i < SESSIONS_MAX; i++)
		if (registry.slots[i].used)
			node_enable(node, i);
	changes_deliver();
	registry_unlock();
	registry_announce();
	return 0;
}

int spoor_provider_register(struct spoor_provider *provider)
{
	return provider_register(provider, 0);
}

int registry_add_provider(struct spoor_provider *provider)
{
	return provider_register(provider, PROVIDER_MAY_BE_EMPTY);
}

int registry_add_unlogged(struct spoor_provider *provider)
{
	return provider_register(provider, PROVIDER_UNLOGGED);
}

void spoor_provider_conflict(char *ret_text, size_t size)
{
	if (!ret_text || !size)
		return;
	registry_lock();
	size_t length = strlen(registry.conflict);
	if (length >= size)
		length = size - 1;
	memcpy(ret_text, registry.conflict, length);
	ret_text[length] = '\0';
	registry_unlock();
}

void spoor_provider_unregister(struct spoor_provider *provider)
{
	if (!provider)
		return;
	registry_lock();
	struct node *node = provider->registered;
	if (node) {
		node_drop(node);
		while (node->calling && !pthread_equal(registry.calling_thread, pthread_self()))
			pthread_cond_wait(&registry.called, &registry.lock);
	}
	registry_unlock();
}

int registry_add_event(struct spoor_provider *provider, struct spoor_event *event)
{
	int r = -ENOENT;

	registry_lock();
	struct node *node = provider->registered;
	if (node) {
		r = 0;
		if (!event->id)
			r = free_id(event, provider->name, &event->id);
		if (r == 0)
			r = node_add_event(node, event);
	}
	registry_unlock();
	return r;
}

bool registry_provider_wanted(const struct spoor_provider *provider, uint32_t level,
	uint64_t keywords)
{
	const struct node *node = node_of(provider);

	if (!node || !__atomic_load_n(&node->sessions, __ATOMIC_RELAXED))
		return false;
	if (keywords && !(keywords & __atomic_load_n(&node->any_keywords, __ATOMIC_RELAXED)))
		return false;
	return level == SPOOR_ALWAYS ||
	       level <= __atomic_load_n(&node->any_level, __ATOMIC_RELAXED);
}

/* ---- Sessions ---- */

int registry_session_set(uint32_t slot, uint64_t session_id, const struct session_wants *wants)
{
	registry_lock();
	registry.slots[slot] =
		(struct provider_slot){ .used = true, .session_id = session_id, .wants = wants };
	for (struct node *node = registry.nodes; node; node = node->next) {
		if (!node->provider)
			continue;
		node_enable(node, slot);
		for (uint32_t i = 0; i < node->event_count; i++) {
			const struct event_entry *entry = registry_entry(node->events[i]->index);
			if (slot_wants(&registry.slots[slot], &entry->info))
				__atomic_fetch_or(&node->events[i]->sessions, UINT64_C(1) << slot,
					__ATOMIC_RELEASE);
		}
	}
	changes_deliver();
	registry_unlock();
	return 0;
}

void registry_session_clear(uint32_t slot)
{
	registry_lock();
	registry.slots[slot] = (struct provider_slot){ .used = false };
	for (struct node *node = registry.nodes; node; node = node->next) {
		if (!node->provider)
			continue;
		for (uint32_t i = 0; i < node->event_count; i++)
			__atomic_fetch_and(&node->events[i]->sessions, ~(UINT64_C(1) << slot),
				__ATOMIC_RELAXED);
		node_disable(node, slot);
	}
	changes_deliver();
	registry_unlock();
}

/* ---- Loggers ---- */

void registry_announce_to(void (*added)(void), bool (*refused)(uint32_t index))
{
	__atomic_store_n(&registry.refused, refused, __ATOMIC_RELEASE);
	__atomic_store_n(&registry.added, added, __ATOMIC_RELEASE);
}

void registry_announce(void)
{
	void (*added)(void) = __atomic_load_n(&registry.added, __ATOMIC_ACQUIRE);

	if (added)
		added();
}

bool registry_is_announcing(void)
{
	return __atomic_load_n(&registry.added, __ATOMIC_RELAXED) != NULL;
}

bool registry_is_refused(const struct spoor_event *event)
{
	bool (*refused)(uint32_t index) = __atomic_load_n(&registry.refused, __ATOMIC_ACQUIRE);

	return refused && refused(__atomic_load_n(&event->index, __ATOMIC_RELAXED));
}

void registry_logger_set(uint32_t slot, uint64_t logger_id,
	bool (*is_on)(uint32_t slot, const struct event_entry *entry))
{
	const uint64_t bit = UINT64_C(1) << slot;

	registry_lock();
	for (struct node *node = registry.nodes; node; node = node->next) {
		bool any = false;
		uint64_t keywords = 0;
		uint32_t level = 0;
		if (!node->provider || node->unlogged)
			continue;
		for (uint32_t i = 0; i < node->event_count; i++) {
			const struct event_entry *entry = registry_entry(node->events[i]->index);
			if (!is_on(slot, entry)) {
				__atomic_fetch_and(&node->events[i]->sessions, ~bit,
					__ATOMIC_RELAXED);
				continue;
			}
			any = true;
			keywords |= entry->info.keywords;
			level = entry->info.level > level ? entry->info.level : level;
			__atomic_fetch_or(&node->events[i]->sessions, bit, __ATOMIC_RELEASE);
		}
		bool was_on = (node->sessions & bit) != 0;
		if (!any) {
			node_disable(node, slot);
		} else if (!was_on || node->slots[slot].keywords != keywords ||
			   node->slots[slot].level != level) {
			node->slots[slot].session_id = logger_id;
			node->slots[slot].keywords = keywords;
			node->slots[slot].level = level;
			__atomic_store_n(&node->sessions, node->sessions | bit, __ATOMIC_RELAXED);
			node_sum_up(node);
			queue_change(node, slot, true, NULL);
		}
	}
	changes_deliver();
	registry_unlock();
}

void registry_forget_sessions(void)
{
	memset(registry.slots, 0, sizeof(registry.slots));
	for (struct node *node = registry.nodes; node; node = node->next) {
		node->sessions = 0;
		node->calling = false;
		node_sum_up(node);
		for (uint32_t i = 0; i < node->event_count; i++)
			__atomic_store_n(&node->events[i]->sessions, 0, __ATOMIC_RELAXED);
	}
	while (registry.first_change) {
		struct change *change = registry.first_change;
		registry.first_change = change->next;
		free(change->arguments);
		free(change);
	}
	registry.last_change = &registry.first_change;
	registry.done_tickets = registry.tickets;
	registry.calling = false;
}
