/*
 * A nettrace stream. Read as a whole and in small pieces it gives the same events, whatever the
 * bytes are. The events are then absorbed and written, and the resulting file must read without an
 * error.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/map.h"
#include "nettrace/nettrace_read.h"
#include "nettrace/nettrace_write.h"
#include "trace/absorb.h"
#include "trace/event.h"
#include "trace/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t mix(uint64_t hash, uint64_t value)
{
	return hash_u64(hash ^ value) + value;
}

/* Hash of all events; *ret_error is the error at the end. */
static uint64_t run(const uint8_t *data, size_t size, size_t piece, unsigned flags,
	struct sink *sink, struct trace *trace, int *ret_error)
{
	struct nettrace_decoder *decoder = nettrace_decoder_new(trace, "fuzz", flags);
	struct event event;
	uint64_t hash = 0;
	int r = 0;

	if (!decoder)
		abort();
	for (size_t at = 0; at < size && r >= 0; at += piece) {
		if (nettrace_decoder_push(decoder, data + at,
			    size - at < piece ? size - at : piece) < 0)
			abort();
		while ((r = nettrace_decoder_next(decoder, &event, NULL)) > 0) {
			hash = mix(hash, event.time_ns);
			hash = mix(hash, event.value);
			hash = mix(hash, (uint64_t)event.thread_index << 32 | event.stack_index);
			hash = mix(hash, (uint64_t)event.schema_index << 32 | event.lost_before);
			hash = mix(hash, hash_bytes(event.payload, event.payload_size));
			if (absorb_event(trace, &event, NULL) == -12)
				abort();
			if (sink && nettrace_sink.event(sink, &event, NULL) < 0)
				abort();
		}
	}
	*ret_error = r < 0 ? r : nettrace_decoder_finish(decoder, NULL);
	nettrace_decoder_free(decoder);
	return hash;
}

/* The file that the sink writes must be complete, unless writing failed. */
static void read_back(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	struct trace trace;
	int error;
	void *data = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (data == MAP_FAILED || trace_init(&trace) < 0)
		abort();
	(void)run(data, (size_t)size, (size_t)size, 0, NULL, &trace, &error);
	if (error)
		abort();
	trace_done(&trace);
	munmap(data, (size_t)size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace trace;
	struct trace second;
	struct sink *sink;
	int whole_error;
	int error;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || trace_init(&trace) < 0 || trace_init(&second) < 0)
		abort();
	if (nettrace_sink_open(&(struct nettrace_sink_options){ .fd = fd, .name = "fuzz" }, &trace,
		    &sink, NULL) < 0)
		abort();
	uint64_t whole = run(data, size, size ? size : 1, 0, sink, &trace, &whole_error);
	if (nettrace_sink.end(sink, NULL) < 0)
		abort();
	nettrace_sink.close(sink);
	read_back(fd);
	close(fd);
	uint64_t pieces = run(data, size, 13, 0, NULL, &second, &error);
	if (pieces != whole || error != whole_error)
		abort();
	trace_done(&second);
	trace_done(&trace);

	if (trace_init(&trace) < 0)
		abort();
	(void)run(data, size, 4096, NETTRACE_NAMES_ONLY, NULL, &trace, &error);
	trace_done(&trace);
	return 0;
}
