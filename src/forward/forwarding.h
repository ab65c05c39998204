/*
 * Forwards the events of one .NET process: an EventPipe session whose events libspoor fires again
 * in this process. Nothing is loaded into the other process.
 */
#ifndef SPOOR_FORWARD_FORWARDING_H
#define SPOOR_FORWARD_FORWARDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag;
struct dotnet_target;
struct guard;
struct ipc_provider;
struct pollfd;
struct refire;

struct forward_options {
	const struct dotnet_target *target; /* these four borrowed */
	const struct ipc_provider *providers;
	struct guard *guard;
	struct refire *refire;
	uint32_t provider_count;
	uint32_t buffer_mb;
	uint64_t duration_ns; /* 0: until `turn` ends it, or the process ends */
	/* descriptors that end a wait; they are looked at by `turn` */
	struct pollfd *watched;
	size_t watched_count;
	/* called after each wait: false ends the forwarding. NULL: never */
	bool (*turn)(void *user, uint64_t now_ns);
	void *user;
};

struct forward_result {
	uint64_t events; /* received */
	uint64_t lost;   /* by the stream's sequence numbers */
	uint64_t took_ns;
	bool has_ended; /* the process ended, or its runtime ended the session */
};

/*
 * Opens the session, forwards, and stops it. `opened` is called once the session is open. Returns
 * 0, or an error with a sentence in diag: the session cannot be opened, or its stream cannot be
 * decoded; the events before that were forwarded.
 */
int forward_run(const struct forward_options *options, void (*opened)(void *user),
	struct forward_result *ret_result, struct diag *diag);

#endif
