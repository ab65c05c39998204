/* See forward.h. */
#include "lib/forward/forward.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BUFFER_BYTES (4u << 20)
#define CLOSE_MS     5000u
#define GRACE_NS     UINT64_C(500000000) /* after the deadline, for the thread to notice it */

/* ---- Text ---- */

static bool room_for(struct forward_text *text, size_t size)
{
	size_t room = text->room ? text->room : 512;

	while (room - text->size < size + 1)
		room *= 2;
	if (room != text->room) {
		char *data = realloc(text->data, room);
		if (!data) {
			text->failed = true;
			return false;
		}
		text->data = data;
		text->room = room;
	}
	return !text->failed;
}

void forward_add(struct forward_text *text, const char *data, size_t size)
{
	if (!room_for(text, size))
		return;
	memcpy(text->data + text->size, data, size);
	text->size += size;
	text->data[text->size] = 0;
}

void forward_print(struct forward_text *text, const char *format, ...)
{
	va_list arguments, again;

	va_start(arguments, format);
	va_copy(again, arguments);
	int size = vsnprintf(NULL, 0, format, arguments);
	if (size >= 0 && room_for(text, (size_t)size)) {
		(void)vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
		text->size += (size_t)size;
	}
	va_end(again);
	va_end(arguments);
}

const char *forward_number(struct forward_number *number, double value)
{
	(void)snprintf(number->text, sizeof(number->text), "%.17g", value);
	for (char *c = number->text; *c; c++)
		if (!strchr("0123456789+-eE", *c))
			*c = '.'; /* the locale's */
	return number->text;
}

void forward_name(struct forward_text *text, const char *name)
{
	for (; *name; name++) {
		unsigned char c = (unsigned char)*name;
		bool plain = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
			     c == '_' || c == '-' || c == '.';
		forward_add(text, plain ? name : "_", 1);
	}
}

/* ---- Messages ---- */

uint64_t forward_unix_ns(uint64_t time_ns)
{
	struct timespec now = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec -
	       (spoor_now_ns() - time_ns);
}

void forward_count(uint64_t *counter, uint64_t count)
{
	__atomic_fetch_add(counter, count, __ATOMIC_RELAXED);
}

void forward_queue(struct spoor_sink *sink)
{
	struct forward_text *text = &sink->building;
	struct forward_message *message = NULL;
	uint64_t points = sink->building_points;

	sink->building_points = 0;
	forward_count(&sink->offered, points);
	if (!text->failed && text->size)
		message = malloc(sizeof(*message));
	if (message) {
		*message = (struct forward_message){ NULL, points, text->size, text->data };
		pthread_mutex_lock(&sink->lock);
		bool fits = sink->queued_bytes + text->size <= sink->options.buffer_bytes;
		if (fits) {
			if (sink->last)
				sink->last->next = message;
			else
				sink->first = message;
			sink->last = message;
			sink->queued_bytes += text->size;
			pthread_cond_broadcast(&sink->changed);
		}
		pthread_mutex_unlock(&sink->lock);
		if (fits) {
			*text = (struct forward_text){ 0 };
			return;
		}
		free(message);
	}
	forward_count(&sink->lost, points);
	text->size = 0;
	text->failed = false;
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u) };
}

struct forward_message *forward_take(struct spoor_sink *sink, uint32_t timeout_ms)
{
	struct timespec deadline =
		timespec_of(spoor_now_ns() + (uint64_t)timeout_ms * UINT64_C(1000000));
	int r = 0;

	pthread_mutex_lock(&sink->lock);
	while (!sink->first && !sink->closing && r == 0 && timeout_ms)
		r = timeout_ms == UINT32_MAX
			    ? pthread_cond_wait(&sink->changed, &sink->lock)
			    : pthread_cond_timedwait(&sink->changed, &sink->lock, &deadline);
	struct forward_message *message = sink->first;
	if (message) {
		sink->first = message->next;
		if (!sink->first)
			sink->last = NULL;
		sink->queued_bytes -= message->size;
	}
	pthread_mutex_unlock(&sink->lock);
	return message;
}

void forward_message_free(struct forward_message *message)
{
	if (message)
		free(message->data);
	free(message);
}

bool forward_closing(struct spoor_sink *sink)
{
	pthread_mutex_lock(&sink->lock);
	bool closing = sink->closing;
	pthread_mutex_unlock(&sink->lock);
	return closing;
}

bool forward_given_up(const struct spoor_sink *sink)
{
	uint64_t deadline = __atomic_load_n(&sink->deadline_ns, __ATOMIC_ACQUIRE);

	return deadline && spoor_now_ns() >= deadline;
}

