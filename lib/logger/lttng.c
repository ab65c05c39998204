/*
 * LTTng-UST: each event is registered as a tracepoint with typed fields. The libraries are loaded
 * when the logger is opened, so a program does not depend on them.
 *
 * Each event is a provider of its own for LTTng, because events are registered one by one; those of
 * one name are one provider for its tools. A name is registered one time: a second registration
 * would write each record twice. The call site of the event has one argument, `struct fired`, in
 * place of one for each field, so one probe function serves all events.
 *
 * The thread-local memory of LTTng is allocated by a thread's first event, so that one must not be
 * fired in a signal handler (spoor_logger_prepare_thread()).
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/logger/logger.h"
#include "lib/logger/lttng_abi.h"
#include "lib/logger/lttng_fields.h"
#include "lib/logger/lttng_library.h"
#include "lib/logger/lttng_old.h"

/* Provider and event with a colon. */
#define NAMES_MAX 255u
#define SIGNATURE "const struct fired *, fired"

struct lttng_registered;

static struct {
	bool loaded;
	bool old;   /* it is 2.12 or older: lttng_old.h */
	bool forks; /* fork() is announced to LTTng here, not by its own wrapper */
	int (*site_register)(struct lttng_tracepoint *const *start, int count);
	int (*site_unregister)(struct lttng_tracepoint *const *start);
	struct lttng_registered *(*event_register)(const struct lttng_provider *provider);
	void (*event_unregister)(struct lttng_registered *registered);
	void (*read_lock)(void);
	void (*read_unlock)(void);
	void (*init_thread)(void);
	void (*before_fork)(sigset_t *save);
	void (*after_fork_parent)(sigset_t *restore);
	void (*after_fork_child)(sigset_t *restore);
	sigset_t signals; /* of the thread that forks */
	struct ust_tracepoint *first;
} ust;

struct ust_tracepoint {
	struct lttng_tracepoint site;
	struct lttng_tracepoint *site_pointer;
	struct lttng_registered *registered; /* NULL: not now */
	struct lttng_provider provider;
	struct lttng_class class;
	struct lttng_event event;
	const struct lttng_event *event_pointer;
	int log_level;
	const int *log_level_pointer;
	char uri[96];
	const char *uri_pointer;
	struct lttng_old *old; /* NULL: of 2.13 or later */
	struct ust_tracepoint *next;
};

struct fired {
	const struct event_entry *entry;
	const uint8_t *payload;
	size_t payload_size;
};

/* ---- Loading ---- */

#ifdef SPOOR_STATIC
/* A static program cannot load LTTng's libraries. */
static int load(void)
{
	return -ENOENT;
}
#else
static int load(void)
{
	const int flags = RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE;
	void *sites = dlopen("liblttng-ust-tracepoint.so.1", flags);
	void *events = sites ? dlopen("liblttng-ust.so.1", flags) : NULL;

	if (!events) {
		int r = lttng_old_load();
		ust.loaded = ust.old = r == 0;
		return r;
	}
	if (!lttng_symbol(sites, "lttng_ust_tracepoint_module_register", &ust.site_register) ||
		!lttng_symbol(sites, "lttng_ust_tracepoint_module_unregister",
			&ust.site_unregister) ||
		!lttng_symbol(sites, "lttng_ust_tp_rcu_read_lock", &ust.read_lock) ||
		!lttng_symbol(sites, "lttng_ust_tp_rcu_read_unlock", &ust.read_unlock) ||
		!lttng_symbol(events, "lttng_ust_probe_register", &ust.event_register) ||
		!lttng_symbol(events, "lttng_ust_probe_unregister", &ust.event_unregister))
		return -ENOENT;
	/* Of 2.13 and later. */
	(void)lttng_symbol(events, "lttng_ust_init_thread", &ust.init_thread);
	ust.forks = !lttng_wraps_fork("liblttng-ust-fork.so.1") &&
		    lttng_symbol(events, "lttng_ust_before_fork", &ust.before_fork) &&
		    lttng_symbol(events, "lttng_ust_after_fork_parent", &ust.after_fork_parent) &&
		    lttng_symbol(events, "lttng_ust_after_fork_child", &ust.after_fork_child);
	ust.loaded = true;
	return 0;
}
#endif

static bool tracepoint_register(struct ust_tracepoint *tracepoint)
{
	if (tracepoint->old)
		return lttng_old_register(tracepoint->old);
	if (tracepoint->registered)
		return true;
	if (ust.site_register(&tracepoint->site_pointer, 1))
		return false;
	tracepoint->registered = ust.event_register(&tracepoint->provider);
	if (!tracepoint->registered)
		(void)ust.site_unregister(&tracepoint->site_pointer);
	return tracepoint->registered != NULL;
}

