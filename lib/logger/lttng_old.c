/*
 * See lttng_old.h. Structs have the names of <lttng/ust-events.h> 2.12 with "old_"; they grew at their
 * ends only, so those of 2.7 and later are the same here.
 *
 * What 2.13 describes as two fields, the length of a sequence and its elements, is one field here.
 * The record is the same: the length, then the elements.
 */
#include "lib/logger/lttng_old.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/logger/lttng_fields.h"
#include "lib/logger/lttng_library.h"

/* of both call site and event; LTTng cuts no name */
#define NAME_MAX_OLD 256u
#define SIGNATURE    "const struct old_fired *, fired"

enum old_type_kind {
	OLD_INTEGER = 0,
	OLD_ARRAY = 2,
	OLD_SEQUENCE = 3,
	OLD_STRING = 4,
	OLD_FLOAT = 5,
};

struct old_integer {
	unsigned int size;
	unsigned short alignment;
	unsigned int is_signed : 1;
	unsigned int reverse_byte_order : 1;
	unsigned int base;
	uint32_t encoding;
	char padding[24];
};

struct old_float {
	unsigned int exponent_bits;
	unsigned int mantissa_bits;
	unsigned short alignment;
	unsigned int reverse_byte_order : 1;
	char padding[24];
};

struct old_basic {
	uint32_t kind; /* enum old_type_kind */
	union {
		struct old_integer integer;
		struct old_float floating;
		struct {
			uint32_t encoding;
		} string;
		void *alignment;
		char padding[128];
	} u;
};

struct old_type {
	uint32_t kind; /* enum old_type_kind */
	union {
		struct old_integer integer;
		struct old_float floating;
		struct {
			uint32_t encoding;
		} string;
		struct {
			struct old_basic element;
			unsigned int length;
		} array;
		struct {
			struct old_basic length;
			struct old_basic element;
		} sequence;
		char padding[128];
	} u;
};

struct old_field {
	const char *name;
	struct old_type type;
	unsigned int no_write;
	union {
		struct {
			unsigned int no_filter : 1;
		} ext;
		char padding[28];
	} u;
};

struct old_description {
	const char *name; /* "provider:event" */
	void (*probe_callback)(void);
	const void *context;
	const struct old_field *fields;
	unsigned int field_count;
	const int **log_level;
	const char *signature;
	union {
		const char **model_emf_uri;
		char padding[40];
	} u;
};

struct old_list {
	struct old_list *next;
	struct old_list *before;
};

struct old_provider {
	const char *name;
	const struct old_description **events;
	unsigned int event_count;
	struct old_list head;
	struct old_list lazy_head;
	int lazy;
	uint32_t major;
	uint32_t minor;
	char padding[12];
};
#define OLD_PROVIDER_MAJOR 1u
#define OLD_PROVIDER_MINOR 0u

struct old_site {
	const char *name;
	int state; /* atomic */
	struct lttng_probe *probes;
	int *provider_reference;
	const char *signature;
	char padding[16];
};

/* ---- Of a session ---- */

struct old_context;

struct old_ring_context {
	void *channel;
	void *event;
	void *handle;
	size_t data_size;
	int largest_align;
	int cpu;
	void *buffer;
	size_t slot_size;
	unsigned long buffer_offset;
	unsigned long pre_offset;
	uint64_t tsc;
	unsigned int flags;
	unsigned int size;
	void *ip;
	struct old_context *context;
	char padding[4];
	void *backend_pages;
};

struct old_channel_ops {
	void *create;
	void *destroy;
	void *deprecated[2];
	int (*reserve)(struct old_ring_context *context, uint32_t event_id);
	void (*commit)(struct old_ring_context *context);
	void (*write)(struct old_ring_context *context, const void *bytes, size_t size);
};

struct old_session {
	int active;
};

struct old_channel {
	void *buffers;
	int enabled;
	void *context;
	struct old_session *session;
	int object;
	unsigned int deprecated[2];
	struct old_list node;
	const struct old_channel_ops *ops;
	int header_type;
	void *handle;
};

