/*
 * The registry: which providers and events there are, who wants them.
 *
 * An event gets an entry when its provider is registered: a copy of all that is said of it, at a stable index, which stays when the provider goes
 * (rings and files may still hold such events). The same event registered again (dlopen after dlclose) gets the same entry. Entries are read without
 * a lock; everything else of the registry is under registry_lock().
 *
 * `sessions` of an event is computed here from what the sessions want: at registration, and whenever a session comes or goes.
 */
#ifndef SPOOR_LIB_EVENT_PROVIDER_H
#define SPOOR_LIB_EVENT_PROVIDER_H

#include <spoor/spoor.h>

/* Sessions at a time: one bit each in an event's mask. */
#define SESSIONS_MAX 64u

#define REGISTRY_EVENTS_MAX   (1u << 20)
#define REGISTRY_FIELD_DEPTH  8
#define REGISTRY_FIELDS_MAX   1024 /* of one event, with all that is nested */

enum entry_flag {
	ENTRY_WELL_KNOWN = 1 << 0,
	ENTRY_VERBATIM = 1 << 1, /* the payload is the same bytes in nettrace: nothing in it is TEXT */
	ENTRY_OWN = 1 << 2,      /* of the library itself: only written by session_emit() */
};

/* One step of reading a payload from front to end: runs of fixed size are one step. */
enum plan_op {
	PLAN_FIXED,  /* `size` bytes */
	PLAN_TEXT,
	PLAN_TEXT16,
	PLAN_ARRAY,  /* of elements of `size` bytes */
	PLAN_TEXTS,
	PLAN_TEXT16S,
	PLAN_STRUCTS, /* array: the next `size` steps, once an element */
};

struct plan_step {
	uint32_t op;
	uint32_t size;
};

struct event_entry {
	struct spoor_event_info info; /* deep copy */
	uint32_t index;
	uint32_t flags;
	uint64_t hash;
	uint32_t fixed_size;          /* of the payload, when all fields have a fixed size, else 0 */
	uint32_t plan_count;
	const struct plan_step *plan;
	uint32_t metadata_size;
	const uint8_t *metadata;      /* nettrace 4: the record that follows the metadata id */
};

/* The entry of an index that was handed out; no lock. NULL otherwise. */
const struct event_entry *registry_entry(uint32_t index);

/*
 * An entry for an event that is only written by session_emit(): not registered with a provider, wanted by nobody. Made once, kept for ever. `event` needs
 * provider->name, name, id and so on, as for registration; its index is set. -ENOMEM, -EINVAL, -ENOSPC.
 */
int registry_describe(struct spoor_event *event);

/*
 * Calls `record` for each entry, and from here on for each new one, with the lock held: the file of the rings keeps what is needed to read its events
 * (recover_file.h).
 */
void registry_record_entries(void (*record)(const struct event_entry *entry));

/* Registers one more event of a registered provider (run-time events). */
int registry_add_event(struct spoor_provider *provider, struct spoor_event *event);

/* What the sessions want of it, for a quick no. Any thread. */
bool registry_provider_wanted(const struct spoor_provider *provider, uint32_t level, uint64_t keywords);

/* Names as tools compare them: exact, else ASCII letters alike. */
bool provider_name_matches(const char *wanted, const char *name);

/* Does `want` let through an event of this level, keywords and id? (The name is not looked at.) The one place where the rule stands. */
bool want_admits(const struct spoor_want *want, uint32_t level, uint64_t keywords, uint32_t id);
bool want_is_everything(const struct spoor_want *want); /* "*", level 5, all keywords */

/* ---- For pipe_session.c ---- */

struct session_wants {
	struct spoor_want *wants; /* deep copies */
	size_t count;
};

int session_wants_copy(struct session_wants *ret_wants, const struct spoor_want *wants, size_t count);
void session_wants_done(struct session_wants *wants);

/* A session of this slot wants this: masks are set and providers told. Clear takes it back. */
int registry_session_set(uint32_t slot, uint64_t session_id, const struct session_wants *wants);
void registry_session_clear(uint32_t slot);

/* event_source.c's, for fork(): taken before the registry's. */
void event_sources_lock(void);
void event_sources_unlock(void);
void event_sources_lock_reset(void);

void registry_forget_sessions(void); /* child of a fork() */
void registry_lock(void);
void registry_unlock(void);
void registry_lock_reset(void); /* child of a fork() */

#endif
