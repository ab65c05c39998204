/*
 * Events of the library about itself, provider "Spoor-Library": losses, failed sinks, and the
 * process.
 */
#ifndef SPOOR_LIB_PIPE_OWN_EVENTS_H
#define SPOOR_LIB_PIPE_OWN_EVENTS_H

#include <stdint.h>

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

#endif