struct old_event {
	unsigned int id;
	struct old_channel *channel;
	int enabled;
	const struct old_description *description;
	void *deprecated1;
	void *context;
	uint32_t instrumentation;
	struct old_list node;
	struct old_list deprecated2;
	void *deprecated3;
	unsigned int deprecated4 : 1;
	struct old_list filters; /* nodes of struct old_filter */
	int has_enablers_without_filter;
};

struct old_filter {
	void *bytecode;
	uint64_t (*run)(void *filter, const char *stack); /* bit 0: accepted */
	int link_failed;
	struct old_list node;
};

/* For the contexts that a session adds to events: the thread's id and so on. */
struct old_context {
	struct old_event *event;
	void *channel_context;
	void *event_context;
	char padding[32];
};

#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct old_basic) == 136 && sizeof(struct old_type) == 280 &&
		       sizeof(struct old_field) == 320 && sizeof(struct old_description) == 96,
	"descriptions of events as the library reads them");
_Static_assert(offsetof(struct old_event, filters) == 104 &&
		       offsetof(struct old_channel, ops) == 64 &&
		       offsetof(struct old_ring_context, context) == 96,
	"structs that the library makes");
#endif

/* ---- Loading ---- */

static struct {
	int (*site_register)(struct old_site *const *start, int count);
	int (*site_unregister)(struct old_site *const *start);
	int (*provider_register)(struct old_provider *provider);
	void (*provider_unregister)(struct old_provider *provider);
	void (*read_lock)(void);
	void (*read_unlock)(void);
	void (*before_fork)(sigset_t *save);
	void (*after_fork_parent)(sigset_t *restore);
	void (*after_fork_child)(sigset_t *restore);
} old;

struct lttng_old {
	struct old_site site;
	struct old_site *site_pointer;
	struct old_provider provider;
	struct old_description description;
	const struct old_description *description_pointer;
	bool registered;
	char name[NAME_MAX_OLD + 1];
	struct old_field fields[];
};

struct old_fired {
	const struct event_entry *entry;
	const uint8_t *payload;
	size_t payload_size;
};

#ifdef SPOOR_STATIC
/* A static program cannot load LTTng's libraries. */
int lttng_old_load(void)
{
	return -ENOENT;
}
#else
int lttng_old_load(void)
{
	const int flags = RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE;
	void *sites = dlopen("liblttng-ust-tracepoint.so.0", flags);
	void *events = sites ? dlopen("liblttng-ust.so.0", flags) : NULL;

	if (!events || !lttng_symbol(sites, "tracepoint_register_lib", &old.site_register) ||
		!lttng_symbol(sites, "tracepoint_unregister_lib", &old.site_unregister) ||
		!lttng_symbol(sites, "tp_rcu_read_lock_bp", &old.read_lock) ||
		!lttng_symbol(sites, "tp_rcu_read_unlock_bp", &old.read_unlock) ||
		!lttng_symbol(events, "lttng_probe_register", &old.provider_register) ||
		!lttng_symbol(events, "lttng_probe_unregister", &old.provider_unregister))
		return -ENOENT;
	if (lttng_wraps_fork("liblttng-ust-fork.so.0") ||
		!lttng_symbol(events, "ust_before_fork", &old.before_fork) ||
		!lttng_symbol(events, "ust_after_fork_parent", &old.after_fork_parent) ||
		!lttng_symbol(events, "ust_after_fork_child", &old.after_fork_child))
		old.before_fork = NULL;
	return 0;
}
#endif

/* ---- Descriptions ---- */

static struct old_integer integer_of(const struct lttng_type_common *type)
{
	const struct lttng_integer *from = (const struct lttng_integer *)(const void *)type;

	return (struct old_integer){ .size = from->size_bits,
		.alignment = from->alignment_bits,
		.is_signed = from->is_signed,
		.reverse_byte_order = from->reverse_byte_order,
		.base = from->base };
}

static struct old_basic basic_of(const struct lttng_type_common *type)
{
	return (struct old_basic){ .kind = OLD_INTEGER, .u = { .integer = integer_of(type) } };
}

