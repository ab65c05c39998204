/*
 * The kinds of sinks. Each function stores a new sink in *ret_sink and returns 0, or returns a
 * negative errno. The caller owns the sink until a session takes it (struct session_config). They
 * may be called from any thread, except in signal handlers.
 */
#ifndef SPOOR_LIB_SINK_SINKS_H
#define SPOOR_LIB_SINK_SINKS_H

#include "lib/pipe/sink.h"

/*
 * nettrace 4 into a stream socket, which becomes non-blocking and is owned by this function from
 * here on, also on failure. Up to buffer_bytes that the peer has not read yet are buffered.
 */
int sink_socket_new(int fd, size_t buffer_bytes, struct sink **ret_sink);

/* Number of bytes that the peer of a socket sink has read so far. Loop thread. */
uint64_t sink_socket_sent(const struct sink *sink);

/* nettrace 4 into a file, or a sequence of files. */
int sink_file_new(const struct spoor_file_options *file,
	const struct spoor_session_options *options, struct sink **ret_sink);

/* The newest events in memory; a snapshot or the end writes them to a file. */
int sink_recorder_new(const struct spoor_file_options *file,
	const struct spoor_session_options *options, struct sink **ret_sink);

/* Stores nothing: events are in the rings only, for recover.h. */
int sink_rings_new(struct sink **ret_sink);

/*
 * A queue for a listener: `function` is called on a thread of the sink; NULL: the program reads
 * with spoor_listener_read().
 */
int sink_queue_new(const struct spoor_session_options *options, spoor_listener_function *function,
	void *context, struct sink **ret_sink);

#endif