/* ---- Lifetime ---- */

static void tags_free(struct spoor_sink *sink)
{
	for (size_t i = 0; sink->tags && i < sink->options.tag_count; i++) {
		free((char *)(uintptr_t)sink->tags[i].name);
		free((char *)(uintptr_t)sink->tags[i].value);
	}
	free(sink->tags);
}

static void sink_unref(struct spoor_sink *sink)
{
	const struct spoor_sink_options *options = &sink->options;

	if (__atomic_fetch_sub(&sink->references, 1, __ATOMIC_ACQ_REL) != 1)
		return;
	while (sink->first) {
		struct forward_message *next = sink->first->next;
		forward_message_free(sink->first);
		sink->first = next;
	}
	if (sink->fd >= 0)
		(void)close(sink->fd);
	spoor_session_free(sink->session);
	free(sink->building.data);
	tags_free(sink);
	free((char *)(uintptr_t)options->host);
	free((char *)(uintptr_t)options->port);
	free((char *)(uintptr_t)options->prefix);
	free((char *)(uintptr_t)options->path);
	free((char *)(uintptr_t)options->headers);
	pthread_mutex_destroy(&sink->lock);
	pthread_cond_destroy(&sink->changed);
	free(sink);
}

static const char *copy_of(const char *text, const char *otherwise, bool *failed)
{
	char *copy = strdup(text ? text : otherwise);

	*failed = *failed || !copy;
	return copy;
}

/* Replaces the texts by copies. */
static int options_copy(struct spoor_sink *sink)
{
	struct spoor_sink_options *options = &sink->options;
	const struct spoor_tag *tags = options->tags;
	bool failed = false;

	options->host = copy_of(options->host, "localhost", &failed);
	options->port = copy_of(options->port, sink->ops->port, &failed);
	options->prefix = copy_of(options->prefix, "", &failed);
	options->path = copy_of(options->path, "/v1/metrics", &failed);
	options->headers = copy_of(options->headers, "", &failed);
	if (options->tag_count)
		sink->tags = calloc(options->tag_count, sizeof(*sink->tags));
	for (size_t i = 0; sink->tags && i < options->tag_count; i++) {
		sink->tags[i].name = copy_of(tags[i].name, "", &failed);
		sink->tags[i].value = copy_of(tags[i].value, "", &failed);
	}
	options->tags = sink->tags;
	return failed || (options->tag_count && !sink->tags) ? -ENOMEM : 0;
}

static void on_value(void *context, const struct spoor_counter_value *value)
{
	struct spoor_sink *sink = context;

	sink->ops->value(sink, value);
}

static void on_interval_end(void *context, uint64_t begin_ns, uint64_t end_ns)
{
	struct spoor_sink *sink = context;

	(void)begin_ns;
	(void)end_ns;
	sink->ops->interval_end(sink);
}

static void *forward_main(void *context)
{
	struct spoor_sink *sink = context;

	sink->ops->run(sink);
	pthread_mutex_lock(&sink->lock);
	sink->ended = true;
	pthread_cond_broadcast(&sink->changed);
	pthread_mutex_unlock(&sink->lock);
	sink_unref(sink);
	return NULL;
}

/* No signal of the program is delivered to the thread. */
static int thread_start(struct spoor_sink *sink)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	pthread_t thread;

	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	__atomic_fetch_add(&sink->references, 1, __ATOMIC_RELAXED);
	int r = pthread_create(&thread, &attributes, forward_main, sink);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (r)
		sink_unref(sink);
	return -r;
}

static bool headers_good(const char *headers)
{
	size_t size = headers ? strlen(headers) : 0;

	return !size || (size >= 2 && strcmp(headers + size - 2, "\r\n") == 0 &&
				!strstr(headers, "\r\n\r\n") && headers[0] != '\r');
}

int forward_open(const struct forward_ops *ops, const struct spoor_sink_options *options,
	struct spoor_sink **ret_sink)
{
	pthread_condattr_t attributes;

