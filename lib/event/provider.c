/*
 * See provider.h. Two tables that only grow: entries (kinds of event, found by their description)
 * and nodes (registered providers). A third table has the 64 slots of sessions with the providers
 * that each enables. An event's mask is a pure function of its entry and the slots: mask_of().
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

#include "lib/event/event_metadata.h"
#include "lib/platform/loop.h"

#define CHUNK        1024u
#define NAME_MAX_LEN 1024u
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

struct slot {
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
	struct slot slots[SESSIONS_MAX];
	struct event_entry **chunks[REGISTRY_EVENTS_MAX / CHUNK];
	uint32_t entry_count; /* the next index, index 0 is not used; atomic */
	uint32_t *table;      /* open addressing, entry indexes */
	uint32_t table_room;
	void (*record)(const struct event_entry *entry); /* called for each new entry; NULL: none */
	void (*added)(void);                             /* see registry_announce_to(); atomic */
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
	.entry_count = 1,
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

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool provider_name_matches(const char *wanted, const char *name)
{
	size_t i = 0;

	while (wanted[i] && lower(wanted[i]) == lower(name[i]))
		i++;
	return lower(wanted[i]) == lower(name[i]);
}

bool want_is_everything(const struct spoor_want *want)
{
	return want->name[0] == '*' && !want->name[1] && want->keywords == UINT64_MAX &&
	       want->level >= SPOOR_VERBOSE;
}

bool want_admits(const struct spoor_want *want, uint32_t level, uint64_t keywords, uint32_t id)
{
	if (keywords && !(keywords & want->keywords))
		return false;
	if (level != SPOOR_ALWAYS && level > want->level)
		return false;
	for (size_t i = 0; i < want->id_count; i++)
		if (want->ids[i] == id)
			return want->ids_allowed;
	return !want->ids_allowed;
}

static bool want_names(const struct spoor_want *want, const char *name)
{
	return want_is_everything(want) || provider_name_matches(want->name, name);
}

static bool slot_wants(const struct slot *slot, const struct spoor_event_info *info)
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

const struct event_entry *registry_entry(uint32_t index)
{
	struct event_entry **chunk;

	if (!index || index >= REGISTRY_EVENTS_MAX)
		return NULL;
	chunk = __atomic_load_n(&registry.chunks[index / CHUNK], __ATOMIC_ACQUIRE);
	return chunk ? __atomic_load_n(&chunk[index % CHUNK], __ATOMIC_ACQUIRE) : NULL;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	return hash_bytes(hash, text, strlen(text) + 1);
}

static uint64_t hash_fields(uint64_t hash, const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		hash = hash_text(hash, fields[i].name);
		hash = hash_bytes(hash, &fields[i].type, sizeof(fields[i].type));
		hash = hash_bytes(hash, &fields[i].field_count, sizeof(fields[i].field_count));
		hash = hash_fields(hash, fields[i].fields, fields[i].field_count);
	}
	return hash;
}

static uint64_t hash_info(const struct spoor_event_info *info, uint32_t flags)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	uint32_t numbers[5] = { info->id, info->version, info->level, info->opcode, flags };

	hash = hash_text(hash, info->provider);
	hash = hash_text(hash, info->name);
	hash = hash_bytes(hash, numbers, sizeof(numbers));
	hash = hash_bytes(hash, &info->keywords, sizeof(info->keywords));
	return hash_fields(hash, info->fields, info->field_count);
}

static bool same_fields(const struct spoor_field *a, const struct spoor_field *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(a[i].name, b[i].name) != 0 || a[i].type != b[i].type ||
			a[i].field_count != b[i].field_count ||
			!same_fields(a[i].fields, b[i].fields, a[i].field_count))
			return false;
	return true;
}

/* Apart from the id. */
static bool same_content(const struct spoor_event_info *a, const struct spoor_event_info *b)
{
	return a->version == b->version && a->level == b->level && a->opcode == b->opcode &&
	       a->keywords == b->keywords && a->field_count == b->field_count &&
	       strcmp(a->provider, b->provider) == 0 && strcmp(a->name, b->name) == 0 &&
	       same_fields(a->fields, b->fields, a->field_count);
}

static bool same_info(const struct spoor_event_info *a, const struct spoor_event_info *b)
{
	return a->id == b->id && same_content(a, b);
}