static int lttng_open(void)
{
	int r = ust.loaded ? 0 : load();

	for (struct ust_tracepoint *each = ust.first; r == 0 && each; each = each->next)
		(void)tracepoint_register(each);
	return r;
}

static void lttng_close(void)
{
	for (struct ust_tracepoint *each = ust.first; each; each = each->next) {
		if (each->old)
			lttng_old_unregister(each->old);
		if (!each->registered)
			continue;
		ust.event_unregister(each->registered);
		(void)ust.site_unregister(&each->site_pointer);
		each->registered = NULL;
	}
}

/* ---- Firing ---- */

/* Does the session or trigger want this event? `stack` is made when the first of them needs it. */
static bool is_wanted(const struct lttng_enabled *enabled, const struct fired *fired,
	struct lttng_stack *stack, struct lttng_probe_context *context)
{
	if (!__atomic_load_n(&enabled->enabled, __ATOMIC_RELAXED))
		return false;
	if (!__atomic_load_n(&enabled->has_filter, __ATOMIC_RELAXED))
		return true;
	lttng_stack_make(fired->entry, fired->payload, fired->payload_size, false, stack);
	return enabled->run_filter(enabled, (const char *)stack->values, context, NULL) == 0;
}

static __attribute__((noinline)) bool is_accepted(const struct lttng_enabled *enabled,
	const struct fired *fired, struct lttng_probe_context *context)
{
	struct lttng_stack stack;

	return is_wanted(enabled, fired, &stack, context);
}

static __attribute__((noinline)) void notify(const struct lttng_enabled *enabled,
	const struct fired *fired, struct lttng_probe_context *context)
{
	const struct lttng_notifier *notifier = enabled->child;
	struct lttng_notification notification = { .struct_size = sizeof(notification),
		.has_capture = __atomic_load_n(&notifier->has_capture, __ATOMIC_RELAXED) };
	struct lttng_stack stack;

	if (!is_wanted(enabled, fired, &stack, context))
		return;
	lttng_stack_make(fired->entry, fired->payload, fired->payload_size, false, &stack);
	notifier->send(notifier, (const char *)stack.values, context, &notification);
}

static void record(const struct lttng_enabled *enabled, const struct fired *fired,
	struct lttng_probe_context *context)
{
	struct lttng_recorder *recorder = enabled->child;
	const struct lttng_channel *channel = recorder->channel;
	struct lttng_record made;

	if (!__atomic_load_n(&channel->parent->session->active, __ATOMIC_RELAXED) ||
		!__atomic_load_n(&channel->parent->enabled, __ATOMIC_RELAXED) ||
		!__atomic_load_n(&enabled->enabled, __ATOMIC_RELAXED))
		return;
	if (__atomic_load_n(&enabled->has_filter, __ATOMIC_RELAXED) &&
		!is_accepted(enabled, fired, context))
		return;
	if (lttng_record_make(fired->entry, fired->payload, fired->payload_size, &made))
		return;
	struct lttng_buffer_context buffer = { .struct_size = sizeof(buffer),
		.client = recorder,
		.data_size = made.size,
		.largest_align = 1,
		.probe_context = context };
	if (channel->ops->reserve(&buffer) < 0)
		return;
	lttng_record_write(&made, fired->entry, fired->payload, fired->payload_size, &buffer,
		channel->ops);
	channel->ops->commit(&buffer);
}

/* LTTng calls this by its address in the class, for each session that has enabled the event. */
static void probe_call(void *data, const struct fired *fired)
{
	const struct lttng_enabled *enabled = data;
	struct lttng_probe_context context = { .struct_size = sizeof(context),
		.ip = __builtin_return_address(0) };

	switch (enabled->type) {
	case LTTNG_RECORDER:
		record(enabled, fired, &context);
		break;
	case LTTNG_NOTIFIER:
		notify(enabled, fired, &context);
		break;
	default: /* of a later version */
		break;
	}
}

static bool lttng_is_on(const void *part)
{
	const struct ust_tracepoint *tracepoint = part;

	if (__builtin_expect(tracepoint->old != NULL, 0))
		return lttng_old_is_on(tracepoint->old);
	return __atomic_load_n(&tracepoint->site.state, __ATOMIC_RELAXED) != 0;
}

