/*
 * Events of the library about itself, provider "Spoor-Library": losses, failed sinks, and the
 * process.
 */
#ifndef SPOOR_LIB_PIPE_OWN_EVENTS_H
#define SPOOR_LIB_PIPE_OWN_EVENTS_H

#include <stdint.h>

#include "lib/pipe/sink.h"

struct session;
struct session_loss;

int own_events_register(void);

/* Writes into the session's stream how many of its events were lost. -ENOBUFS: try again. */
int own_event_loss(struct session *session, const struct session_loss *loss);

/* Writes into the session's stream that its sink has failed. */
int own_event_failure(struct session *session, int error);

/*
 * Fires the event that a session has stopped because its sink failed, for all sessions that enable
 * "Spoor-Library".
 */
void own_event_session_failed(uint64_t id, int error, const char *sink);

/* Writes event 1 of Microsoft-DotNETCore-EventPipe, from which readers take the command line. */
int own_event_process_info(struct session *session);

/*
 * The same events, for a sink that writes them itself: *ret_event is of no thread (its ids are 0)
 * and points into the first argument.
 */
struct own_process_info {
	uint8_t payload[4608];
};
void own_process_info_make(struct own_process_info *info, uint64_t time_ns,
	struct pipe_event *ret_event);

struct own_loss {
	uint64_t values[5];
};
void own_loss_make(struct own_loss *loss, const struct session *session, uint64_t time_ns,
	struct pipe_event *ret_event);

#endif