/* Checks that every sink can write these fields, and counts them. */
static int check_fields(const struct spoor_field *fields, uint32_t count, uint32_t depth,
	uint32_t *total)
{
	if (depth > REGISTRY_FIELD_DEPTH || count > REGISTRY_FIELDS_MAX || (count && !fields))
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY;
		if (++*total > REGISTRY_FIELDS_MAX || !fields[i].name ||
			strlen(fields[i].name) > NAME_MAX_LEN)
			return -EINVAL;
		if (type < SPOOR_TYPE_BOOLEAN || type > SPOOR_TYPE_STRUCT ||
			(type != SPOOR_TYPE_STRUCT && fields[i].field_count))
			return -EINVAL;
		int r = type == SPOOR_TYPE_STRUCT ? check_fields(fields[i].fields,
							    fields[i].field_count, depth + 1, total)
						  : 0;
		if (r)
			return r;
	}
	return 0;
}

static void free_fields(const struct spoor_field *fields, uint32_t count)
{
	if (!fields)
		return;
	for (uint32_t i = 0; i < count; i++) {
		free((void *)(uintptr_t)fields[i].name);
		free_fields(fields[i].fields, fields[i].field_count);
	}
	free((void *)(uintptr_t)fields);
}

static int copy_fields(const struct spoor_field *fields, uint32_t count,
	const struct spoor_field **ret_fields)
{
	struct spoor_field *copy = calloc(count ? count : 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		copy[i].type = fields[i].type;
		copy[i].name = strdup(fields[i].name);
		if (!copy[i].name ||
			copy_fields(fields[i].fields, fields[i].field_count, &copy[i].fields)) {
			free_fields(copy, count);
			return -ENOMEM;
		}
		copy[i].field_count = fields[i].field_count;
	}
	*ret_fields = copy;
	return 0;
}

static uint32_t type_size(uint32_t type)
{
	switch (type) {
	case SPOOR_TYPE_I8:
	case SPOOR_TYPE_U8:
		return 1;
	case SPOOR_TYPE_I16:
	case SPOOR_TYPE_U16:
	case SPOOR_TYPE_CHAR16:
		return 2;
	case SPOOR_TYPE_BOOLEAN:
	case SPOOR_TYPE_I32:
	case SPOOR_TYPE_U32:
	case SPOOR_TYPE_F32:
		return 4;
	case SPOOR_TYPE_GUID:
		return 16;
	case SPOOR_TYPE_TEXT:
	case SPOOR_TYPE_TEXT16:
	case SPOOR_TYPE_STRUCT:
		return 0;
	default:
		return 8;
	}
}

/*
 * Appends the steps of these fields. Consecutive fields of fixed size become one step, but not
 * across the border of an array of structs.
 */
static uint32_t plan_fields(const struct spoor_field *fields, uint32_t count,
	struct plan_step *plan, uint32_t at, uint32_t from)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t type = fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY;
		uint32_t size = type_size(type);
		if (fields[i].type & SPOOR_TYPE_ARRAY) {
			if (type == SPOOR_TYPE_STRUCT) {
				uint32_t own = at++;
				at = plan_fields(fields[i].fields, fields[i].field_count, plan, at,
					at);
				plan[own] = (struct plan_step){ PLAN_STRUCTS, at - own - 1 };
				from = at;
			} else {
				plan[at++] =
					(struct plan_step){ type == SPOOR_TYPE_TEXT ? PLAN_TEXTS
							    : type == SPOOR_TYPE_TEXT16
								    ? PLAN_TEXT16S
								    : PLAN_ARRAY,
						size };
			}
		} else if (type == SPOOR_TYPE_STRUCT) {
			at = plan_fields(fields[i].fields, fields[i].field_count, plan, at, from);
		} else if (type == SPOOR_TYPE_TEXT || type == SPOOR_TYPE_TEXT16) {
			plan[at++] = (struct plan_step){
				type == SPOOR_TYPE_TEXT ? PLAN_TEXT : PLAN_TEXT16, 0
			};
		} else if (at > from && plan[at - 1].op == PLAN_FIXED) {
			plan[at - 1].size += size;
		} else {
			plan[at++] = (struct plan_step){ PLAN_FIXED, size };
		}
	}
	return at;
}

