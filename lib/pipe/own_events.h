/* The library's own events, provider "Spoor-Library": what a stream's reader has to know that no program fired. */
#ifndef SPOOR_LIB_PIPE_OWN_EVENTS_H
#define SPOOR_LIB_PIPE_OWN_EVENTS_H

#include <stdint.h>

struct session;
struct session_loss;

int own_events_register(void);

/* Into this session's stream: events of it are lost. -ENOBUFS: try again. */
int own_event_loss(struct session *session, const struct session_loss *loss);

/* Into its own stream: its sink has failed. */
int own_event_failure(struct session *session, int error);

/* To all sessions that ask for "Spoor-Library": a session has stopped because its sink failed. */
void own_event_session_failed(uint64_t id, int error, const char *sink);

/* Event 1 of Microsoft-DotNETCore-EventPipe, which readers take the command line from. */
int own_event_process_info(struct session *session);

#endif