static void lttng_fire(void *part, const struct event_entry *entry, const uint8_t *payload,
	size_t payload_size)
{
	struct ust_tracepoint *tracepoint = part;
	const struct fired fired = { entry, payload, payload_size };

	if (__builtin_expect(tracepoint->old != NULL, 0)) {
		lttng_old_fire(tracepoint->old, entry, payload, payload_size);
		return;
	}
	if (!lttng_is_on(tracepoint))
		return;
	ust.read_lock();
	const struct lttng_probe *each =
		__atomic_load_n(&tracepoint->site.probes, __ATOMIC_ACQUIRE);
	for (; each && each->function; each++)
		((void (*)(void *, const struct fired *))(void *)each->function)(each->data,
			&fired);
	ust.read_unlock();
}

/* ---- Events ---- */

static int log_level_of(uint32_t level)
{
	/* EMERG, CRIT, ERR, WARNING, INFO, DEBUG */
	static const int levels[] = { 0, 2, 3, 4, 6, 14 };

	return levels[level <= SPOOR_VERBOSE ? level : SPOOR_VERBOSE];
}

static void *lttng_add(const struct event_entry *entry, const struct logger_names *names)
{
	static int reference;
	struct ust_tracepoint *made = calloc(1, sizeof(*made));
	size_t field_count = 0;
	const struct lttng_field *const *fields = NULL;

	if (!made || strlen(names->provider) + strlen(names->event) + 1 > NAMES_MAX ||
		lttng_fields_make(entry, &fields, &field_count)) {
		free(made);
		return NULL;
	}
	made->log_level = log_level_of(entry->info.level);
	made->log_level_pointer = &made->log_level;
	(void)snprintf(made->uri, sizeof(made->uri),
		"spoor:id=%u,version=%u,opcode=%u,keywords=0x%llx", entry->info.id,
		entry->info.version, entry->info.opcode, (unsigned long long)entry->info.keywords);
	made->uri_pointer = made->uri;
	made->provider = (struct lttng_provider){ .struct_size = sizeof(made->provider),
		.name = names->provider,
		.events = &made->event_pointer,
		.event_count = 1,
		.major = LTTNG_PROVIDER_MAJOR,
		.minor = LTTNG_PROVIDER_MINOR };
	made->class = (struct lttng_class){ .struct_size = sizeof(made->class),
		.fields = fields,
		.field_count = field_count,
		.probe_callback = (void (*)(void))(void *)probe_call,
		.signature = SIGNATURE,
		.provider = &made->provider };
	made->event = (struct lttng_event){ .struct_size = sizeof(made->event),
		.name = names->event,
		.provider = &made->provider,
		.class = &made->class,
		.log_level = &made->log_level_pointer,
		.model_emf_uri = &made->uri_pointer };
	made->event_pointer = &made->event;
	made->site = (struct lttng_tracepoint){ .struct_size = sizeof(made->site),
		.provider = names->provider,
		.event = names->event,
		.provider_reference = &reference,
		.signature = SIGNATURE };
	made->site_pointer = &made->site;
	if (ust.old) {
		made->old = lttng_old_make(&made->event, names->provider);
		if (!made->old) {
			free(made);
			return NULL;
		}
	}
	made->next = ust.first;
	ust.first = made;
	(void)tracepoint_register(made);
	return made;
}

static void lttng_prepare_thread(void)
{
	if (ust.init_thread)
		ust.init_thread();
}

/* ---- fork() ---- */

/*
 * LTTng prepares the child, as its wrapper liblttng-ust-fork.so makes it do. Otherwise events of
 * the child would have the process id of the parent.
 */
static void lttng_fork_before(void)
{
	if (ust.old)
		lttng_old_fork_before(&ust.signals);
	if (ust.forks)
		ust.before_fork(&ust.signals);
}

static void lttng_fork_parent(void)
{
	if (ust.old)
		lttng_old_fork_parent(&ust.signals);
	if (ust.forks)
		ust.after_fork_parent(&ust.signals);
}

static void lttng_fork_child(void)
{
	if (ust.old)
		lttng_old_fork_child(&ust.signals);
	if (ust.forks)
		ust.after_fork_child(&ust.signals);
}

const struct logger_ops logger_lttng = {
	.name = "lttng",
	.open = lttng_open,
	.add = lttng_add,
	.is_on = lttng_is_on,
	.fire = lttng_fire,
	.close = lttng_close,
	.prepare_thread = lttng_prepare_thread,
	.fork_before = lttng_fork_before,
	.fork_parent = lttng_fork_parent,
	.fork_child = lttng_fork_child,
};