static bool has_text(const struct spoor_field *fields, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if ((fields[i].type & ~(uint32_t)SPOOR_TYPE_ARRAY) == SPOOR_TYPE_TEXT ||
			has_text(fields[i].fields, fields[i].field_count))
			return true;
	return false;
}

static void entry_free(struct event_entry *entry)
{
	if (!entry)
		return;
	free((void *)(uintptr_t)entry->info.provider);
	free((void *)(uintptr_t)entry->info.name);
	free_fields(entry->info.fields, entry->info.field_count);
	free((void *)(uintptr_t)entry->plan);
	free((void *)(uintptr_t)entry->metadata);
	free(entry);
}

static int entry_new(const struct spoor_event_info *info, uint32_t flags, uint32_t fields_total,
	uint64_t hash, struct event_entry **ret_entry)
{
	struct event_entry *entry = calloc(1, sizeof(*entry));
	struct plan_step *plan = NULL;
	uint8_t *metadata = NULL;

	if (!entry)
		return -ENOMEM;
	entry->info = *info;
	entry->info.fields = NULL;
	entry->info.field_count = 0;
	entry->info.provider = strdup(info->provider);
	entry->info.name = strdup(info->name);
	entry->hash = hash;
	entry->flags = flags;
	plan = calloc(fields_total + 1, sizeof(*plan));
	entry->plan = plan;
	if (!entry->info.provider || !entry->info.name || !plan ||
		copy_fields(info->fields, info->field_count, &entry->info.fields))
		goto failed;
	entry->info.field_count = info->field_count;
	entry->plan_count = plan_fields(entry->info.fields, entry->info.field_count, plan, 0, 0);
	if (!has_text(entry->info.fields, entry->info.field_count))
		entry->flags |= ENTRY_VERBATIM;
	if (entry->plan_count == 1 && plan[0].op == PLAN_FIXED)
		entry->fixed_size = plan[0].size;
	if (event_metadata_make(&entry->info, (entry->flags & ENTRY_WELL_KNOWN) != 0, &metadata,
		    &entry->metadata_size))
		goto failed;
	entry->metadata = metadata;
	*ret_entry = entry;
	return 0;
failed:
	entry_free(entry);
	return -ENOMEM;
}

static int table_grow(void)
{
	uint32_t room = registry.table_room ? registry.table_room * 2 : 256;
	uint32_t *table = calloc(room, sizeof(*table));

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 1; i < registry.entry_count; i++) {
		uint32_t at = (uint32_t)registry_entry(i)->hash & (room - 1);
		while (table[at])
			at = (at + 1) & (room - 1);
		table[at] = i;
	}
	free(registry.table);
	registry.table = table;
	registry.table_room = room;
	return 0;
}

/* Finds or makes the entry with this description. The lock is held. */
static int entry_find(const struct spoor_event_info *info, uint32_t flags,
	struct event_entry **ret_entry)
{
	uint32_t total = 0;
	struct event_entry *entry;

	if (!info->provider || !info->name || !info->provider[0] ||
		strlen(info->provider) > NAME_MAX_LEN || strlen(info->name) > NAME_MAX_LEN)
		return -EINVAL;
	int r = check_fields(info->fields, info->field_count, 0, &total);
	if (r)
		return r;
	if (registry.entry_count * 2 >= registry.table_room && (r = table_grow()))
		return r;

	/* The same event of the program and of the library is one entry. */
	uint64_t hash = hash_info(info, flags & ~(uint32_t)ENTRY_UNLOGGED);
	uint32_t at = (uint32_t)hash & (registry.table_room - 1);
	for (; registry.table[at]; at = (at + 1) & (registry.table_room - 1)) {
		const struct event_entry *known = registry_entry(registry.table[at]);
		if (known->hash == hash && same_info(&known->info, info)) {
			*ret_entry = (struct event_entry *)(uintptr_t)known;
			return 0;
		}
	}
	if (registry.entry_count == REGISTRY_EVENTS_MAX)
		return -ENOSPC;
	uint32_t index = registry.entry_count;
	if (!registry.chunks[index / CHUNK]) {
		struct event_entry **chunk = calloc(CHUNK, sizeof(struct event_entry *));
		if (!chunk)
			return -ENOMEM;
		__atomic_store_n(&registry.chunks[index / CHUNK], chunk, __ATOMIC_RELEASE);
	}
	r = entry_new(info, flags, total, hash, &entry);
	if (r)
		return r;
	entry->index = index;
	__atomic_store_n(&registry.chunks[index / CHUNK][index % CHUNK], entry, __ATOMIC_RELEASE);
	registry.table[at] = index;
	__atomic_store_n(&registry.entry_count, index + 1, __ATOMIC_RELEASE);
	if (registry.record)
		registry.record(entry);
	*ret_entry = entry;
	return 0;
}

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
	int r = entry_find(&info, flags, ret_entry);
	if (r == 0)
		__atomic_store_n(&event->index, (*ret_entry)->index, __ATOMIC_RELAXED);
	return r;
}

