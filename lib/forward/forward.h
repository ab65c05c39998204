/*
 * What the sinks of <spoor/sink.h> share: options, counters, the bounded queue of messages, the
 * thread, and sockets with time limits. The folder uses only the library's public functions, so
 * that programs which do not use a sink do not link it.
 *
 *   forward_open()    copies the options, opens the counter listener, starts the thread
 *   forward_queue()   called by ops->value() and ops->interval_end(), on the collecting thread
 *   forward_take()    called by ops->run(), on the sink's thread
 *
 * Ownership: a sink has two references, of the caller and of its thread. spoor_sink_close() does not
 * wait for a thread that hangs in the resolver.
 */
#ifndef SPOOR_LIB_FORWARD_FORWARD_H
#define SPOOR_LIB_FORWARD_FORWARD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <spoor/sink.h>

/* A growable text; all zero is empty. Out of memory is sticky. */
struct forward_text {
	char *data;
	size_t size;
	size_t room;
	bool failed;
};

void forward_add(struct forward_text *text, const char *data, size_t size);
void forward_print(struct forward_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "%.17g" with a dot in every locale. */
struct forward_number {
	char text[40];
};
const char *forward_number(struct forward_number *number, double value);

/*
 * Appends `name`; characters that Graphite or StatsD use for themselves become '_'. Dots stay: they
 * separate the parts of a name.
 */
void forward_name(struct forward_text *text, const char *name);

/* Items to send: bytes, and how many lines or data points they are. */
struct forward_message {
	struct forward_message *next;
	uint64_t points;
	size_t size;
	char *data;
};

struct forward_ops {
	const char *port;
	bool events; /* options.wants is allowed */
	/* Of struct spoor_counter_listener_options. */
	void (*value)(struct spoor_sink *sink, const struct spoor_counter_value *value);
	void (*interval_end)(struct spoor_sink *sink);
	/* The sink's thread: sends until forward_take() returns NULL and `closing` is set. */
	void (*run)(struct spoor_sink *sink);
};

struct spoor_sink {
	const struct forward_ops *ops;
	struct spoor_sink_options options; /* deep copies */
	struct spoor_tag *tags;
	uint32_t references; /* atomic */
	int process;         /* that opened it */
	uint64_t opened_unix_ns;
	struct spoor_session *session;
	struct spoor_counter_listener *listener;
	uint64_t deadline_ns; /* atomic; 0: spoor_sink_close() was not called */

	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	struct forward_message *first, *last;
	size_t queued_bytes;
	bool closing;
	bool ended; /* the thread */

	/* atomic */
	uint64_t events, offered, sent, lost, connections, failures;

	/* of the collecting thread */
	struct forward_text building;
	uint64_t building_points;
	const void *building_state[2];

	/* of the sink's thread */
	int fd;
	uint64_t retry_ns;
	uint32_t retry_ms;
};

int forward_open(const struct forward_ops *ops, const struct spoor_sink_options *options,
	struct spoor_sink **ret_sink);

uint64_t forward_unix_ns(uint64_t time_ns); /* of a time of spoor_now_ns() */
void forward_count(uint64_t *counter, uint64_t count);

/* Queues `building`, which is empty then. Without room its points are lost. */
void forward_queue(struct spoor_sink *sink);

/*
 * The next message, which the caller frees; NULL: none within timeout_ms (UINT32_MAX: until the
 * sink closes).
 */
struct forward_message *forward_take(struct spoor_sink *sink, uint32_t timeout_ms);
void forward_message_free(struct forward_message *message);
bool forward_closing(struct spoor_sink *sink);

/* Is the time of spoor_sink_close() over? */
bool forward_given_up(const struct spoor_sink *sink);

/* ---- forward_net.c; on the sink's thread ---- */

/*
 * Opens `fd`, if it is not open. False: it failed, now or less than a retry interval ago. `type`:
 * SOCK_STREAM or SOCK_DGRAM.
 */
bool forward_connect(struct spoor_sink *sink, int type);
void forward_disconnect(struct spoor_sink *sink);

/* The next try of forward_connect() is later, by an interval that each call doubles. */
void forward_back_off(struct spoor_sink *sink);
void forward_reset_back_off(struct spoor_sink *sink);

/*
 * Waits for POLLIN or POLLOUT, in short steps, until the deadline or until the sink gives up; false:
 * not ready.
 */
bool forward_ready(struct spoor_sink *sink, short events, uint64_t deadline_ns);
void forward_sleep(struct spoor_sink *sink, uint64_t until_ns);

#endif
