/*
 * user_events: the kernel's tracepoints of programs (Linux 6.4 or later), with events in EventHeader
 * format, which perf and other tools decode. See <spoor/user_events.h>.
 *
 * All events of one provider, level and keywords share a tracepoint, so a tool enables them
 * together. Tracepoints and parts exist until the process ends, and so does the descriptor, because
 * a thread may be inside writev(). A closed logger has no tracepoint registered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <spoor/user_events.h>

#include "lib/event/firing.h"
#include "lib/logger/counted_payload.h"
#include "lib/logger/event_header.h"
#include "lib/logger/logger.h"

/* Converted payloads are on the stack of the firing thread. */
#define CONVERTED_USUAL 1024u
/* A tool cannot record more of one event: a perf record has at most so many bytes. */
#define CONVERTED_MAX 8192u

struct user_tracepoint {
	uint32_t word;  /* the kernel sets a bit */
	uint32_t index; /* of the kernel, for writing */
	bool registered;
	char name[SPOOR_USER_EVENTS_NAME_MAX];
	struct user_tracepoint *next;
};

struct user_part {
	struct user_tracepoint *tracepoint;
	enum counted_payload payload;
	uint8_t header[SPOOR_EVENT_HEADER_SIZE];
	struct outbuf description;
	struct user_part *next; /* for leak checkers */
};

static struct {
	bool is_open;
	int fd; /* only if `is_open`, or a part is firing */
	struct user_tracepoint *first;
	struct user_part *first_part;
} user_events;

static void register_one(struct user_tracepoint *each)
{
	if (!each->registered)
		each->registered = spoor_user_events_register(user_events.fd, each->name,
					   &each->word, &each->index) == 0;
}

static int user_events_open(void)
{
	int fd = user_events.is_open ? user_events.fd : spoor_user_events_open();

	if (fd < 0)
		return fd;
	__atomic_store_n(&user_events.fd, fd, __ATOMIC_RELAXED);
	user_events.is_open = true;
	for (struct user_tracepoint *each = user_events.first; each; each = each->next)
		register_one(each);
	return 0;
}

static void user_events_close(void)
{
	for (struct user_tracepoint *each = user_events.first; each; each = each->next) {
		if (each->registered)
			spoor_user_events_unregister(user_events.fd, &each->word);
		each->registered = false;
	}
}

/* The kernel has copied the registrations. The file is the parent's, and would keep its events. */
static void user_events_fork_child(void)
{
	user_events_close();
	if (user_events.is_open)
		(void)close(user_events.fd);
	user_events.is_open = false;
}

static struct user_tracepoint *tracepoint_of(const struct event_entry *entry,
	const struct logger_names *names)
{
	char name[SPOOR_USER_EVENTS_NAME_MAX];
	int length = snprintf(name, sizeof(name), "%s_L%xK%llx", names->provider,
		spoor_user_events_level(entry->info.level),
		(unsigned long long)entry->info.keywords);

	if (length < 0 || (size_t)length >= sizeof(name))
		return NULL;
	for (struct user_tracepoint *each = user_events.first; each; each = each->next)
		if (strcmp(each->name, name) == 0)
			return each;
	struct user_tracepoint *made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	memcpy(made->name, name, (size_t)length + 1);
	register_one(made);
	made->next = user_events.first;
	user_events.first = made;
	return made;
}

static void *user_events_add(const struct event_entry *entry, const struct logger_names *names)
{
	struct user_part *made = calloc(1, sizeof(*made));

	if (!made)
		return NULL;
	made->payload = counted_payload_of(entry, COUNTED_GUIDS_SWAPPED);
	made->header[0] = SPOOR_EVENT_HEADER_FLAGS;
	made->header[1] = entry->info.version;
	memcpy(&made->header[2], &(uint16_t){ (uint16_t)entry->info.id }, sizeof(uint16_t));
	made->header[6] = entry->info.opcode;
	made->header[7] = (uint8_t)spoor_user_events_level(entry->info.level);
	if (event_header_describe(entry, &made->description) == 0)
		made->tracepoint = tracepoint_of(entry, names);
	if (!made->tracepoint) {
		outbuf_done(&made->description);
		free(made);
		return NULL;
	}
	made->next = user_events.first_part;
	user_events.first_part = made;
	return made;
}

static bool user_events_is_on(const void *part)
{
	const struct user_part *own = part;

	return spoor_user_events_enabled(&own->tracepoint->word);
}

static bool is_zero(const uint8_t id[16])
{
	static const uint8_t zeros[16];

	return memcmp(id, zeros, sizeof(zeros)) == 0;
}

static void write_event(const struct user_part *own, const uint8_t *payload, size_t size)
{
	const struct pipe_activity *activity = pipe_activity();
	struct spoor_guid ids[2];
	const bool has_activity = activity->set;
	bool has_related = false;

	if (has_activity) {
		memcpy(ids[0].bytes, activity->current, sizeof(ids[0].bytes));
		memcpy(ids[1].bytes, activity->related, sizeof(ids[1].bytes));
		has_related = !is_zero(activity->related);
	}
	/* A tool that has just ended is no error. */
	(void)spoor_user_events_write(__atomic_load_n(&user_events.fd, __ATOMIC_RELAXED),
		own->tracepoint->index, own->header, own->description.data, own->description.size,
		has_activity ? &ids[0] : NULL, has_related ? &ids[1] : NULL, payload, size);
}

static __attribute__((noinline)) int write_usual(const struct user_part *own,
	const struct event_entry *entry, const uint8_t *payload, size_t size)
{
	uint8_t converted[CONVERTED_USUAL];
	int r = counted_payload_convert(entry, COUNTED_GUIDS_SWAPPED, payload, size, converted,
		sizeof(converted));

	if (r >= 0)
		write_event(own, converted, (size_t)r);
	return r;
}

static __attribute__((noinline)) void write_large(const struct user_part *own,
	const struct event_entry *entry, const uint8_t *payload, size_t size)
{
	uint8_t converted[CONVERTED_MAX];
	int r = counted_payload_convert(entry, COUNTED_GUIDS_SWAPPED, payload, size, converted,
		sizeof(converted));

	if (r >= 0)
		write_event(own, converted, (size_t)r);
}

static void user_events_fire(void *part, const struct event_entry *entry, const uint8_t *payload,
	size_t payload_size)
{
	const struct user_part *own = part;

	if (!user_events_is_on(own))
		return;
	if (own->payload == COUNTED_PAYLOAD_SAME)
		write_event(own, payload, payload_size);
	else if (write_usual(own, entry, payload, payload_size) == -E2BIG)
		write_large(own, entry, payload, payload_size);
}

const struct logger_ops logger_user_events = {
	.name = "user-events",
	.open = user_events_open,
	.add = user_events_add,
	.is_on = user_events_is_on,
	.fire = user_events_fire,
	.close = user_events_close,
	.fork_child = user_events_fork_child,
};