void registry_record_entries(void (*record)(const struct event_entry *entry))
{
	registry_lock();
	registry.record = record;
	for (uint32_t i = 1; i < registry.entry_count; i++)
		record(registry_entry(i));
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
static bool slot_sum_up(const struct slot *slot, const char *name, uint64_t *ret_keywords,
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
	int r = info.name ? check_fields(info.fields, info.field_count, 0, &total) : -EINVAL;

	return r || !entry || same_info(&entry->info, &info) ? r : conflict(&entry->info, &info);
}

/*
 * The id of an event that is made at run time: that of an equal event of a provider of this name,
 * or one that no event of such a provider ever had. -ENOSPC: there is none.
 */
static int free_id(const struct spoor_event *event, const char *provider, uint16_t *ret_id)
{
	const struct spoor_event_info info = info_of(event, provider);
	uint8_t taken[ID_COUNT / 8] = { 1 };

	for (uint32_t i = 1; i < registry.entry_count; i++) {
		const struct event_entry *entry = registry_entry(i);
		if (!provider_name_matches(entry->info.provider, provider))
			continue;
		if (same_content(&entry->info, &info) && !rival_of(entry)) {
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
	if (!size)
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

int session_wants_copy(struct session_wants *ret_wants, const struct spoor_want *wants,
	size_t count)
{
	struct session_wants copy = { calloc(count ? count : 1, sizeof(struct spoor_want)), 0 };
	const char *at = (const char *)wants;

	if (!copy.wants)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct spoor_want *from = (const struct spoor_want *)(const void *)at;
		struct spoor_want want = { 0 };
		if (from->size < offsetof(struct spoor_want, arguments) || from->size > 4096) {
			session_wants_done(&copy);
			return -EINVAL;
		}
		memcpy(&want, from, from->size < sizeof(want) ? from->size : sizeof(want));
		at += from->size;
		/* Except for "everything" there are no patterns: such a want would never match. */
		if (!want.name || !want.name[0] || want.level > SPOOR_VERBOSE ||
			(want.id_count && !want.ids) ||
			(strchr(want.name, '*') && !want_is_everything(&want))) {
			session_wants_done(&copy);
			return -EINVAL;
		}
		uint32_t *ids = malloc((want.id_count ? want.id_count : 1) * sizeof(*ids));
		if (ids && want.id_count)
			memcpy(ids, want.ids, want.id_count * sizeof(*ids));
		struct spoor_want *to = &copy.wants[copy.count++];
		*to = want;
		to->size = sizeof(*to);
		to->ids = ids;
		to->name = strdup(want.name);
		to->arguments = want.arguments ? strdup(want.arguments) : NULL;
		if (!ids || !to->name || (want.arguments && !to->arguments)) {
			session_wants_done(&copy);
			return -ENOMEM;
		}
	}
	*ret_wants = copy;
	return 0;
}

void session_wants_done(struct session_wants *wants)
{
	for (size_t i = 0; i < wants->count; i++) {
		free((void *)(uintptr_t)wants->wants[i].name);
		free((void *)(uintptr_t)wants->wants[i].arguments);
		free((void *)(uintptr_t)wants->wants[i].ids);
	}
	free(wants->wants);
	*wants = (struct session_wants){ NULL, 0 };
}

int registry_session_set(uint32_t slot, uint64_t session_id, const struct session_wants *wants)
{
	registry_lock();
	registry.slots[slot] =
		(struct slot){ .used = true, .session_id = session_id, .wants = wants };
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
	registry.slots[slot] = (struct slot){ .used = false };
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

void registry_announce_to(void (*added)(void))
{
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

uint32_t registry_entry_end(void)
{
	return __atomic_load_n(&registry.entry_count, __ATOMIC_ACQUIRE);
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
