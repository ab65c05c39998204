/* The list of sessions with counters, and the module that starts and stops with the library. */
#include "lib/counter/counter_session.h"

#include <stdlib.h>

#include "lib/event/firing.h"
#include "lib/pipe/pipe_session.h"

static pthread_mutex_t counter_sessions_lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter_session *counter_sessions;

static void counter_session_retired(struct counter_consumer *consumer)
{
	struct counter_session *session = (struct counter_session *)consumer;

	outbuf_done(&session->payload);
	session->release(session);
}

int counter_session_start(struct counter_session *session)
{
	session->consumer.retired = counter_session_retired;
	(void)pthread_mutex_lock(&counter_sessions_lock);
	session->next = counter_sessions;
	counter_sessions = session;
	int error = counter_consumer_add(&session->consumer);
	if (error < 0)
		counter_sessions = session->next;
	(void)pthread_mutex_unlock(&counter_sessions_lock);
	if (error < 0)
		session->release(session);
	return error;
}

void counter_session_end(uint64_t session_id, const void *owner)
{
	(void)pthread_mutex_lock(&counter_sessions_lock);
	for (struct counter_session **at = &counter_sessions; *at;) {
		struct counter_session *session = *at;
		if (session->owner == owner &&
			(session_id == 0 || session->session_id == session_id)) {
			*at = session->next;
			counter_consumer_retire(&session->consumer);
		} else {
			at = &session->next;
		}
	}
	(void)pthread_mutex_unlock(&counter_sessions_lock);
}

void counter_session_fire(struct counter_session *session, struct spoor_event *event)
{
	uint64_t bit = session_bit(session->session_id);

	if (bit && !session->payload.failed)
		pipe_fire(event, bit, session->payload.data, (uint32_t)session->payload.size, NULL,
			0);
	outbuf_reset(&session->payload);
}

static int counter_module_start(const struct spoor_options *options)
{
	(void)options;
	return counter_metrics_start();
}

static void counter_module_stop(void)
{
	counter_metrics_stop();
	/*
	 * Meters exist longer than the library runs. Their sessions have ended with the pipe's
	 * sessions; listeners of the program remain.
	 */
	counter_thread_end();
}

static void counter_module_child(void)
{
	/* The registry has its own fork handler. The memory of the parent's sessions is lost. */
	counter_sessions_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	counter_sessions = NULL;
}

const struct module counter_module = {
	.name = "counters",
	.start = counter_module_start,
	.stop = counter_module_stop,
	.child = counter_module_child,
};