static struct old_type type_of(const struct lttng_type_common *type,
	const struct lttng_type_common *length)
{
	const struct lttng_float *floating = (const struct lttng_float *)(const void *)type;
	const struct lttng_array *array = (const struct lttng_array *)(const void *)type;
	const struct lttng_sequence *sequence = (const struct lttng_sequence *)(const void *)type;

	switch (type->type) {
	case LTTNG_INTEGER:
		return (struct old_type){ .kind = OLD_INTEGER,
			.u = { .integer = integer_of(type) } };
	case LTTNG_FLOAT:
		return (struct old_type){ .kind = OLD_FLOAT,
			.u = { .floating = { .exponent_bits = floating->exponent_bits,
				       .mantissa_bits = floating->mantissa_bits,
				       .alignment = floating->alignment_bits,
				       .reverse_byte_order = floating->reverse_byte_order } } };
	case LTTNG_ARRAY:
		return (struct old_type){ .kind = OLD_ARRAY,
			.u = { .array = { .element = basic_of(array->element),
				       .length = array->length } } };
	case LTTNG_SEQUENCE:
		return (struct old_type){ .kind = OLD_SEQUENCE,
			.u = { .sequence = { .length = basic_of(length),
				       .element = basic_of(sequence->element) } } };
	default:
		return (struct old_type){ .kind = OLD_STRING,
			.u = { .string = { LTTNG_ENCODING_UTF8 } } };
	}
}

static unsigned int fields_make(struct old_field *out, const struct lttng_field *const *fields,
	size_t count)
{
	unsigned int made = 0;

	for (size_t i = 0; i < count; i++) {
		bool is_length = i + 1 < count && fields[i + 1]->type->type == LTTNG_SEQUENCE;
		if (is_length)
			continue;
		out[made++] = (struct old_field){ .name = fields[i]->name,
			.type = type_of(fields[i]->type, i ? fields[i - 1]->type : NULL),
			.u = { .ext = { fields[i]->no_filter } } };
	}
	return made;
}

static void probe_call(void *data, const struct old_fired *fired);

struct lttng_old *lttng_old_make(const struct lttng_event *event, const char *provider)
{
	static int reference;
	const size_t count = event->class->field_count;
	struct lttng_old *made = calloc(1, sizeof(*made) + count * sizeof(made->fields[0]));

	if (!made)
		return NULL;
	(void)snprintf(made->name, sizeof(made->name), "%s:%s", provider, event->name);
	made->description = (struct old_description){ .name = made->name,
		.probe_callback = (void (*)(void))(void *)probe_call,
		.fields = made->fields,
		.field_count = fields_make(made->fields, event->class->fields, count),
		.log_level = event->log_level,
		.signature = SIGNATURE,
		.u = { .model_emf_uri = event->model_emf_uri } };
	made->description_pointer = &made->description;
	made->provider = (struct old_provider){ .name = provider,
		.events = &made->description_pointer,
		.event_count = 1,
		.major = OLD_PROVIDER_MAJOR,
		.minor = OLD_PROVIDER_MINOR };
	made->site = (struct old_site){
		.name = made->name, .provider_reference = &reference, .signature = SIGNATURE
	};
	made->site_pointer = &made->site;
	return made;
}

bool lttng_old_register(struct lttng_old *tracepoint)
{
	if (tracepoint->registered)
		return true;
	if (old.site_register(&tracepoint->site_pointer, 1))
		return false;
	tracepoint->registered = old.provider_register(&tracepoint->provider) == 0;
	if (!tracepoint->registered)
		(void)old.site_unregister(&tracepoint->site_pointer);
	return tracepoint->registered;
}

void lttng_old_unregister(struct lttng_old *tracepoint)
{
	if (!tracepoint->registered)
		return;
	old.provider_unregister(&tracepoint->provider);
	(void)old.site_unregister(&tracepoint->site_pointer);
	tracepoint->registered = false;
}

/* ---- Firing ---- */