	if (!options || !ret_sink || options->size < offsetof(struct spoor_sink_options, prefix))
		return -EINVAL;
	struct spoor_sink *sink = calloc(1, sizeof(*sink));
	if (!sink)
		return -ENOMEM;
	memcpy(&sink->options, options,
		options->size < sizeof(*options) ? options->size : sizeof(*options));
	const char *path = sink->options.path;
	if ((sink->options.want_count && (!ops->events || !sink->options.wants)) ||
		(sink->options.tag_count && !sink->options.tags) ||
		!headers_good(sink->options.headers) ||
		(path && (*path != '/' || strpbrk(path, " \r\n")))) {
		free(sink);
		return -EINVAL;
	}
	sink->ops = ops;
	sink->references = 1;
	sink->process = (int)getpid();
	sink->fd = -1;
	sink->opened_unix_ns = forward_unix_ns(spoor_now_ns());
	pthread_mutex_init(&sink->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&sink->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	if (!sink->options.buffer_bytes)
		sink->options.buffer_bytes = BUFFER_BYTES;
	if (!sink->options.close_ms)
		sink->options.close_ms = CLOSE_MS;
	if (!sink->options.interval_ms)
		sink->options.interval_ms = 1000;

	struct spoor_session_options session = { .size = sizeof(session),
		.wants = sink->options.wants,
		.want_count = sink->options.want_count,
		.buffer_bytes = sink->options.buffer_bytes };
	struct spoor_counter_listener_options counters = { .size = sizeof(counters),
		.interval_ns = sink->options.interval_ms * UINT64_C(1000000),
		.meters = sink->options.meters,
		.value = on_value,
		.interval_end = on_interval_end,
		.context = sink };
	int r = options_copy(sink);
	if (r == 0 && session.want_count)
		r = spoor_session_start_listener(&session, &sink->session);
	if (r == 0)
		r = thread_start(sink);
	if (r == 0) {
		sink->listener = spoor_counter_listener_open(&counters);
		if (!sink->listener)
			r = -errno;
	}
	if (r) {
		sink->process = (int)getpid();
		spoor_sink_close(sink, NULL);
		return r;
	}
	*ret_sink = sink;
	return 0;
}

void spoor_sink_count(const struct spoor_sink *sink, struct spoor_sink_counts *ret_counts)
{
	struct spoor_session_counts session = { .size = sizeof(session) };

	if (!ret_counts)
		return;
	if (!sink) {
		struct spoor_sink_counts none = { .size = ret_counts->size };
		memcpy(ret_counts, &none, none.size < sizeof(none) ? none.size : sizeof(none));
		return;
	}
	spoor_session_count(sink->session, &session);
	struct spoor_sink_counts counts = {
		.size = ret_counts->size,
		.events = __atomic_load_n(&sink->events, __ATOMIC_RELAXED),
		.events_lost = session.lost,
		.offered = __atomic_load_n(&sink->offered, __ATOMIC_RELAXED),
		.sent = __atomic_load_n(&sink->sent, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&sink->lost, __ATOMIC_RELAXED),
		.connections = __atomic_load_n(&sink->connections, __ATOMIC_RELAXED),
		.failures = __atomic_load_n(&sink->failures, __ATOMIC_RELAXED),
	};
	memcpy(ret_counts, &counts, counts.size < sizeof(counts) ? counts.size : sizeof(counts));
}

void spoor_sink_close(struct spoor_sink *sink, struct spoor_sink_counts *ret_counts)
{
	struct spoor_sink_counts counts = { .size = sizeof(counts) };
	int r = 0;

	if (!sink || sink->process != (int)getpid())
		return;
	spoor_counter_listener_close(sink->listener);
	uint64_t until = spoor_now_ns() + sink->options.close_ms * UINT64_C(1000000);
	__atomic_store_n(&sink->deadline_ns, until, __ATOMIC_RELEASE);
	if (sink->session)
		(void)spoor_session_stop(sink->session);
	struct timespec deadline = timespec_of(until + GRACE_NS);
	pthread_mutex_lock(&sink->lock);
	sink->closing = true;
	pthread_cond_broadcast(&sink->changed);
	while (!sink->ended && r == 0 && __atomic_load_n(&sink->references, __ATOMIC_RELAXED) > 1)
		r = pthread_cond_timedwait(&sink->changed, &sink->lock, &deadline);
	pthread_mutex_unlock(&sink->lock);
	spoor_sink_count(sink, &counts);
	counts.lost = counts.offered - counts.sent;
	/* Events that the thread has not read until the deadline are lost as well. */
	struct spoor_session_counts session = { .size = sizeof(session) };
	if (sink->session)
		spoor_session_count(sink->session, &session);
	if (session.written > counts.events)
		counts.events_lost += session.written - counts.events;
	if (ret_counts) {
		counts.size = ret_counts->size;
		memcpy(ret_counts, &counts,
			counts.size < sizeof(counts) ? counts.size : sizeof(counts));
	}
	sink_unref(sink);
}
