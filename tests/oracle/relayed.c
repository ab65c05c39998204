/*
 * relayed RAW PID OUT: writes the bytes of a runtime's session (spoor trace --raw) through the
 * relay into a nettrace file, as spoor trace does with the bytes of a socket. TraceEvent then
 * compares the two files event by event.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/diag.h"
#include "nettrace/nettrace_write.h"
#include "pipeline/reorder_window.h"
#include "pipeline/relay.h"
#include "trace/event.h"
#include "trace/flow.h"
#include "trace/trace.h"

#define PIECE 10007u /* differs from the size of every block */

static void die(const char *what)
{
	fprintf(stderr, "relayed: %s\n", what);
	exit(1);
}

static void release_until(struct relay *relay, struct reorder_window *window, struct sink *sink,
	uint64_t until_ns)
{
	struct pending *item;
	uint64_t late_ns;

	reorder_window_sort(window, until_ns);
	while ((item = reorder_window_next(window, &late_ns))) {
		struct event event;
		relay_take(relay, item, late_ns, &event);
		if (nettrace_sink.event(sink, &event, NULL) < 0)
			die("the event is refused");
		relay_give_back(relay, item);
	}
}

int main(int argc, char **argv)
{
	struct trace trace;
	struct reorder_window window = { 0 };
	struct relay *relay = NULL;
	struct sink *sink = NULL;
	struct diag diag = { 0 };
	uint8_t piece[PIECE];
	size_t size;

	if (argc != 4)
		die("RAW PID OUT");
	FILE *raw = fopen(argv[1], "rb");
	int fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (!raw || fd < 0 || trace_init(&trace) < 0)
		die("a file cannot be opened");
	trace.recording.recorder_process = trace_process(&trace, (uint32_t)getpid());
	trace.recording.cpu_possible = 4;
	const struct nettrace_sink_options options = { .fd = fd, .name = argv[3] };

	/* The clocks of now. The raw file has those of its start, which are the same two clocks. */
	struct timespec mono, real;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &real);
	uint64_t mono_ns = (uint64_t)mono.tv_sec * 1000000000u + (uint64_t)mono.tv_nsec;
	uint64_t back_ns =
		mono_ns / 2 < 600000000000u ? mono_ns / 2 : 600000000000u; /* it is not older */
	trace.recording.sync_ns = mono_ns - back_ns;
	trace.recording.utc_ns =
		(uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec - back_ns;
	if (nettrace_sink_open(&options, &trace, &sink, &diag) < 0 ||
		relay_new(&trace, &window, &relay) < 0)
		die(diag.text);
	uint32_t process = trace_process(&trace, (uint32_t)atoi(argv[2]));
	int stream = relay_open(relay, process, argv[1]);

	while ((size = fread(piece, 1, sizeof(piece), raw)) > 0) {
		if (relay_bytes(relay, stream, piece, size, &diag) < 0)
			die(diag.text);
		/* Only the times in the stream release events, not a clock, so no event is late. */
		release_until(relay, &window, sink, relay_limit_ns(relay, 0));
		if (nettrace_sink.flush(sink, &diag) < 0)
			die(diag.text);
	}
	if (relay_bytes(relay, stream, NULL, 0, &diag) < 0)
		die(diag.text);
	release_until(relay, &window, sink, UINT64_MAX);
	if (nettrace_sink.end(sink, &diag) < 0)
		die(diag.text);
	relay_free(relay);
	reorder_window_done(&window);
	nettrace_sink.close(sink);
	trace_done(&trace);
	fclose(raw);
	close(fd);
	return 0;
}