bool lttng_old_is_on(const struct lttng_old *tracepoint)
{
	return __atomic_load_n(&tracepoint->site.state, __ATOMIC_RELAXED) != 0;
}

static __attribute__((noinline)) bool is_accepted(const struct old_event *event,
	const struct old_fired *fired)
{
	bool accepted = event->has_enablers_without_filter != 0;
	struct lttng_stack stack;

	lttng_stack_make(fired->entry, fired->payload, fired->payload_size, true, &stack);
	for (const struct old_list *at = __atomic_load_n(&event->filters.next, __ATOMIC_ACQUIRE);
		at != &event->filters; at = __atomic_load_n(&at->next, __ATOMIC_ACQUIRE)) {
		struct old_filter *filter =
			(struct old_filter *)(void *)((char *)(uintptr_t)at -
						      offsetof(struct old_filter, node));
		accepted = (filter->run(filter, (const char *)stack.values) & 1) || accepted;
	}
	return accepted;
}

struct writing {
	struct old_ring_context ring;
	const struct old_channel_ops *ops;
};

static void write_bytes(struct lttng_buffer_context *context, const void *bytes, size_t size,
	size_t alignment)
{
	struct writing *writing = context->private;

	(void)alignment;
	writing->ops->write(&writing->ring, bytes, size);
}

/* LTTng calls this by its address in the description, for each session that has enabled the event. */
static void probe_call(void *data, const struct old_fired *fired)
{
	static const struct lttng_buffer_ops ops = { .write = write_bytes };
	struct old_event *event = data;
	struct old_channel *channel = event->channel;
	struct lttng_record record;

	if (!__atomic_load_n(&channel->session->active, __ATOMIC_RELAXED) ||
		!__atomic_load_n(&channel->enabled, __ATOMIC_RELAXED) ||
		!__atomic_load_n(&event->enabled, __ATOMIC_RELAXED))
		return;
	if (__atomic_load_n(&event->filters.next, __ATOMIC_ACQUIRE) != &event->filters &&
		!is_accepted(event, fired))
		return;
	if (lttng_record_make(fired->entry, fired->payload, fired->payload_size, &record))
		return;
	struct old_context context = { .event = event,
		.channel_context = __atomic_load_n(&channel->context, __ATOMIC_ACQUIRE),
		.event_context = __atomic_load_n(&event->context, __ATOMIC_ACQUIRE) };
	struct writing writing = { .ops = channel->ops,
		.ring = { .channel = channel->buffers,
			.event = event,
			.handle = channel->handle,
			.data_size = record.size,
			.largest_align = 1,
			.cpu = -1,
			.size = sizeof(writing.ring),
			.ip = __builtin_return_address(0),
			.context = &context } };
	struct lttng_buffer_context buffer = { .private = &writing };
	if (channel->ops->reserve(&writing.ring, event->id) < 0)
		return;
	lttng_record_write(&record, fired->entry, fired->payload, fired->payload_size, &buffer,
		&ops);
	channel->ops->commit(&writing.ring);
}

void lttng_old_fire(const struct lttng_old *tracepoint, const struct event_entry *entry,
	const uint8_t *payload, size_t payload_size)
{
	const struct old_fired fired = { entry, payload, payload_size };

	if (!lttng_old_is_on(tracepoint))
		return;
	old.read_lock();
	const struct lttng_probe *each =
		__atomic_load_n(&tracepoint->site.probes, __ATOMIC_ACQUIRE);
	for (; each && each->function; each++)
		((void (*)(void *, const struct old_fired *))(void *)each->function)(each->data,
			&fired);
	old.read_unlock();
}

/* ---- fork() ---- */

void lttng_old_fork_before(sigset_t *signals)
{
	if (old.before_fork)
		old.before_fork(signals);
}

void lttng_old_fork_parent(sigset_t *signals)
{
	if (old.before_fork)
		old.after_fork_parent(signals);
}

void lttng_old_fork_child(sigset_t *signals)
{
	if (old.before_fork)
		old.after_fork_child(signals);
}
